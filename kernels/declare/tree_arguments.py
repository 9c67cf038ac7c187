"""Pytrees as arguments of custom operators: each travels as two arguments, its tensors and everything else.

A schema has lists, but no dicts, tuples or classes. So a parameter annotated `PyTree` or `dict[...]` becomes
`Tensor[] x, Any x_tree`: every layer sees the tensors and can do its work on them (record, cast, batch, ask a
subclass), and the tree says where they belong. The user's functions are called with the tree put together again.

Read next: custom_op.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from redispatch.dispatch import dataclass
from redispatch.dispatch.pytree import TreeSpec, tree_flatten, tree_leaves, tree_unflatten
from redispatch.dispatch.tensor import Tensor

from .infer_schema import TREE_SUFFIX

Function = Callable[..., Any]


class Place:
    """The leaf at which a tensor stood."""

    def __repr__(self) -> str:
        return "*"


PLACE = Place()


@dataclass(frozen=True)
class Tree:
    """A pytree without its tensors: the containers, and the leaves, of which `PLACE` stands for a tensor."""

    spec: TreeSpec
    leaves: tuple[Any, ...]

    def filled(self, tensors: Iterable[Any]) -> Any:
        """The pytree with these tensors, in order, in their places."""
        given = iter(tensors)
        return tree_unflatten([next(given) if leaf is PLACE else leaf for leaf in self.leaves], self.spec)

    def of_nothing_else(self) -> Tree:
        """The tree with None for the leaves that are no tensors."""
        return Tree(self.spec, tuple(leaf if leaf is PLACE else None for leaf in self.leaves))

    def at_places(self, tree: Any) -> list[Any] | None:
        """Returns the values of another pytree of the same structure where this one has a tensor; None where nothing
        is."""
        if tree is None or not any(leaf is PLACE for leaf in self.leaves):
            return None
        leaves = tree_leaves(tree, is_leaf=lambda value: value is None)
        if len(leaves) != len(self.leaves):
            raise RuntimeError(
                f"expected gradients of the structure of the argument, {self.spec}, with {len(self.leaves)} leaves; "
                f"got {len(leaves)}"
            )
        return [leaf for leaf, mine in zip(leaves, self.leaves, strict=True) if mine is PLACE]


def taken_apart(value: Any) -> tuple[list[Tensor], Tree]:
    """The tensors of a pytree, and the tree without them."""
    leaves, spec = tree_flatten(value)
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    return tensors, Tree(spec, tuple(PLACE if isinstance(leaf, Tensor) else leaf for leaf in leaves))


class TreeArguments:
    """The way of a function's arguments, some of which are pytrees, to those of its schema, and back.

    signature: of the user's function. names: the parameters that are pytrees.
    """

    def __init__(self, signature: inspect.Signature, names: frozenset[str]) -> None:
        self.signature, self.names = signature, names
        parameters = signature.parameters.values()
        self.positional = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]

    def spread(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """A user's call as the schema's arguments, by name. TypeError where it does not fit the signature."""
        found: dict[str, Any] = {}
        for name, value in self.signature.bind(*args, **kwargs).arguments.items():
            if name in self.names:
                found[name], found[name + TREE_SUFFIX] = taken_apart(value)
            else:
                found[name] = value
        return found

    def gathered(self, args: tuple[Any, ...]) -> Iterator[Any]:
        """The user's positional arguments, of the schema's."""
        given = iter(args)
        for name, value in zip(self.positional, given, strict=False):
            yield next(given).filled(value) if name in self.names else value

    def gathered_keywords(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """The user's keyword-only arguments, of the schema's."""
        trees = {name: kwargs[name + TREE_SUFFIX] for name in self.names if name + TREE_SUFFIX in kwargs}
        found = {name: value for name, value in kwargs.items() if name.removesuffix(TREE_SUFFIX) not in trees}
        return found | {name: tree.filled(kwargs[name]) for name, tree in trees.items()}

    # The user's functions -----------------------------------------------------------------------------------------

    def for_schema(self, function: Function) -> Function:
        """A kernel or fake of the user's, to be called with the schema's arguments."""

        def with_trees(*args: Any, **kwargs: Any) -> Any:
            return function(*self.gathered(args), **self.gathered_keywords(kwargs))

        with_trees.__name__ = with_trees.__qualname__ = getattr(function, "__name__", "kernel")
        with_trees.__module__ = function.__module__
        with_trees.__wrapped__ = function  # type: ignore[attr-defined]  # where `inspect` looks for the source
        return with_trees

    def for_setup(self, setup_context: Function | None) -> Function:
        """The user's `setup_context`; it notes, too, what trees the arguments were."""

        def setup_with_trees(ctx: Any, inputs: tuple[Any, ...], output: Any, **keywords: Any) -> None:
            ctx._trees = [value for value in inputs if isinstance(value, Tree)]
            if setup_context is not None:
                whole = {name: self.gathered_keywords(value) for name, value in keywords.items()}
                setup_context(ctx=ctx, inputs=tuple(self.gathered(inputs)), output=output, **whole)

        return setup_with_trees

    def for_backward(self, backward: Function) -> Function:
        """The user's `backward`, which gives the gradient of a pytree as one of the same structure, or None."""

        def backward_with_trees(ctx: Any, *grads: Any) -> tuple[Any, ...]:
            found = backward(ctx, *grads)
            trees = iter(ctx._trees)
            spread: list[Any] = []
            for name, gradient in zip(self.positional, found if isinstance(found, tuple) else (found,), strict=True):
                spread += [next(trees).at_places(gradient), None] if name in self.names else [gradient]
            return tuple(spread)

        return backward_with_trees

    def for_vmap(self, rule: Function) -> Function:
        """The user's batching rule, to which the dimensions of a pytree are one of the same structure."""

        def rule_with_trees(info: Any, in_dims: tuple[Any, ...], *args: Any, **kwargs: Any) -> Any:
            pairs = zip(in_dims, args, strict=True)
            dims = (value.of_nothing_else() if isinstance(value, Tree) else dim for dim, value in pairs)
            whole = tuple(self.gathered(tuple(dims)))
            return rule(info, whole, *self.gathered(args), **self.gathered_keywords(kwargs))

        return rule_with_trees
