"""Samples that many operators share, by the kind of their arguments: one tensor, two tensors, a tensor and a number.

Each has a matrix, a tensor without dimensions and one without elements; more shapes only where they can matter, since
each pair of a dtype and a layout costs a compilation. Read next: a family, such as arithmetic.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from redispatch.kernels.declare.declare import declarations

from ..op_info import ErrorInput, Maker, OpInfo, SampleInput, Samples, sample

# Of an operator that PyTorch takes for differentiable, and has no derivative for: a reason for `skips`.
RECORDED = {"recording": "a node that says there is no derivative, as in PyTorch"}


def unary(*args: Any, low: float = -3, high: float = 4, **kwargs: Any) -> Samples:
    """One tensor, with these further arguments: a matrix, without dimensions, without elements."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        for shape in ((2, 3), (), (0, 3)):
            yield sample(make(*shape, low=low, high=high), *args, **kwargs)

    return samples


def binary(low: float = -3, high: float = 4, exclude_zero: bool = False, **kwargs: Any) -> Samples:
    """Two tensors: equal shapes, broadcast against each other, without dimensions, without elements."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        pairs = [((2, 3), (2, 3)), ((), ()), ((0, 3), (1, 3))]
        if make.thorough:
            pairs += [((2, 1), (3,)), ((2, 3), ())]
        for one, other in pairs:
            x, y = make(*one, low=low, high=high), make(*other, low=low, high=high, exclude_zero=exclude_zero)
            yield sample(x, y, **kwargs)

    return samples


def with_number(number: Callable[[Maker], Any] | Any, low: float = -3, high: float = 4, **kwargs: Any) -> Samples:
    """A tensor and a number of its kind: 2 for whole numbers, 1.5 for floats, True for bool, or what is given."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        value = number(make) if callable(number) else number
        for shape in ((2, 3), (), (0, 3)):
            yield sample(make(*shape, low=low, high=high), value, **kwargs)

    return samples


def some_number(make: Maker) -> Any:
    """A number that fits the dtype."""
    return 1.5 if make.dtype.is_floating_point else True if make.dtype.name == "bool" else 2


def reductions(*calls: tuple[tuple[int, ...], tuple[Any, ...], dict[str, Any]], distinct: bool = False) -> Samples:
    """A tensor of each shape, reduced by each call: (shape, args, kwargs)."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        for shape, args, kwargs in calls:
            x = make.distinct(*shape) if distinct else make(*shape)
            yield sample(x, *args, **kwargs)

    return samples


def call(shape: tuple[int, ...], *args: Any, **kwargs: Any) -> tuple[tuple[int, ...], tuple[Any, ...], dict[str, Any]]:
    return shape, args, kwargs


def not_broadcastable(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(
        sample(make(2, 3), make(4)),
        RuntimeError,
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1",
    )


def bad_dim(*args: Any, shape: tuple[int, ...] = (2, 3), dim: int = 2, **kwargs: Any) -> Any:
    """`dim` is out of range, behind `args`."""

    def errors(make: Maker) -> Iterator[ErrorInput]:
        text = f"Dimension out of range (expected to be in range of [{-len(shape)}, {len(shape) - 1}], but got {dim})"
        yield ErrorInput(sample(make(*shape), dim, *args, **kwargs), IndexError, text)

    return errors


def axes(dim: Any) -> Any:
    """numpy's `axis` for our `dim`: a list as a tuple, an empty one as all."""
    return (tuple(dim) or None) if isinstance(dim, list | tuple) else dim


def quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """A numpy function without its warnings of divisions by zero and the like."""

    def reference(*args: Any, **kwargs: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return reference


# An operator whose result is what the memory held cannot be compared by value.
UNINITIALISED = {
    name: "its result holds whatever the memory held"
    for name in (
        "reference",
        "bfloat16",
        "inplace",
        "out",
        "layouts",
        "dispatch_mode",
        "function_mode",
        "subclass",
        "functionalized",
    )
}


def second_names(file: str, entries: Iterable[OpInfo]) -> Iterator[tuple[OpInfo, str]]:
    """Yields the entry of each operator that has another name, and that name, of those that a file declares."""
    known = {str(info): info for info in entries}
    for declared in declarations():
        if declared.alias_of is not None and declared.place.rpartition(":")[0].endswith(f"/{file}"):
            first, second = (op.functional.qualified_name.partition("::")[2] for op in (declared.alias_of, declared))
            yield known[first], second
