"""make_tensor: a tensor of random values in a range, with the layout that a test asks for.

Values come from numpy, not from an operator of the library: what is under test must not make its own samples.
Read next: op_info.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import Tensor, as_numpy, channels_last, contiguous_format, device, dtype, empty
from redispatch.kernels.ops.from_data import from_numpy

# The range of values where none is asked for: [low, high), in which floats and the wider integers are harmless.
RANGES = {"bool": (0, 2), "uint8": (0, 10)}
DEFAULT_RANGE = (-9, 9)


def make_tensor(
    *shape: Any,
    dtype: dtype,
    device: device | str = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
    generator: np.random.Generator | int | None = None,
) -> Tensor:
    """A tensor with values drawn evenly from [low, high); an integer one with whole numbers from it.

    shape: as numbers or one sequence. low, high: by default [-9, 9), [0, 10) for uint8, both values for bool; a
    complex number's two parts are drawn apart. noncontiguous: every second element along the last dimension of a
    larger tensor, where there is more than one element. exclude_zero: zeros become the smallest positive value
    (floats) or 1. generator: numpy's, or a seed for one.
    Errors: ValueError where the range is empty, or for `noncontiguous` together with a memory format.

    >>> import redispatch as rd
    >>> from redispatch.testing import make_tensor
    >>> make_tensor(2, 3, dtype=rd.float32, low=0, high=1).shape
    torch.Size([2, 3])
    """
    sizes: Sequence[int] = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    if noncontiguous and memory_format is not None:
        raise ValueError(
            f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"{noncontiguous=} and {memory_format=}"
        )
    least, most = RANGES.get(dtype.name, DEFAULT_RANGE)
    low, high = least if low is None else low, most if high is None else high
    if not low < high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    random = np.random.default_rng(generator)
    made = laid_out(draw(random, tuple(sizes), dtype, low, high, exclude_zero), dtype, noncontiguous, memory_format)
    if str(device) != "cpu":
        made = made.to(device)
    return made.requires_grad_() if requires_grad else made


def draw(
    random: np.random.Generator, shape: tuple[int, ...], dtype: dtype, low: float, high: float, exclude_zero: bool
) -> np.ndarray:
    """The values, in a numpy dtype that holds them."""
    if dtype.is_complex:
        values = np.asarray(random.uniform(low, high, shape) + 1j * random.uniform(low, high, shape))
    elif dtype.is_floating_point:
        values = np.asarray(random.uniform(low, high, shape))
    else:
        values = np.asarray(random.integers(math.ceil(low), max(math.ceil(high), math.ceil(low) + 1), shape))
    values = values.astype(dtype.numpy)
    if exclude_zero:
        floating = dtype.is_floating_point or dtype.is_complex
        values[values == 0] = np.finfo(dtype.to_real().numpy).tiny if floating and dtype.name != "bfloat16" else 1
    return values


def laid_out(values: np.ndarray, dtype: dtype, noncontiguous: bool, memory_format: Any) -> Tensor:
    """A tensor of these values with the layout asked for."""
    if memory_format not in (None, contiguous_format):
        order = (0, 2, 3, 1) if memory_format is channels_last else (0, 2, 3, 4, 1)
        made = from_numpy(np.ascontiguousarray(values.transpose(order)))
        return made.permute(tuple(np.argsort(order).tolist()))
    if noncontiguous and values.size > 1:
        wide = empty((*values.shape[:-1], 2 * values.shape[-1]), dtype, device("cpu"))
        numbers = as_numpy(wide)
        numbers[..., 1::2] = 1  # what lies between is no sample; a kernel that reads it gives a wrong result
        numbers[..., ::2] = values
        return wide.as_strided(values.shape, (*wide.stride()[:-1], 2))
    made = empty(values.shape, dtype, device("cpu"))
    as_numpy(made)[...] = values
    return made
