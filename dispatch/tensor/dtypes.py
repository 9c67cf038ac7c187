"""Element types: what one element is, how numpy and the kernels see it, and what two of them promote to.

16-bit floats are stored as 16 bits and computed in float32. numpy knows float16, and bfloat16 through ml_dtypes;
kernels see both as uint16 and convert in registers. So a dtype has two faces: `numpy`, for users, and `array`, the
dtype of the flat arrays that a storage gives to kernels.

Source of the promotion rules: PyTorch's "Type promotion" documentation; `result_type` is in promotion.py.
"""

from __future__ import annotations

import builtins
import threading
import weakref
from functools import cached_property
from typing import Any

import numpy as np

BOOL, INTEGER, FLOATING, COMPLEX = range(4)  # the categories; promotion never goes down


class dtype:
    """One element type. There is one object for each, `redispatch.float32` and so on; compare them by `is` or `==`."""

    __module__ = "redispatch"  # where users find it

    def __init__(
        self,
        name: str,
        category: builtins.int,
        itemsize: builtins.int,
        *,
        signed: builtins.bool = True,
        tensor_name: str = "",
    ) -> None:
        self.name = name
        self.category = category
        self.itemsize = itemsize
        self.is_floating_point = category == FLOATING
        self.is_complex = category == COMPLEX
        self.is_signed = signed and category != BOOL
        self.tensor_name = tensor_name  # "Float", as error messages call it
        self.array = np.dtype("uint16" if name in ("float16", "bfloat16") else name)

    @cached_property
    def numpy(self) -> np.dtype:
        """The numpy dtype. Imports ml_dtypes for bfloat16, when it is first asked for."""
        if self.name == "bfloat16":
            import ml_dtypes  # lazily: few programs need it

            return np.dtype(ml_dtypes.bfloat16)
        return np.dtype(self.name)

    def to_real(self) -> dtype:
        """The dtype of the real part."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    def to_complex(self) -> dtype:
        """The complex dtype whose parts hold this one's values."""
        if self.is_complex:
            return self
        return complex128 if self.name == "float64" else complex64

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return dtype_named, (self.name,)


uint8 = dtype("uint8", INTEGER, 1, signed=False, tensor_name="Byte")
int8 = dtype("int8", INTEGER, 1, tensor_name="Char")
int16 = short = dtype("int16", INTEGER, 2, tensor_name="Short")
int32 = int = dtype("int32", INTEGER, 4, tensor_name="Int")
int64 = long = dtype("int64", INTEGER, 8, tensor_name="Long")
float16 = half = dtype("float16", FLOATING, 2, tensor_name="Half")
float32 = float = dtype("float32", FLOATING, 4, tensor_name="Float")
float64 = double = dtype("float64", FLOATING, 8, tensor_name="Double")
complex64 = cfloat = dtype("complex64", COMPLEX, 8, tensor_name="ComplexFloat")
complex128 = cdouble = dtype("complex128", COMPLEX, 16, tensor_name="ComplexDouble")
bool = dtype("bool", BOOL, 1, tensor_name="Bool")
bfloat16 = dtype("bfloat16", FLOATING, 2, tensor_name="BFloat16")

# In the order of PyTorch's numbers for them, by which a schema writes a default.
NUMBERED = (uint8, int8, int16, int32, int64, float16, float32, float64, None, complex64, complex128, bool)
DTYPES = {
    t.name: t
    for t in (uint8, int8, int16, int32, int64, float16, float32, float64, complex64, complex128, bool, bfloat16)
}
_BY_NUMPY: dict[np.dtype, dtype] = {np.dtype(name): t for name, t in DTYPES.items() if name != "bfloat16"}


def dtype_named(name: str) -> dtype:
    return DTYPES[name]


def from_numpy_dtype(numpy_dtype: np.dtype) -> dtype:
    """The dtype of a numpy array's elements. TypeError for one that has no counterpart."""
    found = _BY_NUMPY.get(numpy_dtype)
    if found is not None:
        return found
    if numpy_dtype.name == "bfloat16":
        return bfloat16
    raise TypeError(
        f"can't convert np.ndarray of type {numpy_dtype}. The only supported types are: {', '.join(DTYPES)}."
    )


def promote_types(a: dtype, b: dtype) -> dtype:
    """The smallest dtype that both go into: the higher category; within it, the wider one.

    Two pairs have no wider member of their own: uint8 with a signed type needs one more bit, and float16 with
    bfloat16 needs float32.

    >>> import redispatch as rd
    >>> rd.promote_types(rd.int32, rd.float16)
    torch.float16
    """
    if a is b:
        return a
    if a.category != b.category:
        low, high = (a, b) if a.category < b.category else (b, a)
        return complex128 if high.is_complex and low is float64 else high
    if a.category == INTEGER and a.is_signed != b.is_signed:
        signed = a if a.is_signed else b
        return int16 if signed is int8 else signed
    if a.itemsize == b.itemsize:
        return float32
    return a if a.itemsize > b.itemsize else b


_default = float32
_PLANNERS: weakref.WeakSet[Any] = weakref.WeakSet()
_CHANGING = threading.Lock()


def get_default_dtype() -> dtype:
    """The dtype of a tensor made of Python floats."""
    return _default


def set_default_dtype(d: dtype) -> None:
    """Sets the dtype of tensors made of Python floats. TypeError for one that is not floating."""
    global _default
    if not isinstance(d, dtype) or not d.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, not {d}")
    with _CHANGING:
        _default = d
        for planner in _PLANNERS:
            planner.plans.clear()


def depends_on_default(planner: Any) -> None:
    """Has `planner.plans`, a Memo, emptied whenever the default dtype changes: it counts in what is decided there."""
    with _CHANGING:
        _PLANNERS.add(planner)


def remember(planner: Any, key: Any, plan: Any, default: dtype) -> None:
    """Enters in `planner.plans` what was decided while `default` was the default dtype, if it still is."""
    with _CHANGING:
        if _default is default:
            planner.plans[key] = plan
