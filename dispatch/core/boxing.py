"""Boxing: from a user's call to a stack of values in schema order, and from a stack back to a Python call.

`bind` reads a call against a schema: positions, keywords, defaults, one conversion per schema type, and the
reference's words when something does not fit. `unbind` gives the call back as handlers and users' kernels see it.

Read next: operator.py; then ../kernel_conventions.py, by which functions become boxed kernels.
"""

from __future__ import annotations

from typing import Any

from ..schema.convert import NUMBER_FOR_TENSOR, NUMERIC, converter, default_of, is_default
from ..schema.schema import NO_DEFAULT, TENSOR, Argument, FunctionSchema
from ..specialiser.annotations import inline
from .base import TensorBase


def bind(schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The stack of the call `op(*args, **kwargs)`. RuntimeError, in the reference's words, where it does not fit."""
    arguments = schema.arguments
    if len(args) > schema.kwarg_only_start:
        raise _too_many(schema, len(args))
    numbers = schema.name in NUMBER_FOR_TENSOR
    stack: list[Any] = []
    used = 0
    for position, argument in enumerate(arguments):
        if position < len(args):
            if argument.name in kwargs:
                raise RuntimeError(
                    f"Argument '{argument.name}' specified both as positional and keyword argument. Schema: {schema}"
                )
            value = args[position]
        elif argument.name in kwargs:
            value = kwargs[argument.name]
            used += 1
        elif argument.default is not NO_DEFAULT:
            stack.append(default_of(argument))
            continue
        else:
            raise RuntimeError(
                f"{schema.name}() is missing value for argument '{argument.name}'. Declaration: {schema}"
            )
        if numbers and type(value) in NUMERIC and argument.type == TENSOR:
            stack.append(value)
            continue
        try:
            stack.append(converter(argument.type)(value))
        except (TypeError, ValueError, OverflowError) as problem:
            raise RuntimeError(
                f"{schema.name}() Expected a value of type '{argument.type}' for argument "
                f"'{argument.name}' but instead found type '{type(value).__name__}'.\nPosition: {position}\n"
                f"Value: {value!r}\nDeclaration: {schema}\nCast error details: {problem}"
            ) from None
    if used != len(kwargs):
        unknown = next(name for name in kwargs if all(name != argument.name for argument in arguments))
        raise RuntimeError(f"Unknown keyword argument '{unknown}' for operator '{schema.name}'. Schema: {schema}")
    return stack


def _too_many(schema: FunctionSchema, count: int) -> RuntimeError:
    if count > len(schema.arguments):
        problem = f"expected at most {len(schema.arguments)} argument(s) but received {count} argument(s). "
    else:
        problem = f"takes {schema.kwarg_only_start} positional argument(s) but {count} was/were given.  "
    return RuntimeError(f"{schema.name}() {problem}Declaration: {schema}")


@inline
def unbind(schema: FunctionSchema, stack: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The Python call that stands for a stack, as PyTorch hands it to modes, subclasses and users' kernels.

    Keyword-only arguments go by keyword. Arguments equal to their default are left out: keywords each for itself,
    positions from the right. (A factory like `torch.ones` passes a device and `pin_memory=False`, where the schema's
    default is None; so a mode sees these two. It does not when `ops.aten.ones` is called without them.)
    """
    count = schema.kwarg_only_start
    arguments = schema.arguments
    while count and _is_default(arguments[count - 1], stack[count - 1]):
        count -= 1
    kwargs = {
        argument.name: value
        for argument, value in zip(arguments[schema.kwarg_only_start :], stack[schema.kwarg_only_start :], strict=True)
        if not _is_default(argument, value)
    }
    return tuple(stack[:count]), kwargs


@inline
def _is_default(argument: Argument, value: Any) -> bool:
    if argument.default is NO_DEFAULT or isinstance(value, TensorBase):
        return False
    return is_default(value, default_of(argument))
