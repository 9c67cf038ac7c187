"""Kernels that are written out: a Python function with its `cuda.threadIdx` and barriers, compiled for any dtypes.

Elementwise kernels and reductions are generated around a scalar function. What has a shape of its own (a product of
matrices, a softmax, a convolution) is a function here, and reads as it runs. It names what differs by dtype:

    load_x, store_out    from memory's bits to the type that is computed in, and back; for each array parameter
    compute              that type; zero and one of it
    number               what makes a number of an int64 argument (`as_argument`)

Arrays come first among the parameters, int64 numbers follow. What several kernels do alike is a `part`, which names
the same. `block_total`, `strip_most` and the like combine what the threads of a block have; they are here because most
such kernels need one. Read next: kernels/cuda/ops/matmul.py, kernels/cuda/ops/softmax.py, kernels/cuda/ops/windows.py.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence
from functools import cache as once
from functools import cached_property
from types import FunctionType
from typing import Any

import numpy as np

from redispatch.dispatch.tensor.operand import DTYPES

from ..engine.convert import CONVERT, conversion, real_type
from ..engine.primitives import maximum
from ..engine.program import AsWhile, integral
from .compiler import CUDA as cuda
from .compiler import Source
from .elementwise import loading, number_from, storage_type, storing
from .intrinsics import shuffle_across
from .launch import Kernel, Launch

WARP, THREADS = 32, 256
int64, uint32 = np.int64, np.uint32


def threads_for(size: int, most: int = THREADS) -> int:
    """The number of threads that share a row of so many elements: of warps a power of 2, as `over_block` demands."""
    return min(most, WARP << (max(size - 1, 0) // WARP).bit_length())


def kept_by_thread(size: int) -> int:
    """The number of elements of a row that each of its threads holds in registers; 0 where they would be too many.

    Few versions, since each is compiled: what a thread has no element for costs a comparison.
    """
    each = -(-size // threads_for(size))
    return next((kept for kept in (4, 16) if each <= kept), 0)


@integral
def divided(n, divisor):
    """n // divisor of numbers below 2^31, in 32 bits: GPUs have no instruction for it, and 64 take thrice as long."""
    return int64(uint32(n) // uint32(divisor))


def conjugate(x):
    return x.conjugate()


# --- what the threads of a block combine ------------------------------------------------------------------------------


def add(a, b):
    return a + b


def multiply(a, b):
    return a * b


@once
def over_lanes(combine: Callable, lanes: int) -> Callable:
    """`combined(x)`: what so many neighbouring lanes of a warp have, combined, for each of them."""
    half = lanes // 2

    @integral
    def combined(x):
        distance = half
        while distance > 0:
            x = combine(x, shuffle_across(x, distance))
            distance >>= 1
        return x

    return combined


def over_block(combine: Callable) -> Callable:
    """`combined(value, parts)`: what all threads of the block have, combined, for each of them. `parts` has room for a
    number per warp, of which there are 2, 4, 8 ... or one.

    The barrier in front is for the threads that still read what a call before left in `parts`. Behind the other one
    each warp combines all of `parts`: lanes that are as far from each other as there are warps have the same number.
    """
    of_warp = over_lanes(combine, WARP)

    @integral
    def combined(value, parts):
        thread, distance = int64(cuda.threadIdx.x), int64(cuda.blockDim.x) >> 5
        value = of_warp(value)
        cuda.syncthreads()
        if thread & 31 == 0:
            parts[thread >> 5] = value
        cuda.syncthreads()
        value = parts[thread & (distance - 1)]
        while distance > 1:
            distance >>= 1
            value = combine(value, shuffle_across(value, distance))
        return value

    return combined


def over_strip(combine: Callable) -> Callable:
    """Combines over the threads of the block that have one place in their warp. `parts` has room for a number per
    thread."""

    @integral
    def combined(value, parts):
        thread = int64(cuda.threadIdx.x)
        cuda.syncthreads()
        parts[thread] = value
        cuda.syncthreads()
        value = parts[thread & 31]
        for warp in range(1, int64(cuda.blockDim.x) >> 5):
            value = combine(value, parts[(thread & 31) + warp * 32])
        return value

    return combined


block_total, strip_total = over_block(add), over_strip(add)
block_most, strip_most = over_block(maximum), over_strip(maximum)  # NaN if one is

# --- from a function to a kernel --------------------------------------------------------------------------------------


def accumulating(dtype: str) -> str:
    """The type in which sums of products of a dtype are formed: int64 for integers, float32 for 16-bit floats."""
    return "int64" if DTYPES[dtype].kind in ("int", "uint", "bool") else DTYPES[dtype].compute


class Written:
    """The kernels that a function is, by dtypes.

    function: its first parameters are `arrays`; all others are int64.
    at_once: how many of its threads a processor is to hold at least, which bounds their registers; 0 where the compiler
    may choose.
    """

    def __init__(self, function: Callable[..., None], arrays: Sequence[str], at_once: int = 0) -> None:
        self.function, self.arrays, self.at_once = function, tuple(arrays), at_once
        self.kernels: dict[Any, Kernel] = {}

    def kernel(self, compute: str, dtypes: Sequence[str], **given: object) -> Kernel:
        """The kernel that computes in a type, with a dtype for each array; `given` are other names, a version each."""
        key = (compute, tuple(dtypes), tuple(sorted(given.items(), key=lambda item: item[0])))
        found = self.kernels.get(key)
        if found is None:
            found = self.kernels[key] = Kernel(lambda: self.source(compute, dtypes, **given))
        return found

    def launch(
        self, compute: str, dtypes: Sequence[str], blocks: int, threads: int = THREADS, /, **given: object
    ) -> Launch:
        """So many blocks of so many threads of that kernel."""
        return Launch(self.kernel(compute, dtypes, **given), (blocks, 1, 1), (threads, 1, 1))

    def spread(self, compute: str, dtypes: Sequence[str], count: int, /, **given: object) -> Launch:
        """A thread for each of `count` elements."""
        return self.launch(compute, dtypes, -(-count // THREADS), **given)

    def source(self, compute: str, dtypes: Sequence[str], **given: object) -> Source:
        """The text for these dtypes, with all that it names."""
        kind = np.dtype(compute)
        known: dict[str, object] = {
            "compute": kind.type,
            "zero": kind.type(0),
            "one": kind.type(1),
            "number": number_from(compute)[1][0] if kind.kind != "c" else None,
            **given,
        }
        for name, dtype in zip(self.arrays, dtypes, strict=True):
            known[f"load_{name}"] = in_turn([*loading(dtype), *conversion(dtype, compute), CONVERT[compute]])
            known[f"store_{name}"] = in_turn(storing(dtype))
        scope = self.function.__globals__
        named = {word: known.get(word, scope.get(word)) for word in self.words if word in known or word in scope}
        named = {word: bound(value, known) for word, value in named.items()}
        count = len(self.parameters) - len(self.arrays)
        signature = (*(f"{storage_type(dtype)}*" for dtype in dtypes), *["int64"] * count)
        threads = known.get("THREADS", THREADS)
        assert isinstance(threads, int)
        bounds: dict[str, Any] = (
            {"threads": threads, "together": max(self.at_once // threads, 1)} if self.at_once else {}
        )
        return Source(self.function.__name__, self.text, named, signature, real_type(compute), **bounds)

    @cached_property
    def tree(self) -> ast.FunctionDef:
        tree = ast.parse(textwrap.dedent(inspect.getsource(self.function))).body[0]
        assert isinstance(tree, ast.FunctionDef)
        if ast.get_docstring(tree) is not None:
            tree.body = tree.body[1:]
        return AsWhile().visit(tree)

    @cached_property
    def text(self) -> str:
        return ast.unparse(self.tree) + "\n"

    @cached_property
    def parameters(self) -> list[str]:
        return [argument.arg for argument in self.tree.args.args]

    @cached_property
    def words(self) -> list[str]:
        """The globals that the text names, as they come."""
        nodes = [node for node in ast.walk(self.tree) if isinstance(node, ast.Name)]
        local = {node.id for node in nodes if isinstance(node.ctx, ast.Store)} | set(self.parameters) | {"cuda"}
        return list(dict.fromkeys(node.id for node in nodes if node.id not in local))


def part(function: Callable) -> Callable:
    """Marks a function that written kernels call, and that names what differs by dtype as they do."""
    function.is_part = True  # type: ignore[attr-defined]  # a mark on a function object
    return integral(function)


def bound(value: Any, known: dict[str, object]) -> Any:
    """A part with the names of one version of a kernel; other values as they are."""
    if not getattr(value, "is_part", False):
        return value
    scope = {
        word: bound(one, known)
        for word, one in {**value.__globals__, **known}.items()
        if word in value.__code__.co_names
    }
    return integral(FunctionType(value.__code__, scope, value.__name__))


def in_turn(functions: Sequence[Callable]) -> Callable:
    """One function after the other."""
    *before, last = functions
    if not before:
        return last
    first = in_turn(before)

    def both(x):
        return last(first(x))

    return both
