"""Initial values: functions that fill a tensor in place, unrecorded, and return it.

The schemes of Glorot and He choose the spread so that a layer neither blows up nor dampens what passes through it. Both
start from the *fans*: how many inputs meet in one output (fan in), and how many outputs one input reaches (fan out).

Sources: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks" (2010);
He et al., "Delving deep into rectifiers" (2015); Saxe et al., "Exact solutions to the nonlinear dynamics of learning
in deep linear neural networks" (2013).
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from redispatch import _names
from redispatch.autograd import no_grad
from redispatch.dispatch.tensor import dtypes
from redispatch.kernels.declare.overridable import overridable_initializer
from redispatch.kernels.ops import comparison, creation, random
from redispatch.kernels.ops import spectra as decompositions

# --- Fills and distributions --------------------------------------------------------------------------------------


@overridable_initializer
def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Uniform in [a, b)."""
    return _no_grad_uniform_(tensor, a, b, generator)


def _no_grad_uniform_(tensor: Any, a: float, b: float, generator: Any) -> Any:
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


@overridable_initializer
def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Normal, with this mean and standard deviation."""
    return _no_grad_normal_(tensor, mean, std, generator)


def _no_grad_normal_(tensor: Any, mean: float, std: float, generator: Any) -> Any:
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Any:
    """Normal, restricted to [a, b].

    By rejection: every element outside is drawn again. Where the normal distribution has little of its mass in [a, b],
    candidates are uniform there, and one is kept with the probability of its density over the highest density.
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=2,
        )
    if tensor.is_meta:
        return tensor
    mass = _normal_below((b - mean) / std) - _normal_below((a - mean) / std)
    with no_grad():
        if mass > 0.3:
            tensor.normal_(mean, std, generator=generator)
            rejected = (tensor < a) | (tensor > b)
            while rejected.any():
                again = creation.empty_like(tensor).normal_(mean, std, generator=generator)
                tensor.copy_(comparison.where(rejected, again, tensor))
                rejected = (tensor < a) | (tensor > b)
            return tensor
        mode = max(a, min(mean, b))  # where the density is highest within [a, b]
        rejected = creation.ones_like(tensor, dtype=dtypes.bool)
        while rejected.any():
            again = creation.empty_like(tensor).uniform_(a, b, generator=generator)
            tensor.copy_(comparison.where(rejected, again, tensor))
            log_share = ((mode - mean) / std) ** 2 / 2 - ((tensor - mean) / std) ** 2 / 2
            chance = creation.empty_like(tensor).uniform_(generator=generator)
            rejected = rejected & (chance.log() > log_share)
        return tensor


def _normal_below(x: float) -> float:
    """The share of the standard normal distribution below x."""
    return (1 + math.erf(x / math.sqrt(2))) / 2


@overridable_initializer
def constant_(tensor: Any, val: float) -> Any:
    """Every element `val`."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Any) -> Any:
    """Every element 1."""
    with no_grad():
        return tensor.fill_(1.0)


def zeros_(tensor: Any) -> Any:
    """Every element 0."""
    with no_grad():
        return tensor.zero_()


def eye_(tensor: Any) -> Any:
    """The identity matrix: ones on the diagonal. ValueError for what is no matrix."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        return tensor.copy_(creation.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Any, groups: int = 1) -> Any:
    """The weight of a convolution that hands its channels through: 1 in the middle of each channel's own kernel.

    Errors: ValueError for other than 3, 4 or 5 dimensions, or where the groups do not divide the outputs.
    """
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    outputs, inputs, *kernel = tensor.shape
    if outputs % groups:
        raise ValueError("dim 0 must be divisible by groups")
    if tensor.is_meta:
        return tensor
    each, middle = outputs // groups, [size // 2 for size in kernel]
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(each, inputs)):
                tensor[(group * each + channel, channel, *middle)] = 1
        return tensor


