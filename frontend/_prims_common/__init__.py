"""`redispatch._prims_common`: what writers of decompositions and fakes ask about dtypes, dimensions and strides."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from enum import Enum
from typing import Any

import redispatch as rd
from redispatch.kernels import contiguous_strides, is_dense

ShapeType = StrideType = DimsSequenceType = DimsType = TensorSequenceType = Sequence
TensorLikeType = TensorLike = Tensor = rd.Tensor
Dim = int
Number = NumberType = bool | int | float | complex
IntLike, FloatLike, BoolLike = int, float, bool
DeviceLikeType = str | rd.device | int

KINDS = (bool, int, float, complex)


class ELEMENTWISE_TYPE_PROMOTION_KIND(Enum):
    """How the dtype of a result comes of those of the operands."""

    DEFAULT = (0,)
    NO_OPMATH = (1,)
    INT_TO_FLOAT = (2,)
    ALWAYS_BOOL = (3,)
    COMPLEX_TO_FLOAT = (4,)
    BOOL_TO_LONG = (5,)


class REDUCTION_OUTPUT_TYPE_KIND(Enum):
    """How the dtype of a reduction comes of that of its operand."""

    SAME = (0,)
    COMPLEX_TO_FLOAT = (1,)
    KEEP_PROMOTED_TYPE = (2,)
    ALWAYS_BOOL = (3,)


# dtypes ---------------------------------------------------------------------------------------------------------------


def is_boolean_dtype(dtype: rd.dtype) -> bool:
    return dtype is rd.bool


def is_integer_dtype(dtype: rd.dtype) -> bool:
    """Returns whether a dtype is of whole numbers; bool is not."""
    return not (dtype.is_floating_point or dtype.is_complex or dtype is rd.bool)


def is_float_dtype(dtype: rd.dtype) -> bool:
    return dtype.is_floating_point


def is_low_precision_dtype(dtype: rd.dtype) -> bool:
    return dtype in (rd.float16, rd.bfloat16, rd.complex32)


def is_complex_dtype(dtype: rd.dtype) -> bool:
    return dtype.is_complex


def corresponding_real_dtype(dtype: rd.dtype) -> rd.dtype:
    return dtype.to_real()


def corresponding_complex_dtype(dtype: rd.dtype) -> rd.dtype:
    return dtype.to_complex()


def dtype_to_type(dtype: rd.dtype) -> type:
    """Returns Python's type of a dtype's elements."""
    return KINDS[0 if dtype is rd.bool else 3 if dtype.is_complex else 2 if dtype.is_floating_point else 1]


def type_to_dtype(typ: type) -> rd.dtype:
    """Returns the dtype of Python's numbers of a type."""
    default = rd.get_default_dtype()
    return {bool: rd.bool, int: rd.int64, float: default, complex: default.to_complex()}[typ]


def number_type(x: Any) -> type:
    return type(x)


def get_higher_type(a: type, b: type) -> type:
    return KINDS[max(KINDS.index(a), KINDS.index(b))]


def get_higher_dtype(a: Any, b: Any) -> rd.dtype | None:
    """Returns the dtype to which both values, or dtypes, can be converted."""
    found = [one.dtype if isinstance(one, rd.Tensor) else type_to_dtype(one) if one in KINDS else one for one in (a, b)]
    found = [type_to_dtype(type(one)) if isinstance(one, KINDS) else one for one in found if one is not None]
    return rd.promote_types(found[0], found[-1]) if found else None


def get_computation_dtype(dtype: rd.dtype) -> rd.dtype:
    """Returns the dtype in which values of a short one are computed."""
    wide = {rd.bfloat16: rd.float32, rd.float16: rd.float32, rd.complex32: rd.complex64}
    return wide.get(dtype, dtype)


def elementwise_dtypes(
    *operands: Any, type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND
) -> tuple[rd.dtype, rd.dtype]:
    """Returns the dtype in which an elementwise function computes, and that of its result."""
    kinds = ELEMENTWISE_TYPE_PROMOTION_KIND
    tensors = [one for one in operands if isinstance(one, rd.Tensor)]
    groups = [  # a group counts only where its kind is higher than those of the groups before it
        [one.dtype for one in tensors if one.dim()],
        [one.dtype for one in tensors if not one.dim()],
        [type_to_dtype(type(one)) for one in operands if isinstance(one, KINDS)],
    ]
    common: Any = None
    for group in filter(None, groups):
        highest = functools.reduce(rd.promote_types, group)
        if common is None or KINDS.index(dtype_to_type(highest)) > KINDS.index(dtype_to_type(common)):
            common = (
                common.to_complex() if highest.is_complex and common is not None and is_float_dtype(common) else highest
            )
    if type_promotion_kind is kinds.INT_TO_FLOAT and dtype_to_type(common) in (bool, int):
        common = rd.get_default_dtype()
    if type_promotion_kind is kinds.BOOL_TO_LONG and common is rd.bool:
        return rd.int64, rd.int64
    computed = common if type_promotion_kind is kinds.NO_OPMATH else get_computation_dtype(common)
    if type_promotion_kind is kinds.ALWAYS_BOOL:
        return computed, rd.bool
    if type_promotion_kind is kinds.COMPLEX_TO_FLOAT and common.is_complex:
        return computed, common.to_real()
    return computed, common


# Dimensions, shapes and strides ---------------------------------------------------------------------------------------


def canonicalize_dim(rank: int, idx: int, wrap_scalar: bool = True) -> int:
    """Returns a dimension counted from the front. IndexError where there is none of that number."""
    if rank < 0:
        raise IndexError(f"Rank cannot be negative but got {rank}")
    if rank == 0 and not wrap_scalar:
        raise IndexError(f"Dimension specified as {idx} but tensor has no dimensions")
    rank = max(rank, 1)
    if not -rank <= idx < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {idx})")
    return idx % rank


