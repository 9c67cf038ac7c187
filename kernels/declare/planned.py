"""Structured operators that remember how a call goes: reductions, softmax, matrix products.

Such an operator has a `loop` in the place of a body. It gets the output and the arguments, reads of the tensors only
how they look, and returns the function that does the work for all that look so: `f(out, out_at, x, x_at, ...)`, with
the flat array and the offset of the output and of each tensor. That function, and what the result looks like, is a
`Plan`, remembered by the looks of the tensors and by the other arguments. So a call is one look-up, one fresh tensor,
one loop; pointwise operators do the same with more to decide (pointwise.py).

Read next: reductions.py, softmax.py, linalg.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from redispatch.dispatch import ListType, Memo, OptionalType, impl
from redispatch.dispatch.inspection.frames import HIDDEN
from redispatch.dispatch.specialiser.marks import frozen, inline, leaf
from redispatch.dispatch.tensor import META, Mould, Size, Tensor, dtype, fresh, looks_of, mould
from redispatch.kernels import is_contiguous, ready_copy

from .declare import Operator
from .structured import Meta, Structured

HIDDEN.add(__name__)  # nobody looks for a mistake here

PLANS = 2048  # remembered per operator; then it starts afresh

Run = Callable[..., object]  # (out, out_at, x, x_at, ...)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A decided call: what the result is made from, and what fills it."""

    mould: Mould
    run: Run


@frozen
class Remembering(Operator):
    """An operator that remembers plans, by how its tensors look and by its other arguments."""

    def __init__(self, schema: str, **options: Any) -> None:
        super().__init__(schema, **options)
        self.tensors = self.text.tensor_positions
        self.plans = Memo(PLANS, alike=self.tensors)

    @cached_property
    def tensor_lists(self) -> tuple[int, ...]:
        return self.schema.tensor_list_positions

    @cached_property
    def lists(self) -> tuple[int, ...]:
        return tuple(i for i, argument in enumerate(self.schema.arguments) if is_list(argument.type))

    @inline
    def fact(self, i: int, value: Any) -> Any:
        """What counts of argument number `i`."""
        if i in self.tensors:
            return None if value is None else value._looks or looks_of(value)
        if i in self.tensor_lists:
            return tuple(x._looks or looks_of(x) for x in value)
        if i in self.lists:
            return None if value is None else tuple(value)
        return value

    @inline
    def operands(self, args: tuple[Any, ...]) -> list[Any]:
        """The arrays and offsets of the tensors that are given."""
        tensors = [args[i] for i in self.tensors if args[i] is not None]
        for i in self.tensor_lists:
            tensors += args[i]
        found: list[Any] = []
        for x in tensors:
            array = x._array
            if array is None:
                array = x._operand.array  # of a device; RuntimeError where it has none
            found += (array, x._offset)
        return found


@frozen
class Planned(Remembering, Structured):
    """A structured operator whose call is decided by how its tensors look and by its other arguments.

    Its result's dtype must not depend on the default dtype, since plans do not know of it.

    dtype_of_target: whether, in place and with `out=`, `dtype=None` means the dtype of what is written to.
    """

    loop_function: Callable[..., Run]

    def __init__(self, schema: str, *, dtype_of_target: bool = False, **options: Any) -> None:
        super().__init__(schema, **options)
        self.dtype_of_target = dtype_of_target

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

    def new_plan(self, facts: tuple[Any, ...], args: tuple[Any, ...]) -> Plan:
        """The plan for arguments that look so for the first time."""
        meta = self.meta_function(*args)
        made = mould(Size(meta.shape), meta.dtype, meta.device, meta.strides)
        plan = Plan(made, self.loop_function(meta.allocate(), *args))
        self.plans[facts] = plan
        return plan

    def run_loop(self, out: Tensor, *args: Any) -> None:
        """The body: fills `out`, whatever it looks like."""
        self.loop_function(out, *args)(out._operand.array, out._offset, *self.operands(args))


@dataclass(frozen=True, slots=True, eq=False)
class SeveralPlan:
    """A decided call with several results."""

    moulds: tuple[Mould | None, ...]
    run: Run


