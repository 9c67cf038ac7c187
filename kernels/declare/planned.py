"""Structured operators whose calls go by plans: reductions, softmax, matrix products, norms.

Such an operator has a `loop` in the place of a body. It gets the output (or all outputs, as a tuple) and the arguments,
reads only the metadata of tensors, and returns the function that does the work for all such tensors: the `run` of a
plan (plan.py). So a call is one look-up, one fresh tensor, one loop; pointwise operators do the same with more to
decide (pointwise.py).

Read next: kernels/ops/reductions.py, kernels/ops/normalization.py, kernels/ops/linalg.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redispatch.dispatch import Memo, impl
from redispatch.dispatch.inspection.frames import HIDDEN
from redispatch.dispatch.specialiser.annotations import frozen, inline, leaf
from redispatch.dispatch.tensor import META, OutputSpec, Size, Tensor, dtype, empty_from, output_spec
from redispatch.kernels import is_contiguous, ready_copy

from .declare import Operator
from .plan import PLANS, Deciding, Plan, Run
from .relies import relying
from .structured import Meta, Structured

HIDDEN.add(__name__)  # nobody looks for a mistake here


@frozen
class ByLoop(Deciding, Operator):
    """An operator with a meta function and a loop: its functional form on the CPU.

    metas_function: the metadata of all outputs, None for one that is not asked for.
    """

    several = False
    metas_function: Callable[..., tuple[Meta | None, ...]]
    loop_function: Callable[..., Run]

    def __init__(self, schema: str, **options: Any) -> None:
        super().__init__(schema, **options)
        self.tensors = self.text.tensor_positions
        self.plans = Memo(PLANS, alike=self.tensors)

    @leaf
    @inline
    def run_functional(self, *args: Any) -> Any:
        """The functional kernel, which nearly every call runs."""
        facts = self.facts(args)
        plan = self.plans.get(facts)
        if plan is None:
            plan = self.new_plan(facts, args)
        if self.may_leave_out:
            return run_some(self, plan, args)
        outputs = tuple(empty_from(plan.outputs[k]) for k in range(len(self.functional.schema.returns)))
        filled: list[Any] = []
        for output in outputs:
            filled += (output._array, 0)
        plan.run(*filled, *self.operands(args))
        return outputs if self.several else outputs[0]

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

    def new_plan(self, facts: tuple[Any, ...], args: tuple[Any, ...]) -> Plan:
        """The plan for arguments of such metadata, met for the first time."""
        metas = self.metas_function(*args)
        outs = tuple(None if meta is None else meta.allocate() for meta in metas)
        run = self.loop_function(outs if self.several else outs[0], *args)
        plan = self.plans[facts] = Plan(specs_of(metas), run)
        return plan


def specs_of(metas: Sequence[Meta | None]) -> tuple[OutputSpec | None, ...]:
    """Returns the specs that outputs of such metadata are allocated from."""
    return tuple(None if m is None else output_spec(Size(m.shape), m.dtype, m.device, m.strides) for m in metas)


@leaf
def run_some(op: ByLoop, plan: Plan, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The call of an operator that makes only those outputs which its mask asks for."""
    outputs = tuple(None if spec is None else empty_from(spec) for spec in plan.outputs)
    filled = [part for output in outputs if output is not None for part in (output._array, 0)]
    plan.run(*filled, *op.operands(args))
    return outputs


def without_plan(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel that decides anew each time, of one that remembers what it did with the CPU's memory."""
    op = getattr(kernel, "__self__", None)
    if isinstance(op, Planned) and kernel.__name__ == "run_functional":
        return lambda *args: Structured.run_functional(op, *args)
    if isinstance(op, PlannedSeveral):
        return lambda *args: results_of(op, *args)
    return kernel


def results_of(op: PlannedSeveral, *args: Any) -> tuple[Any, ...]:
    """The results of an operator that has several."""
    results = tuple(None if meta is None else meta.allocate() for meta in op.metas_function(*args))
    run = op.loop_function(results, *args)
    written = [part for x in results if x is not None for part in (x._operand.array, x._offset)]
    run(*written, *op.operands(args))
    return results


@frozen
class Planned(ByLoop, Structured):
    """A structured operator whose call is decided by the metadata of its tensors and by its other arguments.

    Its result's dtype must not depend on the default dtype, since plans do not know of it.

    dtype_of_target: whether, in place and with `out=`, `dtype=None` means the dtype of what is written to.
    """

    def __init__(self, schema: str, *, dtype_of_target: bool = False, **options: Any) -> None:
        super().__init__(schema, **options)
        self.dtype_of_target = dtype_of_target

    def loop(self, function: Callable[..., Run]) -> Callable[..., Run]:
        """Registers what returns the work. Where no body is declared, it does that of the other forms, too."""
        self.loop_function, self.doc = function, self.doc or function.__doc__ or ""
        if not hasattr(self, "body_function"):
            self.body(self.run_loop)
        return function

    def run_loop(self, out: Tensor, *args: Any) -> None:
        # The body: fills `out`, whatever its metadata.
        self.loop_function(out, *args)(out._operand.array, out._offset, *self.operands(args))


@frozen
class PlannedSeveral(ByLoop):
    """Plans an operator with several results, in its functional form.

    `meta` gives the metadata of the results, None for one that is not asked for; `loop` gets them, as a tuple, and the
    arguments, and returns what fills them: `f(out, out_at, other_out, other_out_at, x, x_at, ...)`, without what is
    None.
    """

    several = True

    def meta(self, function: Callable[..., tuple[Meta | None, ...]]) -> Callable[..., tuple[Meta | None, ...]]:
        """Registers what gives the results' metadata, and with it the kernel of the meta device."""
        self.metas_function = relying(self, function)
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
    def run_meta(self, *args: Any) -> tuple[Any, ...]:
        return tuple(None if meta is None else meta.allocate(META) for meta in self.metas_function(*args))


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
            dense = output_spec(x._shape, wanted)
            copies.append((2 * (outs + k), dense, ready_copy(empty_from(dense)._operand, x._operand)))
    if not copies:
        return run

    def copying(*values: Any) -> None:
        given = list(values)
        for at, dense, copy in copies:
            array = empty_from(dense)._array
            copy(array, 0, *given[at : at + 2])
            given[at : at + 2] = array, 0
        run(*given)

    return copying
