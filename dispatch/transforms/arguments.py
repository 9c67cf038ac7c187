"""Which arguments of a function a transform is about, and the tensors in them.

Shared by all transforms that differentiate. Read next: reverse.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch.pytree import TreeSpec, tree_flatten
from redispatch.dispatch.tensor import Tensor

Argnums = int | tuple[int, ...]


def positions(argnums: Any, count: int) -> tuple[int, ...]:
    """The positions that `argnums` names, negative ones counted from the end.

    Errors: RuntimeError where there is no such argument, one is named twice, or none is named.
    """
    if type(argnums) is int:
        return (position(argnums, count),)
    if not isinstance(argnums, int | tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if argnums == ():
        raise RuntimeError("argnums must be non-empty")
    found = tuple(position(one, count) for one in (argnums if isinstance(argnums, tuple) else (argnums,)))
    if len(set(found)) != len(found):
        raise RuntimeError(f"argnums elements must be unique, got {found}")
    return found


def position(argnum: Any, count: int) -> int:
    if not isinstance(argnum, int):
        raise RuntimeError(f"argnum must be int, got: {type(argnum)}")
    if not -count <= argnum < count:
        raise RuntimeError(f"Got argnum={argnum}, but only {count} positional inputs")
    return argnum % count


def chosen(args: tuple[Any, ...], argnums: Argnums) -> Any:
    """The arguments that `argnums` names: one for an int, a tuple for a tuple."""
    if type(argnums) is int:  # as nearly always
        return args[position(argnums, len(args))]
    found = tuple(args[i] for i in positions(argnums, len(args)))
    return found if isinstance(argnums, tuple) else found[0]


def replaced(args: tuple[Any, ...], argnums: Argnums, values: Any) -> tuple[Any, ...]:
    """`args` with others in the places that `argnums` names."""
    changed = list(args)
    if type(argnums) is int:
        changed[position(argnums, len(args))] = values
        return tuple(changed)
    for place, value in zip(
        positions(argnums, len(args)), values if isinstance(argnums, tuple) else (values,), strict=True
    ):
        changed[place] = value
    return tuple(changed)


def flat_tensors(tree: Any, what: Callable[[Any], str]) -> tuple[list[Any], TreeSpec]:
    """The tensors of a pytree. RuntimeError, with `what(leaf)`, for anything else in it."""
    leaves, spec = tree_flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(what(leaf))
    return leaves, spec


def to_differentiate(tree: Any) -> tuple[list[Any], TreeSpec]:
    """The tensors of a pytree of arguments. ValueError for anything else in it."""
    leaves, spec = tree_flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"Thing passed to transform API must be Tensor, got {type(leaf)}; name by `argnums` the arguments to "
                "differentiate, and pass constants as the others"
            )
    return leaves, spec


def output_tensors(output: Any, called: str) -> tuple[list[Any], TreeSpec]:
    """The tensors of a function's output. RuntimeError for anything else in it, and where there are none."""
    leaves, spec = tree_flatten(output)
    if not leaves or leaves == [None]:
        raise RuntimeError(f"{called}: Expected f to be a function that has non-empty output (got output = {leaves})")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{called}: expected f(*primals) to return only tensors, got unsupported type {type(leaf)}"
            )
    return leaves, spec


def split_aux(result: Any, has_aux: bool, name: str) -> tuple[Any, Any]:
    """(output, aux) of a function's result; None as aux where there is none."""
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return result
