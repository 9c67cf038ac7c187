"""Machine-near scalar functions: what they mean in Python, and what numba makes of them.

Each is a plain Python function marked `@primitive`, which is its definition (and what runs under
`NUMBA_DISABLE_JIT=1`). `register()` gives numba the compiled form, when the first kernel is compiled: an LLVM
instruction. Read next: `vecmath.py`, the transcendental functions built on these.
"""

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
    """The bits of the float16 nearest to a float32, ties to even."""
    with np.errstate(over="ignore"):
        return np.float16(x).view(np.uint16)


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


@primitive
def maximum(x, y):
    """The larger of two floats of one type, NaN where one is; of 0.0 and -0.0 either."""
    return x if x > y or x != x else y


@primitive
def minimum(x, y):
    """The smaller of two floats of one type, NaN where one is; of 0.0 and -0.0 either."""
    return x if x < y or x != x else y


@once
def register() -> None:
    """Teach numba the primitives, and those of `vecmath.py`."""
    from llvmlite import ir  # here, because importing numba takes 0.3 s
    from llvmlite.binding import llvm_version_info
    from numba import types
    from numba.extending import intrinsic, overload

    from . import vecmath

    def instruction(primitive: Any, result: Any, argument: Any, emit: Any) -> None:
        """The primitive is one short run of LLVM instructions, from `argument` to `result`."""

        @intrinsic
        def compiled(typing, x):
            def codegen(context, builder, signature, args):
                value = context.cast(builder, args[0], signature.args[0], argument)
                return emit(builder, value)

            return result(x), codegen

        @overload(primitive, target="cpu", jit_options={"forceinline": True})
        def use(x):
            return lambda x: compiled(x)  # type: ignore[call-arg]  # numba passes `typing` itself

    def extreme(primitive: Any, name: str, wins: str) -> None:
        """The primitive is LLVM's instruction for the larger or smaller of two floats, which NaN wins.

        LLVM turns a loop of it into one over vectors, where a comparison with a NaN test would keep the loop scalar.
        "nsz", as it may return either zero: 3 machine instructions for a vector instead of 9.
        """

        @intrinsic
        def compiled(typing, x, y):
            def codegen(context, builder, signature, args):
                kind = args[0].type
                if llvm_version_info < (18,):  # which does not know how x86 does it
                    first = builder.or_(
                        builder.fcmp_ordered(wins, *args), builder.fcmp_unordered("uno", args[0], args[0])
                    )
                    return builder.select(first, *args)
                function = builder.module.declare_intrinsic(name, [kind], ir.FunctionType(kind, [kind, kind]))
                return builder.call(function, args, fastmath=("nsz",))

            return x(x, x), codegen

        @overload(primitive, target="cpu", jit_options={"forceinline": True})
        def use(x, y):
            return lambda x, y: compiled(x, y)  # type: ignore[call-arg]  # numba passes `typing` itself

    i64, double = ir.IntType(64), ir.DoubleType()
    i16, i32, half, single = ir.IntType(16), ir.IntType(32), ir.HalfType(), ir.FloatType()

    def round_to_bfloat16(builder: Any, x: Any) -> Any:
        bits = builder.bitcast(x, i32)
        odd = builder.and_(builder.lshr(bits, ir.Constant(i32, 16)), ir.Constant(i32, 1))
        rounded = builder.lshr(builder.add(builder.add(bits, ir.Constant(i32, 0x7FFF)), odd), ir.Constant(i32, 16))
        is_nan = builder.fcmp_unordered("uno", x, x)
        return builder.trunc(builder.select(is_nan, ir.Constant(i32, 0x7FC0), rounded), i16)

    def widen_bfloat16(builder: Any, x: Any) -> Any:
        return builder.bitcast(builder.shl(builder.zext(x, i32), ir.Constant(i32, 16)), single)

    instruction(half_to_float, types.float32, types.uint16, lambda b, x: b.fpext(b.bitcast(x, half), single))
    instruction(float_to_half, types.uint16, types.float32, lambda b, x: b.bitcast(b.fptrunc(x, half), i16))
    instruction(bits_of_float, types.int32, types.float32, lambda b, x: b.bitcast(x, i32))
    instruction(float_of_bits, types.float32, types.int32, lambda b, x: b.bitcast(x, single))
    instruction(bits_of_double, types.int64, types.float64, lambda b, x: b.bitcast(x, i64))
    instruction(double_of_bits, types.float64, types.int64, lambda b, x: b.bitcast(x, double))
    instruction(bfloat16_to_float, types.float32, types.uint16, widen_bfloat16)
    instruction(float_to_bfloat16, types.uint16, types.float32, round_to_bfloat16)
    extreme(maximum, "llvm.maximum", ">")
    extreme(minimum, "llvm.minimum", "<")
    vecmath.register(overload, types)
