"""Attention: softmax(scale Q K^T + mask) V, by one kernel where that is possible, and by other operators where not.

`scaled_dot_product_attention` only chooses. What it calls for batches of heads on the CPU never holds all scores in
memory (kernels/attention.py); dropout, a mask that is itself learned, and unusual shapes go the way of the definition,
`_scaled_dot_product_attention_math`, which also can be differentiated twice.

Shapes: query[..., n, width], key[..., m, width], value[..., m, any]; the result is [..., n, any].
Read next: kernels/attention.py.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from redispatch import kernels
from redispatch.dispatch import ops
from redispatch.kernels import output_strides
from redispatch.tensor import Tensor, dtypes, empty, strided

from .convolution import C_NAMES, compute_dtype, copied
from .declare import Operator
from .public import public
from .softmax import softmax, softmax_backward_op

HALVES = (dtypes.float16, dtypes.bfloat16)

# --- softmax of rows that may be masked out --------------------------------------------------------------------------

safe_softmax_op = Operator("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")


@safe_softmax_op.explicit
def safe_softmax_kernel(self: Any, dim: int, dtype: Any) -> Any:
    """Softmax, but 0 in rows of nothing but -inf, which see nothing; there softmax is NaN."""
    result = softmax(self, dim, dtype=dtype)
    blind = self.eq(-math.inf).all(dim, True)
    return result.masked_fill(blind, 0.0)


safe_softmax_op.derivative(
    self=lambda grad, result, dim, self_dtype: softmax_backward_op.functional(grad, result, dim, self_dtype)
)

# --- the fused operator ----------------------------------------------------------------------------------------------

NAME = "scaled_dot_product_attention_flash_attention"
flash_op = Operator(
    "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0., "
    "bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)"
)
flash_backward_op = Operator(
    "_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, "
    "Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) "
    "-> (Tensor grad_query, Tensor grad_key, Tensor grad_value)"
)


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


def broadcasts(shape: Any, to: list[int]) -> bool:
    """Whether each dimension is 1 or that of the other shape, from the last one on."""
    return all(size in (1, other) for size, other in zip(reversed(shape), reversed(to), strict=False))


def rows_of_heads(query: Tensor, x: Tensor, dtype: Any) -> Tensor:
    """Memory that looks like `x`, where all heads of a row lie side by side."""
    batch, heads, rows, width = x._shape
    return empty(x._shape, dtype, query._device, (rows * heads * width, width, heads * width, 1))


def matrices(x: Tensor) -> kernels.Operand:
    """The elements as BLAS takes them; a copy only of 16-bit floats and of steps that BLAS does not know."""
    operand, compute = x._operand, compute_dtype(x)
    return operand if x._dtype is compute and kernels.blas_takes(operand) else copied(x, compute)._operand


def scale_of(query: Any, scale: float | None) -> float:
    """What scores are multiplied by: 1 / sqrt(width), unless something else is asked for."""
    if scale is not None:
        return scale
    width = query._shape[-1]
    return 1 / math.sqrt(width) if width else math.inf


@flash_op.kernel("CPU", "Meta")
def flash_kernel(
    query: Tensor, key: Tensor, value: Tensor, dropout_p: float, is_causal: bool, attn_mask: Any, scale: Any
) -> tuple[Tensor, Tensor]:
    """(the result, laid out as the query; the logarithm of the sum of each query's exponentials)."""
    check_heads(query, key, value, dropout_p, attn_mask)
    batch, heads, rows, _ = query._shape
    compute, shape = compute_dtype(query), query._shape
    out = empty(shape, query._dtype, query._device, output_strides(shape, ((shape, query._stride),)))
    logs = empty((batch, heads, rows), compute, query._device, (rows * heads, 1, heads))
    if query._device.type == "meta" or not logs._shape.numel():
        return out, logs
    if not key._shape.numel():
        kernels.fill(out._operand, 0)
        kernels.fill(logs._operand, 0)
        return out, logs
    result = out if out._dtype is compute else empty(shape, compute, out._device, out._stride)
    mask = None if attn_mask is None else attn_mask._operand
    operands = (matrices(query), matrices(key), matrices(value), mask)
    kernels.attention(result._operand, logs._operand, *operands, is_causal, scale_of(query, scale))
    if result is not out:
        kernels.copy(out._operand, result._operand)
    return out, logs


@flash_backward_op.kernel("CPU", "Meta")
def flash_backward_kernel(
    grad_out: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor, dropout_p: float,
    is_causal: bool, attn_mask: Any, scale: Any,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of query, key and value."""
    check_heads(query, key, value, dropout_p, attn_mask)
    for name, x, shape in (("grad_out", grad_out, query._shape), ("out", out, query._shape)):
        if x._shape != shape:
            raise RuntimeError(f"{NAME}: expected {name} to have the query's shape {list(shape)}, got {list(x._shape)}")
    compute = compute_dtype(query)
    found = [rows_of_heads(query, x, compute) for x in (query, key, value)]
    if query._device.type != "meta":
        if not query._shape.numel() or not key._shape.numel():
            for x in found:
                kernels.fill(x._operand, 0)
        else:
            mask = None if attn_mask is None else attn_mask._operand
            grad, q, k, v, result = (matrices(x) for x in (grad_out, query, key, value, out))
            to_q, to_k, to_v = (x._operand for x in found)
            logs, factor = logsumexp._operand, scale_of(query, scale)
            kernels.attention_backward(to_q, to_k, to_v, grad, q, k, v, result, logs, mask, is_causal, factor)
    if compute is query._dtype:
        return tuple(found)  # type: ignore[return-value]  # three
    rounded = [rows_of_heads(query, x, x._dtype) for x in (query, key, value)]
    for narrow, wide in zip(rounded, found, strict=True):
        if wide._array is not None:
            kernels.copy(narrow._operand, wide._operand)
    return tuple(rounded)  # type: ignore[return-value]  # three


def flash_gradients(
    grad: Any, query: Any, key: Any, value: Any, result0: Any, result1: Any, dropout_p: float, is_causal: bool,
    attn_mask: Any, scale: Any,
) -> Any:  # fmt: skip
    return flash_backward_op.functional(
        grad, query, key, value, result0, result1, dropout_p, is_causal, attn_mask=attn_mask, scale=scale
    )


flash_op.derivative((("query", "key", "value"), flash_gradients), nondifferentiable=(1,))

# --- by its definition -----------------------------------------------------------------------------------------------

ARGUMENTS = (
    "(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, {}*, "
    "float? scale=None, bool enable_gqa=False)"
)
math_op = Operator(
    f"_scaled_dot_product_attention_math{ARGUMENTS.format('Tensor? dropout_mask=None, ')} -> (Tensor, Tensor)"
)


@math_op.implicit
def attention_composite(
    query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: float, is_causal: bool, dropout_mask: Any,
    scale: Any, enable_gqa: bool,
) -> tuple[Any, Any]:  # fmt: skip
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

attention_op = Operator(f"scaled_dot_product_attention{ARGUMENTS.format('')} -> Tensor")


@attention_op.implicit
def attention(
    query: Any, key: Any, value: Any, attn_mask: Any, dropout_p: float, is_causal: bool, scale: Any, enable_gqa: bool
) -> Any:
    """softmax(scale Q K^T + mask) V. `scale` is 1 / sqrt(width) by default; True in a mask of bools means seen.

    Shapes: query[..., n, width], key[..., m, width], value[..., m, any]; the mask broadcasts to [..., n, m].
    Dtypes: one for all, floating; the mask bool, float32 or that dtype.
    With `enable_gqa` a head of key and value serves several heads of the query. A query that sees no key gives 0.
    """
    check_arguments(query, key, value, attn_mask)
    if 0 in query._shape or 0 in key._shape or 0 in value._shape:
        return of_nothing(query, key, value)
    if attn_mask is not None:
        attn_mask = additive(attn_mask, query.dtype)
    if is_fused(query, key, value, attn_mask, dropout_p, enable_gqa):
        return flash_op.functional(query, key, value, dropout_p, is_causal, attn_mask=attn_mask, scale=scale)[0]
    how = (attn_mask, dropout_p, is_causal, None)
    return math_op.functional(query, key, value, *how, scale=scale, enable_gqa=enable_gqa)[0]


def is_fused(query: Any, key: Any, value: Any, mask: Any, dropout_p: float, enable_gqa: bool) -> bool:
    """Whether the kernel takes this: heads of one width on the CPU, with dense rows, without dropout."""
    if dropout_p > 0 or query._device.type != "cpu" or not query._dtype.is_floating_point:
        return False
    if any(len(x._shape) != 4 or x._stride[3] != 1 for x in (query, key, value)):
        return False
    batch, heads, _, width = query._shape
    if key._shape != value._shape or key._shape[0] != batch or key._shape[3] != width:
        return False
    shared = key._shape[1]
    if heads != shared and (not enable_gqa or heads % shared):
        return False
    return mask is None or (
        len(mask._shape) in (2, 4) and not mask.requires_grad and broadcasts(mask._shape, scores_shape(query, key))
    )


def of_nothing(query: Any, key: Any, value: Any) -> Any:
    """Zeros in the shape of the result, which still depend on all three as far as autograd is concerned."""
    shape = [*query._shape[:-1], value._shape[-1]]
    result = ops.aten.zeros.default(shape, dtype=query.dtype, layout=strided, device=query.device)
    of_value, of_key, of_query = value.sum(), key.sum(), query.sum()
    return result + ops.aten.mul.Scalar(of_query + of_key + of_value, 0)


NAMES = {
    **C_NAMES,
    **{"bfloat16": "c10::BFloat16", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>"},
    **{"int32": "int", "int16": "short int", "int8": "signed char", "uint8": "unsigned char"},
}


def check_arguments(query: Any, key: Any, value: Any, mask: Any) -> None:
    """RuntimeError, in PyTorch's words, where the arguments do not belong together."""
    three = (query, key, value)
    names = [NAMES.get(x._dtype.name, x._dtype.name) for x in three]
    if not query._dtype is key._dtype is value._dtype:
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {names[0]} "
            f"key.dtype: {names[1]} and value.dtype: {names[2]} instead."
        )
    if not query._device == key._device == value._device:
        raise RuntimeError(
            f"Expected query, key, and value to have the same device type, but got query.device: {query._device} "
            f"key.device: {key._device} and value.device: {value._device} instead."
        )
    dims = [len(x._shape) for x in three]
    if min(dims) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{dims[0]} key.dim: {dims[1]} and value.dim: {dims[2]} instead."
        )
    if mask is not None and mask._dtype not in (dtypes.bool, dtypes.float32, query._dtype):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{NAMES.get(mask._dtype.name, mask._dtype.name)} and  query.dtype: {names[0]} instead."
        )


attention_op.autocast(cpu="lower_precision_fp", cuda="lower_precision_fp")
scaled_dot_product_attention = public(attention_op, method=False)
