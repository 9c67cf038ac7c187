"""Sizes as symbols where Python reads them: the function runs once more, on tensors without data.

    def f(x): return x.reshape(x.shape[0] // 2, -1)       # for x of 6 rows, then of 8: one graph for all even numbers

A first program is for the very sizes that were seen. Where only sizes are others, those become symbols: after the call
itself the function is *rehearsed* on fakes, whose sizes are symbols with the values of now as hints. What Python asks
about them becomes a guard, and a number that reaches an operator is worked out in the graph. A rehearsal has no
effects: it ends at the first thing that is not sure, and then the program is for the very sizes.
Read next: ../_functorch/sizes.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any

from redispatch._functorch.sizes import Sizes, number, sizes_of
from redispatch.dispatch import STATE, within
from redispatch.dispatch.pytree import tree_flatten, tree_map
from redispatch.dispatch.symbolic import NAMESPACE, SymBool, SymFloat, SymInt, compiled, symbols_of
from redispatch.dispatch.tensor import Size, Tensor
from redispatch.dispatch.tensor.metadata import SizeOfSymbols
from redispatch.fx.node import Node
from redispatch.modes.fake_tensor import FakeTensor
from redispatch.nn import Parameter

from .guards import Guards
from .known import REGIONS
from .reads import Log
from .recorder import REFUSED, Recorder, Source, name_of
from .segments import Returned

SYMBOLS = {SymInt, SymFloat, SymBool}
TYPES = isinstance, issubclass, callable
TEXTS = str, repr, set, frozenset, dict, chr, format, hash, type
HISTORY = {"is_leaf", "requires_grad", "is_inference"}


class Unsure(Exception):
    """The rehearsal ends: something is not sure to be the same with numbers."""


def has_symbol(value: Any) -> bool:
    return any(type(one) in SYMBOLS for one in tree_flatten(value)[0])


class SymbolicLog(Log):
    """The log of a rehearsal: an escape ends it, and nothing shows a symbol where there would be a number."""

    def escape(self, reason: str) -> None:
        raise Unsure(reason)

    def break_at(self, reason: str, instead: str | None, is_error: bool) -> str:
        raise Unsure(reason)

    def shown(self, value: Any) -> Any:
        if has_symbol(value):
            raise Unsure("a size is shown as text")
        return super().shown(value)

    def item(self, value: Any, at: Any) -> Any:
        if isinstance(value, dict) and has_symbol(at):
            raise Unsure("a size is a key")
        return super().item(value, at)

    def contains(self, value: Any, container: Any) -> bool:
        if has_symbol(value) and not isinstance(container, list | tuple):
            raise Unsure("a size is looked for")
        return super().contains(value, container)

    def tensor_attr(self, value: Tensor, name: str) -> Any:
        if name.startswith("__"):
            raise Unsure(f"{name} of a tensor is read")
        return super().tensor_attr(value, name)

    def entered(self, region: Any) -> Any:
        if not isinstance(region, REGIONS):
            raise Unsure("a region is entered")
        return super().entered(region)

    def call(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        if function is len and len(args) == 1 and isinstance(args[0], Tensor):
            return self.attr(args[0], "shape")[0]
        if (
            function is type
            and isinstance(args[0], Tensor)
            or any(function is one for one in TEXTS)
            and has_symbol(args)
        ):
            raise Unsure("the type of a tensor, or the text of a size, is asked for")
        if any(function is one for one in TYPES) and type(args[0]) in SYMBOLS:
            return function(args[0].node.pytype(), *args[1:])
        return super().call(function, *args, **kwargs)

    def call_method(self, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        owner = method.__self__
        if not isinstance(owner, Tensor) and has_symbol((args, kwargs)):
            if type(owner) is not list or method.__name__ not in ("append", "extend"):
                raise Unsure("a size is given to a method")
        return super().call_method(method, args, kwargs)


class SizedReturn(Returned):
    """A result with numbers in it that are expressions of sizes."""

    __slots__ = ()

    def made(self, carried: Sequence[Tensor], numbers: Any = None) -> Any:
        leaves = [
            Size(number(tuple(one), numbers)) if type(one) is SizeOfSymbols
            else number(one, numbers) if type(one) in SYMBOLS else one
            for one in self.leaves
        ]  # fmt: skip
        return Returned(leaves, self.structure).made(carried)


class Rehearsal(Recorder):
    """Records a function that runs on fakes for its inputs; `changing` are the dimensions that are symbols.

    real: the recorder of the call itself, which found the inputs, and what is to be guarded.
    """

    def __init__(self, log: Log, real: Recorder, changing: Sequence[Collection[int]]) -> None:
        super().__init__(log, real.backend)
        self.real, self.dynamic = real, changing
        self.sizes = Sizes(real.new, changing)
        self.fakes = dict(zip(map(id, real.new), self.sizes.fakes, strict=True))
        self.mode = self.sizes.fakes[0].fake_mode
        self.inputs = [self.placeholder(one, source) for one, source in zip(real.new, real.sources, strict=True)]
        self.new = list(real.new)
        self.places: dict[str, Node] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = kwargs or {}, name_of(func)
        if self.busy:
            return func(*args, **kwargs)
        if name in REFUSED or name in HISTORY:
            raise Unsure(f"a tensor's {name} is read")
        inside = self.written(args, kwargs)
        given, named = tree_map(self.fake, (tuple(args), kwargs))
        with self.mode:
            result = func(*given, **named)
        self.record(func, name, inside, result, False)
        return result

    kind, result = FakeTensor, SizedReturn

    def guards(self, fresh: list[Source]) -> Guards:
        inputs = [(one.place, one.facts) for one in fresh]
        return Guards(self.real.read, inputs, self.real.log.constants, False)

    def fake(self, value: Any) -> Any:
        """The fake of an input; other values stay."""
        if not isinstance(value, Tensor) or isinstance(value, FakeTensor):
            return value
        found = self.fakes.get(id(value))
        if found is None:
            raise Unsure("another tensor is read than was before")
        return found

    def node(self, value: Any) -> Any:
        if type(value) in SYMBOLS:
            return self.arithmetic(value)
        if type(value) is slice:
            return slice(*(self.node(part) for part in (value.start, value.stop, value.step)))
        if isinstance(value, Tensor) and self.find(value) is None:
            raise Unsure("another tensor is read than was before")
        return super().node(value)

    def find(self, tensor: Any) -> Node | None:
        known = next((place for place, fake in enumerate(self.sizes.fakes) if fake is tensor), None)
        return super().find(tensor) if known is None else self.inputs[known]

    def arithmetic(self, value: Any) -> Any:
        """The node of a number: worked out from sizes of inputs."""
        if type(value) is SymBool:
            return bool(value)
        original = value.node.original
        names = sorted(map(str, symbols_of(original)))
        if [str(original)] == names:
            return self.size(names[0])
        return self.graph.call_function(worked_out, (str(original), tuple(names), *map(self.size, names)))

    def size(self, name: str) -> Node:
        """The node of the size that a symbol is for."""
        if name not in self.places:
            for node, fake in zip(self.inputs, self.sizes.fakes, strict=True):
                for dim, size in enumerate(fake.shape):
                    if type(size) is SymInt and str(size.node.original) == name:
                        self.places[name] = self.graph.call_function(Tensor.size, (node, dim))
                        return self.places[name]
            raise Unsure("a symbol is not the size of an input")
        return self.places[name]


def worked_out(text: str, names: Sequence[str], *values: Any) -> Any:
    """The value of an expression of sizes."""
    return eval(compiled(text), NAMESPACE, dict(zip(names, values, strict=True)))


def changing_dims(inputs: Sequence[Tensor], former: Sequence[Any], dynamic: bool | None) -> list[set[int]]:
    """Returns which dimensions of inputs are to be symbols. former: shapes that they had in other programs."""
    found = []
    for i, one in enumerate(inputs):
        marked, static = (getattr(one, f"_dynamo_{kind}_indices", ()) for kind in ("dynamic", "static"))
        dims = {d for shapes in former for d, size in enumerate(shapes[i]) if size != one.shape[d]} | {*marked}
        if dynamic and not isinstance(one, Parameter):
            dims = set(range(one.dim()))
        found.append(dims.difference(static))
    return found


def rehearsed(
    run: Callable[[Recorder], Any], log: Log, real: Recorder, changing: Sequence[Collection[int]]
) -> Rehearsal | None:
    """Runs a function once more, on fakes; returns what was recorded, None where that is not sure to be right.

    run: has a recorder record the function. real: what recorded the call itself.
    """
    if any(type(one) not in (Tensor, Parameter) for one in real.new) or len(real.new) != len(real.sources):
        return None
    with suppress(Exception), within(STATE.get()):
        made = Rehearsal(log, real, changing)
        run(made)
        made.sizes.close()
        if called(real) == called(made) and made.sizes.bind(sizes_of(real.new)) is not None:
            return made
    return None


def called(recorder: Recorder) -> list[Any]:
    """Returns the functions of a graph, those aside that work out sizes."""
    own = set(recorder.places.values()) if isinstance(recorder, Rehearsal) else set()
    nodes = (node for node in recorder.graph.nodes if node.op == "call_function" and node not in own)
    return [node.target for node in nodes if node.target is not worked_out]
