"""Marks of tensors: which of their sizes change from call to call, so that they are symbols in graphs from the first.

    mark_dynamic(x, 0)
    aot_function(f, compiler, dynamic=None)(x)       # one graph for all lengths of x

A mark is a set of dimensions at the tensor itself, by the name that PyTorch has for it.
Read next: ../_functorch/sizes.py, ../../modes/fake_tensor.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["graph_break", "mark_dynamic", "mark_static", "mark_static_address", "mark_unbacked", "maybe_mark_dynamic"]


def mark(tensor: Any, name: str, index: int | Iterable[int]) -> None:
    """Adds dimensions to those that are marked so. IndexError for one that there is not."""
    for dim in [index] if isinstance(index, int) else index:
        if not -tensor.dim() <= dim < tensor.dim():
            raise IndexError(f"mark_{name}: expected a dimension of a tensor with {tensor.dim()}, got {dim}")
        attribute = f"_dynamo_{name}_indices"
        setattr(tensor, attribute, getattr(tensor, attribute, set()) | {dim % tensor.dim()})


def mark_dynamic(t: Any, index: int | list[int] | tuple[int, ...], **bounds: Any) -> None:
    """Says that sizes of a tensor change. bounds: the `min` and `max` of PyTorch; what holds is found out."""
    mark(t, "dynamic", index)


def maybe_mark_dynamic(t: Any, index: int | list[int] | tuple[int, ...]) -> None:
    """Says that sizes of a tensor may change; that a program needs one to be a number is no error here anyway."""
    mark(t, "dynamic", index)


def mark_unbacked(t: Any, index: int | list[int] | tuple[int, ...], **options: Any) -> None:
    """Says that sizes of a tensor change. Here they have values all the same, and what is asked of them is a guard."""
    mark(t, "dynamic", index)


def mark_static(t: Any, index: int | list[int] | tuple[int, ...] | None = None) -> None:
    """Says that sizes of a tensor stay, all of them by default: a graph is for these alone."""
    if not isinstance(t, type):  # classes of modules are marked in PyTorch; their numbers are constants here
        mark(t, "static", range(t.dim()) if index is None else index)


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Says that the memory of a tensor stays where it is. Graphs are given it at each call, and do not rely on that."""
    t._dynamo_static_input_type = "guarded" if guard else "unguarded"


def graph_break(msg: str = "") -> None:
    """Nothing; where a compiled function calls it, a graph ends, and another one begins."""
