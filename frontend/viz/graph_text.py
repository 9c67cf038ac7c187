"""The picture as text, for programs that draw: graphviz's DOT, and Mermaid as Markdown pages show it."""

from __future__ import annotations

from .graph_model import Box, Graph

FILLS = {"result": "#cfe8cf", "node": "#eeeeee", "leaf": "#cfe0f5", "more": "#ffffff"}


def dot(graph: Graph) -> str:
    """The graph in DOT."""
    lines = [
        "digraph autograd {",
        f'  label={quoted([graph.caption])}; fontname="sans-serif"; fontsize=11;',
        '  node [shape=box, style="rounded,filled", fontname="sans-serif", fontsize=11];',
        "  edge [arrowsize=0.6];",
        *(
            f'  n{number} [label={quoted([box.title, *box.lines])}, fillcolor="{FILLS[box.kind]}"];'
            for number, box in enumerate(graph.boxes)
        ),
        *(f"  n{start} -> n{end};" for start, end in graph.arrows),
        "}",
    ]
    return "\n".join(lines) + "\n"


def quoted(lines: list[str]) -> str:
    """A string of DOT that shows these lines."""
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for line in lines)
    return '"' + "\\n".join(escaped) + '"'


def mermaid(graph: Graph) -> str:
    """The graph as a flowchart of Mermaid."""
    lines = [
        "flowchart TD",
        *(f"  n{number}{label(box)}:::{box.kind}" for number, box in enumerate(graph.boxes)),
        *(f"  n{start} --> n{end}" for start, end in graph.arrows),
        *(f"  classDef {kind} fill:{fill},stroke:#555,color:#000" for kind, fill in FILLS.items()),
    ]
    return "\n".join(lines) + "\n"


def label(box: Box) -> str:
    """A box of Mermaid. Its text is in quotes; what means something there is written as an entity."""
    escaped = (
        line.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;").replace("\n", " ")
        for line in (box.title, *box.lines)
    )
    return f'["{"<br/>".join(escaped)}"]'
