"""Pictures of graphs of operators, with shapes and dtypes; of a joint graph with the cut between forward and backward.

    picture(module).save("graph.svg")                               # also .dot and .mmd; a notebook shows it
    joint_picture(joint, forward, backward, num_fwd_outputs=1)      # what is saved, its bytes, what is computed again

They are drawn by frontend/viz/graph_picture.py. `FxGraphDrawer` is PyTorch's name; it needs no graphviz here.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from redispatch import Tensor
from redispatch.dispatch import OpOverload
from redispatch.dispatch.pytree import tree_leaves
from redispatch.utils.text import spoken_bytes
from redispatch.viz.graph_picture import Box, Graph, GraphPicture, metadata_text

from ..graph_module import GraphModule
from ..node import Node, qualified_name

__all__ = ["FxGraphDrawer", "FxPicture", "joint_picture", "picture", "text_of"]

KINDS = {"placeholder": "leaf", "get_attr": "constant", "output": "result"}
LONG = 40  # characters of a line in a box


class FxPicture(GraphPicture):
    """A picture with the methods by which programs ask pydot for files."""

    def to_string(self) -> str:
        """Returns the graph in graphviz's language."""
        return self.dot

    def create_svg(self) -> bytes:
        """Returns the drawing as the bytes of a file."""
        return self.svg().encode()

    def write_svg(self, path: Any) -> bool:
        """Writes the drawing to a file."""
        Path(path).write_bytes(self.create_svg())
        return True

    def write_raw(self, path: Any) -> bool:
        """Writes the graph in graphviz's language to a file."""
        Path(path).write_text(self.dot, encoding="utf-8")
        return True

    write_dot = write = write_raw


def picture(
    module: GraphModule,
    *,
    without: Iterable[Node] = (),
    limit: int = 500,
    marks: Mapping[Node, tuple[str, str]] | None = None,
) -> FxPicture:
    """Returns a picture of a graph: a box for each node, with its operator, shape and dtype.

    without: nodes that are left out. limit: of a larger graph, only so many nodes are shown, the first. marks: of some
    nodes the kind of their box, and a line more in it.
    """
    left_out = set(without)
    nodes = [node for node in module.graph.nodes if node not in left_out]
    graph = Graph(name="graph")
    numbers = {node: number for number, node in enumerate(nodes[:limit])}
    for node in numbers:
        kind, line = (marks or {}).get(node, (KINDS.get(node.op, "node"), ""))
        graph.boxes.append(box_of(node, kind))
        graph.boxes[-1].lines += [line] if line else []
        graph.arrows += [(numbers[one], numbers[node]) for one in node.all_input_nodes if one in numbers]
    if len(nodes) > limit:
        graph.boxes.append(Box("more", "...", [f"{len(nodes) - limit} nodes not shown"]))
    steps = sum(node.op.startswith("call") for node in nodes)
    made = sum(bytes_of(node) for node in nodes if node.op.startswith("call") and not is_old(node))
    graph.text = f"{steps} step{'' if steps == 1 else 's'}" + (f", values of {spoken_bytes(made)}" if made else "")
    return FxPicture(graph)


def joint_picture(joint: GraphModule, forward: GraphModule, backward: GraphModule, num_fwd_outputs: int) -> FxPicture:
    """Returns a picture of a joint graph that a partitioner has parted: values that forward saves for backward, steps
    that backward computes again, and, dashed, the arrows that the cut between the two goes through."""
    saved = {one.name for one in forward.graph.output_node().args[0][num_fwd_outputs:] if isinstance(one, Node)}
    early = {node.name for node in forward.graph.nodes}
    late = {node.name for node in backward.graph.nodes if node.op != "placeholder"}
    graph, numbers = Graph(name="joint graph"), {}
    for node in joint.graph.nodes:
        if node.op == "output":
            continue
        kind = KINDS.get(node.op, "node")
        if node.name in saved:
            kind = "saved"
        elif node.name in late and node.op.startswith("call"):
            kind = "again" if node.name in early else "backward"
        elif node.name not in early:
            kind = "backward"
        box = box_of(node, kind)
        if kind == "saved":
            box.lines.append(f"saved: {spoken_bytes(bytes_of(node))}")
        elif kind == "again":
            box.lines.append("computed again")
        numbers[node] = len(graph.boxes)
        graph.boxes.append(box)
        graph.arrows += [(numbers[one], numbers[node]) for one in node.all_input_nodes]
        if node.name in late:
            graph.cut |= {(numbers[one], numbers[node]) for one in node.all_input_nodes if one.name in saved}
    outputs = joint.graph.output_node().args[0]
    for title, kind, values in (
        ("results", "result", outputs[:num_fwd_outputs]),
        ("gradients", "backward", outputs[num_fwd_outputs:]),
    ):
        graph.boxes.append(Box(kind, title))
        ends = dict.fromkeys(numbers[one] for one in values if isinstance(one, Node))
        graph.arrows += [(one, len(graph.boxes) - 1) for one in ends]
    kept = [node for node in joint.graph.nodes if node.name in saved]
    again = sum(box.kind == "again" for box in graph.boxes)
    graph.text = f"{len(kept)} values saved, {spoken_bytes(sum(map(bytes_of, kept)))}; {again} computed again"
    return FxPicture(graph)


