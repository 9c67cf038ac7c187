"""Operators whose CPU kernels run on a device as they are: what they decide is decided there, too (device_target.py).

Named here are those whose kernels leave all work on elements to functions of the room `kernels`, and read no number
that is on the device. All overloads of a name are meant, in all their forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from redispatch.dispatch import OPERATORS, OpOverload
from redispatch.kernels.declare.planned import Planned, PlannedSeveral
from redispatch.kernels.declare.structured import Structured

AT_INDICES = """
    gather scatter scatter_ scatter_add scatter_add_ index_select index index_put_ index_add index_add_ index_copy
    index_copy_ index_fill index_fill_ take put put_ embedding embedding_dense_backward scatter_reduce scatter_reduce_
    index_reduce index_reduce_
"""
RANDOM = """
    uniform_ normal_ exponential_ bernoulli_ random_ bernoulli normal native_dropout native_dropout_backward cauchy_
    log_normal_ geometric_ binomial poisson _standard_gamma_grad rrelu_with_noise rrelu_with_noise_
"""
DISTANCES = "_cdist_forward _pdist_forward"
LINES = """
    aminmax var std var_mean std_mean trace linalg_vector_norm
"""
LOSSES = """
    mse_loss_backward huber_loss_backward smooth_l1_loss_backward binary_cross_entropy_backward _ctc_loss
    _ctc_loss_backward multi_margin_loss multi_margin_loss_backward multilabel_margin_loss_forward
    multilabel_margin_loss_backward
"""
ELEMENTS = """
    repeat clamp clamp_ clamp_min clamp_max nan_to_num nan_to_num_ nextafter nextafter_ round round_ log_sigmoid_forward
    _prelu_kernel_backward glu glu_backward frexp _foreach_add_ _efficientzerotensor
"""
IMAGES = """
    pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle max_unpool2d max_unpool3d
    grid_sampler_2d grid_sampler_2d_backward grid_sampler_3d grid_sampler_3d_backward
    fractional_max_pool2d_backward fractional_max_pool3d_backward
    reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d
    reflection_pad1d_backward reflection_pad2d_backward reflection_pad3d_backward replication_pad1d_backward
    replication_pad2d_backward replication_pad3d_backward upsample_nearest1d upsample_nearest2d upsample_nearest3d
    _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d
    upsample_trilinear3d upsample_bicubic2d _upsample_bilinear2d_aa _upsample_bicubic2d_aa _upsample_lanczos2d_aa
    upsample_nearest1d_backward upsample_nearest2d_backward upsample_nearest3d_backward
    _upsample_nearest_exact1d_backward _upsample_nearest_exact2d_backward _upsample_nearest_exact3d_backward
    upsample_linear1d_backward upsample_bilinear2d_backward upsample_trilinear3d_backward upsample_bicubic2d_backward
    _upsample_bilinear2d_aa_backward _upsample_bicubic2d_aa_backward _upsample_lanczos2d_aa_backward
"""
SERVED = frozenset(" ".join((AT_INDICES, RANDOM, LINES, DISTANCES, LOSSES, ELEMENTS, IMAGES)).split())


def served() -> Iterator[tuple[OpOverload, Callable[..., Any]]]:
    """Each of these operators that has a kernel of the CPU's and none of a device's, and what is to run there."""
    for name, op in OPERATORS.items():
        stem = name.removeprefix("aten::").partition(".")[0]
        keys = {key.name: found for key, found in op.registrations.items()}
        if name.startswith("aten::") and stem in SERVED and "CPU" in keys and "CUDA" not in keys:
            yield op, without_plan(keys["CPU"][-1].function)


def without_plan(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel that decides anew each time, of one that remembers what it did with the CPU's memory."""
    op = getattr(kernel, "__self__", None)
    if isinstance(op, Planned) and kernel.__name__ == "run_functional":
        return lambda *args: Structured.run_functional(op, *args)
    if isinstance(op, PlannedSeveral):
        return lambda *args: several(op, *args)
    return kernel


def several(op: PlannedSeveral, *args: Any) -> tuple[Any, ...]:
    """The results of an operator that has several, decided anew."""
    results = tuple(None if meta is None else meta.allocate() for meta in op.metas_function(*args))
    run = op.loop_function(results, *args)
    written = [part for x in results if x is not None for part in (x._operand.array, x._offset)]
    run(*written, *op.operands(args))
    return results
