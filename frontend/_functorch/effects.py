"""The effects of a function beside its results: inputs that it writes, results that are views or inputs.

    effects = Effects(inputs, before, leaves, structure)     # of one run, on functional tensors
    effects.after(inputs, values)                            # the same of other inputs, given what a graph returned

A graph returns values, and writes nothing. So what a function does to the outside is found out in a run of it, and done
again around the graph: inputs are written, and views are made of what they are views of.

Read next: aot_autograd.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

from redispatch.autograd import no_grad
from redispatch.dispatch.pytree import tree_unflatten
from redispatch.dispatch.tensor import Tensor
from redispatch.dispatch.transforms.functionalize import (
    _functionalize_has_data_mutation,
    _functionalize_has_metadata_mutation,
)
from redispatch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from redispatch.modes.functional_tensor import FunctionalTensor
from redispatch.utils._python_dispatch import is_traceable_wrapper_subclass

from .sizes import Numbers, number


class Layout(NamedTuple):
    """Place of a tensor in memory."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int

    @staticmethod
    def of(tensor: Tensor, base: Tensor | None = None) -> Layout:
        """Returns the layout of a tensor; relative to the beginning of `base`, if there is one."""
        offset = tensor.storage_offset() - (0 if base is None else base.storage_offset())
        return Layout(tuple(tensor.shape), tensor.stride(), offset)

    def at(self, numbers: Numbers) -> Layout:
        """Returns the layout with numbers for symbols."""
        return Layout(*number(tuple(self), numbers)) if numbers else self

    def on(self, base: Tensor) -> Tensor:
        """Returns the view of `base` that lies so."""
        return base.as_strided(self.size, self.stride, self.offset + base.storage_offset())


class Written(NamedTuple):
    """An input that the function writes. layout: its new one, if that changes. silent: autograd was off."""

    number: int
    data: bool
    layout: Layout | None
    silent: bool


class Result(NamedTuple):
    """A leaf of the results: a constant, or made of an input or of one of the values that the forward returns."""

    constant: Any = None
    input: int | None = None
    value: int | None = None
    layout: Layout | None = None  # of a view of that
    requires_grad: bool = False

    def made(self, inputs: Sequence[Any], values: Sequence[Any], numbers: Numbers) -> Any:
        """Returns the leaf, of the inputs as they are after the call and the values that the forward returned."""
        if self.input is None and self.value is None:
            return number(self.constant, numbers)
        base = inputs[self.input] if self.input is not None else values[self.value]  # type: ignore[index]  # not None
        if self.layout is None:
            return base
        view = self.layout.at(numbers).on(base)
        return view if self.requires_grad else view.detach()


