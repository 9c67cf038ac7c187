"""Element types: what one element is, how numpy and the kernels see it, and what two of them promote to.

16-bit floats are stored as 16 bits and computed in float32. numpy knows float16, and bfloat16 through ml_dtypes;
kernels see both as uint16 and convert in registers. So a dtype has two faces: `numpy`, for users, and `array`, the
dtype of the flat arrays that a storage gives to kernels.

Source of the promotion rules: PyTorch's "Type promotion" documentation.
"""

from __future__ import annotations

import builtins
import threading
import weakref
from functools import cached_property
from typing import Any

import numpy as np

from redispatch.dispatch import TensorBase, keyset
from redispatch.dispatch.layers.rare_dtypes import RARE_DTYPE
from redispatch.dispatch.symbolic import SymFloat, SymInt

IN_NUMPY = frozenset(
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()
)
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
        self.bits = 0  # in the keysets of its tensors on the CPU, beside what the device brings

    @cached_property
    def array(self) -> np.dtype:
        """The numpy dtype of the memory that kernels see."""
        return np.dtype(self.name if self.name in IN_NUMPY and self.name != "float16" else f"uint{8 * self.itemsize}")

    @cached_property
    def numpy(self) -> np.dtype:
        """The numpy dtype. Imports ml_dtypes for those that numpy has not, when it is first asked for.

        Errors: TypeError for complex32, which neither has.
        """
        if self.name in IN_NUMPY:
            return np.dtype(self.name)
        if self.is_complex:
            raise TypeError(f"Got unsupported ScalarType {self.tensor_name}")
        if isinstance(self, Bare) or self is float4_e2m1fn_x2:
            raise NotImplementedError(f"\"_local_scalar_dense_cpu\" not implemented for '{self.tensor_name}'")
        import ml_dtypes  # lazily: few programs need it

        return np.dtype(getattr(ml_dtypes, self.name))

    def to_real(self) -> dtype:
        """The dtype of the real part."""
        return {"complex32": float16, "complex64": float32, "complex128": float64}.get(self.name, self)

    def to_complex(self) -> dtype:
        """The complex dtype whose parts hold this one's values."""
        if self.is_complex:
            return self
        if self.name not in DTYPES:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.tensor_name}")
        return {"float64": complex128, "float16": complex32}.get(self.name, complex64)

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

# Those that are stored and converted, and that few operators know; there are no classes of tensors named after them.
complex32 = chalf = dtype("complex32", COMPLEX, 4, tensor_name="ComplexHalf")
uint16 = dtype("uint16", INTEGER, 2, signed=False, tensor_name="UInt16")
uint32 = dtype("uint32", INTEGER, 4, signed=False, tensor_name="UInt32")
uint64 = dtype("uint64", INTEGER, 8, signed=False, tensor_name="UInt64")
float8_e5m2 = dtype("float8_e5m2", FLOATING, 1, tensor_name="Float8_e5m2")
float8_e4m3fn = dtype("float8_e4m3fn", FLOATING, 1, tensor_name="Float8_e4m3fn")
float8_e5m2fnuz = dtype("float8_e5m2fnuz", FLOATING, 1, tensor_name="Float8_e5m2fnuz")
float8_e4m3fnuz = dtype("float8_e4m3fnuz", FLOATING, 1, tensor_name="Float8_e4m3fnuz")
float8_e8m0fnu = dtype("float8_e8m0fnu", FLOATING, 1, signed=False, tensor_name="Float8_e8m0fnu")
FLOAT8 = (float8_e5m2, float8_e4m3fn, float8_e5m2fnuz, float8_e4m3fnuz, float8_e8m0fnu)
RARE = {t.name: t for t in (complex32, uint16, uint32, uint64, *FLOAT8)}


class Bare(dtype):
    """An element type that is held, viewed and passed on; no kernel computes in it."""

    def __init__(self, name: str, itemsize: builtins.int = 1) -> None:
        letters = 1 + name.startswith(("qu", "qi", "ui"))
        label = name[:letters].upper() + name[letters:]
        self.quantised, self.undefined = name.startswith("q"), name.startswith("bits")
        super().__init__(
            name, INTEGER, itemsize, signed=name.startswith(("int", "qint")), tensor_name=label.replace("Ui", "UI")
        )

    def __getattribute__(self, name: str) -> Any:
        if name == "is_signed" and self.name[0] in "bq":
            raise RuntimeError(
                "Bits types are undefined" if self.undefined else "isSignedType not supported for quantized types"
            )
        return super().__getattribute__(name)


