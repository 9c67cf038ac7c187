"""The module of a device type: `redispatch.mydev.device_count()`, `with redispatch.mydev.device(1):`.

A backend may bring a module of its own (`register_device_module`); what it lacks is nobody's but its users' loss. A
registered backend without one gets a `DeviceModule`, which has the functions that PyTorch's device modules have.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from redispatch.dispatch import BACKEND_OF_DEVICE, WITHOUT_MODULE
from redispatch.dispatch.tensor import DeviceKind, Tensor, as_device, current_index, set_current_index
from redispatch.kernels.ops.random import Generator

LIBRARY = sys.modules[__name__.partition(".")[0]]


class DeviceModule(ModuleType):
    """The functions of a device type whose devices all look the same."""

    def __init__(self, kind: DeviceKind, dtypes: tuple[Any, ...]) -> None:
        super().__init__(f"{LIBRARY.__name__}.{kind.name}", f"The device type {kind.name!r}.")
        self._kind, self._dtypes = kind, dtypes
        kind.generators.update({i: Generator(as_device(f"{kind.name}:{i}")) for i in range(kind.count)})
        self.default_generators = tuple(kind.generators[i] for i in range(kind.count))

    def is_available(self) -> bool:
        return self._kind.count > 0

    def is_initialized(self) -> bool:
        return True

    def device_count(self) -> int:
        return self._kind.count

    def current_device(self) -> int:
        """The index of the current device, on which tensors are made where no index is given."""
        return current_index(self._kind.name)

    def set_device(self, device: Any) -> None:
        """Makes another device the current one, in this thread or task. RuntimeError where there is none."""
        set_current_index(self._kind.name, self._index(device))

    def device(self, device: Any) -> Guard:
        """`with module.device(1):` has that device be the current one inside the block."""
        return Guard(self._kind.name, self._index(device))

    def synchronize(self, device: Any = None) -> None:
        """Waits for what runs on a device. Kernels here have ended when they return."""

    def manual_seed(self, seed: int) -> None:
        """Seeds the default generator of the current device."""
        self.default_generators[self.current_device()].manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        """Seeds the default generators of all devices."""
        for generator in self.default_generators:
            generator.manual_seed(seed)

    def get_rng_state(self, device: Any = None) -> Tensor:
        """The state of a device's default generator."""
        return self.default_generators[self._index(device)].get_state()

    def set_rng_state(self, new_state: Tensor, device: Any = None) -> None:
        self.default_generators[self._index(device)].set_state(new_state)

    def get_amp_supported_dtype(self) -> list[Any]:
        """The dtypes to which autocast can cast, the default one first."""
        return list(self._dtypes)

    def _is_in_bad_fork(self) -> bool:
        return False

    def _index(self, device: Any) -> int:
        if isinstance(device, int):
            return device
        index = None if device is None else as_device(device).index
        return self.current_device() if index is None else index


class Guard:
    """A block in which another device is the current one."""

    def __init__(self, kind: str, index: int) -> None:
        self.kind, self.index = kind, index
        self._former: list[int] = []

    def __enter__(self) -> Guard:
        former = current_index(self.kind)
        set_current_index(self.kind, self.index)
        self._former.append(former)
        return self

    def __exit__(self, *error: object) -> None:
        set_current_index(self.kind, self._former.pop())


def register_device_module(device_type: str, module: Any) -> Callable[[], None]:
    """Makes a module the one of a device type: `redispatch.<type>`; returns what takes it back.

    Errors: RuntimeError where the type is unknown, or has a module.
    """
    kind = as_device(device_type).type
    if kind in vars(LIBRARY):
        raise RuntimeError(f"The runtime module of '{kind}' has already been registered with '{vars(LIBRARY)[kind]}'")
    path = f"{LIBRARY.__name__}.{kind}"
    setattr(LIBRARY, kind, module)
    sys.modules[path] = module
    was_missing = kind in WITHOUT_MODULE
    WITHOUT_MODULE.discard(kind)

    def undo() -> None:
        if was_missing:
            WITHOUT_MODULE.add(kind)
        delattr(LIBRARY, kind)
        sys.modules.pop(path, None)

    return undo


def get_device_module(device: Any = None) -> Any:
    """The module of a device or device type; of the CPU where none is given. RuntimeError where there is none."""
    kind = "cpu" if device is None else as_device(device).type
    if kind == "cpu":
        return LIBRARY.backends.cpu
    module = vars(LIBRARY).get(kind)
    if module is None:
        known = sorted(name for name in BACKEND_OF_DEVICE if name in vars(LIBRARY))
        raise RuntimeError(f"Invalid device_module '{kind}'; there are modules of {', '.join(known) or 'no device'}")
    return module
