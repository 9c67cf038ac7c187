"""PyTorch's private names for the nodes of its graph that no operator has made (`torch._C._functions`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redispatch.dispatch.autograd.accumulate import AccumulateGrad as AccumulateGrad
from redispatch.dispatch.autograd.function import Error as Error
from redispatch.dispatch.autograd.function import Function, tied_to
from redispatch.dispatch.autograd.history import CopySlices as CopySlices
from redispatch.dispatch.autograd.node import Node
from redispatch.dispatch.tensor import Size


class UndefinedGradBackward(Node):
    """Hands on no gradients."""

    def apply(self, gradients: list[Any], wanted: Sequence[bool] | None = None) -> Sequence[Any]:
        return [None] * len(self.next_edges)


class UndefinedGrad:
    """`UndefinedGrad()(*tensors)`: the tensors, through which no gradients go back."""

    def __call__(self, *tensors: Any) -> Any:
        return handed_out(UndefinedGradBackward(), tensors)


class DelayedError(Error):
    """`DelayedError(message, count)(*tensors)`: the tensors, through which no backward goes without this error."""

    def __init__(self, message: str, num_inputs: int) -> None:
        super().__init__()
        self.message = message

    def __call__(self, *tensors: Any) -> Any:
        node = Error()
        node.message = self.message
        return handed_out(node, tensors)


def handed_out(node: Node, tensors: Sequence[Any]) -> Any:
    """The tensors as outputs of a node: one bare, several as a tuple."""
    found = tied_to(node, tensors)
    return found[0] if len(found) == 1 else tuple(found)


class Resize(Function):
    """A tensor with another shape and as many elements: old programs call it by `torch.autograd._functions`."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, sizes: Sequence[int]) -> Any:
        """Returns a view where there can be one. RuntimeError for another number of elements."""
        wanted, given = (("x".join(map(str, shape)), Size(shape).numel()) for shape in (sizes, tensor.shape))
        if wanted[1] != given[1]:
            raise RuntimeError(
                f"requested resize to {wanted[0]} ({wanted[1]} elements in total), but the given tensor has a size of "
                f"{given[0]} ({given[1]} elements). autograd's resize can only change the shape of a given tensor, "
                "while preserving the number of elements. "
            )
        ctx.input_sizes = tensor.shape
        return tensor.reshape(sizes)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output.reshape(ctx.input_sizes), None
