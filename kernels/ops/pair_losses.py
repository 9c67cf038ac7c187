"""Losses of pairs of elements, a prediction and its target: squared, absolute, Huber's, binary and relative entropies.

    mse                  (x - y)²
    l1                   |x - y|
    huber, smooth_l1     squared where x and y are close, absolute where they are not
    soft_margin          log(1 + exp(-x y))
    binary_cross_entropy -y log x - (1 - y) log(1 - x), of a probability x; `_with_logits` of σ(x)
    kl_div, poisson_nll  of distributions

The two broadcast. `reduction` is 0 (none), 1 (mean) or 2 (sum), as schemas have it. Where PyTorch's gradient is an
operator of its own, so is it here: `<name>_backward`. Read next: loss.py, margin_losses.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import STATE, ops
from redispatch.dispatch.specialiser.annotations import frozen
from redispatch.dispatch.tensor import Size, Tensor, empty_from, output_spec, result_type
from redispatch.kernels import Elementwise, Operand, Recipe, Reduction, broadcast_shapes, output_strides
from redispatch.kernels import exp as exp_
from redispatch.kernels import log as log_
from redispatch.kernels import log1p as log1p_

from ..declare.declare import Function, Operator, taking, through
from ..declare.operator import FP32, composite, kernel
from ..declare.plan import Run
from ..declare.planned import Planned
from ..declare.pointwise import COMPLEX, NOT_FLOATING, WHOLE
from ..declare.public import public
from ..declare.structured import Meta, check_can_cast, common_device, not_implemented
from .arithmetic import add_scalar_op, mul_scalar_op
from .binary import xlogy_op

NONE, MEAN, SUM = 0, 1, 2


def reduced(loss: Any, reduction: int) -> Any:
    """The loss of each element, their mean or their sum."""
    return loss.mean() if reduction == MEAN else loss.sum() if reduction == SUM else loss


def share(self_shape: Any, target_shape: Any, reduction: int) -> float:
    """Returns the share of one element in the gradient of the loss: its share of the mean, or all of it."""
    count = math.prod(broadcast_shapes(tuple(self_shape), tuple(target_shape)))
    return 1.0 if reduction != MEAN else 1.0 / count if count else math.nan


@frozen
class OfPairs(Planned):
    """Applies a scalar function to the elements of several tensors, which broadcast, and to numbers behind them.

    The function takes them in the order of the schema, without the reduction; a tensor that is not given counts as 1.
    """

    def __init__(self, schema: str, each: Function, *, cost: int = 1, **facts: Any) -> None:
        super().__init__(schema, batching="losses", **facts)
        self.each = Elementwise(self.base_name, each, cost=cost)
        self.reduction = self.names.index("reduction")
        self.number_places = [i for i in range(len(self.names)) if i not in self.tensors and i != self.reduction]
        self.check_function: Function | None = None
        self.meta(self.pair_meta)
        self.loop(self.pair_loop)

    def check(self, function: Function) -> Function:
        """Registers what raises for arguments that the operator refuses."""
        self.check_function = function
        return function

    def metadata(self, args: Sequence[Any]) -> Meta:
        """One value of each pair."""
        if self.check_function is not None:
            self.check_function(*args)
        given = [args[i] for i in self.tensors if args[i] is not None]
        compute = result_type(*given)
        if compute.name in self.refuses:
            raise not_implemented(str(self.refuses[compute.name]), compute)
        shape = broadcast_shapes(*(tuple(x._shape) for x in given))
        strides = output_strides(shape, tuple((x._shape, x._stride) for x in given))
        return Meta(shape, compute, common_device(*given), strides)

    def pair_meta(self, *args: Any) -> Meta:
        return self.metadata(args)

    def pair_loop(self, out: Tensor, *args: Any) -> Run:
        return self.values(out, args, [args[i] for i in self.number_places])

    def values(self, out: Tensor, args: Sequence[Any], numbers: Sequence[Any]) -> Run:
        """The work: one value of each pair."""
        tensors = [args[i] for i in self.tensors]
        inputs = [1.0 if x is None else x._operand for x in tensors]
        compute = result_type(*(x for x in tensors if x is not None))
        run = self.each.loop((out._operand,), [*inputs, *numbers], compute.name).run
        absent = [k for k, x in enumerate(tensors) if x is None]
        if not numbers and not absent:
            return run

        def with_numbers(to: np.ndarray, to_at: int, *arrays: Any) -> None:
            given: list[Any] = list(arrays)
            for before, k in enumerate(absent):  # a tensor has two places, its array and its offset; the 1 has one
                given.insert(2 * k - before, 1.0)
            run(to, to_at, *given, *numbers)

        return with_numbers


@frozen
class PairLoss(OfPairs):
    """The loss of each pair, by a scalar function of the elements and numbers: each, or their mean or sum.

    as_self: whether the result has the dtype of `self`, not the common one.
    """

    def __init__(self, schema: str, each: Function, *, as_self: bool = False, **options: Any) -> None:
        super().__init__(schema, each, **options)
        self.as_self = as_self

    def pair_meta(self, *args: Any) -> Meta:
        meta = self.metadata(args)
        if self.as_self:
            check_can_cast(meta.dtype, args[0]._dtype)
            meta = meta._replace(dtype=args[0]._dtype)
        return meta if args[self.reduction] not in (MEAN, SUM) else Meta((), meta.dtype, meta.device)

    def pair_loop(self, out: Tensor, *args: Any) -> Run:
        numbers = [args[i] for i in self.number_places]
        if args[self.reduction] not in (MEAN, SUM):
            return self.values(out, args, numbers)
        scratch = output_spec(Size(self.metadata(args).shape), out._dtype)
        each = empty_from(scratch)
        fill = self.values(each, args, numbers)
        reduction = kernels.MEAN if args[self.reduction] == MEAN else kernels.SUM
        reduce = reduction.ready(out._operand, each._operand, range(len(each._shape)))

        def run(to: np.ndarray, to_at: int, *arrays: Any) -> None:
            values = empty_from(scratch)._array
            fill(values, 0, *arrays)
            reduce(to, to_at, values, 0)

        return run


@frozen
class PairSlope(OfPairs):
    """grad_output times the slope of a loss in `self`: the scalar function takes the share of a mean, last of all."""

    def pair_loop(self, out: Tensor, *args: Any) -> Run:
        factor = share(args[1]._shape, args[2]._shape, args[self.reduction])
        return self.values(out, args, [*(args[i] for i in self.number_places), factor])


NO_KERNEL = ("bool", *COMPLEX)


def differentiate(loss: Operator, slope: Operator, bend: Function, *, by_target: bool = True) -> None:
    """Declares the derivatives of a loss and of the operator that is its slope.

    bend: how the slope changes with `self`, a function of `grad`, `grad_output`, `self`, `target` and the rest.
    by_target: whether the loss is symmetric, so that its slope in the target is that in `self` with the two exchanged,
        and changes with the target by the bend's negative.
    """
    _, _, _, *rest = slope.names
    gradients: dict[str, Function] = {"self": through(slope, "grad", "self", "target", *rest)}
    bends: dict[str, Function] = {"self": taking("grad", "grad_output", "self", "target", *rest)(bend)}
    if by_target:
        gradients["target"] = through(slope, "grad", "target", "self", *rest)
        bends["target"] = taking("grad", "grad_output", "self", "target", *rest)(lambda grad, *how: bend(-grad, *how))
    loss.differentiate_by([((name,), formula) for name, formula in gradients.items()])
    incoming = (("grad_output",), gradients["self"])
    slope.differentiate_by([incoming, *(((name,), formula) for name, formula in bends.items())])


def pair_loss(
    schema: str, each: Function, slope: Function, bend: Function, *, check: Function | None = None, **facts: Any
) -> Any:
    """Declares a symmetric loss by the functions of one pair (see PairSlope and `differentiate`), and the operator
    `<name>_backward` that is its slope. `check` raises for arguments that the loss refuses.

    Facts with `slope_` in front are those of the slope.
    """
    of_slope = {name.removeprefix("slope_"): facts.pop(name) for name in [*facts] if name.startswith("slope_")}
    loss = PairLoss(schema, each, out="out", autocast=FP32, **facts)
    loss.check_function = check
    given = ", ".join(argument.partition("=")[0] for argument in loss.text.arguments)
    backward = f"{loss.base_name}_backward(Tensor grad_output, {given}) -> Tensor"
    differentiate(loss, PairSlope(backward, slope, **({"late_out": "grad_input"} | of_slope)), bend)
    return public(loss, module="nn")


# --- mse_loss, l1_loss -----------------------------------------------------------------------------------------------


def squared_difference(x, y):
    return (x - y) * (x - y)


def scaled_difference(grad, x, y, factor):
    return 2 * factor * (x - y) * grad


def mse_bend(grad, grad_output, self, target, reduction):
    return grad * grad_output * (2 * share(self.shape, target.shape, reduction))


mse_loss = pair_loss(
    "mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
    squared_difference,
    scaled_difference,
    mse_bend,
    refuses={NOT_FLOATING: "mse_cpu"},
    slope_refuses={NO_KERNEL: "mse_backward_cpu_out"},
    doc="Returns the squares of the differences, or their mean or sum.",
)


@composite(
    "l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor", autocast=FP32, refuses={"bool": ""}, module="nn"
)
def l1_loss(self, target, reduction):
    """Returns the absolute values of the differences, or their mean or sum."""
    return reduced((self - target).abs(), reduction)


# --- huber_loss, smooth_l1_loss: a parabola near 0 that goes on in straight lines ------------------------------------


def huber(x, y, delta):
    size = abs(x - y)
    return 0.5 * size * size if size <= delta else delta * (size - 0.5 * delta)


def huber_slope(grad, x, y, delta, factor):
    difference = x - y
    bounded = -delta if difference <= -delta else delta if difference >= delta else difference
    return factor * bounded * grad


def smooth_l1(x, y, beta):
    size = abs(x - y)
    return 0.5 * size * size / beta if size < beta else size - 0.5 * beta


def smooth_l1_slope(grad, x, y, beta, factor):
    difference = x - y
    bounded = -1 if difference <= -beta else 1 if difference >= beta else difference / beta
    return factor * bounded * grad


def check_huber(self, target, reduction, delta):
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")


def check_smooth_l1(self, target, reduction, beta):
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")


def bend(grad: Any, grad_output: Any, self: Any, target: Any, reduction: int, bound: float, curvature: float) -> Any:
    """The slope's own slope in `self`: where the parabola is only."""
    near = (self - target).abs() < bound
    return grad * grad_output * near * (curvature * share(self.shape, target.shape, reduction))


