"""The methods that carry a device's name: `x.mydev()`, `x.is_mydev`, `module.mydev()`, and those of storages.

Read next: register.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch.tensor import Tensor, UntypedStorage, as_device, indexed, overridable, overridable_property
from redispatch.kernels.ops.legacy import TypedStorage
from redispatch.nn import Module
from redispatch.nn.utils.rnn import PackedSequence


def generate_methods(
    name: str, *, tensor: bool = True, module: bool = True, packed: bool = True, storage: bool = False
) -> Callable[[], None]:
    """Gives classes the methods of the device type `name`; returns what takes them away.

    Errors: RuntimeError where a class has such a method already; then none has got any.
    """
    made = [
        *(tensor_methods(name) if tensor else ()),
        *(module_methods(name) if module else ()),
        *(packed_methods(name) if packed else ()),
        *(storage_methods(name) if storage else ()),
    ]
    for owner, attribute, _ in made:
        if hasattr(owner, attribute):
            raise RuntimeError(f"The custom device module of {owner} has already been registered with {attribute}")
    for owner, attribute, method in made:
        setattr(owner, attribute, method)

    def undo() -> None:
        for owner, attribute, _ in made:
            delattr(owner, attribute)

    return undo


Methods = list[tuple[type, str, Any]]


def wanted(name: str, device: Any) -> Any:
    """The device that a user names by nothing, an index, a device or its name. RuntimeError for one of another type."""
    on = as_device(name if device is None else f"{name}:{device}" if isinstance(device, int) else device)
    if on.type != name:
        raise RuntimeError(f"Invalid device, must be {name} device")
    return indexed(on)


def tensor_methods(name: str) -> Methods:
    def is_there(self: Tensor) -> bool:
        return self.device.type == name

    def move(self: Tensor, device: Any = None, non_blocking: bool = False, **kwargs: Any) -> Tensor:
        return self.to(wanted(name, device), non_blocking=non_blocking, **kwargs)

    is_there.__name__, move.__name__ = f"is_{name}", name
    move.__doc__ = f"The tensor on a {name} device; itself if it is there."
    return [(Tensor, f"is_{name}", overridable_property(is_there)), (Tensor, name, overridable(move))]


def module_methods(name: str) -> Methods:
    def move(self: Module, device: Any = None) -> Module:
        return self._apply(lambda tensor: getattr(tensor, name)(device))

    move.__name__, move.__doc__ = name, f"Moves all parameters and buffers to a {name} device."
    return [(Module, name, move)]


def packed_methods(name: str) -> Methods:
    def is_there(self: PackedSequence) -> bool:
        return self.data.device.type == name

    def move(self: PackedSequence, *args: Any, **kwargs: Any) -> PackedSequence:
        return self.to(wanted(name, kwargs.pop("device", None)), *args, **kwargs)

    move.__name__ = name
    return [(PackedSequence, f"is_{name}", property(is_there)), (PackedSequence, name, move)]


def storage_methods(name: str) -> Methods:
    def is_there(self: Any) -> bool:
        return self.device.type == name

    def move(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
        return move_storage(self, name, device)

    move.__name__ = name
    return [
        (owner, attribute, method)
        for owner in (UntypedStorage, TypedStorage)
        for attribute, method in ((f"is_{name}", property(is_there)), (name, move))
    ]


def move_storage(self: Any, name: str, device: Any) -> Any:
    """A storage, typed or not, on the device of that type that a user names."""
    on = wanted(name, device)
    if self.device == on:
        return self
    untyped = self.untyped() if isinstance(self, TypedStorage) else self
    moved = UntypedStorage(untyped.nbytes(), on).copy_(untyped)
    return TypedStorage(wrap_storage=moved, dtype=self.dtype, _quiet=True) if untyped is not self else moved
