"""Batching rules: what an operator does to a whole batch, derived from the operator's shape class.

Most operators need no rule of their own. How shapes go through an operator is nearly always one of a few ways, and the
way is known from its tags, its schema, its declaration (`batching="pointwise"`) or the lists below:

    pointwise   broadcast from the right                              add, exp, where         pointwise.py
    dims        name the dimensions they work along, or sizes         sum, cumsum, view       by_dims.py
    full        work along all dimensions                             max, median             reductions.py
    leading     work on the last dimensions, whatever is in front     tril, linalg_inv        by_dims.py
    matrices    products of matrices and vectors                      mm, addmm, dot          products.py
    images      take any number of images                             max_pool2d, upsample    images.py
    indices     take tensors of indices                               index, embedding        indices.py
    random      draw numbers                                          rand, bernoulli         random.py
    losses      pointwise, then reduced if asked for                  mse_loss                losses.py
    parts       have a kernel in other operators, or a formula        dist, trace, put        decompositions.py
    dynamic     the shape or a number depends on values: refused      nonzero, item           refused.py

The rest is called once for each example (fallback.py), with a warning that says how to give it a rule.

Read next: by_dims.py; ../../dispatch/transforms/batched.py has what rules are made of.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from redispatch.dispatch import OpOverload, Tag
from redispatch.dispatch.autograd.forward import composite_kernel
from redispatch.dispatch.layers.transforms import BATCHING
from redispatch.dispatch.transforms import batched
from redispatch.kernels.declare.declare import DECLARED

from ...dispatch.transforms.batched import Decomposition
from .by_dims import dims_rule, leading_rule
from .decompositions import by_its_kernel, written_over
from .fallback import one_by_one
from .images import IMAGES, images_rule
from .losses import LOSS, LOSS_BACKWARD
from .pointwise import pointwise_rule
from .random import draws, is_random, random_call
from .reductions import FULL, full_rule
from .refused import refuse
from .rows import row_rule
from .writes import check_writes

POINTWISE = frozenset(
    """
    empty_like zeros_like ones_like full_like fill.Scalar fill_.Scalar zero_ copy_ clone _to_copy alias detach detach_
    lift_fresh lift_fresh_copy masked_fill.Scalar masked_fill_.Scalar view.dtype isin.Tensor_Scalar
    native_dropout_backward _standard_gamma_grad _conj_physical _conj _neg_view conj_physical resolve_conj resolve_neg
    real imag view_as_real
    """.split()
)

DIMS = frozenset(
    """
    sum.dim_IntList mean.dim prod.dim_int all.dim all.dims any.dim any.dims count_nonzero.dim_IntList var.correction
    std.correction var_mean.correction std_mean.correction linalg_vector_norm logsumexp amax amin max.dim min.dim
    aminmax argmax argmin nansum median.dim nanmedian.dim mode kthvalue topk sort sort.stable cumsum cumsum_ cumprod
    cumprod_ logcumsumexp cummax cummin _softmax _log_softmax _softmax_backward_data _log_softmax_backward_data
    _safe_softmax flip diag_embed diagonal diagonal_copy diagonal_scatter diagonal_backward
    select_backward slice_backward unfold_backward select_scatter slice_scatter stack cat gather scatter scatter_
    scatter_add scatter_add_ scatter_reduce scatter_reduce_ new_empty new_zeros new_ones new_full transpose transpose_
    unsqueeze unsqueeze_ squeeze.dim squeeze.dims squeeze_.dim squeeze_.dims permute view _unsafe_view select slice
    unbind split split_with_sizes unsafe_split unsafe_split_with_sizes unfold fft_fft linalg_cross _fft_r2c _fft_c2c
    _fft_c2r nansum
    """.split()
)

LEADING = frozenset(
    """
    geqrf ormqr _linalg_eigvals _cholesky_solve_helper linalg_lstsq
    tril tril_ triu triu_ constant_pad_nd _cdist_forward _cdist_backward linalg_inv_ex linalg_cholesky_ex linalg_qr
    linalg_svd _linalg_svd linalg_eigh _linalg_eigh linalg_eig linalg_eigvals _linalg_det _linalg_slogdet
    _linalg_solve_ex linalg_lu_factor_ex linalg_lu linalg_lu_solve linalg_solve_triangular linalg_matrix_exp
    linalg_householder_product linalg_ldl_factor_ex linalg_ldl_solve cholesky cholesky_solve cholesky_inverse
    triangular_solve lu_unpack linalg_pinv.atol_rtol_tensor pixel_shuffle pixel_unshuffle _linalg_check_errors bmm
    baddbmm view_as_complex
    """.split()
)

Rule = Callable[..., Any] | Decomposition


def shape_class(op: OpOverload) -> str:
    """How shapes go through the operator: a word of the list above; "composite" for what is written in other operators,
    "out" and "view" for what vmap refuses, and "other" for what is called once for each example."""
    if op.schema.is_out:
        return "out"
    if composite_kernel(op) is not None:
        return "composite"
    if is_random(op):
        return "random"
    place = BATCHING.place(op)
    return class_without_rule(op) if place is None else OWN_RULES.get(place, "other")


OWN_RULES = {  # the classes of operators that have a rule of their own, by where it is
    "kernels/batching/batch_norm.py": "images",
    "kernels/batching/decompositions.py": "parts",
    "kernels/batching/images.py": "images",
    "kernels/batching/indices.py": "indices",
    "kernels/batching/layer_norm.py": "dims",
    "kernels/batching/losses.py": "losses",
    "kernels/batching/products.py": "matrices",
    "kernels/batching/sequences.py": "leading",
    "kernels/batching/views.py": "dims",
    "kernels/batching/writes.py": "pointwise",
}


def class_without_rule(op: OpOverload) -> str:
    """The same for an operator that has declared no rule, by its tags, its schema and the lists."""
    tags = set(op.tags)
    if Tag.dynamic_output_shape in tags or Tag.data_dependent_output in tags:
        return "dynamic"
    declared = DECLARED.get(op)
    if declared is not None and declared.batching:
        return declared.batching
    if named(op, FULL):
        return "full" if op._overloadname == "default" else "dims"
    if named(op, POINTWISE) or Tag.pointwise in tags:
        return "pointwise"
    for name, names in (("dims", DIMS), ("leading", LEADING), ("images", IMAGES)):
        if named(op, names):
            return name
    if op.schema.is_view or Tag.inplace_view in tags:
        return "view"
    return "other" if by_its_kernel(op) is None and written_over(op, rule_of) is None else "parts"


@lru_cache(None)
def rule_of(op: OpOverload) -> Rule:
    """The batching rule of an operator that has declared none."""
    found = "out" if op.schema.is_out else class_without_rule(op)
    if found in ("out", "dynamic", "view"):
        return refuse(op, found)
    backward = op._opname.endswith("_backward")
    if found == "losses":
        return LOSS_BACKWARD if backward else LOSS
    if found == "pointwise" and backward:  # most backwards want all their arguments of one shape
        return leading_rule
    if found == "parts":
        return by_its_kernel(op) or written_over(op, rule_of)
    return RULES[found]


RULES: dict[str, Rule] = {
    "full": full_rule,
    "pointwise": pointwise_rule,
    "dims": dims_rule,
    "leading": leading_rule,
    "images": images_rule,
    "other": one_by_one,
}


def named(op: OpOverload, names: Any) -> bool:
    """Whether a list has the operator: by its name with the overload, or by its name for all overloads."""
    name = op.qualified_name.removeprefix("aten::")
    return name in names or (op.namespace == "aten" and op._opname in names)


batched.RULES.fill(batched.Rules(rule_of, row_rule, draws, random_call, check_writes))
