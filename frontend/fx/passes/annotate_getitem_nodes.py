"""`annotate_getitem_nodes`: the types of items, of those of the lists and tuples that they are items of."""

from __future__ import annotations

import operator
import typing

from ..graph import Graph

__all__ = ["annotate_getitem_nodes"]


def annotate_getitem_nodes(graph: Graph) -> None:
    """Notes at each item of a value whose type is noted the type of the item: in `list[int]`, in `tuple[int, str]`, in
    a NamedTuple."""
    for node in graph.find_nodes(op="call_function", target=operator.getitem):
        sequence, index = node.args[0], node.args[1]
        if node.type is not None or sequence.type is None or not isinstance(index, int):
            continue
        kind, items = sequence.type, typing.get_args(sequence.type)
        if typing.get_origin(kind) is list:
            node.type = items[0]
        elif typing.get_origin(kind) is tuple:
            node.type = items[0] if items[1:] == (Ellipsis,) else items[index]
        elif isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
            node.type = typing.get_type_hints(kind).get(kind._fields[index])
