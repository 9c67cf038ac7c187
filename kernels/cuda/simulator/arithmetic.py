"""Arithmetic instructions as pure functions over numpy arrays, one element a lane.

`operation(("fma", "rn", "f32"))` is an `Operation`: the types of the sources and of the result, and the function
between them. The functions say what the ISA says, where numpy means something else: shifts clamp, integer division
truncates, a minimum prefers the number to the NaN, a float becomes an integer by saturating. A fused multiply-add
rounds once.

Approximations (`ex2.approx`, `sin.approx`) are computed rightly rounded or nearly so: a GPU differs in the last bits.
Read next: `grid.py`. Source: NVIDIA's "Parallel Thread Execution ISA", chapter 9.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

Array = Any  # a numpy array, or one number for all lanes

KINDS: dict[str, Any] = {
    "b8": np.uint8, "u8": np.uint8, "s8": np.int8, "b16": np.uint16, "u16": np.uint16, "s16": np.int16,
    "f16": np.float16, "bf16": np.uint16, "b32": np.uint32, "u32": np.uint32, "s32": np.int32, "f32": np.float32,
    "b64": np.uint64, "u64": np.uint64, "s64": np.int64, "f64": np.float64, "pred": np.bool_,
}  # fmt: skip
NUMPY: dict[str, np.dtype] = {name: np.dtype(kind) for name, kind in KINDS.items()}
FLOATS = ("f16", "f32", "f64")


class Operation(NamedTuple):
    """`function(*sources)`, from arrays of these PTX types to one of type `result`."""

    result: str
    sources: tuple[str, ...]
    function: Callable[..., Array]


class Unknown(Exception):
    """An instruction that is not in the tables."""


def operation(opcode: tuple[str, ...]) -> Operation:
    """Looks up what an opcode computes. Unknown for one that is not here."""
    name, *modifiers = opcode
    kind = modifiers[-1] if modifiers else ""
    for table in (_move, _compare, _convert, _float, _integer):
        found = table(name, modifiers, kind)
        if found is not None:
            return found
    raise Unknown(".".join(opcode))


# --- moves, choices, bits -------------------------------------------------------------------------------------------


def bits(a: Array) -> int:
    return 8 * a.dtype.itemsize


def invert(a: Array) -> Array:
    return ~a


def shift_left(a: Array, n: Array) -> Array:
    return np.where(n < bits(a), a << (n % bits(a)).astype(a.dtype), 0)


def shift_right(a: Array, n: Array) -> Array:
    moved = a >> np.minimum(n, bits(a) - 1).astype(a.dtype)
    return np.where(n < bits(a), moved, 0) if a.dtype.kind == "u" else moved


def unsigned_of(a: Array) -> Array:
    return np.asarray(a).view(f"u{a.dtype.itemsize}")


def reverse_bits(a: Array) -> Array:
    a = np.asarray(a)
    result = np.zeros_like(a)
    for k in range(bits(a)):
        result |= ((a >> a.dtype.type(k)) & a.dtype.type(1)) << a.dtype.type(bits(a) - 1 - k)
    return result


def leading_zeros(a: Array) -> Array:
    a = np.asarray(a)
    found, whole = np.full(a.shape, bits(a), np.uint32), bits(a)
    for k in range(whole):
        found = np.where(a >> a.dtype.type(k) != 0, np.uint32(whole - 1 - k), found)
    return found


def find_first(a: Array) -> Array:
    """The position of the highest bit that differs from the sign; all ones where there is none."""
    if a.dtype.kind == "i":
        a = np.where(a < 0, ~a, a)
    zeros = leading_zeros(unsigned_of(a))
    return np.where(zeros == bits(a), np.uint32(0xFFFFFFFF), np.uint32(bits(a) - 1) - zeros)


def ones(length: Array) -> Array:
    """The number whose lowest bits, so many, are 1."""
    short = (np.uint64(1) << np.minimum(length, 63).astype(np.uint64)) - np.uint64(1)
    return np.where(length >= 64, np.uint64(2**64 - 1), short)


def extract_bits(a: Array, start: Array, length: Array) -> Array:
    whole = bits(a)
    start, length = start & 0xFF, length & 0xFF
    wide = unsigned_of(a).astype(np.uint64)
    if a.dtype.kind == "i":  # bits beyond the last are copies of the sign
        wide = a.astype(np.int64).view(np.uint64)
    signed = wide.view(np.int64) if a.dtype.kind == "i" else wide
    moved = signed >> np.minimum(start, 63).astype(signed.dtype)
    mask = ones(length)
    field = moved.view(np.uint64) & mask
    if a.dtype.kind == "i":
        last = np.minimum(start + length - 1, whole - 1)
        sign = (length > 0) & ((wide >> last.astype(np.uint64)) & np.uint64(1) != 0)
        field = np.where(sign, field | ~mask, field)
    return field.astype(f"u{a.dtype.itemsize}").view(a.dtype)


def insert_bits(a: Array, b: Array, start: Array, length: Array) -> Array:
    whole = bits(b)
    start, length = (start & 0xFF).astype(np.uint64), np.minimum(length & 0xFF, 64).astype(np.uint64)
    inside = start < whole
    start = np.minimum(start, 63).astype(np.uint64)
    mask = np.where(inside, ones(length) << start, np.uint64(0))
    value = (a.astype(np.uint64) << start) & mask
    return ((b.astype(np.uint64) & ~mask) | value).astype(b.dtype)


def permute_bytes(a: Array, b: Array, selector: Array) -> Array:
    both = a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))
    result = np.zeros(np.broadcast(both, selector).shape, np.uint32)
    for k in range(4):
        pick = (selector >> np.uint32(4 * k)) & np.uint32(15)
        byte = (both >> ((pick & 7) * 8).astype(np.uint64)) & np.uint64(255)
        sign = np.where(byte & np.uint64(128), np.uint64(255), np.uint64(0))
        result |= np.where(pick & 8, sign, byte).astype(np.uint32) << np.uint32(8 * k)
    return result


def by_table(a: Array, b: Array, c: Array, table: Array) -> Array:
    result = np.zeros(np.broadcast(a, b, c).shape, np.uint32)
    for k in range(8):
        term = (a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c)
        result |= np.where((table >> np.uint32(k)) & np.uint32(1), term, np.uint32(0))
    return result


def funnel(left: bool, wrap: bool) -> Callable[..., Array]:
    """Shifts two words as one, and returns the upper or the lower."""

    def shift(a: Array, b: Array, n: Array) -> Array:
        n = ((n & 31) if wrap else np.minimum(n, 32)).astype(np.uint64)
        both = a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))
        moved = both >> (np.uint64(32) - n) if left else both >> n
        return moved.astype(np.uint32)

    return shift


# The types of the result and of the sources, `k` for that of the opcode and `u` for the unsigned one; the function.
MOVES: dict[str, tuple[str, str, Callable[..., Array]]] = {
    "mov": ("k", "k", lambda a: a),
    "cvta": ("k", "k", lambda a: a),
    "selp": ("k", "k k pred", lambda a, b, p: np.where(p, a, b)),
    "and": ("k", "k k", operator.and_),
    "or": ("k", "k k", operator.or_),
    "xor": ("k", "k k", operator.xor),
    "not": ("k", "k", invert),
    "shl": ("k", "k u32", shift_left),
    "shr": ("k", "k u32", shift_right),
    "popc": ("u32", "u", lambda a: np.bitwise_count(a).astype(np.uint32)),
    "clz": ("u32", "u", leading_zeros),
    "brev": ("k", "k", reverse_bits),
    "bfind": ("u32", "k", find_first),
    "bfe": ("k", "k u32 u32", extract_bits),
    "bfi": ("k", "k k u32 u32", insert_bits),
    "prmt": ("b32", "b32 b32 u32", permute_bytes),
    "lop3": ("b32", "b32 b32 b32 u32", by_table),
}


def _move(name: str, modifiers: Sequence[str], kind: str) -> Operation | None:
    if name == "shf":
        return Operation("b32", ("b32", "b32", "u32"), funnel("l" in modifiers, "wrap" in modifiers))
    if name not in MOVES:
        return None
    (result, sources, function), named = MOVES[name], {"k": kind, "u": f"u{kind[1:]}"}
    return Operation(named.get(result, result), tuple(named.get(one, one) for one in sources.split()), function)


# --- comparisons ----------------------------------------------------------------------------------------------------


def unordered(a: Array, b: Array) -> Array:
    return (a != a) | (b != b)


def different(a: Array, b: Array) -> Array:
    return (a < b) | (a > b) if a.dtype.kind == "f" else a != b


def or_unordered(compare: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: compare(a, b) | unordered(a, b)


ORDERED: dict[str, Callable[[Array, Array], Array]] = {
    "eq": operator.eq, "ne": different, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
COMPARE = {
    **ORDERED,
    **{f"{name}u": or_unordered(compare) for name, compare in ORDERED.items()},
    "lo": operator.lt,  # of unsigned numbers, as the next three
    "ls": operator.le,
    "hi": operator.gt,
    "hs": operator.ge,
    "num": lambda a, b: ~unordered(a, b),
    "nan": unordered,
}
JOIN = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


def _compare(name: str, modifiers: Sequence[str], kind: str) -> Operation | None:
    if name == "setp":
        function = flushed(COMPARE[modifiers[0]], modifiers, kind)
        joined = [JOIN[word] for word in modifiers[1:-1] if word in JOIN]
        if not joined:
            return Operation("pred", (kind, kind), function)
        return Operation("pred", (kind, kind, "pred"), lambda a, b, p: joined[0](function(a, b), p))
    if name == "set":
        to, function = modifiers[-2], COMPARE[modifiers[0]]
        true = NUMPY[to].type(1) if to == "f32" else np.array(-1).astype(NUMPY[to])[()]  # all bits of an integer
        return Operation(to, (kind, kind), lambda a, b: np.where(function(a, b), true, NUMPY[to].type(0)))
    if name == "testp":
        return Operation("pred", (kind,), TESTS[modifiers[0]])
    return None


def _is_subnormal(a: Array) -> Array:
    return (a != 0) & (np.abs(a) < np.finfo(a.dtype).tiny)


TESTS: dict[str, Callable[[Array], Array]] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda a: a == a,
    "notanumber": np.isnan,
    "normal": lambda a: np.isfinite(a) & (np.abs(a) >= np.finfo(a.dtype).tiny),
    "subnormal": _is_subnormal,
}

# --- conversions ----------------------------------------------------------------------------------------------------

TO_INTEGRAL: dict[str, Callable[[Array], Array]] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def _convert(name: str, modifiers: Sequence[str], kind: str) -> Operation | None:
    if name != "cvt":
        return None
    to, source = modifiers[-2], modifiers[-1]
    integral = next((TO_INTEGRAL[word] for word in modifiers if word in TO_INTEGRAL), None)
    if to == "bf16":
        return Operation(to, (source,), to_bfloat16)
    if source == "bf16":
        return Operation(to, (source,), lambda a: (a.astype(np.uint32) << np.uint32(16)).view(np.float32))
    kind_to = NUMPY[to]
    if source in FLOATS and to not in FLOATS:
        rounding = integral or np.trunc
        return Operation(to, (source,), flushed(lambda a: to_integer(rounding(a), kind_to), modifiers, source))
    if source in FLOATS:

        def to_float(a: Array) -> Array:
            found = (a if integral is None else integral(a)).astype(kind_to)
            return clamped(found) if "sat" in modifiers else found

        return Operation(to, (source,), flushed(to_float, modifiers, "f32" if "f32" in (to, source) else to))
    if "sat" in modifiers and to not in FLOATS:
        info = np.iinfo(kind_to)
        return Operation(to, (source,), lambda a: saturated(a, int(info.min), int(info.max)).astype(kind_to))
    return Operation(to, (source,), lambda a: a.astype(kind_to))


def clamped(a: Array) -> Array:
    """Between 0 and 1, which is what `.sat` means for floats; NaN becomes 0."""
    return np.fmin(np.fmax(a, a.dtype.type(0)), a.dtype.type(1))


def saturating(function: Callable[..., Array], modifiers: Sequence[str]) -> Callable[..., Array]:
    return (lambda *a: clamped(function(*a))) if "sat" in modifiers else function


def saturated(a: Array, least: int, most: int) -> Array:
    own = np.iinfo(a.dtype)
    return np.clip(a, a.dtype.type(max(least, int(own.min))), a.dtype.type(min(most, int(own.max))))


def to_integer(whole: Array, kind: np.dtype) -> Array:
    """Floats without fractions as integers: the nearest that there is, 0 for NaN."""
    info, wide = np.iinfo(kind), np.asarray(whole, np.float64)
    low, high = float(info.min), float(int(info.max) + 1)
    inside = np.where((wide >= low) & (wide < high), wide, 0.0).astype(kind)
    return np.where(wide >= high, kind.type(info.max), np.where(wide < low, kind.type(info.min), inside))


def to_bfloat16(a: Array) -> Array:
    raw = np.asarray(a, np.float32).view(np.uint32)
    nearest = (raw + np.uint32(0x7FFF) + ((raw >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(a), np.uint32(0x7FFF), nearest).astype(np.uint16)


# --- floats ---------------------------------------------------------------------------------------------------------


def flushed(function: Callable[..., Array], modifiers: Sequence[str], kind: str) -> Callable[..., Array]:
    """`function`, with subnormal float32 numbers as zeros before and after, where the opcode says `.ftz`."""
    if "ftz" not in modifiers or kind != "f32":
        return function

    def around(*sources: Array) -> Array:
        return without_subnormals(function(*[without_subnormals(a) for a in sources]))

    return around


def without_subnormals(a: Array) -> Array:
    if a.dtype != np.float32:
        return a
    return np.where(np.abs(a) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), a), a)


def fused(a: Array, b: Array, c: Array) -> Array:
    """a b + c, rounded once."""
    if a.dtype == np.float64:
        return _fused_double(a, b, c)
    wide_c = np.asarray(c, np.float64)
    product = np.asarray(a, np.float64) * np.asarray(b, np.float64)  # exact: 24 + 24 bits fit into 53
    total = np.asarray(product + wide_c)
    back = total - product
    rest = (product - (total - back)) + (wide_c - back)
    # to odd: then the second rounding, to float32, is that of the exact number
    raw = total.view(np.int64)
    nudge = np.isfinite(total) & np.isfinite(rest) & (rest != 0) & (raw & 1 == 0)
    away = (rest > 0) == (total > 0)
    return np.where(nudge, raw + np.where(away, 1, -1), raw).view(np.float64).astype(np.float32)


SPLIT = 134217729.0  # 2^27 + 1


def _fused_double(a: Array, b: Array, c: Array) -> Array:
    """The product as an exact sum of two numbers, then their sum with c; exact but for a rare last bit."""
    product = a * b

    def halves(x: Array) -> tuple[Array, Array]:
        big = SPLIT * x
        high = big - (big - x)
        return high, x - high

    (ah, al), (bh, bl) = halves(a), halves(b)
    error = ((ah * bh - product) + ah * bl + al * bh) + al * bl
    total = product + c
    back = total - product
    rest = (product - (total - back)) + (c - back)
    exact = total + (rest + error)
    return np.where(np.isfinite(exact), exact, a * b + c)


def approximate(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A float32 function by way of float64."""
    return lambda a: function(np.asarray(a, np.float64)).astype(a.dtype)


