"""rrelu: a leaky_relu whose slope below 0 is drawn anew for each element while training, and the mean slope after.

`rrelu_with_noise` writes what it drew into `noise`, which then is the slope everywhere: 1 above 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, as_numpy, contiguous_format, dtypes, empty
from redispatch.kernels import Elementwise

from ..declare.operator import SEEDED, composite, kernel, leaf_kernel
from ..declare.pointwise import NOT_FLOATING
from ..declare.relies import check_scalar_type
from ..declare.structured import Meta, broadcast, check_has_kernel, check_writable, resize_out
from .activations import leaky_relu, leaky_relu_backward_op
from .generators import drawn, twister_of

BOUNDS = "Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None"
REAL: dict[str, Any] = {"refuses": {("float16", *NOT_FLOATING): ""}}


def leaking(x, slope):
    return (x * slope, slope) if x <= 0 else (x, x * 0 + 1)


LEAKING = Elementwise("rrelu", leaking, outputs=2, cost=2)


def leak(out: Tensor, self: Tensor, noise: Tensor, lower: float, upper: float, training: bool, generator: Any) -> None:
    """Fills `out`, and in training `noise`."""
    if not training:
        leaky_relu.op.body_function(out, self, (lower + upper) / 2)
        return
    slopes = slopes_of(self, lower, upper, generator)
    LEAKING.run((out._operand, noise._operand), self._operand, slopes._operand, dtype=self._dtype.name)


def slopes_of(self: Tensor, lower: float, upper: float, generator: Any) -> Tensor:
    """A slope for each element; of a twister only those are drawn that are needed, as in PyTorch."""
    twister = twister_of(generator, self._device)
    if twister is None:
        slopes = empty(self._shape, self._dtype, self._device)
        kernels.uniform(slopes._operand, *drawn(generator, self._shape.numel(), self._device), lower, upper)
        return slopes
    slopes, leaks = empty(self._shape, dtypes.float64), as_numpy(self) <= 0
    numbers = empty((int(leaks.sum()),), dtypes.float64)
    real = np.float64 if self._dtype is dtypes.float64 else np.float32  # in which PyTorch holds the bounds
    least, most = float(real(lower)), float(real(upper))
    twister.fill("uniform", numbers._operand)
    as_numpy(slopes)[leaks] = as_numpy(numbers) * (most - least) + least  # rounded twice, unlike those of `uniform_`
    return slopes


def check(self: Tensor, noise: Tensor, lower: float, upper: float, training: bool) -> Meta:
    """Returns the metadata of the result. RuntimeError for what cannot be computed."""
    if self._shape != noise._shape:
        raise RuntimeError(
            f"noise tensor shape must match self tensor shape. Got self.shape = {list(self._shape)} noise.shape = "
            f"{list(noise._shape)}"
        )
    if not training:
        return leaky_relu.op.meta_function(self, (lower + upper) / 2)
    check_has_kernel("rrelu_with_noise_out_cpu", self, ("float16", *NOT_FLOATING))
    check_scalar_type(self, noise)
    return broadcast(self)


@leaf_kernel(
    f"rrelu_with_noise(Tensor self, Tensor(b!) noise, {BOUNDS}) -> Tensor",
    scratch="noise",
    **REAL,
    tags=SEEDED,
    face=False,
)
def with_noise_op(self, noise, lower, upper, training, generator):
    result = check(self, noise, lower, upper, training)._replace(strides=None).allocate()
    if result._device.type != "meta":
        leak(result, self, noise, lower, upper, training, generator)
    return result


@leaf_kernel(
    f"rrelu_with_noise_(Tensor(a!) self, Tensor(b!) noise, {BOUNDS}) -> Tensor(a!)",
    scratch="noise",
    **REAL,
    tags=SEEDED,
    face=False,
)
def with_noise_inplace_op(self, noise, lower, upper, training, generator):
    check_writable(self, check(self, noise, lower, upper, training))
    if self._device.type != "meta":
        leak(self, self, noise, lower, upper, training, generator)
    return self


@leaf_kernel(
    f"rrelu_with_noise.out(Tensor self, Tensor(b!) noise, {BOUNDS}, *, Tensor(a!) out) -> Tensor(a!)",
    scratch="noise",
    **REAL,
    tags=SEEDED,
)
def with_noise_out_op(self, noise, lower, upper, training, generator, out):
    resize_out(out, check(self, noise, lower, upper, training))
    if self._device.type != "meta":
        leak(out, self, noise, lower, upper, training, generator)
    return out


@kernel(
    "rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, "
    "bool training, bool self_is_result) -> Tensor",
    late_out=True,
    refuses={NOT_FLOATING: ""},
    face=False,
)
def with_noise_backward_op(grad_output, self, noise, lower, upper, training, self_is_result):
    """By the slopes that were drawn; where bounds are so near that nothing was drawn, or not for training, by the mean.

    `self` may be the result instead, which has the same sign.
    """
    if training and upper - lower > 1e-6:
        return grad_output.mul(noise)
    return leaky_relu_backward_op.functional(grad_output, self, (lower + upper) / 2, self_is_result)


def backward(grad: Any, self: Any, noise: Any, lower: Any, upper: Any, training: bool) -> Any:
    return with_noise_backward_op.functional(grad, self, noise, lower, upper, training, False)


def backward_of_result(grad: Any, result: Any, noise: Any, lower: Any, upper: Any, training: bool) -> Any:
    return with_noise_backward_op.functional(grad, result, noise, lower, upper, training, True)


with_noise_backward_op.derivative(grad_output=backward, self=lambda grad: grad * 0)
with_noise_op.derivative(self=backward)
with_noise_inplace_op.derivative(self=backward_of_result, node="RreluWithNoiseBackward1")

# --- without noise ---------------------------------------------------------------------------------------------------


def check_bounds(lower: Any, upper: Any) -> None:
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    for name, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound:g}")


@composite(f"rrelu(Tensor self, {BOUNDS}) -> Tensor", **REAL, tags=SEEDED, method=False)
def rrelu(self, lower, upper, training, generator):
    """Returns each element, or its product with a slope where it is negative: a random one while training."""
    check_bounds(lower, upper)
    noise = ops.aten.empty_like.default(self, memory_format=contiguous_format)
    return with_noise_op.functional(self, noise, lower, upper, training, generator)


@composite(f"rrelu_(Tensor(a!) self, {BOUNDS}) -> Tensor(a!)", tags=SEEDED, method=False)
def rrelu_(self, lower, upper, training, generator):
    """Multiplies negative elements by a slope, in place: a random one while training."""
    check_bounds(lower, upper)
    noise = ops.aten.empty_like.default(self, memory_format=contiguous_format)
    return with_noise_inplace_op.functional(self, noise, lower, upper, training, generator)
