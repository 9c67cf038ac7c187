"""Promises of custom operators' kernels, checked at each call and registration.

A result is new memory, unless the schema says `(a)` of it and of an argument. What is returned against that would be a
view that no layer knows of: a write to it would not be counted, and its gradient would go nowhere.

Read next: custom_op.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from redispatch.dispatch import STATE, FunctionSchema, OpOverload, TensorBase, ops, within
from redispatch.dispatch.core.state import ABOVE_PYTHON
from redispatch.dispatch.layers.python import has_handler
from redispatch.dispatch.specialiser.annotations import inline, leaf
from redispatch.dispatch.tensor import Tensor

from .tree_arguments import TreeArguments


@inline
def owns_its_memory(result: Any, args: Iterable[Any]) -> bool:
    """Whether a result is certainly a tensor which is none of the arguments and shares no memory with any."""
    return type(result) is Tensor and result._store is None and not any(value is result for value in args)


@leaf
def with_declared_aliases(op: OpOverload, function: Callable[..., Any], args: Any, kwargs: Any, result: Any) -> Any:
    """The result of a kernel; a view that is the argument itself becomes a view of it.

    Errors: RuntimeError where a result is an argument, or shares memory with one or with another result, and the schema
    does not say so.
    """
    schema = op.schema
    given = given_arguments(schema, args, kwargs)
    several = len(schema.returns) > 1 and isinstance(result, tuple | list)
    results = list(result) if several else [result]
    owners = {id(tensor._storage): name for name, value in given.items() for tensor in tensors(value)}
    for index, value in enumerate(results):
        allowed = declared(schema, index)
        for tensor in tensors(value):
            if has_handler(type(tensor)):
                continue  # a wrapper's storage says nothing about the memory inside
            owner = owners.get(id(tensor._storage))
            if owner is not None and owner not in allowed:
                raise unexpected_alias(op, function, index, owner)
            owners.setdefault(id(tensor._storage), f"output {index}")
        if allowed and not schema.returns[index].is_write and any(value is given[name] for name in allowed):
            with within(STATE.get().excluding(ABOVE_PYTHON)):
                results[index] = ops.aten.alias.default(value)
    return type(result)(results) if several else results[0]


def declared(schema: FunctionSchema, index: int) -> set[str]:
    """The names of the arguments that a result may alias."""
    if index >= len(schema.returns):
        return set()
    return {schema.arguments[position].name for position in schema.return_aliases[index]}


def given_arguments(schema: FunctionSchema, args: Any, kwargs: Any) -> dict[str, Any]:
    """The arguments of a call by name."""
    return dict(zip((argument.name for argument in schema.arguments), args, strict=False)) | dict(kwargs)


def tensors(value: Any) -> Iterator[Any]:
    """The tensors in a value, those inside lists and tuples too."""
    if isinstance(value, TensorBase):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors(item)


def unexpected_alias(op: OpOverload, function: Callable[..., Any], index: int, owner: str) -> RuntimeError:
    other = owner if owner.startswith("output ") else f"argument '{owner}'"
    return RuntimeError(
        f"{op.name()} (with implementation in {function.__module__}): The output of this custom operator (1) must not "
        "also be an input to this custom operator and (2) may not alias any inputs to this custom operator or other "
        "returns. The most common way to trigger this error is if we have y = custom_op(x) and y and x are the same "
        "Tensor. Please instead return a clone of the offending output tensor(s) (e.g. return x.clone()) or refactor "
        f"the custom operator to not return y.\n  you returned  output {index}, which shares memory with {other}\n"
        "  to fix        return a clone, or declare the alias: schema='(Tensor(a) x) -> Tensor(a)'"
    )


def check_parameters(function: Callable[..., Any], op: OpOverload, trees: TreeArguments | None = None) -> None:
    """TypeError where a function cannot be called with the arguments of an operator's schema."""
    schema = op.schema
    if trees is not None:
        positional, keywords = trees.positional, [n for n in trees.signature.parameters if n not in trees.positional]
    else:
        positional = [argument.name for argument in schema.arguments[: schema.kwarg_only_start]]
        keywords = [argument.name for argument in schema.arguments[schema.kwarg_only_start :]]
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # written in C, and silent about its parameters
        return
    try:
        signature.bind(*positional, **dict.fromkeys(keywords))
    except TypeError as problem:
        raise TypeError(
            f"{getattr(function, '__name__', function)}{signature} does not take the arguments of {schema}: {problem}"
        ) from None
