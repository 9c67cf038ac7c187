"""Where kernels run: on the CPU, or on a device whose `Target` stands in for it.

A loop that takes a range, `loop(lo, hi, ...)`, says nothing about who runs it. While a target is set, `Kernel.entry`
gives what runs the loop on that device, a thread for each step of the range, and operands hold the device's memory in
the place of arrays. So what decides a call (shapes, walks, tables) is written once, and serves both.

Nothing here knows a device; `cuda/loops.py` is the one there is. Read next: `kernels/engine/compile.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from .operand import Operand, as_ndarray


class Target:
    """The work of the CPU, done by another device."""

    def entry(self, kernel: Any, signature: tuple[str, ...]) -> Callable[..., Any]:
        """Returns the function that runs the loop of a `Kernel` (kernels/engine/compile.py): `f(lo, hi, *args)`."""
        raise NotImplementedError

    def memory(self, count: int, dtype: Any) -> Any:
        """Memory for so many elements, as long as it is held."""
        raise NotImplementedError

    def numbers(self, x: Operand) -> np.ndarray:
        """The operand's elements in the CPU's memory. Waits for the device."""
        raise NotImplementedError

    def elementwise(self, op: Any, outs: Sequence[Operand], inputs: Sequence[Any], dtype: str | None) -> None:
        """`Elementwise.run`."""
        raise NotImplementedError

    def reduce(self, reduction: Any, out: Operand, x: Operand, dims: Sequence[int]) -> None:
        """`Reduction.run`."""
        raise NotImplementedError

    def take(self, out: Operand, x: Operand, places: Sequence[Place]) -> None:
        """out[i] = x[i + the places' indices at i]; all have one shape. A bad index is told of later."""
        raise NotImplementedError

    def put(self, x: Operand, source: Operand, places: Sequence[Place], how: str, skip: int | None = None) -> None:
        """Writes source to places in x: "replace", "sum", "prod", "amax", "amin" says how the new meets the old."""
        raise NotImplementedError

    def do_not_cache(self) -> None:
        """Told of a call that does more than its loops do, such as to warn: it is not to be remembered."""


class Place(NamedTuple):
    """An index among several: its operand, how far one step of it is, the size of its dimension, and whether negative
    ones count from the end."""

    positions: Operand
    scale: int
    size: int
    wrap: bool
    dim: int


class Scratch(NamedTuple):
    """Memory of its own for each step of a range, on a device; see `scratch`."""

    each: int
    dtype: str


TARGET: ContextVar[Target | None] = ContextVar("target", default=None)


def do_not_cache() -> None:
    """To be called by an operator's kernel where it does more than its loops do: a device is not to remember it."""
    target = TARGET.get()
    if target is not None:
        target.do_not_cache()


@contextmanager
def on_target(target: Target | None) -> Iterator[None]:
    """Has kernels run there; on the CPU for None."""
    token = TARGET.set(target)
    try:
        yield
    finally:
        TARGET.reset(token)


def memory(count: int, dtype: Any) -> Any:
    """Memory that a kernel's caller needs for a while: an array, or the device's."""
    target = TARGET.get()
    return np.empty(count, dtype) if target is None else target.memory(count, dtype)


def numbers(x: Operand) -> np.ndarray:
    """An operand's elements, for what the CPU decides by them; they are not to be written to."""
    target = TARGET.get()
    return as_ndarray(x) if target is None else target.numbers(x)


def scratch(count: int, dtype: Any) -> Any:
    """Memory for a loop to work in. On the CPU one range after the other uses it; on a device each step has its own."""
    return np.empty(count, dtype) if TARGET.get() is None else Scratch(count, np.dtype(dtype).name)


def cached_by_target(make: Callable[..., Any]) -> Callable[..., Any]:
    """`functools.cache` of a function that makes entries, those of each device apart."""
    made = ByTarget()

    def found(*key: Any) -> Any:
        entry = made.get(key)
        if entry is None:
            entry = made[key] = make(*key)
        return entry

    return found


class ByTarget(dict[Any, Any]):
    """Entries that are remembered, those of each device apart."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get((TARGET.get() is None, key), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__((TARGET.get() is None, key), value)
