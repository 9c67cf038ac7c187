"""A product of matrices as a step of a routine: a call of BLAS by its address.

    Product("mm", out, a, b, (64, 32, 10))

Matrices may lie by rows or by columns, with anything between them; others are not for BLAS (`is_matrix`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from redispatch.dispatch import dataclass

from ..cpu.blas import AS_IT_IS, BY_ROWS, TRANSPOSED, gemm
from .walk import Array

WORK = 5  # multiplications of BLAS in the time of one cheap operation of a loop


def is_matrix(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether BLAS can read a matrix that lies so."""
    (rows, columns), (down, across) = sizes, strides
    by_rows = (across == 1 or columns == 1) and (down >= columns or rows == 1)
    return by_rows or ((down == 1 or rows == 1) and (across >= rows or columns == 1))


@dataclass(frozen=True, eq=False, slots=True)
class Product:
    """out = a @ b, for `count` pairs of matrices. sizes: n, k, m. The arrays have strides for pair, row and column."""

    name: str
    out: Array
    a: Array
    b: Array
    sizes: tuple[int, int, int]
    count: int = 1

    @property
    def work(self) -> int:
        """The cost of all, in cheap operations."""
        n, k, m = self.sizes
        return self.count * n * k * m // WORK

    @property
    def arrays(self) -> list[Array]:
        return [self.out, self.a, self.b]

    def lines(self, word: str, at: Callable[[str], tuple[str, str]]) -> Iterator[str]:
        """The text that calls BLAS. at: the words for an array, and for where it begins."""
        n, k, m = self.sizes
        indent, pair = "", ""
        if self.count > 1:
            yield f"for pair in range({self.count}):"
            indent, pair = "    ", "pair"
        a_as, a_step = factor(self.a, n, k)
        b_as, b_step = factor(self.b, k, m)
        a, b, out = (begin(array, pair, *at(array.name)) for array in (self.a, self.b, self.out))
        how = f"{BY_ROWS}, {a_as}, {b_as}, {n}, {m}, {k}"
        yield f"{indent}{word}({how}, 1.0, {a}, {a_step}, {b}, {b_step}, 0.0, {out}, {m})"

    @staticmethod
    def known(dtype: str) -> bool:
        """Whether BLAS is there for a dtype."""
        return gemm(dtype) is not None


def factor(array: Array, rows: int, columns: int) -> tuple[int, int]:
    """Returns how a matrix lies, in C's words, and how far apart its rows are, or its columns."""
    _, down, across = array.strides
    by_rows = (across == 1 or columns == 1) and (down >= columns or rows == 1)
    return (AS_IT_IS, max(down, columns)) if by_rows else (TRANSPOSED, max(across, rows))


def begin(array: Array, pair: str, name: str, at: str) -> str:
    """The part of an array from a matrix on."""
    terms = [at, str(array.offset), f"{pair} * {array.strides[0]}" if pair else "0"]
    return f"{name}[{' + '.join(term for term in terms if term != '0') or '0'} :]"
