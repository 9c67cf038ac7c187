"""Quantised tensors: a backend of their own, QuantizedCPU, whose kernels know that integers stand for numbers.

    q = quantize_per_tensor(x, scale, zero_point, quint8);   q.dequantize() = (q.int_repr() - zero_point) * scale

A quantised tensor brings the key QuantizedCPU in the place of CPU, so that the dispatcher itself refuses an operator
that has no kernel there. Here are the operators that make such tensors and ask what they are made of; those of plain
tensors get their kernels in on_quantized.py.

Source: Jacob et al., "Quantization and training of neural networks for efficient integer-arithmetic-only inference"
(2018). Read next: dispatch/tensor/quantizer.py, on_quantized.py, fake_quantize.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from redispatch.dispatch import keyset, operator_named, run
from redispatch.dispatch.tensor import CPU, Tensor, dtype, dtypes, empty, view_over
from redispatch.dispatch.tensor.operand import as_ndarray
from redispatch.dispatch.tensor.quantizer import Quantizer, codes_in, codes_of

from ..declare.declare import Operator
from ..declare.operator import kernel
from ..declare.public import public

QUANTIZED, ON_CPU = "QuantizedCPU", keyset("CPU")
OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
PLAIN: dict[str, Any] = {"derivative": False, "late_out": False}

# Making them, and what they are made of -------------------------------------------------------------------------------


def with_quantizer(tensor: Tensor, quantizer: Quantizer) -> Tensor:
    tensor._quantizer = quantizer
    return tensor


def quantised(x: Tensor, quantizer: Quantizer, element: dtype) -> Tensor:
    """A tensor of the codes nearest to a float32 tensor's elements, which lies in memory as that does, if it is dense.

    Errors: RuntimeError for other dtypes.
    """
    if element.name not in ("quint8", "qint8", "qint32"):
        raise RuntimeError(f"ScalarType {element.tensor_name} is not supported in new_qtensor.")
    if x._dtype is not dtypes.float32:
        raise RuntimeError(f"Quantize only works on Float Tensor, got {x._dtype.tensor_name}")
    made = like(x, element)
    codes = codes_in(made)
    codes[...] = quantizer.codes(as_ndarray(x._operand), codes.dtype)
    return with_quantizer(made, quantizer)


def like(x: Tensor, element: dtype) -> Tensor:
    """A tensor with memory of its own, in the order of dimensions of another."""
    plain = run(EMPTY_LIKE, ON_CPU, [view_over(x, x._shape, x._stride, 0, dtypes.uint8), None, None, None, None, None])
    return empty(x._shape, element, CPU, plain._stride)


EMPTY_LIKE = operator_named("aten::empty_like")


def per_tensor(scale: float, zero_point: int, element: dtype, function: str) -> Quantizer:
    """The quantizer of one scale and zero point. RuntimeError where no code is the zero point."""
    check_zero_point(function, zero_point, zero_point, element)
    return Quantizer(scale, zero_point)


def check_zero_point(function: str, low: int, high: int, element: dtype) -> None:
    limits = (
        np.iinfo(codes_of(element).numpy) if element.bits and element.name in ("quint8", "qint8", "qint32") else None
    )
    if limits is not None and high > limits.max:
        raise RuntimeError(f"{function} zero_point {high} is above upper bound.")
    if limits is not None and low < limits.min:
        raise RuntimeError(f"{function} zero_point {low} is below lower bound.")


def per_channel(scales: Tensor, zero_points: Tensor, axis: int, shape: Any) -> Quantizer:
    """The quantizer of a scale and a zero point for each index along `axis`.

    Zero points that are not whole are kept as they are, with float32 scales. Errors: RuntimeError where they do not fit
    the shape.
    """
    if scales.dim() != 1:
        raise RuntimeError("scale tensor must have dimension 1")
    if zero_points.dim() != 1:
        raise RuntimeError("zero_points tensor must have dimension 1")
    if scales.numel() != zero_points.numel():
        raise RuntimeError("number of elements in scales and zero_points must match")
    if not 0 <= axis < len(shape):
        raise RuntimeError(
            f"Channel axis out of range in per channel affine quantization. Got: {axis}Expected: [0, {len(shape)})"
        )
    if scales.numel() != shape[axis]:
        raise RuntimeError(f"length of scales must equal to channel, expected {shape[axis]} got, {scales.numel()}")
    kinds = (dtypes.float32, dtypes.float32) if zero_points.is_floating_point() else (dtypes.float64, dtypes.int64)
    return Quantizer(scales.detach().to(kinds[0]), zero_points.detach().to(kinds[1]), axis)


@kernel(
    "quantize_per_tensor(Tensor self, float scale, int zero_point, ScalarType dtype) -> Tensor",
    "CPU",
    face=False,
    **PLAIN,
)
def per_tensor_op(self, scale, zero_point, dtype):
    return quantised(self, per_tensor(scale, zero_point, dtype, "quantize_tensor_per_tensor_affine"), dtype)


@kernel(
    "quantize_per_tensor.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, ScalarType dtype) -> Tensor",
    "CPU",
    dispatches=True,
    face=False,
    **PLAIN,
)
def by_tensors_op(self, scale, zero_point, dtype):
    return per_tensor_op.functional(self, float(scale.item()), int(zero_point.item()), dtype)


@kernel(
    "quantize_per_tensor.tensors(Tensor[] tensors, Tensor scales, Tensor zero_points, ScalarType dtype) -> Tensor[]",
    "CPU",
    dispatches=True,
    face=False,
    **PLAIN,
)
def list_by_tensors_op(tensors, scales, zero_points, dtype):
    return [by_tensors_op.functional(x, scales[i], zero_points[i], dtype) for i, x in enumerate(tensors)]


quantize_per_tensor = public(
    per_tensor_op,
    by_tensors_op,
    list_by_tensors_op,
    method=False,
    doc="Returns a float32 tensor as codes of 8 or 32 bits.",
)


@kernel(
    "quantize_per_tensor_dynamic(Tensor self, ScalarType dtype, bool reduce_range) -> Tensor",
    "CPU",
    dispatches=True,
    method=False,
    **PLAIN,
)
def quantize_per_tensor_dynamic(self, dtype, reduce_range):
    """Returns a float32 tensor as codes, whose scale follows from the smallest and the largest element."""
    if dtype not in (dtypes.quint8, dtypes.qint8, dtypes.float16):
        raise RuntimeError(f"dtype {dtype.tensor_name}not supported")
    if dtype is dtypes.float16:
        return self.to(dtype)
    scale, zero_point = chosen(float(self.min()), float(self.max()), dtype, reduce_range)
    return per_tensor_op.functional(self, scale, zero_point, dtype)


def chosen(low: float, high: float, element: dtype, reduce_range: bool) -> tuple[float, int]:
    """The scale and zero point at which all numbers from low to high, and 0 exactly, have a code."""
    limits = np.iinfo(codes_of(element).numpy)
    least, most = (limits.min // 2, limits.max // 2) if reduce_range else (limits.min, limits.max)
    low, high = float(np.float32(min(low, 0.0))), float(np.float32(max(high, 0.0)))
    scale = (high - low) / (most - least)
    if np.float32(scale) == 0 or np.isinf(np.float32(1) / np.float32(scale)):
        scale = 0.1
    from_low, from_high = least - low / scale, most - high / scale
    errors = abs(least) - abs(low / scale), abs(most) - abs(high / scale)
    place = from_low if errors[0] < errors[1] else from_high
    return scale, int(min(max(np.rint(place), least), most))


@kernel(
    "quantize_per_channel(Tensor self, Tensor scales, Tensor zero_points, int axis, ScalarType dtype) -> Tensor",
    "CPU",
    dispatches=True,
    method=False,
    doc="Returns a float32 tensor as codes, with a scale and a zero point for each index along `axis`.",
    **PLAIN,
)
def quantize_per_channel(self, scales, zero_points, axis, dtype):
    quantizer = per_channel(scales, zero_points, axis, self._shape)
    if not zero_points.is_floating_point() and zero_points.numel():
        ends = int(zero_points.min()), int(zero_points.max())
        check_zero_point("quantize_tensor_per_channel_affine", *ends, dtype)
    return quantised(self, quantizer, dtype)


def of_codes(codes: Tensor, quantizer: Quantizer) -> Tensor:
    element = next((q for q in QUANTISED if codes_of(q) is codes._dtype), None)
    if element is None:
        raise RuntimeError("Creation of quantized tensor requires quantized dtype like torch.quint8")
    made = like(codes, element)
    codes_in(made)[...] = as_ndarray(codes._operand)
    return with_quantizer(made, quantizer)


QUANTISED = (dtypes.quint8, dtypes.qint8, dtypes.qint32)


@kernel(
    "_make_per_tensor_quantized_tensor(Tensor self, float scale, int zero_point) -> Tensor",
    "CPU",
    face=True,
    method=False,
    **PLAIN,
)
def _make_per_tensor_quantized_tensor(self, scale, zero_point):
    """Returns a quantised tensor of given codes, with one scale and zero point."""
    return of_codes(self, Quantizer(scale, zero_point))


@kernel(
    "_make_per_channel_quantized_tensor(Tensor self, Tensor scale, Tensor zero_point, int axis) -> Tensor",
    "CPU",
    dispatches=True,
    face=True,
    method=False,
    **PLAIN,
)
def _make_per_channel_quantized_tensor(self, scale, zero_point, axis):
    """Returns a quantised tensor of given codes, with a scale and zero point for each index along `axis`."""
    return of_codes(self, per_channel(scale, zero_point, axis, self._shape))


@kernel(
    f"_empty_affine_quantized(SymInt[] size, *, {OPTIONS}, float scale=1, int zero_point=0, "
    "MemoryFormat? memory_format=contiguous_format) -> Tensor",
    face=True,
    method=False,
    **PLAIN,
)
def _empty_affine_quantized(size, dtype, layout, device, pin_memory, scale, zero_point, memory_format):
    """Returns a quantised tensor of undefined codes, with one scale and zero point."""
    codes_of(dtype or dtypes.get_default_dtype())
    return with_quantizer(empty(size, dtype), Quantizer(scale, zero_point))


@kernel(
    "_empty_per_channel_affine_quantized(SymInt[] size, *, Tensor scales, Tensor zero_points, int axis, "
    f"{OPTIONS}, MemoryFormat? memory_format=contiguous_format) -> Tensor",
    "CPU",
    dispatches=True,
    face=True,
    method=False,
    **PLAIN,
)
def _empty_per_channel_affine_quantized(
    size, scales, zero_points, axis, dtype, layout, device, pin_memory, memory_format
):
    """Returns a quantised tensor of undefined codes, with a scale and zero point for each index along `axis`."""
    codes_of(dtype or dtypes.get_default_dtype())
    return with_quantizer(empty(size, dtype), per_channel(scales, zero_points, axis, size))


# Asking them ----------------------------------------------------------------------------------------------------------


def quantizer_of(q: Tensor) -> Quantizer:
    """RuntimeError for a tensor of a quantised dtype whose codes mean nothing yet: `empty(3, dtype=quint8)`."""
    if q._quantizer is None:
        raise RuntimeError(
            f"a {q._dtype} tensor has no scale: make it by quantize_per_tensor, or by _empty_affine_quantized"
        )
    return q._quantizer


def of_scheme(q: Tensor, wanted: str) -> Quantizer:
    quantizer = quantizer_of(q)
    if (quantizer.axis is None) != (wanted == "kPerTensorAffine"):
        also = "" if wanted == "kPerTensorAffine" else " || quantizer->qscheme() == kPerChannelAffineFloatQParams"
        raise RuntimeError(f"Expected quantizer->qscheme() == {wanted}{also} to be true, but got false.")
    return quantizer


def question(schema: str, wanted: str, answer: Callable[[Quantizer], Any], doc: str) -> Any:
    """Declares an operator that asks the quantizer; the CPU has none, so that plain tensors are refused."""

    @kernel(schema, QUANTIZED, doc=doc, method=True, **PLAIN)
    def asked(self):
        return answer(of_scheme(self, wanted) if wanted else quantizer_of(self))

    return asked


ONE, EACH = "kPerTensorAffine", "kPerChannelAffine"
q_scale = question("q_scale(Tensor self) -> float", ONE, lambda q: q.scale, "Returns the scale of the codes.")
q_zero_point = question("q_zero_point(Tensor self) -> int", ONE, lambda q: q.zero_point, "Returns the code of zero.")
q_per_channel_scales = question(
    "q_per_channel_scales(Tensor self) -> Tensor", EACH, lambda q: q.scale, "Returns the scale of each channel."
)
q_per_channel_zero_points = question(
    "q_per_channel_zero_points(Tensor self) -> Tensor", EACH, lambda q: q.zero_point, "Returns the codes of zero."
)
q_per_channel_axis = question(
    "q_per_channel_axis(Tensor self) -> int", EACH, lambda q: q.axis, "Returns the dimension of channels."
)


@kernel("qscheme(Tensor self) -> QScheme", QUANTIZED, function=False, method=True, **PLAIN)
def qscheme(self):
    """Returns how the codes are read."""
    return quantizer_of(self).scheme


def codes(q: Tensor) -> Tensor:
    """The codes as a plain tensor over the same memory."""
    return view_over(q, q._shape, q._stride, q._offset, codes_of(q._dtype))


def numbers(q: Any) -> Any:
    """The numbers of a quantised tensor, float32; anything else as it is."""
    if isinstance(q, list | tuple):
        return [numbers(one) for one in q]
    if not isinstance(q, Tensor) or not q._dtype.bits or q._dtype.name not in ("quint8", "qint8", "qint32"):
        return q
    made = like(q, dtypes.float32)
    as_ndarray(made._operand)[...] = quantizer_of(q).values(codes_in(q))
    return made


@kernel("int_repr(Tensor self) -> Tensor", QUANTIZED, method=True, **PLAIN)
def int_repr(self):
    """Returns a copy of the codes, as integers."""
    made = like(self, codes_of(self._dtype))
    as_ndarray(made._operand)[...] = codes_in(self)
    return made


dequantize_op = Operator("dequantize.self(Tensor self) -> Tensor", **PLAIN)
dequantize_op.kernel(QUANTIZED)(numbers)
dequantize_op.kernel("CPU", dispatches=True)(lambda self: self.to(dtypes.float32))


@kernel("dequantize.tensors(Tensor[] tensors) -> Tensor[]", "QuantizedCPU", face=False, **PLAIN)
def dequantize_list_op(tensors):
    return [numbers(q) for q in tensors]


dequantize = public(
    dequantize_op, dequantize_list_op, method=True, doc="Returns the numbers that codes stand for; of a list, of each."
)