def text_of(module: GraphModule) -> str:
    """Returns the code of a module's graph as it is now, with dtypes and shapes, and a user's line above its steps."""
    found: list[str] = []
    comment = ""
    for line in module.graph.python_code("self", verbose=True).src.strip().splitlines():
        line = line.partition(";  ")[0].removeprefix("    ")  # without what lets values go
        if not line.startswith("# "):
            found.append(line)
        elif line != comment:
            found.append(comment := line)
    return "\n".join(found)


def box_of(node: Node, kind: str) -> Box:
    """Returns the box of a node: its name, its operator with the arguments that are no nodes, what its value is."""
    lines = [] if node.op in ("placeholder", "output") else [shortened(called(node))]
    value = node.meta.get("val", node.meta.get("tensor_meta"))
    leaves = [one for one in tree_leaves(value, is_leaf=has_shape) if has_shape(one)]
    lines += [metadata_text(one) for one in leaves[:4]] + ["..."] * (len(leaves) > 4)
    title = "output" if node.op == "output" else node.name
    return Box(kind, title, lines, str(node.stack_trace or "").strip())


def has_shape(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def called(node: Node) -> str:
    """Returns what a node calls, and the arguments that are no nodes: `aten.mul.Tensor(., 2)`."""
    if node.op != "call_function":
        owner = node.graph.owning_module
        found = owner.get_submodule(str(node.target)) if node.op == "call_module" and owner is not None else None
        return f"{type(found).__name__} {node.target}" if found is not None else f"{node.op} {node.target}"
    name = qualified_name(node.target).removeprefix("torch.ops.").removesuffix(".default")
    parts = [plain(one) for one in node.args] + [f"{key}={plain(one)}" for key, one in node.kwargs.items()]
    return f"{name}({', '.join(parts)})" if any(part != "." for part in parts) else name


def plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(plain, value))}]"
    return "." if isinstance(value, Node) else str(value)


def shortened(text: str) -> str:
    return text if len(text) <= LONG else f"{text[: LONG - 3]}..."


def is_old(node: Node) -> bool:
    """Returns whether a value lies in memory that was there before: it is a view, one of several, or written over."""
    op = node.target
    return op is operator.getitem or isinstance(op, OpOverload) and (op.schema.is_view or op.schema.is_mutable)


def bytes_of(node: Node) -> int:
    """Returns the bytes of the tensors in a node's value, where it is known and its sizes are numbers."""
    leaves = [one for one in tree_leaves(node.meta.get("val")) if isinstance(one, Tensor)]
    known = [one for one in leaves if all(type(size) is int for size in one.shape)]
    return sum(one.numel() * one.element_size() for one in known)


class FxGraphDrawer:
    """Pictures of a module's graph, and of the graphs in its submodules.

    ignore_getattr, ignore_parameters_and_buffers: leave out nodes that read the module. The other options of PyTorch
    are taken: here a box has the user's line as its hint, if there is one, and no names of nodes.
    """

    def __init__(
        self,
        graph_module: GraphModule,
        name: str,
        ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False,
        skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False,
        dot_graph_shape: str | None = None,
        normalize_args: bool = False,
    ) -> None:
        self._name = name
        self._without = ignore_getattr or ignore_parameters_and_buffers
        self._dot_graphs = {name: self._drawn(graph_module)}
        for node in graph_module.graph.find_nodes(op="call_module"):
            inner = graph_module.get_submodule(str(node.target))
            if isinstance(inner, GraphModule):
                self._dot_graphs[f"{name}_{node.target}"] = self._drawn(inner)

    def _drawn(self, module: GraphModule) -> FxPicture:
        return picture(module, without=module.graph.find_nodes(op="get_attr") if self._without else ())

    def get_dot_graph(self, submod_name: str | None = None) -> FxPicture:
        """Returns the picture of the module, or of a submodule."""
        return self.get_main_dot_graph() if submod_name is None else self.get_submod_dot_graph(submod_name)

    def get_main_dot_graph(self) -> FxPicture:
        """Returns the picture of the module."""
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> FxPicture:
        """Returns the picture of a submodule."""
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, FxPicture]:
        """Returns all pictures by their names."""
        return self._dot_graphs
