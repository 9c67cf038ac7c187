"""Samples of losses, and of the distances that they are made of."""

from __future__ import annotations

from itertools import product

import numpy as np

from ..op_info import FLOATS
from .common import (
    NOT_BROADCASTABLE,
    call,
    calls,
    d,
    entries,
    fixed,
    given,
    later,
    quiet,
    table,
    whole,
    x,
)

NONE, MEAN, SUM = 0, 1, 2
REDUCTIONS = (NONE, MEAN, SUM)
IGNORED = -100


def shrunk(losses, reduction=MEAN, total=None):
    """Reduces the losses; a weighted mean divides by the total weight."""
    if reduction == NONE:
        return losses
    with np.errstate(all="ignore"):
        return losses.sum() / (1 if reduction == SUM else losses.size if total is None else total)


def per_reduction(body):
    return calls(*map(body, REDUCTIONS))


# --- negative log likelihood, cross entropy ---------------------------------------------------------------------------


def likelihoods(*shape):
    """Log-probabilities of shape (N, C, ...), with targets, of which one is ignored, and weights."""

    def samples(make):
        for reduction in REDUCTIONS:
            weight = make(shape[1], low=0.5, high=2).detach() if reduction else None
            target = make.index(shape[0], *shape[2:], below=shape[1])
            target.reshape(-1)[0].fill_(IGNORED)
            yield from call(x(*shape, low=-4, high=-0.5), target, weight, reduction, IGNORED)(make)

    return samples


def weights_of(target, weight, dtype):
    weights = np.ones(target.shape, dtype) if weight is None else weight[np.where(target == IGNORED, 0, target)]
    return np.where(target == IGNORED, 0, weights)


def nll_and_total(x, target, weight=None, reduction=MEAN, ignore_index=IGNORED):
    classes = 1 if x.ndim > 1 else 0
    place = np.expand_dims(np.where(target == IGNORED, 0, target), classes)  # what is ignored gets the first class
    weights = weights_of(target, weight, x.dtype)
    losses = -np.take_along_axis(x, place, classes).squeeze(classes) * weights
    total = weights.sum() if reduction != NONE or x.ndim == 1 else 0
    return shrunk(losses, reduction, weights.sum()), np.asarray(total, x.dtype)


def nll(*args):
    return nll_and_total(*args)[0]


def entropy(x, target, weight=None, reduction=MEAN, ignore_index=IGNORED, smoothing=0.0):
    classes = 1 if x.ndim > 1 else 0
    shifted = x - x.max(classes, keepdims=True, initial=-np.inf)
    logs = shifted - np.log(np.exp(shifted).sum(classes, keepdims=True))
    if target.dtype.kind == "f":
        return shrunk(-(logs * target).sum(classes), reduction)
    smooth = smoothing * shrunk(-logs.mean(classes), reduction) if smoothing else 0
    return (1 - smoothing) * nll(logs, target, weight, reduction, ignore_index) + smooth


IMAGES = likelihoods(2, 3, 2, 2)
VECTORS = calls(
    likelihoods(3, 4),
    [x(4, low=-4, high=-0.5), x.index(below=4), None, MEAN, IGNORED],
    [(0, 4), x.index(0, below=4), None, SUM, IGNORED],
)
ENTROPIES = calls(
    VECTORS,
    [(3, 4), x.index(3, below=4), None, MEAN, IGNORED, 0.2],
    [(2, 3), fixed(2, 3, low=0, high=1), None, MEAN, IGNORED, 0.0],
)
LIKELIHOODS = table(
    *entries("nll_loss_forward nll_loss", VECTORS, FLOATS),
    *entries("nll_loss2d_forward nll_loss2d", IMAGES, FLOATS),
    *entries("nll_loss_nd", calls(VECTORS, IMAGES), FLOATS),
    *entries("cross_entropy_loss", ENTROPIES, FLOATS),
    references={
        "nll_loss_forward nll_loss2d_forward": nll_and_total,
        "nll_loss nll_loss2d nll_loss_nd": nll,
        "cross_entropy_loss": entropy,
    },
    errors={
        "nll_loss_forward nll_loss cross_entropy_loss": {
            "IndexError: Target 4 is out of bounds.": [(2, 3), whole([4, 0]), None, MEAN, IGNORED]
        }
    },
)

