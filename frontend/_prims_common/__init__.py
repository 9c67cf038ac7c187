"""What decompositions and references ask about shapes, strides and dtypes: PyTorch's `torch._prims_common`.

The answers are those of the dispatcher's own rules (dispatch/tensor/geometry.py and dtypes.py) under PyTorch's names.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import reduce
from itertools import pairwise
from math import prod
from typing import Any

from redispatch.dispatch.tensor import Tensor, dtypes, geometry
from redispatch.dispatch.tensor.devices import device as Device
from redispatch.dispatch.tensor.dtypes import dtype as Dtype
from redispatch.dispatch.tensor.dtypes import promote_types, result_type
from redispatch.dispatch.tensor.layouts import channels_last, channels_last_3d, contiguous_format, strided
from redispatch.kernels.settings import check_determinism as alert_not_deterministic
from redispatch.modes.fake_tensor import MetadataMismatchError

from .._checks import _check as check
from .._names import late

TensorLike = TensorLikeType = Tensor
Dim = int
Number, NumberType, RealNumberType = (bool, int, float, complex), bool | int | float | complex, bool | int | float
IntLike, FloatLike, BoolLike = int, float, bool
DeviceLikeType = str | Device | int
ShapeType = StrideType = Sequence[int]
DimsType, DimsSequenceType, TensorSequenceType = int | Sequence[int], Sequence[int], Sequence[Tensor]
TensorOrNumberLikeType = Tensor | NumberType

ELEMENTWISE_TYPE_PROMOTION_KIND = Enum(
    "ELEMENTWISE_TYPE_PROMOTION_KIND",
    "DEFAULT NO_OPMATH INT_TO_FLOAT ALWAYS_BOOL COMPLEX_TO_FLOAT BOOL_TO_LONG",
    start=0,
)
REDUCTION_OUTPUT_TYPE_KIND = Enum(
    "REDUCTION_OUTPUT_TYPE_KIND", "SAME COMPLEX_TO_FLOAT KEEP_PROMOTED_TYPE ALWAYS_BOOL", start=0
)
RETURN_TYPE = Enum("RETURN_TYPE", "NEW VIEW INPLACE NONE", start=0)

# Dtypes ---------------------------------------------------------------------------------------------------------------

REAL = {dtypes.complex32: dtypes.float16, dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}
COMPLEX = {real: complex_ for complex_, real in REAL.items()} | {dtypes.bfloat16: dtypes.complex64}
WIDE = {dtypes.float16: dtypes.float32, dtypes.bfloat16: dtypes.float32, dtypes.complex32: dtypes.complex64}
KINDS = (bool, int, float, complex)


def is_boolean_dtype(dtype: Dtype) -> bool:
    return dtype is dtypes.bool


def is_integer_dtype(dtype: Dtype) -> bool:
    return dtype.category == dtypes.INTEGER


def is_float_dtype(dtype: Dtype) -> bool:
    return dtype.is_floating_point


def is_complex_dtype(dtype: Dtype) -> bool:
    return dtype.is_complex


def is_grad_dtype(dtype: Dtype) -> bool:
    """Returns whether there are gradients of tensors of a dtype."""
    return dtype.is_floating_point or dtype.is_complex


def is_low_precision_dtype(dtype: Dtype) -> bool:
    return dtype in WIDE


def corresponding_real_dtype(dtype: Dtype) -> Dtype:
    return REAL[dtype]


def corresponding_complex_dtype(dtype: Dtype) -> Dtype:
    return COMPLEX[dtype]


def get_computation_dtype(dtype: Dtype) -> Dtype:
    """The dtype in which elements of a dtype are computed: a wider one for those of 16 bits."""
    return WIDE.get(dtype, dtype)


def dtype_to_type(dtype: Dtype) -> type:
    """Returns the class of Python's numbers of that kind."""
    return KINDS[dtype.category]


