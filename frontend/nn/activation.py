"""Activations, as functions and as modules: `functional.elu(input, alpha=0.5)` and `ELU(alpha=0.5)`.

All are elementwise but softmax and its kin, and glu. Those with `inplace` write over their input where it is set.
Read next: loss.py.
"""

from __future__ import annotations

import warnings
from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, contiguous_format
from redispatch.kernels.declare.overridable import builtin_function, overridable_function
from redispatch.kernels.ops import activations, elementary
from redispatch.kernels.ops import rrelu as randomly_leaking
from redispatch.kernels.ops.normalization import log_softmax as _log_softmax
from redispatch.kernels.ops.normalization import softmax as _softmax

from .derived import functional, module_of, shows, with_inplace
from .module import Module
from .parameter import empty_parameters

relu_ = activations.relu.inplace
celu_, elu_, selu_ = activations.celu.inplace, activations.elu.inplace, activations.selu.inplace
hardtanh_, leaky_relu_ = activations.hardtanh.inplace, activations.leaky_relu.inplace
threshold_, rrelu_ = activations.threshold.inplace, randomly_leaking.rrelu_
prelu, hardshrink, softshrink = activations.prelu, activations.hardshrink, activations.softshrink
gelu, softplus = activations.gelu, activations.softplus

# --- smooth ones -----------------------------------------------------------------------------------------------------


@builtin_function
def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Computes log(sigmoid(x)). Shapes: any -> the same."""
    return activations.log_sigmoid(input) if out is None else activations.log_sigmoid(input, out=out)


@overridable_function
def sigmoid(input: Tensor) -> Tensor:
    """Computes 1 / (1 + exp(-x)). Shapes: any -> the same."""
    return input.sigmoid()


@overridable_function
def tanh(input: Tensor) -> Tensor:
    """Computes the hyperbolic tangent. Shapes: any -> the same."""
    return input.tanh()


@overridable_function
def tanhshrink(input: Tensor) -> Tensor:
    """Computes x - tanh(x). Shapes: any -> the same."""
    return input - input.tanh()


@overridable_function
def softsign(input: Tensor) -> Tensor:
    """Computes x / (1 + |x|). Shapes: any -> the same."""
    return input / (input.abs() + 1)


@overridable_function
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Computes a sigmoid(b), with a and b the halves of the input along `dim`.

    Shapes: (..., 2 n, ...) -> (..., n, ...). Errors: RuntimeError where there are no two halves.
    """
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return activations.glu(input, dim)


silu = with_inplace(activations.silu, "Computes x sigmoid(x).")
mish = with_inplace(activations.mish, "Computes x tanh(softplus(x)).")

GELU = module_of("GELU", gelu, by_keyword=True, approximate="none")
SiLU = module_of("SiLU", silu)
Mish = module_of("Mish", mish)
Softplus = module_of("Softplus", softplus, beta=1.0, threshold=20.0)
LogSigmoid = module_of("LogSigmoid", logsigmoid, without="out")
Tanhshrink = module_of("Tanhshrink", tanhshrink)
Softsign = module_of("Softsign", softsign)
GLU = module_of("GLU", glu)


class Sigmoid(Module):
    """Computes 1 / (1 + exp(-x)). Shapes: any -> the same."""

    def forward(self, input: Any) -> Any:
        return activations.sigmoid(input)


class Tanh(Module):
    """Computes the hyperbolic tangent. Shapes: any -> the same."""

    def forward(self, input: Any) -> Any:
        return elementary.tanh(input)


# --- made of pieces --------------------------------------------------------------------------------------------------


