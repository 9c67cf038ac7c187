"""Embedding: rows of a table, picked by number."""

from __future__ import annotations

from typing import Any, Self

from redispatch.autograd import no_grad
from redispatch.ops import creation

from . import functional, init
from .module import Module
from .parameter import Parameter


class Embedding(Module):
    """The rows of `weight` with the numbers in the input. The row `padding_idx` starts as zeros and is not trained.

    Shapes: any shape of integers -> that shape and embedding_dim; `weight` (num_embeddings, embedding_dim), drawn from
    the standard normal distribution.
    Errors: AssertionError, as in PyTorch, for a `padding_idx` outside the table; IndexError, when called, for a number
    outside it.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
        *,
        _weight: Any = None,
        _freeze: bool = False,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("Padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        if _weight is None:
            table = creation.empty((num_embeddings, embedding_dim), device=device, dtype=dtype)
            self.weight = Parameter(table, not _freeze)
            self.reset_parameters()
        else:
            self.weight = Parameter(_weight, not _freeze)

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None) -> Self:
        """A layer whose table is `embeddings`, a 2-d tensor; it is trained unless `freeze`."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        return cls(rows, columns, padding_idx, _weight=embeddings, _freeze=freeze)

    def reset_parameters(self) -> None:
        """Draws the table anew."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input: Any) -> Any:
        return functional.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"
