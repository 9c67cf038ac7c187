"""AdaptiveLogSoftmaxWithLoss: log probabilities of very many classes, of which few are frequent.

Classes are ordered by how often they occur. A *head* scores the most frequent ones, the shortlist, and each *cluster*
of rarer ones as a whole; within a cluster, a *tail* of lower rank scores its classes. A class of a cluster has the
probability of the cluster times that within it. Only the tails that a batch needs are computed.

Source: Grave et al., "Efficient softmax approximation for GPUs" (2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from redispatch.kernels.ops.shape import cat

from . import functional
from .containers import ModuleList, Sequential
from .linear import Linear
from .module import Module


class _ASMoutput(NamedTuple):
    output: Any
    loss: Any


class AdaptiveLogSoftmaxWithLoss(Module):
    """The log probability of the target of each sample, and the mean of their negatives.

    cutoffs: where each cluster begins; `div_value`: by how much the rank of each tail is lower than that of the one
    before. Shapes: input [n, in_features] and target [n], or both without n.
    Errors: ValueError for cutoffs that do not increase within the classes; RuntimeError for a target that is no class.
    """

    head: Any
    tail: Any

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        starts = list(cutoffs)
        if not starts:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        whole = all(int(start) == start for start in starts)
        if not whole or any(b <= a for a, b in pairwise([0, *starts, n_classes])):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*starts, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = starts[0]
        self.n_clusters = len(starts)
        self.head_size = self.shortlist_size + self.n_clusters
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList()
        for number, (low, high) in enumerate(pairwise(self.cutoffs)):
            rank = int(in_features // div_value ** (number + 1))
            down, up = Linear(in_features, rank, bias=False, **made), Linear(rank, high - low, bias=False, **made)
            self.tail.append(Sequential(down, up))

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        self.head.reset_parameters()
        for down, up in self.tail:
            down.reset_parameters()
            up.reset_parameters()

    def forward(self, input: Any, target: Any) -> _ASMoutput:
        if target.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if input.dim() != target.dim() + 1:
            raise RuntimeError(
                f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found inputs with "
                f"sizes {input.size()}."
            )
        alone = target.dim() == 0
        rows, labels = (input.unsqueeze(0), target.unsqueeze(0)) if alone else (input, target)
        if ((labels < 0) | (labels >= self.n_classes)).any():
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{labels.min().item()}, {labels.max().item()}] were found. "
            )
        head = functional.log_softmax(self.head(rows), dim=1)
        chosen = labels  # the column of the head that each target falls in
        within = head.new_zeros(labels.shape)
        for number, (low, high) in enumerate(pairwise(self.cutoffs)):
            inside = (labels >= low) & (labels < high)
            found = inside.nonzero().squeeze(1)
            if not found.numel():
                continue
            chosen = chosen.masked_fill(inside, self.shortlist_size + number)
            scores = functional.log_softmax(self.tail[number](rows.index_select(0, found)), dim=1)
            own = scores.gather(1, (labels.index_select(0, found) - low).unsqueeze(1))
            within = within.index_copy(0, found, own.squeeze(1))
        output = head.gather(1, chosen.unsqueeze(1)).squeeze(1) + within
        return _ASMoutput(output.squeeze(0) if alone else output, (-output).mean())

    def log_prob(self, input: Any) -> Any:
        """The log probabilities of all classes, [n, n_classes]."""
        head = functional.log_softmax(self.head(input), dim=1)
        parts = [head[:, : self.shortlist_size]]
        for number, tail in enumerate(self.tail):
            cluster = head[:, self.shortlist_size + number].unsqueeze(1)
            parts.append(functional.log_softmax(tail(input), dim=1) + cluster)
        return cat(parts, dim=1)

    def predict(self, input: Any) -> Any:
        """The most probable class of each sample."""
        return self.log_prob(input).argmax(dim=1)
