"""Samples of operators on lists: those of what is called for each tensor, side by side.

Read next: kernels/ops/foreach.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from redispatch.dispatch import NO_DEFAULT, Argument, ListType, OpOverload, bind
from redispatch.dispatch.schema.convert import default_of
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.ops.foreach import ON_EACH, OnEach

from ..op_info import Maker, OpInfo, SampleInput, Samples
from .common import some_number

PACKED = dict.fromkeys(("meta", "vmap"), "numbers are read out of a tensor, as by item()")
TOGETHER = 3  # how many calls are made at once


def on_lists(written: Mapping[OpOverload, OpInfo]) -> Iterator[OpInfo]:
    """An entry for each operator on lists, by the entries of those that it calls."""
    for op, each in ON_EACH.items():
        if not op.schema.is_mutable:
            one, packed = written[each.of], "Tensor scalars" in str(op.schema)
            yield one.but(
                op.qualified_name,
                samples=side_by_side(each, one.samples),
                reference=one.reference and one_by_one(one.reference, packed),
                function=None,
                errors=None,
                representative=False,
                alike=True,
                skips={**one.skips, **(PACKED if packed else {})},
            )


def one_by_one(reference: Any, packed: bool) -> Any:
    """The reference for each element of the lists; `packed`: the last of them comes as an array."""

    def results(*values: Any, **kwargs: Any) -> list[Any]:
        values = (*values[:-1], list(values[-1])) if packed else values
        count = next(len(value) for value in values if isinstance(value, list | tuple))
        return [
            reference(*(value[i] if isinstance(value, list | tuple) else value for value in values), **kwargs)
            for i in range(count)
        ]

    return results


def side_by_side(each: OnEach, samples: Samples) -> Samples:
    """Some calls of an operator as one of that on lists. A value for all is that of the first."""
    place = {here: there for there, (here, _) in enumerate(each.sources) if here is not None}
    arguments = [(a, place[here]) for here, a in enumerate(each.op.schema.arguments) if default_of(a) is NO_DEFAULT]

    def together(make: Maker) -> Iterator[SampleInput]:
        found = [bind(each.of.schema, one.arguments, dict(one.kwargs)) for one in samples(make)]
        rows = [
            row for row in found if all(isinstance(row[at], Tensor) for a, at in arguments if is_list_of_tensors(a))
        ]
        given = [value_for(make, a, [row[at] for row in rows[:TOGETHER]]) for a, at in arguments]
        yield SampleInput(given[0], tuple(given[1:]))

    return together


def is_list_of_tensors(argument: Argument) -> bool:
    return str(argument.type) == "List[Tensor]"


def value_for(make: Maker, argument: Argument, values: list[Any]) -> Any:
    """The value of an argument on lists that has these for each tensor; a number, where one stands for a tensor."""
    if is_list_of_tensors(argument):
        return values
    numbers = [some_number(make) if isinstance(value, Tensor) else value for value in values]
    if argument.name == "scalars" and str(argument.type) == "Tensor":
        return make.values(numbers).detach()
    return make() if str(argument.type) == "Tensor" else numbers if isinstance(argument.type, ListType) else numbers[0]
