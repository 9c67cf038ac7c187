"""Embedding and EmbeddingBag: rows of a table, picked by number, one by one or by bags."""

from __future__ import annotations

from typing import Any, Self

from redispatch.autograd import no_grad
from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.declare.overridable import overridable_function
from redispatch.kernels.ops import creation, ranges
from redispatch.kernels.ops import embedding as embeddings

from . import init
from .derived import functional, unusual
from .module import Module
from .parameter import Parameter

embedding = embeddings.functional_embedding


class _Table(Module):
    """Rows of `embedding_dim` numbers, drawn from the standard normal distribution; zeros in that of the padding."""

    weight: Any
    padding_idx: int | None
    _called = "padding_idx"  # in errors

    def _make(
        self, rows: int, columns: int, padding_idx: int | None, max_norm: Any, norm_type: Any, by_freq: Any
    ) -> None:
        if padding_idx is not None:
            if not -rows <= padding_idx < rows:
                raise AssertionError(f"{self._called} must be within num_embeddings")
            padding_idx %= rows
        self.num_embeddings, self.embedding_dim, self.padding_idx = rows, columns, padding_idx
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, by_freq

    def _fill(self, given: Any, device: Any, dtype: Any, requires_grad: bool = True) -> None:
        """Takes the given table, or draws one."""
        size = (self.num_embeddings, self.embedding_dim)
        table = creation.empty(size, device=device, dtype=dtype) if given is None else given
        self.weight = Parameter(table, requires_grad)
        if given is None:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the table anew."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)


class Embedding(_Table):
    """The rows of `weight` with the numbers in the input. The row `padding_idx` starts as zeros and is not trained.

    Shapes: any shape of integers -> that shape and embedding_dim; `weight` (num_embeddings, embedding_dim), drawn from
    the standard normal distribution.
    Errors: AssertionError, as in PyTorch, for a `padding_idx` outside the table; IndexError, when called, for a number
    outside it.
    """

    _called = "Padding_idx"

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._make(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq)
        self.sparse = sparse
        self._fill(_weight, device, dtype, not _freeze)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Any,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:
        """A layer whose table is `embeddings`, a 2-d tensor; it is trained unless `freeze`."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        options = (padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        return cls(rows, columns, *options, _weight=embeddings, _freeze=freeze)

    def forward(self, input: Any) -> Any:
        return functional.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        usual = {"padding_idx": None, "max_norm": None, "norm_type": 2, "scale_grad_by_freq": False, "sparse": False}
        return f"{self.num_embeddings}, {self.embedding_dim}{unusual(self, **usual)}"


MODES = ("sum", "mean", "max")


@overridable_function
def embedding_bag(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """For each bag of row numbers, the sum, mean or maximum of the rows of `weight`: [bags, columns].

    The bags are the rows of a 2-d `input`, or parts of a 1-d one that begin at `offsets`. The row `padding_idx` counts
    nowhere; `per_sample_weights` multiply the rows of a sum; with `max_norm`, the rows that are looked up are first
    scaled down, in `weight` itself.

    Errors: ValueError for shapes and modes that do not go together; NotImplementedError for weighted means.
    """
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
            f"same shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        offsets = ranges.arange(0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
        input = input.reshape(-1)
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if not isinstance(offsets, Tensor):
            raise ValueError(f"offsets has to be a 1D Tensor but got {offsets}")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if mode not in MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if max_norm is not None:
        ops.aten.embedding_renorm_.default(weight.detach(), input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}')."
        )
    options = (scale_grad_by_freq, MODES.index(mode), sparse, per_sample_weights, include_last_offset, padding_idx)
    return ops.aten.embedding_bag.padding_idx(weight, input, offsets, *options)[0]


class EmbeddingBag(_Table):
    """For each bag of row numbers, the sum, mean or maximum of the rows of `weight`. The row `padding_idx` starts as
    zeros, counts nowhere and is not trained.

    Shapes: (bags, each), or (numbers) with the offsets at which the bags begin -> (bags, embedding_dim); `weight`
    (num_embeddings, embedding_dim), drawn from the standard normal distribution.
    Errors: those of functional.embedding_bag, when called.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._make(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq)
        self.mode, self.sparse, self.include_last_offset = mode, sparse, include_last_offset
        if _weight is not None and list(_weight.shape) != [num_embeddings, embedding_dim]:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self._fill(_weight, device, dtype)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Any,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Self:
        """A layer whose table is `embeddings`, a 2-d tensor; it is trained unless `freeze`."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        options = (max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings, include_last_offset, padding_idx)
        layer = cls(rows, columns, *options)
        layer.weight.requires_grad = not freeze
        return layer

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        return functional.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        others = unusual(self, max_norm=None, norm_type=2, scale_grad_by_freq=False)
        return (
            f"{self.num_embeddings}, {self.embedding_dim}{others}, mode={self.mode!r}{unusual(self, padding_idx=None)}"
        )
