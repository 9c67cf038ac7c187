"""Samples of kernels/ops/margin_losses.py and ctc.py, and of the distances that losses are made of."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from redispatch.dispatch import ops

from ..op_info import FLOATS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .common import quiet
from .loss import MEAN, NONE, SUM, shrunk
from .pair_losses import signs

# --- of the scores of classes -----------------------------------------------------------------------------------------


def one_label(make: Maker) -> Iterator[SampleInput]:
    for reduction in (NONE, MEAN, SUM):
        weight = make(4, low=0.5, high=2).detach() if reduction else None
        yield sample(make.distinct(3, 4), make.index(3, below=4), 1 + reduction % 2, 1.2, weight, reduction)
    yield sample(make.distinct(4), make.index(below=4), 1, 0.7)
    yield sample(make(0, 4), make.index(0, below=4), 1, 1, None, SUM)


def multi_margin(x: Any, target: Any, p: Any = 1, margin: Any = 1, weight: Any = None, reduction: int = MEAN) -> Any:
    rows, labels = x.reshape(-1, x.shape[-1]), target.reshape(-1, 1)
    lacks = np.maximum(0, margin - np.take_along_axis(rows, labels, 1) + rows) ** p
    np.put_along_axis(lacks, labels, 0, 1)
    losses = lacks.sum(1) / rows.shape[1]
    losses = losses if weight is None else losses * weight[target.reshape(-1)]
    return shrunk(losses.reshape(target.shape), reduction)


def one_label_gradients(make: Maker) -> Iterator[SampleInput]:
    for reduction in (NONE, MEAN, SUM):
        weight = make(4, low=0.5, high=2).detach() if reduction else None
        grad, target = make(3) if reduction == NONE else make(), make.index(3, below=4)
        yield sample(grad, make.distinct(3, 4).detach(), target, 1 + reduction % 2, 1.2, weight, reduction)


def multi_margin_gradient(
    grad: Any, x: Any, target: Any, p: Any, margin: Any, weight: Any = None, reduction: int = MEAN
) -> Any:
    labels = target.reshape(-1, 1)
    lacks = np.maximum(0, margin - np.take_along_axis(x, labels, 1) + x)
    slopes = (lacks > 0) * (1 if p == 1 else 2 * lacks) / x.shape[1]
    np.put_along_axis(slopes, labels, 0, 1)
    np.put_along_axis(slopes, labels, -slopes.sum(1, keepdims=True), 1)
    slopes = slopes if weight is None else slopes * weight[labels]
    return slopes * np.broadcast_to(grad, target.shape)[:, None] / (len(x) if reduction == MEAN else 1)


def bad_label(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample(make(2, 3), make.index(2, low=3, below=5)), RuntimeError, "target out of range")
    yield ErrorInput(sample(make(2, 3), make.index(2, below=3), 3), RuntimeError, "only p == 1 and p == 2 supported")


LABELS = [[3, 0, -1, 1], [-1, 1, 2, 3], [1, 2, 3, 0]]


def some_labels(make: Maker) -> Iterator[SampleInput]:
    integer = make.index(1, below=2).dtype
    for reduction in (NONE, MEAN, SUM):
        yield sample(make.distinct(3, 4, step=0.37), make.values(LABELS, integer), reduction)
    yield sample(make.distinct(4, step=0.37), make.values(LABELS[0], integer), MEAN)


def some_label_gradients(make: Maker) -> Iterator[SampleInput]:
    integer = make.index(1, below=2).dtype
    marks = make.values([[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1]]).detach()
    for reduction in (NONE, MEAN, SUM):
        grad = make(3) if reduction == NONE else make()
        yield sample(grad, make.distinct(3, 4, step=0.37).detach(), make.values(LABELS, integer), reduction, marks)


def own_classes(labels: Any) -> list[int]:
    found = []
    for label in labels:
        if label < 0:
            break
        found.append(int(label))
    return found


def pressing(x: Any, labels: Any) -> Iterator[tuple[int, int, Any]]:
    """(own class, another class, how much the one lacks of a lead of 1 over the other)"""
    own = own_classes(labels)
    for y, j in product(own, range(len(x))):
        if j not in own:
            yield y, j, max(0, 1 - x[y] + x[j])


def multilabel(x: Any, target: Any, reduction: int = MEAN) -> Any:
    rows, labels = x.reshape(-1, x.shape[-1]), target.reshape(-1, x.shape[-1])
    pairs = zip(rows, labels, strict=True)
    losses = np.array([sum(lack for *_, lack in pressing(*pair)) / rows.shape[1] for pair in pairs], x.dtype)
    return shrunk(losses.reshape(x.shape[:-1]), reduction)


def multilabel_and_marks(x: Any, target: Any, reduction: int) -> Any:
    marks = np.zeros_like(x)
    for row, labels in zip(marks.reshape(-1, x.shape[-1]), target.reshape(-1, x.shape[-1]), strict=True):
        row[own_classes(labels)] = 1
    return multilabel(x, target, reduction), marks


def multilabel_gradient(grad: Any, x: Any, target: Any, reduction: int, is_target: Any) -> Any:
    slopes = np.zeros_like(x)
    for i, labels in enumerate(target):
        for y, j, lack in pressing(x[i], labels):
            slopes[i, y] -= lack > 0
            slopes[i, j] += lack > 0
    share = 1 / len(x) if reduction == MEAN else 1
    return slopes / x.shape[1] * share * np.broadcast_to(grad, len(x))[:, None]


# --- of pairs and triples ---------------------------------------------------------------------------------------------


def ranked(make: Maker) -> Iterator[SampleInput]:
    for reduction in (NONE, MEAN, SUM):
        x = make(2, 3)
        yield sample(x, make(2, 3), signs(make, x), 0.3, reduction)


def hinged(make: Maker) -> Iterator[SampleInput]:
    for reduction in (NONE, MEAN, SUM):
        x = make(2, 3)
        yield sample(x, signs(make, x), 0.3, reduction)


def turned(make: Maker) -> Iterator[SampleInput]:
    for reduction in (NONE, MEAN, SUM):
        x = make(2, 3, low=0.5)
        yield sample(x, make(2, 3, low=0.5), signs(make, x[:, 0]), 0.3, reduction)


def triples(make: Maker) -> Iterator[SampleInput]:
    for reduction in (NONE, MEAN, SUM):
        yield sample(make(2, 3), make(2, 3), make(2, 3), 3.0, 2.0, 1e-6, reduction == MEAN, reduction)


def ranking(x: Any, y: Any, target: Any, margin: float = 0.0, reduction: int = MEAN) -> Any:
    return shrunk(np.maximum(0, margin - target * (x - y)), reduction)


def hinge(x: Any, target: Any, margin: float = 1.0, reduction: int = MEAN) -> Any:
    return shrunk(np.where(target == 1, x, np.maximum(0, margin - x)), reduction)


def cosine(x: Any, y: Any, target: Any, margin: float = 0.0, reduction: int = MEAN) -> Any:
    similar = (x * y).sum(-1) / np.sqrt((x * x).sum(-1) * (y * y).sum(-1))
    return shrunk(np.where(target == 1, 1 - similar, np.maximum(0, similar - margin)), reduction)


def distance(x: Any, y: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    return (np.abs(x - y + eps) ** p).sum(-1, keepdims=keepdim) ** (1 / p)


def triplet(
    a: Any, p: Any, n: Any, margin: float = 1.0, order: float = 2.0, eps: float = 1e-6, swap: bool = False,
    reduction: int = MEAN,
) -> Any:  # fmt: skip
    far = distance(a, n, order, eps)
    far = np.minimum(far, distance(p, n, order, eps)) if swap else far
    return shrunk(np.maximum(0, margin + distance(a, p, order, eps) - far), reduction)


def needs_vectors(make: Maker) -> Iterator[ErrorInput]:
    text = "0D or 1D target tensor expected, multi-target not supported"
    yield ErrorInput(sample(make(2, 3), make(2, 3), make(2, 1)), RuntimeError, text)


def needs_equal_dims(make: Maker) -> Iterator[ErrorInput]:
    text = "expected to have the same number of dimensions, but got: anchor 2D, positive 1D, and negative 2D inputs"
    yield ErrorInput(sample(make(2, 3), make(3), make(2, 3)), RuntimeError, text)


def distances(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), make(2, 3))
    yield sample(make(3), make(3), 3.0, 1e-6, True)
    yield sample(make(2, 3), make(3), 1.0)


def angles(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), make(2, 3))
    yield sample(make(2, 3), make(1, 3), 0, 1e-6)
    yield sample(make(3), make(3), 0)


def similarity(x: Any, y: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    x, y = np.broadcast_arrays(x, y)
    lengths = [np.maximum(np.sqrt((v * v).sum(dim, keepdims=True)), eps) for v in (x, y)]
    return (x / lengths[0] * (y / lengths[1])).sum(dim)


# --- ctc --------------------------------------------------------------------------------------------------------------


def spellings(make: Maker) -> Iterator[SampleInput]:
    """Every sequence of full length, so that PyTorch, too, fills all of alpha."""
    integer = make.index(1, below=2).dtype
    for labels, counts in (([[1, 2], [3, 3]], [2, 2]), ([1, 2, 3, 3], [2, 2])):
        x = make(5, 2, 4, low=-2, high=-0.5)
        yield sample(x, make.values(labels, integer), [5, 5], counts)


def spellings_by_tensors(make: Maker) -> Iterator[SampleInput]:
    integer = make.index(1, below=2).dtype
    for s in spellings(make):
        x, labels, times, counts = s.arguments
        yield sample(x, labels, make.values(times, integer), make.values(counts, integer))


def spelling_losses(make: Maker) -> Iterator[SampleInput]:
    for s in spellings(make):
        for reduction in (NONE, MEAN, SUM):
            x, labels, _, counts = s.arguments
            yield sample(x, labels, [5, 3], counts, 0, reduction, reduction != NONE)


def spelling_losses_by_tensors(make: Maker) -> Iterator[SampleInput]:
    integer = make.index(1, below=2).dtype
    for s in spelling_losses(make):
        x, labels, times, counts, *rest = s.arguments
        yield sample(x, labels, make.values(times, integer), make.values(counts, integer), *rest)


def squeezed(path: Any, blank: int) -> list[int]:
    """What a path spells: repetitions are one, blanks are nothing."""
    kept = [label for k, label in enumerate(path) if k == 0 or label != path[k - 1]]
    return [label for label in kept if label != blank]


def ctc_each(x: Any, targets: Any, times: Any, counts: Any, blank: int) -> Any:
    """By all paths."""
    losses = []
    for b, (time, count) in enumerate(zip(times, counts, strict=True)):
        first = int(sum(counts[:b]))
        labels = targets[b, :count] if targets.ndim == 2 else targets[first : first + count]
        paths = [p for p in product(range(x.shape[2]), repeat=int(time)) if squeezed(p, blank) == labels.tolist()]
        chances = [np.exp(sum(x[t, b, c] for t, c in enumerate(p))) for p in paths]
        losses.append(-np.log(sum(chances)))
    return np.array(losses, x.dtype)


@quiet
def ctc(
    x: Any, targets: Any, times: Any, counts: Any, blank: int = 0, reduction: int = MEAN, zero_infinity: bool = False
) -> Any:
    losses = ctc_each(x, targets, times, counts, blank)
    losses = np.where(np.isinf(losses), 0, losses) if zero_infinity else losses
    return shrunk(losses / np.maximum(counts, 1) if reduction == MEAN else losses, reduction)


def ctc_backward_samples(make: Maker) -> Iterator[SampleInput]:
    for s in spellings(make):
        x, labels, times, counts = s.arguments
        losses, alpha = ops.aten._ctc_loss.default(x.detach(), labels, times, counts)
        yield sample(make(2).detach(), x.detach(), labels, times, counts, losses, alpha, 0)


def ctc_backward_samples_by_tensors(make: Maker) -> Iterator[SampleInput]:
    integer = make.index(1, below=2).dtype
    for s in ctc_backward_samples(make):
        grad, x, labels, times, counts, *rest = s.arguments
        yield sample(grad, x, labels, make.values(times, integer), make.values(counts, integer), *rest)


def bad_blank(make: Maker) -> Iterator[ErrorInput]:
    integer = make.index(1, below=2).dtype
    labels = make.values([[1, 2], [3, 1]], integer)
    yield ErrorInput(sample(make(5, 2, 4), labels, [5, 5], [2, 2], 4), RuntimeError, "blank must be in label range")
    few = "input_lengths must be of size batch_size"
    yield ErrorInput(sample(make(5, 2, 4), labels, [5], [2, 2]), RuntimeError, few)
    far = make.values([[1, 2], [3, 4]], integer)
    yield ErrorInput(sample(make(5, 2, 4), far, [5, 5], [2, 2]), IndexError, "Target 4 is out of bounds.")
    long = "Expected input_lengths to have value at most 5, but got value 6"
    yield ErrorInput(sample(make(5, 2, 4), labels, [6, 5], [2, 2]), RuntimeError, long)


# As in PyTorch, the gradient is that for log probabilities that come from log_softmax, and only through it is it right:
# tests/ops/test_losses.py.
UNNORMALISED = {name: "right behind log_softmax only" for name in ("gradients", "second_gradients")}
NARROW = {"bfloat16": "refused, as PyTorch does"}
NO_SECOND = {"second_gradients": "PyTorch has no derivative of it, either", **NARROW}
NO_FIRST = {"gradients": "PyTorch has none, either", **NO_SECOND}
NO_META = {"meta": "PyTorch has no meta kernel, either"}
BY_VALUE = {"meta": "the result's shape depends on the values of the lengths"}

MARGIN_LOSSES = [
    OpInfo("multi_margin_loss", one_label, multi_margin, FLOATS, errors=bad_label, skips=NO_SECOND),
    OpInfo("multi_margin_loss_backward", one_label_gradients, multi_margin_gradient, FLOATS, skips=NO_FIRST),
    OpInfo("multilabel_margin_loss", some_labels, multilabel, FLOATS, skips=NO_SECOND),
    OpInfo("multilabel_margin_loss_forward", some_labels, multilabel_and_marks, FLOATS, skips=NO_SECOND),
    OpInfo("multilabel_margin_loss_backward", some_label_gradients, multilabel_gradient, FLOATS, skips=NO_FIRST),
    OpInfo("margin_ranking_loss", ranked, ranking, FLOATS),
    OpInfo("hinge_embedding_loss", hinged, hinge, FLOATS),
    OpInfo("cosine_embedding_loss", turned, cosine, FLOATS, errors=needs_vectors),
    OpInfo("triplet_margin_loss", triples, triplet, FLOATS, errors=needs_equal_dims),
    OpInfo("pairwise_distance", distances, distance, FLOATS),
    OpInfo("cosine_similarity", angles, similarity, FLOATS),
    OpInfo("_ctc_loss", spellings, None, FLOATS, skips=UNNORMALISED, errors=bad_blank),
    OpInfo("_ctc_loss.Tensor", spellings_by_tensors, None, FLOATS, skips={**UNNORMALISED, **BY_VALUE}),
    OpInfo("_ctc_loss_backward", ctc_backward_samples, None, FLOATS, skips={**NO_FIRST, **NO_META}),
    OpInfo("_ctc_loss_backward.Tensor", ctc_backward_samples_by_tensors, None, FLOATS, skips={**NO_FIRST, **NO_META}),
    OpInfo("ctc_loss.IntList", spelling_losses, ctc, FLOATS, skips=UNNORMALISED),
    OpInfo("ctc_loss.Tensor", spelling_losses_by_tensors, ctc, FLOATS, skips={**UNNORMALISED, **BY_VALUE}),
]
