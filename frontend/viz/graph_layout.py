"""The picture as SVG, without graphviz: a layered drawing.

    1. a box lies one row below the lowest of those that point to it;
    2. an arrow that crosses rows gets a place in each of them, so that no box stands in its way;
    3. in each row, what is there is put in the order of its neighbours' middle, a few times downward and upward;
    4. then boxes get coordinates, row by row, and move under the middle of those that point to them, if there is room.

Source: K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical system structures", IEEE
Transactions on Systems, Man, and Cybernetics 11(2), 1981; the order by middles is its barycentric method.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

from .graph_model import Box, Graph
from .graph_text import FILLS

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


def svg(graph: Graph) -> str:
    """The drawing, as a document."""
    places = [Place(row, box) for row, box in zip(rows_of(graph), graph.boxes, strict=True)]
    for place in places:
        place.width, place.height = room_for(place.box)
    roads = [road(places, start, end) for start, end in dict.fromkeys(graph.arrows)]
    rows = arranged([*places, *(place for way in roads for place in way[1:-1])])
    put(rows)
    width = max(max((p.x + p.width / 2 for p in row), default=0) for row in rows) + MARGIN
    width = max(width, CHARACTER * len(graph.caption) + 2 * MARGIN)
    height = max(p.y + p.height for row in rows for p in row) + LINE + 2 * MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="11">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>',
        *map(arrow, roads),
        *(drawn(place) for place in places),
        f'<text x="{MARGIN:.0f}" y="{height - MARGIN:.0f}" fill="#555">{escape(graph.caption)}</text>',
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


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


def arrow(way: list[Place]) -> str:
    """An arrow: a curve from each place to the next."""
    first = way[0]
    path = [f"M{first.x:.1f},{first.y + first.height:.1f}"]
    for upper, lower in pairwise(way):
        y0, y1 = upper.y + upper.height, lower.y
        half = (y0 + y1) / 2
        path.append(f"C{upper.x:.1f},{half:.1f} {lower.x:.1f},{half:.1f} {lower.x:.1f},{y1:.1f}")
        if lower.box is None:
            path.append(f"V{y1 + lower.height:.1f}")
    return f'<path d="{" ".join(path)}" fill="none" stroke="#555" marker-end="url(#tip)"/>'


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
        f'fill="{FILLS[box.kind]}" stroke="#777"/>'
    )
    return frame + "".join(texts)