# --- of pairs ---------------------------------------------------------------------------------------------------------


def pairs(*numbers, low=-3, high=4):
    """Two tensors, each reduction, and these numbers behind it."""
    to = {"low": low, "high": high}
    return calls(
        per_reduction(lambda reduction: [x(2, 3, **to), x(2, 3, **to), reduction, *numbers]),
        [x(**to), x(**to), MEAN, *numbers],
        [(0, 3), (0, 3), SUM, *numbers],
    )


def huber(self, target, reduction=MEAN, delta=1.0):
    size = np.abs(self - target)
    return shrunk(np.where(size <= delta, size**2 / 2, delta * (size - delta / 2)), reduction)


def binary(self, target, weight=None, reduction=MEAN):
    losses = -(target * np.log(self) + (1 - target) * np.log1p(-self))
    return shrunk(losses * (1 if weight is None else weight), reduction)


def binary_entropy(self, target, weight=None, pos_weight=None, reduction=MEAN):
    log = -np.log1p(np.exp(-self))
    losses = -(target * log * (1 if pos_weight is None else pos_weight) + (1 - target) * (log - self))
    return shrunk(losses * (1 if weight is None else weight), reduction)


def divergence(self, target, reduction=MEAN, log_target=False):
    losses = np.exp(target) * (target - self) if log_target else target * (np.log(target) - self)
    return shrunk(losses, reduction)


def poisson(input, target, log_input, full, eps, reduction):
    losses = np.exp(input) - target * input if log_input else input - target * np.log(input + eps)
    stirling = target * np.log(target) - target + 0.5 * np.log(2 * np.pi * target)
    return shrunk(losses + np.where((target <= 1) | (not full), 0, stirling), reduction)


@later
def signs(make, *shape):
    """1 and -1, in turn, in the dtype asked for."""
    return make.values(np.where(np.arange(np.prod(shape)) % 2, 1, -1).reshape(shape).tolist()).detach()


