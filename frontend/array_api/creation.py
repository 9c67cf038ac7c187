"""New arrays: from numbers, from objects, like others."""

from __future__ import annotations

from typing import Any, Literal

import redispatch as rd
from redispatch import Tensor, dtype

Shape = int | tuple[int, ...]


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: dtype | None = None, device: Any = None
) -> Tensor:
    """The numbers from `start` (0 if it is given alone) up to, not including, `stop`; none where there are none."""
    if stop is None:
        start, stop = 0, start
    if (stop - start) * step < 0:
        stop = start
    return rd.arange(start, stop, step, dtype=dtype, device=device)


def asarray(obj: Any, /, *, dtype: dtype | None = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """`obj` as an array, over the same memory where it can be, unless `copy` is True.

    Errors: ValueError where `copy` is False and one is needed.
    """
    return rd.asarray(obj, dtype=dtype, device=device, copy=copy)


def empty(shape: Shape, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    return rd.empty(shape, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    return rd.empty_like(x, dtype=dtype, device=device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: dtype | None = None, device: Any = None
) -> Tensor:
    """Ones on the diagonal `k`, zeros elsewhere."""
    n_cols = n_rows if n_cols is None else n_cols
    made = rd.zeros(n_rows, n_cols, dtype=dtype, device=device)
    if -n_rows < k < n_cols:
        made.diagonal(k).fill_(1)
    return made


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """An array over the memory of any object with `__dlpack__`; a copy if `copy` is True or the device is another."""
    made = rd.from_dlpack(x)
    moved = made if device is None else made.to(device)
    if copy is False and moved is not made:
        raise ValueError("from_dlpack(): another device needs a copy, which copy=False forbids")
    return moved.clone() if copy and moved is made else moved


def full(shape: Shape, fill_value: complex, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    return rd.full((shape,) if isinstance(shape, int) else shape, fill_value, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: complex, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    return rd.full_like(x, fill_value, dtype=dtype, device=device)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: dtype | None = None,
    device: Any = None,
    endpoint: bool = True,
) -> Tensor:
    """`num` numbers at equal distances from `start` to `stop`, the last one included if it is the `endpoint`."""
    if endpoint or num == 0:
        return rd.linspace(start, stop, num, dtype=dtype, device=device)
    return rd.linspace(start, stop, num + 1, dtype=dtype, device=device)[:-1]


def meshgrid(*arrays: Tensor, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """Each array as coordinates over the grid of all. In PyTorch the default is "ij"."""
    return tuple(rd.meshgrid(*arrays, indexing=indexing))


def ones(shape: Shape, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    return rd.ones(shape, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    return rd.ones_like(x, dtype=dtype, device=device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The elements on and below the diagonal `k` of each matrix, zeros above."""
    return rd.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The elements on and above the diagonal `k` of each matrix, zeros below."""
    return rd.triu(x, k)


def zeros(shape: Shape, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    return rd.zeros(shape, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: dtype | None = None, device: Any = None) -> Tensor:
    return rd.zeros_like(x, dtype=dtype, device=device)