huber_loss = pair_loss(
    "huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor",
    huber,
    huber_slope,
    lambda g, grad, x, y, how, delta: bend(g, grad, x, y, how, delta, 1.0),
    check=check_huber,
    as_self=True,
    refuses={NOT_FLOATING: "huber_cpu"},
    slope_refuses={NOT_FLOATING: "huber_backward_cpu_out"},
    slope_late_out=("out", "grad_input"),
    doc="Returns d² / 2, or delta (|d| - delta / 2) beyond delta; or mean or sum.",
)
smooth_l1_loss = pair_loss(
    "smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor",
    smooth_l1,
    smooth_l1_slope,
    lambda g, grad, x, y, how, beta: bend(g, grad, x, y, how, beta, 1 / beta if beta else 0.0),
    check=check_smooth_l1,
    refuses={NOT_FLOATING: "smooth_l1_cpu"},
    slope_refuses={NO_KERNEL: "smooth_l1_backward_cpu_out"},
    doc="Returns d² / (2 beta), or |d| - beta / 2 beyond beta; or mean or sum.",
)

# --- soft_margin_loss: the targets are 1 and -1 ----------------------------------------------------------------------


@kernel(
    "soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
    autocast=FP32,
    batching="losses",
    refuses={WHOLE: ""},
    module="nn",
)
def soft_margin_loss(self, target, reduction):
    """Returns log(1 + exp(-x y)) in the dtype of `self`, or its mean or sum."""
    loss = self.mul(-target).exp().log1p()
    check_can_cast(loss.dtype, self.dtype)
    return reduced(loss.to(self.dtype), reduction)


