"""FunctionalizeAPI: what the functionalization rule of a higher-order operator works with.

    @twice.py_functionalize_impl
    def twice_functional(ctx, f, x):
        value = ctx.unwrap_tensors(x)
        with ctx.redispatch_to_next():
            return ctx.wrap_tensors(twice(ctx.functionalize(f), value))

A rule is given wrappers, which a program may write; what it calls below must not be written. It is the same under the
transform, at the key Functionalize and under FunctionalTensorMode, which tell it by `ctx` what their wrappers are.

Source: PyTorch's BaseFunctionalizeAPI and its three kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from redispatch.dispatch import STATE
from redispatch.dispatch.higher_order import FUNCTIONALIZE_API
from redispatch.dispatch.layers.functionalize import below_functionalize
from redispatch.dispatch.pytree import tree_map_only
from redispatch.dispatch.tensor import Tensor
from redispatch.dispatch.tensor.functional import functional, is_functional

from .functionalize import MUTATIONS, VIEWS_TOO, functionalize


class FunctionalizeAPI:
    """The wrappers of a transform, or of the key Functionalize where `level` is None. Arguments are pytrees."""

    def __init__(self, level: Any = None) -> None:
        self.level = level

    def wrap_tensors(self, args: Any) -> Any:
        """The tensors in wrappers, each with memory of its own."""
        return tree_map_only(Tensor, self._wrapped, args)

    def unwrap_tensors(self, args: Any) -> Any:
        """The values that the wrappers show now. Calls operators where they were written since."""
        return tree_map_only(Tensor, self._value, args)

    def functionalize(self, inner_f: Callable[..., Any]) -> Callable[..., Any]:
        """A function of values that computes the same, and writes nothing but its inputs."""
        reapply_views = STATE.get().reapply_views if self.level is None else self.level.reapply_views
        return functionalize(inner_f, remove=MUTATIONS if reapply_views else VIEWS_TOO)

    def redispatch_to_next(self) -> AbstractContextManager[Any]:
        """A region in which calls are made on values."""
        return below_functionalize() if self.level is None else self.level.outside()

    def replace(self, input_tensor: Any, output_tensor: Any) -> None:
        """Has a wrapper, and all that share its memory, show another value. ValueError for what is no wrapper."""
        if not is_functional(input_tensor):
            raise ValueError(f"expected a wrapper of functionalization, got {type(input_tensor).__name__}")
        input_tensor._store.enter(output_tensor, input_tensor._steps)

    def commit_update(self, tensor: Any) -> None:
        """Nothing is left to do: `replace` has entered the value already."""

    def sync(self, tensor: Any) -> None:
        """Has a wrapper take on what was written to its memory."""
        self._value(tensor)

    def mark_mutation_hidden_from_autograd(self, tensor: Any) -> None:
        """Nothing is to be marked: autograd stands above, and has seen the write."""

    def _wrapped(self, value: Tensor) -> Any:
        return functional(value, self.level)

    def _value(self, tensor: Tensor) -> Any:
        if self.level is not None:
            return self.level.unwrap(tensor)
        if not is_functional(tensor):
            return tensor
        with below_functionalize():
            return tensor.current()


FUNCTIONALIZE_API.fill(FunctionalizeAPI)