def type_to_dtype(typ: type) -> Dtype:
    """Returns the dtype that Python's numbers of a class have as tensors."""
    if typ not in KINDS:
        raise ValueError(f"Invalid type {typ}!")
    default = dtypes.get_default_dtype()
    return (dtypes.bool, dtypes.int64, default, COMPLEX[default])[KINDS.index(typ)]


def get_dtype(x: Any) -> Dtype:
    return x.dtype if isinstance(x, Tensor) else type_to_dtype(type(x))


def number_type(x: Any) -> type:
    return type(x)


def get_higher_type(a: type, b: type) -> type:
    """Returns the class of a sum of numbers of two classes."""
    return KINDS[max(KINDS.index(a), KINDS.index(b))]


def is_weakly_lesser_type(a: type, b: type) -> bool:
    return get_higher_type(a, b) is b


def get_higher_dtype(a: Any, b: Any) -> Dtype | None:
    """Returns the dtype of two dtypes, tensors or numbers together, whatever their shapes; None where both are None."""
    there = [one if isinstance(one, Dtype) else get_dtype(one) for one in (a, b) if one is not None]
    if len(there) == 2 and there[0].is_complex != there[1].is_complex:
        return there[there[1].is_complex]  # though the parts of the other be wider
    return reduce(promote_types, there) if there else None


def can_safe_cast_to(*, cast_to: Dtype, cast_from: Dtype) -> bool:
    """Returns whether the kind of one dtype holds that of the other."""
    return cast_to.category >= cast_from.category


def elementwise_dtypes(*_args: Any, type_promotion_kind: Any) -> tuple[Dtype, Dtype]:
    """The dtypes in which an elementwise function of these arguments computes, and of its result."""
    kind = ELEMENTWISE_TYPE_PROMOTION_KIND
    for one in _args:
        if not isinstance(one, (Tensor, *Number)):
            raise ValueError(f"Unexpected type {type(one)} when computing elementwise type promotion!")
    result = result_type(*_args)
    computation = get_computation_dtype(result)
    if type_promotion_kind is kind.NO_OPMATH:
        return result, result
    if type_promotion_kind is kind.INT_TO_FLOAT and not is_grad_dtype(result):
        result = dtypes.get_default_dtype()
        return get_computation_dtype(result), result
    if type_promotion_kind is kind.COMPLEX_TO_FLOAT and result.is_complex:
        return computation, REAL[result]
    if type_promotion_kind is kind.BOOL_TO_LONG and result is dtypes.bool:
        return dtypes.int64, dtypes.int64
    if type_promotion_kind is kind.ALWAYS_BOOL:
        return computation, dtypes.bool
    if type_promotion_kind not in kind:
        raise ValueError(f"Unknown type promotion kind {type_promotion_kind}")
    return computation, result


def reduction_dtypes(arg: Tensor, output_dtype_kind: Any, dtype: Dtype | None = None) -> tuple[Dtype, Dtype | None]:
    """The dtypes in which a reduction computes, and of its result: None where that is the former."""
    kind, given = REDUCTION_OUTPUT_TYPE_KIND, dtype or arg.dtype
    computation = get_computation_dtype(given)
    if output_dtype_kind is kind.KEEP_PROMOTED_TYPE:
        return computation, None
    if output_dtype_kind is kind.ALWAYS_BOOL:
        return computation, dtypes.bool
    return computation, REAL[given] if output_dtype_kind is kind.COMPLEX_TO_FLOAT and given.is_complex else given


def dtype_or_default(dtype: Dtype | None) -> Dtype:
    return dtypes.get_default_dtype() if dtype is None else dtype


def device_or_default(device: Any) -> Any:
    return Device("cpu") if device is None else device


def layout_or_default(layout: Any) -> Any:
    return strided if layout is None else layout


# Shapes ---------------------------------------------------------------------------------------------------------------


def is_same_shape(a: Sequence[int], b: Sequence[int]) -> bool:
    return tuple(a) == tuple(b)


same_shape = is_same_shape


