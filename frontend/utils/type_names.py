"""`redispatch.types`: names for annotations, as PyTorch has them, and numbers that may be symbols.

    from redispatch.types import Device, Number

The functions take numbers of Python and symbolic ones (dispatch/symbolic.py) alike, and ask the latter nothing.

The file has another name than the module, since `types.py` in the root would hide Python's own module of that name from
programs that are started there.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import IO, Any, TypeAlias, TypeVar, Union

from redispatch.dispatch import DispatchKey
from redispatch.dispatch.symbolic import Symbolic, SymBool, SymFloat, SymInt, apply
from redispatch.dispatch.tensor import Size, Tensor, UntypedStorage, dtype, layout
from redispatch.dispatch.tensor import device as _device
from redispatch.dispatch.tensor.layouts import qscheme
from redispatch.kernels.declare.overridable import overridable_function


@overridable_function
def sym_int(a: Any) -> Any:
    """The whole number nearest to `a` in the direction of 0."""
    return apply("trunc", a) if isinstance(a, SymFloat) else a if isinstance(a, SymInt) else int(a)


@overridable_function
def sym_float(a: Any) -> Any:
    return apply("float", a) if isinstance(a, SymInt) else a if isinstance(a, SymFloat) else float(a)


@overridable_function
def sym_not(a: Any) -> Any:
    return apply("not", a) if isinstance(a, SymBool) else not a


@overridable_function
def sym_max(a: Any, b: Any) -> Any:
    """The larger one, as a float where either is one. TypeError for what is no number."""
    return _extreme("max", max, a, b)


@overridable_function
def sym_min(a: Any, b: Any) -> Any:
    """The smaller one, as a float where either is one."""
    return _extreme("min", min, a, b)


def _extreme(kind: str, of_numbers: Any, a: Any, b: Any) -> Any:
    if isinstance(a, Symbolic) or isinstance(b, Symbolic):
        return apply(kind, a, b)
    return float(of_numbers(a, b)) if isinstance(a, float) or isinstance(b, float) else of_numbers(a, b)


def _of_math(name: str) -> Any:
    """Makes a function of `math` take numbers that may be symbols. ValueError where it has no value."""

    def of_math(a: Any) -> Any:
        return apply(name, a) if isinstance(a, Symbolic) else float(getattr(math, name)(a))

    of_math.__name__ = of_math.__qualname__ = f"_sym_{name}"
    return overridable_function(of_math)


_sym_sqrt = sym_sqrt = _of_math("sqrt")
_sym_cos, _sym_cosh, _sym_sin, _sym_sinh = (_of_math(name) for name in "cos cosh sin sinh".split())
_sym_tan, _sym_tanh, _sym_asin, _sym_acos = (_of_math(name) for name in "tan tanh asin acos".split())
_sym_atan, _sym_log2 = _of_math("atan"), _of_math("log2")


@overridable_function
def sym_sum(*args: Any) -> Any:
    """The sum of the numbers, or of one sequence of them."""
    return sum(args[0] if len(args) == 1 and isinstance(args[0], list | tuple) else args)


@overridable_function
def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """`t` if `b`, else `f`. AssertionError for a `b` that is no bool, or two of different types."""
    if not isinstance(b, bool | SymBool):
        raise AssertionError(f"expected SymBool or bool, got {type(b)}")
    if type(t) is not type(f):
        raise AssertionError(f"type mismatch: {type(t)} vs {type(f)}")
    if isinstance(b, SymBool) and not isinstance(t, bool | SymBool):
        return apply("ite", b, t, f)
    return t if b else f


__all__ = ["Device", "FileLike", "Number", "Storage"]

T = TypeVar("T")

Number: TypeAlias = int | float | bool
Device: TypeAlias = _device | str | int | None
FileLike: TypeAlias = Union[str, os.PathLike[str], IO[bytes]]  # noqa: UP007  # `|` makes no union with a generic class
Storage: TypeAlias = UntypedStorage

# Of a layer for images: one number, or one for each dimension
_scalar_or_tuple_any_t: TypeAlias = T | tuple[T, ...]
_scalar_or_tuple_1_t: TypeAlias = T | tuple[T]
_scalar_or_tuple_2_t: TypeAlias = T | tuple[T, T]
_scalar_or_tuple_3_t: TypeAlias = T | tuple[T, T, T]
_scalar_or_tuple_4_t: TypeAlias = T | tuple[T, T, T, T]
_scalar_or_tuple_5_t: TypeAlias = T | tuple[T, T, T, T, T]
_scalar_or_tuple_6_t: TypeAlias = T | tuple[T, T, T, T, T, T]
_size_any_t: TypeAlias = _scalar_or_tuple_any_t[int]
_size_1_t: TypeAlias = _scalar_or_tuple_1_t[int]
_size_2_t: TypeAlias = _scalar_or_tuple_2_t[int]
_size_3_t: TypeAlias = _scalar_or_tuple_3_t[int]
_size_4_t: TypeAlias = _scalar_or_tuple_4_t[int]
_size_5_t: TypeAlias = _scalar_or_tuple_5_t[int]
_size_6_t: TypeAlias = _scalar_or_tuple_6_t[int]
_size_any_opt_t: TypeAlias = _scalar_or_tuple_any_t[int | None]
_size_2_opt_t: TypeAlias = _scalar_or_tuple_2_t[int | None]
_size_3_opt_t: TypeAlias = _scalar_or_tuple_3_t[int | None]
_ratio_2_t: TypeAlias = _scalar_or_tuple_2_t[float]
_ratio_3_t: TypeAlias = _scalar_or_tuple_3_t[float]
_ratio_any_t: TypeAlias = _scalar_or_tuple_any_t[float]
_tensor_list_t: TypeAlias = _scalar_or_tuple_any_t[Tensor]
_maybe_indices_t: TypeAlias = _scalar_or_tuple_2_t[Tensor]

_Number = (int, float, bool)  # for isinstance
_dtype, _layout, _qscheme = dtype, layout, qscheme
_int, _float, _bool, _complex, _str, _bytes = int, float, bool, complex, str, bytes  # where a class has such names
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None]
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_symsize: TypeAlias = Size | Sequence[int | SymInt]
_dispatchkey: TypeAlias = str | DispatchKey
IntLikeType: TypeAlias = int | SymInt
FloatLikeType: TypeAlias = float | SymFloat
BoolLikeType: TypeAlias = bool | SymBool
PySymType: TypeAlias = SymInt | SymFloat | SymBool
py_sym_types = (SymInt, SymFloat, SymBool)
