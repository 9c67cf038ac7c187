"""Decided calls: what remains of a call once the metadata of its arguments is known.

    plan = plans.get(facts(args)) or decide(args)        facts: metadata of tensors, values or types of the rest
    outputs = [fresh(spec) for spec in plan.outputs]
    plan.run(...)                                        a loop on the CPU, launches on CUDA

Shapes, dtypes, strides, checks and the choice of a loop follow from the facts, so they are worked out once for each
combination of these. What an operator's backend adds is `decide`, which prepares `run`: on the CPU an operator's loop
function (planned.py, pointwise.py), on CUDA the launches of any kernel (kernels/cuda/runtime/launch_plan.py).

A `run` of the CPU takes the flat array and the offset of each output, then those of each tensor: `run(out, out_at, x,
x_at, ...)`; one of CUDA takes addresses and a stream. Read next: planned.py, pointwise.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeGuard

from redispatch.dispatch import FunctionSchema, ListType, OptionalType, TensorBase, dataclass
from redispatch.dispatch.specialiser.annotations import frozen, inline, pure
from redispatch.dispatch.tensor import Tensor, metadata_of

PLANS = 2048  # cached per operator; then its cache starts afresh

Run = Callable[..., object]


@dataclass(slots=True, eq=False)
class Plan:
    """A decided call: the outputs to allocate, None for one that is not asked for, and the function that fills them.

    run: None where it is still to be prepared, or where there is none and each call is decided by itself.
    """

    outputs: tuple[Any, ...]  # of OutputSpec, or None
    run: Any


@dataclass(slots=True, eq=False)
class NearPlan(Plan):
    """Plans where devices may fill outputs from their own memory: `near(output, source)`; None where none does."""

    near: Any


@pure
def number_fact(value: Any) -> Any:
    """Tells a number from others that are equal to it: 1 from 1.0 and True, 0.0 from -0.0."""
    return (type(value), value if value else str(value))


@inline
def metadata(x: Any) -> Any:
    """Shape, strides, dtype, device and lazy bits of a tensor, as one object."""
    metadata = x._interned or metadata_of(x)
    return metadata


def is_list(type_: Any) -> bool:
    """Whether a schema type is a list, or one that may be left out."""
    return isinstance(type_.elem if isinstance(type_, OptionalType) else type_, ListType)


@frozen
class Deciding:
    """Whoever decides calls by facts, for the arguments of one schema.

    tensors: the places of tensors among the arguments. types_decide: of arguments that are no tensors, the types alone
    are facts, not the values.
    """

    schema: FunctionSchema
    tensors: tuple[int, ...]
    types_decide = False

    @cached_property
    def tensor_lists(self) -> tuple[int, ...]:
        return self.schema.tensor_list_positions

    @cached_property
    def lists(self) -> tuple[int, ...]:
        return tuple(i for i, argument in enumerate(self.schema.arguments) if is_list(argument.type))

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        return self.places_of("number")

    @cached_property
    def floats(self) -> tuple[int, ...]:
        return self.places_of("float")

    def places_of(self, kind: str) -> tuple[int, ...]:
        """The places of arguments of a schema type, also of those that may be None."""
        kinds = (str(argument.type).removeprefix("Optional[") for argument in self.schema.arguments)
        return tuple(i for i, one in enumerate(kinds) if one.startswith(kind))

    @cached_property
    def may_leave_out(self) -> bool:
        """Whether an argument says which outputs are asked for."""
        return any(argument.name.endswith("_mask") and is_list(argument.type) for argument in self.schema.arguments)

    @inline
    def is_tensor(self, value: Any, i: int) -> TypeGuard[Tensor]:
        """Whether argument number `i` is a tensor: one may be where the schema has one, and so may a number."""
        return i in self.tensors and isinstance(value, TensorBase)

    @inline
    def facts(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Returns the facts that decide a call with these arguments."""
        return tuple(self.fact(i, value) for i, value in enumerate(args))

    @inline
    def fact(self, i: int, value: Any) -> Any:
        """Returns what counts of argument number `i`."""
        if self.is_tensor(value, i):
            return metadata(value)
        if self.types_decide:
            return type(value)
        if i in self.tensor_lists:
            return tuple(None if x is None else metadata(x) for x in value)
        if i in self.lists:
            return None if value is None else tuple(value)
        if i in self.floats:
            return value if value else str(value)  # 0.0 is equal to -0.0
        return number_fact(value) if i in self.numbers else value