@frozen
class PlannedSeveral(Remembering):
    """The same for an operator with several results, in its functional form.

    `metas` says what the results look like, None for one that is not asked for; `loop` gets them, as a tuple, and the
    arguments, and returns what fills them: `f(out, out_at, other_out, other_out_at, x, x_at, ...)`, without what is
    None.
    """

    metas_function: Callable[..., tuple[Meta | None, ...]]
    loop_function: Callable[..., Run]

    def __init__(self, schema: str, **options: Any) -> None:
        super().__init__(schema, **options)
        self.may_leave_out = "output_mask" in self.names

    def metas(self, function: Callable[..., tuple[Meta | None, ...]]) -> Callable[..., tuple[Meta | None, ...]]:
        """Registers what says the results' looks, and with it the kernel of the meta device."""
        self.metas_function = function
        impl(self.functional, "Meta", self.run_meta, convention="positional", place=self.place, name=self.title("meta"))
        return function

    def loop(self, function: Callable[..., Run]) -> Callable[..., Run]:
        """Registers what returns the work, and with it the kernel of the CPU."""
        self.loop_function = function
        kernel, name = self.run_functional, self.title("planned")
        impl(self.functional, "CPU", kernel, convention="positional", place=self.place, name=name)
        return function

    def title(self, kind: str) -> str:
        return f"{kind} {self.base_name}"

    @leaf
    @inline
    def run_functional(self, *args: Any) -> tuple[Any, ...]:
        facts = tuple(self.fact(i, value) for i, value in enumerate(args))
        plan = self.plans.get(facts)
        if plan is None:
            plan = self.new_plan(facts, args)
        if self.may_leave_out:
            return run_some(self, plan, args)
        results = tuple(fresh(plan.moulds[k]) for k in range(len(self.functional.schema.returns)))
        filled: list[Any] = []
        for result in results:
            filled += (result._array, 0)
        plan.run(*filled, *self.operands(args))
        return results

    @leaf
    def run_meta(self, *args: Any) -> tuple[Any, ...]:
        return tuple(None if meta is None else meta.allocate(META) for meta in self.metas_function(*args))

    def new_plan(self, facts: tuple[Any, ...], args: tuple[Any, ...]) -> SeveralPlan:
        """The plan for arguments that look so for the first time."""
        metas = self.metas_function(*args)
        moulds = tuple(
            None if meta is None else mould(Size(meta.shape), meta.dtype, meta.device, meta.strides) for meta in metas
        )
        outs = tuple(None if meta is None else meta.allocate() for meta in metas)
        plan = SeveralPlan(moulds, self.loop_function(outs, *args))
        self.plans[facts] = plan
        return plan


@leaf
def run_some(op: PlannedSeveral, plan: SeveralPlan, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The call of an operator that makes only those results which its mask asks for."""
    results = tuple(None if mould is None else fresh(mould) for mould in plan.moulds)
    filled = [part for result in results if result is not None for part in (result._array, 0)]
    plan.run(*filled, *op.operands(args))
    return results


def is_dense_tensor(x: Tensor) -> bool:
    return is_contiguous(x._shape, x._stride)


def on_dense(
    run: Run, outs: int, inputs: Sequence[tuple[Tensor, dtype]], fits: Callable[[Tensor], bool] = is_dense_tensor
) -> Run:
    """`run`, which wants its inputs dense and of these dtypes, behind so many outputs: others are copied for it.

    fits: whether `run` takes a tensor as it lies.
    """
    copies = []
    for k, (x, wanted) in enumerate(inputs):
        if x._dtype is not wanted or not fits(x):
            dense = mould(x._shape, wanted)
            copies.append((2 * (outs + k), dense, ready_copy(fresh(dense)._operand, x._operand)))
    if not copies:
        return run

    def copying(*values: Any) -> None:
        given = list(values)
        for at, dense, copy in copies:
            array = fresh(dense)._array
            copy(array, 0, *given[at : at + 2])
            given[at : at + 2] = array, 0
        run(*given)

    return copying


def is_list(type_: Any) -> bool:
    """Whether a schema type is a list, or one that may be left out."""
    return isinstance(type_.elem if isinstance(type_, OptionalType) else type_, ListType)
