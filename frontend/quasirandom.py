"""`redispatch.quasirandom`: points that fill a cube more evenly than random ones, with scipy's table of directions."""

from __future__ import annotations

from typing import Any

import numpy as np

from redispatch.dispatch.tensor import dtypes, get_default_dtype
from redispatch.kernels.ops.creation import zeros
from redispatch.kernels.ops.from_data import from_numpy
from redispatch.kernels.ops.random import Generator, randint

__all__ = ["SobolEngine"]


class SobolEngine:
    """Sobol's sequence of points in a cube of up to 21,201 dimensions, in whole 2⁻³⁰ths.

    Point n is the exclusive or of the directions `sobolstate[:, k]` for the digits k that are 1 in n's Gray code; so
    each differs from the one before by a single direction. scramble: the digits of the directions are mixed by a random
    triangular matrix, and all points are shifted by `shift`, which keeps them as even.
    Errors: ValueError for another number of dimensions.
    Sources: Joe and Kuo, "Constructing Sobol sequences with better two-dimensional projections" (2008); Owen,
    "Scrambling Sobol and Niederreiter-Xing points" (1998).
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        from scipy.stats.qmc import Sobol  # here: it takes a second, and few programs want it

        self.dimension, self.scramble, self.seed, self.num_generated = dimension, scramble, seed, 0
        # A private attribute: by its public names scipy tells points, and the last direction comes after 2²⁹ of them.
        self.sobolstate = from_numpy(Sobol(dimension, scramble=False, bits=self.MAXBIT)._sv.astype(np.int64))
        self.shift = zeros(dimension, dtype=dtypes.int64)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()

    def _scramble(self) -> None:
        generator = None if self.seed is None else Generator().manual_seed(self.seed)
        digits = 1 << np.arange(self.MAXBIT)
        shift = randint(2, (self.dimension, self.MAXBIT), generator=generator).numpy()
        self.shift = from_numpy((shift * digits).sum(-1))
        mixing = randint(2, (self.dimension, self.MAXBIT, self.MAXBIT), generator=generator).tril().numpy()
        rows = (
            np.where(np.eye(self.MAXBIT, dtype=bool), 1, mixing) @ digits[::-1]
        )  # each as one number, high digit first
        mixed = np.bitwise_count(rows[:, :, None] & self.sobolstate.numpy()[:, None, :]) % 2
        self.sobolstate = from_numpy((mixed * digits[::-1, None]).sum(1))

    def _next(self, n: int) -> np.ndarray:
        """Returns the next n points as whole numbers; the last of them is `quasi` from then on."""
        steps = np.arange(max(self.num_generated, 1), self.num_generated + n)  # to the first point there is no step
        if n and steps.size and steps[-1] >= 1 << self.MAXBIT:
            raise ValueError(f"At most 2**{self.MAXBIT} points can be drawn")
        changed = np.bitwise_count((steps & -steps) - 1)  # the digit of the Gray code that the step changes
        directions = self.sobolstate.numpy().T[changed]
        first = np.bitwise_xor.accumulate(np.concatenate([self.quasi.numpy()[None], directions]))
        points = first if n and self.num_generated == 0 else first[1:]
        self.quasi, self.num_generated = from_numpy(first[-1].copy()), self.num_generated + n
        return points

    def draw(self, n: int = 1, out: Any = None, dtype: Any = None) -> Any:
        """Returns the next n points, of a shape (n, dimension)."""
        points = from_numpy(self._next(n) / (1 << self.MAXBIT)).to(dtype or get_default_dtype())
        return points if out is None else out.resize_as_(points).copy_(points)

    def draw_base2(self, m: int, out: Any = None, dtype: Any = None) -> Any:
        """Returns the next 2ᵐ points. ValueError where there are then not a power of two of all."""
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: n={self.num_generated}+2**{m}="
                f"{total}. If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(2**m, out, dtype)

    def reset(self) -> SobolEngine:
        """Begins again, with the same points."""
        self.quasi, self.num_generated = self.shift.clone(), 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leaves the next n points out."""
        self._next(n)
        return self

    def __repr__(self) -> str:
        facts = [f"dimension={self.dimension}", *["scramble=True"] * self.scramble]
        return f"SobolEngine({', '.join(facts + ([] if self.seed is None else [f'seed={self.seed}']))})"
