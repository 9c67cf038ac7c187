"""Hooks: users' functions that see gradients pass, and the handles that take them off again.

A tensor's hooks are kept with the node that produces it (for a leaf: the node that accumulates into it), because it is
there that its gradient is complete. A node's own hooks see all gradients before and after it runs. The engine calls
them in this order: hooks of tensors, `retain_grad`, prehooks of the node, the node, its hooks.

Read next: node.py.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any

from redispatch.dispatch.tensor import Tensor

Hooks = dict[int, Callable[..., Any]]
_number = itertools.count().__next__


class RemovableHandle:
    """The handle of a registered hook: `handle.remove()` takes the hook off; leaving a `with` block does so, too."""

    def __init__(self, hooks: Any, *, extra_dict: Any = ()) -> None:
        """`extra_dict`: one or several more that have something under the hook's number."""
        extra = [extra_dict] if isinstance(extra_dict, dict) else extra_dict or ()
        self.id = _number()
        # Weak, so that a handle kept by the user does not keep a graph alive. A plain dict admits no weak reference.
        self._hooks = [weakref.ref(each) for each in (hooks, *extra)]

    def remove(self) -> None:
        for reference in self._hooks:
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


class HookDict(dict[int, Callable[..., Any]]):
    """Hooks in the order of their registration, by the number of the handle."""

    __slots__ = ("__weakref__",)

    def register(self, hook: Callable[..., Any]) -> RemovableHandle:
        handle = RemovableHandle(self)
        self[handle.id] = hook
        return handle


class NodeHooks:
    """The hooks of one node; and what else few nodes have: a dictionary for users, a stack trace."""

    __slots__ = ("of_tensors", "retaining", "before", "after", "metadata", "stack_trace", "parent")

    def __init__(self) -> None:
        self.of_tensors: dict[int, HookDict] = {}  # by output number
        self.retaining: dict[int, Callable[[Any], None]] = {}  # by output number: what `retain_grad` asked for
        self.before = HookDict()
        self.after = HookDict()
        self.metadata: dict[Any, Any] = {}
        self.stack_trace: list[str] | None = None  # anomaly_mode.py
        self.parent: Any = None  # the node whose backward made this one; there, too

    def prepare(self, gradients: list[Any]) -> None:
        """Has the hooks of the tensors that the node produced see the gradients that reach it, and replace them."""
        for number, hooks in self.of_tensors.items():
            gradients[number] = call_tensor_hooks(hooks, gradients[number])
        for number, retain in self.retaining.items():
            if gradients[number] is not None:
                retain(gradients[number])

    def call_before(self, gradients: list[Any]) -> list[Any]:
        """The gradients that the node gets, after its prehooks."""
        for hook in list(self.before.values()):
            changed = hook(tuple(gradients))
            if changed is not None:
                gradients = checked_values(hook, gradients, changed)
        return gradients

    def call_after(self, results: list[Any], gradients: tuple[Any, ...]) -> list[Any]:
        """The gradients that the node hands on, after its hooks."""
        for hook in list(self.after.values()):
            changed = hook(tuple(results), gradients)
            if changed is not None:
                results = checked_values(hook, results, changed)
        return results


def call_tensor_hooks(hooks: HookDict, gradient: Any) -> Any:
    """The gradient after a tensor's hooks, each of which may replace it."""
    for hook in list(hooks.values()):
        changed = hook(gradient)
        if changed is not None:
            check_value(hook, gradient, changed)
            gradient = changed
    return gradient


def checked_values(hook: Callable[..., Any], former: list[Any], changed: Any) -> list[Any]:
    if not isinstance(changed, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(changed).__name__}'")
    values = list(changed)
    if len(values) != len(former):
        raise RuntimeError(
            f"hook '{hook_name(hook)}' has returned an incorrect number of values (got {len(values)}, but expected "
            f"{len(former)})"
        )
    for before, after in zip(former, values, strict=True):
        if after is not None:
            check_value(hook, before, after)
    return values


def check_value(hook: Callable[..., Any], before: Any, after: Any) -> None:
    """Raises where a hook put something in the place of a gradient that cannot stand there."""
    if not isinstance(after, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(after).__name__}'")
    if before is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if before._dtype is not after._dtype or before._device != after._device:
        raise RuntimeError(
            f"hook '{hook_name(hook)}' has changed the type of value (was {type_name(before)} got {type_name(after)})"
        )
    if before._shape != after._shape:
        raise RuntimeError(f"hook '{hook_name(hook)}' has changed the size of value")


def hook_name(hook: Callable[..., Any]) -> str:
    return getattr(hook, "__name__", "<unknown>")


def type_name(tensor: Any) -> str:
    """PyTorch's legacy name of a tensor's type: `torch.FloatTensor`, `torch.cuda.FloatTensor`."""
    device = tensor._device.type
    return f"torch.{'' if device in ('cpu', 'meta') else device + '.'}{tensor._dtype.tensor_name}Tensor"


# Whether somebody may be looking on while operators are recorded: hooks on saved tensors, or anomaly mode -------------
#
# Both are rare, and to ask for them takes as long as to make an edge. So it is asked only in a process in which one of
# them has ever been used; `WATCH.on` is set at the first use, and stays.


class Watch:
    """One switch. It is not part of the dispatch state, because a context copied elsewhere must not miss it."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = False


WATCH = Watch()
