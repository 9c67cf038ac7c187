"""The training: the digits, the model, the loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np

import redispatch as rd
from redispatch.library import custom_op
from redispatch.modes.flop_counter import register_flop_formula

# --- The data: 1,797 handwritten digits, scanned by NIST and shrunk to 8 x 8 pixels with 17 grey levels ---------------
#
# scikit-learn brings them as a file inside its package, so nothing is downloaded. A fifth of them is held out, always
# the same fifth, and never seen in training.
#
# Source: E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository, 1998.

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


# --- An operator of our own, in four registrations: what it computes, its metadata, its derivative, its cost ----------
#
# `swish(x) = x * sigmoid(x)` is a smooth relative of relu. A decorator makes an operator of a Python function, here one
# around a numba loop; from then on it is an operator like any other: modes see it, subclasses pass through it, autocast
# casts for it, autograd differentiates it.
#
# Source: P. Ramachandran, B. Zoph and Q. V. Le, "Searching for Activation Functions", 2017; tests/demo compares it with
# its definition and its derivative with differences.


@numba.njit(nogil=True)
def swish_loop(x: np.ndarray, out: np.ndarray) -> None:
    """out[i] = x[i] / (1 + exp(-x[i])), over flat arrays: one pass where the definition would take three."""
    for i in range(x.size):
        out[i] = x[i] / (1 + math.exp(-x[i]))


@custom_op("demo::swish", mutates_args=())
def swish(x: rd.Tensor) -> rd.Tensor:
    """x * sigmoid(x), elementwise.

    Shapes: any; the result is contiguous, with the shape of `x`. Dtypes: float32, float64.
    """
    flat = np.ascontiguousarray(x.detach().numpy()).reshape(-1)
    out = np.empty_like(flat)
    swish_loop(flat, out)
    return rd.from_numpy(out.reshape(x.shape))


@swish.register_fake
def swish_fake(x: rd.Tensor) -> rd.Tensor:
    """Returns a tensor without data, with the metadata of the result."""
    return rd.empty(x.shape, dtype=x.dtype, device=x.device)


@swish.register_kernel("cuda")
def swish_on_cuda(x: rd.Tensor) -> rd.Tensor:
    """The definition: a numba loop does not run on a GPU."""
    return x * x.sigmoid()


def keep_input(ctx: Any, inputs: tuple[rd.Tensor], output: rd.Tensor) -> None:
    (x,) = inputs
    ctx.save_for_backward(x)


def swish_backward(ctx: Any, grad_output: rd.Tensor) -> rd.Tensor:
    """With s = sigmoid(x): swish' = s + x·s·(1 - s). Written in operators, so that it can be differentiated again."""
    (x,) = ctx.saved_tensors
    s = x.sigmoid()
    return grad_output * (s + x * s * (1 - s))


swish.register_autograd(swish_backward, setup_context=keep_input)
swish.register_autocast("cpu", rd.float32)  # the numba loop knows no bfloat16


@register_flop_formula(rd.ops.demo.swish)
def swish_flops(x_shape: tuple[int, ...], **kwargs: Any) -> int:
    """For each element: a sign, exp, an addition and a division."""
    return 4 * math.prod(x_shape)


# --- The model: two linear layers with an activation between them -----------------------------------------------------
#
# 64 pixels -> 128 hidden units -> 10 scores, one for each digit; the highest score is the answer.

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


# --- Training: batches, a loss, its gradients, a step against them; and a record of how it went -----------------------

BATCH = 64
LEARNING_RATE = 6e-3


@dataclass(slots=True)
class History:
    """The numbers of the picture: the loss of every step, and the held-out accuracy after every epoch."""

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
