"""One Python definition per function, and for each target and type the body that is compiled.

    exp = of_numpy("exp", np.exp, ...)    # what it means: what runs without a compiler

    @compiled(exp, "float64")
    def exp_float64(x): ...               # what is compiled for the CPU, and LLVM turns into vector instructions

    @in_double
    def lgamma(x): ...                    # what neither numpy nor math has: the body says what it means, too

    @paired
    def tail(high, low): ...              # a part of such bodies

    @compiled_paired(times_exp)
    def times_exp_body(x, rest, y): ...   # both float types, from what is written for float64: see `single`

A body is plain Python too, so it can be run without a compiler. It computes all branches and selects, because a vector
lane cannot jump. A float32 without a body of its own is computed in float64 and rounded once; complex numbers are left
to numpy's functions, nearly all. A target beside the CPU is one more `overload` of the same function in `register`,
with its own library's functions for bodies. Read next: `pieces.py`.
"""

import sys
from collections.abc import Callable
from functools import cache as once
from functools import update_wrapper
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from ...engine.primitives import rounded
from ...engine.program import Program, primitive
from . import coefficients

# Adding and subtracting 1.5 * 2^52 (2^23) rounds to the nearest integer; meanwhile the lowest bits are that integer.
ROUND, ROUND_32 = 6755399441055744.0, 12582912.0

BODIES: dict[Callable, dict[str, Callable]] = {}


def compiled(function: Callable, *types: str) -> Callable[[Callable], Callable]:
    """Decorates what `function` is compiled from for these types: "float32", "float64" or "complex"."""

    def keep(body: Callable) -> Callable:
        bodies = BODIES.setdefault(function, {})
        for name in types:
            assert name not in bodies, f"{function.__name__} has a body for {name} already"
            bodies[name] = body
        return body

    return keep


def paired(function: Any) -> Any:
    """Decorates a function written for float64 of which there is a float32 form, too: `single`."""
    function.is_paired = True
    return function


@once
def single(function: Any) -> Any:
    """Returns the float32 form of a function written for float64.

    A name for which its module, this one or coefficients.py has another one that ends in `_32` stands for that:
    `LN2_32` instead of `LN2`; and what is `paired` stands for its own float32 form.
    """
    scope = dict(function.__globals__)
    known = {**vars(coefficients), **globals(), **scope}
    for word in function.__code__.co_names:
        if f"{word}_32" in known:
            scope[word] = known[f"{word}_32"]
        elif hasattr(scope.get(word), "is_paired"):
            scope[word] = single(scope[word])
    form = FunctionType(function.__code__, scope, function.__name__)
    form.__dict__.update(function.__dict__)
    return form


def compiled_paired(function: Callable) -> Callable[[Callable], Callable]:
    """Decorates the float64 body of `function`, whose float32 form is the body for float32."""

    def keep(body: Callable) -> Callable:
        compiled(function, "float32")(single(body))
        return compiled(function, "float64")(body)

    return keep


def quiet(function: Callable, *numbers: Any) -> Any:
    """`function(*numbers)`, without numpy's warnings of overflow and division by zero."""
    with np.errstate(all="ignore"):
        return function(*numbers)


def of_numpy(name: str, function: np.ufunc, doc: str, *, complex: Callable | None = None) -> Callable:
    """A function that numpy has, for the caller's module; complex numbers are left to numpy, or to `complex`."""
    meaning = with_parameters(function.nin, lambda *numbers: quiet(function, *numbers))
    meaning.__name__ = meaning.__qualname__ = name
    meaning.__doc__, meaning.__module__ = doc, sys._getframe(1).f_globals["__name__"]
    compiled(meaning, "complex")(complex or function)
    return primitive(meaning)


def in_double(body: Callable) -> Callable:
    """Decorates a float64 body: the function that it computes, whose result has the first number's type."""

    def in_first_type(first: Any, *rest: Any) -> Any:
        return type(first)(quiet(body, np.float64(first), *(np.float64(x) for x in rest)))

    meaning = with_parameters(body.__code__.co_argcount, in_first_type)
    update_wrapper(meaning, body)
    del meaning.__wrapped__  # a program calls the function, not its body
    compiled(meaning, "float64")(body)
    return primitive(meaning)


def with_parameters(count: int, function: Callable) -> Any:
    """`function` with one parameter or two: operators that are declared by it read how many numbers it takes."""
    return (lambda x: function(x)) if count == 1 else (lambda x, y: function(x, y))


class Form(NamedTuple):
    """The body from which a function is compiled, for arguments of some types."""

    body: Callable
    real: str  # the type of its literals
    in_double: bool = False  # whether the arguments become float64
    rounds: bool = False  # whether the result becomes float32 again


def form_of(function: Callable, types: tuple[str, ...]) -> Form | None:
    """The form of a function for arguments of these types; None where that is numpy's, of complex numbers."""
    bodies = BODIES[function]
    if any(name.startswith("complex") for name in types):
        wide = bodies["complex"]
        single = all(name == "complex64" for name in types)
        return Form(wide, "float32" if single else "float64") if isinstance(wide, FunctionType) else None
    single = all(name == "float32" for name in types)
    if single and "float32" in bodies:
        return Form(bodies["float32"], "float32")
    doubles = all(name == "float64" for name in types)
    return Form(bodies["float64"], "float64", in_double=not doubles, rounds=single)


@once
def program_of(body: Callable, real: str) -> Program:
    """A body and what it calls, as a program."""
    program = Program(real)
    program.add(body)
    return program


# "contract" lets a multiply and an add become one instruction, which rounds once instead of twice. The translator has
# a rule of its own for that: Note [One rounding].
OPTIONS: dict[str, Any] = dict(error_model="numpy", fastmath={"contract"}, forceinline=True)


@once
def loaded(body: Callable, real: str) -> Any:
    """The body for arguments of one type, as a plain function; what it calls is compiled when it is."""
    import numba  # here, because importing numba takes 0.3 s

    njit: Any = numba.njit  # its stubs do not know all of its options
    program = program_of(body, real)
    namespace = program.load()
    for name in program.compiled[:-1]:
        namespace[name] = njit(no_cpython_wrapper=True, **OPTIONS)(namespace[name])
    return namespace[program.compiled[-1]]


@once
def converting(body: Callable) -> Any:
    """The float64 body, compiled such that other real numbers may be passed."""
    import numba  # here, because importing numba takes 0.3 s

    njit: Any = numba.njit  # its stubs do not know all of its options
    function = loaded(body, "float64")
    doubles = (numba.types.float64,) * function.__code__.co_argcount
    return njit(doubles, no_cpython_wrapper=True, **OPTIONS)(function)


@once
def register() -> None:
    """Give numba the compiled forms."""
    from numba.extending import overload  # here, because importing numba takes 0.3 s

    for function in BODIES:
        _register(function, overload)


def _register(function: Callable, overload: Any) -> None:
    @overload(function, target="cpu", strict=False, jit_options=OPTIONS)  # not strict: the body's parameters have names
    def choose(*numbers):
        form = form_of(function, tuple(map(str, numbers)))
        if form is None:
            wide = BODIES[function]["complex"]
            return lambda *numbers: wide(*numbers)
        if not form.in_double:
            return loaded(form.body, form.real)
        double = converting(form.body)
        if form.rounds:
            return lambda *numbers: rounded(double(*numbers))
        return lambda *numbers: double(*numbers)
