"""How `Module.to` and its kin put converted parameters in the place of the former; `redispatch.__future__` sets it.

As a rule a parameter stays the same object, which optimizers hold, and gets other data: `parameter.data = converted`.
Where that cannot be, between data and no data, there is a new parameter. A wrapper subclass has its data elsewhere, so
it changes places with the converted one (dispatch/tensor/swapping.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.autograd import no_grad
from redispatch.dispatch.layers.python import has_handler
from redispatch.dispatch.tensor import swap_tensors

from .. import _future
from .parameter import Parameter


def converted(parameter: Any, fn: Callable[[Any], Any], name: str) -> Any:
    """The parameter, its data and gradient changed by `fn`; a new one where it cannot take the new data over.

    Errors: RuntimeError, with `name`, where it cannot change places with the new one; it keeps data and gradient.
    """
    gradient = parameter.grad
    with no_grad():
        data = fn(parameter)
    if _future.get_swap_module_params_on_conversion() or is_wrapper(parameter) or is_wrapper(data):
        swapped(parameter, Parameter(data, parameter.requires_grad), name)
        swap = True
    elif can_take_over(parameter, data):
        parameter.data = data
        swap = False
    else:
        parameter, swap = Parameter(data, parameter.requires_grad), False
    if gradient is not None:
        parameter.grad = None
        with no_grad():
            changed = fn(gradient).requires_grad_(gradient.requires_grad)
        if swap:
            swap_tensors(gradient, changed)
        elif can_take_over(gradient, changed):
            gradient.data = changed
        else:
            gradient = changed
        parameter.grad = gradient
    return parameter


def swap_in(tensor: Any, given: Any, assign: bool) -> None:
    """`load_state_dict` for one tensor, by swapping. RuntimeError where `module_load` makes no tensor of its own."""
    loaded = tensor.module_load(given, assign=assign)
    if loaded is given or loaded is tensor:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning one of the inputs in "
            "module_load"
        )
    if isinstance(tensor, Parameter):
        wanted = tensor.requires_grad
        loaded = loaded.requires_grad_(wanted) if isinstance(loaded, Parameter) else Parameter(loaded, wanted)
    swap_tensors(tensor, loaded)


def swapped(tensor: Any, other: Any, name: str) -> None:
    """`tensor` becomes `other`. RuntimeError, with the parameter's name, where it cannot."""
    gradient = tensor.grad
    if gradient is not None:
        tensor.grad = None
    try:
        swap_tensors(tensor, other)
    except Exception as error:
        tensor.grad = gradient
        raise RuntimeError(f"_apply(): Couldn't swap {name}") from error


def is_wrapper(tensor: Any) -> bool:
    """Whether operators on the tensor go to its class: it then may have its data elsewhere."""
    return has_handler(type(tensor))


def can_take_over(tensor: Any, value: Any) -> bool:
    """Whether `tensor.data = value` works, and is wanted: not between data and no data."""
    return tensor.is_meta == value.is_meta and not _future.get_overwrite_module_params_on_conversion()
