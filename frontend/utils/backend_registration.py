"""The spare backend that PyTorch keeps for users, PrivateUse1, under its names: rename it, give it methods and kernels.

New code has `redispatch.backend.register`, which gives each device type a key of its own, any number of them.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from redispatch.backend import enable_autocast, generate_methods, register_device_module
from redispatch.backend.register import LIBRARY
from redispatch.dispatch.tensor import TYPE_NAMED, rename_device_type

SPARE = "privateuseone"


def privateuse1_name() -> str:
    """Returns the present name of PrivateUse1's device type."""
    return TYPE_NAMED[SPARE]


def rename_privateuse1_backend(backend_name: str) -> None:
    """Calls the device type of the key PrivateUse1 `backend_name`, once per process.

    Errors: RuntimeError where it has another name already.
    """
    present = privateuse1_name()
    if present == backend_name:
        return
    if present != SPARE:
        raise RuntimeError(f"torch.register_privateuse1_backend() has already been set! Current backend: {present}")
    rename_device_type(SPARE, backend_name)


def generate_methods_for_privateuse1_backend(
    for_tensor: bool = True,
    for_module: bool = True,
    for_packed_sequence: bool = True,
    for_storage: bool = False,
    unsupported_dtype: Any = None,
) -> None:
    """Gives tensors, modules and others the methods `x.<name>()` and `x.is_<name>` of that device type.

    Errors: RuntimeError where they have such methods already.
    """
    generate_methods(
        privateuse1_name(), tensor=for_tensor, module=for_module, packed=for_packed_sequence, storage=for_storage
    )


def _register_device_module(device_type: str, module: Any) -> None:
    """Makes `module` the one of a device type. RuntimeError where the type is unknown or has one.

    With a function `get_amp_supported_dtype`, which lists dtypes, there is autocast for PrivateUse1, too.
    """
    register_device_module(device_type, module)
    if device_type == privateuse1_name():
        enable_autocast(device_type, "PrivateUse1", module)


def _get_custom_mod_func(func_name: str) -> Any:
    """Returns a function of PrivateUse1's module. RuntimeError where it has none of that name."""
    if not isinstance(func_name, str):
        raise AssertionError(f"func_name must be `str`, but got `{type(func_name)}`.")
    name = privateuse1_name()
    found = getattr(vars(LIBRARY).get(name), func_name, None)
    if found is None:
        raise RuntimeError(
            f"Try to call torch.{name}.{func_name}. The backend must register a custom backend module with "
            f"`torch._register_device_module('{name}', BackendModule)`. And BackendModule needs to have the following "
            f"API's:\n `{func_name}(*args, **kwargs)`. \n"
        )
    return found


def _setup_privateuseone_for_python_backend(
    rename: str | None = None, backend_module: Any = None, hook: Any = None, device_guard: Any = None
) -> None:
    """Makes PrivateUse1 a backend whose kernels are Python functions: renames it and gives it a module.

    hook, device_guard: accepted as in PyTorch; devices here need neither.
    """
    name = rename or SPARE
    rename_privateuse1_backend(name)
    register_device_module(name, backend_module or _DummyModule(name))


class _DummyModule(ModuleType):
    """The module of a device type that has one device, and is always there."""

    @staticmethod
    def is_available() -> bool:
        return True

    @staticmethod
    def is_initialized() -> bool:
        return True

    @staticmethod
    def current_device() -> int:
        return 0

    @staticmethod
    def device_count() -> int:
        return 1

    @staticmethod
    def _is_in_bad_fork() -> bool:
        return False

    @staticmethod
    def manual_seed_all(seed: int) -> None:
        """The device draws no numbers."""
