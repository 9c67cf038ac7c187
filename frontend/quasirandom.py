"""SobolEngine: points that fill the unit cube evenly.

The n-th point is the exclusive or of the direction numbers that the n-th Gray code has bits for, so that any point
can be had without those before it. The direction numbers are Joe and Kuo's, D(6), as scipy has them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from redispatch.dispatch.tensor import Tensor, get_default_dtype
from redispatch.kernels.ops.from_data import from_numpy
from redispatch.kernels.ops.random import randint

__all__ = ["SobolEngine"]


class SobolEngine:
    """Draws the points of a Sobol sequence, one after the other; `scramble` moves them at random, evenly as before.

    seed: of the scrambling; without it the global generator gives one. Errors: ValueError for a dimension that has no
    direction numbers.
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        from scipy.stats import qmc  # here, because it takes seconds to import, and few programs need it

        self.seed, self.scramble, self.dimension = seed, scramble, dimension
        directions = qmc.Sobol(dimension, scramble=False, bits=self.MAXBIT)._sv.astype(np.int64)
        shift = np.zeros(dimension, np.int64)
        if scramble:
            directions, shift = self._scrambled(directions)
        self.sobolstate, self.shift = from_numpy(directions), from_numpy(shift)
        self.reset()

    def _scrambled(self, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns direction numbers times random triangular matrices of bits (Owen 1998), and a random first point.

        The bits are a Mersenne twister's, as PyTorch's are: a seed gives the same points.
        """
        seed = int(randint(2**32, ())) if self.seed is None else self.seed % 2**32
        bits = np.random.RandomState(seed).randint(2**32, size=self.dimension * self.MAXBIT * (self.MAXBIT + 1)) & 1
        values = 1 << np.arange(self.MAXBIT)
        first, matrices = np.split(bits, [self.dimension * self.MAXBIT])
        lower = np.tril(matrices.reshape(-1, self.MAXBIT, self.MAXBIT), -1) + np.eye(self.MAXBIT, dtype=np.int64)
        products = np.bitwise_count((lower @ values[::-1])[:, None, :] & directions[:, :, None]) & 1
        return products @ values[::-1], first.reshape(-1, self.MAXBIT) @ values

    def _points(self, first: int, n: int) -> np.ndarray:
        """Returns n points from the first on, as integers."""
        numbers = np.arange(first, first + n)[:, None]
        codes, directions = numbers ^ (numbers >> 1), self.sobolstate.numpy()
        points = np.broadcast_to(self.shift.numpy(), (n, self.dimension)).copy()
        for bit in range(int(codes.max(initial=0)).bit_length()):
            points ^= directions[:, bit] * ((codes >> bit) & 1)
        return points

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """Returns the next n points, of shape (n, dimension)."""
        drawn = from_numpy(self._points(self.num_generated, n) / 2**self.MAXBIT).to(dtype or get_default_dtype())
        self.fast_forward(n)
        return drawn if out is None else out.resize_as_(drawn).copy_(drawn)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """Returns the next 2**m points. ValueError where there would not be a power of 2 of them, as balance needs."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                f"The balance properties of Sobol' points require n to be a power of 2. {self.num_generated} points "
                f"have been previously generated, then: n={self.num_generated}+2**{m}={total}. If you still want to "
                "do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Goes back to the first point."""
        self.num_generated, self.quasi = 0, self.shift.clone()
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Passes over n points."""
        self.num_generated += n
        self.quasi = from_numpy(self._points(max(self.num_generated - 1, 0), 1)[0])  # the last point
        return self

    def __repr__(self) -> str:
        seed = "" if self.seed is None else f", seed={self.seed}"
        return f"SobolEngine(dimension={self.dimension}{', scramble=True' if self.scramble else ''}{seed})"