def orthogonal_(tensor: Any, gain: float = 1, generator: Any = None) -> Any:
    """A matrix with orthonormal rows or columns, drawn evenly from all such, times `gain`; the dimensions behind the
    first count as one. Errors: ValueError for fewer than two dimensions.

    By the QR factors of a matrix of normal numbers, with the signs chosen so that r has a positive diagonal.
    """
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if not tensor.numel() or tensor.is_meta:
        return tensor
    rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
    flat = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
    with no_grad():
        q, r = decompositions.linalg_qr(flat.t() if rows < columns else flat)
        q = q * r.diagonal().sign()
        q = q.t() if rows < columns else q
        return tensor.copy_(q.reshape(tensor.shape)).mul_(gain)


def sparse_(tensor: Any, sparsity: float, std: float = 0.01, generator: Any = None) -> Any:
    """Normal numbers, with this share of zeros in each column. Errors: ValueError for what is no matrix."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    if tensor.is_meta:
        return tensor
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[random.randperm(rows)[:zeros], column] = 0
        return tensor


# --- Glorot's and He's schemes ------------------------------------------------------------------------------------

_LINEAR = {"linear", "sigmoid", *(f"conv{t}{n}d" for t in ("", "_transpose") for n in (1, 2, 3))}
_GAINS = {**dict.fromkeys(_LINEAR, 1.0), "tanh": 5.0 / 3, "relu": math.sqrt(2), "selu": 0.75}


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """The factor that makes up for what a nonlinearity takes from the spread of its inputs.

    `param` is leaky_relu's slope below zero, by default 0.01.
    Errors: ValueError for an unknown nonlinearity or a slope that is no number.
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, int | float):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def _calculate_fan_in_and_fan_out(tensor: Any) -> tuple[int, int]:
    """The fans of a weight of shape (outputs, inputs, *kernel). ValueError for fewer than two dimensions."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    outputs, inputs, *kernel = tensor.shape
    return inputs * math.prod(kernel), outputs * math.prod(kernel)


def _calculate_correct_fan(tensor: Any, mode: str) -> int:
    """The fan of that name. ValueError for another name."""
    mode, modes = mode.lower(), ["fan_in", "fan_out"]
    if mode not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode)]


def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Uniform, with standard deviation gain * sqrt(2 / (fan in + fan out))."""
    bound = math.sqrt(3) * gain * math.sqrt(2 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return _no_grad_uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """Normal, with standard deviation gain * sqrt(2 / (fan in + fan out))."""
    std = gain * math.sqrt(2 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return _no_grad_normal_(tensor, 0.0, std, generator)


@overridable_initializer
def kaiming_uniform_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """Uniform, with standard deviation gain / sqrt(fan); `a` is leaky_relu's slope below zero."""
    std = _he_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3) * std
    return _no_grad_uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """Normal, with standard deviation gain / sqrt(fan); `a` is leaky_relu's slope below zero."""
    std = _he_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else _no_grad_normal_(tensor, 0.0, std, generator)


def _he_std(tensor: Any, a: float, mode: str, nonlinearity: str) -> float | None:
    """gain / sqrt(fan); None, with a warning, where there is nothing to fill. ValueError for an unknown mode."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=4)
        return None
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


# --- Former names -----------------------------------------------------------------------------------------------------


def _former(function: Any) -> Any:
    """`xavier_uniform`, as `xavier_uniform_` was called: it works, and says so."""
    name = function.__name__
    text = f"`nn.init.{name[:-1]}` is now deprecated in favor of `nn.init.{name}`."
    return _names.former(function, name[:-1], text)


uniform = _former(uniform_)
normal = _former(normal_)
constant = _former(constant_)
eye = _former(eye_)
dirac = _former(dirac_)
xavier_uniform = _former(xavier_uniform_)
xavier_normal = _former(xavier_normal_)
kaiming_uniform = _former(kaiming_uniform_)
kaiming_normal = _former(kaiming_normal_)
orthogonal = _former(orthogonal_)
sparse = _former(sparse_)
