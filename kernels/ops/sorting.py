"""Order along one dimension: sort, argsort, topk, kthvalue, median, mode. What is chosen, and where it stood.

NaN is larger than all. Every sort is stable, whether one asks for it or not: the kernel knows no faster one. Gradients
go to where the chosen elements stood. Read next: searching.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from redispatch import kernels
from redispatch.dispatch import impl
from redispatch.dispatch.specialiser.annotations import frozen, inline, leaf
from redispatch.dispatch.tensor import (
    Size,
    Tensor,
    dtype,
    dtypes,
    empty,
    empty_from,
    metadata_of,
    output_spec,
    wrap_dim,
)
from redispatch.kernels import Operand
from redispatch.kernels.declare.out_forms import copy_into_out

from ..declare.declare import Operator
from ..declare.plan import PLANS, Plan, Run
from ..declare.public import public
from ..declare.structured import (
    Meta,
    Structured,
    apart,
    check_no_internal_overlap,
    check_out_dtype,
    copy_of,
    resize_out,
)
from .creation import preserved_strides
from .extremes import chosen, selected, shared
from .reductions import reduced_shape

VALUES = "(Tensor values, Tensor indices)"


class Choice(NamedTuple):
    """What both results look like, and what makes the loop that fills them."""

    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    ready: Callable[[Operand, Operand], Run]


@frozen
class Choosing(Operator):
    """An operator that gives elements of its first argument and their positions.

    `choice` is a function of the arguments that checks them and returns a `Choice`; both forms follow from it.
    """

    choice_function: Callable[..., Choice]

    def __init__(self, schema: str, out: str, **options: Any) -> None:
        super().__init__(schema, **options)
        self.plans: dict[Any, Plan] = {}
        name, _, rest = schema.partition("(")
        arguments, _, _ = rest.partition(") -> ")
        self.title, _, _ = name.partition(".")
        star = "" if "*, " in arguments else "*, "
        written = f"{self.title}.{out}({arguments}, {star}Tensor(a!) values, Tensor(b!) indices)"
        self.writing = Operator(f"{written} -> (Tensor(a!) values, Tensor(b!) indices)", **options)
        self.out = self.writing.functional

    def choice(self, function: Callable[..., Choice]) -> Callable[..., Choice]:
        """Registers what decides, and with it the kernels of both forms."""
        self.choice_function = function
        for op, kernel in ((self.functional, self.run_functional), (self.writing.functional, self.run_out)):
            for key in ("CPU", "Meta"):
                impl(op, key, kernel, convention="positional", place=self.place, name=self.title)
        return function

    @leaf
    @inline
    def run_functional(self, *args: Any) -> tuple[Tensor, Tensor]:
        x = args[0]
        if x._array is None:
            return self.run_elsewhere(args)
        key = (x._interned or metadata_of(x), args[1:])
        plan = self.plans.get(key)
        if plan is None:
            plan = self.new_plan(key, args)
        values, indices = empty_from(plan.outputs[0]), empty_from(plan.outputs[1])
        plan.run(values._array, 0, indices._array, 0, x._array, x._offset)
        return values, indices

    def run_elsewhere(self, args: tuple[Any, ...]) -> tuple[Tensor, Tensor]:
        """The same off the CPU, where no plan is remembered; nothing is computed on the meta device."""
        x = args[0]
        choice = self.choice_function(*args)
        values = empty(choice.shape, x._dtype, x._device, choice.strides)
        indices = empty(choice.shape, dtypes.int64, x._device, choice.strides)
        if x._device.type != "meta":
            choose(self, args, values, indices)
        return values, indices

    def new_plan(self, key: Any, args: tuple[Any, ...]) -> Plan:
        x = args[0]
        choice = self.choice_function(*args)
        values = output_spec(Size(choice.shape), x._dtype, x._device, choice.strides)
        indices = output_spec(Size(choice.shape), dtypes.int64, x._device, choice.strides)
        run = choice.ready(empty_from(values)._operand, empty_from(indices)._operand)
        if len(self.plans) >= PLANS:
            self.plans.clear()
        plan = self.plans[key] = Plan((values, indices), run)
        return plan

    @leaf
    def run_out(self, *args: Any) -> tuple[Tensor, Tensor]:
        *inputs, values, indices = args
        x = inputs[0]
        choice = self.choice_function(*inputs)
        for out, wanted in ((values, x._dtype), (indices, dtypes.int64)):
            check_out_dtype(out, wanted)
            resize_out(out, Meta(choice.shape, wanted, x._device, choice.strides))
            check_no_internal_overlap(out)
        if x._device.type != "meta":
            choose(self, (apart(x, values, elementwise=False), *inputs[1:]), values, indices)
        return values, indices


ELSEWHERE: dict[str, Callable[[Choosing, tuple[Any, ...], Tensor, Tensor], None]] = {}  # by device: what fills both


def choose(op: Choosing, args: tuple[Any, ...], values: Tensor, indices: Tensor) -> None:
    """Fills the results of a call."""
    x = args[0]
    if x._device.type in ELSEWHERE:
        ELSEWHERE[x._device.type](op, args, values, indices)
        return
    run = op.choice_function(*args).ready(values._operand, indices._operand)
    run(*(part for one in (values, indices, x) for part in (one._operand.array, one._offset)))


def check_real(message: str, self: Tensor) -> None:
    if self._dtype.is_complex:
        raise RuntimeError(message)


def check_has_kernel(kernel: str, self: Tensor, but: tuple[str, ...] = ()) -> None:
    if self._dtype.is_complex or self._dtype.name in but:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{self._dtype.tensor_name}'")


def check_line(name: str, self: Tensor, axis: int) -> None:
    """Raises IndexError where one element is to be chosen of none."""
    if self._shape and not self._shape[axis]:
        raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")


# --- sort ------------------------------------------------------------------------------------------------------------

sort_op = Choosing(f"sort(Tensor self, int dim=-1, bool descending=False) -> {VALUES}", "values")
sort_stable_op = Choosing(
    f"sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> {VALUES}", "values_stable"
)


@sort_op.choice
def sort_choice(self: Tensor, dim: int, descending: bool) -> Choice:
    check_real(" Sort does not support complex dtypes on CPU", self)
    axis = wrap_dim(dim, len(self._shape))

    def ready(values: Operand, indices: Operand) -> Run:
        return kernels.ready_sort(values, indices, self._operand, axis, descending=descending)

    return Choice(self._shape, preserved_strides(self), ready)


@sort_stable_op.choice
def sort_stable_choice(self: Tensor, stable: bool | None, dim: int, descending: bool) -> Choice:
    return sort_choice(self, dim, descending)


def to_their_places(grad: Any, result1: Any, self_shape: Any, dim: int) -> Any:
    return selected(grad, result1, self_shape, dim, True)


sort_op.derivative(self=to_their_places, nondifferentiable=(1,))
sort_stable_op.derivative(self=to_their_places, nondifferentiable=(1,), node="SortBackward1")
sort_op.forward(chosen(dim=1))
sort_stable_op.forward(chosen(dim=2))
sort = public(sort_op, sort_stable_op)

argsort_op = Operator("argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor")
argsort_stable_op = Operator(
    "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor", out="stable_out"
)
msort_op = Operator("msort(Tensor self) -> Tensor", out="out")


@argsort_op.implicit
def argsort_composite(self: Any, dim: int, descending: bool) -> Any:
    return sort_op.functional(self, dim, descending)[1]


@argsort_stable_op.implicit
def argsort_stable_composite(self: Any, stable: bool, dim: int, descending: bool) -> Any:
    return sort_stable_op.functional(self, stable=stable, dim=dim, descending=descending)[1]


@msort_op.implicit
def msort_composite(self: Any) -> Any:
    return sort_op.functional(self, 0)[0]


copy_into_out(argsort_stable_op, msort_op)
argsort = public(argsort_op, argsort_stable_op)
msort = public(msort_op)

# --- topk, kthvalue --------------------------------------------------------------------------------------------------

topk_op = Choosing(
    f"topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> {VALUES}", "values"
)


@topk_op.choice
def topk_choice(self: Tensor, k: int, dim: int, largest: bool, sorted: bool) -> Choice:
    axis = wrap_dim(dim, len(self._shape))
    if not 0 <= k <= (self._shape[axis] if self._shape else 1):
        raise RuntimeError("selected index k out of range")
    check_real(" topk does not support complex dtypes on CPU", self)
    if self._dtype is dtypes.bool:
        raise RuntimeError("topk does not support bool dtypes on CPU")

    def ready(values: Operand, indices: Operand) -> Run:
        return kernels.ready_top(values, indices, self._operand, axis, largest=largest, in_order=sorted)

    shape = (*self._shape[:axis], k, *self._shape[axis + 1 :]) if self._shape else ()
    return Choice(shape, None, ready)


topk_op.derivative(self=to_their_places, nondifferentiable=(1,))
topk_op.forward(chosen(dim=2))
topk = public(topk_op)

kthvalue_op = Choosing(f"kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> {VALUES}", "values")


@kthvalue_op.choice
def kthvalue_choice(self: Tensor, k: int, dim: int, keepdim: bool) -> Choice:
    axis = wrap_dim(dim, len(self._shape))
    check_line("kthvalue", self, axis)
    if not 1 <= k <= (self._shape[axis] if self._shape else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {axis}")
    check_has_kernel("kthvalue_cpu", self, but=("bool",))
    return of_rank(self, axis, keepdim, k - 1)


def of_rank(self: Tensor, axis: int, keepdim: bool, rank: int | None, skip_nan: bool = False) -> Choice:

    def ready(values: Operand, indices: Operand) -> Run:
        return kernels.ready_rank(values, indices, self._operand, axis, rank, skip_nan=skip_nan)

    return Choice(reduced_shape(self._shape, (axis,) if self._shape else (), keepdim), None, ready)


def to_its_place(grad: Any, result1: Any, self_shape: Any, dim: int, keepdim: bool) -> Any:
    return selected(grad, result1, self_shape, dim, keepdim)


kthvalue_op.derivative(self=to_its_place, nondifferentiable=(1,))
kthvalue_op.forward(chosen(dim=2, keepdim=3))
kthvalue = public(kthvalue_op)

# --- median, mode ----------------------------------------------------------------------------------------------------

median_op = Structured("median(Tensor self) -> Tensor", out="out")
nanmedian_op = Structured("nanmedian(Tensor self) -> Tensor", out="out")
median_dim_op = Choosing(f"median.dim(Tensor self, int dim, bool keepdim=False) -> {VALUES}", "dim_values")
nanmedian_dim_op = Choosing(f"nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> {VALUES}", "dim_values")


@median_op.meta
@nanmedian_op.meta
def median_meta(self: Tensor) -> Meta:
    check_has_kernel("median_cpu", self, but=("bool",))
    return Meta((), self._dtype, self._device)


def middle(out: Tensor, self: Tensor, skip_nan: bool) -> None:
    """The middle one of all elements, of whose order in memory nothing depends."""
    count = self._shape.numel()
    if not count:
        kernels.fill(out._operand, of_none(out._dtype))
        return
    dense = self if kernels.is_dense(self._shape, self._stride) else copy_of(self)
    line = dense._operand._replace(shape=(count,), strides=(1,))
    place = empty((), dtypes.int64, out._device)._operand
    find = kernels.ready_rank(out._operand, place, line, 0, None, skip_nan=skip_nan)
    find(out._operand.array, out._offset, place.array, 0, line.array, line.offset)


def of_none(kind: dtype) -> Any:
    """The median of no elements: NaN, and what a processor makes of that for integers."""
    return math.nan if kind.is_floating_point else -(1 << 8 * kind.itemsize - 1) if kind.itemsize > 2 else 0


@median_op.body
def median_body(out: Tensor, self: Tensor) -> None:
    middle(out, self, skip_nan=False)


@nanmedian_op.body
def nanmedian_body(out: Tensor, self: Tensor) -> None:
    middle(out, self, skip_nan=True)


@median_dim_op.choice
def median_choice(self: Tensor, dim: int, keepdim: bool) -> Choice:
    return middle_choice(self, dim, keepdim, skip_nan=False)


@nanmedian_dim_op.choice
def nanmedian_choice(self: Tensor, dim: int, keepdim: bool) -> Choice:
    return middle_choice(self, dim, keepdim, skip_nan=True)


def middle_choice(self: Tensor, dim: int, keepdim: bool, skip_nan: bool) -> Choice:
    axis = wrap_dim(dim, len(self._shape))
    check_line("median", self, axis)
    check_has_kernel("median_out", self, but=("bool",))
    return of_rank(self, axis, keepdim, None, skip_nan)


def to_the_middle(grad: Any, self: Any, result: Any) -> Any:
    return shared(grad, self, result, None, False)


median_op.derivative(self=to_the_middle)
nanmedian_op.derivative(self=to_the_middle)
median_dim_op.derivative(self=to_its_place, nondifferentiable=(1,), node="MedianBackward1")
nanmedian_dim_op.derivative(self=to_its_place, nondifferentiable=(1,), node="NanmedianBackward1")
median_dim_op.forward(chosen(dim=1, keepdim=2))
nanmedian_dim_op.forward(chosen(dim=1, keepdim=2))
median = public(median_op, median_dim_op)
nanmedian = public(nanmedian_op, nanmedian_dim_op)

mode_op = Choosing(f"mode(Tensor self, int dim=-1, bool keepdim=False) -> {VALUES}", "values")


@mode_op.choice
def mode_choice(self: Tensor, dim: int, keepdim: bool) -> Choice:
    axis = wrap_dim(dim, len(self._shape))
    check_line("mode", self, axis)
    check_has_kernel("mode_cpu", self)

    def ready(values: Operand, indices: Operand) -> Run:
        return kernels.ready_mode(values, indices, self._operand, axis)

    return Choice(reduced_shape(self._shape, (axis,) if self._shape else (), keepdim), None, ready)


mode_op.derivative(self=to_its_place, nondifferentiable=(1,))
mode_op.forward(chosen(dim=1, keepdim=2))
mode = public(mode_op)
