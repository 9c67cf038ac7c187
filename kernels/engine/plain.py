"""Kernels without a compiler: the text of a program is Python, and is run as it stands.

Where LLVM cannot be imported (in a browser, on a new Python), or numba for the few programs that only numba translates,
a loop's text means the same: numpy's numbers round and wrap as compiled ones do, and what a caller passes becomes the
type that the signature says. A number is as exact as there; it takes about a thousand times as long. This is said once.
"""

from __future__ import annotations

import ast
import builtins
import linecache
import math
import os
import sys
import warnings
from collections.abc import Callable, Hashable
from functools import cache as once
from typing import Any

import numpy as np

from .program import Program
from .translate.instructions import maths
from .translate.promote import INTEGERS


def can_compile() -> bool:
    """Whether loops become machine code here: they may not (`NUMBA_DISABLE_JIT=1`), or there is no LLVM."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0") and has_llvm()


@once
def has_llvm() -> bool:
    """Whether LLVM can be imported; where it cannot, that is said."""
    try:
        import llvmlite.binding  # noqa: F401  # here, because importing it takes 40 ms, and no kernel may be needed
    except (ImportError, OSError) as problem:  # the second where a library of the system is missing
        say_once("llvmlite", problem)
        return False
    return True


@once
def say_once(package: str, problem: Exception) -> None:
    """Warns that loops run as Python, and says what to install."""
    if os.environ.get("REDISPATCH_QUIET", "0") in ("", "0"):
        remedy = (
            "There is none for browsers" if sys.platform == "emscripten" else "`pip install numba` has them compiled"
        )
        warnings.warn(
            f"{package} cannot be imported ({problem}), so kernels run as plain Python: the same results, a hundred to "
            f"a thousand times slower. {remedy}; REDISPATCH_QUIET=1 silences this.",
            stacklevel=2,
        )


def entry(program: Program, signature: tuple[str, ...]) -> Callable[..., Any]:
    """The loop of a program as a function, called as a compiled one is."""
    loop: Any = loaded(program)[program.compiled[-1]]
    numbers = [(at, number_of(kind)) for at, kind in enumerate(signature) if not kind.endswith("[]")]

    def run(*args: Any) -> Any:
        given = list(args)
        for at, made in numbers:
            given[at] = made(given[at])
        with np.errstate(all="ignore"):
            found = loop(*given)
        return found.item() if isinstance(found, np.generic) else found

    return run


@once
def number_of(kind: str) -> Callable[[Any], Any]:
    """The function that makes a number of a signature's type from what a caller passes.

    An int64 stays Python's: most are indices, which it counts in a third of numpy's time.
    """
    if kind == "int64":
        return lambda x: x if type(x) is int and -(1 << 63) <= x < 1 << 63 else wrapped(x)
    if kind == "bool":
        return bool
    made = np.dtype(kind).type
    return made if np.dtype(kind).kind in "fc" else lambda x: made(np.int64(wrapped(x)).astype(kind))


def wrapped(x: Any) -> int:
    """An integer as the 64 bits of a register have it, signed."""
    return (int(x) + (1 << 63)) % (1 << 64) - (1 << 63)


# What words of a program mean where numpy's and Python's own would raise, or would compute in another type ------------


class _Words(ast.NodeTransformer):
    """Writes an index without its type, `x[uint64(i)]`, which only a compiler needs."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.slice, ast.Call) and ast.unparse(node.slice.func) == "uint64":
            (node.slice,) = node.slice.args
        return node


def integer(kind: type[np.integer]) -> Callable[[Any], Any]:
    """The conversion to a type of integers, which wraps, and takes a float towards zero."""

    def convert(x: Any) -> Any:
        if type(x) is int:
            return np.int64(wrapped(x)).astype(kind)
        return kind(x if isinstance(x, np.generic | bool) else np.float64(x))

    return convert


def kept(name: str) -> Callable[..., Any]:
    """A function of `math` by numpy's of that name: of a float32 it is one, and nothing raises."""
    function = getattr(np, name)
    return lambda *numbers: function(*(x if isinstance(x, np.inexact) else np.float64(x) for x in numbers))


def in_first_type(function: Callable[..., float]) -> Callable[..., Any]:
    """A function of `math` that numpy has not. Where Python raises, there is nothing to say but NaN."""

    def call(x: Any) -> Any:
        try:
            found = function(x)
        except (ValueError, OverflowError):
            found = math.nan
        return np.float32(found) if isinstance(x, np.float32) else np.float64(found)

    return call


def complex_of(real: Any, imaginary: Any = None) -> Any:
    """`complex(...)`: of two float32 a complex64."""
    single = all(isinstance(x, np.float32 | np.complex64) for x in (real, imaginary) if x is not None)
    made = np.complex64(real) if single else np.complex128(real)
    if imaginary is not None:
        made = type(made)(complex(real, imaginary))
    return made


def whole(x: Any) -> Any:
    """`int(x)`: an integer keeps its type."""
    return x if isinstance(x, int | np.integer) else int(np.int64(x))


def real(x: Any) -> Any:
    """`float(x)`: a float keeps its type."""
    return x if isinstance(x, np.floating) else np.float64(x)


def by_numpy(function: Callable[..., Any], wholly: bool) -> Callable[..., Any]:
    """A function of `math` by numpy's, whose name may begin with "arc"; `wholly`: its result becomes an integer."""
    name = function.__name__
    found = next((one for one in (name, f"arc{name[1:]}") if hasattr(np, one)), None)
    made = in_first_type(function) if found is None else kept(found)
    return (lambda x: whole(made(x))) if wholly else made


WORDS: dict[Any, Any] = {
    **{one: by_numpy(one, facts.whole) for one, facts in maths().items() if not isinstance(one, np.ufunc)},
    **{one: by_numpy(one, False) for one in (math.isnan, math.isinf, math.isfinite, math.gamma, math.lgamma)},
    **{np.dtype(name).type: integer(np.dtype(name).type) for name in INTEGERS},
    complex: complex_of, int: whole, float: real,
}  # fmt: skip


class Maths:
    """The module `math` of such a program."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(math, name)
        return WORDS[found] if callable(found) and found in WORDS else found


def loaded(program: Program) -> dict[str, Any]:
    """The functions of a program, made of its text, by name."""
    text = ast.unparse(_Words().visit(ast.parse("\n\n".join(program.parts))))
    filename = f"<redispatch kernel {program.compiled[-1]} {program.digest()[:16]}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    scope: dict[str, Any] = {word: WORDS[getattr(builtins, word)] for word in ("complex", "int", "float")}
    for word, value in program.namespace.items():
        known = isinstance(value, Hashable) and value in WORDS
        scope[word] = Maths() if value is math else WORDS[value] if known else value
    exec(compile(text, filename, "exec"), scope)
    return scope
