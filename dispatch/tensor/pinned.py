"""Pinned memory: memory of the CPU's that an accelerator reads and writes by itself, while the program goes on.

A backend that has such memory publishes in `PINNERS` what gives it; a pinned tensor is one of the CPU's whose storage
is owned by a `Pinned`. Read next: kernels/cuda/runtime/pinned.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .factory import tensor_over
from .storage import UntypedStorage
from .tensor import Tensor


class Pinned:
    """Owner of pinned memory: `array` are its bytes. A backend's subclass gives them back when it goes."""

    array: np.ndarray

    def used_on(self, device: int, stream: int) -> None:
        """Told when a stream begins to use the memory: it is nobody else's before that is over."""


# What gives pinned memory of so many bytes; None where there is no device that would read it.
PINNERS: list[Callable[[int], Pinned | None]] = []


def pinned_memory(nbytes: int) -> Pinned | None:
    """Pinned memory of the first backend that has any; None without one."""
    for pinner in PINNERS:
        found = pinner(nbytes)
        if found is not None:
            return found
    return None


def owner_of(x: Tensor) -> Pinned | None:
    """Returns the owner of a tensor's memory, if that is pinned."""
    owner = None if x._store is None else getattr(x._store, "_owner", None)
    return owner if isinstance(owner, Pinned) else None


def pinned_copy(x: Tensor) -> Tensor | None:
    """A tensor in pinned memory with the storage's elements, shape and strides; None where there is no such memory."""
    storage = x._storage
    owner = pinned_memory(storage.nbytes())
    if owner is None:
        return None
    owner.array[:] = storage.read()
    home = UntypedStorage.of_array(owner.array, owner)
    return tensor_over(home, home.typed(x._dtype), x._shape, x._stride, x._offset, x._dtype, x._device)


def pinned(x: Tensor, pin_memory: Any) -> Tensor:
    """A factory's result on the CPU, moved to pinned memory where that is asked for.

    Errors: RuntimeError where there is no device that would read it, and for meta tensors.
    """
    if not pin_memory:
        return x
    if x._device.type != "cpu":
        raise RuntimeError("Only dense CPU tensors can be pinned")
    found = pinned_copy(x)
    if found is None:
        raise RuntimeError(
            "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on "
            "this system."
        )
    return found