class Effects:
    """The effects of one run of a function: inputs written, results, and the values that a graph must return."""

    def __init__(self, inputs: list[Any], before: list[Any], leaves: list[Any], structure: Any) -> None:
        self.structure = structure
        self.own_history = False  # whether a result has the memory of an input, but is no view of it to autograd
        self.written: list[Written] = []
        values: list[Any] = []  # which a graph must return, beside the written inputs
        for index, (one, node) in enumerate(zip(inputs, before, strict=True)):
            data, layout = changes(one)
            if data or layout:
                silent = one.requires_grad and one.grad_fn is node
                self.written.append(Written(index, data, Layout.of(one) if layout else None, silent))
        owners = {memory(one): i for i, one in reversed([*enumerate(inputs)])}
        shared = [memory(one) for one in {id(one): one for one in leaves if isinstance(one, Tensor)}.values()]

        def result(leaf: Any) -> Result:
            if not isinstance(leaf, Tensor):
                if free_unbacked_symbols(leaf):
                    raise RuntimeError(
                        f"aot_function: a result is {leaf}, a number that depends on elements of a tensor; return a "
                        "tensor in its place"
                    )
                return Result(leaf)
            for index, one in enumerate(inputs):
                if one is leaf:
                    return Result(input=index)
            if memory(leaf) in owners:
                index = owners[memory(leaf)]
                self.own_history |= leaf.requires_grad and root(leaf) is not root(inputs[index])
                return Result(None, index, None, Layout.of(leaf, inputs[index]), leaf.requires_grad)
            base = leaf
            if shared.count(memory(leaf)) > 1 and leaf._base is not None:
                base = leaf._base
            number = next((i for i, one in enumerate(values) if one is base), len(values))
            if number == len(values):
                values.append(base)
            return Result(None, None, number, None if base is leaf else Layout.of(leaf, base), leaf.requires_grad)

        # Of each leaf the number of the first that is the same object
        self.first = first_of(map(id, leaves))
        self.results = [result(leaf) for leaf in leaves]
        self.values = [inputs[one.number] for one in self.written] + values
        # Of which a gradient may come: not of what was written while autograd was off.
        silent = [one.silent for one in self.written] + [False] * len(values)
        self.wanted = [one.requires_grad and not still for one, still in zip(self.values, silent, strict=True)]
        self.makers = [apart(one)[1] for one in self.values]

    def values_of(self, leaves: Sequence[Any]) -> list[Any]:
        """Returns the values that a graph returns, beside the written inputs, of the results of another run."""
        found = {
            result.value: leaf if result.layout is None else leaf._base
            for result, leaf in zip(self.results, leaves, strict=True)
            if result.value is not None
        }
        return [found[number] for number in sorted(found)]

    def after(self, inputs: Sequence[Any], values: Sequence[Any], numbers: Numbers) -> Any:
        """Writes the inputs, and returns the tree of results. numbers: the values of symbols."""
        for one, new in zip(self.written, values, strict=False):
            with no_grad() if one.silent else nullcontext():
                if one.layout is not None:
                    inputs[one.number].as_strided_(*one.layout.at(numbers))
                if one.data:
                    inputs[one.number].copy_(new)
        rest = values[len(self.written) :]
        made: list[Any] = []
        for at, (result, first) in enumerate(zip(self.results, self.first, strict=True)):
            made.append(result.made(inputs, rest, numbers) if first == at else made[first])
        return tree_unflatten(made, self.structure)


def root(tensor: Tensor) -> Tensor:
    return tensor if tensor._base is None else tensor._base


def is_plain(value: Any) -> bool:
    return isinstance(value, Tensor) and not is_traceable_wrapper_subclass(value)


def changes(value: Tensor) -> tuple[bool, bool]:
    """Returns whether (the data, the layout) of a functional tensor was changed; of a subclass, those within it."""
    inner = [one.elem for one in apart(value)[0] if isinstance(one, FunctionalTensor)]
    data = any(map(_functionalize_has_data_mutation, inner))
    return data, any(map(_functionalize_has_metadata_mutation, inner))


def first_of(things: Iterable[int]) -> tuple[int, ...]:
    """Returns for each thing the number of the first one that equals it."""
    first: dict[int, int] = {}
    return tuple(first.setdefault(one, number) for number, one in enumerate(things))


def memory(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata


def apart(value: Tensor) -> tuple[list[Tensor], Callable[[Iterator[Any]], Any]]:
    """Returns (the plain tensors that a subclass is made of, a function that makes one such of others)."""
    if not is_traceable_wrapper_subclass(value):
        return [value], next
    names, context = value.__tensor_flatten__()
    parts = [apart(getattr(value, name)) for name in names]
    kind, shape, stride = type(value), value.shape, value.stride()

    def together(inner: Iterator[Any]) -> Any:
        made = {name: make(inner) for name, (_, make) in zip(names, parts, strict=True)}
        return kind.__tensor_unflatten__(made, context, shape, stride)

    return [one for tensors, _ in parts for one in tensors], together


def plain_of(values: Iterable[Any]) -> list[Any]:
    """The plain tensors that these are made of."""
    return [one for value in values for one in apart(value)[0]]
