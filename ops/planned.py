"""Structured operators that remember how a call goes: reductions, softmax, matrix products.

Such an operator has a `loop` in the place of a body. It gets the output and the arguments, reads of the tensors only
how they look, and returns the function that does the work for all that look so: `f(out, out_at, x, x_at, ...)`, with
the flat array and the offset of the output and of each tensor. That function, and what the result looks like, is a
`Plan`, remembered by the looks of the tensors and by the other arguments. So a call is one look-up, one fresh tensor,
one loop; pointwise operators do the same with more to decide (pointwise.py).

Read next: reductions.py, softmax.py, linalg.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from redispatch.dispatch import ListType, Memo, OptionalType
from redispatch.dispatch.marks import frozen, inline, leaf
from redispatch.tensor import Mould, Size, Tensor, fresh, looks_of, mould, no_memory

from .structured import Structured

PLANS = 2048  # remembered per operator; then it starts afresh

Run = Callable[..., object]  # (out, out_at, x, x_at, ...)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A decided call: what the result is made from, and what fills it."""

    mould: Mould
    run: Run


@frozen
class Planned(Structured):
    """A structured operator whose call is decided by how its tensors look and by its other arguments.

    Its result's dtype must not depend on the default dtype, since plans do not know of it.
    """

    loop_function: Callable[..., Run]

    def __init__(self, schema: str, **options: Any) -> None:
        super().__init__(schema, **options)
        self.tensors = self.schema.tensor_positions
        self.tensor_lists = self.schema.tensor_list_positions
        self.lists = tuple(i for i, argument in enumerate(self.schema.arguments) if is_list(argument.type))
        self.plans = Memo(PLANS, alike=self.tensors)

    def loop(self, function: Callable[..., Run]) -> Callable[..., Run]:
        """Registers what returns the work. Where no body is declared, it does that of the other forms, too."""
        self.loop_function = function
        if not hasattr(self, "body_function"):
            self.body(self.run_loop)
        return function

    @leaf
    @inline
    def run_functional(self, *args: Any) -> Tensor:
        """The functional kernel, which nearly every call runs."""
        facts = tuple(self.fact(i, value) for i, value in enumerate(args))
        plan = self.plans.get(facts)
        if plan is None:
            plan = self.new_plan(facts, args)
        result = fresh(plan.mould)
        plan.run(result._array, 0, *self.operands(args))
        return result

    @inline
    def fact(self, i: int, value: Any) -> Any:
        """What counts of argument number `i`."""
        if i in self.tensors:
            return value._looks or looks_of(value)
        if i in self.tensor_lists:
            return tuple(x._looks or looks_of(x) for x in value)
        if i in self.lists:
            return None if value is None else tuple(value)
        return value

    @inline
    def operands(self, args: tuple[Any, ...]) -> list[Any]:
        """The arrays and offsets of the tensors."""
        tensors = [args[i] for i in self.tensors]
        for i in self.tensor_lists:
            tensors += args[i]
        found: list[Any] = []
        for x in tensors:
            array = x._array
            if array is None:
                raise no_memory(x)
            found += (array, x._offset)
        return found

    def new_plan(self, facts: tuple[Any, ...], args: tuple[Any, ...]) -> Plan:
        """The plan for arguments that look so for the first time."""
        meta = self.meta_function(*args)
        made = mould(Size(meta.shape), meta.dtype, meta.device, meta.strides)
        plan = Plan(made, self.loop_function(meta.allocate(), *args))
        self.plans[facts] = plan
        return plan

    def run_loop(self, out: Tensor, *args: Any) -> None:
        """The body: fills `out`, whatever it looks like."""
        self.loop_function(out, *args)(out._array, out._offset, *self.operands(args))


def is_list(type_: Any) -> bool:
    """Whether a schema type is a list, or one that may be left out."""
    return isinstance(type_.elem if isinstance(type_, OptionalType) else type_, ListType)
