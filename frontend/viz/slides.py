"""Pictures for slides: a step of a trace, a keyset, the modes at work, storages with their views.

    hops.svg(3), hops.frames("slides")      # in dispatch/inspection/trace.py: a step, or all of them
    viz.keyset(x), viz.modes(), viz.storages(a=a, b=a.T)
    viz.Inline(hops)                        # in a notebook: the page itself

All are boxes and arrows, drawn by graph_picture.py as graphs are.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from redispatch.dispatch import STATE, Hop
from redispatch.dispatch.inspection.trace import name_of
from redispatch.dispatch.tensor import Tensor
from redispatch.utils.text import spoken_bytes

from .graph_picture import Box, Graph, GraphPicture, metadata_text
from .tables import keys_in, shortened

LONG = 60  # characters of a line in a box


def cut_off(text: str) -> str:
    return text if len(text) <= LONG else f"{text[: LONG - 1]}…"


def steps_of(root: Hop) -> Iterator[tuple[Hop, bool]]:
    """The steps of a trace in the page's order: each hop as it is entered, and as it is left (True)."""
    pending = [(child, False) for child in reversed(root.children)]
    while pending:
        hop, leaves = pending.pop()
        yield hop, leaves
        if not leaves:
            pending.append((hop, True))
            pending += [(child, False) for child in reversed(hop.children)]


def step(root: Hop, number: int | None) -> GraphPicture:
    """The hops that are under way at a step, from the outermost down; None for the step that reaches deepest."""
    steps = list(steps_of(root))
    if number is None:
        number = 1 + max(range(len(steps)), key=lambda at: (depth(steps[at][0]), -at), default=0)
    if not 1 <= number <= len(steps):
        raise IndexError(f"step {number} of a trace of {len(steps)} steps: the first is 1")
    hop, leaves = steps[number - 1]
    chain = [hop]
    while chain[-1].parent is not None and chain[-1].parent is not root:
        chain.append(chain[-1].parent)
    graph = Graph(name=f"step {number} of {len(steps)}", text=sentence(number, len(steps), hop, leaves))
    for one in reversed(chain):
        lines = [cut_off(one.answered), cut_off(f"({shortened(one.arguments)})")]
        if one is hop and leaves:
            lines.append(cut_off(f"gives {one.result or type(one.error).__name__}"))
        kind = "result" if one is hop else "backward" if one.backward else "node"
        graph.boxes.append(Box(kind, f"{name_of(one.op)}  [{one.key}]", lines, one.place))
    graph.arrows = [(at, at + 1) for at in range(len(chain) - 1)]
    return GraphPicture(graph)


def depth(hop: Hop) -> int:
    return 0 if hop.parent is None else 1 + depth(hop.parent)


def sentence(number: int, count: int, hop: Hop, leaves: bool) -> str:
    """Tells of a step what the page tells."""
    begins = f"{'is done at' if leaves else 'stops at'} {hop.key}"
    return f"Step {number} of {count}{', in backward' if hop.backward else ''}: {name_of(hop.op)} {begins}"


def keyset(of: Any) -> GraphPicture:
    """A picture of a keyset, the highest key on top. of: a keyset, or a tensor, whose keys are taken."""
    bits = of._keyset if isinstance(of, Tensor) else int(of)
    known = keys_in(bits)
    boxes = [Box("result" if not at else "node", name, [f"bit {bit}"]) for at, (name, bit) in enumerate(known["keys"])]
    boxes = boxes or [Box("more", "no key")]
    graph = Graph(boxes, [(at, at + 1) for at in range(len(boxes) - 1)], name="keyset", text=f"keyset {known['hex']}")
    return GraphPicture(graph)


def modes() -> GraphPicture:
    """A picture of the modes at work: those of functions above those of operators, the next to be asked on top."""
    state = STATE.get()
    boxes = [Box("saved", type(mode).__name__, ["__torch_function__"]) for mode in reversed(state.function_modes)]
    boxes += [Box("leaf", type(mode).__name__, ["__torch_dispatch__"]) for mode in reversed(state.modes)]
    boxes.append(Box("node", "kernels"))
    arrows = [(at, at + 1) for at in range(len(boxes) - 1)]
    return GraphPicture(Graph(boxes, arrows, name="modes", text=f"{len(boxes) - 1} modes at work"))


class Inline:
    """A trace's page in a notebook, to be stepped through there: `viz.Inline(hops)` at the end of a cell."""

    def __init__(self, hops: Hop, height: int = 640) -> None:
        self.hops, self.height = hops, height

    def _repr_html_(self) -> str:
        frame = f'<iframe title="a trace" style="width:100%;height:{self.height}px;border:0" srcdoc="'
        return f'{frame}{escape(self.hops.html())}"></iframe>'


def storages(*tensors: Tensor, **named: Tensor) -> GraphPicture:
    """A picture of tensors and the storages in which their elements lie: several views of one point at one box."""
    graph = Graph(name="storages")
    numbers: dict[int, int] = {}
    for name, x in {**{f"tensor {at}": x for at, x in enumerate(tensors)}, **named}.items():
        storage = x.untyped_storage()
        place = storage.data_ptr()
        facts = [f"stride {tuple(x.stride())}", f"offset {x.storage_offset()}"]
        graph.boxes.append(Box("leaf", name, [metadata_text(x), *facts]))
        own = len(graph.boxes) - 1
        if place not in numbers:
            numbers[place] = len(graph.boxes)
            graph.boxes.append(Box("saved", "storage", [spoken_bytes(storage.nbytes())]))
        graph.arrows.append((own, numbers[place]))
    graph.text = f"{len(graph.arrows)} tensors, {len(numbers)} storages"
    return GraphPicture(graph)