SHARE, WEIGHT = {"low": 0.1, "high": 0.9}, fixed(3, low=0.5, high=2)
SIGNED = calls(
    *(given((2, 3), (2, 3), then=lambda x, _, r=r: [x, signs(2, 3), r]) for r in REDUCTIONS),
    given((), (), then=lambda x, _: [x, signs(), MEAN]),
)
CHANCES = calls(
    per_reduction(lambda r: [x(2, 3, **SHARE), x(2, 3, **SHARE), None, r]),
    [x(**SHARE), x(**SHARE), None, MEAN],
    [(0, 3), (0, 3), None, SUM],
    given(WEIGHT, then=lambda weight: [x(2, 3, **SHARE), x(2, 3, **SHARE), weight, MEAN]),
)
TARGET = fixed(2, 3, low=0, high=1)
LOGITS = calls(
    per_reduction(lambda r: [(2, 3), TARGET, None, None, r]),
    given(WEIGHT, WEIGHT, then=lambda w, p: calls([(2, 3), TARGET, w, p, MEAN], [(2, 3), TARGET, None, p, NONE])),
)
COUNTS = per_reduction(
    lambda r: calls(
        [(2, 3), fixed(2, 3, low=0.5, high=4), True, r != NONE, 1e-8, r],
        [x(2, 3, low=0.5, high=2), fixed(2, 3, low=0, high=4), False, False, 1e-8, r],
    )
)
GOOD, BAD = x.values([0.5, 0.5]), x.values([0.5, 1.5])
PAIRS: dict = {
    "mse_loss": lambda self, target, reduction=MEAN: shrunk((self - target) ** 2, reduction),
    "l1_loss": lambda self, target, reduction=MEAN: shrunk(np.abs(self - target), reduction),
    "huber_loss": huber,
    "smooth_l1_loss": lambda self, target, reduction=MEAN, beta=1.0: huber(self, target, reduction, beta) / beta,
    "soft_margin_loss": lambda x, target, reduction=MEAN: shrunk(np.log1p(np.exp(-x * target)), reduction),
    "binary_cross_entropy": binary,
    "binary_cross_entropy_with_logits": binary_entropy,
    "kl_div": divergence,
    "poisson_nll_loss": poisson,
}
PAIR_LOSSES = table(
    *entries("mse_loss l1_loss", pairs(), FLOATS),
    *entries("huber_loss", pairs(1.5), FLOATS),
    *entries("smooth_l1_loss", pairs(0.5), FLOATS),
    *entries("soft_margin_loss", SIGNED, FLOATS),
    *entries("binary_cross_entropy", CHANCES, FLOATS),
    *entries("binary_cross_entropy_with_logits", LOGITS, FLOATS),
    *entries("kl_div", calls(pairs(low=0.1, high=1), call((2, 3), (2, 3), MEAN, log_target=True)), FLOATS),
    *entries("poisson_nll_loss", COUNTS, FLOATS),
    references=PAIRS,
    errors={
        "mse_loss": NOT_BROADCASTABLE,
        "huber_loss": {"huber_loss does not support non-positive values for delta.": [(2,), (2,), MEAN, 0.0]},
        "smooth_l1_loss": {"smooth_l1_loss does not support negative values for beta.": [(2,), (2,), MEAN, -1.0]},
        "binary_cross_entropy": {
            "all elements of input should be between 0 and 1": [BAD, GOOD],
            "all elements of target should be between 0 and 1": [GOOD, BAD],
        },
    },
)

# --- of the scores of classes -----------------------------------------------------------------------------------------


def multi_margin(x, target, p=1, margin=1, weight=None, reduction=MEAN):
    rows, labels = x.reshape(-1, x.shape[-1]), target.reshape(-1, 1)
    lacks = np.maximum(0, margin - np.take_along_axis(rows, labels, 1) + rows) ** p
    np.put_along_axis(lacks, labels, 0, 1)
    losses = lacks.sum(1) / rows.shape[1] * (1 if weight is None else weight[target.reshape(-1)])
    return shrunk(losses.reshape(target.shape), reduction)


def own_classes(labels):
    return [int(label) for label in labels[: np.argmax(np.append(labels, -1) < 0)]]


def multilabel(x, target, reduction=MEAN):
    """The margins that each own class lacks of a lead of 1 over each other one."""
    losses = []
    for row, labels in zip(x.reshape(-1, x.shape[-1]), target.reshape(-1, x.shape[-1]), strict=True):
        own = own_classes(labels)
        others = np.delete(row, own)
        losses.append(np.maximum(0, 1 - row[own][:, None] + others).sum() / len(row))
    return shrunk(np.array(losses, x.dtype).reshape(x.shape[:-1]), reduction)


def multilabel_and_marks(x, target, reduction):
    marks = np.zeros_like(x)
    for row, labels in zip(marks.reshape(-1, x.shape[-1]), target.reshape(-1, x.shape[-1]), strict=True):
        row[own_classes(labels)] = 1
    return multilabel(x, target, reduction), marks


def distance(x, y, p=2.0, eps=1e-6, keepdim=False):
    return (np.abs(x - y + eps) ** p).sum(-1, keepdims=keepdim) ** (1 / p)


def cosine(x, y, target, margin=0.0, reduction=MEAN):
    similar = (x * y).sum(-1) / np.sqrt((x * x).sum(-1) * (y * y).sum(-1))
    return shrunk(np.where(target == 1, 1 - similar, np.maximum(0, similar - margin)), reduction)


