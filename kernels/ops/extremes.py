"""The largest and smallest elements: max, min, amax, amin, argmax, argmin, aminmax; and what choosing elements means.

NaN is larger and smaller than all. Of equal elements `max.dim` names one and gives it the whole gradient, while `max`
and `amax` share it among all that are equal. There is no largest of no elements. Read next: moments.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from redispatch import kernels
from redispatch.dispatch import impl, ops
from redispatch.dispatch.specialiser.annotations import frozen, inline, leaf
from redispatch.dispatch.tensor import Size, Tensor, dtypes, empty, empty_from, metadata_of, output_spec, wrap_dim
from redispatch.kernels import Operand, Reduction

from ..declare.declare import Operator, added
from ..declare.operator import leaf_kernel, planned, same_as, structured
from ..declare.plan import PLANS, Plan, Run
from ..declare.pointwise import COMPLEX
from ..declare.public import public
from ..declare.structured import (
    Meta,
    apart,
    check_has_kernel,
    check_no_internal_overlap,
    check_out_dtype,
    overlapping,
    resize_out,
)
from .arithmetic import maximum, minimum
from .reductions import REDUCTION, Reduced, reduced_dims, reduced_shape, with_kept_dims

# --- checks ----------------------------------------------------------------------------------------------------------


def check_not_empty(name: str, self: Tensor, dim: int | None) -> None:
    """Raises where an extreme over `dim`, or over everything, would be one of nothing."""
    if dim is None:
        if not self._shape.numel():
            raise RuntimeError(no_dim(name))
        return
    dim = wrap_dim(dim, len(self._shape))
    if self._shape and self._shape[dim] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")


def no_dim(name: str) -> str:
    return (
        f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
        "'dim' argument."
    )


def check_same_out(out: Tensor, self: Tensor) -> None:
    if out._dtype is not self._dtype:
        raise RuntimeError(
            f"Expected the dtype for input and out to match, but got {self._dtype.tensor_name} for input's dtype and "
            f"{out._dtype.tensor_name} for out's dtype."
        )


# --- derivatives -----------------------------------------------------------------------------------------------------


def shared(grad: Any, self: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    """The gradient of an extreme value, shared equally by all elements that are equal to it."""
    grad, result = (with_kept_dims(t, self.shape, dim, keepdim) for t in (grad, result))
    mask = (self == result) | ((self != self) & (result != result))
    return mask * (grad / mask.sum(dim, True))


def selected(grad: Any, indices: Any, shape: Any, dim: int, keepdim: bool) -> Any:
    """The gradient of elements that were selected along `dim`: it goes to where they stood."""
    if not shape:
        return grad
    if not keepdim:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return ops.aten.new_zeros.default(grad, shape).scatter(dim, indices, grad)  # the method names `pin_memory`, too


def to_its_place(grad: Any, result1: Any, self_shape: Any, dim: int, keepdim: bool) -> Any:
    return selected(grad, result1, self_shape, dim, keepdim)


def to_their_places(grad: Any, result1: Any, self_shape: Any, dim: int) -> Any:
    return selected(grad, result1, self_shape, dim, True)


def chosen(dim: int, keepdim: int | None = None) -> Any:
    """The tangent of elements that were selected, which is theirs. `dim` and `keepdim`: the places of the arguments."""

    def tangent(arguments: list[Any], tangents: list[Any], result: Any) -> list[Any]:
        moving, places = tangents[0], result[1]
        if not moving.shape:
            return [moving, None]
        if keepdim is None or arguments[keepdim]:
            return [moving.gather(arguments[dim], places), None]
        return [moving.gather(arguments[dim], places.unsqueeze(arguments[dim])).squeeze(arguments[dim]), None]

    return tangent


# --- elements with their positions ------------------------------------------------------------------------------------


class Choice(NamedTuple):
    """Holds the metadata of both results, and what makes the loop that fills them."""

    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    ready: Callable[[Operand, Operand], Run]


@frozen
class Choosing(Operator):
    """An operator that gives elements of its first argument, chosen along `dim`, and their positions.

    `meta` is a function of the arguments that checks them and returns a `Choice`; both forms follow from it. Gradients
    go to where the elements stood. Without an argument `keepdim`, the dimension is kept.
    """

    choice_function: Callable[..., Choice]

    def __init__(self, schema: str, *, node: str | None = None, **facts: Any) -> None:
        super().__init__(f"{schema} -> (Tensor values, Tensor indices)", **facts)
        self.plans: dict[Any, Plan] = {}
        gradient = to_its_place if "keepdim" in self.names else to_their_places
        self.derivative(self=gradient, nondifferentiable=(1,), node=node)
        self.forward(chosen(*(self.names.index(name) for name in ("dim", "keepdim") if name in self.names)))

    def meta(self, function: Callable[..., Choice]) -> Callable[..., Choice]:
        """Registers what decides, and with it the kernels of both forms."""
        self.choice_function, self.doc = function, self.doc or function.__doc__ or ""
        for op, run in ((self.functional, self.run_functional), (self.out, self.run_out)):
            assert op is not None
            for key in ("CPU", "Meta"):
                impl(op, key, run, convention="positional", place=self.place, name=self.base_name)
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
        """Chooses off the CPU, where no plan is remembered; nothing is computed on the meta device."""
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
            if out is x and tuple(out._shape) != tuple(choice.shape):  # resizing it would change what is read
                raise overlapping()
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


choosing = partial(structured, kind=Choosing)

# --- amax, amin, max, min --------------------------------------------------------------------------------------------


def extreme_of_dims(name: str, reduction: Reduction, kernel_name: str, doc: str) -> Any:
    """The function `amax` or `amin`."""

    def check(self: Tensor, dim: Any, keepdim: bool) -> None:
        check_has_kernel(kernel_name, self, COMPLEX)
        dims = reduced_dims(dim, len(self._shape))
        if not self._shape.numel():
            for d in dims if dim else (None,):
                check_not_empty(name, self, d)

    schema = f"{name}(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor"
    facts: dict[str, Any] = {"out": "out", "refuses": "complex", "core": True, "derivative": shared}
    return public(Reduced(schema, reduction, check=check, check_out=check_same_out, **facts), doc=doc)


amax = extreme_of_dims(
    "amax",
    kernels.AMAX,
    "max_values_cpu",
    "Returns the largest of all elements, or of those along `dim`; equal ones share the gradient.",
)
amin = extreme_of_dims(
    "amin",
    kernels.AMIN,
    "min_values_cpu",
    "Returns the smallest of all elements, or of those along `dim`; equal ones share the gradient.",
)


def extreme(name: str, reduction: Reduction, of_two: Any, names: tuple[str, str], doc: str) -> Any:
    """The function `max` or `min`: of all elements; along a dimension, with their positions; of two tensors, `of_two`.

    names: of the out= tensors of the second.
    """

    def check(self: Tensor) -> None:
        check_has_kernel(f"{name}_all", self, COMPLEX)
        check_not_empty(name, self, None)

    of_all = Reduced(
        f"{name}(Tensor self) -> Tensor",
        reduction,
        check=check,
        check_out=check_same_out,
        out="unary_out",
        refuses="complex",
        batching="full",
        derivative=lambda grad, self, result: shared(grad, self, result, None, False),
        node=f"{name.capitalize()}Backward1",
    )

    @choosing(
        f"{name}.dim(Tensor self, int dim, bool keepdim=False)",
        out=f"dim_{name}",
        out_names=names,
        tags=REDUCTION,
        core=True,
        face=False,
    )
    def along_dim(self, dim, keepdim):
        if self._dtype.is_complex:
            raise RuntimeError(f"{name}(): does not support complex input")
        check_not_empty(name, self, dim)
        dims = reduced_dims(dim, len(self._shape))

        def ready(values: Operand, indices: Operand) -> Run:
            return kernels.ready_extreme(values, indices, self._operand, dims, largest=name == "max")

        return Choice(reduced_shape(self._shape, dims, keepdim), None, ready)

    schema = f"{name}.other(Tensor self, Tensor other) -> Tensor"
    other = same_as(schema, of_two, out="out", tags=("pointwise",), refuses=None, face=False)
    return public(of_all, other, along_dim, doc=doc)  # a 0-d integer tensor is an operand rather than a dimension


max = extreme(
    "max",
    kernels.AMAX,
    maximum,
    ("max", "max_values"),
    "Returns the largest of all elements, along `dim`, or of two tensors.",
)
min = extreme(
    "min",
    kernels.AMIN,
    minimum,
    ("min", "min_indices"),
    "Returns the smallest of all elements, along `dim`, or of two tensors.",
)

# --- argmax, argmin --------------------------------------------------------------------------------------------------


def position(name: str, largest: bool, doc: str) -> Any:
    """The function `argmax` or `argmin`."""

    @planned(
        f"{name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        out="out",
        tags=REDUCTION,
        derivative=False,
        refuses="bool complex",
        core=True,
        batching="full",
        doc=doc,
    )
    def meta(self, dim, keepdim):
        if self._dtype.is_complex or self._dtype is dtypes.bool:
            kind = "complex" if self._dtype.is_complex else "bool"
            raise RuntimeError(f"{name}(): does not support {kind} input")
        if dim is None and not self._shape.numel():
            raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
        check_not_empty(name, self, dim)
        shape = reduced_shape(self._shape, reduced_dims(dim, len(self._shape)), keepdim)
        return Meta(shape, dtypes.int64, self._device)

    @meta.op.loop
    def loop(out, self, dim, keepdim):
        check_out_dtype(out, dtypes.int64)
        dims = reduced_dims(dim, len(self._shape))
        return kernels.ready_extreme(None, out._operand, self._operand, dims, largest=largest)

    return meta


argmax = position("argmax", largest=True, doc="Returns the place of the largest element, or of those along `dim`.")
argmin = position("argmin", largest=False, doc="Returns the place of the smallest element, or of those along `dim`.")

# --- aminmax ---------------------------------------------------------------------------------------------------------


@leaf_kernel(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    out="out",
    tags=REDUCTION,
    batching="full",
    refuses="complex",
)
def aminmax(self, dim, keepdim):
    """Returns the smallest and the largest of all elements, or of those along `dim`."""
    check_has_kernel("aminmax_cpu", self, COMPLEX)
    dims = reduced_dims(dim, len(self._shape))
    if dim is None and not self._shape.numel():
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    if dim is not None and self._shape and not self._shape[dims[0]]:
        raise IndexError(f"aminmax: Expected reduction dim {dims[0]} to have non-zero size.")
    shape = reduced_shape(self._shape, dims, keepdim)
    smallest, largest = (empty(shape, self._dtype, self._device) for _ in range(2))
    if self._device.type != "meta":
        kernels.AMIN.run(smallest._operand, self._operand, dims)
        kernels.AMAX.run(largest._operand, self._operand, dims)
    return smallest, largest


@aminmax.op.gradient("self")
def aminmax_backward(grads, self, result0, result1, dim, keepdim):
    parts = zip(grads, (result0, result1), strict=True)
    return added(*(None if g is None else shared(g, self, result, dim, keepdim) for g, result in parts))
