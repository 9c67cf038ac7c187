"""L-BFGS: Newton's method, with the curvature read off the last steps and the changes of gradient that they made.

With s the last steps and y what they changed in the gradient, ρ = 1 / (y · s), the direction is found by two passes:

    q ← -g;   newest to oldest: a = ρ (s · q),  q ← q - a y
    d ← h q;  oldest to newest: d ← d + s (a - ρ (y · d))          h = (y · s) / (y · y) of the newest

Source: Nocedal, "Updating quasi-Newton matrices with limited storage" (1980).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from redispatch.autograd import enable_grad, no_grad
from redispatch.kernels.ops.shape import cat

from .optimizer import Optimizer, number, options

CURVED = 1e-10  # a step that saw less curvature than this is not remembered
ENOUGH = 1e-4  # the share of the fall that the slope at the start promises
FLATTER = 0.9  # the share of the start's slope that may be left


class Point(NamedTuple):
    """A step along the direction: the loss there, its gradient, and its slope along the direction."""

    step: float
    loss: float
    gradient: Any
    slope: float


class LBFGS(Optimizer):
    """L-BFGS: up to `max_iter` iterations a step, for which `closure` is called up to `max_eval` times.

    line_search_fn: None for steps of `lr`, or "strong_wolfe".
    Errors: ValueError for more than one group of parameters.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        super().__init__(params, options(locals(), "lr"))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Several iterations. Returns what `closure` returned first: it clears the gradients, computes them anew and
        returns the loss."""
        if closure is None:
            raise TypeError("LBFGS.step() missing 1 required positional argument: 'closure'")
        with no_grad():
            return self._iterate(closure)

    def _iterate(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        state = self.state[group["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        rate, small = number(group["lr"]), group["tolerance_change"]
        first = evaluated(closure)
        here = Point(0.0, float(first), self._gradient(), 0.0)
        evaluations = 1
        state["func_evals"] += 1
        if greatest(here.gradient) <= group["tolerance_grad"]:
            return first
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction(here.gradient, state, group["history_size"])
            state["prev_flat_grad"], state["prev_loss"] = here.gradient, here.loss
            step = rate
            if state["n_iter"] == 1:
                step *= min(1.0, 1.0 / here.gradient.abs().sum().item())
            state["d"], state["t"] = direction, step
            slope = here.gradient.dot(direction).item()
            if slope > -small:
                break
            before, metadata = here.loss, 0
            if group["line_search_fn"] is not None:
                tries = group["max_eval"] - evaluations
                here, metadata = self._search(closure, here._replace(step=0.0, slope=slope), step, direction, tries)
                step = state["t"] = here.step
                self._move(direction, step)
            else:
                self._move(direction, step)
                if iteration != group["max_iter"]:
                    loss = float(evaluated(closure))
                    here, metadata = Point(0.0, loss, self._gradient(), 0.0), 1
            evaluations += metadata
            state["func_evals"] += metadata
            if (
                evaluations >= group["max_eval"]
                or greatest(here.gradient) <= group["tolerance_grad"]
                or greatest(direction * step) <= small
                or abs(here.loss - before) < small
            ):
                break
        return first

    def _direction(self, gradient: Any, state: dict[str, Any], most: int) -> Any:
        """Down the gradient as the remembered curvature bends it, which the last step adds to."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return -gradient
        changes, steps, inverses = state["old_dirs"], state["old_stps"], state["ro"]
        change, step = gradient - state["prev_flat_grad"], state["d"] * state["t"]
        curvature = change.dot(step).item()
        if curvature > CURVED:
            if len(changes) == most:
                for remembered in (changes, steps, inverses):
                    del remembered[0]
            changes.append(change)
            steps.append(step)
            inverses.append(1 / curvature)
            state["H_diag"] = curvature / change.dot(change).item()
        bent = -gradient
        shares = []
        for y, s, inverse in reversed(list(zip(changes, steps, inverses, strict=True))):
            shares.append(s.dot(bent).item() * number(inverse))
            bent.add_(y, alpha=-shares[-1])
        bent = bent * number(state["H_diag"])
        for y, s, inverse, share in zip(changes, steps, inverses, reversed(shares), strict=True):
            bent.add_(s, alpha=share - y.dot(bent).item() * number(inverse))
        return bent

    def _search(
        self, closure: Callable[[], Any], start: Point, step: float, direction: Any, tries: int
    ) -> tuple[Point, int]:
        group = self.param_groups[0]
        if group["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        origin = [param.clone() for param in group["params"]]

        def at(step: float) -> Point:
            self._move(direction, step)
            loss = float(evaluated(closure))
            gradient = self._gradient()
            for param, value in zip(group["params"], origin, strict=True):
                param.copy_(value)
            return Point(step, loss, gradient, gradient.dot(direction).item())

        return strong_wolfe(at, start, step, greatest(direction), group["tolerance_change"], tries)

    def _gradient(self) -> Any:
        """The gradients of all parameters in a row, a copy; zeros where there is none."""
        parts = [
            p.new_zeros(p.numel()) if p.grad is None else p.grad.reshape(-1) for p in self.param_groups[0]["params"]
        ]
        return cat(parts, 0)

    def _move(self, direction: Any, step: float) -> None:
        """Goes so far along the direction."""
        at = 0
        for param in self.param_groups[0]["params"]:
            part = direction[at : at + param.numel()]
            param.add_(part.view(param.shape), alpha=step)
            at += param.numel()


def evaluated(closure: Callable[[], Any]) -> Any:
    with enable_grad():
        return closure()


def greatest(x: Any) -> float:
    """The absolute value of the element that is furthest from 0."""
    return x.abs().max().item()


def strong_wolfe(
    at: Callable[[float], Point], start: Point, step: float, largest: float, tolerance: float, tries: int
) -> tuple[Point, int]:
    """Returns a point that satisfies the strong Wolfe conditions, or the best found, and how many were looked at.

    There the loss has fallen enough, and so has its slope. Two phases: first steps grow until some point must lie
    between two of them, the *bracket*; then the bracket shrinks around it. New steps are the minima of cubics through
    the losses and slopes of two points.

    largest: the greatest element of the direction, in which `tolerance` measures how small a bracket may become.
    Source: Nocedal and Wright, "Numerical optimization", 2nd edition (2006), section 3.5.
    """

    def rises(point: Point) -> bool:
        return point.loss > start.loss + ENOUGH * point.step * start.slope

    def is_flat(point: Point) -> bool:
        return abs(point.slope) <= -FLATTER * start.slope

    before, point, metadata = start, at(step), 1
    rounds = 0
    while rounds < tries:
        if rises(point) or (rounds > 1 and point.loss >= before.loss):
            break
        if is_flat(point):
            return point, metadata
        if point.slope >= 0:
            break
        least, most = point.step + 0.01 * (point.step - before.step), 10 * point.step
        before, point = point, at(cubic_minimum(before, point, least, most))
        metadata, rounds = metadata + 1, rounds + 1
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
        metadata, rounds = metadata + 1, rounds + 1
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
    return bracket[low], metadata


def cubic_minimum(one: Point, other: Point, least: float, most: float) -> float:
    """Returns where the cubic through both has its minimum, within bounds; their middle where it has none."""
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
