"""BackendSelect: finds the backend of an operator that has no tensor to tell it, from its `device` argument.

Only factories stop here (`register_backend_select`); every other operator passes at no cost.
"""

from __future__ import annotations

from typing import Any

from ..core.base import BACKEND_OF_DEVICE
from ..core.interpreter import run
from ..core.key import DispatchKey, key_named
from ..core.operator import OpOverload
from ..core.registry import Undo
from ..rules import place_of
from ..specialiser.annotations import pure
from .layer import boxed_kernel, skipped

# device types that are of no use before a module is registered for them
WITHOUT_MODULE: set[str] = set()


def backend_select(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Continues at the backend of the `device` argument; at CPU where none is given."""
    device = stack[device_position(op)]
    if device is None or device.type == "cpu":  # a keyset that is known: the kernel is worked out in this very place
        return run(op, backend_keyset("cpu"), stack)
    return run(op, backend_keyset(device.type), stack)


@pure
def backend_keyset(device_type: str) -> int:
    """The keyset of the backend whose kernels run on a type of device. ModuleNotFoundError where that has no module."""
    if device_type in WITHOUT_MODULE:
        raise ModuleNotFoundError(
            f"No module named 'torch.{device_type}': register one for the device type by "
            f"_register_device_module('{device_type}', module)"
        )
    return key_of_device(device_type).bits


def key_of_device(device_type: str) -> DispatchKey:
    """Returns the key of the kernels for a type of device. RuntimeError for a type that has a name and nothing else."""
    if device_type not in BACKEND_OF_DEVICE:
        raise RuntimeError(
            f"This is a grandfathered Caffe2 device type {device_type}, it shouldn't ever convert to a DispatchKey: "
            "use one that has a backend"
        )
    return key_named(BACKEND_OF_DEVICE[device_type])


@pure
def device_position(op: OpOverload) -> int:
    """The position of the `device` argument in the schema."""
    return next(i for i, argument in enumerate(op.schema.arguments) if argument.name == "device")


def register_backend_select(op: OpOverload) -> Undo | None:
    """Gives `op` this kernel if it is a factory: a `device` argument and no tensors."""
    schema = op.schema
    is_factory = any(argument.name == "device" for argument in schema.arguments)
    if is_factory and not schema.tensor_positions and not schema.tensor_list_positions:
        return select_backend(op)
    return None


def select_backend(op: OpOverload) -> Undo:
    """Gives `op` this kernel."""
    return op.register("BackendSelect", boxed_kernel(backend_select))


skipped(place_of(register_backend_select), "BackendSelect")
