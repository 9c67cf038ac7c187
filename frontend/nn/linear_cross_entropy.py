"""`linear_cross_entropy` in chunks: the scores of some rows at a time, which are computed again for the gradient.

The scores of a batch over a large vocabulary are many times as large as the input. `LinearCrossEntropyOptions` says how
many rows are a chunk. Read next: loss.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from redispatch.autograd import Function, enable_grad, grad
from redispatch.dispatch import STATE
from redispatch.dispatch.autograd import once_differentiable
from redispatch.dispatch.tensor import Tensor, dtypes
from redispatch.kernels.ops import linalg
from redispatch.kernels.ops.shape import cat

ACC_DTYPES = (None, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)


@dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """The way in which `linear_cross_entropy` goes through its rows.

    batch_chunk_size: the rows of a chunk; all, by default. chunking_method: "aspect_ratio", as many as make the scores
    of a chunk no larger than the input, "aspect_ratio:N", an N-th of that, "auto", which is one of them, or None. The
    other fields are PyTorch's, for gradients that are formed in advance: here they are formed when they are asked for,
    in the dtype of the input, and as often.
    Errors: ValueError for other values.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.acc_policy not in ("auto", "accurate", "balanced", "compact"):
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method not in (None, "auto"):
            name, colon, factor = str(self.chunking_method).partition(":")
            if name != "aspect_ratio" or colon and not (factor.isdigit() and int(factor)):
                raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        rows = self.batch_chunk_size
        if rows is not None and not (isinstance(rows, int) and rows > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {rows!r}")
        if self.acc_dtype not in ACC_DTYPES:
            raise ValueError(
                "acc_dtype must be one of {None, torch.float16, torch.bfloat16, torch.float32, torch.float64}, got "
                f"{self.acc_dtype!r}. Pass acc_dtype=None to let the op pick automatically."
            )

    def rows(self, count: int, features: int, classes: int) -> int:
        """Returns how many of so many rows are a chunk. Errors: ValueError where two fields say two numbers."""
        method, given = self.chunking_method, self.batch_chunk_size
        if method == "auto":
            method = "aspect_ratio:2" if given is None else None
        if method is None:
            return max(1, count if given is None else min(given, count))
        wanted = -(-count // -(-classes // features))
        found = min((1 << (wanted - 1).bit_length()) // int(method.partition(":")[2] or 1), count)
        if given is not None and min(given, count) != found:
            raise ValueError(
                f"batch_chunk_size (={given}) and chunking_method ('{method}') give different chunk sizes ({given} vs "
                f"{found}); pass only one."
            )
        return max(1, found)


class Chunk(Function):
    """The losses of some rows. Their scores are computed twice, and kept by none."""

    @staticmethod
    def forward(ctx: Any, loss: Any, targets: Tensor, *given: Any) -> Tensor:
        """Returns `loss(scores, targets)`; `given` are the rows, the weight of the linear layer, and its bias."""
        ctx.loss = loss
        ctx.save_for_backward(targets, *given)
        return loss(linalg.linear(*given), targets)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Any) -> Any:
        targets, *given = ctx.saved_tensors
        needs = ctx.needs_input_grad[2:]
        leaves = [x if x is None else x.detach().requires_grad_(need) for x, need in zip(given, needs, strict=True)]
        with enable_grad():
            losses = ctx.loss(linalg.linear(*leaves), targets)
        wanted = [x for x, need in zip(leaves, needs, strict=True) if need]
        found = iter(grad(losses, wanted, grad_output))
        return None, None, *(next(found) if need else None for need in needs)


def loss_in_chunks(
    loss: Any, input: Tensor, linear_weight: Tensor, linear_bias: Tensor | None, target: Tensor, options: Any
) -> Tensor:
    """Returns `loss(scores, target)`, which has an element for each row, chunk by chunk."""
    size = options.rows(*input.shape, linear_weight.shape[0])
    chunks = zip(input.split(size), target.split(size), strict=True)
    state = STATE.get()
    if state.levels or state.dual_level:  # a transform, or a tangent, goes through the operators
        return cat([loss(linalg.linear(rows, linear_weight, linear_bias), targets) for rows, targets in chunks])
    return cat([Chunk.apply(loss, targets, rows, linear_weight, linear_bias) for rows, targets in chunks])
