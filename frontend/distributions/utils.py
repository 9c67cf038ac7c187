"""The common parts of the families: parameters of one shape, logits and probabilities, lazily computed quantities.

Read next: distribution.py.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

import redispatch as rd
from redispatch.nn import functional as F

EULER = 0.57721566490153286060  # Euler's constant: the mean of -log x for x of Exponential(1)


def broadcast_all(*values: Any) -> tuple[rd.Tensor, ...]:
    """Returns the values as tensors of one shape.

    Numbers get the dtype and device of the first tensor, or the default dtype where there is none.
    Errors: ValueError for what is neither a number nor a tensor.
    """
    if not all(isinstance(value, Number) or rd.overrides.is_tensor_like(value) for value in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    first = next((value for value in values if not isinstance(value, Number)), None)
    options = {} if first is None else {"dtype": first.dtype, "device": first.device}
    if first is None:
        options["dtype"] = rd.get_default_dtype()
    made = [rd.tensor(value, **options) if isinstance(value, Number) else value for value in values]
    return tuple(rd.broadcast_tensors(*made))


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Returns probabilities of log-odds (binary), or of unnormalised logarithms along the last dimension."""
    return rd.sigmoid(logits) if is_binary else F.softmax(logits, dim=-1)


def clamp_probs(probs: rd.Tensor) -> rd.Tensor:
    """Clamps probabilities to [eps, 1 - eps], so that their logarithms are finite."""
    eps = rd.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: rd.Tensor, is_binary: bool = False) -> rd.Tensor:
    """Inverts `logits_to_probs`, for probabilities that are 0 or 1, too."""
    clamped = clamp_probs(probs)
    logits = rd.log(clamped)
    return logits - rd.log1p(-clamped) if is_binary else logits


def sum_rightmost(value: Any, dim: int) -> Any:
    """Sums over the last `dim` dimensions."""
    return value if dim == 0 else value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


_sum_rightmost = sum_rightmost


def _standard_normal(shape: Any, dtype: Any, device: Any) -> rd.Tensor:
    """Returns standard normal numbers of this shape."""
    return rd.normal(rd.zeros(shape, dtype=dtype, device=device), rd.ones(shape, dtype=dtype, device=device))


class lazy_property:
    """An attribute that is computed when it is first read, with gradients enabled, and then kept."""

    def __init__(self, compute: Callable[[Any], Any]) -> None:
        self.compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with rd.enable_grad():
            value = self.compute(instance)
        vars(instance)[self.name] = value
        return value


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """Fills a lower triangle with a vector, row by row: `[..., n (n + 1) / 2]` to `[..., n, n]` for `diag` 0."""
    count = vec.shape[-1]
    size = int((-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2)
    matrix = vec.new_zeros((*vec.shape[:-1], size, size))
    rows, columns = rd.tril_indices(size, size, diag)
    matrix[..., rows, columns] = vec
    return matrix


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """Returns the elements on and below a diagonal, row by row. ValueError for a diagonal outside of the matrix."""
    size = mat.shape[-1]
    if not -size <= diag < size:
        raise ValueError(f"diag ({diag}) provided is outside [{-size}, {size - 1}].")
    rows, columns = rd.tril_indices(size, size, diag)
    return mat[..., rows, columns]
