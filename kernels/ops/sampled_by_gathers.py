"""What `grid_sampler` computes, written in operators that have derivatives: sums of elements, gathered and weighted.

The kernels say the same in loops; this is what second and further derivatives are taken of. Each axis of a point has a
few terms (two on a line, one at the nearest element, four on a cubic), each an element and its weight; the value of a
point is the sum over all products of terms.

Read next: kernels/cpu/grid_sample.py, which has the same steps.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from redispatch.kernels.cpu.grid_sample import BORDER, NEAREST, REFLECTION, far, near

Terms = list[tuple[Any, Any]]  # (element, weight) of each point along one axis


def sampled_by_gathers(input: Any, grid: Any, mode: int, padding: int, align: bool) -> Any:
    """The values of input[n, channels, *size] at grid[n, *points, axes]: [n, channels, *points]."""
    sizes = list(input.shape[2:])
    axes = [
        terms_along(grid.select(-1, len(sizes) - 1 - axis).flatten(1), size, mode, padding, align)
        for axis, size in enumerate(sizes)
    ]
    image, total = input.flatten(2), None
    for terms in product(*axes):
        cell, weight = 0, 1
        for (place, share), size in zip(terms, sizes, strict=True):
            is_inside = (place >= 0).logical_and(place < size)
            cell = cell * size + place.clamp(0, size - 1).long()
            weight = weight * (share * is_inside)
        chosen = image.gather(2, cell.unsqueeze(1).expand(-1, image.shape[1], -1))  # type: ignore[attr-defined]  # an attribute that mypy does not see
        part = chosen * weight.unsqueeze(1)  # type: ignore[attr-defined]  # both are tensors by now
        total = part if total is None else total + part
    return total.reshape([*input.shape[:2], *grid.shape[1:-1]])  # type: ignore[union-attr]  # there are terms


def terms_along(coordinate: Any, size: int, mode: int, padding: int, align: bool) -> Terms:
    """The terms of each point along one axis, from its coordinate in [-1, 1]."""
    at = (coordinate + 1) / 2 * (size - 1) if align else ((coordinate + 1) * size - 1) / 2
    if mode not in (0, NEAREST):
        return cubic_terms(finite(at), size, padding, align)
    at = inside(at, size, padding, align)
    if mode == NEAREST:
        place = at.detach().round()
        return [(place, at.new_ones([]))]
    low = at.detach().floor()
    return [(low, 1 - (at - low)), (low + 1, at - low)]


def cubic_terms(at: Any, size: int, padding: int, align: bool) -> Terms:
    low = at.detach().floor()
    t = at - low
    weights = far(1 + t), near(t), near(1 - t), far(2 - t)
    return [(inside(low + k - 1, size, padding, align).round(), weight) for k, weight in enumerate(weights)]


def inside(at: Any, size: int, padding: int, align: bool) -> Any:
    """The position after what `padding` makes of one outside of the image."""
    if padding == REFLECTION:
        low, span = (0.0, size - 1) if align else (-0.5, size)
        if span == 0:
            return at * 0
        away = (at - low).abs()
        turns = (away.detach() / span).floor()
        rest = away - turns * span
        at = rest.where(turns % 2 == 0, span - rest) + low
    if padding in (BORDER, REFLECTION):
        at = at.clamp(0, size - 1)
    return finite(at)


def finite(at: Any) -> Any:
    """The position, or one far outside for what is no number that an index could be."""
    return at.where(at.abs() < 1e9, -100.0)
