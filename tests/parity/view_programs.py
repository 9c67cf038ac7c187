"""Random programs of views and in-place writes in both libraries: values, all gradients, and the text of every error.

Run with a Python that has torch: `python tests/parity/view_programs.py [programs] [seed]`. Exits non-zero on any
difference, and prints the shortest program that shows it.
"""

from __future__ import annotations

import contextlib
import random
import sys
import warnings
from pathlib import Path

import numpy as np
import torch

import redispatch

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.view_programs import KINDS, WithViews  # behind the line that makes the folder importable

Step = tuple[str, int, int, int, int, float]


def program(rng: random.Random) -> list[Step]:
    return [
        (rng.choice(KINDS), *(rng.randrange(12) for _ in range(4)), rng.choice([0.5, 0.9, -1.1, 1.3]))
        for _ in range(rng.randrange(3, 16))
    ]


class Looking(WithViews):
    """The same program, in which somebody looks at the node of each tensor before each step."""

    def run_step(self, step: Step) -> None:
        for name in self.names:
            with contextlib.suppress(RuntimeError):  # its history is lost; the step will say so, if it reads it
                name.grad_fn
        super().run_step(step)


# PyTorch says this, too, of a view whose base has got a history by another write, unless somebody has looked at the
# view's node since. (It asks the node that the view had before.) The write is harmless, and ours goes through.
NO_LEAF = "a leaf Variable that requires grad is being used in an in-place operation."


def difference(steps: list[Step]) -> str:
    """The first point that the two libraries do not agree on; "" if they agree."""
    found = compared(steps, WithViews)
    return compared(steps, Looking) if f"theirs  {NO_LEAF}" in found else found


def compared(steps: list[Step], kind: type[WithViews]) -> str:
    """The difference for a program that is run like this."""
    ours, theirs = outcome(redispatch, steps, kind), outcome(torch, steps, kind)
    if isinstance(ours, str) or isinstance(theirs, str):
        return "" if ours == theirs else f"ours    {ours}\ntheirs  {theirs}"
    for place, (got, wanted) in enumerate(zip(ours.errors, theirs.errors, strict=True)):
        if got != wanted:
            return f"{steps[place]}\nours    {got or 'no error'}\ntheirs  {wanted or 'no error'}"
    if ours.unreadable != theirs.unreadable:
        return f"at the end\nours    {ours.unreadable}\ntheirs  {theirs.unreadable}"
    pairs = zip(ours.results, theirs.results, strict=True)
    differ = (f"ours    {got}\ntheirs  {wanted}" for got, wanted in pairs if not np.allclose(got, wanted, atol=1e-9))
    return next(differ, "")


def outcome(library, steps: list[Step], kind: type[WithViews]):
    try:
        return kind(library).run(steps)
    except RuntimeError as error:
        return str(error)


def shortest(steps: list[Step]) -> list[Step]:
    """A part of the program from which no step can be taken without losing the difference."""
    for place in range(len(steps)):
        part = steps[:place] + steps[place + 1 :]
        if difference(part):
            return shortest(part)
    return steps


def main(count: int = 5000, seed: int = 0) -> int:
    warnings.simplefilter("ignore")
    rng = random.Random(seed)
    found = 0
    for _ in range(count):
        steps = program(rng)
        if difference(steps):
            steps = shortest(steps)
            found += 1
            print(*steps, difference(steps), sep="\n", end="\n\n")
            if found == 5:
                break
    print(f"{count} programs, {found} differences")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