def canonicalize_dims(rank: int, indices: Any, wrap_scalar: bool = True) -> Any:
    if isinstance(indices, int):
        return canonicalize_dim(rank, indices, wrap_scalar)
    return tuple(canonicalize_dim(rank, one, wrap_scalar) for one in indices)


def validate_no_repeating_dims(dims: Sequence[int]) -> None:
    if len(dims) != len(set(dims)):
        raise RuntimeError("duplicate value in the list of dims")


def validate_dim_length(length: int) -> None:
    rd._check(length >= 0)


def reduction_dims(shape: Sequence[int], dims: Sequence[int] | None) -> tuple[int, ...]:
    """Returns the dimensions of a reduction: all, where none are named."""
    if dims is None:
        return tuple(range(len(shape)))
    found = canonicalize_dims(len(shape), tuple(dims))
    validate_no_repeating_dims(found)
    return found


def set_correction(unbiased: bool | None = None, correction: Any = None) -> float:
    """Returns the correction of a variance that is asked for in either way."""
    if correction is not None and unbiased is not None:
        raise RuntimeError("cannot specify both correction and unbiased arguments")
    if correction is None:
        correction = 0.0 if unbiased is False else 1.0
    if not isinstance(correction, int | float):
        raise ValueError("correction argument should be integer or float")
    return float(correction)


def infer_size(shape: Sequence[int], numel: int) -> tuple[int, ...]:
    """Returns a shape without its -1."""
    return tuple(rd.empty(numel, device="meta").view(tuple(shape)).shape)


def is_same_shape(a: Sequence[int], b: Sequence[int]) -> bool:
    return tuple(a) == tuple(b)


def is_cpu_scalar_tensor(a: Any) -> bool:
    return isinstance(a, rd.Tensor) and a.dim() == 0 and a.device.type == "cpu"


def check_same_shape(*args: Any, allow_cpu_scalar_tensors: bool) -> None:
    """Raises RuntimeError unless all tensors have one shape; numbers have any."""
    shapes = [one.shape for one in compared(args, allow_cpu_scalar_tensors)]
    for shape in shapes:
        if shape != shapes[0]:
            raise RuntimeError(f"Shape {shape} is not the expected shape {shapes[0]}!")


def check_same_device(*args: Any, allow_cpu_scalar_tensors: bool) -> None:
    """Raises RuntimeError unless all tensors are on one device; numbers are on any."""
    devices = [one.device for one in compared(args, allow_cpu_scalar_tensors)]
    for device in devices:
        if device != devices[0]:
            raise RuntimeError(f"Tensor on device {device} is not on the expected device {devices[0]}!")


def compared(args: Sequence[Any], without_scalars: bool) -> list[rd.Tensor]:
    """Returns the tensors among arguments, which beside them may be numbers alone."""
    for one in args:
        if not isinstance(one, (rd.Tensor, *KINDS)):
            raise RuntimeError(f"Unexpected type when checking for same shape, {type(one)}!")
    return [one for one in args if isinstance(one, rd.Tensor) and not (without_scalars and is_cpu_scalar_tensor(one))]


def make_contiguous_strides_for(shape: Sequence[int], row_major: bool = True) -> tuple[int, ...]:
    """Returns the strides of dense memory; not `row_major`: with the last two dimensions the other way round."""
    if row_major or len(shape) < 2:
        return contiguous_strides(tuple(shape))
    *outer, step, _ = contiguous_strides((*shape[:-2], shape[-1], shape[-2]))
    return (*outer, 1, step)


def compute_elementwise_output_strides(*tensors: Any) -> tuple[int, ...]:
    """Returns the strides of the result of an elementwise function of these tensors."""
    if not tensors:
        raise ValueError("Can't compute elementwise output strides for zero tensors!")
    check_same_shape(*tensors, allow_cpu_scalar_tensors=True)
    metas = [rd.empty_strided(one.shape, one.stride(), device="meta") for one in compared(tensors, True)]
    return functools.reduce(rd.add, metas[1:], metas[0].sin()).stride() if metas else ()


def compute_required_storage_length(shape: Sequence[int], strides: Sequence[int], storage_offset: int) -> int:
    """Returns how many elements memory must have for a tensor to lie in it so."""
    if math.prod(shape) == 0:
        return 0
    return 1 + storage_offset + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))


def is_contiguous(a: rd.Tensor) -> bool:
    return a.numel() < 2 or is_contiguous_for_memory_format(a)


def is_contiguous_for_memory_format(a: rd.Tensor, *, memory_format: Any = rd.contiguous_format) -> bool:
    return rd.ops.aten.is_contiguous.memory_format(a, memory_format)


def is_non_overlapping_and_dense_or_false(a: rd.Tensor) -> bool:
    return is_dense(tuple(a.shape), a.stride())


def suggest_memory_format(x: rd.Tensor) -> Any:
    """Returns the format in which a tensor lies, as far as its strides tell."""
    for format in {4: [rd.channels_last], 5: [rd.channels_last_3d]}.get(x.dim(), []):
        if rd.ops.aten.is_strides_like_format(x, format):
            return format
    return rd.contiguous_format


# What is meant where nothing is said ----------------------------------------------------------------------------------


def device_or_default(device: Any) -> Any:
    return rd.device("cpu") if device is None else device


def dtype_or_default(dtype: rd.dtype | None) -> rd.dtype:
    return rd.get_default_dtype() if dtype is None else dtype


def layout_or_default(layout: Any) -> Any:
    return rd.strided if layout is None else layout
