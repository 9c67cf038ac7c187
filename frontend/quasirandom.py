"""`redispatch.quasirandom`: points that fill a cube more evenly than random ones, by scipy's Sobol sequence."""

from __future__ import annotations

import warnings
from typing import Any

from redispatch.dispatch.tensor import get_default_dtype
from redispatch.kernels.ops.from_data import from_numpy
from redispatch.kernels.ops.random import Generator, randint

__all__ = ["SobolEngine"]


class SobolEngine:
    """A sequence of points in a cube of up to 21,201 dimensions, in whole 2⁻³⁰ths.

    scramble: digits are shuffled and shifted at random, which keeps the points as even. The shuffle is scipy's, and
    gives other points than PyTorch's for the same seed; without it they are the same.
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
        generator = None if seed is None else Generator().manual_seed(seed)
        drawn = int(randint(2**31, (), generator=generator).item()) if scramble else 0
        self._points = Sobol(dimension, scramble=scramble, bits=self.MAXBIT, rng=drawn)

    def draw(self, n: int = 1, out: Any = None, dtype: Any = None) -> Any:
        """Returns the next n points, of a shape (n, dimension)."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The balance properties")  # `draw_base2` is who asks for that
            points = from_numpy(self._points.random(n)).to(dtype or get_default_dtype())
        self.num_generated += n
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
        self._points.reset()
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leaves the next n points out."""
        self._points.fast_forward(n)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        facts = [f"dimension={self.dimension}", *["scramble=True"] * self.scramble]
        return f"SobolEngine({', '.join(facts + ([] if self.seed is None else [f'seed={self.seed}']))})"