def triplet(a, p, n, margin=1.0, order=2.0, eps=1e-6, swap=False, reduction=MEAN):
    far = distance(a, n, order, eps)
    far = np.minimum(far, distance(p, n, order, eps)) if swap else far
    return shrunk(np.maximum(0, margin + distance(a, p, order, eps) - far), reduction)


def similarity(x, y, dim=1, eps=1e-8):
    x, y = np.broadcast_arrays(x, y)
    lengths = [np.maximum(np.sqrt((v * v).sum(dim, keepdims=True)), eps) for v in (x, y)]
    return (x / lengths[0] * (y / lengths[1])).sum(dim)


def class_weight(reduction):
    return fixed(4, low=0.5, high=2) if reduction else None


ONE_LABEL = calls(
    per_reduction(
        lambda r: given(class_weight(r), then=lambda w: [d(3, 4), x.index(3, below=4), 1 + r % 2, 1.2, w, r])
    ),
    [d(4), x.index(below=4), 1, 0.7],
    [(0, 4), x.index(0, below=4), 1, 1, None, SUM],
)
LABELS = [[3, 0, -1, 1], [-1, 1, 2, 3], [1, 2, 3, 0]]
SCORES = d(3, 4, step=0.37)
SOME_LABELS = calls(per_reduction(lambda r: [SCORES, whole(LABELS), r]), [d(4, step=0.37), whole(LABELS[0]), MEAN])
APART = x(2, 3, low=0.5)
TRIPLES = per_reduction(lambda r: [(2, 3), (2, 3), (2, 3), 3.0, 2.0, 1e-6, r == MEAN, r])
MARGIN_LOSSES = table(
    *entries("multi_margin_loss", ONE_LABEL, FLOATS),
    *entries("multilabel_margin_loss multilabel_margin_loss_forward", SOME_LABELS, FLOATS),
    *entries("margin_ranking_loss", per_reduction(lambda r: [(2, 3), (2, 3), signs(2, 3), 0.3, r]), FLOATS),
    *entries("hinge_embedding_loss", per_reduction(lambda r: [(2, 3), signs(2, 3), 0.3, r]), FLOATS),
    *entries("cosine_embedding_loss", per_reduction(lambda r: [APART, APART, signs(2), 0.3, r]), FLOATS),
    *entries("triplet_margin_loss", TRIPLES, FLOATS),
    *entries("pairwise_distance", calls([(2, 3), (2, 3)], [(3,), (3,), 3.0, 1e-6, True], [(2, 3), (3,), 1.0]), FLOATS),
    *entries("cosine_similarity", calls([(2, 3), (2, 3)], [(2, 3), (1, 3), 0, 1e-6], [(3,), (3,), 0]), FLOATS),
    references={
        "multi_margin_loss": multi_margin,
        "multilabel_margin_loss": multilabel,
        "multilabel_margin_loss_forward": multilabel_and_marks,
        "margin_ranking_loss": lambda x, y, target, margin=0.0, reduction=MEAN: shrunk(
            np.maximum(0, margin - target * (x - y)), reduction
        ),
        "hinge_embedding_loss": lambda x, target, margin=1.0, reduction=MEAN: shrunk(
            np.where(target == 1, x, np.maximum(0, margin - x)), reduction
        ),
        "cosine_embedding_loss": cosine,
        "triplet_margin_loss": triplet,
        "pairwise_distance": distance,
        "cosine_similarity": similarity,
    },
    errors={
        "multi_margin_loss": {
            "target out of range": [(2, 3), x.index(2, low=3, below=5)],
            "only p == 1 and p == 2 supported": [(2, 3), x.index(2, below=3), 3],
        },
        "cosine_embedding_loss": {
            "0D or 1D target tensor expected, multi-target not supported": [(2, 3), (2, 3), (2, 1)]
        },
        "triplet_margin_loss": {
            "expected to have the same number of dimensions, but got: anchor 2D, positive 1D, and negative 2D inputs": [
                *((2, 3), (3,), (2, 3))
            ]
        },
    },
    skips={
        "PyTorch has no derivative of it, either": "second_gradients: multi*; gradients: multi*_backward",
        "refused, as PyTorch does": "bfloat16: multi*",
    },
)

