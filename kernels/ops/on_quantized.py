"""The operators of plain tensors on quantised ones: a few kinds of kernels at the key QuantizedCPU, one table row each.

    VIEWS         the plain kernel, over the same memory; the quantizer goes with it
    MOVED         the plain kernel on the codes, which only go elsewhere
    ASKED         the plain kernel on the numbers, whose result is none of them: comparisons, `item`
    COMPUTED      the same, with a result that is quantised as the first argument is: `relu`, `mean`
    BOUNDED       the same, with the scale that goes with the bounds of the result: `sigmoid`
    IN_PLACE      the same, whose result is written over the codes

What is in no row has no kernel, and the dispatcher refuses it. Read next: quantized.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from redispatch.dispatch import OpOverload, impl, keyset, operator_named, run
from redispatch.dispatch.tensor import Tensor, dtype, dtypes, view_over
from redispatch.dispatch.tensor.operand import as_ndarray
from redispatch.dispatch.tensor.quantizer import Quantizer, codes_in, codes_of

from .quantized import ON_CPU, QUANTIZED, codes, like, numbers, quantised, quantizer_of, with_quantizer

VIEWS = """
    alias detach view permute transpose.int t unsqueeze squeeze squeeze.dim squeeze.dims expand select.int slice.Tensor
    diagonal unfold as_strided split.Tensor split_with_sizes unbind.int _unsafe_view resize_
"""
MOVED = "clone index.Tensor index_select flip cat stack repeat sort sort.stable topk"
ASKED = """
    eq.Tensor eq.Scalar ne.Tensor ne.Scalar lt.Tensor lt.Scalar le.Tensor le.Scalar gt.Tensor gt.Scalar ge.Tensor
    ge.Scalar _local_scalar_dense
"""
COMPUTED = """
    relu clamp hardtanh leaky_relu threshold mean mean.dim std.correction max min masked_fill.Scalar masked_fill.Tensor
    constant_pad_nd upsample_nearest1d upsample_nearest2d upsample_nearest3d avg_pool2d avg_pool3d
    _adaptive_avg_pool2d max_pool2d_with_indices
