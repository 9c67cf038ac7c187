"""The primitives of a GPU's kernels alone, and what the CPU's become there.

Vectors of 16 bytes (`load_4`, `store_4`, ...) are how a kernel reaches the memory's full speed: numba has no word for
them. `shuffle_down`, `shuffle_up` and `shuffle_across` take a number from another lane of the warp. `register()` gives
numba-cuda the compiled forms of these, of the primitives in `kernels/engine/primitives.py`, and of the functions in
`kernels/maths/vecmath/`: NVIDIA's libdevice where it has them, the bodies of the CPU elsewhere. Read next:
`compiler.py`.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from functools import cache as once
from types import FunctionType
from typing import Any

import numpy as np
from numpy import float32, float64

from redispatch.kernels.engine import primitives
from redispatch.kernels.engine.program import primitive
from redispatch.kernels.maths.vecmath import define


def _on_a_gpu(*given: Any) -> Any:
    raise NotImplementedError("this function has a meaning in compiled CUDA kernels alone")


def _load(count: int) -> Callable:
    def load(x, at):
        """So many elements of a pointer, as a tuple; `at` is a multiple of their number. Of complex numbers even one is
        one access, where `x[at]` takes two."""
        return _on_a_gpu(x, at)

    return _named(load, f"load_{count}")


def _store(count: int) -> Callable:
    def store(out, at, values):
        """Writes a tuple of so many elements to a place that is a multiple of their number."""
        return _on_a_gpu(out, at, values)

    return _named(store, f"store_{count}")


def _named(function: Callable, name: str) -> Callable:
    function.__name__ = function.__qualname__ = name
    return primitive(function)


LOADS = {count: _load(count) for count in (1, 2, 4, 8, 16)}
STORES = {count: _store(count) for count in LOADS}
load_1, load_2, load_4, load_8, load_16 = LOADS.values()
store_1, store_2, store_4, store_8, store_16 = STORES.values()


@primitive
def shuffle_down(x, distance):
    """The number that the lane so much further on in the warp has; all lanes take part."""
    return _on_a_gpu(x, distance)


@primitive
def shuffle_across(x, distance):
    """The number that the lane has whose number differs by this bit; all lanes take part."""
    return _on_a_gpu(x, distance)


@primitive
def shuffle_up(x, distance):
    """The number that the lane so much before in the warp has, or its own; of a tuple each part."""
    return _on_a_gpu(x, distance)


@primitive
def advanced(x, count):
    """A pointer so many elements further on."""
    return _on_a_gpu(x, count)


@primitive
def swap_if_equal(x, at, old, new):
    """Writes `new` to a pointer's element where `old` is, in one step that no other thread comes between; what was
    there. Elements are int32 or int64."""
    return _on_a_gpu(x, at, old, new)


@primitive
def add_at(x, at, value):
    """Adds to a pointer's element in one step: int64, float32 or float64."""
    return _on_a_gpu(x, at, value)


@primitive
def product(x, y):
    """x * y of floats, rounded: it is not fused with a sum behind it."""
    return _on_a_gpu(x, y)


# The functions of libdevice; those for float32 have an f behind their names.
LIBDEVICE = (
    "acos acosh asin asinh atan atan2 atanh cos cosh erf erfc erfinv exp exp2 expm1 lgamma log log10 log1p log2 pow "
    "sin sinh tan tanh"
).split()


@once
def register() -> None:
    """Teaches numba-cuda all of these."""
    import numba.cuda.extending as extending  # here, because importing numba takes 0.3 s
    from numba import types

    overload: Any = vars(extending)["overload"]  # its stubs, where there are any, are of the older numba.cuda

    _register_primitives(overload, types)
    _register_seeds(overload, types)
    _register_vectors(overload, types)
    _register_shuffle(overload, types)
    _register_pointers(overload, types)
    _register_rounding()
    for function, bodies in define.BODIES.items():
        _register_function(function, bodies, overload, types)


