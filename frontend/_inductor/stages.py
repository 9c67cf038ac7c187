"""The stages of compiled graphs, down to machine code: as text, and as a page to step through.

    with watched() as graphs:
        ...                                        # what compiles graphs
    stages = stages_of(graphs)
    print(text(stages))                            # graph, formulas, steps; of each nest loops, LLVM's text, assembly
    page(stages, "train.py", "train.html")         # all of it, with pictures: which node is computed in which loop

`python -m redispatch compile train.py` does that. The page is frontend/viz/stages.html.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from redispatch.kernels import busiest_loop
from redispatch.kernels.engine.compile import DIRECTIVE, is_vector
from redispatch.viz.graph_picture import svg
from redispatch.viz.tables import stages_page

from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..fx.passes.graph_drawer import FxPicture, picture, text_of
from .compile_fx import WATCHED, CompiledFxGraph
from .lowering import Call, Multiplying, Nesting

__all__ = ["Stage", "page", "stages_of", "text", "watched"]

Marks = dict[Node, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Stage:
    """A program at one stage: its text, the lines that count most, and the picture of its nodes."""

    name: str
    text: str
    drawn: FxPicture
    caption: str = ""
    main: frozenset[int] = field(default_factory=frozenset)  # numbers of lines


@contextmanager
def watched() -> Iterator[list[CompiledFxGraph]]:
    """A region of which the compiled graphs are noted."""
    found: list[CompiledFxGraph] = []
    WATCHED.append(found)
    try:
        yield found
    finally:
        WATCHED[:] = [one for one in WATCHED if one is not found]


def stages_of(graphs: Sequence[CompiledFxGraph]) -> list[Stage]:
    """The stages of compiled graphs, one graph after the other."""
    found: list[Stage] = []
    for number, graph in enumerate(graphs, 1):
        found += stages_of_one(graph, f"{number}: " if len(graphs) > 1 else "")
    return found


def stages_of_one(graph: CompiledFxGraph, of: str) -> Iterator[Stage]:
    """The stages of a graph. of: which graph it is, for their names."""
    yield Stage(f"{of}graph", text_of(graph.module), picture(graph.module))
    module, where = GraphModule(graph.module, graph.graph), places_of(graph)
    formulas = text_of(module)
    if formulas != text_of(graph.module):
        yield Stage(f"{of}formulas", formulas, picture(module))
    marks: Marks = {
        node: ("saved" if loops else "again", f"in {name}" if loops else name) for node, (name, loops) in where.items()
    }
    routines = [routine.text.rstrip() for routine in graph.routines.values()]
    yield Stage(
        f"{of}steps",
        "\n\n\n".join([graph.text.rstrip(), *routines]),
        picture(module, marks=marks),
        "which node is computed where",
    )
    for nest in graph.nests.values():
        inside: Marks = {node: ("saved", f"in {nest.name}") for node, (name, _) in where.items() if name == nest.name}
        drawn = picture(module, marks=inside)
        names = ", ".join(node.name for node in inside)
        yield Stage(f"{of}{nest.name}: loops", nest.text.rstrip(), drawn, f"computes {names}")
        if nest.turns:
            yield from machine_code(graph.machine_code(nest), f"{of}{nest.name}", drawn)


def machine_code(texts: tuple[str, str], name: str, drawn: FxPicture) -> Iterator[Stage]:
    """The last two stages of a nest: as it is written for LLVM, and what LLVM makes of it."""
    ir, assembly = texts
    yield Stage(f"{name}: LLVM", ir.strip(), drawn, "as it is written: nothing is inlined yet")
    lines = [one.rstrip() for one in assembly.splitlines() if one.strip() and not DIRECTIVE.match(one)]
    loop = busiest_loop("\n".join(lines)).splitlines()
    begin = next((at for at in range(len(lines)) if loop and lines[at : at + len(loop)] == loop), 0)
    busy = f"; the busiest loop has {len(loop)}, {sum(map(is_vector, loop))} of them on vectors" if loop else ""
    main = frozenset(range(begin, begin + len(loop)))
    yield Stage(f"{name}: assembly", "\n".join(lines), drawn, f"{len(lines)} lines{busy}", main)


def places_of(graph: CompiledFxGraph) -> dict[Node, tuple[str, bool]]:
    """By node, the name of the step that computes it, and whether that is a nest of loops."""
    found: dict[Node, tuple[str, bool]] = {}
    for step in graph.steps:
        if isinstance(step, Nesting):
            nest = graph.nests.get(step)
            found |= {one: (nest.name, True) for one in step.values if nest is not None and isinstance(one, Node)}
        elif isinstance(step, Call | Multiplying):
            found[step.node] = "a product" if isinstance(step, Multiplying) else "a call", False
    return found


def text(stages: Sequence[Stage]) -> str:
    """All stages as text. Of assembly and of LLVM's language it has what counts: the busiest loop, the nest itself."""
    found = []
    for stage in stages:
        lines = stage.text.splitlines()
        if stage.main:
            lines = [line for at, line in enumerate(lines) if at in stage.main]
        elif stage.name.endswith(": LLVM"):
            lines = the_nest_itself(lines)
        head = f"--- {stage.name}" + (f" ({stage.caption})" if stage.caption else "")
        found.append("\n".join([head, *lines]))
    return "\n\n".join(found)


def the_nest_itself(lines: list[str]) -> list[str]:
    """Of a nest in LLVM's language, the function of the loops: the last but the one by which it is called."""
    starts = [at for at, line in enumerate(lines) if line.startswith("define")]
    return lines[starts[-2] : starts[-1]] if len(starts) > 1 else lines


def page(stages: Sequence[Stage], title: str, path: Any = None) -> str:
    """Returns the page of the stages, and writes it to a file where one is named."""
    rows = [
        {
            "name": one.name,
            "caption": one.caption or one.drawn.graph.caption,
            "lines": [("+" if at in one.main else " ", line) for at, line in enumerate(one.text.splitlines())],
            "svg": svg(one.drawn.graph),
        }
        for one in stages
    ]
    return stages_page(title, rows, (), path)
