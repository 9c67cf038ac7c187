"""Bilinear forms: what is linear in each of two vectors, and the product of three tensors that they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.declare.out_forms import copy_into_out

from ..declare.declare import Operator
from ..declare.public import public

trilinear_op = Operator(
    "_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, "
    "int unroll_dim=1) -> Tensor",
    out="out",
    refuses="bool",
)
bilinear_op = Operator(
    "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
    refuses="bool",
    autocast={"cuda": "promote"},
)


@trilinear_op.explicit
def trilinear_kernel(
    i1: Any, i2: Any, i3: Any, expand1: Any, expand2: Any, expand3: Any, sumdim: Any, unroll_dim: int
) -> Tensor:
    """The product of three tensors brought to the same dimensions, summed over some of these.

    Two are multiplied at a time, as matrices (einsum), so that the product of all three is never held.
    """
    ndim = i1.dim() + len(expand1)
    letters = "abcdefghijklmnopqrstuvwxyz"[:ndim]

    def lettered(expand: Sequence[int]) -> str:
        return "".join(letter for dim, letter in enumerate(letters) if dim not in expand)

    kept = "".join(letter for dim, letter in enumerate(letters) if dim not in sumdim)
    one, two, three = map(lettered, (expand1, expand2, expand3))
    between = "".join(letter for letter in letters if letter in one + three and letter in two + kept)
    half = ops.aten.einsum.default(f"{one},{three}->{between}", [i1, i3])
    return ops.aten.einsum.default(f"{between},{two}->{kept}", [half, i2]).contiguous()


def trilinear_backward(
    grad: Any, i1: Any, i2: Any, i3: Any, expand1: Any, expand2: Any, expand3: Any, sumdim: Any, needs: Sequence[bool]
) -> tuple[Any, Any, Any]:
    """Linear in each of the three: the gradient takes the place of the one that it is for."""
    trilinear = trilinear_op.functional
    return (
        trilinear(grad, i2, i3, sumdim, expand2, expand3, expand1) if needs[0] else None,
        trilinear(i1, grad, i3, expand1, sumdim, expand3, expand2) if needs[1] else None,
        trilinear(i1, i2, grad, expand1, expand2, sumdim, expand3) if needs[2] else None,
    )


trilinear_op.derivative((("i1", "i2", "i3"), trilinear_backward))
copy_into_out(trilinear_op)


@bilinear_op.implicit
def bilinear_composite(input1: Any, input2: Any, weight: Any, bias: Any) -> Any:
    """Returns y with y[k] = sum over i, j of input1[i] weight[k, i, j] input2[j], plus bias[k]."""
    if input1.dim() != input2.dim():
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.dim()} and {input2.dim()}")
    for d, (a, b) in enumerate(zip(input1.shape[:-1], input2.shape[:-1], strict=True)):
        if a != b:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {d}: got {a} and {b}")
    for number, (x, d) in enumerate(((input1, 1), (input2, 2)), 1):
        if x.shape[-1] != weight.shape[d]:
            raise RuntimeError(
                f"bilinear(): input{number} size does not match weight size: got {x.shape[-1]} but expected "
                f"{weight.shape[d]}"
            )
    if bias is not None and bias.shape[0] != weight.shape[0]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected {weight.shape[0]}"
        )
    batch = list(input1.shape[:-1])
    rows = [x.reshape(-1, x.shape[-1]) for x in (input1, input2)]
    result = trilinear_op.functional(rows[0], weight, rows[1], [1, 3], [0], [1, 2], [2, 3])
    result = result.reshape([*batch, weight.shape[0]])
    return result if bias is None else result + bias


bilinear = public(bilinear_op)
