"""Machine-near scalar functions: what they mean in Python, and what numba makes of them.

Each is a plain Python function marked `@primitive`, which is its definition (and what runs under
`NUMBA_DISABLE_JIT=1`). `register()` gives numba the compiled form, when the first kernel is compiled: an LLVM
instruction. Read next: `vecmath/`, the transcendental functions built on these.
"""

import math
from functools import cache as once
from typing import Any

import numpy as np

from .program import primitive


@primitive
def half_to_float(bits):
    """The float32 value of a float16 given as uint16 bits."""
    return np.float32(np.uint16(bits).view(np.float16))


@primitive
def float_to_half(x):
    """The bits of the float16 nearest to a float32, ties to even; of a float64, to the float32 nearest to it."""
    with np.errstate(over="ignore"):
        return np.float16(np.float32(x)).view(np.uint16)


@primitive
def rounded(x):
    """The float32 nearest to a float64."""
    with np.errstate(over="ignore"):
        return np.float32(x)


@primitive
def bits_of_float(x):
    """The bits of a float32, as int32."""
    return np.float32(x).view(np.int32)


@primitive
def float_of_bits(bits):
    """The float32 with these int32 bits."""
    return np.int32(bits).view(np.float32)


@primitive
def bits_of_double(x):
    """The bits of a float64, as int64."""
    return np.float64(x).view(np.int64)


@primitive
def double_of_bits(bits):
    """The float64 with these int64 bits."""
    return np.int64(bits).view(np.float64)


@primitive
def bfloat16_to_float(bits):
    """The float32 value of a bfloat16 given as uint16 bits: its upper half."""
    return (np.uint32(bits) << np.uint32(16)).view(np.float32)


@primitive
def float_to_bfloat16(x):
    """The bits of the bfloat16 nearest to a float32, ties to even; NaN stays NaN."""
    if x != x:
        return np.uint16(0x7FC0)
    bits = int(np.float32(x).view(np.uint32))
    return np.uint16((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)


FROM_MEMORY = 1 << 63  # a bit of an offset: on a GPU, `seed` then is an address where seed and offset lie


@primitive
def seed_from(seed, offset):
    """The seed of random numbers. On a GPU it may lie in memory: `FROM_MEMORY`."""
    return seed


@primitive
def offset_from(seed, offset):
    """The offset of random numbers; where it lies in memory on a GPU, what is told is added to it."""
    return offset


@primitive
def maximum(x, y):
    """The larger of two floats of one type, NaN where one is; of 0.0 and -0.0 either."""
    return x if x > y or x != x else y


@primitive
def minimum(x, y):
    """The smaller of two floats of one type, NaN where one is; of 0.0 and -0.0 either."""
    return x if x < y or x != x else y


@primitive
def fma(a, b, c):
    """a b + c, rounded once."""
    from fractions import Fraction  # here, because importing it takes 3 ms

    kind = type(a)
    if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
        return a * b + c
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if not exact:
        return a * b + c  # a zero, with its sign
    wide = float(exact)
    if kind is np.float32 and wide != exact and np.float64(wide).view(np.int64) & 1 == 0:
        wide = float(
            np.nextafter(wide, math.inf if exact > wide else -math.inf)
        )  # to odd: the second rounding is right
    return kind(wide)


# 2 / pi, cut off behind 1184 bits: enough for the largest float64, of which the first 1024 only count whole turns.
TWO_OVER_PI = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921cfe1d"
    "eb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980fef2f118b"
    "5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d0856033046",
    16,
)
TWO_OVER_PI_BITS = 1184


@primitive
def bits_of_turn(m, e, i):
    """Bits 48 i to 48 i + 48 behind the point of m 2^e / (2 pi), as int64: where on the circle a large angle ends."""
    fraction = (TWO_OVER_PI >> (TWO_OVER_PI_BITS - 190 - int(e))) * int(m)
    return np.int64((fraction >> (144 - 48 * int(i))) & (2**48 - 1))


def _instruction(primitive: Any, result: Any, arguments: tuple[Any, ...], emit: Any) -> None:
    """Has `primitive` be a short run of LLVM instructions, from `arguments` to `result`; see `_of_one_type`."""
    from numba import types  # here, because importing numba takes 0.3 s
    from numba.core.typing import signature
    from numba.extending import lower_builtin, type_callable

    typers = {
        1: lambda x: typed(x),
        2: lambda x, y: typed(x, y),
        3: lambda x, y, z: typed(x, y, z),
    }

    def typed(*given: Any) -> Any:
        kind = given[0]
        return signature(result or kind, *(argument or kind for argument in arguments))

    @type_callable(primitive)
    def typer(context):
        return typers[len(arguments)]

    @lower_builtin(primitive, *[types.Any] * len(arguments))
    def lower(context, builder, called, values):
        return emit(builder, *values)


def _of_one_type(primitive: Any, emit: Any) -> None:
    """Has `primitive` take floats of one type, and return another one of it."""
    _instruction(primitive, None, (None,) * primitive.__code__.co_argcount, emit)