"""
BOUNDED = {"sigmoid": (0, 1), "hardsigmoid": (0, 1), "tanh": (-1, 1)}  # results that have a scale of their own
IN_PLACE = "relu_ clamp_ hardtanh_ leaky_relu_ fill_.Scalar fill_.Tensor masked_fill_.Scalar index_put_"


def first_quantizer(stack: Any) -> tuple[Quantizer, dtype]:
    """The quantizer and the dtype of the first quantised tensor."""
    for value in stack:
        for one in value if isinstance(value, list | tuple) else [value]:
            if isinstance(one, Tensor) and one.is_quantized:
                return quantizer_of(one), one._dtype
    raise AssertionError("no argument is quantised")


def at_quantized(names: str, make: Callable[[OpOverload], Callable[..., Any]]) -> None:
    """Registers kernels that `make` makes of the operators."""
    for name in names.split():
        op = operator_named(f"aten::{name}")
        impl(
            op, QUANTIZED, make(op), convention="positional", place="kernels/ops/quantized.py", name=f"quantised {name}"
        )


def view_kernel(op: OpOverload) -> Callable[..., Any]:
    def viewed(*args: Any) -> Any:
        quantizer = args[0]._quantizer
        if quantizer is not None and quantizer.axis is not None:
            quantizer = viewed_by_channel(op._opname, quantizer, args)
        result = run(op, ON_CPU, list(args))
        for one in result if isinstance(result, list | tuple) else [result]:
            if quantizer is not None and one.is_quantized:
                one._quantizer = quantizer
        return result

    return viewed


def viewed_by_channel(name: str, quantizer: Quantizer, args: Any) -> Quantizer:
    """The quantizer of a view of a tensor that has one scale for each channel.

    Errors: RuntimeError for views in which channels do not lie along one dimension, or which strides alone describe.
    """
    q, axis = args[0], quantizer.axis or 0
    if name in ("detach", "alias"):
        return quantizer
    if name == "select":
        dim = args[1] % q.dim()
        return quantizer.at(args[2]) if dim == axis else quantizer.along(axis - (dim < axis))
    if name == "slice":
        return quantizer.at(slice(*args[2:])) if args[1] % q.dim() == axis else quantizer
    if name == "unsqueeze":
        return quantizer.along(axis + (args[1] % (q.dim() + 1) <= axis))
    if name == "view":
        size, count = list(args[1]), q._shape[axis]
        there = size[axis] if axis < len(size) else 0
        if there not in (count, -1):
            raise RuntimeError(f"length of scales must equal to channel, expected {there} got, {count}")
        return quantizer
    raise RuntimeError("Setting strides is possible only on uniformly quantized tensor")


def moved_kernel(op: OpOverload) -> Callable[..., Any]:
    def moved(*args: Any) -> Any:
        quantizer, element = first_quantizer(args)
        if quantizer.axis is not None and op._opname != "clone":
            raise RuntimeError(f"Only per-tensor quantization is supported in '{op._opname}'!")

        def coded(value: Any) -> Any:
            if isinstance(value, list | tuple):
                return [coded(one) for one in value]
            if not isinstance(value, Tensor) or not value.is_quantized:
                return value
            same = value._dtype is element and quantizer_of(value).is_like(quantizer)
            return codes(value if same else quantised(numbers(value), quantizer, element))

        def back(result: Any) -> Any:
            if result._dtype is not codes_of(element):  # the indices of `sort`
                return result
            return with_quantizer(view_over(result, result._shape, result._stride, result._offset, element), quantizer)

        result = run(op, ON_CPU, [coded(value) for value in args])
        return back(result) if isinstance(result, Tensor) else tuple(map(back, result))

    return moved


def asked_kernel(op: OpOverload) -> Callable[..., Any]:
    return lambda *args: run(op, ON_CPU, [numbers(value) for value in args])


def computed_kernel(op: OpOverload) -> Callable[..., Any]:
    def computed(*args: Any) -> Any:
        quantizer, element = first_quantizer(args)
        found = run(op, ON_CPU, [numbers(value) for value in args])
        if isinstance(found, Tensor):
            return quantised(found, quantizer, element)
        return (quantised(found[0], quantizer, element), *found[1:])  # the others are indices

    return computed


def bounded_kernel(op: OpOverload) -> Callable[..., Any]:
    low, high = BOUNDED[op._opname]

    def bounded(self: Tensor) -> Tensor:
        limits = np.iinfo(codes_of(self._dtype).numpy)
        zero_point = 0 if self._dtype is dtypes.qint32 else int(limits.min) + (2**7 if low else 0)
        scale = (high - low) / (float(limits.max) - float(limits.min) + 1)
        return quantised(run(op, ON_CPU, [numbers(self)]), Quantizer(scale, zero_point), self._dtype)

    return bounded


def in_place_kernel(op: OpOverload) -> Callable[..., Any]:
    def written(target: Tensor, *args: Any) -> Tensor:
        quantizer, into = quantizer_of(target), codes_in(target)
        if op._opname == "index_put_" and args[1].is_quantized:
            raise RuntimeError("Value argument for quantized input_put should not be quantized")
        found = run(op, ON_CPU, [numbers(target), *map(numbers, args)])
        into[...] = quantizer.codes(as_ndarray(found._operand), into.dtype)
        return target

    return written


def copied_kernel(op: OpOverload) -> Callable[..., Any]:
    def copied(target: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
        """Writes codes: those of another tensor, with its quantizer, or those nearest to float32 numbers."""
        if not target.is_quantized:
            raise RuntimeError(
                "Copying from quantized Tensor to non-quantized Tensor is not allowed, please use dequantize to get a "
                "float Tensor from a quantized Tensor"
            )
        if source.is_quantized:
            if source._dtype is not target._dtype:
                raise RuntimeError("Expected self.scalar_type() == src.scalar_type() to be true, but got false.")
            codes_in(target)[...] = codes_in(source)
            return with_quantizer(target, quantizer_of(source))
        if source._dtype is not dtypes.float32:
            raise RuntimeError(f"Quantized copy only works with kFloat as source Tensor, got {source._dtype}")
        into = codes_in(target)
        into[...] = quantizer_of(target).codes(as_ndarray(source._operand), into.dtype)
        return target

    return copied


def converted_kernel(op: OpOverload) -> Callable[..., Any]:
    def converted(self: Tensor, dtype: Any, layout: Any, device: Any, *how: Any) -> Tensor:
        """A copy. RuntimeError for another dtype: that is for `dequantize` to say."""
        if dtype is not None and dtype is not self._dtype:
            codes_of(dtype)
            raise RuntimeError("Expected self.scalar_type() == src.scalar_type() to be true, but got false.")
        if device is not None and device.type != "cpu":
            key = f"Quantized{device.type.title()}"
            raise NotImplementedError(f"Could not run 'aten::empty_quantized' with arguments from the '{key}' backend.")
        return run(CLONE, keyset(QUANTIZED), [self, None])

    return converted


def made_like_kernel(op: OpOverload) -> Callable[..., Any]:
    """A factory with a quantised tensor for a model: of its quantizer, and filled, if at all, by another operator."""
    filling = {"zeros_like": "zero_", "new_zeros": "zero_", "ones_like": "fill_.Scalar", "full_like": "fill_.Scalar"}
    filled = filling.get(op._opname)
    fill = operator_named(f"aten::{filled}") if filled else None

    def made(q: Tensor, *args: Any) -> Tensor:
        wanted = next((one for one in args if isinstance(one, dtype)), q._dtype)
        if wanted is not q._dtype:
            codes_of(wanted)
        fresh = with_quantizer(like(q, wanted), quantizer_of(q))
        value = {"ones_like": [1], "full_like": list(args[:1])}.get(op._opname, [])
        return fresh if fill is None else run(fill, keyset(QUANTIZED), [fresh, *value])

    return made


def equal_kernel(op: OpOverload) -> Callable[..., Any]:
    def equal(self: Tensor, other: Tensor) -> bool:
        alike = other.is_quantized and self._dtype is other._dtype
        return (
            alike and quantizer_of(self).is_like(quantizer_of(other)) and run(op, ON_CPU, [codes(self), codes(other)])
        )

    return equal


CLONE = operator_named("aten::clone")
at_quantized(VIEWS, view_kernel)
at_quantized("copy_", copied_kernel)
at_quantized("_to_copy", converted_kernel)
at_quantized("empty_like zeros_like new_zeros ones_like full_like", made_like_kernel)
at_quantized("equal", equal_kernel)
at_quantized(MOVED, moved_kernel)
at_quantized(ASKED, asked_kernel)
at_quantized(COMPUTED, computed_kernel)
at_quantized(" ".join(BOUNDED), bounded_kernel)
at_quantized(IN_PLACE, in_place_kernel)
