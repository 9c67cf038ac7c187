"""Decompositions for vmap: an operator for one example, written in operators that have rules.

Operators with one kernel for every backend are taken apart by that kernel; nothing has to be said of them. For the
others there is a formula here. An in-place form does what the functional form does, and is written over.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import accumulate
from typing import Any

from redispatch.dispatch import DispatchKey, OpOverload, call, ops
from redispatch.dispatch.autograd import pulled_back
from redispatch.dispatch.layers.transforms import BATCHING
from redispatch.kernels import broadcast_shapes
from redispatch.kernels.ops import linalg, matrix_functions
from redispatch.kernels.ops.batch_norm import batch_norm_no_stats_op, batch_norm_no_training_op
from redispatch.kernels.ops.distances import pdist_backward_op, pdist_forward_op
from redispatch.kernels.ops.embedding import embedding_dense_backward_op
from redispatch.kernels.ops.functional_forms import MADE
from redispatch.kernels.ops.index_functions import put_op
from redispatch.kernels.ops.masking import masked_scatter_op
from redispatch.kernels.ops.masking import masked_select as masked_select_face
from redispatch.kernels.ops.norms import renorm as renorm_face
from redispatch.kernels.ops.rearrange import block_diag_op, shape_of_block
from redispatch.kernels.ops.solving import solve_lu_op
from redispatch.kernels.ops.sorting import isin_op, scalar_isin_op

from ...dispatch.transforms.batched import Decomposition, padded, whole
from .by_dims import leading_rule
from .fallback import batches, one_by_one, refuse

aten = ops.aten
# Derived rules --------------------------------------------------------------------------------------------------------


def by_its_kernel(op: OpOverload) -> Decomposition | None:
    """The rule of an operator whose kernel for every backend calls other operators; None where there is none such.

    Only of our own: a user's kernel may read the values that it is given, by numpy() or an `if`, and has to be called
    with plain tensors, as the fallback does.
    """
    kernels = op.registrations.get(DispatchKey.CompositeExplicitAutograd)
    written = op.schema.is_mutable and op.schema.returns  # what returns nothing has its parts write
    if not kernels or written or getattr(kernels[-1].function, "__leaf__", False):
        return None
    if op.namespace != "aten":
        return None
    return Decomposition(lambda op, stack: kernels[-1].boxed(op, 0, stack), otherwise=one_by_one)


def written_over(op: OpOverload, rule_of: Callable[[OpOverload], Any]) -> Any:
    """The rule of an in-place form by that of its functional form; None where this has none, or there is none such."""
    packet = getattr(ops.aten, op._opname.removesuffix("_"), None)
    functional = getattr(packet, op._overloadname, None) if op._opname.endswith("_") and packet else None
    if functional is None or op.namespace != "aten" or op.schema.mutable_positions != (0,) or op in MADE:
        return None  # in MADE are those whose functional form calls them
    rule = BATCHING.get(functional) or rule_of(functional)
    if rule is one_by_one:
        return None

    def over(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
        result, dim = rule(functional, values, dims, size)
        return whole(values[0], dims[0], size).copy_(whole(result, dim, size)), 0

    if isinstance(rule, Decomposition):
        return Decomposition(partial(parts_over, rule, functional), otherwise=one_by_one)
    return over


def parts_over(rule: Decomposition, functional: OpOverload, op: OpOverload, stack: list[Any]) -> Any:
    result = rule.function(functional, stack)
    return result if result is NotImplemented else stack[0].copy_(result)


# Formulas -------------------------------------------------------------------------------------------------------------


@batches("parts", linalg.trace_op, otherwise=one_by_one)
def trace(op: OpOverload, stack: list[Any]) -> Any:
    (x,) = stack
    return x.diagonal().sum() if x.dim() == 2 else NotImplemented


@batches("parts", linalg.vdot.op, otherwise=one_by_one)
def vdot(op: OpOverload, stack: list[Any]) -> Any:
    x, y = stack
    return x.conj().dot(y)


def scaled_sum(own: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """beta own + alpha product; for a beta of 0 without `own`, whose NaN then do not show."""
    product = product if alpha == 1 else product * alpha
    return product.to(own.dtype) if beta == 0 else (own if beta == 1 else own * beta) + product


@batches("parts", linalg.addbmm.op, otherwise=one_by_one)
def addbmm(op: OpOverload, stack: list[Any]) -> Any:
    own, a, b, beta, alpha = stack
    return scaled_sum(own, a.bmm(b).sum(0), beta, alpha)


@batches("parts", linalg.addr.op, otherwise=one_by_one)
def addr(op: OpOverload, stack: list[Any]) -> Any:
    own, x, y, beta, alpha = stack
    return scaled_sum(own, x.unsqueeze(1) * y, beta, alpha) if x.dim() == y.dim() == 1 else NotImplemented


@batches("parts", renorm_face.op, otherwise=one_by_one)
def renorm(op: OpOverload, stack: list[Any]) -> Any:
    """Each slice with a norm of at most `maxnorm`. The 1e-7 is the kernel's: kernels/ops/norms.py."""
    x, p, dim, maxnorm = stack
    others = [d for d in range(x.dim()) if d != dim % max(x.dim(), 1)]
    lengths = aten.linalg_vector_norm.default(x, p, others, True)
    return x * (maxnorm / (lengths + 1e-7)).where(lengths > maxnorm, 1)


