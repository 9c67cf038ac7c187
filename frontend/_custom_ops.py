"""PyTorch's first way to define operators, as functions of their names, `torch._custom_ops`; see _custom_op/impl.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch import Tag
from redispatch.kernels.declare.infer_schema import infer_schema
from redispatch.library import get_ctx, register_fake

from ._custom_op.impl import _find_custom_op, check_function, define, parse_qualname, validate_namespace

__all__ = ["custom_op", "get_ctx", "impl", "impl_abstract", "impl_backward", "impl_save_for_backward"]

Function = Callable[..., Any]


def custom_op(qualname: str, func_or_schema: Any = None) -> Any:
    """Defines an operator by a schema, or by the name and the annotations of a function; a decorator without either."""
    validate_namespace(parse_qualname(qualname)[0])

    def make(function: Function) -> Function:
        check_function(qualname, function)
        define(qualname, infer_schema(function, mutates_args=()), [Tag.needs_fixed_stride_order])
        return function

    if isinstance(func_or_schema, str):
        define(qualname, func_or_schema, [Tag.needs_fixed_stride_order])
        return None
    return make if func_or_schema is None else make(func_or_schema)


def impl(qualname: str, *, device_types: Any = ("cpu", "cuda"), func: Function | None = None) -> Any:
    """Registers the kernel of device types; a decorator without `func`."""
    return registering(func, lambda: _find_custom_op(qualname, True).impl(device_types))


def impl_abstract(qualname: str, *, func: Function | None = None) -> Any:
    """Registers what the result looks like without data; a decorator without `func`."""
    return registering(func, lambda: register_fake(qualname))


def impl_save_for_backward(qualname: str, *, func: Function | None = None) -> Any:
    """Registers what is saved for the backward; a decorator without `func`."""
    return registering(func, lambda: _find_custom_op(qualname, True).impl_save_for_backward())


def impl_backward(qualname: str, output_differentiability: Any = None, *, func: Function | None = None) -> Any:
    """Registers the function that gives a dict of gradients; a decorator without `func`."""
    return registering(func, lambda: _find_custom_op(qualname, True).impl_backward(output_differentiability))


def registering(function: Function | None, register: Callable[[], Function]) -> Any:
    return (lambda given: register()(given)) if function is None else register()(function)


def _destroy(qualname: str) -> None:
    """Takes an operator back, with all that was registered for it."""
    _find_custom_op(qualname)._destroy()