def validate_shape(shape: Sequence[int]) -> None:
    """AssertionError for what is no shape."""
    for length in shape:
        if not isinstance(length, int) or length < 0:
            raise AssertionError(f"Expected dim length to be a non-negative integer, but got {length}")


def validate_dim_length(length: int) -> None:
    check(length >= 0)


def validate_idx(rank: int, idx: int) -> None:
    """AssertionError for what is no dimension, counted from the first."""
    if not isinstance(idx, int) or not (0 <= idx < rank or idx == 0):
        raise AssertionError(f"idx {idx} is out of bounds for a tensor of {rank} dimensions")


def canonicalize_dim(rank: int, idx: int, wrap_scalar: bool = True) -> int:
    """Returns a dimension counted from the first. IndexError where there is none of that number."""
    if rank < 0:
        raise IndexError(f"Rank cannot be negative but got {rank}")
    if rank == 0:
        if not wrap_scalar:
            raise IndexError(f"Dimension specified as {idx} but tensor has no dimensions")
        rank = 1
    if not -rank <= idx < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {idx})")
    return idx % rank


def canonicalize_dims(rank: int, indices: Any, wrap_scalar: bool = True) -> Any:
    """Returns one or several dimensions counted from the first."""
    if isinstance(indices, int):
        return canonicalize_dim(rank, indices, wrap_scalar)
    return tuple(canonicalize_dim(rank, one, wrap_scalar) for one in indices)


def is_valid_permutation(rank: int, perm: Sequence[int]) -> bool:
    return sorted(perm) == list(range(rank))


def apply_perm(inp: Sequence[Any], perm: Sequence[int]) -> list[Any]:
    return [inp[at] for at in perm]


def invert_perm(perm: Sequence[int]) -> list[int]:
    return sorted(range(len(perm)), key=perm.__getitem__)


def validate_no_repeating_dims(dims: Sequence[int]) -> None:
    """RuntimeError where a dimension stands twice."""
    if len(set(dims)) != len(dims):
        raise RuntimeError("duplicate value in the list of dims")


def reduction_dims(shape: Sequence[int], dims: Sequence[int] | None) -> tuple[int, ...]:
    """Returns the dimensions that a reduction goes over, counted from the first; None stands for all."""
    if dims is None:
        return tuple(range(len(shape)))
    found = tuple(canonicalize_dim(len(shape), one) for one in dims)
    validate_no_repeating_dims(found)
    return found


def compute_reduction_output_shape(shape: Sequence[int], dimensions: Sequence[int]) -> tuple[int, ...]:
    return tuple(length for at, length in enumerate(shape) if at not in dimensions)


def extract_dims_from_varargs(dims: Any) -> Sequence[int]:
    """Returns the dimensions of `f(1, 2)` and of `f((1, 2))`."""
    return dims[0] if dims and isinstance(dims[0], Sequence) else dims


def extract_shape_from_varargs(shape: Any, validate: bool = True) -> tuple[int, ...]:
    """Returns the shape of `f(1, 2)` and of `f((1, 2))`."""
    found = tuple(shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape)
    if validate:
        validate_shape(found)
    return found