@batches("parts", embedding_dense_backward_op, otherwise=one_by_one)
def embedding_backward(op: OpOverload, stack: list[Any]) -> Any:
    """Each row of the gradient added where its index says, but to the row of the padding."""
    grad, indices, count, padding, by_frequency = stack
    if by_frequency:
        one = grad.new_ones(indices.shape)
        often = grad.new_zeros([count]).index_put([indices.reshape(-1)], one.reshape(-1), True)
        grad = grad / often.take(indices).unsqueeze(-1)
    rows = grad.masked_fill((indices == padding).unsqueeze(-1), 0) if padding >= 0 else grad
    into = grad.new_zeros([count, grad.shape[-1]])
    return into.index_put([indices.reshape(-1)], rows.reshape(-1, grad.shape[-1]), True)


@batches("parts", solve_lu_op, otherwise=leading_rule)
def solve(op: OpOverload, stack: list[Any]) -> Any:
    """A vector on the right is a matrix of one column."""
    a, b, left, check = stack
    if not left or not (b.dim() == 1 or (b.dim() == a.dim() - 1 and b.shape == a.shape[:-1])):
        return NotImplemented
    result, *rest = call(op, [a, b.unsqueeze(-1), left, check])
    return result.squeeze(-1), *rest


@batches("parts", put_op, otherwise=one_by_one)
def put(op: OpOverload, stack: list[Any]) -> Any:
    x, index, source, accumulate = stack
    return x.reshape(-1).index_put([index.reshape(-1)], source.reshape(-1), accumulate).view(x.shape)


@batches("parts", masked_scatter_op, otherwise=one_by_one)
def masked_scatter(op: OpOverload, stack: list[Any]) -> Any:
    """Element number n of the source where the mask is true for the n-th time."""
    x, mask, source = stack
    mask, x = aten.broadcast_tensors([mask, x])
    if not x.numel():
        return x.clone()
    number = (mask.reshape(-1).cumsum(0) - 1).where(mask.reshape(-1), 0)
    return source.reshape(-1).take(number).view(x.shape).where(mask, x) if source.numel() else NotImplemented


@batches("parts", block_diag_op, otherwise=one_by_one)
def block_diag(op: OpOverload, stack: list[Any]) -> Any:
    """Rows of each matrix, with zeros before and behind them."""
    blocks = [x.reshape(shape_of_block(position, x)) for position, x in enumerate(stack[0])]
    ends = list(accumulate(block.shape[1] for block in blocks))
    padded = (
        aten.constant_pad_nd.default(block, [end - block.shape[1], ends[-1] - end])
        for block, end in zip(blocks, ends, strict=True)
    )
    return aten.cat.default(list(padded), 0)


@batches("dynamic", masked_select_face.op)
def masked_select(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """Selects the same places of each example; examples with masks of their own are refused."""
    x, mask = values
    if dims[1] is not None:
        refuse(op, "dynamic")()
    x = padded(x, dims[0], mask.dim())
    shape = broadcast_shapes(mask.shape, x.shape[1:])
    places = mask.expand(shape).reshape(-1).nonzero().squeeze(1)
    return x.expand((size, *shape)).reshape(size, -1).index_select(1, places), 0


batches("other", matrix_functions.vander.op)(one_by_one)  # it writes into a matrix that all examples would share


@batches("parts", isin_op, otherwise=one_by_one)
def isin(op: OpOverload, stack: list[Any]) -> Any:
    x, among, _, invert = stack
    found = (x.unsqueeze(-1) == among.reshape(-1)).any(-1)
    return found.logical_not() if invert else found


@batches("parts", scalar_isin_op, otherwise=one_by_one)
def scalar_isin(op: OpOverload, stack: list[Any]) -> Any:
    x, among, _, invert = stack
    found = (among == x).any()
    return found.logical_not() if invert else found


def distances(x: Any, p: float) -> Any:
    """The norms of the differences of each two rows, the first with all others first."""
    count = x.shape[0]
    first, second = aten.triu_indices.default(count, count, 1, device=x.device).unbind(0)
    apart = x.index_select(0, first) - x.index_select(0, second)
    return aten.linalg_vector_norm.default(apart, p, [1])


@batches("parts", ops.aten._is_all_true.default, ops.aten._is_any_true.default)
def of_all_examples(op: OpOverload, values: list[Any], dims: list[Any], size: int) -> Any:
    """One answer for all examples, which a program may read: what is checked has to hold for each."""
    return call(op, values), None


@batches("parts", pdist_forward_op, otherwise=one_by_one)
def pdist(op: OpOverload, stack: list[Any]) -> Any:
    x, p = stack
    return distances(x, p)


@batches("parts", pdist_backward_op, otherwise=one_by_one)
def pdist_backward(op: OpOverload, stack: list[Any]) -> Any:
    grad, x, p, _ = stack
    return pulled_back(lambda x: [distances(x, p)], [x], [grad])[0]


@batches("parts", batch_norm_no_stats_op, otherwise=one_by_one)
def no_stats(op: OpOverload, stack: list[Any]) -> Any:
    x, weight, bias, *rest = stack
    return aten.native_batch_norm.default(x, weight, bias, None, None, *rest)


@batches("parts", batch_norm_no_training_op, otherwise=one_by_one)
def no_training(op: OpOverload, stack: list[Any]) -> Any:
    *parameters, momentum, eps = stack
    return aten.native_batch_norm.default(*parameters, False, momentum, eps)
