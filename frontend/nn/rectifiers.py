"""Activations made of pieces as modules: LeakyReLU, ELU, Hardtanh and their kin. `inplace` writes over the input."""

from __future__ import annotations

import warnings
from typing import Any

from redispatch.kernels.ops.creation import empty

from . import functional
from .module import Module
from .parameter import Parameter


def _shown(inplace: bool, before: str = ", ") -> str:
    return f"{before}inplace=True" if inplace else ""


class ELU(Module):
    """x above 0, alpha (exp(x) - 1) below."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Any) -> Any:
        return functional.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}{_shown(self.inplace)}"


class CELU(Module):
    """x above 0, alpha (exp(x / alpha) - 1) below: its slope has no jump at 0."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Any) -> Any:
        return functional.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}{_shown(self.inplace)}"


class SELU(Module):
    """elu scaled so that mean 0 and variance 1 stay what they are."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return functional.selu(input, self.inplace)

    def extra_repr(self) -> str:
        return _shown(self.inplace, "")


class LeakyReLU(Module):
    """x above 0, negative_slope x below."""

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Any) -> Any:
        return functional.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}{_shown(self.inplace)}"


class RReLU(Module):
    """In training, leaky_relu with a slope drawn from [lower, upper) for each element; else with the mean of both."""

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Any) -> Any:
        return functional.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}{_shown(self.inplace)}"


class PReLU(Module):
    """leaky_relu with a slope to learn: one for all (`num_parameters=1`), or one for each channel."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Every slope becomes `init` again."""
        self.weight.data.fill_(self.init)

    def forward(self, input: Any) -> Any:
        return functional.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Threshold(Module):
    """x above the threshold, `value` up to it."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Any) -> Any:
        return functional.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}{_shown(self.inplace)}"


class Hardtanh(Module):
    """x, but no less than `min_val` and no more than `max_val`.

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
        return f"min_val={self.min_val}, max_val={self.max_val}{_shown(self.inplace)}"


def _renamed(former: str, name: str, value: float) -> float:
    warnings.warn(f"keyword argument `{former}` is deprecated and renamed to `{name}`", FutureWarning, stacklevel=3)
    return value


class ReLU6(Hardtanh):
    """min(max(x, 0), 6)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return _shown(self.inplace, "")


class Hardsigmoid(Module):
    """min(max(x + 3, 0), 6) / 6."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return functional.hardsigmoid(input, self.inplace)


class Hardswish(Module):
    """x hardsigmoid(x)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return functional.hardswish(input, self.inplace)


class Hardshrink(Module):
    """x, and 0 where |x| is no more than lambd."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Any:
        return functional.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Softshrink(Module):
    """x moved towards 0 by lambd, as far as 0."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Any) -> Any:
        return functional.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Tanhshrink(Module):
    """x - tanh(x)."""

    def forward(self, input: Any) -> Any:
        return functional.tanhshrink(input)