def infer_size(shape: Sequence[int], numel: int) -> tuple[int, ...]:
    """Returns a shape with its -1 replaced. RuntimeError where so many elements do not have it."""
    known = prod(length for length in shape if length != -1)
    if list(shape).count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if -1 not in shape:
        if known != numel:
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
        return tuple(shape)
    if known == 0 and numel == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
        )
    if known == 0 or numel % known:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    return tuple(numel // known if length == -1 else length for length in shape)


def infer_size_shapes(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """Returns the shape to which two are broadcast."""
    return tuple(geometry.broadcast_shapes(tuple(a), tuple(b)))


def is_expandable_to(shape: Sequence[int], desired: Sequence[int]) -> bool:
    """Returns whether a tensor of one shape can be expanded to the other."""
    pairs = zip(reversed(shape), reversed(desired), strict=False)
    return len(shape) <= len(desired) and all(own in (1, wanted) for own, wanted in pairs)


# Strides --------------------------------------------------------------------------------------------------------------


def make_contiguous_strides_for(shape: Sequence[int], row_major: bool = True) -> tuple[int, ...]:
    """Returns the strides of a contiguous tensor; those of transposed matrices with `row_major=False`."""
    validate_shape(shape)
    if not shape:
        return ()
    strides = geometry.contiguous_strides(tuple(shape))
    return strides if row_major or len(shape) < 2 else (*strides[:-2], 1, max(shape[-2], 1))


def make_channels_last_strides_for(shape: Sequence[int]) -> tuple[int, ...]:
    """Returns the strides of images, or volumes, whose channels lie side by side."""
    if len(shape) not in (3, 4, 5):
        raise RuntimeError(f"no channels last format strides exist in {len(shape)} dimensions")
    steps, step = [0] * len(shape), 1
    for at in (1, *range(len(shape) - 1, 1, -1), 0):
        steps[at] = step
        step *= shape[at]
    return tuple(steps)


def is_contiguous(a: Tensor, false_if_dde: bool = False) -> bool:
    return geometry.is_contiguous(tuple(a.shape), tuple(a.stride()))


def is_channels_last_contiguous(a: Tensor) -> bool:
    return a.is_contiguous(memory_format=channels_last) if a.dim() == 4 else is_channels_last_contiguous_3d(a)


def is_channels_last_contiguous_2d(a: Tensor, false_if_dde: bool = False) -> bool:
    return a.dim() == 4 and a.is_contiguous(memory_format=channels_last)


def is_channels_last_contiguous_3d(a: Tensor, false_if_dde: bool = False) -> bool:
    return a.dim() == 5 and a.is_contiguous(memory_format=channels_last_3d)


def is_contiguous_for_memory_format(a: Tensor, *, memory_format: Any, false_if_dde: bool = False) -> bool:
    return a.is_contiguous(memory_format=memory_format)


def is_non_overlapping_and_dense_or_false(a: Tensor) -> bool:
    return geometry.is_dense(tuple(a.shape), tuple(a.stride()))


is_contiguous_or_false = is_contiguous
is_non_overlapping_and_dense = is_non_overlapping_and_dense_or_false


def suggest_memory_format(x: Tensor) -> Any:
    """Returns the format in which results of a function of `x` should lie."""
    strides = tuple(x.stride())
    for dims, format in ((4, channels_last), (5, channels_last_3d)):
        if x.dim() == dims and _like_channels_last(tuple(x.shape), strides):
            return format
    return contiguous_format


def _like_channels_last(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether channels lie side by side, then the dimensions from the last to the first; gaps may lie between."""
    if strides[1] == 0:
        return False
    least = 0
    for at in (1, *range(len(shape) - 1, 1, -1), 0):
        if shape[at] == 0 or strides[at] < least or (at == 0 and least == strides[1]):
            return False
        least = strides[at] * max(shape[at], 1)
    return True


def _with_elements(tensors: Sequence[Any], checked: bool = True) -> list[Tensor]:
    if not tensors:
        raise ValueError("Can't compute elementwise output strides for zero tensors!")
    if checked:
        check_same_shape(*tensors, allow_cpu_scalar_tensors=True)
    return [one for one in tensors if isinstance(one, Tensor) and not is_cpu_scalar_tensor(one)]


def compute_elementwise_output_logical_to_physical_perm(
    *tensors: Any, _skip_checks: bool = False, ambiguity_check: bool = False
) -> tuple[list[int], bool]:
    """Returns the dimensions from the outermost to the innermost in which an elementwise result lies.

    And, if asked, whether strides leave open which of two dimensions comes first.
    """
    given = _with_elements(tensors, not _skip_checks)
    if not given or given[0].dim() == 0:
        return [], False
    shape, all_strides = tuple(given[0].shape), [tuple(one.stride()) for one in given]
    plain, images = (all(map(how, given)) for how in (is_contiguous, is_channels_last_contiguous_2d))
    if plain != images:
        return list(range(len(shape))) if plain else [0, 2, 3, 1], False
    order = geometry.loop_order(shape, all_strides)
    compared = (geometry.compare(shape, all_strides, a, b) for a, b in pairwise(order))
    return order[::-1], ambiguity_check and any(verdict != -1 for verdict in compared)


def compute_elementwise_output_strides(*tensors: Any) -> tuple[int, ...]:
    """Returns the strides of what an elementwise function makes of tensors of one shape."""
    given = _with_elements(tensors)
    if not given:
        return ()
    if len(given) == 1 and given[0].dim() > 1 and is_non_overlapping_and_dense(given[0]):
        return tuple(given[0].stride())
    order, _ = compute_elementwise_output_logical_to_physical_perm(*given, _skip_checks=True)
    return tuple(apply_perm(make_contiguous_strides_for(apply_perm(given[0].shape, order)), invert_perm(order)))


def compute_required_storage_length(shape: Sequence[int], strides: Sequence[int], storage_offset: int) -> int:
    """Returns how many elements a storage has that holds such a tensor."""
    if 0 in shape:
        return 0
    return 1 + geometry.last_element(tuple(shape), tuple(strides), storage_offset)


def clone_preserve_strides(x: Tensor) -> Tensor:
    """Returns a copy of a tensor with the elements between its own, too."""
    needed = compute_required_storage_length(x.shape, x.stride(), 0)
    memory = x.as_strided((needed,), (1,), x.storage_offset()).clone()
    return memory.as_strided(x.size(), x.stride())


# Checks ---------------------------------------------------------------------------------------------------------------


def is_cpu_scalar_tensor(a: Any) -> bool:
    return isinstance(a, Tensor) and a.dim() == 0 and a.device.type == "cpu"


def _tensors(args: Sequence[Any], allow_cpu_scalar_tensors: bool, what: str) -> list[Tensor]:
    for one in args:
        if not isinstance(one, (Tensor, *Number)):
            raise RuntimeError(f"Unexpected type when checking for same {what}, {type(one)}!")
    return [
        one for one in args if isinstance(one, Tensor) and not (allow_cpu_scalar_tensors and is_cpu_scalar_tensor(one))
    ]


def check_same_device(*args: Any, allow_cpu_scalar_tensors: bool) -> None:
    """RuntimeError where tensors are on several devices."""
    found = _tensors(args, allow_cpu_scalar_tensors, "device") if len(args) > 1 else []
    for one in found:
        if one.device != found[0].device:
            raise RuntimeError(f"Tensor on device {one.device} is not on the expected device {found[0].device}!")


def check_same_shape(*args: Any, allow_cpu_scalar_tensors: bool) -> None:
    """RuntimeError where tensors have several shapes."""
    found = _tensors(args, allow_cpu_scalar_tensors, "shape") if len(args) > 1 else []
    for one in found:
        if one.shape != found[0].shape:
            raise RuntimeError(f"Shape {one.shape} is not the expected shape {found[0].shape}!")


def check_same_dtype(*args: Any) -> None:
    """RuntimeError where tensors have several dtypes; numbers are of any kind."""
    found = _tensors(args, False, "dtype") if len(args) > 1 else []
    for one in found:
        if one.dtype is not found[0].dtype:
            raise RuntimeError(f"Tensor with dtype {one.dtype} is not the expected dtype of {found[0].dtype}!")


def extract_shape(*args: Any, allow_cpu_scalar_tensors: bool) -> Any:
    """Returns the one shape of tensors; None where they have several."""
    if not all(isinstance(one, (Tensor, *Number)) for one in args):
        return None
    shapes = [one.shape for one in _tensors(args, allow_cpu_scalar_tensors, "shape")]
    if not shapes:
        return next((one.shape for one in args if is_cpu_scalar_tensor(one)), None)
    return shapes[0] if all(shape == shapes[0] for shape in shapes) else None


def set_correction(unbiased: bool | None = None, correction: float | None = None) -> float:
    """Returns what is taken off the number of elements in a variance."""
    if correction is not None and unbiased is not None:
        raise RuntimeError("cannot specify both correction and unbiased arguments")
    if correction is None:
        correction = 1.0 if unbiased in (None, True) else 0.0
    if not isinstance(correction, (int, float)):
        raise ValueError("correction argument should be integer or float")
    return float(correction)


def compare_tensor_meta(
    a: Tensor,
    b: Tensor,
    check_sizes: bool = True,
    check_strides: bool = False,
    *,
    allow_rhs_unbacked: bool = False,
    check_conj: bool = True,
) -> None:
    """MetadataMismatchError where two tensors look different."""
    for one, name in ((a, "a"), (b, "b")):
        if not isinstance(one, Tensor):
            raise AssertionError(f"{name} must be TensorLike, got {type(one)}")
    strides = check_significant_strides(a, b, only_cuda=False) if check_strides and a.shape == b.shape else (True, None)
    asked = [
        (not check_sizes or a.shape == b.shape, f"Shapes {a.shape} and {b.shape} are not equal!"),
        (a.dtype is b.dtype, f"Dtypes {a.dtype} and {b.dtype} are not equal!"),
        (
            a.device == b.device or {str(a.device), str(b.device)} == {"cuda", "cuda:0"},
            f"Devices {a.device} and {b.device} are not equal!",
        ),
        (
            strides[0],
            f"Stride mismatch! Strides are {a.stride()} and {b.stride()} (mismatched at {strides[1]})!",
        ),
        (
            not check_strides or a.storage_offset() == b.storage_offset(),
            f"Storage offset mismatch! Storage offsets are {a.storage_offset()} and {b.storage_offset()}!",
        ),
        (
            not check_conj or a.is_conj() == b.is_conj(),
            f"Conj mismatch! is_conj is set to {a.is_conj()} and {b.is_conj()}",
        ),
        (a.is_neg() == b.is_neg(), f"Neg mismatch! is_neg is set to {a.is_neg()} and {b.is_neg()}"),
    ]
    for holds, text in asked:
        if not holds:
            raise MetadataMismatchError(text)


def check_significant_strides(
    a: Tensor, b: Tensor, *, only_cuda: bool = True, allow_rhs_unbacked: bool = False
) -> tuple[bool, int | None]:
    """Returns whether two tensors have the same strides in dimensions longer than 1, and else where they do not."""
    if a.numel() and (not only_cuda or "cuda" in (a.device.type, b.device.type)):
        for at, (own, other) in enumerate(zip(a.stride(), b.stride(), strict=True)):
            if own != other and a.shape[at] > 1:
                return False, at
    return True, None


def check_fp_or_complex(dtype: Dtype, fn_name: str, allow_low_precision_dtypes: bool = True) -> None:
    """RuntimeError for other dtypes."""
    check(is_grad_dtype(dtype), lambda: f"{fn_name}: Expected a floating point or complex tensor as input. Got {dtype}")
    check(
        allow_low_precision_dtypes or dtype not in WIDE,
        lambda: f"{fn_name}: Half precision dtypes not supported. Got {dtype}",
    )


def check_is_matrix(A: Tensor, f_name: str, arg_name: str = "A") -> None:
    """RuntimeError for a tensor of less than two dimensions."""
    check(
        A.dim() >= 2,
        lambda: f"{f_name}: The input tensor {arg_name} must have at least 2 dimensions.",
    )


def mask_tensor(mask: Tensor, t: Tensor) -> Tensor:
    """Returns a tensor with zeros where the mask is False."""
    return t.logical_and(mask) if t.dtype is dtypes.bool else t.where(mask, t.new_zeros(()))


__all__ = [
    name for name in dir() if not name.startswith("_") and name not in ("annotations", "late", "pairwise", "reduce")
]
_PLACES, __getattr__, __dir__ = late(globals(), {".": "wrappers"})