def _instruction(overload: Any, function: Callable, result: Any, arguments: tuple[Any, ...], emit: Any) -> None:
    """Has `function` be what `emit(builder, *values)` writes; None among the types is that of the first argument."""
    import numba.cuda.extending as extending  # here, because importing numba takes 0.3 s

    intrinsic: Any = extending.intrinsic

    def signature_of(kind: Any) -> Any:
        return (result or kind)(*(argument or kind for argument in arguments))

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return emit(builder, *values)

    forms = (  # numba asks for each parameter by its name
        lambda typingctx, x: (signature_of(x), codegen),
        lambda typingctx, x, y: (signature_of(x), codegen),
        lambda typingctx, x, y, z: (signature_of(x), codegen),
    )
    instruction = intrinsic(forms[len(arguments) - 1])
    overload(function, strict=False)(lambda *given: calling(instruction, len(arguments)))


def _register_primitives(overload: Any, types: Any) -> None:
    from llvmlite import ir  # here, because importing numba takes 0.3 s

    half, single, double = ir.HalfType(), ir.FloatType(), ir.DoubleType()
    i16, i32, i64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)

    def round_to_half(builder: Any, x: Any) -> Any:
        x = builder.fptrunc(x, single) if x.type == double else x
        return builder.bitcast(builder.fptrunc(x, half), i16)

    def round_to_bfloat16(builder: Any, x: Any) -> Any:
        bits = builder.bitcast(x, i32)
        odd = builder.and_(builder.lshr(bits, ir.Constant(i32, 16)), ir.Constant(i32, 1))
        nearest = builder.lshr(builder.add(builder.add(bits, ir.Constant(i32, 0x7FFF)), odd), ir.Constant(i32, 16))
        is_nan = builder.fcmp_unordered("uno", x, x)
        return builder.trunc(builder.select(is_nan, ir.Constant(i32, 0x7FC0), nearest), i16)

    def extreme(wins: str) -> Any:
        def emit(builder: Any, x: Any, y: Any) -> Any:
            first = builder.or_(builder.fcmp_ordered(wins, x, y), builder.fcmp_unordered("uno", x, x))
            return builder.select(first, x, y)

        return emit

    def put(function: Callable, result: Any, arguments: tuple[Any, ...], emit: Any) -> None:
        _instruction(overload, function, result, arguments, emit)

    def rounded_product(builder: Any, x: Any, y: Any) -> Any:
        name = f"llvm.nvvm.mul.rn.{'f' if x.type == single else 'd'}"
        kind = ir.FunctionType(x.type, [x.type, x.type])
        return builder.call(builder.module.globals.get(name) or ir.Function(builder.module, kind, name), [x, y])

    put(product, None, (None,) * 2, rounded_product)

    def widen_bfloat16(builder: Any, x: Any) -> Any:
        return builder.bitcast(builder.shl(builder.zext(x, i32), ir.Constant(i32, 16)), single)

    put(primitives.half_to_float, types.float32, (types.uint16,), lambda b, x: b.fpext(b.bitcast(x, half), single))
    put(primitives.bfloat16_to_float, types.float32, (types.uint16,), widen_bfloat16)
    put(primitives.float_to_half, types.uint16, (None,), round_to_half)
    put(primitives.float_to_bfloat16, types.uint16, (types.float32,), round_to_bfloat16)
    put(primitives.rounded, types.float32, (types.float64,), lambda b, x: b.fptrunc(x, single))
    put(primitives.bits_of_float, types.int32, (types.float32,), lambda b, x: b.bitcast(x, i32))
    put(primitives.float_of_bits, types.float32, (types.int32,), lambda b, x: b.bitcast(x, single))
    put(primitives.bits_of_double, types.int64, (types.float64,), lambda b, x: b.bitcast(x, i64))
    put(primitives.double_of_bits, types.float64, (types.int64,), lambda b, x: b.bitcast(x, double))
    put(primitives.fma, None, (None,) * 3, lambda b, x, y, z: b.fma(x, y, z))
    put(primitives.maximum, None, (None,) * 2, extreme(">"))
    put(primitives.minimum, None, (None,) * 2, extreme("<"))


