"""Lazy tensors: operators on the device "lazy" are recorded, and run as one program when values are asked for.

    import redispatch as rd, redispatch._lazy.ts_backend
    rd._lazy.ts_backend.init()
    x = rd.ones(3, device="lazy")
    y = x * 2 + 1               # recorded
    rd._lazy.mark_step()        # run

`docs/lazy.md` tells the whole. Read next: kernels/lazy/, which records; lowering.py, which makes loops of programs.
"""

from __future__ import annotations

from typing import Any

import redispatch as rd
from redispatch._C import _lazy
from redispatch.utils._pytree import tree_map_only

from .closure import add_step_closure, run_step_closures
from .lowering import lower

__all__ = [
    "add_step_closure", "get_tensor_id", "mark_step", "run_step_closures", "save", "sync_multi", "to_cpu",
    "wait_device_ops",
]  # fmt: skip

lower()


def mark_step(device: str = "", wait: bool = False) -> None:
    """Runs what living lazy tensors need, then the closures that were added to the step.

    Errors: what computing values raises, an index out of range for instance.
    """
    _lazy._mark_step(device, [], wait=wait)
    run_step_closures()


def wait_device_ops(devices: Any = None) -> None:
    """Returns when nothing runs any more."""
    _lazy._wait_device_ops(devices=devices or [])


def sync_multi(tensors: Any, devices: Any) -> None:
    """Runs what these lazy tensors need, with all others that live."""
    _lazy._sync_multi(tensors, devices)


def get_tensor_id(tensor: Any) -> int:
    """A number for what a lazy tensor shows."""
    return _lazy._get_tensor_id(tensor)


def to_cpu(tensors: Any, devices: Any = None) -> Any:
    """Returns the same tree with copies on the CPU; all of it is run at once."""
    lazy: list[Any] = []
    tree_map_only(rd.Tensor, lazy.append, tensors)
    sync_multi([one for one in lazy if one.device.type == "lazy"], devices or ["lazy"])
    return tree_map_only(rd.Tensor, lambda one: one.to("cpu"), tensors)


def save(tensors: Any, *args: Any, **kwargs: Any) -> None:
    """Saves copies on the CPU, as `redispatch.save` does."""
    rd.save(to_cpu(tensors), *args, **kwargs)
