"""Layers in one operator each, as hardware libraries have them: a product with its activation, attention with its
projections, one direction of one LSTM layer.

Here they are written in other operators (`in_parts`), so they are as fast as these. Programs meet them in
graphs that PyTorch exported, on its lists of autocast, and where a backend of theirs has a kernel that does better.

Read next: linalg.py, attention.py, recurrent.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import dtypes
from redispatch.kernels.declare.out_forms import resize_and_copy_into_out

from ..declare.declare import Operator
from ..declare.operator import CUDA_PROMOTE, composite, in_parts, kernel
from ..declare.structured import not_implemented
from .activations import gelu, relu
from .linalg import SCALES, addmm, linear
from .normalization import softmax
from .recurrent import LSTM, Weights, lstm_step, over_times

# --- act(beta self + alpha mat1 mat2) ---------------------------------------------------------------------------------

addmm_activation_op = Operator(
    f"_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, {SCALES}, bool use_gelu=False) -> Tensor",
    out="out",
    refuses="bool complex",
)


@in_parts(addmm_activation_op, "self", "mat1", "mat2")
def addmm_activation(self: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any, use_gelu: bool) -> Any:
    """relu, or gelu, of `addmm`; shapes, dtypes and errors are those of `addmm`."""
    product = addmm.op.functional(self, mat1, mat2, beta=beta, alpha=alpha)
    return gelu.op.functional(product) if use_gelu else relu.op.functional(product)


resize_and_copy_into_out(addmm_activation_op)

# --- attention, from the inputs to the projected result ---------------------------------------------------------------

attention_op = Operator(
    "_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, "
    "Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, "
    "bool need_weights=True, bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)",
    refuses="whole complex",
)
OF_PAIRS, OF_KEYS, OF_ALL = range(3)  # what a mask says: for (query, key), for (example, key), for all four indices


@in_parts(attention_op, "query", "key", "value", "qkv_weight", "qkv_bias", "proj_weight", "proj_bias")
def multi_head_attention(
    query: Any, key: Any, value: Any, embed_dim: int, num_head: int, qkv_weight: Any, qkv_bias: Any, proj_weight: Any,
    proj_bias: Any, mask: Any, need_weights: bool, average_attn_weights: bool, mask_type: int | None,
) -> tuple[Any, Any]:  # fmt: skip
    """(the projected result, the weights of each head or their mean; None in their place unless they are needed)

    Shapes: query, key and value all [batch, n, embed_dim]; qkv_weight [3 embed_dim, embed_dim], qkv_bias
    [3 embed_dim]; the weights are [batch, num_head, n, n], their mean [batch, n, n]. Where `mask` is true nothing is
    seen; it is [n, n], [batch, n] or [batch, num_head, n, n] for a mask_type of 0, 1, 2.
    Errors: RuntimeError for other shapes. A query that sees no key gives NaN.
    """
    check_attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias)
    projections = zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True)
    batch, count, _ = query.shape
    heads = [batch, count, num_head, embed_dim // num_head]
    q, k, v = (linear.op.functional(x, w, b).view(heads).transpose(1, 2) for x, w, b in projections)
    scores = (q * (1 / math.sqrt(heads[-1]))).matmul(k.transpose(2, 3))
    if mask is not None:
        hidden = shaped_mask(mask, mask_type, tuple(scores.shape))
        scores = scores.masked_fill(hidden.to(dtypes.bool), -math.inf)
    weights = softmax(scores, -1)
    result = weights.matmul(v).transpose(1, 2).reshape([batch, count, embed_dim])
    shown = None if not need_weights else weights.mean([1]) if average_attn_weights else weights
    return linear.op.functional(result, proj_weight, proj_bias), shown


def check_attention(query: Any, key: Any, value: Any, embed_dim: int, num_head: int, weight: Any, bias: Any) -> None:
    """RuntimeError, in PyTorch's words, where the arguments do not belong together."""
    for name, found, wanted in (("query", query, 3), ("qkv_weight", weight, 2), ("qkv_bias", bias, 1)):
        if found.dim() != wanted:
            raise RuntimeError(f"expected {wanted}-D `{name}`, got {found.dim()}-D tensor")
    if query.shape[2] != embed_dim:
        raise RuntimeError(f"passed-in embed_dim {embed_dim} didn't match last dim of query {query.shape[2]}")
    if not query.shape == key.shape == value.shape:
        raise RuntimeError("expected `query`/`key`/`value` shapes to match")
    if weight.shape[0] != 3 * embed_dim:
        raise RuntimeError("expected `qkv_weight` first dim to be 3x embed_dim")
    if weight.shape[1] != embed_dim:
        raise RuntimeError("expected `qkv_weight` second dim to be embed_Dim")
    if bias.shape[0] != 3 * embed_dim:
        raise RuntimeError("expected `qkv_bias` first dim and first dim of query to be equal")
    if not query.dtype.is_floating_point:
        raise not_implemented("transform_bias_rescale_qkv", query.dtype)
    if num_head < 1 or embed_dim % num_head:
        raise RuntimeError("`embed_dim` must divide evenly by `num_heads`")


