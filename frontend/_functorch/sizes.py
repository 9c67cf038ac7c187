"""Sizes of inputs as symbols: one graph for many sizes, the guards under which it holds, and which graph is for a call.

    sizes = Sizes([x, w], [{0}, set()])          # the first size of x is a symbol
    y = f(*sizes.fakes)                          # what the program asks about it becomes a guard
    sizes.close()
    numbers = sizes.bind(sizes_of([other, w]))   # {"s0": 7}; None where a guard does not hold
    number(y.shape[0], numbers)

Each size has a symbol of its own: sizes that are equal by chance stay apart, and those that must be equal are found to
be by what the program does. Sizes of 0 and 1 are numbers, since both broadcast or vanish, and have graphs of their own.

Read next: aot_autograd.py, ../../dispatch/symbolic.py.
"""

from __future__ import annotations

import linecache
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from redispatch.dispatch.pytree import tree_map_only
from redispatch.dispatch.symbolic import HUGE, NAMESPACE, ShapeEnv, Symbolic, evaluate, expr, symbols_of
from redispatch.dispatch.tensor import Tensor
from redispatch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext
from redispatch.modes.fake_tensor import FakeTensorMode
from redispatch.nn import Parameter

Numbers = Mapping[Any, int]  # by symbol


def sizes_of(tensors: Sequence[Tensor]) -> tuple[Any, ...]:
    """Returns the sizes, strides and offset of each, in one tuple."""
    return tuple(number for one in tensors for number in (*one.shape, *one.stride(), one.storage_offset()))


def number(value: Any, numbers: Numbers) -> Any:
    """Returns a value, or what is in a tree of values, with a number for each that is an expression of symbols."""
    return tree_map_only(Symbolic, lambda one: evaluate(one.node.expr, numbers), value)


class Sizes:
    """The inputs of a function as fakes with symbols for sizes, and what must hold of other inputs for its graph."""

    def __init__(self, tensors: Sequence[Any], changing: Sequence[Collection[int]]) -> None:
        """changing: for each tensor, the dimensions whose sizes are to be symbols."""
        self.env = ShapeEnv(duck_shape=False)
        mode = FakeTensorMode(shape_env=self.env)
        kinds = {True: DimDynamic.DYNAMIC, False: DimDynamic.STATIC}
        self.fakes = [
            mode.from_tensor(
                one,
                source=f"inputs[{i}]",
                symbolic_context=StatelessSymbolicContext([kinds[dim in dims] for dim in range(one.dim())]),
            )
            for i, (one, dims) in enumerate(zip(tensors, changing, strict=True))
        ]
        self.source, self.bind = "", self.unbound

    @staticmethod
    def unbound(sizes: Any) -> Numbers | None:
        raise AssertionError("the guards are open until `close`")

    def close(self) -> None:
        """Makes a function of the guards; what is asked from now on leaves none."""
        self.env.freeze()
        symbols: dict[str, int] = {}  # where each is seen first
        conditions = []
        for place, size in enumerate(sizes_of(self.fakes)):
            original = size.node.original if isinstance(size, Symbolic) else expr(size)
            text = str(original)
            if text in symbols_of(original) and text not in symbols:
                symbols[text] = place
            else:
                conditions.append((bool(symbols_of(original)), f"sizes[{place}] == {text}"))
        ranges = self.env.var_to_range
        for symbol in symbols:
            low, high = ranges[symbol]  # type: ignore[index]  # known by its text
            conditions += [(True, f"{low} <= {symbol}")] * (low > -HUGE) + [(True, f"{symbol} <= {high}")] * (
                high < HUGE
            )
        conditions += [(True, str(one)) for one in self.env.guards if symbols_of(one.expr) <= symbols.keys()]
        lines = [f"    {symbol} = sizes[{place}]" for symbol, place in symbols.items()]
        lines += [
            f"    if not ({text}): return None" for _, text in sorted(dict.fromkeys(conditions), key=lambda one: one[0])
        ]
        found = ", ".join(f'"{symbol}": {symbol}' for symbol in symbols)
        self.source = "\n".join(["def bind(sizes):", *lines, f"    return {{{found}}}", ""])
        name = f"<guards {id(self):x}>"
        linecache.cache[name] = len(self.source), None, self.source.splitlines(True), name
        scope = dict(NAMESPACE)
        exec(compile(self.source, name, "exec"), scope)
        self.bind = scope["bind"]


class Variants:
    """The graphs of a function for arguments that differ in sizes alone. dynamic: as of `aot_function`."""

    def __init__(self, dynamic: bool | None | Sequence[Collection[int]]) -> None:
        self.dynamic = dynamic
        self.exact: dict[Any, Any] = {}  # by all sizes
        self.general: list[Any] = []  # those with symbols
        self.seen: list[tuple[Any, ...]] = []  # sizes for which there was no graph

    def find(self, sizes: tuple[Any, ...]) -> tuple[Any, Numbers]:
        """Returns (what holds for such sizes, the numbers of its symbols); (None, {}) where nothing does."""
        found = self.exact.get(sizes)
        if found is not None:
            return found, {}
        for one in self.general:
            numbers = one.sizes.bind(sizes)
            if numbers is not None:
                return one, numbers
        return None, {}

    def add(self, made: Any, sizes: tuple[Any, ...]) -> tuple[Any, Numbers]:
        """Adds what was made for such sizes, and returns it as `find` does."""
        self.seen.append(sizes)
        if made.sizes is None:
            self.exact[sizes] = made
            return made, {}
        self.general.append(made)
        return made, made.sizes.bind(sizes)

    def changing(self, tensors: Sequence[Tensor], sizes: tuple[Any, ...], fixed: int) -> list[set[int]]:
        """Returns which dimensions of tensors are to be symbols. fixed: so many, the first, have numbers for sizes.

        All but those of parameters are, where that was asked for; else those that were marked, and those that had
        another size before.
        """
        found, start = [], 0
        for i, one in enumerate(tensors):
            marked, static = (getattr(one, f"_dynamo_{kind}_indices", ()) for kind in ("dynamic", "static"))
            dims = set(range(one.dim()))
            if self.dynamic is False or i < fixed or (self.dynamic is True and isinstance(one, Parameter)):
                dims = set()
            elif isinstance(self.dynamic, Sequence):
                dims = set(self.dynamic[i])
            elif self.dynamic is None:
                place = start
                dims = {d for d in dims if any(former[place + d] != sizes[place + d] for former in self.seen)}
                dims.update(marked)
            found.append(dims.difference(static))
            start += 2 * one.dim() + 1
        return found
