"""The other forms of a custom operator, derived from the one that was written.

    f(Tensor x, int n) -> Tensor             f_(Tensor(a!) x, int n) -> Tensor(a!)                 inplace_form
                                             f.out(Tensor x, int n, *, Tensor(a!) out) -> ...      out_form
    g(Tensor(a!) x, int n) -> ()             g_functional(Tensor x, int n) -> Tensor               functional_form

The in-place form is written in other operators, so its gradient is that of the functional one. The functional form of
an operator that writes works on copies and returns them; it is an operator of its own, and can be given a derivative.

Read next: custom_op.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from redispatch.dispatch import STATE, Argument, FunctionSchema, Library, OpOverload, operator_named, wants_gradient
from redispatch.dispatch.layers import ad_inplace_or_view
from redispatch.dispatch.pytree import tree_leaves
from redispatch.dispatch.schema.schema import TENSOR, AliasInfo

from .out_forms import filled


def inplace_form(op: OpOverload, lib: Library) -> OpOverload:
    """`f_`: the result of `f` written into its first argument. ValueError where `f` is not of that kind."""
    schema = op.schema
    first = schema.arguments[0] if schema.arguments else None
    if not is_plain(schema) or len(schema.returns) != 1 or first is None or first.type != TENSOR or first.kwarg_only:
        raise ValueError(f"{op} has no in-place form: expected (Tensor x, ...) -> Tensor, got {schema}")
    made = replace(
        schema,
        name=f"{schema.name}_",
        arguments=(written(first, "a"), *schema.arguments[1:]),
        returns=(written(schema.returns[0], "a"),),
    )

    def write_into_first(x: Any, *args: Any, **kwargs: Any) -> Any:
        result = op(x.clone() if is_recorded((x, args, kwargs)) else x, *args, **kwargs)
        if result.shape != x.shape:
            raise RuntimeError(
                f"{made.name}: the result has shape {list(result.shape)}, which is not that of the argument to be "
                f"written, {list(x.shape)}"
            )
        return x.copy_(result)

    return defined(lib, made, write_into_first, "CompositeImplicitAutograd", op.place)


def out_form(op: OpOverload, lib: Library) -> OpOverload:
    """`f.out`: the results of `f` written into `out` (`out0`, `out1`, ... for several). ValueError where `f` is not of
    that kind."""
    schema = op.schema
    if not is_plain(schema) or not schema.returns or schema.overload_name:
        raise ValueError(f"{op} has no out form: expected an operator that returns new tensors, got {schema}")
    count = len(schema.returns)
    names = ["out"] if count == 1 else [f"out{index}" for index in range(count)]
    letters = [chr(ord("a") + index) for index in range(count)]
    outs = [
        written(Argument(name, TENSOR, kwarg_only=True), letter) for name, letter in zip(names, letters, strict=True)
    ]
    made = replace(
        schema,
        overload_name="out",
        arguments=(*schema.arguments, *outs),
        returns=tuple(written(returned, letter) for returned, letter in zip(schema.returns, letters, strict=True)),
    )

    def write_into_outs(*args: Any, **kwargs: Any) -> Any:
        given = [kwargs.pop(name) for name in names]
        results = op(*args, **kwargs)
        for out, result in zip(given, results if count > 1 else [results], strict=True):
            filled(out, result)
        return tuple(given) if count > 1 else given[0]

    return defined(lib, made, write_into_outs, "CompositeExplicitAutograd", op.place)


def functional_schema(schema: FunctionSchema) -> FunctionSchema:
    """The schema of the form that writes nothing, and returns what would have been written after the other results.

    Errors: ValueError where nothing is written, or a result is an argument.
    """
    if not schema.is_mutable or any(schema.return_aliases):
        raise ValueError(f"expected an operator that writes arguments and returns new tensors only, got {schema}")
    changed = [schema.arguments[position] for position in schema.mutable_positions]
    return replace(
        schema,
        name=f"{schema.name}_functional",
        arguments=tuple(replace(argument, alias_info=None) for argument in schema.arguments),
        returns=(*schema.returns, *(Argument(f"{argument.name}_out", argument.type) for argument in changed)),
    )


def on_copies(op: OpOverload) -> Callable[..., Any]:
    """The kernel of the functional form: runs `op` on copies of what it writes, and returns them."""
    schema = op.schema
    names = [argument.name for argument in schema.arguments]
    changed = [names[position] for position in schema.mutable_positions]

    def kernel(*args: Any, **kwargs: Any) -> Any:
        given = dict(zip(names, args, strict=False)) | kwargs
        copies = {name: copied(given[name]) for name in changed}
        result = op(**given | copies)
        results = () if not schema.returns else result if len(schema.returns) > 1 else (result,)
        both = (*results, *copies.values())
        return both if len(both) > 1 else both[0]

    kernel.__name__ = kernel.__qualname__ = f"{schema.base_name}_functional"
    return kernel


def copied(value: Any) -> Any:
    """A copy of an argument: a tensor, None or a list of them."""
    if isinstance(value, list | tuple):
        return [copied(item) for item in value]
    return value if value is None else value.clone()


def is_recorded(arguments: Any) -> bool:
    """Whether a derivative may keep these arguments, so that what is to be written must be copied before."""
    state = STATE.get()
    wanted = state.grad_enabled and any(map(wants_gradient, tree_leaves(arguments)))
    return wanted or bool(state.levels) or state.dual_level is not None


def is_plain(schema: FunctionSchema) -> bool:
    """Whether an operator writes nothing and returns tensors, all of them new."""
    return not schema.is_mutable and not schema.is_view and all(returned.type == TENSOR for returned in schema.returns)


def written(argument: Argument, letter: str) -> Argument:
    """An argument or result that is written."""
    return replace(argument, alias_info=AliasInfo(frozenset(letter), frozenset(letter), is_write=True))


def defined(lib: Library, schema: FunctionSchema, kernel: Callable[..., Any], key: str, place: str) -> OpOverload:
    """A new operator of a library, with its kernel; it was written where the one is that it follows from."""
    kernel.__name__ = kernel.__qualname__ = schema.base_name
    lib.define(str(schema))
    op = operator_named(schema.qualified_name)
    op.place = place
    lib.impl(op, kernel, key)
    lib.undo_with(ad_inplace_or_view.register_alias_tracking(op))
    return op