UNARY: dict[str, Callable[[Array], Array]] = {
    "neg": operator.neg,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "rcp": lambda a: a.dtype.type(1) / a,
    "rsqrt": approximate(lambda a: 1 / np.sqrt(a)),
    "ex2": approximate(np.exp2),
    "lg2": approximate(np.log2),
    "sin": approximate(np.sin),
    "cos": approximate(np.cos),
    "tanh": approximate(np.tanh),
}
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "min": np.fmin,
    "max": np.fmax,
    "min.NaN": np.minimum,
    "max.NaN": np.maximum,
    "copysign": lambda a, b: np.copysign(b, a),  # the sign of the first, on the second
}


def _float(name: str, modifiers: Sequence[str], kind: str) -> Operation | None:
    if kind not in FLOATS:
        return None
    if name in ("min", "max") and "NaN" in modifiers:
        name += ".NaN"
    for count, table in ((1, UNARY), (2, BINARY), (3, {"fma": fused, "mad": fused})):
        exact = table.get(name)
        if exact is not None:
            return Operation(kind, (kind,) * count, flushed(saturating(exact, modifiers), modifiers, kind))
    return None


# --- integers -------------------------------------------------------------------------------------------------------

WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def _integer(name: str, modifiers: Sequence[str], kind: str) -> Operation | None:
    if name in ("mul", "mad", "mul24", "mad24"):
        return _product(name[:3], modifiers, kind)
    if name in INTEGER:
        function = INTEGER[name]
        return Operation(kind, (kind,) * (1 if name in ("neg", "abs") else 3 if name == "sad" else 2), function)
    return None


