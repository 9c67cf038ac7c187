"""The public face of operators: `redispatch.add`, `Tensor.add`, `Tensor.add_`, all derived from the schemas.

`public(add_op)` makes the function and attaches the methods. A face asks for overrides first (`__torch_function__`,
function modes), then reads its arguments (dispatch/signature.py) and calls the operator from the top of the key stack.
That is what it means; common calls go faster by lanes (dispatch/lanes.py), of which the face's code is made when it is
first called.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from redispatch.dispatch import (
    EntryPoint,
    ListType,
    OpOverload,
    Overload,
    Parser,
    ask_function_mode,
    call,
    call_overridden,
    overridden,
)
from redispatch.tensor import SET_REQUIRES_GRAD, Tensor

from .declare import Operator


def public(*operators: Operator, function: bool = True, method: bool = True, name: str | None = None) -> Any:
    """The function `name(...)` over these overloads, in the order in which they are tried.

    Also attached, where `method` is set and the first argument is `self`: `Tensor.name` and, with an in-place form,
    `Tensor.name_`. Returns the function; the method where `function` is not set.
    """
    name = name or operators[0].schema.base_name
    made = None
    if function:
        made = face(name, [(o.functional, o.out) for o in operators], "torch")
        inplace: list[Overload] = [(o.inplace, None) for o in operators if o.inplace]
        if inplace:
            made.inplace = face(f"{name}_", inplace, "torch")
    if method:
        methods = [o for o in operators if o.names and o.names[0] == "self"]
        if methods:
            bound = attach(name, [(o.functional, None) for o in methods])
            made = made or bound
        written: list[Overload] = [(o.inplace, None) for o in methods if o.inplace]
        if written:
            attach(f"{name}_", written)
    return made


def attach(name: str, overloads: Sequence[Overload]) -> Callable[..., Any]:
    """Makes `Tensor.name` of these overloads."""
    made = face(name, overloads, "torch.Tensor", method=True)
    setattr(Tensor, name, made)
    return made


def face(name: str, overloads: Sequence[Overload], module: str, method: bool = False) -> Any:
    """A Python function which reads its arguments by the overloads' signatures and calls the operator that fits."""
    parser = Parser(name, overloads, method)

    def meaning(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if overridden(args, kwargs):
            return call_overridden(function, args, kwargs)
        if method:
            if not args or not isinstance(args[0], Tensor):  # `Tensor.add(1, x)`
                given = f"a '{type(args[0]).__name__}' object" if args else "nothing"
                raise TypeError(f"descriptor '{name}' for 'Tensor' objects doesn't apply to {given}")
            op, stack, wants_grad = parser.parse(args[1:], kwargs)
            return named_result(op, call(op, [args[0], *stack]))
        op, stack, wants_grad = parser.parse(args, kwargs)
        return with_grad(named_result(op, call(op, stack)), wants_grad)

    function = EntryPoint(
        name,
        lambda: parser.signatures,
        meaning,
        module=module.removesuffix(".Tensor"),
        qualname=f"Tensor.{name}" if method else name,
        finish=finishing,
        grad=with_grad,
        ask=ask_function_mode,
    ).function
    function.__doc__ = "\n".join(str(op.schema) for op, _ in overloads)
    function.operators = [op for op, _ in overloads]
    return function


def with_grad(result: Any, wanted: bool) -> Any:
    """A factory's result, which requires grad if that is wanted."""
    if wanted:
        SET_REQUIRES_GRAD()(result, True)
    return result


def named_result(op: OpOverload, result: Any) -> Any:
    """Several results as a named tuple, where the schema names them: `values, indices = x.max(0)`; lists as tuples."""
    finish = finishing(op)
    return result if finish is None else finish(result)


def finishing(op: OpOverload) -> Callable[[Any], Any] | None:
    """`named_result` for the results of one operator; None where it changes nothing."""
    returns = op.schema.returns
    if len(returns) == 1 and not isinstance(returns[0].type, ListType):
        return None
    if len(returns) < 2 or not returns[0].name:
        return listed_as_tuple
    made = return_type(op.schema.base_name, tuple(r.name for r in returns))

    def named(result: Any) -> Any:
        return tuple.__new__(made, result) if type(result) is tuple else listed_as_tuple(result)

    return named


def listed_as_tuple(result: Any) -> Any:
    return tuple(result) if isinstance(result, list) else result


@cache
def return_type(name: str, fields: tuple[str, ...]) -> type:
    """The named tuple class of an operator's results: `torch.return_types.max`."""

    def describe(self: Any) -> str:
        lines = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True))
        return f"torch.return_types.{name}(\n{lines})"

    made: Any = namedtuple(name, fields)  # type: ignore[misc]  # its name and fields are known at run time only
    made.__repr__ = describe  # type: ignore[method-assign]
    made.__module__ = "torch.return_types"
    return made
