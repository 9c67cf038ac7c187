"""Windows for Fourier transforms: hann, hamming, blackman, bartlett, kaiser.

A window of n points is one turn of its curve; a periodic one, the default, is that of n + 1 points without the last.
Read next: creation.py, for how factories are written.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import Tensor, dtype, get_default_dtype

from ..declare.declare import Operator
from ..declare.public import public
from ..declare.structured import not_implemented
from .creation import FACTORY, new, shaped, written

# --- windows ---------------------------------------------------------------------------------------------------------


def cosines(turn: np.ndarray, *weights: float) -> np.ndarray:
    """weights[0] - weights[1] cos(turn) + weights[2] cos(2 turn)"""
    total = np.full_like(turn, weights[0])
    for k, weight in enumerate(weights[1:], 1):
        total += (-1) ** k * weight * np.cos(k * turn)
    return total


def hann_values(turn: np.ndarray) -> np.ndarray:
    return cosines(turn, 0.5, 0.5)


def hamming_values(turn: np.ndarray, alpha: float = 0.54, beta: float = 0.46) -> np.ndarray:
    return cosines(turn, alpha, beta)


def blackman_values(turn: np.ndarray) -> np.ndarray:
    return cosines(turn, 0.42, 0.5, 0.08)


def bartlett_values(turn: np.ndarray) -> np.ndarray:
    return 1 - np.abs(turn / math.pi - 1)


def kaiser_values(turn: np.ndarray, beta: float = 12.0) -> np.ndarray:
    x = turn / math.pi - 1
    return np.i0(beta * np.sqrt(np.maximum(1 - x * x, 0))) / np.i0(beta)


def window(name: str, values: Callable[..., np.ndarray], *overloads: tuple[str, str]) -> Any:
    """The face of a window with its overloads: without arguments but its length, then `periodic`, then these."""
    declared = []
    for overload, arguments in (("", ""), ("periodic", ", bool periodic"), *overloads):
        head = f"{name}.{overload}" if overload else name
        into = f"{overload}_out" if overload else "out"
        op = Operator(f"{head}(int window_length{arguments}, *, {FACTORY}) -> Tensor", refuses="whole complex")
        out_op = Operator(f"{name}.{into}(int window_length{arguments}, *, Tensor(a!) out) -> Tensor(a!)")
        op.explicit(window_kernel(name, values))
        out_op.explicit(window_out_kernel(name, values))
        op.not_differentiable()
        op.out = out_op.functional
        declared.append(op)
    return public(
        *declared, doc=f"Returns a {name.partition('_')[0].capitalize()} window: weights that fall off to both ends."
    )


def window_kernel(name: str, values: Callable[..., np.ndarray]) -> Callable[..., Tensor]:
    """The kernel of all overloads: what stands between the length and the factory's options is `periodic` and shape."""

    def kernel(length: int, *given: Any) -> Tensor:
        *shape, kind, _, device, pin_memory = given
        kind = kind or get_default_dtype()
        check_window(name, kind, device, pin_memory)
        points = window_points(name, values, length, shape)
        return written(new((length,), kind, device, pin_memory), points)

    kernel.__name__ = name
    return kernel


def window_out_kernel(name: str, values: Callable[..., np.ndarray]) -> Callable[..., Tensor]:
    def into_out(length: int, *given: Any) -> Tensor:
        *shape, out = given
        check_window(name, out._dtype, out._device, None)
        points = window_points(name, values, length, shape)
        return written(shaped(out, [length]), points)

    into_out.__name__ = name
    return into_out


# How C++ calls them, which is how the message does.
C_NAMES = {"uint8": "unsigned char", "int8": "signed char", "int16": "short int", "int32": "int", "int64": "long int"}


def check_window(name: str, kind: dtype, device: Any, pin_memory: Any) -> None:
    """Raises RuntimeError for whole numbers, and NotImplementedError for complex ones."""
    if kind.is_complex:
        raise not_implemented("arange_cpu", kind)
    if not kind.is_floating_point:
        on, pinned = ("" if given is not None else " (default)" for given in (device, pin_memory))
        raise RuntimeError(
            f"{name} expects floating point dtypes, got: TensorOptions(dtype={C_NAMES.get(kind.name, kind.name)}, "
            f"device={device or 'cpu'}{on}, layout=Strided (default), requires_grad=false (default), "
            f"pinned_memory=false{pinned}, memory_format=(nullopt))"
        )


def window_points(name: str, values: Callable[..., np.ndarray], length: int, shape: Any) -> np.ndarray:
    """The values of a window in float64. `shape`: periodic, and the numbers that its curve takes."""
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    if length == 1:
        return np.ones(1)
    periodic = not shape or shape[0]
    turn = 2 * math.pi * np.arange(length) / (length if periodic else max(length - 1, 1))
    return values(turn, *shape[1:])


hann_window = window("hann_window", hann_values)
hamming_window = window(
    "hamming_window",
    hamming_values,
    ("periodic_alpha", ", bool periodic, float alpha"),
    ("periodic_alpha_beta", ", bool periodic, float alpha, float beta"),
)
blackman_window = window("blackman_window", blackman_values)
bartlett_window = window("bartlett_window", bartlett_values)
kaiser_window = window("kaiser_window", kaiser_values, ("beta", ", bool periodic, float beta"))
