"""Attention: softmax(scale Q K^T + mask) V, by one kernel where that is possible, and by other operators where not.

`scaled_dot_product_attention` only chooses. What it calls for batches of heads on the CPU never holds all scores in
memory (kernels/cpu/attention.py); dropout, a mask that is itself learned, and unusual shapes go the way of the
definition, `_scaled_dot_product_attention_math`, which also can be differentiated twice.

Shapes: query[..., n, width], key[..., m, width], value[..., m, any]; the result is [..., n, any].
Read next: kernels/cpu/attention.py.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from redispatch import kernels
from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor, dtypes, empty, empty_from, output_spec, strided
from redispatch.kernels import output_strides

from ..declare.operator import LOWER, composite, kernel, planned_several
from ..declare.plan import Run
from ..declare.planned import on_dense
from ..declare.structured import Meta
from .convolution import C_NAMES, compute_dtype
from .fused_attention import EFFICIENT, FLASH, SDPAParams, broadcasts, chosen, efficient_op, scale_of
from .normalization import softmax, softmax_backward_op

HALVES = (dtypes.float16, dtypes.bfloat16)

# --- softmax of rows that may be masked out --------------------------------------------------------------------------


@kernel(
    "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    refuses="bool complex",
    batching="dims",
    late_out=False,
    derivative=lambda grad, result, dim, self_dtype: softmax_backward_op.functional(grad, result, dim, self_dtype),
)
def safe_softmax_op(self, dim, dtype):
    """Softmax, but 0 in rows of nothing but -inf, which see nothing; there softmax is NaN."""
    result = softmax(self, dim, dtype=dtype)
    blind = self.eq(-math.inf).all(dim, True)
    return result.masked_fill(blind, 0.0)


# --- the fused operator ----------------------------------------------------------------------------------------------

NAME = "scaled_dot_product_attention_flash_attention"


def check_heads(query: Tensor, key: Tensor, value: Tensor, dropout_p: float, mask: Any) -> None:
    """RuntimeError where the fused operator does not take these arguments."""
    if not query._dtype.is_floating_point:
        raise RuntimeError(
            f"{NAME}: Expected data type in FP32, FP64, BF16, FP16, but got {query._dtype.tensor_name} instead."
        )
    if any(len(x._shape) != 4 for x in (query, key, value)):
        raise RuntimeError(f"{NAME}: Accept only 4 dims inputs shape of {{B, H, T, K}}")
    if dropout_p > 0:
        raise RuntimeError(f"{NAME}: Currently do not support dropout > 0")
    if not query._shape[3] == key._shape[3] == value._shape[3]:
        raise RuntimeError(f"{NAME}: Q/K/V should have the same head size")
    for x in (key, value):
        if x._dtype is not query._dtype:
            raise RuntimeError(f"expected scalar type {query._dtype.tensor_name} but found {x._dtype.tensor_name}")
    if key._shape != value._shape or key._shape[0] != query._shape[0] or query._shape[1] % max(key._shape[1], 1):
        raise RuntimeError(
            f"{NAME}: key and value must have one shape, the batch size of the query, and a number of heads that "
            f"divides the query's, but got {list(query._shape)}, {list(key._shape)} and {list(value._shape)}"
        )
    if mask is None:
        return
    if mask._dtype not in (query._dtype, dtypes.float32):
        raise RuntimeError(f"{NAME}: Attention mask is the same data type as query")
    if len(mask._shape) not in (2, 4):
        raise RuntimeError(f"{NAME}: Attention mask dim in {{2, 4}}")
    if not broadcasts(mask._shape, scores_shape(query, key)):
        raise RuntimeError(
            f"{NAME}: an attention mask of shape {list(mask._shape)} does not broadcast to the scores, "
            f"{scores_shape(query, key)}"
        )


def scores_shape(query: Any, key: Any) -> list[int]:
    return [*query._shape[:-1], key._shape[-2]]


def lies_well(x: Tensor) -> bool:
    """Whether BLAS takes its matrices; what has no matrices is taken as it lies."""
    return len(x._shape) != 4 or kernels.blas_takes(x._operand)


def taken(x: Tensor, compute: Any) -> kernels.Operand:
    """Returns what the kernel is given: the tensor, or its copy in another dtype or with other steps."""
    return x._operand if x._dtype is compute and lies_well(x) else empty(x._shape, compute)._operand


def of_heads(run: Run, outs: Sequence[Tensor], inputs: Sequence[Tensor], compute: Any) -> Run:
    """`run`, which computes in this dtype, for tensors in any: those that it does not take are copied. A mask, which
    comes behind the inputs, is taken as it is."""
    run = on_dense(run, len(outs), [(x, compute) for x in inputs], lies_well)
    narrow = [k for k, out in enumerate(outs) if out._dtype is not compute]
    if not narrow:
        return run
    specs = {k: output_spec(outs[k]._shape, compute, strides=outs[k]._stride) for k in narrow}
    copies = {k: kernels.ready_copy(outs[k]._operand, empty_from(specs[k])._operand) for k in narrow}

    def rounding(*arrays: Any) -> None:
        given = list(arrays)
        for k in narrow:
            given[2 * k : 2 * k + 2] = empty_from(specs[k])._array, 0
        run(*given)
        for k in narrow:
            copies[k](*arrays[2 * k : 2 * k + 2], *given[2 * k : 2 * k + 2])

    return rounding


def zeros_in(outs: Sequence[Tensor]) -> Run:
    """Returns the run that fills each result with zeros."""
    fills = [kernels.ready_fill(out._operand, 0) for out in outs]

    def run(*arrays: Any) -> None:
        for k, fill in enumerate(fills):
            fill(arrays[2 * k], arrays[2 * k + 1], 0)

    return run


@planned_several(
    "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0., "
    "bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
    refuses="bool complex",
    late_out=False,
)
def flash_op(query, key, value, dropout_p, is_causal, attn_mask, scale):
    """(the result, laid out as the query; the logarithm of the sum of each query's exponentials)."""
    check_heads(query, key, value, dropout_p, attn_mask)
    batch, heads, rows, _ = shape = query._shape
    logs = Meta((batch, heads, rows), compute_dtype(query), query._device, (rows * heads, 1, heads))
    return Meta(shape, query._dtype, query._device, output_strides(shape, ((shape, query._stride),))), logs


@flash_op.loop
def flash_loop(outs, query, key, value, dropout_p, is_causal, attn_mask, scale):
    if not query._shape.numel() or not key._shape.numel():
        return zeros_in(outs)
    compute, three = compute_dtype(query), (query, key, value)
    mask = None if attn_mask is None else attn_mask._operand
    q, k, v = (taken(x, compute) for x in three)
    call = kernels.Attention(q, k, v, mask, is_causal, scale_of(query, scale))
    result = empty(query._shape, compute, strides=outs[0]._stride)
    return of_heads(call.forward(result._operand, outs[1]._operand), outs, three, compute)


@planned_several(
    "_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, "
    "Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) "
    "-> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
    refuses="bool complex",
    late_out=False,
)
def flash_backward_op(grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, attn_mask, scale):
    """Gradients of query, key and value; all heads of a row lie side by side."""
    check_heads(query, key, value, dropout_p, attn_mask)
    shape = query._shape
    for name, x, wanted in (("grad_out", grad_out, shape), ("out", out, shape), ("logsumexp", logsumexp, shape[:3])):
        if tuple(x._shape) != tuple(wanted):
            raise RuntimeError(f"{NAME}: expected {name} to have the shape {list(wanted)}, got {list(x._shape)}")
    found = []
    for x in (query, key, value):
        _, heads, rows, width = x._shape
        strides = (rows * heads * width, width, heads * width, 1)
        found.append(Meta(x._shape, x._dtype, query._device, strides))
    return tuple(found)


@flash_backward_op.loop
def flash_backward_loop(outs, grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, attn_mask, scale):
    if not query._shape.numel() or not key._shape.numel():
        return zeros_in(outs)
    compute = compute_dtype(query)
    inputs = grad_out, query, key, value, out, logsumexp
    grad, q, k, v, result, logs = (taken(x, compute) for x in inputs)
    mask = None if attn_mask is None else attn_mask._operand
    call = kernels.Attention(q, k, v, mask, is_causal, scale_of(query, scale))
    to_query, to_key, to_value = (empty(x._shape, compute, strides=x._stride)._operand for x in outs)
    return of_heads(call.backward(to_query, to_key, to_value, grad, result, logs), outs, inputs, compute)


@flash_op.gradient("query", "key", "value", nondifferentiable=(1,))
def flash_gradients(grad, query, key, value, result0, result1, dropout_p, is_causal, attn_mask, scale):
    return flash_backward_op.functional(
        grad, query, key, value, result0, result1, dropout_p, is_causal, attn_mask=attn_mask, scale=scale
    )


# --- by its definition -----------------------------------------------------------------------------------------------

ARGUMENTS = (
    "(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, {}*, "
    "float? scale=None, bool enable_gqa=False)"
)


@composite(
    f"_scaled_dot_product_attention_math{ARGUMENTS.format('Tensor? dropout_mask=None, ')} -> (Tensor, Tensor)",
    refuses="whole complex",
)
def math_op(query, key, value, attn_mask, dropout_p, is_causal, dropout_mask, scale, enable_gqa):
    """(the result, the weights). Query and key are each scaled by the root, so that 16-bit scores stay in range."""
    given = query.dtype
    if given in HALVES:
        query, key, value = query.float(), key.float(), value.float()
    factor = scale_of(query, scale)
    root = math.sqrt(abs(factor))
    mul = ops.aten.mul.Scalar
    query = mul(query, -root if factor < 0 else root)
    if is_causal:
        if attn_mask is not None:
            raise RuntimeError(
                "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
            )
        size = [query.shape[-2], key.shape[-2]]
        seen = ops.aten.ones.default(size, dtype=dtypes.bool, layout=strided, device=query.device).tril()
        attn_mask = additive(seen, query.dtype)
    if enable_gqa:
        key, value = for_all_heads(query, key, value)
    scores = query.matmul(mul(key.transpose(-2, -1), root))
    if attn_mask is not None:
        scores = scores + attn_mask
    weights = safe_softmax_op.functional(scores, -1)
    if dropout_mask is not None:
        warnings.warn("Dropout mask should only be used for testing purposes.", stacklevel=2)
        kept = weights.masked_fill(dropout_mask.logical_not(), 0.0)
        return kept.matmul(mul(value, 1 / (1 - dropout_p))).to(given), weights.to(given)
    if dropout_p > 0:
        weights = ops.aten.dropout.default(weights, dropout_p, True)
    shown = weights.to(given)
    return weights.matmul(value).to(given), shown


def for_all_heads(query: Any, key: Any, value: Any) -> tuple[Any, Any]:
    """Key and value with each head as often as query heads share it."""
    heads, of_key, of_value = query.shape[-3], key.shape[-3], value.shape[-3]
    if of_key == of_value == heads:
        return key, value
    if heads % of_key or heads % of_value:
        raise RuntimeError("Number of heads in key and value must divide the number of heads in \nquery")
    return key.repeat_interleave(heads // of_key, -3), value.repeat_interleave(heads // of_value, -3)


def additive(mask: Any, dtype: Any) -> Any:
    """A mask that is added to scores: 0 where a mask of bools says True, -inf elsewhere."""
    if mask.dtype is not dtypes.bool:
        return mask
    low = ops.aten.scalar_tensor.default(-math.inf, dtype=dtype, device=mask.device)
    zero = ops.aten.scalar_tensor.default(0.0, dtype=dtype, layout=strided, device=mask.device)
    return ops.aten.where.self(mask, zero, low)


# --- what users call -------------------------------------------------------------------------------------------------


@composite(
    f"scaled_dot_product_attention{ARGUMENTS.format('')} -> Tensor",
    refuses="whole complex",
    autocast=LOWER,
    module="nn",
)
def scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    """Returns softmax(scale Q K^T + mask) V. `scale` is 1 / sqrt(width) by default; True in a mask of bools means seen.

    Shapes: query[..., n, width], key[..., m, width], value[..., m, any]; the mask broadcasts to [..., n, m].
    Dtypes: one for all, floating; the mask bool, float32 or that dtype.
    With `enable_gqa` a head of key and value serves several heads of the query. A query that sees no key gives 0.
    """
    check_arguments(query, key, value, attn_mask)
    if 0 in query._shape or 0 in key._shape or 0 in value._shape:
        return of_nothing(query, key, value)
    if attn_mask is not None:
        attn_mask = additive(attn_mask, query.dtype)
    how = chosen(SDPAParams(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa))
    if how is FLASH and query._device.type == "cpu":
        return flash_op.functional(query, key, value, dropout_p, is_causal, attn_mask=attn_mask, scale=scale)[0]
    if how in (FLASH, EFFICIENT):
        saves = any(x is not None and x.requires_grad for x in (query, key, value, attn_mask))
        given = query, key, value, attn_mask, saves, dropout_p, is_causal
        return efficient_op.functional(*given, scale=scale)[0]
    rest = (attn_mask, dropout_p, is_causal, None)
    return math_op.functional(query, key, value, *rest, scale=scale, enable_gqa=enable_gqa)[0]


@kernel(f"_fused_sdp_choice{ARGUMENTS.format('')} -> int")
def choice_op(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    """The number of the kernel that `scaled_dot_product_attention` takes: an SDPBackend's."""
    return int(chosen(SDPAParams(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)))


def of_nothing(query: Any, key: Any, value: Any) -> Any:
    """Zeros in the shape of the result, which still depend on all three as far as autograd is concerned."""
    shape = [*query._shape[:-1], value._shape[-1]]
    result = ops.aten.zeros.default(shape, dtype=query.dtype, layout=strided, device=query.device)
    of_value, of_key, of_query = value.sum(), key.sum(), query.sum()
    return result + ops.aten.mul.Scalar(of_query + of_key + of_value, 0)


NAMES = {
    **C_NAMES,
    "bfloat16": "c10::BFloat16",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
    "int32": "int",
    "int16": "short int",
    "int8": "signed char",
    "uint8": "unsigned char",
}


def check_arguments(query: Any, key: Any, value: Any, mask: Any) -> None:
    """RuntimeError, in PyTorch's words, where the arguments do not belong together."""
    if not query._dtype is key._dtype is value._dtype:
        names = [name_of(x._dtype) for x in (query, key, value)]
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {names[0]} "
            f"key.dtype: {names[1]} and value.dtype: {names[2]} instead."
        )
    if not (query._device is key._device is value._device or query._device == key._device == value._device):
        raise RuntimeError(
            f"Expected query, key, and value to have the same device type, but got query.device: {query._device} "
            f"key.device: {key._device} and value.device: {value._device} instead."
        )
    dims = len(query._shape), len(key._shape), len(value._shape)
    if min(dims) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{dims[0]} key.dim: {dims[1]} and value.dim: {dims[2]} instead."
        )
    if mask is not None and mask._dtype not in (dtypes.bool, dtypes.float32, query._dtype):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{name_of(mask._dtype)} and  query.dtype: {name_of(query._dtype)} instead."
        )


def name_of(kind: Any) -> str:
    """A dtype as messages about attention call it."""
    return NAMES.get(kind.name, kind.name)