@kernel(
    "soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
    batching="losses",
    late_out="grad_input",
    refuses={WHOLE: ""},
    face=False,
)
def soft_margin_backward_op(grad_output, self, target, reduction):
    """-y exp(-x y) / (1 + exp(-x y)) of each pair."""
    z = (-target * self).exp()
    check_can_cast(z.dtype, self.dtype)
    return -target * z / (z + 1) * grad_output * share(self.shape, target.shape, reduction)


def soft_margin_bend(grad: Any, grad_output: Any, self: Any, target: Any, reduction: int) -> Any:
    z = (self * target).sigmoid()
    return grad * grad_output * (target * target * z * (1 - z)) * share(self.shape, target.shape, reduction)


differentiate(soft_margin_loss.op, soft_margin_backward_op, soft_margin_bend, by_target=False)

# --- binary_cross_entropy: self is a probability ---------------------------------------------------------------------


def probability_loss(x, y, weight):
    """No logarithm counts for less than -100: one miss is no infinity."""
    return weight * ((y - 1) * max(log1p_(-x), -100.0) - y * max(log_(x), -100.0))


def probability_slope(grad, x, y, weight, factor):
    return factor * grad * weight * (x - y) / max(x * (1 - x), 1e-12)


int64 = np.int64


def outside_of_unit(x):
    return int64(0) if x >= 0 and x <= 1 else int64(1)  # NaN, too, is outside


