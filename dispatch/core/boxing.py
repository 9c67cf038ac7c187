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

import operator
from collections.abc import Callable
from typing import Any

from ..schema.schema import NO_DEFAULT, TENSOR, Argument, BaseType, FunctionSchema, ListType, OptionalType, Type
from ..specialiser.marks import inline, leaf, pure
from .base import ARGUMENT_TYPES, TensorBase
from .keyset import DispatchKeySet
from .table import Boxed, Kernel

Convert = Callable[[Any], Any]


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


@pure
def is_default(value: Any, default: Any) -> bool:
    """Whether a value is the default: of the same type, too, and of the same sign where it is zero."""
    if value is default:
        return True
    return type(value) is type(default) and value == default and (value != 0 or str(value) == str(default))


@pure
def default_of(argument: Argument) -> Any:
    """The default as kernels see it. A schema writes a dtype, layout or memory format as PyTorch's number for it."""
    default, type_ = argument.default, argument.type
    if type(default) is int:
        name = getattr(type_.elem if isinstance(type_, OptionalType) else type_, "name", "")
        if name in ("ScalarType", "Layout", "MemoryFormat"):
            return converter(type_)(default)
    return default


@inline
def checked(schema: FunctionSchema, result: Any) -> Any:
    """A result of a user's function, which must be what the schema promises where it promises tensors.

    Errors: RuntimeError for something else than a tensor, and for a wrong number of results.
    """
    returns = schema.returns
    if len(returns) == 1:
        if returns[0].type == TENSOR and not isinstance(result, TensorBase):
            raise no_tensor(schema, result)
        if returns[0].type != TENSOR:
            check_plain(schema, result)
        return result
    if not returns:
        check_nothing(schema, result)
        return None
    if not (isinstance(result, tuple | list) and len(result) == len(returns)):
        raise wrong_results(schema, result)
    return tuple(result)


@leaf
def check_nothing(schema: FunctionSchema, result: Any) -> None:
    """A function of its own: what is raised here would be one more way out, wherever a layer calls."""
    if result is not None:
        raise wrong_results(schema, result)


# What a result of such a type must be; of other types anything goes.
PLAIN_RESULTS: dict[str, Any] = {
    **dict.fromkeys(("int", "SymInt"), int),
    **dict.fromkeys(("float", "SymFloat"), (int, float)),
    "bool": bool,
    "str": str,
}


@leaf
def check_plain(schema: FunctionSchema, result: Any) -> None:
    """RuntimeError for a text where a number is promised, and the like. Numpy's numbers pass for numbers.

    None passes, too: from a handler that is asked for the shape (`aten::dim`), it means that the tensor's own holds.
    """
    if result is None:
        return
    promised = schema.returns[0].type
    wanted = PLAIN_RESULTS.get(promised.name) if isinstance(promised, BaseType) else None
    if wanted is not None and not isinstance(result, wanted) and not hasattr(result, "__index__"):
        raise no_tensor(schema, result)


def no_tensor(schema: FunctionSchema, result: Any) -> RuntimeError:
    promised = schema.returns[0].type
    return RuntimeError(f"Unable to cast {result!r} to {promised}: {schema} returns {promised}")


def wrong_results(schema: FunctionSchema, result: Any) -> RuntimeError:
    promised = f"{len(schema.returns)} values" if schema.returns else "nothing"
    return RuntimeError(f"{schema} returns {promised}, but its function returned {result!r}")


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


# What one value becomes ------------------------------------------------------------------------------------------

# Operators of this name take a Python number where the schema says Tensor, and hand it down as it is: `x + 1` is
# add.Tensor(x, 1), and a mode sees the 1. The upper rooms fill the table.
NUMBER_FOR_TENSOR: set[str] = set()
NUMBERS = (int, float, bool, complex)

_CONVERTERS: dict[Type, Convert] = {}


def converter(type_: Type) -> Convert:
    """The function that turns a user's value into one of the schema type, or raises TypeError."""
    found = _CONVERTERS.get(type_)
    if found is None:
        found = _CONVERTERS[type_] = _make_converter(type_)
    return found


def _make_converter(type_: Type) -> Convert:
    if isinstance(type_, OptionalType):
        inner = converter(type_.elem)
        return lambda value: None if value is None else inner(value)
    if isinstance(type_, ListType):
        return _list_of(converter(type_.elem), type_)
    if isinstance(type_, BaseType):
        if type_.name in _CONVERT:
            return _CONVERT[type_.name]
        if type_.name in ARGUMENT_TYPES:
            return ARGUMENT_TYPES[type_.name]
    return lambda value: value  # an opaque Python object


def _list_of(element: Convert, type_: ListType) -> Convert:
    size = type_.size if element in (_int, _float, _bool) else None

    def convert(value: Any) -> list[Any]:
        if isinstance(value, list | tuple):
            return [element(item) for item in value]
        if size is not None and not isinstance(value, str):
            return [element(value)] * size
        raise TypeError(f"Unable to cast {value!r} to a list")

    return convert


def _tensor(value: Any) -> Any:
    if isinstance(value, TensorBase):
        return value
    raise TypeError(f"Unable to cast {value} to Tensor")


def _scalar(value: Any) -> Any:
    if type(value) in NUMBERS:
        return value
    if isinstance(value, TensorBase):
        return ARGUMENT_TYPES["Scalar"](value)
    if hasattr(value, "item") and hasattr(value, "dtype") and not getattr(value, "shape", ()):
        return value.item()  # numpy's scalars, of which some are Python floats, too
    if isinstance(value, NUMBERS):
        return value
    raise TypeError(f"Cannot cast {value} to number")


def _int(value: Any) -> int:
    return value if type(value) is int else int(operator.index(value))  # int(): a bool is its own index


def _float(value: Any) -> float:
    if isinstance(value, str | bytes):
        raise TypeError(f"Cannot cast {value!r} to float")
    return float(value)


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value is None or hasattr(type(value), "__bool__"):  # numbers, numpy's bools; no strings, no lists
        return bool(value)
    raise TypeError(f"Unable to cast {value!r} to bool")


def _str(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TypeError(f"Unable to cast {value!r} to str")


_CONVERT: dict[str, Convert] = {
    "Tensor": _tensor,
    "Scalar": _scalar,
    "int": _int,
    "SymInt": _int,
    "float": _float,
    "bool": _bool,
    "str": _str,
}
