"""The data: 1,797 handwritten digits, scanned by NIST and shrunk to 8 x 8 pixels with 17 grey levels.

scikit-learn brings them as a file inside its package, so nothing is downloaded. A fifth of them is held out, always the
same fifth, and never seen in training.

Source: E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository, 1998.
Read next: activation.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import redispatch as rd

SIDE = 8  # pixels along each edge
DARKEST = 16.0  # a pixel counts how many of the 4 x 4 dots under it were inked


class MissingExtra(Exception):
    """Something that the demo needs, and the library does not, is not installed. The message says how to get it."""


@dataclass(frozen=True, slots=True)
class Split:
    """Images f32[n, 64] with values from 0 to 1, and their labels i64[n] from 0 to 9."""

    images: rd.Tensor
    labels: rd.Tensor

    def __len__(self) -> int:
        return self.images.shape[0]

    def first(self, n: int) -> Split:
        """The first n images."""
        return Split(self.images[:n], self.labels[:n])

    def batches(self, size: int, order: np.random.Generator) -> Iterator[Split]:
        """All images once, in a random order, `size` at a time; the last batch may be smaller."""
        shuffled = rd.from_numpy(order.permutation(len(self)))
        for start in range(0, len(self), size):
            chosen = shuffled[start : start + size]
            yield Split(self.images.index_select(0, chosen), self.labels.index_select(0, chosen))


def load_digits() -> tuple[Split, Split]:
    """The digits for training, and the fifth that is held out.

    Errors: MissingExtra where scikit-learn is not installed.
    """
    try:
        from sklearn import datasets  # an extra of the demo: the library itself runs without it
    except ImportError as problem:
        raise MissingExtra(
            f"The demo's digits come with scikit-learn, and that cannot be imported ({problem}).\n"
            "Install it with\n\n    pip install scikit-learn\n\n"
            "or run `make demo` in a checkout, which does so itself."
        ) from None
    digits = datasets.load_digits()
    order = np.random.default_rng(1797).permutation(len(digits.target))
    images = (digits.data[order] / DARKEST).astype(np.float32)
    labels = digits.target[order].astype(np.int64)
    held_out = len(labels) // 5
    return (
        Split(rd.from_numpy(images[held_out:]), rd.from_numpy(labels[held_out:])),
        Split(rd.from_numpy(images[:held_out]), rd.from_numpy(labels[:held_out])),
    )