def add_to(acc, x):
    return acc + x


def as_counted(acc, total):
    return acc


OUTSIDE = Reduction("outside_of_unit", lambda dtype: Recipe(outside_of_unit, np.int64(0), add_to, as_counted))


@frozen
class ProbabilityLoss(PairLoss):
    """Computes a loss behind a look at all elements: none may be outside [0, 1]."""

    def pair_loop(self, out: Tensor, *args: Any) -> Run:
        run = super().pair_loop(out, *args)
        total = Operand(np.zeros(1, np.int64), "int64", (), ())
        counts = [OUTSIDE.ready(total, x._operand, range(len(x._shape))) for x in args[:2]]

        def checked(to: np.ndarray, to_at: int, *arrays: Any) -> None:
            for k, count in enumerate(counts):
                found = np.zeros(1, np.int64)
                count(found, 0, *arrays[2 * k : 2 * k + 2])
                if found[0]:
                    name = ("input", "target")[k]
                    raise RuntimeError(f"all elements of {name} should be between 0 and 1")
            run(to, to_at, *arrays)

        return checked


probability_op = ProbabilityLoss(
    "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
    probability_loss,
    cost=16,
    out="out",
    autocast={"cpu": "fp32", "cuda": "banned"},
    refuses={NOT_FLOATING: "binary_cross_entropy"},
)
probability_backward_op = PairSlope(
    "binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, "
    "int reduction=1) -> Tensor",
    probability_slope,
    late_out="grad_input",
    refuses={NOT_FLOATING: "binary_cross_entropy_backward"},
)


@probability_op.check
def check_probabilities(self, target, weight, reduction):
    for x in (target, weight):
        if x is not None and x._dtype is not self._dtype:
            raise RuntimeError(f"Found dtype {x._dtype.tensor_name} but expected {self._dtype.tensor_name}")


def weighted(slope: Any, grad: Any, weight: Any, reduction: int) -> Any:
    result = slope * grad if weight is None else slope * weight * grad
    return result / result.numel() if reduction == MEAN else result


def probability_target_backward(grad: Any, self: Any, target: Any, weight: Any, reduction: int) -> Any:
    return weighted((-self).log1p() - self.log(), grad, weight, reduction)


def probability_bend(grad: Any, grad_output: Any, self: Any, target: Any, weight: Any, reduction: int) -> Any:
    """y / x² + (1 - y) / (1 - x)²."""
    variance = (self - self * self).clamp_min(1e-12)
    bend = (self * self - 2 * self * target + target) / (variance * variance)
    return weighted(bend, grad * grad_output, weight, reduction)


