"""What a picture of the graph shows: boxes and arrows, found by a walk along the edges of nodes.

A box is a result, a node with what it has saved, or a leaf. What is saved is read where the node keeps it and not
unpacked: to look at a graph must run no hook, compute nothing and hold nothing.

Read next: graph_text.py, graph_layout.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redispatch.autograd import GradientEdge, Node
from redispatch.dispatch.autograd.history import gradient_edge
from redispatch.dispatch.autograd.saving import SavedThing, saved_things
from redispatch.dispatch.tensor import Tensor


@dataclass(slots=True)
class Box:
    """One box. `kind`: "result", "node", "leaf", or "more" where the picture ends before the graph does."""

    kind: str
    title: str
    lines: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Graph:
    """Boxes, and arrows between them by their numbers, in the direction in which gradients go."""

    boxes: list[Box] = field(default_factory=list)
    arrows: list[tuple[int, int]] = field(default_factory=list)
    saved_bytes: int = 0  # of all memory that is held for backward alone, each piece counted once

    @property
    def caption(self) -> str:
        nodes = sum(box.kind == "node" for box in self.boxes)
        return f"{nodes} node{'' if nodes == 1 else 's'}, {size_text(self.saved_bytes)} saved for backward"


def draw(results: Sequence[Any], names: Mapping[int, str], limit: int) -> Graph:
    """The graph behind these tensors or edges; names of leaves by their id. At most `limit` nodes are shown."""
    graph = Graph()
    numbers: dict[Node, int] = {}
    todo: list[Node] = []
    memories: dict[int, int] = {}  # memory that some node has saved -> its bytes
    of_leaves: set[int] = set()

    def box_of(node: Node) -> int:
        if node not in numbers:
            numbers[node] = len(graph.boxes)
            variable = getattr(node, "variable", None)
            if isinstance(variable, Tensor):
                of_leaves.add(id(variable._array))
                graph.boxes.append(Box("leaf", names.get(id(variable), "leaf"), [metadata_text(variable)]))
            elif len(numbers) > limit:
                graph.boxes.append(Box("more", "...", ["not shown"]))
            else:
                graph.boxes.append(Box("node", node.name().rpartition("::")[2]))
                todo.append(node)
        return numbers[node]

    for place, result in enumerate(results):
        edge = result if isinstance(result, GradientEdge) else gradient_edge(result)
        if edge is None:
            raise ValueError(f"tensor {place} has no graph: it does not require grad")
        title = names.get(id(result), "result")
        lines = [metadata_text(result)] if isinstance(result, Tensor) else [f"output {edge[1]} of {edge[0].name()}"]
        graph.boxes.append(Box("result", title, lines))
        graph.arrows.append((len(graph.boxes) - 1, box_of(edge[0])))
    for node in todo:  # which grows meanwhile
        number = numbers[node]
        for thing in saved_things(node):
            graph.boxes[number].lines.append(saved_text(thing))
            if thing.memory is not None:
                memories[thing.memory] = thing.memory_bytes
        for following, _ in node.next_functions:
            if following is not None:
                graph.arrows.append((number, box_of(following)))
    graph.saved_bytes = sum(count for memory, count in memories.items() if memory not in of_leaves)
    return graph


def names_of(params: Any) -> dict[int, str]:
    """Names of tensors by their id, from a module, a dict of names or pairs (name, tensor)."""
    if params is None:
        return {}
    if hasattr(params, "named_parameters"):
        params = params.named_parameters()
    pairs: Iterable[tuple[str, Any]] = params.items() if isinstance(params, Mapping) else params
    return {id(tensor): str(name) for name, tensor in pairs}


def metadata_text(tensor: Any) -> str:
    return f"{short_dtype(tensor.dtype)}{list(tensor.shape)}"


def saved_text(thing: SavedThing) -> str:
    """`saved self: float32[32, 64], 8.0 KiB`."""
    if thing.metadata is None:
        return f"saved {thing.name}: packed by a hook"
    metadata = thing.metadata
    size = metadata.shape.numel() * metadata.dtype.itemsize
    return f"saved {thing.name}: {short_dtype(metadata.dtype)}{list(metadata.shape)}, {size_text(size)}"


def short_dtype(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


def size_text(count: float) -> str:
    """`12 B`, `8.0 KiB`, `3.5 MiB`."""
    units = ["B", "KiB", "MiB", "GiB"]
    place = 0
    while count >= 1024 and place < len(units) - 1:
        count, place = count / 1024, place + 1
    return f"{count:.1f} {units[place]}" if place else f"{count:.0f} B"
