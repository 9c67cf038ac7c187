"""out= forms that no Python function ends in: backends and functionalization call `ops.aten.add.Scalar_out`.

Each calls the functional form and copies what it gives (out_forms.py), as those do that PyTorch generates. They are
declared when one is first looked for (`LATE`, dispatch/core/registry.py).

Most say so where they are declared (`late_out`, ../declare/declare.py), the rest is listed here. The schema follows
from the functional form's. Several results are written into `out0`, `out1` and so on, unless they have names of their
own.
"""

from __future__ import annotations

from redispatch.dispatch import OPERATORS, define
from redispatch.dispatch.layers import ad_inplace_or_view
from redispatch.dispatch.schema.text import SchemaText
from redispatch.kernels.declare.out_forms import register_copying

from ..declare.declare import declarations

# functional forms whose out= form is called as they are, with `out` at the end: add.Scalar_out, clone.out
PLAIN = """
    _convolution _grid_sampler_2d_cpu_fallback _native_multi_head_attention conv_tbc mkldnn_rnn_layer
    _adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d _adaptive_avg_pool3d_backward
    _cdist_backward _cdist_forward _conj_physical _ctc_loss.Tensor _ctc_loss _ctc_loss_backward _efficientzerotensor
    _embedding_bag _embedding_bag_forward_only _histogramdd_bin_edges _log_softmax_backward_data
    _native_batch_norm_legit_no_training _pack_padded_sequence _pdist_backward _pdist_forward _to_copy _unique _unique2
    _unsafe_view adaptive_avg_pool1d as_strided_scatter avg_pool1d bincount clone constant_pad_nd convolution_backward
    copy count_nonzero.dim_IntList count_nonzero diag_embed diagonal_backward diagonal_scatter embedding
    embedding_dense_backward empty_like empty_strided fill.Scalar fill.Tensor flip full_like grid_sampler_2d_backward
    grid_sampler_3d_backward index.Tensor index_fill.int_Scalar index_fill.int_Tensor index_put lift_fresh_copy
    linalg_matrix_exp log_softmax.int masked_fill.Scalar masked_fill.Tensor masked_scatter multilabel_margin_loss
    native_batch_norm_backward native_dropout native_dropout_backward native_group_norm native_group_norm_backward
    native_layer_norm native_layer_norm_backward new_empty new_empty_strided new_full new_ones new_zeros nll_loss
    nll_loss2d ones_like prod put rand.generator rand_like randint_like randint_like.low_dtype randn.generator
    randn_like repeat repeat_interleave.Tensor roll scalar_tensor select_backward select_scatter slice_backward
    slice_scatter softmax.int std_mean.correction unfold_backward unique_consecutive unique_dim unique_dim_consecutive
    unsafe_split.Tensor unsafe_split_with_sizes upsample_bilinear2d.vec upsample_nearest2d.vec var_mean.correction
    zeros_like
""".split()

# functional form -> the out= form's overload name, where that is another one, and what it calls the tensors
NAMED = {
    **{
        f"{name}_backward": ("grad_input", ("grad_input",))
        for name in """
        adaptive_max_pool2d adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d multi_margin_loss
        multilabel_margin_loss nll_loss nll_loss2d
        """.split()
    },
    "_native_batch_norm_legit.no_stats": ("no_stats_out", ("out", "save_mean", "save_invstd")),
    "_softmax_backward_data": ("out", ("grad_input",)),
    "adaptive_max_pool2d": ("out", ("out", "indices")),
    "adaptive_max_pool3d": ("out", ("out", "indices")),
    "fractional_max_pool2d": ("output", ("output", "indices")),
    "fractional_max_pool3d": ("output", ("output", "indices")),
    "multilabel_margin_loss_forward": ("output", ("output", "is_target")),
    "native_batch_norm": ("out", ("out", "save_mean", "save_invstd")),
    "nll_loss2d_forward": ("output", ("output", "total_weight")),
    "nll_loss_forward": ("output", ("output", "total_weight")),
}


def declare(name: str, overload: str, names: tuple[str, ...] = ()) -> None:
    """The out= form of `name`, which is called `overload`, unless it is there already or there is no such operator."""
    functional = OPERATORS.get(f"aten::{name}")
    stem = name.partition(".")[0]
    if functional is None or f"aten::{stem}.{overload}" in OPERATORS:
        return
    text = SchemaText(str(functional.schema))
    count = len(functional.schema.returns)
    if names and count > 1:
        text.returns = f"({', '.join(['Tensor'] * count)})"  # as PyTorch writes them here, without names
    if not names and count > 1 and not any(returned.name for returned in functional.schema.returns):
        names = tuple(f"out{i}" for i in range(count))
    tags = [tag.name for tag in functional.tags if tag.name == "nondeterministic_seeded"]
    form, _ = define(text.out(overload, names), dict.fromkeys((*tags, "out")), __file__)
    ad_inplace_or_view.track_aliases(form)
    register_copying(form, functional, text.names)


for _operator in declarations():
    _late, _overload = _operator.late_out, _operator.functional.schema.overload_name
    if _late:
        _usual = (f"{_overload}_out" if _overload else "out",)
        _said = _late if isinstance(_late, tuple) else (_late, _late) if isinstance(_late, str) else _usual
        declare(_operator.functional.qualified_name.removeprefix("aten::"), _said[0], _said[1:])
for _name in PLAIN:
    if _name not in NAMED:
        _overload = _name.partition(".")[2]
        declare(_name, f"{_overload}_out" if _overload else "out")
for _name, (_overload, _names) in NAMED.items():
    declare(_name, _overload, _names)
