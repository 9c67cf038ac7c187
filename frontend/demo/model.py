"""The model: two linear layers with an activation between them.

64 pixels -> 128 hidden units -> 10 scores, one for each digit; the highest score is the answer.
Read next: train.py.
"""

from __future__ import annotations

import redispatch as rd

from .activation import swish
from .data import SIDE, Split

CLASSES = 10


class Classifier(rd.nn.Module):
    """f32[n, 64] -> f32[n, 10]."""

    def __init__(self, hidden: int = 128) -> None:
        super().__init__()
        self.hidden = rd.nn.Linear(SIDE * SIDE, hidden)
        self.output = rd.nn.Linear(hidden, CLASSES)

    def forward(self, images: rd.Tensor) -> rd.Tensor:
        return self.output(swish(self.hidden(images)))


def predictions(model: rd.nn.Module, images: rd.Tensor) -> rd.Tensor:
    """i64[n]: the digit that the model takes each image for."""
    with rd.inference_mode():
        return model(images).argmax(1)


def accuracy(model: rd.nn.Module, split: Split) -> float:
    """The part of the images that the model gets right, from 0 to 1."""
    right = predictions(model, split.images) == split.labels
    return right.sum().item() / len(split)