@overridable_function
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Computes max(0, x). Shapes: any -> the same."""
    return input.relu_() if inplace else input.relu()


@overridable_function
def rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """Computes leaky_relu, in training with a slope drawn from [lower, upper) for each element, else with their mean.

    Shapes: any -> the same.
    """
    operator = randomly_leaking.rrelu_ if inplace else randomly_leaking.rrelu
    return operator(input, lower, upper, training)


@overridable_function
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Computes min(max(x, min_val), max_val). Shapes: any -> the same.

    Errors: ValueError where `min_val` is above `max_val`.
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    operator = hardtanh_ if inplace else activations.hardtanh
    return operator(input, min_val, max_val)


elu = with_inplace(activations.elu, "Computes x above 0, alpha (exp(x) - 1) below.", alpha=1.0)
celu = with_inplace(
    activations.celu, "Computes x above 0, alpha (exp(x / alpha) - 1) below: its slope has no jump at 0.", alpha=1.0
)
selu = with_inplace(activations.selu, "Computes elu scaled so that mean 0 and variance 1 stay.")
leaky_relu = with_inplace(activations.leaky_relu, "Computes x above 0, negative_slope x below.", negative_slope=0.01)
threshold = with_inplace(
    activations.threshold, "Computes x above the threshold, `value` up to it.", threshold=float, value=float
)
relu6 = with_inplace(activations.relu6, "Computes min(max(x, 0), 6).")
hardsigmoid = with_inplace(activations.hardsigmoid, "Computes min(max(x + 3, 0), 6) / 6.")
hardswish = with_inplace(activations.hardswish, "Computes x hardsigmoid(x).")

ReLU = module_of("ReLU", relu, by_keyword=True)
ELU = module_of("ELU", elu)
CELU = module_of("CELU", celu)
SELU = module_of("SELU", selu)
LeakyReLU = module_of("LeakyReLU", leaky_relu)
RReLU = module_of("RReLU", rrelu)
_threshold = threshold  # PyTorch's name for where an argument is called so, too
Threshold = module_of("Threshold", threshold)
Hardsigmoid = module_of("Hardsigmoid", hardsigmoid, shown="")
Hardswish = module_of("Hardswish", hardswish, shown="")
Hardshrink = module_of(
    "Hardshrink",
    hardshrink,
    doc="Computes x, and 0 where |x| is no more than lambd. Shapes: any -> the same.",
    shown="{self.lambd}",
    lambd=0.5,
)
Softshrink = module_of(
    "Softshrink",
    softshrink,
    doc="Computes x moved towards 0 by lambd, as far as 0. Shapes: any -> the same.",
    shown="{self.lambd}",
    lambd=0.5,
)


class PReLU(Module):
    """Computes leaky_relu with a slope to learn: one for all (`num_parameters=1`), or one for each channel.

    Shapes: (batch, channels, ...) -> the same; `weight` (num_parameters,), which starts as `init`.
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        empty_parameters(self, device, dtype, weight=num_parameters)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets every slope to `init` again."""
        self.weight.data.fill_(self.init)

    def forward(self, input: Any) -> Any:
        return functional.prelu(input, self.weight)

    extra_repr = shows("num_parameters")


class Hardtanh(Module):
    """Computes min(max(x, min_val), max_val). Shapes: any -> the same.

    `min_value` and `max_value` are these arguments' former names. Errors: AssertionError for bounds in the wrong order.
    """

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        self.min_val = min_val if min_value is None else _renamed("min_value", "min_val", min_value)
        self.max_val = max_val if max_value is None else _renamed("max_value", "max_val", max_value)
        self.inplace = inplace
        assert self.max_val > self.min_val, f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})"

    def forward(self, input: Any) -> Any:
        return functional.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}{', inplace=True' if self.inplace else ''}"


def _renamed(former: str, name: str, value: float) -> float:
    warnings.warn(f"keyword argument `{former}` is deprecated and renamed to `{name}`", FutureWarning, stacklevel=3)
    return value


class ReLU6(Hardtanh):
    """Computes min(max(x, 0), 6). Shapes: any -> the same."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


# --- along a dimension -----------------------------------------------------------------------------------------------


@overridable_function
def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Computes exp(x) / sum(exp(x)) along `dim`. Without `dim`, a warning and PyTorch's old choice of one.

    Shapes: any -> the same.
    """
    return _softmax(input, _chosen_dim("softmax", input, dim), dtype=dtype)


@overridable_function
def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Computes the logarithm of the softmax along `dim`, without exponentials of large numbers.

    Shapes: any -> the same.
    """
    return _log_softmax(input, _chosen_dim("log_softmax", input, dim), dtype=dtype)


@overridable_function
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Computes the softmax of -x along `dim`. Shapes: any -> the same."""
    chosen = _chosen_dim("softmin", input, dim)
    return _softmax(-input, chosen, dtype=dtype)


@overridable_function
def gumbel_softmax(logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Computes the softmax of (logits + Gumbel noise) / tau: a random choice along `dim` that gradients can pass.

    hard: a one for the choice and zeros for the rest, with the gradient of the softmax.
    Source: Jang, Gu, Poole, Categorical Reparameterization with Gumbel-Softmax, 2017. `eps` is ignored.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", UserWarning, stacklevel=3)
    waiting = ops.aten.empty_like.default(logits, memory_format=contiguous_format).exponential_()
    soft = ((logits + -waiting.log()) / tau).softmax(dim)
    if not hard:
        return soft
    choice = soft.max(dim, keepdim=True)[1]
    ones = ops.aten.zeros_like.default(logits, memory_format=contiguous_format).scatter_(dim, choice, 1.0)
    return ones - soft.detach() + soft


def _chosen_dim(name: str, input: Tensor, dim: int | None) -> int:
    if dim is not None:
        return dim
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        UserWarning,
        stacklevel=4,
    )
    return 0 if input.dim() in (0, 1, 3) else 1


Softmax = module_of("Softmax", softmax, without="dtype")
LogSoftmax = module_of("LogSoftmax", log_softmax, without="dtype")
Softmin = module_of("Softmin", softmin, without="dtype")


class Softmax2d(Module):
    """Computes the softmax over the channels of each pixel.

    Shapes: (batch, channels, height, width), or without a batch -> the same.
    Errors: ValueError for any other number of dimensions.
    """

    def forward(self, input: Any) -> Any:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return functional.softmax(input, -3)
