"""What generated code calls to take its arguments apart."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.pytree import tree_flatten


def tree_flatten_spec(tree: Any, spec: Any) -> list[Any]:
    """The leaves of a tree of this structure. ValueError for a tree of another one."""
    leaves, found = tree_flatten(tree)
    if found != spec:
        raise ValueError(f"the arguments have the structure {found}, but the function was traced with {spec}")
    return leaves
