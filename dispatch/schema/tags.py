"""Tags: what is true of an operator and does not show in its schema. PyTorch's words; each is a str, too."""

from __future__ import annotations

from enum import StrEnum


class Tag(StrEnum):
    """`Tag.pointwise in op.tags`."""

    core = "core"
    pointwise = "pointwise"
    reduction = "reduction"
    inplace = "inplace"
    out = "out"
    inplace_view = "inplace_view"
    view_copy = "view_copy"
    generated = "generated"
    data_dependent_output = "data_dependent_output"
    dynamic_output_shape = "dynamic_output_shape"
    nondeterministic_seeded = "nondeterministic_seeded"
    nondeterministic_bitwise = "nondeterministic_bitwise"
    maybe_aliasing_or_mutating = "maybe_aliasing_or_mutating"
    pt2_compliant_tag = "pt2_compliant_tag"
    needs_exact_strides = "needs_exact_strides"
    needs_contiguous_strides = "needs_contiguous_strides"
    needs_fixed_stride_order = "needs_fixed_stride_order"
    flexible_layout = "flexible_layout"
    cudagraph_unsafe = "cudagraph_unsafe"
