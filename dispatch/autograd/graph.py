"""Looking at the graph, and changing what it saves: `redispatch.autograd.graph`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from redispatch.dispatch.layers.ad_inplace_or_view import bump_version
from redispatch.dispatch.tensor import Tensor

from .api import GradientEdge
from .engine import CURRENT_TASK
from .history import gradient_edge
from .mutation import allow_mutation_on_saved_tensors
from .node import Node
from .saved import SavedTensor
from .saved_hooks import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks

__all__ = [
    "GradientEdge",
    "Node",
    "SavedTensor",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """The place in the graph where the tensor's gradient arrives. RuntimeError where none is wanted."""
    edge = gradient_edge(tensor)
    if edge is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(edge[0], edge[1])


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Counts a write of each tensor, as for one that was made behind the library's back."""
    for one in (tensor,) if isinstance(tensor, Tensor) else tensor:
        bump_version(one)


class _Handles:
    """Removes several hooks at once."""

    def __init__(self, handles: Sequence[Any]) -> None:
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Sequence[Any], fn: Callable[..., Any], *, mode: str = "all") -> _Handles:
    """Calls `fn` once per backward pass, with the list of all gradients when the last is there (None: not computed).

    With `mode="any"`: with the first gradient alone. Tensors that the pass does not reach are not waited for.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    arrived: dict[int, dict[int, Any]] = {}  # by pass: the gradients that are there, by place

    def hook_at(place: int) -> Callable[[Any], None]:
        def hook(gradient: Any) -> None:
            task = CURRENT_TASK.get()
            if task is None:
                raise RuntimeError("this hook can only be called inside a backward pass")
            with lock:
                known = arrived.get(id(task))
                if known is None:
                    known = arrived[id(task)] = {}
                    task.at_end.append(lambda: arrived.pop(id(task), None))
                known[place] = gradient
                awaited = sum(task.will_run(edge[0]) for edge in edges)
                complete = len(known) == (1 if mode == "any" else awaited)
            if complete:
                fn(gradient if mode == "any" else [known.get(i) for i in range(len(edges))])

        return hook

    edges = [edge for edge in map(gradient_edge, tensors) if edge is not None]
    return _Handles([tensor.register_hook(hook_at(place)) for place, tensor in enumerate(tensors)])