def _register_seeds(overload: Any, types: Any) -> None:
    """Takes a generator's seed and offset from memory, where a graph's kernels find them."""
    from llvmlite import ir  # here, because importing numba takes 0.3 s

    i64 = ir.IntType(64)

    def from_memory(builder: Any, seed: Any, offset: Any, place: int, otherwise: Any) -> Any:
        """Number `place` at the address that `seed` is, where the offset's highest bit says so."""
        with builder.if_else(builder.icmp_signed("<", offset, ir.Constant(i64, 0))) as (then, not_then):
            with then:
                at = builder.gep(builder.inttoptr(seed, i64.as_pointer(1)), [ir.Constant(i64, place)])
                found, from_then = builder.load(at, align=8), builder.block
            with not_then:
                from_other = builder.block
        result = builder.phi(i64)
        result.add_incoming(found, from_then)
        result.add_incoming(otherwise, from_other)
        return result

    def seed_in_memory(builder: Any, seed: Any, offset: Any) -> Any:
        return from_memory(builder, seed, offset, 0, seed)

    def offset_in_memory(builder: Any, seed: Any, offset: Any) -> Any:
        more = builder.and_(offset, ir.Constant(i64, primitives.FROM_MEMORY - 1))
        return builder.add(from_memory(builder, seed, offset, 1, ir.Constant(i64, 0)), more)

    two = (types.uint64,) * 2
    _instruction(overload, primitives.seed_from, types.uint64, two, seed_in_memory)
    _instruction(overload, primitives.offset_from, types.uint64, two, offset_in_memory)


