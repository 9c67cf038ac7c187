"""Machine-near scalar functions: what they mean in Python, and in LLVM's language.

Each is a plain Python function marked `@primitive`, which is its definition (and what runs under
`NUMBA_DISABLE_JIT=1`). `FORMS` has the compiled form: a short function in LLVM's language. Read next: `vecmath/`, the
transcendental functions built on these.
"""

import math
from functools import cache as once
from typing import Any, NamedTuple

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


# What each is in LLVM's language --------------------------------------------------------------------------------------


class Form(NamedTuple):
    """A primitive as a function in LLVM's language.

    Its arguments are %a, %b and %c, its result is %r. The type "real" is that of the first argument, a float: {t} is
    LLVM's word for it, {s} its name in LLVM's functions, and {single} the instructions that make a float32 of %a.
    """

    result: str
    arguments: tuple[str, ...]
    body: str


WORDS = {"float32": ("float", "f32"), "float64": ("double", "f64")}
INTEGERS = {f"{u}int{bits}": f"i{bits}" for u in ("", "u") for bits in (16, 32, 64)}

# Where a double's copysign is rounded to 16 bits by way of 32, LLVM rounds but once, from 64 to 16. It has no
# instruction for that, and calls a function which nothing provides: a null pointer. Behind `canonicalize`, which
# changes no number, it does not see what comes next.
SINGLE = {
    "float32": "%single = bitcast float %a to float",
    "float64": "%same = call double @llvm.canonicalize.f64(double %a)\n  %single = fptrunc double %same to float",
}

# LLVM turns a loop of its own instruction into one over vectors, where a comparison with a NaN test would keep the loop
# scalar. "nsz", as it may return either zero: 3 machine instructions for a vector instead of 9.
EXTREME = "%r = call nsz {{t}} @llvm.{}.{{s}}({{t}} %a, {{t}} %b)"

FORMS: dict[Any, Form] = {
    half_to_float: Form("float32", ("uint16",), "%half = bitcast i16 %a to half\n  %r = fpext half %half to float"),
    float_to_half: Form(
        "uint16", ("real",), "{single}\n  %half = fptrunc float %single to half\n  %r = bitcast half %half to i16"
    ),
    rounded: Form("float32", ("float64",), SINGLE["float64"].replace("%single", "%r")),
    bits_of_float: Form("int32", ("float32",), "%r = bitcast float %a to i32"),
    float_of_bits: Form("float32", ("int32",), "%r = bitcast i32 %a to float"),
    bits_of_double: Form("int64", ("float64",), "%r = bitcast double %a to i64"),
    double_of_bits: Form("float64", ("int64",), "%r = bitcast i64 %a to double"),
    bfloat16_to_float: Form(
        "float32",
        ("uint16",),
        "%wide = zext i16 %a to i32\n  %bits = shl i32 %wide, 16\n  %r = bitcast i32 %bits to float",
    ),
    float_to_bfloat16: Form(
        "uint16",
        ("float32",),
        """%bits = bitcast float %a to i32
  %down = lshr i32 %bits, 16
  %odd = and i32 %down, 1
  %half = add i32 %bits, 32767
  %sum = add i32 %half, %odd
  %rounded = lshr i32 %sum, 16
  %none = fcmp uno float %a, %a
  %found = select i1 %none, i32 32704, i32 %rounded
  %r = trunc i32 %found to i16""",
    ),
    bits_of_turn: Form(  # the 192 bits that count, from the byte in which they begin; 32 bytes hold them
        "int64",
        ("int64",) * 3,
        f"""%shift = sub i64 {TWO_OVER_PI_BITS - 190}, %b
  %byte = lshr i64 %shift, 3
  %start = getelementptr i8, ptr @two_over_pi, i64 %byte
  %bytes = load i256, ptr %start, align 1
  %left = and i64 %shift, 7
  %wide_left = zext i64 %left to i256
  %aligned = lshr i256 %bytes, %wide_left
  %m = zext i64 %a to i256
  %fraction = mul i256 %aligned, %m
  %before = mul i64 48, %c
  %down = sub i64 144, %before
  %wide_down = zext i64 %down to i256
  %found = lshr i256 %fraction, %wide_down
  %word = trunc i256 %found to i64
  %r = and i64 %word, {2**48 - 1}""",
    ),
    seed_from: Form("uint64", ("uint64",) * 2, "%r = bitcast i64 %a to i64"),
    offset_from: Form("uint64", ("uint64",) * 2, "%r = bitcast i64 %b to i64"),
    fma: Form("real", ("real",) * 3, "%r = call {t} @llvm.fma.{s}({t} %a, {t} %b, {t} %c)"),
    maximum: Form("real", ("real",) * 2, EXTREME.format("maximum")),
    minimum: Form("real", ("real",) * 2, EXTREME.format("minimum")),
}
TABLES = {bits_of_turn: f"@two_over_pi = internal constant i{TWO_OVER_PI_BITS + 256} {TWO_OVER_PI}\n"}


def symbol(primitive: Any, real: str) -> str:
    """The name of a primitive's function, for a first argument of that type."""
    return f"primitive.{primitive.__name__}" + f".{real}" * ("real" in FORMS[primitive].arguments)


@once
def text(primitive: Any, real: str) -> str:
    """A primitive's function, for a first argument of that type."""
    form = FORMS[primitive]
    word, short = WORDS.get(real, ("", ""))
    words = {**INTEGERS, **{name: one[0] for name, one in WORDS.items()}, "real": word}
    parameters = ", ".join(f"{words[one]} %{name}" for one, name in zip(form.arguments, "abc", strict=False))
    body = form.body.format(t=word, s=short, single=SINGLE.get(real, ""))
    head = f"define {words[form.result]} @{symbol(primitive, real)}({parameters}) alwaysinline"
    return f"{TABLES.get(primitive, '')}{head} {{\n  {body}\n  ret {words[form.result]} %r\n}}\n"


@once
def _library(primitive: Any, real: str) -> Any:
    """A primitive's function, to be linked to those that numba translates."""
    from llvmlite.binding import parse_assembly  # here, because importing numba takes 0.3 s
    from numba.core.registry import cpu_target

    library = cpu_target.target_context.codegen().create_library(symbol(primitive, real))
    library.add_llvm_module(parse_assembly(text(primitive, real)))
    library.finalize()
    return library


@once
def register() -> None:
    """Teach numba the primitives: each is a call of its function."""
    for function, form in FORMS.items():
        _register(function, form)


def _register(primitive: Any, form: Form) -> None:
    from llvmlite import ir  # here, because importing numba takes 0.3 s
    from numba import types
    from numba.core.cgutils import get_or_insert_function
    from numba.core.typing import signature
    from numba.extending import lower_builtin, type_callable

    typers = {
        1: lambda x: typed(x),
        2: lambda x, y: typed(x, y),
        3: lambda x, y, z: typed(x, y, z),
    }

    def typed(*given: Any) -> Any:
        known = {"real": given[0], **{name: getattr(types, name) for name in (*INTEGERS, *WORDS)}}
        return signature(known[form.result], *(known[argument] for argument in form.arguments))

    @type_callable(primitive)
    def typer(context):
        return typers[len(form.arguments)]

    @lower_builtin(primitive, *[types.Any] * len(form.arguments))
    def lower(context, builder, called, values):
        result = context.get_value_type(called.return_type)
        kind = ir.FunctionType(result, [value.type for value in values])
        name = symbol(primitive, str(called.args[0]))
        context.add_linking_libs((_library(primitive, str(called.args[0])),))
        return builder.call(get_or_insert_function(builder.module, kind, name), values)
