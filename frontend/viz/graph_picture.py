"""GraphPicture: what `viz.graph` returns. A notebook shows it; elsewhere it is text, or an SVG file."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from redispatch.autograd import GradientEdge
from redispatch.dispatch.tensor import Tensor

from . import graph_layout, graph_text
from .graph_model import Graph, draw, names_of


def graph(tensors: Any, params: Any = None, *, limit: int = 500) -> GraphPicture:
    """A picture of the graph that backward from `tensors` would walk.

    tensors: a tensor, a GradientEdge or a sequence of them. params: names for leaves and results: a module, a dict of
    tensors by name, or pairs (name, tensor). limit: of a larger graph, only so many nodes are shown, the nearest.
    Errors: ValueError for a tensor that does not require grad.
    """
    results = (tensors,) if isinstance(tensors, Tensor | GradientEdge) else tuple(tensors)
    return GraphPicture(draw(results, names_of(params), limit))


class GraphPicture:
    """The autograd graph: `dot` and `mermaid` are text, `svg()` a drawing; Jupyter shows it as it is."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @property
    def dot(self) -> str:
        """The graph in graphviz's language."""
        return graph_text.dot(self.graph)

    @property
    def mermaid(self) -> str:
        """The graph as a Mermaid flowchart, which many Markdown pages draw."""
        return graph_text.mermaid(self.graph)

    def svg(self) -> str:
        """A drawing: graphviz's where its package and program are installed, else one of our own (graph_layout.py)."""
        try:
            graphviz = importlib.import_module("graphviz")
        except ImportError:
            return graph_layout.svg(self.graph)
        try:
            return graphviz.Source(self.dot).pipe(format="svg").decode()
        except graphviz.ExecutableNotFound:
            return graph_layout.svg(self.graph)

    def save(self, path: Any) -> Path:
        """Writes a file, by its suffix `.svg`, `.dot` or `.mmd`, and returns its path. ValueError for another."""
        path = Path(path)
        writers = {".svg": self.svg, ".dot": lambda: self.dot, ".gv": lambda: self.dot, ".mmd": lambda: self.mermaid}
        if path.suffix not in writers:
            raise ValueError(f"cannot write a graph to {path.name}: the suffix must be one of {', '.join(writers)}")
        path.write_text(writers[path.suffix](), encoding="utf-8")
        return path

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x: auto">{self.svg()}</div>'

    def _repr_mimebundle_(self, include: Iterable[str] | None = None, exclude: Iterable[str] | None = None) -> Any:
        made = {"image/svg+xml": self._repr_svg_, "text/html": self._repr_html_, "text/plain": lambda: repr(self)}
        wanted = set(include or made) - set(exclude or ())
        return {kind: make() for kind, make in made.items() if kind in wanted}

    def __repr__(self) -> str:
        return f"<autograd graph: {self.graph.caption}>"
