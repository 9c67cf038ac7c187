"""Pictures of graphs: what they show, as text for programs that draw, as SVG; and `viz.graph`, of autograd's graph.

Graphs of operators are drawn by the same code: frontend/fx/passes/graph_drawer.py says what their boxes are.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from redispatch.autograd import GradientEdge, Node
from redispatch.dispatch import dataclass
from redispatch.dispatch.autograd.history import gradient_edge
from redispatch.dispatch.autograd.saving import SavedThing, saved_things
from redispatch.dispatch.tensor import Tensor
from redispatch.utils.text import spoken_bytes

# --- What a picture of the graph shows: boxes and arrows, found by a walk along the edges of nodes --------------------
#
# A box is a result, a node with what it has saved, or a leaf. What is saved is read where the node keeps it and not
# unpacked: to look at a graph must run no hook, compute nothing and hold nothing.


@dataclass(slots=True)
class Box:
    """One box. `kind`: one of FILLS; "more" where the picture ends before the graph does. `hint`: shown on pointing."""

    kind: str
    title: str
    lines: list[str] = field(default_factory=list)
    hint: str = ""


@dataclass(slots=True)
class Graph:
    """Boxes, and arrows between them by their numbers: from a node to what it hands something on to."""

    boxes: list[Box] = field(default_factory=list)
    arrows: list[tuple[int, int]] = field(default_factory=list)
    saved_bytes: int = 0  # of all memory that is held for backward alone, each piece counted once
    cut: set[tuple[int, int]] = field(default_factory=set)  # the arrows that are drawn as cut
    name: str = "autograd graph"
    text: str = ""  # below the picture; by default what the walk of autograd's graph has counted

    @property
    def caption(self) -> str:
        if self.text:
            return self.text
        nodes = sum(box.kind == "node" for box in self.boxes)
        return f"{nodes} node{'' if nodes == 1 else 's'}, {spoken_bytes(self.saved_bytes)} saved for backward"


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
    return f"saved {thing.name}: {short_dtype(metadata.dtype)}{list(metadata.shape)}, {spoken_bytes(size)}"


def short_dtype(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


# --- The picture as text, for programs that draw: graphviz's DOT, and Mermaid as Markdown pages show it ---------------

FILLS = {"result": "#cfe8cf", "node": "#eeeeee", "leaf": "#cfe0f5", "more": "#ffffff"}
FILLS |= {"constant": "#e8ddf5", "saved": "#ffd9a0", "again": "#fff2b3", "backward": "#f6d5d5"}
CUT = "#c2273d"
# On a dark ground: colour of a drawing -> what stands in its place. Text is 4.5 times as bright as its box, or more.
DARK = {"#cfe8cf": "#1d4527", "#eeeeee": "#2b333d", "#cfe0f5": "#1d3557", "#ffffff": "#12161c", "#e8ddf5": "#3b2a55"}
DARK |= {"#ffd9a0": "#5a3d10", "#fff2b3": "#4a4120", "#f6d5d5": "#4a1f27", CUT: "#ff8a97", "#444": "#c3ccd8"}
DARK |= {"#555": "#b4bfcc", "#777": "#8a96a5", "#111": "#eef2f7"}
THEMES = ("light", "dark")


def dot(graph: Graph) -> str:
    """The graph in DOT."""
    lines = [
        f"digraph {quoted([graph.name])} {{",
        f'  label={quoted([graph.caption])}; fontname="sans-serif"; fontsize=11;',
        '  node [shape=box, style="rounded,filled", fontname="sans-serif", fontsize=11];',
        "  edge [arrowsize=0.6];",
        *(
            f'  n{number} [label={quoted([box.title, *box.lines])}, fillcolor="{FILLS[box.kind]}"];'
            for number, box in enumerate(graph.boxes)
        ),
        *(f"  n{start} -> n{end}{dashed(graph, start, end)};" for start, end in graph.arrows),
        "}",
    ]
    return "\n".join(lines) + "\n"


def dashed(graph: Graph, start: int, end: int) -> str:
    return f' [style=dashed, color="{CUT}"]' if (start, end) in graph.cut else ""


def quoted(lines: list[str]) -> str:
    """A string of DOT that shows these lines."""
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for line in lines)
    return '"' + "\\n".join(escaped) + '"'


def mermaid(graph: Graph) -> str:
    """The graph as a flowchart of Mermaid."""
    kinds = {box.kind for box in graph.boxes}
    lines = [
        "flowchart TD",
        *(f"  n{number}{label(box)}:::{box.kind}" for number, box in enumerate(graph.boxes)),
        *(f"  n{start} {'-.->' if (start, end) in graph.cut else '-->'} n{end}" for start, end in graph.arrows),
        *(f"  classDef {kind} fill:{fill},stroke:#555,color:#000" for kind, fill in FILLS.items() if kind in kinds),
    ]
    return "\n".join(lines) + "\n"


def label(box: Box) -> str:
    """A box of Mermaid. Its text is in quotes; what means something there is written as an entity."""
    escaped = (
        line.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;").replace("\n", " ")
        for line in (box.title, *box.lines)
    )
    return f'["{"<br/>".join(escaped)}"]'


# --- The picture as SVG, without graphviz: a layered drawing ----------------------------------------------------------
#
#     1. a box lies one row below the lowest of those that point to it;
#     2. an arrow that crosses rows gets a place in each of them, so that no box stands in its way;
#     3. in each row, what is there is put in the order of its neighbours' middle, a few times downward and upward;
#     4. then boxes get coordinates, row by row, and move under the middle of those that point to them, if there is
#        room.
#
# Source: K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical system structures", IEEE
# Transactions on Systems, Man, and Cybernetics 11(2), 1981; the order by middles is its barycentric method.

CHARACTER, LINE = 6.4, 15.0  # the room that text takes, at 11 pixels
WIDER = 1.15  # bold text
PADDING, BETWEEN, ROWS, MARGIN = 8.0, 18.0, 34.0, 12.0
SWEEPS = 8
TITLE, SMALL = 'font-weight="bold"', 'fill="#444"'


@dataclass(slots=True, eq=False)
class Place:
    """A box in its row, or a point through which an arrow passes."""

    row: int
    box: Box | None
    above: list[Place] = field(default_factory=list)
    below: list[Place] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0
    x: float = 0.0  # of the middle
    y: float = 0.0  # of the upper end


def svg(graph: Graph, theme: str = "light") -> str:
    """The drawing, as a document, with text that can be selected. ValueError for a theme that there is not."""
    if theme not in THEMES:
        raise ValueError(f"a picture is {' or '.join(THEMES)}, not {theme!r}")
    places = [Place(row, box) for row, box in zip(rows_of(graph), graph.boxes, strict=True)]
    for place in places:
        place.width, place.height = room_for(place.box)
    roads = {one: road(places, *one) for one in dict.fromkeys(graph.arrows)}
    rows = arranged([*places, *(place for way in roads.values() for place in way[1:-1])])
    put(rows)
    width = max(max((p.x + p.width / 2 for p in row), default=0) for row in rows) + MARGIN
    width = max(width, CHARACTER * len(graph.caption) + 2 * MARGIN)
    height = max(p.y + p.height for row in rows for p in row) + LINE + 2 * MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="11" fill="#111" role="img">',
        f"<title>{escape(graph.name)}</title><desc>{escape(described(graph))}</desc>",
        *(['<rect width="100%" height="100%" fill="#ffffff"/>'] if theme == "dark" else []),
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'markerUnits="userSpaceOnUse" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>',
        *(arrow(way, one in graph.cut) for one, way in roads.items()),
        *(drawn(place) for place in places),
        f'<text x="{MARGIN:.0f}" y="{height - MARGIN:.0f}" fill="#555">{escape(graph.caption)}</text>',
        "</svg>",
    ]
    drawing = "\n".join(lines) + "\n"
    return drawing if theme == "light" else re.sub(r'(?<==")#[0-9a-f]+(?=")', lambda one: DARK[one[0]], drawing)


def described(graph: Graph) -> str:
    """The picture in words, for who does not see it."""
    titles = [box.title for box in graph.boxes]
    return f"{graph.caption}. " + "; ".join(f"{titles[start]} to {titles[end]}" for start, end in graph.arrows[:100])


def rows_of(graph: Graph) -> list[int]:
    """For each box its row: the length of the longest way to it."""
    below: list[list[int]] = [[] for _ in graph.boxes]
    waiting = [0] * len(graph.boxes)
    for start, end in graph.arrows:
        below[start].append(end)
        waiting[end] += 1
    rows = [0] * len(graph.boxes)
    ready = [number for number, left in enumerate(waiting) if not left]
    for number in ready:  # which grows meanwhile
        for end in below[number]:
            rows[end] = max(rows[end], rows[number] + 1)
            waiting[end] -= 1
            if not waiting[end]:
                ready.append(end)
    return rows


def room_for(box: Box | None) -> tuple[float, float]:
    """Width and height of a box, or of a passing arrow."""
    if box is None:
        return 6.0, 0.0
    longest = max(WIDER * len(box.title), *map(len, box.lines), 0)
    return CHARACTER * longest + 2 * PADDING, LINE * (1 + len(box.lines)) + PADDING


def road(places: list[Place], start: int, end: int) -> list[Place]:
    """The places that an arrow passes, its ends included."""
    first, last = places[start], places[end]
    way = [first, *(Place(row, None, width=6.0) for row in range(first.row + 1, last.row)), last]
    for upper, lower in pairwise(way):
        upper.below.append(lower)
        lower.above.append(upper)
    return way


def arranged(places: list[Place]) -> list[list[Place]]:
    """The rows, each in an order in which few arrows cross."""
    rows: list[list[Place]] = [[] for _ in range(1 + max(place.row for place in places))]
    for place in places:
        rows[place.row].append(place)
    position = {place: float(index) for row in rows for index, place in enumerate(row)}

    def middle(place: Place, neighbours: list[Place]) -> float:
        return sum(position[n] for n in neighbours) / len(neighbours) if neighbours else position[place]

    for sweep in range(SWEEPS):
        downward = sweep % 2 == 0
        for row in rows if downward else reversed(rows):
            middles = {place: middle(place, place.above if downward else place.below) for place in row}
            row.sort(key=middles.__getitem__)
            position.update({place: float(index) for index, place in enumerate(row)})
    return rows


def put(rows: list[list[Place]]) -> None:
    """Gives each place its coordinates: rows one below the other, and in them nothing over anything else."""
    y = MARGIN
    for row in rows:
        x = MARGIN
        for place in row:
            place.x, place.y = x + place.width / 2, y
            x += place.width + BETWEEN
        height = max(place.height for place in row)
        for place in row:
            if place.box is None:
                place.height = height  # an arrow passes the whole row, beside its boxes
        y += height + ROWS
    for sweep in range(SWEEPS):
        downward = sweep % 2 == 0
        for row in rows if downward else reversed(rows):
            for place in row:
                neighbours = place.above if downward else place.below
                if neighbours:
                    place.x = sum(n.x for n in neighbours) / len(neighbours)
            part(row)
    left = min(place.x - place.width / 2 for row in rows for place in row)
    for row in rows:
        for place in row:
            place.x += MARGIN - left


def part(row: list[Place]) -> None:
    """Moves apart what lies over each other, as little as it takes, and keeps the order.

    Neighbours that touch form a group, which lies where the mean of its members' wishes is.
    """
    groups: list[tuple[float, float, list[Place]]] = []  # (where it begins, its width, its members)
    for place in row:
        begin, width, members = place.x - place.width / 2, place.width, [place]
        while groups and groups[-1][0] + groups[-1][1] + BETWEEN > begin:
            former, former_width, former_members = groups.pop()
            shift = former_width + BETWEEN
            count, more = len(former_members), len(members)
            begin = (former * count + (begin - shift) * more) / (count + more)
            width, members = shift + width, [*former_members, *members]
        groups.append((begin, width, members))
    for begin, _, members in groups:
        for place in members:
            place.x = begin + place.width / 2
            begin += place.width + BETWEEN


def arrow(way: list[Place], cut: bool) -> str:
    """An arrow: a curve from each place to the next; dashed where it is cut."""
    first = way[0]
    path = [f"M{first.x:.1f},{first.y + first.height:.1f}"]
    for upper, lower in pairwise(way):
        y0, y1 = upper.y + upper.height, lower.y
        half = (y0 + y1) / 2
        path.append(f"C{upper.x:.1f},{half:.1f} {lower.x:.1f},{half:.1f} {lower.x:.1f},{y1:.1f}")
        if lower.box is None:
            path.append(f"V{y1 + lower.height:.1f}")
    look = 'class="arrow" stroke="#555"'
    if cut:
        look = f'class="cut" stroke="{CUT}" stroke-width="2" stroke-dasharray="5 4"'
    return f'<path d="{" ".join(path)}" fill="none" {look} marker-end="url(#tip)"/>'


def drawn(place: Place) -> str:
    """A box with its text."""
    box = place.box
    assert box is not None
    x = place.x - place.width / 2
    texts = [
        f'<text x="{place.x:.1f}" y="{place.y + LINE * (index + 1):.1f}" text-anchor="middle" '
        f"{SMALL if index else TITLE}>{escape(line)}</text>"
        for index, line in enumerate((box.title, *box.lines))
    ]
    frame = (
        f'<rect x="{x:.1f}" y="{place.y:.1f}" width="{place.width:.1f}" height="{place.height:.1f}" rx="5" '
        f'class="{box.kind}" fill="{FILLS[box.kind]}" stroke="#777"/>'
    )
    if not box.hint:
        return frame + "".join(texts)
    return f"<g><title>{escape(box.hint)}</title>{frame}{''.join(texts)}</g>"


# --- GraphPicture: what `viz.graph` returns. A notebook shows it; elsewhere it is text, or an SVG file ----------------


def graph(tensors: Any, params: Any = None, *, limit: int = 500) -> GraphPicture:
    """A picture of the graph that backward from `tensors` would walk.

    tensors: a tensor, a GradientEdge or a sequence of them. params: names for leaves and results: a module, a dict of
    tensors by name, or pairs (name, tensor). limit: of a larger graph, only so many nodes are shown, the nearest.
    Errors: ValueError for a tensor that does not require grad.
    """
    results = (tensors,) if isinstance(tensors, Tensor | GradientEdge) else tuple(tensors)
    return GraphPicture(draw(results, names_of(params), limit))


class GraphPicture:
    """A picture of a graph: `dot` and `mermaid` are text, `svg()` a drawing; Jupyter shows it as it is."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @property
    def dot(self) -> str:
        """The graph in graphviz's language."""
        return dot(self.graph)

    @property
    def mermaid(self) -> str:
        """The graph as a Mermaid flowchart, which many Markdown pages draw."""
        return mermaid(self.graph)

    def svg(self, theme: str | None = None) -> str:
        """A drawing: of our own in a theme, "light" or "dark"; without one graphviz's where that is installed."""
        if theme is not None:
            return svg(self.graph, theme)
        try:
            graphviz = importlib.import_module("graphviz")
        except ImportError:
            return svg(self.graph)
        try:
            return graphviz.Source(self.dot).pipe(format="svg").decode()
        except graphviz.ExecutableNotFound:
            return svg(self.graph)

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
        return f"<{self.graph.name}: {self.graph.caption}>"
