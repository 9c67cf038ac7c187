"""Dropout: elements, or whole channels, are left out at random, and the rest is scaled so that the mean stays.

`alpha_dropout` keeps the variance, too, of numbers that selu has made: it puts the value that selu tends to far below 0
in the place of what is left out, and then scales and shifts. (Klambauer et al., Self-Normalizing Neural Networks, 2017)

Each function is written in operators that modes see. `native_dropout` is one operator, which remembers what it kept.
Read next: random.py, which draws the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, dtypes, result_type
from redispatch.kernels import Elementwise

from ..declare.operator import SEEDED, composite, leaf_kernel, structured
from ..declare.structured import Meta, check_can_cast
from .activations import SELU_ALPHA, SELU_SCALE
from .creation import like
from .random import BERNOULLI, bernoulli_float_op

# --- which elements, and what becomes of them ------------------------------------------------------------------------


def each_element(x: Any) -> Any:
    """Memory for one choice per element."""
    return ops.aten.empty_like.default(x)


def each_channel(x: Any) -> Any:
    """Memory for one choice per channel: the first two dimensions."""
    if x.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return x.new_empty([*x.shape[:2], *[1] * (x.dim() - 2)])


def zero_or_scaled(kept: Any, p: float) -> tuple[Any, None]:
    """(the factor, nothing to add)"""
    return ops.aten.div_.Scalar(kept, 1 - p), None


def saturated_or_kept(kept: Any, p: float) -> tuple[Any, Any]:
    """(the factor, what to add)

    With v = scale * alpha, what is left out becomes -v. The result is scaled by 1 / sqrt((1 + p v^2) (1 - p)) to
    variance 1, and shifted by v p times as much to mean 0.
    """
    v = SELU_SCALE * SELU_ALPHA
    scale = 1 / math.sqrt((v * v * p + 1) * (1 - p))
    added = ops.aten.add.Scalar(kept, -1)
    added = ops.aten.mul_.Scalar(added, v * scale)
    added = ops.aten.add_.Scalar(added, v * scale * p)
    return ops.aten.mul_.Scalar(kept, scale), added


def check_dropout(p: float) -> None:
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")


def declare(
    name: str, choices: Callable[[Any], Any], noise: Callable[[Any, float], Any], doc: str, doc_inplace: str
) -> tuple[Any, Any]:
    """`name(input, p, train)` and `name_`, which writes over its input."""

    def dropped(x: Any, p: float, train: bool, times: Callable[[Any, Any], Any]) -> Any:
        check_dropout(p)
        if p == 0 or not train or not x.numel():
            return x
        if p == 1:
            return times(x, ops.aten.zeros.default([], dtype=x.dtype, layout=x.layout, device=x.device))
        factor, added = noise(bernoulli_float_op.functional(choices(x), 1 - p), p)
        result = times(x, factor)
        return result if added is None else result.add_(added)

    def out_of_place(input: Any, p: float, train: bool) -> Any:
        return dropped(input, p, train, lambda x, factor: x.mul(factor))

    def in_place(self: Any, p: float, train: bool) -> Any:
        return dropped(self, p, train, lambda x, factor: x.mul_(factor))

    drawing: Any = {"tags": SEEDED, "method": False}
    schema = f"{name}(Tensor input, float p, bool train) -> Tensor"
    written = f"{name}_(Tensor(a!) self, float p, bool train) -> Tensor(a!)"
    return (
        composite(schema, refuses="whole complex", doc=doc, **drawing)(out_of_place),
        composite(written, doc=doc_inplace, **drawing)(in_place),
    )


dropout, dropout_ = declare(
    "dropout",
    each_element,
    zero_or_scaled,
    "Returns the tensor with elements zeroed with probability `p`, the others scaled.",
    "Zeroes elements with probability `p` and scales the others, in place.",
)
dropout_op = dropout.op
feature_dropout, feature_dropout_ = declare(
    "feature_dropout",
    each_channel,
    zero_or_scaled,
    "Returns the tensor with channels zeroed with probability `p`, the others scaled.",
    "Zeroes channels with probability `p` and scales the others, in place.",
)
alpha_dropout, alpha_dropout_ = declare(
    "alpha_dropout",
    each_element,
    saturated_or_kept,
    "Returns elements saturated with probability `p`; mean and variance stay.",
    "Saturates elements with probability `p`, in place; mean and variance stay.",
)
feature_alpha_dropout, feature_alpha_dropout_ = declare(
    "feature_alpha_dropout",
    each_channel,
    saturated_or_kept,
    "Returns channels saturated with probability `p`; mean and variance stay.",
    "Saturates channels with probability `p`, in place; mean and variance stay.",
)

# --- with a mask that is kept ----------------------------------------------------------------------------------------


def masked_and_scaled(x, mask, scale):
    return x * scale if mask else x * 0


MASKED_AND_SCALED = Elementwise("masked_and_scaled", masked_and_scaled)


def dropout_scale(p: float, train: bool | None) -> float:
    """Returns what the kept elements are multiplied by."""
    if train is False:
        return 1.0
    return 0.0 if p == 1 else 1 / (1 - p)


@leaf_kernel(
    "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
    derivative=lambda grad, result1, p, train: backward_op.functional(grad, result1, dropout_scale(p, train)),
    nondifferentiable=(1,),
    method=False,
    tags=SEEDED,
    core=True,
    refuses="whole",
)
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Returns (result, mask) of dropout: which elements were kept."""
    if train is not False and input._shape.numel():
        check_can_cast(dtypes.float32, input._dtype)
    mask = like(input, dtypes.bool, None, False, None)
    result = like(input, None, None, False, None)
    BERNOULLI.fill(mask, None, 1.0 - p if train or train is None else 1.0)
    if result._device.type != "meta":
        scale = dropout_scale(p, train)
        MASKED_AND_SCALED.run(result._operand, input._operand, mask._operand, scale, dtype=input._dtype.name)
    return result, mask


def native_dropout_backward_meta(grad_output: Tensor, mask: Tensor, scale: float) -> Meta:
    return Meta(grad_output._shape, result_type(grad_output, scale), grad_output._device)


backward_op: Any = structured(
    "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
    derivative=lambda grad, mask, scale: backward_op.functional(grad, mask, scale),
    node="NativeDropoutBackwardBackward0",
    forward="linear",
    face=False,
    batching="pointwise",
)(native_dropout_backward_meta)


@backward_op.body
def backward_body(out: Tensor, grad_output: Tensor, mask: Tensor, scale: float) -> None:
    operands = grad_output._operand, mask._operand
    MASKED_AND_SCALED.run(out._operand, *operands, float(scale), dtype=result_type(grad_output, scale).name)
