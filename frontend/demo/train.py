"""Training: batches, a loss, its gradients, a step against them; and a record of how it went.

Read next: tour.py, which looks inside one such step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import redispatch as rd

from .data import Split
from .model import Classifier, accuracy

BATCH = 64
LEARNING_RATE = 6e-3


@dataclass(slots=True)
class History:
    """What the picture draws: the loss of every step, and the held-out accuracy after every epoch."""

    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)


class Trainer:
    """A model with its optimizer, its data and its history."""

    def __init__(self, model: Classifier, train: Split, held_out: Split, seed: int = 0) -> None:
        self.model, self.train, self.held_out = model, train, held_out
        self.loss_of = rd.nn.CrossEntropyLoss()
        self.optimizer = rd.optim.Adam(model.parameters(), lr=LEARNING_RATE)
        self.order = np.random.default_rng(seed)
        self.history = History()

    def step(self, batch: Split, region: AbstractContextManager[Any] | None = None) -> float:
        """One step on one batch, its forward half inside `region`; the loss before the step."""
        self.optimizer.zero_grad()
        with region or nullcontext():
            loss = self.loss_of(self.model(batch.images), batch.labels)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def epoch(self, region: Callable[[], AbstractContextManager[Any]] = nullcontext) -> float:
        """Every training image once; the held-out accuracy afterwards."""
        for batch in self.train.batches(BATCH, self.order):
            self.history.losses.append(self.step(batch, region()))
        self.history.accuracies.append(accuracy(self.model, self.held_out))
        return self.history.accuracies[-1]

    def epochs(self, count: int) -> Iterator[float]:
        """The held-out accuracy after each of `count` epochs. The learning rate falls to zero on half a cosine."""
        for done in range(count):
            self.set_learning_rate(LEARNING_RATE * (1 + math.cos(math.pi * done / count)) / 2)
            yield self.epoch()

    def set_learning_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