def probability_target_bend(grad: Any, grad_output: Any, self: Any, target: Any, weight: Any, reduction: int) -> Any:
    return weighted(-1 / (self - self * self).clamp_min(1e-12), grad * grad_output, weight, reduction)


BACKWARD = ("grad", "self", "target", "weight", "reduction")
probability_op.derivative(self=through(probability_backward_op, *BACKWARD), target=probability_target_backward)
probability_backward_op.derivative(
    grad_output=through(probability_backward_op, *BACKWARD), self=probability_bend, target=probability_target_bend
)
binary_cross_entropy = public(
    probability_op, module="nn", doc="Returns -(y log x + (1 - y) log(1 - x)), or its mean or sum."
)

# --- binary_cross_entropy_with_logits: σ(self) is a probability ------------------------------------------------------


def logit_loss(x, y, weight, positive):
    """-y log σ(x) - (1 - y) log(1 - σ(x)), with -log σ(x) = max(-x, 0) + log(1 + exp(-|x|)), which cannot overflow."""
    softplus = (0 if x > 0 else -x) + math.log1p(exp_(-abs(x)))
    return weight * ((1 - y) * x + (1 + (positive - 1) * y) * softplus)


bce_op = PairLoss(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, "
    "int reduction=1) -> Tensor",
    logit_loss,
    cost=16,
    autocast=FP32,
    refuses={NOT_FLOATING: "log_sigmoid_cpu"},
)


def bce_backward(grad: Any, self: Any, target: Any, weight: Any, pos_weight: Any, reduction: int) -> Any:
    """σ(x) - y, or with weights of the positive class (p y + 1 - y) σ(x) - p y."""
    if pos_weight is None:
        slope = self.sigmoid() - target
    else:
        positive = pos_weight * target
        slope = (ops.aten.add.Scalar(positive, 1) - target) * self.sigmoid() - positive
    result = weighted(slope, grad, weight, NONE)
    if reduction != MEAN:
        return result
    return (ops.aten.div.Scalar if STATE.get().levels else ops.aten.div_.Scalar)(result, result.numel())


def bce_target_backward(grad: Any, self: Any, target: Any, weight: Any, pos_weight: Any, reduction: int) -> Any:
    slope = -self
    if pos_weight is not None:
        slope = slope + (pos_weight - 1) * ((-self.abs()).exp().log1p() + (-self).clamp(min=0))
    return weighted(slope, grad, weight, reduction)


bce_op.derivative(self=bce_backward, target=bce_target_backward)
binary_cross_entropy_with_logits = public(
    bce_op, method=False, doc="Returns the binary cross entropy of the sigmoid of x, or its mean or sum."
)

# --- kl_div, poisson_nll_loss ----------------------------------------------------------------------------------------


@composite(
    "kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor",
    autocast=FP32,
    refuses={NOT_FLOATING: ""},
    method=False,
)
def kl_div(self, target, reduction, log_target):
    """Returns q (log q - self), of log probabilities and a target q, or its logarithm; or its mean or sum."""
    for x in (self, target):
        if x.dtype.is_complex:
            raise RuntimeError("kl_div: Complex inputs not supported.")
        if not x.dtype.is_floating_point:
            raise RuntimeError("kl_div: Integral inputs not supported.")
    if log_target:
        difference = target - self
        return reduced(target.exp() * difference, reduction)
    product = target * self
    return reduced(xlogy_op.functional(target, target) - product, reduction)


@composite(
    "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor",
    autocast=FP32,
    refuses={"bool": ""},
    method=False,
)
def poisson_nll_loss(input, target, log_input, full, eps, reduction):
    """Returns λ - k log λ, of counts k and rates λ or their logarithms; `full` adds log k! by Stirling's formula."""
    if log_input:
        product = target * input
        loss = input.exp() - product
    else:
        loss = input - target * add_scalar_op.functional(input, eps).log()
    if full:
        root = mul_scalar_op.functional(mul_scalar_op.functional(target, 2 * math.pi).log(), 0.5)
        stirling = target * target.log() - target + root
        loss = loss.add_(stirling.masked_fill(target <= 1, 0))
    return reduced(loss, reduction)
