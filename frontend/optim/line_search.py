"""How far to go along a direction: to a point where the loss has fallen enough, and its slope, too (strong Wolfe).

Two phases. First steps grow until some point must lie between two of them: the *bracket*. Then the bracket shrinks
around it. New steps are the minima of cubics through the losses and slopes of two points.

Source: Nocedal and Wright, "Numerical optimization", 2nd edition (2006), section 3.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

ENOUGH = 1e-4  # the share of the fall that the slope at the start promises
FLATTER = 0.9  # the share of the start's slope that may be left


class Point(NamedTuple):
    """A step along the direction: the loss there, its gradient, and its slope along the direction."""

    step: float
    loss: float
    gradient: Any
    slope: float


def strong_wolfe(
    at: Callable[[float], Point], start: Point, step: float, largest: float, tolerance: float, tries: int
) -> tuple[Point, int]:
    """A point that satisfies the conditions, or the best found, and how many were looked at.

    largest: the greatest element of the direction, in which `tolerance` measures how small a bracket may become.
    """

    def rises(point: Point) -> bool:
        return point.loss > start.loss + ENOUGH * point.step * start.slope

    def is_flat(point: Point) -> bool:
        return abs(point.slope) <= -FLATTER * start.slope

    before, point, looks = start, at(step), 1
    rounds = 0
    while rounds < tries:
        if rises(point) or (rounds > 1 and point.loss >= before.loss):
            break
        if is_flat(point):
            return point, looks
        if point.slope >= 0:
            break
        least, most = point.step + 0.01 * (point.step - before.step), 10 * point.step
        before, point = point, at(cubic_minimum(before, point, least, most))
        looks, rounds = looks + 1, rounds + 1
    if rounds == tries:
        before = start
    bracket = [before, point]
    low = 0 if before.loss <= point.loss else 1
    stuck = False  # whether the last new step lay close to an end of the bracket
    while rounds < tries:
        ends = sorted(one.step for one in bracket)
        if (ends[1] - ends[0]) * largest < tolerance:
            break
        step, margin = cubic_minimum(bracket[0], bracket[1], ends[0], ends[1]), 0.1 * (ends[1] - ends[0])
        close = min(ends[1] - step, step - ends[0]) < margin
        if close and (stuck or not ends[0] < step < ends[1]):
            step = ends[1] - margin if abs(step - ends[1]) < abs(step - ends[0]) else ends[0] + margin
            stuck = False
        else:
            stuck = close
        point = at(step)
        looks, rounds = looks + 1, rounds + 1
        if rises(point) or point.loss >= bracket[low].loss:
            bracket[1 - low] = point
            low = 0 if bracket[0].loss <= bracket[1].loss else 1
            continue
        done = is_flat(point)
        if not done and point.slope * (bracket[1 - low].step - bracket[low].step) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = point
        if done:
            break
    return bracket[low], looks


def cubic_minimum(one: Point, other: Point, least: float, most: float) -> float:
    """Where the cubic through both has its minimum, within bounds; their middle where it has none."""
    a, b = (one, other) if one.step <= other.step else (other, one)
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.step - b.step)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (least + most) / 2
    d2 = math.sqrt(square)
    denominator = b.slope - a.slope + 2 * d2
    if denominator == 0:
        return (least + most) / 2
    return min(max(b.step - (b.step - a.step) * ((b.slope + d2 - d1) / denominator), least), most)
