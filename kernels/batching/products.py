"""Products of matrices and vectors on batches: as products of batches of matrices, without copies of what is not
batched."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import OpOverload, call, ops
from redispatch.kernels.ops.convolution import convolution, convolution_backward_op
from redispatch.kernels.ops.linalg import addmm, addmv, baddbmm, bmm, dot, mm, mv

from ...dispatch.transforms.batched import front, padded, rank, whole
from .fallback import batches

aten = ops.aten


def check_ranks(op: OpOverload, values: list[Any], dims: list[Any], first: int, second: int) -> None:
    """RuntimeError where examples are no such matrices or vectors: rows of a batch are not to be taken for theirs."""
    ranks = [rank(value, dim) for value, dim in zip(values, dims, strict=True)]
    if ranks != [first, second]:
        raise RuntimeError(
            f"Shape mismatch: Got incorrect dims for {op._opname}(a, b). a has dim {ranks[0]}and b has dim {ranks[1]}"
            f"but expected them to have dim {first} and dim {second}"
        )


@batches("matrices", mm.op)
def mm_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """A product with a batch on one side only is one product of larger matrices."""
    check_ranks(op, values, dims, 2, 2)
    (a, b), (da, db) = values, dims
    if da is not None and db is not None:
        return aten.bmm.default(front(a, da), front(b, db)), 0
    return aten.matmul.default(front(a, da), front(b, db)), 0


@batches("matrices", mv.op)
def mv_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    check_ranks(op, values, dims, 2, 1)
    (a, v), (da, dv) = values, dims
    if dv is None:
        return aten.matmul.default(front(a, da), v), 0
    if da is None:
        return aten.mm.default(front(v, dv), a.t()), 0
    return aten.bmm.default(front(a, da), front(v, dv).unsqueeze(2)).squeeze(2), 0


@batches("matrices", dot.op)
def dot_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    check_ranks(op, values, dims, 1, 1)
    (a, b), (da, db) = values, dims
    if da is not None and db is not None:
        rows = aten.bmm.default(front(a, da).unsqueeze(1), front(b, db).unsqueeze(2))
        return rows.view(size), 0
    many, one = (front(a, da), b) if da is not None else (front(b, db), a)
    return aten.mv.default(many, one), 0


@batches("matrices", bmm.op)
def bmm_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    check_ranks(op, values, dims, 3, 3)
    (a, b), (da, db) = values, dims
    return aten.matmul.default(front(a, da), front(b, db)), 0


def plus_product(base: OpOverload, product: Any) -> Any:
    """Returns the rule of beta * self + alpha * product, by that of the product alone."""

    def rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
        (own, a, b, beta, alpha), (d, da, db, *_) = values, dims
        if op._opname == "addmv" and d is None and da is None:
            return aten.addmm.default(own, front(b, db), a.t(), beta=beta, alpha=alpha), 0
        result, _ = (
            product(base, [a, b], [da, db], size) if da is not None or db is not None else (base(a, b).unsqueeze(0), 0)
        )
        result = result if alpha == 1 else result * alpha
        if beta != 0:
            added = padded(own, d, result.dim() - 1)
            result = result + (added if beta == 1 else added * beta)
        return result if result.shape[0] == size else result.expand((size, *result.shape[1:])), 0

    return rule


for plus, base, product_rule in ((addmm, mm, mm_rule), (addmv, mv, mv_rule), (baddbmm, bmm, bmm_rule)):
    batches("matrices", plus.op)(plus_product(base.op.functional, product_rule))


# Convolutions ---------------------------------------------------------------------------------------------------------


@batches("matrices", convolution.op)
def convolution_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """A batch of inputs is a longer batch; a batch of weights is more output channels, or more groups."""
    input, weight, bias, stride, padding, dilation, transposed, output_padding, groups = values
    di, dw, db, *_ = dims
    rest = (stride, padding, dilation, transposed, output_padding)
    apart = bias is not None and (db is not None or dw is not None)
    plain_bias = None if apart else bias
    if di is None and dw is None:  # the bias alone is batched
        result = aten.convolution.default(input, weight, None, *rest, groups).unsqueeze(0)
    elif dw is None:
        x = front(input, di)
        result = aten.convolution.default(x.flatten(0, 1), weight, plain_bias, *rest, groups).unflatten(0, (size, -1))
    else:
        x = whole(input, di, size).movedim(0, 1).flatten(1, 2)  # (N, B * C, ...)
        w = front(weight, dw).flatten(0, 1)  # (B * O, ...)
        result = aten.convolution.default(x, w, None, *rest, groups * size)
        result = result.unflatten(1, (size, -1)).movedim(1, 0)
    if apart:
        added = front(bias, db)
        shape = (size if db is not None else 1, 1, added.shape[-1], *(1,) * (result.dim() - 3))
        result = result + added.reshape(shape)
    return result, 0


@batches("matrices", convolution_backward_op)
def convolution_backward_rule(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """The gradient of the inputs as of a longer batch, where all examples have one weight; else, and for the weights,
    examples are groups of channels, as in `convolution_rule`."""
    grad, input, weight, sizes, *how, groups, mask = values
    dg, di, dw, *_ = dims
    of_input = of_weight = of_bias = None
    shared = mask[0] and dw is None
    if shared:
        many = (whole(one, dim, size).flatten(0, 1) for one, dim in ((grad, dg), (input, di)))
        of_input = call(op, [*many, weight, None, *how, groups, [True, False, False]])[0].unflatten(0, (size, -1))
    if mask[1] or (mask[0] and not shared):
        wide = [whole(one, dim, size).movedim(0, 1).flatten(1, 2) for one, dim in ((grad, dg), (input, di))]
        kernels = whole(weight, dw, size).flatten(0, 1)
        wanted = [mask[0] and not shared, mask[1], False]
        to_input, to_weight, _ = call(op, [*wide, kernels, None, *how, groups * size, wanted])
        of_input = to_input.unflatten(1, (size, -1)).movedim(1, 0) if wanted[0] else of_input
        of_weight = to_weight.unflatten(0, (size, -1)) if wanted[1] else None
    if mask[2]:
        each_grad = whole(grad, dg, size)
        of_bias = each_grad.sum([d for d in range(1, each_grad.dim()) if d != 2])
    return (of_input, of_weight, of_bias), [0, 0, 0]
