"""Operators of libraries that are for GPUs alone, by their schemas: there is no kernel for them, as in a build of
PyTorch for the CPU.

A call is refused by an error that says so. They are declared so that autocast's lists, backends and graphs can name
them, and whoever has a kernel can register it. What they compute, `convolution`, `lstm_cell`, `gru_cell` and
`scaled_dot_product_attention` compute everywhere.
"""

from __future__ import annotations

from ..declare.declare import Operator

CUDNN = "SymInt[] stride, SymInt[] dilation, SymInt groups, bool benchmark, bool deterministic, bool allow_tf32"
BIASES = "Tensor? input_bias=None, Tensor? hidden_bias=None"

cudnn_convolution_op = Operator(f"cudnn_convolution(Tensor self, Tensor weight, SymInt[] padding, {CUDNN}) -> Tensor")
cudnn_convolution_transpose_op = Operator(
    f"cudnn_convolution_transpose(Tensor self, Tensor weight, SymInt[] padding, SymInt[] output_padding, {CUDNN}) "
    "-> Tensor"
)
fused_gru_cell_op = Operator(
    f"_thnn_fused_gru_cell(Tensor input_gates, Tensor hidden_gates, Tensor hx, {BIASES}) -> (Tensor, Tensor)"
)
fused_lstm_cell_op = Operator(
    f"_thnn_fused_lstm_cell(Tensor input_gates, Tensor hidden_gates, Tensor cx, {BIASES}) -> (Tensor, Tensor, Tensor)"
)
flash_attention_op = Operator(
    "_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, float dropout_p=0., "
    "bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, "
    "Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor rng_state, Tensor unused, "
    "Tensor debug_attn_mask)",
    tags=("nondeterministic_seeded",),
)

cudnn_convolution_op.autocast(cuda="lower_precision_fp")
cudnn_convolution_transpose_op.autocast(cuda="lower_precision_fp")
fused_gru_cell_op.autocast(cuda="lower_precision_fp")
fused_lstm_cell_op.autocast(cuda="lower_precision_fp")
flash_attention_op.autocast(cuda="lower_precision_fp")