qint8, quint8, quint4x2, quint2x4 = map(Bare, "qint8 quint8 quint4x2 quint2x4".split())
qint32, bits16 = Bare("qint32", 4), Bare("bits16", 2)
bits1x8, bits2x4, bits4x2, bits8 = map(Bare, "bits1x8 bits2x4 bits4x2 bits8".split())
float4_e2m1fn_x2 = dtype("float4_e2m1fn_x2", FLOATING, 1, tensor_name="Float4_e2m1fn_x2")
int1, int2, int3, int4, int5, int6, int7 = (Bare(f"int{bits}") for bits in range(1, 8))
uint1, uint2, uint3, uint4, uint5, uint6, uint7 = (Bare(f"uint{bits}") for bits in range(1, 8))
bit = uint1

# In the order of PyTorch's numbers for them, by which a schema writes a default.
NUMBERED = (uint8, int8, int16, int32, int64, float16, float32, float64, complex32, complex64, complex128, bool)
DTYPES = {
    t.name: t
    for t in (uint8, int8, int16, int32, int64, float16, float32, float64, complex64, complex128, bool, bfloat16)
}
_BY_NAME = DTYPES | RARE | {t.name: t for t in globals().values() if isinstance(t, dtype)}
QUANTIZED = keyset("QuantizedCPU") & ~keyset("CPU")
for _rare in _BY_NAME.values():
    if _rare.name not in DTYPES:
        _rare.bits = QUANTIZED if _rare.name.startswith("q") else RARE_DTYPE
_BY_NUMPY: dict[np.dtype, dtype] = {np.dtype(name): t for name, t in _BY_NAME.items() if name in IN_NUMPY}


def dtype_named(name: str) -> dtype:
    return _BY_NAME[name]


def from_numpy_dtype(numpy_dtype: np.dtype) -> dtype:
    """The dtype of a numpy array's elements. TypeError for one that has no counterpart."""
    found = _BY_NUMPY.get(numpy_dtype)
    if found is not None:
        return found
    if numpy_dtype.name in _BY_NAME:  # of ml_dtypes
        return _BY_NAME[numpy_dtype.name]
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
    if a.name not in DTYPES or b.name not in DTYPES:
        found = promote_rare(a, b)
        if found is not None:
            return found
    if a.category != b.category:
        low, high = (a, b) if a.category < b.category else (b, a)
        if high.is_complex and low.is_floating_point:
            return promote_types(high, low.to_complex())
        return high
    if a.category == INTEGER and a.is_signed != b.is_signed:
        signed = a if a.is_signed else b
        return int16 if signed is int8 else signed
    if a.itemsize == b.itemsize:
        return float32
    return a if a.itemsize > b.itemsize else b


def promote_rare(a: dtype, b: dtype) -> dtype | None:
    """The dtype that two different ones promote to, where one of them is rare or bare; None where the usual rules hold.

    Errors: RuntimeError where there is no such dtype.
    """
    both = f"{a.tensor_name} and {b.tensor_name}"
    bare = [one for one in (a, b) if isinstance(one, Bare)]
    if any(one.quantised for one in bare):
        raise RuntimeError(
            "promoteTypes with quantized numbers is not handled yet; figure out what the correct rules should be, "
            f"offending types: {a.tensor_name} {b.tensor_name}"
        )
    if any(one.undefined for one in bare):
        raise RuntimeError(f"Promotion from {both} is unsupported.")
    if a in FLOAT8 or b in FLOAT8:
        raise RuntimeError(f"Promotion for Float8 Types is not supported, attempted to promote {both}")
    if any(one.name.startswith("uint") and one is not uint8 for one in (a, b)):
        floating = next((one for one in (a, b) if one.is_floating_point), None)
        if floating is None:
            raise RuntimeError(
                f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {both}"
            )
        return floating
    if bare or float4_e2m1fn_x2 in (a, b):
        raise RuntimeError(f"Promotion from {both} is unsupported.")
    return None


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


# Type promotion over operands: tensors with dimensions, tensors without and Python numbers are three ranks ------------
#
# A lower rank changes the result only if it is of a higher category: `int_tensor + 1.5` is floating, while
# `float_tensor + double_scalar_tensor` stays float32.


def number_dtype(value: Any) -> dtype:
    """The dtype that a Python number would have as a tensor."""
    if isinstance(value, builtins.bool):
        return bool
    if isinstance(value, builtins.int | SymInt):
        return int64
    if isinstance(value, builtins.float | SymFloat):
        return get_default_dtype()
    if isinstance(value, complex):
        return get_default_dtype().to_complex()
    raise TypeError(f"expected a number or a tensor, but got {type(value).__name__}")


