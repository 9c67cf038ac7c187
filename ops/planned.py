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
from functools import cached_property
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

    dtype_of_target: whether, in place and with `out=`, `dtype=None` means the dtype of what is written to.
    """

    loop_function: Callable[..., Run]

    def __init__(self, schema: str, *, dtype_of_target: bool = False, **options: Any) -> None:
        super().__init__(schema, **options)
        self.dtype_of_target = dtype_of_target
        self.tensors = self.text.tensor_positions
        self.plans = Memo(PLANS, alike=self.tensors)

    @cached_property
    def tensor_lists(self) -> tuple[int, ...]:
        return self.schema.tensor_list_positions

    @cached_property
    def lists(self) -> tuple[int, ...]:
        return tuple(i for i, argument in enumerate(self.schema.arguments) if is_list(argument.type))

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

    @leaf
    def run_inplace(self, *args: Any) -> Tensor:
        return super().run_inplace(*self.with_dtype(args, args[0]))

    @leaf
    def run_out(self, *args: Any) -> Tensor:
        return super().run_out(*self.with_dtype(args, args[-1]))

    @leaf
    def _meta_inplace(self, *args: Any) -> Tensor:
        return super()._meta_inplace(*self.with_dtype(args, args[0]))

    @leaf
    def _meta_out(self, *args: Any) -> Tensor:
        return super()._meta_out(*self.with_dtype(args, args[-1]))

    def with_dtype(self, args: tuple[Any, ...], target: Tensor) -> tuple[Any, ...]:
        """The arguments, with the target's dtype in the place of `dtype=None` where it counts."""
        if not self.dtype_of_target:
            return args
        at = self.names.index("dtype")
        return args if args[at] is not None else (*args[:at], target._dtype, *args[at + 1 :])

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