def _vector_at(context: Any, builder: Any, x: Any, given: Any, at: Any, count: int) -> tuple[Any, int, int, Any]:
    """The address as one of a vector; how many elements are in each of its words, or how many words in each
    element; an element's LLVM type, a part's where it is complex."""
    from llvmlite import ir  # here, because importing numba takes 0.3 s
    from numba import types

    kind, pointer = x.dtype, given
    if isinstance(x, types.Array):
        pointer = context.make_array(x)(context, builder, given).data
    parts = 2 if isinstance(kind, types.Complex) else 1
    element = context.get_data_type(kind.underlying_float if parts == 2 else kind)
    size = kind.bitwidth // 8
    each = max(1, min(4 // size, count))
    word = element if each == 1 else ir.IntType(8 * size * each)
    vector = ir.VectorType(word, parts * count // each).as_pointer(pointer.type.addrspace)
    return builder.bitcast(builder.gep(pointer, [at]), vector), each, parts, element


def _register_vectors(overload: Any, types: Any) -> None:
    """Elements narrower than 4 bytes travel in words, out of which they are cut: NVVM would split the access."""
    import numba.cuda.extending as extending  # here, because importing numba takes 0.3 s
    from llvmlite import ir

    intrinsic: Any = extending.intrinsic

    i32 = ir.IntType(32)

    def put(count: int) -> None:
        @intrinsic
        def load(typingctx, x, at):
            def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                kind = signature.args[0].dtype
                where, each, parts, element = _vector_at(
                    context, builder, signature.args[0], values[0], values[1], count
                )
                found = builder.load(where, align=count * kind.bitwidth // 8)
                elements = []
                for k in range(count):
                    word = builder.extract_element(found, ir.Constant(i32, parts * k // each))
                    if parts == 2:
                        number = context.make_complex(builder, kind)
                        number.real, number.imag = word, builder.extract_element(found, ir.Constant(i32, 2 * k + 1))
                        word = number._getvalue()
                    if each > 1:
                        shift = ir.Constant(word.type, k % each * kind.bitwidth)
                        word = builder.trunc(builder.lshr(word, shift), element)
                    elements.append(word)
                return context.make_tuple(builder, signature.return_type, elements)

            return types.UniTuple(x.dtype, count)(x, types.int64), codegen

        @intrinsic
        def store(typingctx, out, at, values):
            def codegen(context: Any, builder: Any, signature: Any, given: Any) -> Any:
                kind, width = signature.args[0].dtype, signature.args[0].dtype.bitwidth
                where, each, parts, _ = _vector_at(context, builder, signature.args[0], given[0], given[1], count)
                elements = [builder.extract_value(given[2], k) for k in range(count)]
                if parts == 2:
                    numbers = [context.make_complex(builder, kind, one) for one in elements]
                    elements = [part for one in numbers for part in (one.real, one.imag)]
                found = ir.Constant(where.type.pointee, ir.Undefined)
                for k in range(parts * count // each):
                    word = elements[k * each]
                    if each > 1:
                        wide = ir.IntType(width * each)
                        word = builder.zext(word, wide)
                        for j in range(1, each):
                            part = builder.zext(elements[k * each + j], wide)
                            word = builder.or_(word, builder.shl(part, ir.Constant(wide, j * width)))
                    found = builder.insert_element(found, word, ir.Constant(i32, k))
                builder.store(found, where, align=count * width // 8)
                return context.get_dummy_value()

            return types.void(out, types.int64, types.UniTuple(out.dtype, count)), codegen

        overload(LOADS[count], strict=False)(lambda x, at: lambda x, at: load(x, at))
        overload(STORES[count], strict=False)(lambda out, at, values: lambda out, at, values: store(out, at, values))

    for count in LOADS:
        put(count)


def _register_pointers(overload: Any, types: Any) -> None:
    import numba.cuda.extending as extending  # here, because importing numba takes 0.3 s
    from llvmlite import ir

    intrinsic: Any = extending.intrinsic

    @intrinsic
    def step(typingctx, x, count):
        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return builder.gep(values[0], [values[1]])

        return x(x, types.int64), codegen

    @intrinsic
    def swap(typingctx, x, at, old, new):
        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            where = builder.gep(values[0], [values[1]])
            found = builder.cmpxchg(where, values[2], values[3], "monotonic", "monotonic")
            return builder.extract_value(found, 0)

        return x.dtype(x, types.int64, x.dtype, x.dtype), codegen

    @intrinsic
    def increase(typingctx, x, at, value):
        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            where, kind = builder.gep(values[0], [values[1]]), values[2].type
            if isinstance(signature.args[2], types.Integer):
                builder.atomic_rmw("add", where, values[2], "monotonic")
            else:  # NVVM knows no such addition of floats
                letter = "f" if signature.args[2] == types.float32 else "d"
                function = ir.FunctionType(ir.VoidType(), [where.type, kind])
                text = f"red.add.f{signature.args[2].bitwidth} [$0], $1;"
                builder.call(ir.InlineAsm(function, text, f"l,{letter}", side_effect=True), [where, values[2]])
            return context.get_dummy_value()

        return types.void(x, types.int64, x.dtype), codegen

    overload(add_at, strict=False)(lambda x, at, value: lambda x, at, value: increase(x, at, value))
    overload(advanced, strict=False)(lambda x, count: lambda x, count: step(x, count))
    overload(swap_if_equal, strict=False)(lambda x, at, old, new: lambda x, at, old, new: swap(x, at, old, new))


def _register_shuffle(overload: Any, types: Any) -> None:
    from numba import cuda, njit  # here, because importing numba takes 0.3 s

    every = 0xFFFFFFFF

    @njit
    def complex_of(real, imag):
        return complex(real, imag)

    def put(function: Any, shuffle: Any) -> None:
        @overload(function, strict=False)
        def choose(x, distance):
            if isinstance(x, types.BaseTuple):
                return lambda x, distance: (function(x[0], distance), function(x[1], distance))
            if isinstance(x, types.Complex):
                return lambda x, distance: complex_of(
                    shuffle(every, x.real, distance), shuffle(every, x.imag, distance)
                )
            if isinstance(x, types.Integer) and x.bitwidth < 32:
                narrow = x
                return lambda x, distance: narrow(shuffle(every, types.int32(x), distance))
            return lambda x, distance: shuffle(every, x, distance)

    put(shuffle_down, cuda.shfl_down_sync)
    put(shuffle_up, cuda.shfl_up_sync)
    put(shuffle_across, cuda.shfl_xor_sync)


def _register_rounding() -> None:
    """numpy's functions that numba-cuda leaves out, by libdevice's."""
    from llvmlite import ir  # here, because importing numba takes 0.3 s
    from numba.cuda.ufuncs import ufunc_db

    def calling_library(name: str) -> Callable[..., Any]:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            kind = ir.FunctionType(values[0].type, [value.type for value in values])
            found = builder.module.globals.get(name)
            return builder.call(found or ir.Function(builder.module, kind, name), values)

        return emit

    wanted: list[tuple[np.ufunc, str]] = [
        (np.floor, "floor"), (np.ceil, "ceil"), (np.trunc, "trunc"), (np.rint, "rint"), (np.sqrt, "sqrt"),
        (np.abs, "fabs"), (np.fmod, "fmod"), (np.nextafter, "nextafter"),
    ]  # fmt: skip
    for function, name in wanted:
        count = function.nin
        known = ufunc_db().setdefault(function, {})
        known.setdefault(f"{'f' * count}->f", calling_library(f"__nv_{name}f"))
        known.setdefault(f"{'d' * count}->d", calling_library(f"__nv_{name}"))
    _register_complex(ufunc_db())


def _register_function(function: Any, bodies: dict[str, Any], overload: Any, types: Any) -> None:
    from numba import njit  # here, because importing numba takes 0.3 s
    from numba.cuda import libdevice

    name = function.__name__ if function.__name__ in LIBDEVICE else None
    single_call = getattr(libdevice, f"{name}f") if name else None
    double_call = getattr(libdevice, name) if name else None

    @overload(function, strict=False)
    def choose(*numbers):
        if any(isinstance(x, types.Complex) for x in numbers):
            wide = bodies.get("complex")
            if isinstance(wide, FunctionType):
                return define.loaded(wide, "float32" if all(x == types.complex64 for x in numbers) else "float64")
            known = OF_COMPLEX.get(function.__name__)
            return (
                None
                if known is None
                else calling(njit(known) if isinstance(known, FunctionType) else known, len(numbers))
            )
        if all(x == types.float32 for x in numbers):
            if single_call is not None:
                return calling(single_call, len(numbers))
            if "float32" in bodies:
                return define.loaded(bodies["float32"], "float32")
        if double_call is not None:
            double = calling(double_call, len(numbers))
        else:
            double = define.loaded(bodies["float64"], "float64")
        if all(x == types.float64 for x in numbers):
            return double
        return converting(double, len(numbers), all(x == types.float32 for x in numbers))


def calling(function: Any, count: int) -> Any:
    """A function of so many arguments that calls another one."""
    return (lambda x: function(x), lambda x, y: function(x, y), lambda x, y, z: function(x, y, z))[count - 1]


def converting(function: Any, count: int, single: bool) -> Any:
    """The float64 function for other real numbers; for float32 ones its result is rounded."""
    from numba import njit  # here, because importing numba takes 0.3 s

    double, to = njit(function), float32 if single else float64
    return (
        lambda x: to(double(float64(x))),
        lambda x, y: to(double(float64(x), float64(y))),
        lambda x, y, z: to(double(float64(x), float64(y), float64(z))),
    )[count - 1]


# --- complex numbers, by functions that numba-cuda has: those of `cmath` ----------------------------------------------

LN_2 = math.log(2)


def exp2(z):
    return cmath.exp(z * LN_2)


def log1p(z):
    return cmath.log(z + 1)


def log2(z):
    return cmath.log(z) / LN_2


def modulus(z):
    return math.hypot(z.real, z.imag)


def root(z):
    return cmath.sqrt(z)


def power(z, w):
    return z**w


IN_CMATH = "exp log log10 sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh".split()
OF_COMPLEX: dict[str, Callable[..., Any]] = {
    **{name: getattr(cmath, name) for name in IN_CMATH},
    **{function.__name__: function for function in (exp2, log1p, log2)},
    "pow": power,
}


def _register_complex(ufuncs: dict[Any, dict[str, Callable[..., Any]]]) -> None:
    """Adds `np.abs` and `np.sqrt` of complex numbers to numba-cuda's table of numpy's functions."""

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return context.compile_internal(builder, function, signature, values)

        return emit

    for name, function, loops in ((np.abs, modulus, ("F->f", "D->d")), (np.sqrt, root, ("F->F", "D->D"))):
        known = ufuncs.setdefault(name, {})
        for loop in loops:
            known.setdefault(loop, compiled(function))