def result_type(*operands: Any) -> dtype:
    """The dtype in which these tensors and numbers are computed. TypeError for anything else.

    Source: PyTorch's `torch.result_type`.

    >>> import redispatch as rd
    >>> rd.result_type(rd.ones(2, dtype=rd.int8), 1.5)
    torch.float32
    """
    ranks: list[dtype | None] = [None, None, None]  # with dimensions, without, numbers
    for value in operands:
        if isinstance(value, TensorBase):
            tensor: Any = value
            rank, kind = (0 if tensor._shape else 1), tensor._dtype
        else:
            rank, kind = 2, number_dtype(value)
        former = ranks[rank]
        ranks[rank] = kind if former is None or former is kind else _promoted(former, kind)
    found = _over(ranks[0], _over(ranks[1], ranks[2]))
    if found is None and operands:
        raise RuntimeError("unsupported scalarType")
    return found  # type: ignore[return-value]  # None of no operands


def _promoted(a: dtype, b: dtype) -> dtype | None:
    """The dtype that both go into, or None where one is of bits: another operand may decide."""
    bare = [one for one in (a, b) if isinstance(one, Bare)]
    if a is not b and any(one.undefined for one in bare) and not any(one.quantised for one in bare):
        return None
    return promote_types(a, b)


def _over(high: dtype | None, low: dtype | None) -> dtype | None:
    """`high`, unless `low` is of a higher category."""
    if high is None or low is None:
        return high or low
    if high.is_complex:
        return high
    if high.is_floating_point:
        return high.to_complex() if low.is_complex else high
    if low.is_complex:
        return low
    return _promoted(high, low) if high.category == BOOL or low.is_floating_point else high


def can_cast(from_: dtype, to: dtype) -> builtins.bool:
    """Whether an in-place operator may store a result of one dtype in a tensor of the other: never down a category.

    >>> import redispatch as rd
    >>> rd.can_cast(rd.float64, rd.int32)
    False
    """
    return from_.category <= to.category or (isinstance(to, Bare) and not from_.is_complex)


# finfo and iinfo: what numbers a dtype can hold. numpy's, with PyTorch's names; bfloat16's are those of ml_dtypes -----

dtype_class = dtype  # which has another meaning inside these classes


class Limits:
    """The common base of finfo and iinfo: a dtype, by whose name they are equal."""

    __slots__ = ("_kind",)
    _kind: dtype_class
    _shown: tuple[str, ...]

    @property
    def bits(self) -> builtins.int:
        return self._kind.to_real().itemsize * 8

    @property
    def dtype(self) -> str:
        return self._kind.to_real().name

    def __eq__(self, other: Any) -> builtins.bool:
        return type(other) is type(self) and other._kind.to_real() is self._kind.to_real()

    def __hash__(self) -> builtins.int:
        return hash((type(self), self.dtype))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name):g}" for name in self._shown)
        return f"{type(self).__name__}({fields}, dtype={self.dtype})"


class finfo(Limits):
    """The limits of a floating dtype, by default the default one; of a complex dtype those of its parts."""

    __module__ = "redispatch"
    __slots__ = ("min", "max", "eps", "tiny", "smallest_normal", "resolution")
    _shown = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")

    def __init__(self, type: dtype | None = None) -> None:
        self._kind = kind = get_default_dtype() if type is None else type
        if not (kind.is_floating_point or kind.is_complex):
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        if kind is float4_e2m1fn_x2:
            raise NotImplementedError(f"\"min\" not implemented for '{kind.tensor_name}'")
        numbers = limits(kind.to_real())
        self.min, self.max, self.eps = (
            builtins.float(numbers.min),
            builtins.float(numbers.max),
            builtins.float(numbers.eps),
        )
        self.tiny = self.smallest_normal = builtins.float(numbers.tiny)
        self.resolution = 10.0**-numbers.precision  # numpy rounds it to the dtype
        if kind in FLOAT8:
            self.resolution = 1.0
        if kind is float8_e5m2fnuz:
            self.eps = 0.125  # as PyTorch has it; two neighbours of 1 are 0.25 apart


def limits(kind: dtype) -> Any:
    if kind.name in IN_NUMPY:
        return np.finfo(kind.numpy)
    import ml_dtypes  # here: most programs do not need it, and it takes long to import

    return ml_dtypes.finfo(kind.numpy)


class iinfo(Limits):
    """The limits of an integer dtype."""

    __module__ = "redispatch"
    __slots__ = ("min", "max")
    _shown = ("min", "max")

    def __init__(self, type: dtype) -> None:
        self._kind = type
        if type.is_floating_point or type.is_complex or isinstance(type, Bare):
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        if type.name == "bool":
            raise TypeError("torch.bool is not supported by torch.iinfo")
        numbers = np.iinfo(type.numpy)
        self.min, self.max = builtins.int(numbers.min), builtins.int(numbers.max)
