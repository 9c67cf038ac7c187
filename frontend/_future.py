"""`redispatch.__future__`: what conversions of modules are to do, where PyTorch means to change its default."""

from __future__ import annotations

_overwrite = False
_swap = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Sets whether conversions make new parameters, where by default they give the former ones new data."""
    global _overwrite
    _overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Returns the value of `set_overwrite_module_params_on_conversion`; False by default."""
    return _overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Sets whether conversions and `load_state_dict` swap every parameter with the new one, not those of wrappers
    alone."""
    global _swap
    _swap = value


def get_swap_module_params_on_conversion() -> bool:
    """Returns the value of `set_swap_module_params_on_conversion`; False by default."""
    return _swap