def shaped_mask(mask: Any, kind: int | None, scores: tuple[int, ...]) -> Any:
    """The mask in a shape that broadcasts to the scores. RuntimeError for another kind or shape."""
    if kind is None:
        raise RuntimeError("Mask Type should be defined")
    if kind not in (OF_PAIRS, OF_KEYS, OF_ALL):
        raise RuntimeError("Mask Type should be 0 (src_mask) or 1 (src_key_padding_mask), or 2 (default_mask)")
    batch, _, count, _ = scores
    shapes = (1, 1, count, count), (batch, 1, 1, count), scores
    wanted = (count, count), (batch, count), scores
    if tuple(mask.shape) != wanted[kind]:
        words = "(L, L)", "(B, L)", "input shape"
        raise RuntimeError(
            f"For mask_type == {kind} mask shape should {'match' if kind == OF_ALL else 'be'} {words[kind]}"
        )
    return mask.view(shapes[kind])


# --- one direction of one LSTM layer ----------------------------------------------------------------------------------

rnn_layer_op = Operator(
    "mkldnn_rnn_layer(Tensor input, Tensor weight0, Tensor weight1, Tensor weight2, Tensor weight3, Tensor hx_, "
    "Tensor cx_, bool reverse, int[] batch_sizes, int mode, int hidden_size, int num_layers, bool has_biases, "
    "bool bidirectional, bool batch_first, bool train) -> (Tensor, Tensor, Tensor, Tensor)",
    refuses="whole complex",
)


@in_parts(rnn_layer_op, "input", "weight0", "weight1", "weight2", "weight3", "hx_", "cx_", nondifferentiable=(3,))
def rnn_layer(
    input: Any, weight0: Any, weight1: Any, weight2: Any, weight3: Any, hx_: Any, cx_: Any, reverse: bool,
    batch_sizes: Sequence[int], mode: int, hidden_size: int, num_layers: int, has_biases: bool, bidirectional: bool,
    batch_first: bool, train: bool,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """(the results at all times, the last hidden state, the last cell, a workspace, which is empty)

    Shapes: input [time, batch, features], from the last time to the first one if `reverse`; weight0
    [4 hidden_size, features] and weight1 [4 hidden_size, hidden_size] for the input and the hidden state, weight2 and
    weight3 their biases; hx_ and cx_ have batch * hidden_size elements, and the last states their shape.
    `num_layers`, `bidirectional` and `batch_first` speak of the network that the layer is of.
    Errors: RuntimeError for another network than an LSTM, for which PyTorch's CPU library has no such kernel either.
    """
    if mode != LSTM:
        raise RuntimeError(
            f"mkldnn_rnn_layer: only an LSTM (mode {LSTM}) has a fused layer on the CPU, but got {mode=}"
        )
    if not input.dtype.is_floating_point:
        raise not_implemented("mkldnn_rnn_layer", input.dtype)
    state = [input.shape[1], hidden_size]
    biases = (weight2, weight3) if has_biases else (None, None)
    start = hx_.reshape(state), cx_.reshape(state)
    results, (hidden, cell) = over_times(lstm_step, input, start, Weights(weight0, weight1, *biases), reverse)
    workspace = ops.aten.new_empty.default(input, [0], dtype=dtypes.uint8)
    return results, hidden.reshape(hx_.shape), cell.reshape(cx_.shape), workspace


for _op in (addmm_activation_op, attention_op, rnn_layer_op):
    _op.autocast(cpu="lower_precision_fp")


# --- bilinear forms: what is linear in each of two vectors, and the product of three tensors that they are made of ----


def trilinear_backward(
    grad: Any, i1: Any, i2: Any, i3: Any, expand1: Any, expand2: Any, expand3: Any, sumdim: Any, needs: Sequence[bool]
) -> tuple[Any, Any, Any]:
    """Linear in each of the three: the gradient takes the place of the one that it is for."""
    trilinear = _trilinear_op.functional
    return (
        trilinear(grad, i2, i3, sumdim, expand2, expand3, expand1) if needs[0] else None,
        trilinear(i1, grad, i3, expand1, sumdim, expand3, expand2) if needs[1] else None,
        trilinear(i1, i2, grad, expand1, expand2, sumdim, expand3) if needs[2] else None,
    )


@kernel(
    "_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, "
    "int unroll_dim=1) -> Tensor",
    out="out",
    derivative={("i1", "i2", "i3"): trilinear_backward},
    refuses="bool",
)
def _trilinear_op(
    i1: Any, i2: Any, i3: Any, expand1: Any, expand2: Any, expand3: Any, sumdim: Any, unroll_dim: int
) -> Any:
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


@composite(
    "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
    refuses="bool",
    autocast=CUDA_PROMOTE,
)
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any) -> Any:
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
    result = _trilinear_op.functional(rows[0], weight, rows[1], [1, 3], [0], [1, 2], [2, 3])
    result = result.reshape([*batch, weight.shape[0]])
    return result if bias is None else result + bias