# --- ctc --------------------------------------------------------------------------------------------------------------


def spellings(make, *rest):
    """Every sequence of full length, so that PyTorch, too, fills all of alpha."""
    yield from calls(*([x(5, 2, 4, low=-2, high=-0.5), whole(one), [5, 5], [2, 2]] for one in SPELLED))(make)


def spelling_losses(make):
    for one in spellings(make):
        log_probs, labels, _, counts = one.arguments
        yield from per_reduction(lambda r: [log_probs, labels, [5, 3], counts, 0, r, r != NONE])(make)  # noqa: B023  # called at once


def by_tensors(samples, at=2):
    """The same, with tensors for the two lists of lengths."""

    def made(make):
        for one in samples(make):
            before, lists, after = one.arguments[:at], one.arguments[at : at + 2], one.arguments[at + 2 :]
            yield from call(*before, *map(whole, lists), *after)(make)

    return made


def spelled(path, blank):
    """The labels that a path spells: repetitions are one, blanks are nothing."""
    kept = [label for k, label in enumerate(path) if k == 0 or label != path[k - 1]]
    return [label for label in kept if label != blank]


@quiet
def ctc(x, targets, times, counts, blank=0, reduction=MEAN, zero_infinity=False):
    """By all paths."""
    losses = np.zeros(len(times), x.dtype)
    for b, (time, count) in enumerate(zip(times, counts, strict=True)):
        first = int(sum(counts[:b]))
        labels = targets[b, :count] if targets.ndim == 2 else targets[first : first + count]
        paths = [p for p in product(range(x.shape[2]), repeat=int(time)) if spelled(p, blank) == labels.tolist()]
        losses[b] = -np.log(sum(np.exp(sum(x[t, b, c] for t, c in enumerate(p))) for p in paths))
    losses = np.where(np.isinf(losses), 0, losses) if zero_infinity else losses
    return shrunk(losses / np.maximum(counts, 1) if reduction == MEAN else losses, reduction)


SPELLED = ([[1, 2], [3, 3]], [1, 2, 3, 3])
OF_TWO = whole([[1, 2], [3, 1]])
# As in PyTorch, the gradient is that for log probabilities that come from log_softmax, and only through it is it right:
# tests/nn/test_losses.py.
CTC = table(
    *entries("_ctc_loss", spellings, FLOATS),
    *entries("_ctc_loss.Tensor", by_tensors(spellings), FLOATS),
    *entries("ctc_loss.IntList", spelling_losses, FLOATS),
    *entries("ctc_loss.Tensor", by_tensors(spelling_losses), FLOATS),
    references={"ctc_loss": ctc},
    errors={
        "_ctc_loss": {
            "blank must be in label range": [(5, 2, 4), OF_TWO, [5, 5], [2, 2], 4],
            "input_lengths must be of size batch_size": [(5, 2, 4), OF_TWO, [5], [2, 2]],
            "IndexError: Target 4 is out of bounds.": [(5, 2, 4), whole([[1, 2], [3, 4]]), [5, 5], [2, 2]],
            "Expected input_lengths to have value at most 5, but got value 6": [(5, 2, 4), OF_TWO, [6, 5], [2, 2]],
        }
    },
    skips={
        "right behind log_softmax only": "gradients second_gradients: *ctc_loss *ctc_loss.*",
        "PyTorch has none, either": "gradients: *_backward*",
        "PyTorch has no derivative of it, either": "second_gradients: *_backward*",
        "refused, as PyTorch does": "bfloat16: *_backward*",
        "PyTorch has no meta kernel, either": "meta: *_backward*",
        "the result's shape depends on the values of the lengths": "meta: _ctc_loss.Tensor ctc_loss.Tensor",
    },
)

LOSSES = [*LIKELIHOODS, *PAIR_LOSSES, *MARGIN_LOSSES, *CTC]
