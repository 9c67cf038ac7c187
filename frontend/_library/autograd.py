"""`supports_tensorlist`: an autograd.Function whose arguments and results may be lists of tensors."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.pytree import tree_flatten, tree_unflatten
from redispatch.dispatch.tensor import Tensor

__all__ = ["supports_tensorlist"]


class Structures:
    """The nesting of one call's arguments and results: the last argument of the function that takes them flat."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.returned: Any = None
        self.is_tuple = False


def supports_tensorlist(cls: Any) -> Any:
    """Lets an autograd.Function take and return lists of tensors, and give a list of gradients for each."""
    forward, backward, apply = cls.forward, cls.backward, cls.apply

    def forward_flat(ctx: Any, *args: Any) -> Any:
        structures = args[-1] if args else None
        if not isinstance(structures, Structures):
            raise NotImplementedError(
                "NYI: calling supports_tensorlist autograd.Function.forward directly. You should probably be calling "
                ".apply instead."
            )
        result = forward(ctx, *tree_unflatten(list(args[:-1]), structures.given))
        structures.is_tuple = isinstance(result, tuple)
        flat, structures.returned = flattened(result if structures.is_tuple else (result,))
        ctx._structures = structures
        return tuple(flat)

    def backward_flat(ctx: Any, *gradients: Any) -> Any:
        if not hasattr(ctx, "_structures"):
            raise NotImplementedError(
                "NYI: calling supports_tensorlist autograd.Function.backward directly. The backward pass calls it."
            )
        structures = ctx._structures
        wanted = ctx.needs_input_grad
        try:
            ctx.needs_input_grad = tuple(tree_unflatten(list(wanted[:-1]), structures.given))
            result = backward(ctx, *tree_unflatten(list(gradients), structures.returned))
        finally:
            ctx.needs_input_grad = wanted
        flat, structure = tree_flatten(result if isinstance(result, tuple) else (result,), none_or_tensors)
        if structure != structures.given:
            raise RuntimeError(
                "Expected the return from backward to be of the same structure as the inputs. Got: "
                f"{structure} (return from backward), {structures.given} (inputs)"
            )
        return (*flat, None)

    def apply_nested(*args: Any) -> Any:
        flat, structure = flattened(args)
        structures = Structures(structure)
        result = tree_unflatten(list(apply(*flat, structures)), structures.returned)
        return result if structures.is_tuple else result[0]

    cls.forward, cls.backward, cls.apply = map(staticmethod, (forward_flat, backward_flat, apply_nested))
    return cls


def flattened(values: tuple[Any, ...]) -> Any:
    """The leaves and the structure of arguments or results: lists of tensors are opened, nothing else."""
    return tree_flatten(values, lambda value: value is not values and not is_list_of(value, Tensor))


def none_or_tensors(value: Any) -> bool:
    return not isinstance(value, tuple) and not is_list_of(value, Tensor | None)


def is_list_of(value: Any, kind: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, kind) for one in value)