def _product(name: str, modifiers: Sequence[str], kind: str) -> Operation:
    result, multiply = kind, operator.mul
    if "wide" in modifiers:
        result = WIDER[kind]
        multiply = wide_product(NUMPY[result])
    elif "hi" in modifiers:
        multiply = high_product
    if name == "mul":
        return Operation(result, (kind, kind), multiply)
    return Operation(result, (kind, kind, result), lambda a, b, c: multiply(a, b) + c)


def wide_product(wide: np.dtype) -> Callable[[Array, Array], Array]:
    return lambda a, b: a.astype(wide) * b.astype(wide)


def high_product(a: Array, b: Array) -> Array:
    """The upper half of the product."""
    if a.dtype.itemsize < 8:
        wide = np.dtype(f"{a.dtype.kind}{2 * a.dtype.itemsize}")
        return ((a.astype(wide) * b.astype(wide)) >> wide.type(bits(a))).astype(a.dtype)
    x, y, low = unsigned_of(a), unsigned_of(b), np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    xl, xh, yl, yh = x & low, x >> half, y & low, y >> half
    middle = xh * yl + ((xl * yl) >> half)
    other = xl * yh + (middle & low)
    high = xh * yh + (middle >> half) + (other >> half)
    if a.dtype.kind == "i":
        high = high - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return high.view(a.dtype)


def quotient(a: Array, b: Array) -> Array:
    """a / b towards zero; all ones where b is 0, as GPUs have it."""
    safe = np.where(b == 0, b.dtype.type(1), b)
    found = a // safe
    if a.dtype.kind == "i":
        found = found + ((found * safe != a) & ((a < 0) != (safe < 0)))
    return np.where(b == 0, np.array(-1).astype(a.dtype), found).astype(a.dtype)


def remainder(a: Array, b: Array) -> Array:
    return np.where(b == 0, a, a - quotient(a, b) * b).astype(a.dtype)


INTEGER: dict[str, Callable[..., Array]] = {
    "add": operator.add,
    "sub": operator.sub,
    "div": quotient,
    "rem": remainder,
    "min": np.minimum,
    "max": np.maximum,
    "neg": operator.neg,
    "abs": np.abs,
    "sad": lambda a, b, c: c + (np.maximum(a, b) - np.minimum(a, b)),
}
