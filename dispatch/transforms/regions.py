"""PyTorch's private names for functionalization without a transform: `torch._to_functional_tensor` and its kin.

For those who write modes (modes/functional_tensor.py) and tests; a function is functionalized by `functionalize`.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import STATE
from redispatch.dispatch.layers.functionalize import FUNCTIONALIZE, below_functionalize
from redispatch.dispatch.tensor import Tensor
from redispatch.dispatch.tensor.functional import functional, is_functional


def _to_functional_tensor(t: Tensor) -> Any:
    """A wrapper around a tensor, with memory of its own. RuntimeError for what is one already."""
    if is_functional(t):
        raise RuntimeError("_to_functional_tensor: expected a tensor that is not functional yet")
    return functional(t)


def _is_functional_tensor(t: Any) -> bool:
    """Whether a tensor is such a wrapper."""
    return is_functional(t)


def _sync(t: Any) -> None:
    """Has a wrapper take on what was written to its memory since it was last read."""
    _from_functional_tensor(t)


def _from_functional_tensor(t: Any) -> Any:
    """The value that a wrapper shows now. RuntimeError for another tensor."""
    with below_functionalize():
        return checked(t).current()


def checked(t: Any) -> Any:
    if not is_functional(t):
        raise RuntimeError(f"expected a functional tensor, got {type(t).__name__}: make one by _to_functional_tensor")
    return t


# What a compiler asks of a wrapper, and does to it --------------------------------------------------------------------


def _functionalize_sync(t: Any) -> None:
    """`_sync`."""
    _sync(t)


def _functionalize_replace(self_: Any, other: Tensor) -> None:
    """Has a wrapper show another value, of which those that share its memory hear by `_functionalize_commit_update`."""
    checked(self_)._value = other


def _functionalize_commit_update(t: Any) -> None:
    """Enters the value that a wrapper shows into its memory, so that all that share it show it, too."""
    checked(t)._store.enter(t._value, t._steps)


def _functionalize_mutation_counter(t: Any) -> int:
    """How often the memory of a wrapper was written."""
    return checked(t)._store.generation


def _functionalize_has_data_mutation(t: Any) -> bool:
    """Whether the memory of a wrapper was written."""
    return _functionalize_mutation_counter(t) > 0


def _functionalize_has_metadata_mutation(t: Any) -> bool:
    """Whether an operator such as `t_` changed how a wrapper lies in memory."""
    return checked(t)._turned


def _is_functional_tensor_base(t: Any) -> bool:
    """Whether a wrapper shows its whole memory, and is no view of another."""
    return not checked(t)._steps


# Regions --------------------------------------------------------------------------------------------------------------


def _enable_functionalization(*, reapply_views: bool = False) -> None:
    """Has the layer Functionalize take every call from now on, in this thread or task; new tensors are wrapped."""
    state = STATE.get()
    if state.included & FUNCTIONALIZE:
        raise RuntimeError(
            "multiple layers of mode-style functionalization nesting is not currently supported, outside of the "
            "functionalize() transform"
        )
    STATE.set(
        state.replace(
            included=state.included | FUNCTIONALIZE,
            excluded=state.excluded & ~FUNCTIONALIZE,
            reapply_views=reapply_views,
        )
    )


def _disable_functionalization() -> None:
    """Ends what `_enable_functionalization` began."""
    state = STATE.get()
    STATE.set(state.replace(included=state.included & ~FUNCTIONALIZE, reapply_views=True))
