"""Boxing: from a user's call to a stack of values in schema order, and from a stack back to a Python call.

`bind` reads a call against a schema: positions, keywords, defaults, one conversion per schema type, and the
reference's words when something does not fit. `box` turns a function written with the schema's parameters into a
boxed kernel. There are four conventions, named in `Kernel.convention`:

    boxed        function(op, keyset, stack)           a layer: one function for every operator
    positional   function(*stack)                      a built-in kernel: every schema argument by position
    python       function(*args, **kwargs)             a user's kernel: see `unbind`
    keyset       function(keyset, *args, **kwargs)     a user's kernel that redispatches

Read next: operator.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..schema.convert import NUMBER_FOR_TENSOR, NUMBERS, converter, default_of, is_default
from ..schema.results import checked
from ..schema.schema import NO_DEFAULT, TENSOR, Argument, FunctionSchema
from ..specialiser.marks import inline
from .base import TensorBase
from .keyset import DispatchKeySet
from .table import Boxed, Kernel


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
        if numbers and type(value) in NUMBERS and argument.type == TENSOR:
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


def box(function: Callable[..., Any], op: Any, convention: str) -> Boxed:
    """The boxed form of `function`, a kernel of `op` which takes its arguments by `convention`."""
    if convention == "boxed":
        return function
    if convention == "positional":

        @inline
        def positional_kernel(op: Any, keyset: int, stack: list[Any]) -> Any:
            return function(*stack)

        return positional_kernel
    schema = op.schema
    if convention == "python":

        @inline
        def python_kernel(op: Any, keyset: int, stack: list[Any]) -> Any:
            args, kwargs = unbind(schema, stack)
            return checked(schema, function(*args, **kwargs))

        return python_kernel
    if convention == "keyset":

        @inline
        def keyset_kernel(op: Any, keyset: int, stack: list[Any]) -> Any:
            args, kwargs = unbind(schema, stack)
            return checked(schema, function(DispatchKeySet(keyset), *args, **kwargs))

        return keyset_kernel
    raise ValueError(f"unknown calling convention {convention!r}")


def box_fallback(function: Callable[..., Any], with_keyset: bool) -> Boxed:
    """The boxed form of a user's fallback for all operators: `function([keyset,] op, *args, **kwargs)`."""

    @inline
    def fallback(op: Any, keyset: int, stack: list[Any]) -> Any:
        args, kwargs = unbind(op.schema, stack)
        return function(DispatchKeySet(keyset), op, *args, **kwargs) if with_keyset else function(op, *args, **kwargs)

    return fallback


def _fall_through(op: Any, keyset: int, stack: list[Any]) -> Any:
    raise AssertionError(f"{op} ran a fallthrough kernel, which the table never hands out")


def fallthrough(place: str, library: str = "") -> Kernel:
    """The kernel that stands for "skip this key", at no cost when a call runs."""
    return Kernel(_fall_through, _fall_through, "fallthrough", place, library)
