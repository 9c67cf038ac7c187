"""`redispatch.at`: the operators as explicit functions, by their schemas alone, as PyTorch's C++ programs see them.

    at.add(x, y, alpha=2)
    at.empty([2, 3], TensorOptions().dtype(float32).device("cpu"))

A second face of the same dispatcher. Arguments are those of the schemas, under their names; the types of what is given
say which overload is meant, once and for all calls of these types, and at.pyi says the same to type checkers. Nobody is
asked for `__torch_function__`, nothing is converted for being nearly right: a number is no tensor, a bool no int. What
is in a `TensorOptions` stands for a factory's last arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch import (
    OPERATORS,
    VALUE_CLASSES,
    FunctionSchema,
    ListType,
    OpOverload,
    OptionalType,
    TensorBase,
    bind,
    call,
    ops,
    overridden,
    without_overrides,
)
from redispatch.dispatch.schema.convert import NUMBERS
from redispatch.dispatch.schema.schema import Type
from redispatch.dispatch.tensor.options import TensorOptions as TensorOptions
from redispatch.kernels.declare.public import named_result, with_grad

KINDS: dict[str, Any] = {
    "Tensor": TensorBase, "float": (float, int), "bool": bool, "Scalar": NUMBERS, "str": str, "Dimname": str,
    "Device": (VALUE_CLASSES["Device"], str),
}  # fmt: skip


def takes(kind: Type, value: Any) -> bool:
    """Whether a value is of a schema's type, without any conversion but that of an int to a float."""
    if isinstance(kind, OptionalType):
        return value is None or takes(kind.elem, value)
    if isinstance(kind, ListType):
        each = isinstance(value, list | tuple) and all(takes(kind.elem, item) for item in value)
        return each or (kind.size is not None and takes(kind.elem, value))
    name = getattr(kind, "name", "")
    if name in ("int", "SymInt"):
        return hasattr(type(value), "__index__") and not isinstance(value, bool | TensorBase)
    wanted = KINDS.get(name) or VALUE_CLASSES.get(name)
    return wanted is None or isinstance(value, wanted) and (name != "float" or not isinstance(value, bool))


def misfit(schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Says why a call is none of this schema, in PyTorch's words; empty where it is one."""
    for position, argument in enumerate(schema.arguments):
        value = args[position] if position < len(args) else kwargs.get(argument.name, argument)
        if value is not argument and not takes(argument.type, value):
            return (
                f"{schema.name}() Expected a value of type '{argument.type}' for argument '{argument.name}' but "
                f"instead found type '{type(value).__name__}'.\nPosition: {position}\nValue: {value!r}\n"
                f"Declaration: {schema}"
            )
    try:
        bind(schema, args, kwargs)
    except RuntimeError as problem:
        return str(problem)
    return ""


def kind_of(value: Any) -> Any:
    """What of a value says which overload is meant: its type; of a list those of the items."""
    return frozenset(map(type, value)) if isinstance(value, list | tuple) else type(value)


def function(name: str, overloads: list[OpOverload]) -> Callable[..., Any]:
    """The function of these overloads."""
    known: dict[Any, OpOverload] = {}  # by the types of a call

    def meant(args: tuple[Any, ...], kwargs: dict[str, Any]) -> OpOverload:
        problems = []
        for op in overloads:
            problem = misfit(op.schema, args, kwargs)
            if not problem:
                return op
            problems.append(problem)
        raise RuntimeError("\n\n".join(problems))

    def run(*args: Any, **kwargs: Any) -> Any:
        options = args[-1] if args and type(args[-1]) is TensorOptions else kwargs.pop("options", None)
        wants_grad = False
        if "out" in kwargs and kwargs["out"] is None:
            del kwargs["out"]
        if options is not None:
            args = args[:-1] if args and args[-1] is options else args
            kwargs |= options.given
            wants_grad = kwargs.pop("requires_grad", False)
        kinds = (*map(kind_of, args), *[(name, kind_of(value)) for name, value in kwargs.items()])
        op = known.get(kinds)
        if op is None:
            op = known[kinds] = meant(args, kwargs)
        stack = bind(op.schema, args, kwargs)
        if overridden(args, kwargs):  # nor is anybody asked by what the operator calls
            with without_overrides():
                result = call(op, stack)
        else:
            result = call(op, stack)
        return with_grad(named_result(op, result), wants_grad)

    run.__name__ = run.__qualname__ = name
    run.__doc__ = "\n".join(str(op.schema) for op in overloads)
    return run


def overloads_of(name: str) -> list[OpOverload]:
    """The operators of a name, the overloads that write into `out` behind the others."""
    packet = getattr(ops.aten, name)
    return sorted((getattr(packet, overload) for overload in packet.overloads()), key=lambda op: op.schema.is_out)


def __getattr__(name: str) -> Callable[..., Any]:
    try:
        return globals().setdefault(name, function(name, overloads_of(name)))
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: there is no such operator") from None


def __dir__() -> list[str]:
    return sorted({op._opname for op in OPERATORS.values() if op.namespace == "aten"} | {"TensorOptions"})