def _extreme(name: str, wins: str) -> Any:
    """LLVM's instruction for the larger or smaller of two floats, which NaN wins.

    LLVM turns a loop of it into one over vectors, where a comparison with a NaN test would keep the loop scalar.
    "nsz", as it may return either zero: 3 machine instructions for a vector instead of 9.
    """
    from llvmlite import ir  # here, because importing numba takes 0.3 s
    from llvmlite.binding import llvm_version_info

    def emit(builder: Any, x: Any, y: Any) -> Any:
        if llvm_version_info < (18,):  # which does not know how x86 does it
            first = builder.or_(builder.fcmp_ordered(wins, x, y), builder.fcmp_unordered("uno", x, x))
            return builder.select(first, x, y)
        function = builder.module.declare_intrinsic(name, [x.type], ir.FunctionType(x.type, [x.type, x.type]))
        return builder.call(function, [x, y], fastmath=("nsz",))

    return emit


def _turned(builder: Any, m: Any, e: Any, i: Any) -> Any:
    """Loads the 192 bits that count from the byte in which they begin; 32 bytes hold them."""
    from llvmlite import ir  # here, because importing numba takes 0.3 s

    i64 = ir.IntType(64)
    digits, window, byte = ir.IntType(TWO_OVER_PI_BITS + 256), ir.IntType(256), ir.IntType(8)
    table = builder.module.globals.get("two_over_pi")
    if table is None:
        table = ir.GlobalVariable(builder.module, digits, "two_over_pi")
        table.initializer, table.linkage, table.global_constant = ir.Constant(digits, TWO_OVER_PI), "internal", True
    shift = builder.sub(ir.Constant(i64, TWO_OVER_PI_BITS - 190), e)
    start = builder.gep(builder.bitcast(table, byte.as_pointer()), [builder.lshr(shift, ir.Constant(i64, 3))])
    found = builder.load(builder.bitcast(start, window.as_pointer()), align=1)
    aligned = builder.lshr(found, builder.zext(builder.and_(shift, ir.Constant(i64, 7)), window))
    fraction = builder.mul(aligned, builder.zext(m, window))
    down = builder.sub(ir.Constant(i64, 144), builder.mul(ir.Constant(i64, 48), i))
    piece = builder.trunc(builder.lshr(fraction, builder.zext(down, window)), i64)
    return builder.and_(piece, ir.Constant(i64, 2**48 - 1))


@once
def register() -> None:
    """Teach numba the primitives."""
    from llvmlite import ir  # here, because importing numba takes 0.3 s
    from llvmlite.binding import llvm_version_info
    from numba import types

    i16, i32, i64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)
    half, single, double = ir.HalfType(), ir.FloatType(), ir.DoubleType()

    def round_to_bfloat16(builder: Any, x: Any) -> Any:
        bits = builder.bitcast(x, i32)
        odd = builder.and_(builder.lshr(bits, ir.Constant(i32, 16)), ir.Constant(i32, 1))
        rounded = builder.lshr(builder.add(builder.add(bits, ir.Constant(i32, 0x7FFF)), odd), ir.Constant(i32, 16))
        is_nan = builder.fcmp_unordered("uno", x, x)
        return builder.trunc(builder.select(is_nan, ir.Constant(i32, 0x7FC0), rounded), i16)

    def round_to_single(builder: Any, x: Any) -> Any:
        """Rounds to 32 bits. Where a double's copysign is rounded to 16 then, LLVM 20 rounds but once, from 64 to 16.

        It has no instruction for that, and calls a function which nothing provides: a null pointer. Behind
        `canonicalize`, which changes no number, it does not see what comes next.
        """
        x = builder.fptrunc(x, single)
        if llvm_version_info < (20,):  # which does not know how x86 does it
            return x
        function = builder.module.declare_intrinsic("llvm.canonicalize", [single], ir.FunctionType(single, [single]))
        return builder.call(function, [x])

    def round_to_half(builder: Any, x: Any) -> Any:
        x = round_to_single(builder, x) if x.type == double else x
        return builder.bitcast(builder.fptrunc(x, half), i16)

    def widen_bfloat16(builder: Any, x: Any) -> Any:
        return builder.bitcast(builder.shl(builder.zext(x, i32), ir.Constant(i32, 16)), single)

    _instruction(half_to_float, types.float32, (types.uint16,), lambda b, x: b.fpext(b.bitcast(x, half), single))
    _instruction(float_to_half, types.uint16, (None,), round_to_half)
    _instruction(rounded, types.float32, (types.float64,), round_to_single)
    _instruction(bits_of_float, types.int32, (types.float32,), lambda b, x: b.bitcast(x, i32))
    _instruction(float_of_bits, types.float32, (types.int32,), lambda b, x: b.bitcast(x, single))
    _instruction(bits_of_double, types.int64, (types.float64,), lambda b, x: b.bitcast(x, i64))
    _instruction(double_of_bits, types.float64, (types.int64,), lambda b, x: b.bitcast(x, double))
    _instruction(bfloat16_to_float, types.float32, (types.uint16,), widen_bfloat16)
    _instruction(float_to_bfloat16, types.uint16, (types.float32,), round_to_bfloat16)
    _instruction(bits_of_turn, types.int64, (types.int64,) * 3, _turned)
    _instruction(seed_from, types.uint64, (types.uint64,) * 2, lambda b, seed, offset: seed)
    _instruction(offset_from, types.uint64, (types.uint64,) * 2, lambda b, seed, offset: offset)
    _of_one_type(fma, lambda b, x, y, z: b.fma(x, y, z))
    _of_one_type(maximum, _extreme("llvm.maximum", ">"))
    _of_one_type(minimum, _extreme("llvm.minimum", "<"))
