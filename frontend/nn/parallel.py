"""DataParallel and its parts, for one device: there is nothing to share out, so inputs go to the module itself.

Errors: RuntimeError for several devices, which would run one after another here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redispatch import _names
from redispatch.dispatch.pytree import tree_map_only
from redispatch.dispatch.tensor import Tensor

from .module import Module

__all__ = ["DataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter"]
__path__: list[str] = []  # PyTorch has a module for each function: _moved.py and _absent.py have their names
_, __getattr__, __dir__ = _names.late(globals(), {".parallel.distributed": "DistributedDataParallel"})


class DataParallel(Module):
    """A module whose batches one device works on: `self.module`, called with the inputs moved there.

    Without `device_ids` the module stays where it is.
    """

    def __init__(self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module, self.dim = module, dim
        self.device_ids = list(device_ids or ())
        self.output_device = output_device
        only_one(self.device_ids)
        if self.device_ids:
            module.to(self.device_ids[0])

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if self.device_ids:
            inputs, kwargs = scatter((inputs, kwargs), self.device_ids)[0]
        return self.module(*inputs, **kwargs)


def only_one(devices: Sequence[Any]) -> None:
    """RuntimeError for several devices."""
    if len(devices) > 1:
        raise RuntimeError(f"modules run on one device here, and {list(devices)} are several")


def data_parallel(
    module: Any, inputs: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0, module_kwargs: Any = None
) -> Any:
    """Calls a module with a batch, on one device."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> list[Any]:
    """Returns the inputs for each device: all of them, moved to the only one."""
    only_one(target_gpus)
    return [tree_map_only(Tensor, lambda x: x.to(target_gpus[0]), inputs)]


def gather(outputs: Sequence[Any], target_device: Any, dim: int = 0) -> Any:
    """Returns the only device's outputs, moved to the target."""
    only_one(outputs)
    return tree_map_only(Tensor, lambda x: x.to(target_device), outputs[0])


def replicate(network: Any, devices: Sequence[Any], detach: bool = False) -> list[Any]:
    """Returns a module for each device: itself, moved there."""
    only_one(devices)
    return [network.to(devices[0])]


def parallel_apply(
    modules: Sequence[Any], inputs: Sequence[Any], kwargs_tup: Any = None, devices: Any = None
) -> list[Any]:
    """Calls each module with its inputs."""
    kwargs_tup = kwargs_tup or [{}] * len(modules)
    given = [each if isinstance(each, tuple | list) else (each,) for each in inputs]
    return [module(*each, **more) for module, each, more in zip(modules, given, kwargs_tup, strict=True)]
