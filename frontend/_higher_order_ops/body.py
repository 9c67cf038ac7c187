"""BodyOperator: a higher-order operator that is nothing but its body. Read next: cond.py."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from redispatch.dispatch import DispatchKey
from redispatch.dispatch.higher_order import HigherOrderOperator
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.ops.shape import stack
from redispatch.utils._pytree import tree_flatten, tree_unflatten


class BodyOperator(HigherOrderOperator):
    """A transparent operator: `body` is its kernel everywhere, written in other operators."""

    def __init__(self, name: str, body: Callable[..., Any]) -> None:
        super().__init__(name, transparent=True)
        self.py_impl(DispatchKey.CompositeImplicitAutograd)(body)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **kwargs)


def functionalize_functions(operator: BodyOperator, *positions: int) -> None:
    """Gives an operator a functionalization rule for where somebody wants the operator itself, such as one who traces:
    the functions at these positions become functional, and the operator goes on below. Elsewhere its body runs.
    """

    @operator.py_functionalize_impl
    def functionalized(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        values, options = ctx.unwrap_tensors((list(args), kwargs))
        with ctx.redispatch_to_next():
            if operator._interested_mode() is None:
                return NotImplemented
            for position in positions:
                values[position] = ctx.functionalize(values[position])
            return ctx.wrap_tensors(operator(*values, **options))


def tensors_of(tree: Any, error: Callable[[list[Any]], Exception]) -> tuple[list[Tensor], Any]:
    """(tensors, structure) of a pytree; raises what `error` makes of the leaves where one is no tensor."""
    leaves, spec = tree_flatten(tree)
    if not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise error(leaves)
    return leaves, spec


class Flat:
    """A function of pytrees as one of leaves, which is what an operator takes: it returns a list of leaves.

    specs: the structures of the arguments, in turn. `structure` is that of the last result.
    Errors: RuntimeError where a result has another structure than the former ones.
    """

    def __init__(self, function: Callable[..., Any], *specs: Any) -> None:
        self.function, self.specs = function, specs
        self.structure: Any = None

    def __call__(self, *leaves: Any) -> list[Any]:
        left = iter(leaves)
        args = [tree_unflatten(list(islice(left, spec.num_leaves)), spec) for spec in self.specs]
        found, structure = tree_flatten(self.function(*args))
        if self.structure is not None and self.structure != structure:
            raise RuntimeError(
                f"expected results of one structure at every step, got {structure} after {self.structure}"
            )
        self.structure = structure
        return found

    def restored(self, leaves: Any) -> Any:
        """The results of the operator in the structure that the function gave them."""
        return leaves if self.structure is None else tree_unflatten(list(leaves), self.structure)


def stacked(rows: list[Any]) -> list[Any]:
    """Lists of leaves as one, whose tensors are stacked along a new first dimension; other leaves stay."""
    columns = zip(*rows, strict=True)
    return [stack(column) if isinstance(column[0], Tensor) else column[0] for column in columns]
