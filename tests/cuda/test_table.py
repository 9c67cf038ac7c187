"""The whole table of operators on the simulated device, against the CPU; what has no kernel stands in missing.py.

What the simulator was given to run is made into machine code, too, which has to keep the rules of helpers.py.
"""

import pytest

import redispatch as rd
from redispatch.dispatch import MissingKernelError, operator_named
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.declare.declare import declarations
from redispatch.kernels.declare.pointwise import DECLARED
from redispatch.kernels.ops.generators import drawing_from
from redispatch.testing import SampleInput
from redispatch.testing.op_db import op_db

from .. import drawing
from ..op_db.driver import as_list, close, run
from .helpers import check, check_entry
from .missing import MISSING, NOT_ALIKE

LARGEST = 3000  # elements: the simulator takes microseconds for each


def dtypes_of(info):
    """float32 first, in which a GPU computes; then the others that are compared with numpy."""
    first = rd.float32 if rd.float32 in info.dtypes else info.dtypes[0]
    return [first, *(dtype for dtype in info.dtypes if dtype is not first)]


# One in so many operators is drawn. Those that have a rule in common (pointwise, families) and those that are written
# in others are drawn more rarely: their kernels are made, or called, alike, and each takes a second to compile.
OWN, ALIKE = 8, 80


def cases():
    for info in op_db:
        if drawing.one_in(ALIKE if info.alike or not info.is_cheap else OWN, "cuda", info):
            for dtype in dtypes_of(info)[: None if drawing.everything else 1]:
                yield pytest.param(info, dtype, id=f"{info}-{dtype.name}")


# Operators whose kernels have shapes of their own, which are run in any case.
FAMILIES = """
    mm bmm addmm baddbmm addbmm mv addmv dot vdot addr outer matmul linear einsum linalg_multi_dot tensordot inner
    _softmax _log_softmax _softmax_backward_data _log_softmax_backward_data softmax.int log_softmax.int logsumexp
    nll_loss nll_loss_forward nll_loss2d_forward nll_loss_backward nll_loss2d_backward _fused_adam_ _fused_adamw_
    native_layer_norm native_layer_norm_backward native_group_norm native_batch_norm
    _native_batch_norm_legit.no_stats _native_batch_norm_legit_no_training rms_norm
    convolution convolution_backward conv1d conv2d conv3d conv_transpose2d.input conv2d.padding
    max_pool2d_with_indices max_pool2d_with_indices_backward max_pool3d avg_pool2d avg_pool2d_backward avg_pool3d
    _adaptive_avg_pool2d _adaptive_avg_pool2d_backward adaptive_max_pool2d adaptive_max_pool2d_backward max_pool1d
    _fft_c2c _fft_r2c _fft_c2r
""".split()
BY_HOST = [declared.base_name for declared in declarations() if declared.by_host]
# One in so many of these is drawn, and one in so many pointwise operators: to compile the kernels of one takes 0.1 to
# 2 s, once per machine.
SHARE, POINTWISE_SHARE = 4, 40
OTHERS = """
    sum sum.dim_IntList mean.dim prod all any.dim amax amin max count_nonzero cat stack clone _to_copy
    masked_fill.Scalar masked_fill.Tensor zeros_like full
    arange eye where.self contiguous equal
""".split()
POINTWISE = {form for op in DECLARED for form in op.forms}


def with_kernels():
    always = {*FAMILIES, *BY_HOST}
    assert {info.name.removeprefix("aten::") for info in op_db} >= {*always, *OTHERS}
    for info in op_db:
        name = info.name.removeprefix("aten::")
        if name in always:
            yield info, None
        elif name in OTHERS or info.op in POINTWISE:
            share = SHARE if name in OTHERS else POINTWISE_SHARE
            if drawing.everything or drawing.one_in(share, "kernels", info):
                yield info, None if drawing.everything else 6


@pytest.mark.parametrize("info, most", [pytest.param(*case, id=str(case[0])) for case in with_kernels()])
def test_an_operator_with_a_kernel_gives_what_it_gives_on_the_cpu_and_lies_as_there(simulator, info, most):
    check_entry(info, dtypes_of(info)[0], most)


def on_device(info, sample):
    """The same call with every tensor on the device, and new ones made there. Leaves stay leaves."""

    def moved(x):
        return x.detach().to("cuda").requires_grad_(x.requires_grad)

    there = sample.map(moved).map(lambda named: rd.device("cuda"), rd.device)
    if "device" not in sample.kwargs and any(
        one.name == "device" and one.kwarg_only for one in info.op.schema.arguments
    ):
        return SampleInput(there.input, there.args, {**there.kwargs, "device": rd.device("cuda")})
    return there


def numbers(*results):
    """Tensors on the CPU; anything else as it is."""
    return [x.detach().cpu() if isinstance(x, Tensor) else x for x in as_list(list(results))]


@pytest.mark.parametrize("info, dtype", [*cases()])
@pytest.mark.filterwarnings("ignore")
def test_an_operator_gives_on_the_device_what_it_gives_on_the_cpu(simulator, info, dtype):
    if str(info) in NOT_ALIKE:
        pytest.skip(NOT_ALIKE[str(info)])
    before = len(simulator.loaded)
    for sample in info.sample_inputs(dtype, thorough=False):
        if any(x.numel() > LARGEST for x in sample.tensors()):
            continue
        here = sample.copy()
        try:
            there = on_device(info, here)
            found = run(info, there)
        except MissingKernelError as error:
            if error.op.qualified_name.removeprefix("aten::") not in MISSING:
                raise
            pytest.skip(f"{error.op.qualified_name} has no CUDA kernel yet")
        with drawing_from(rd.Generator(kind="philox").manual_seed(0)):  # of the device's kind
            wanted = run(info, here)
        assert all(x.is_cuda for x in as_list(found) if isinstance(x, Tensor)), f"{sample}: a result is not there"
        tolerance = info.tolerance.get(dtype.name)
        options = {} if tolerance is None else {"rtol": tolerance[0], "atol": tolerance[1]}
        close(numbers(found), numbers(wanted), sample, check_stride=False, **options)
        close(numbers(there.tensors()), numbers(here.tensors()), f"what is left of the arguments of {sample}")
    check(simulator.loaded[before:], compiled=False)


def test_what_is_said_to_be_missing_is_missing(simulator):
    have = [name for name in MISSING if "CUDA" in {key.name for key in operator_named(f"aten::{name}").registrations}]
    assert not have, f"these have CUDA kernels now: take them off MISSING in {__name__.rpartition('.')[0]}/missing.py"


def test_what_is_said_not_to_be_alike_is_in_the_table():
    assert NOT_ALIKE.keys() <= {str(info) for info in op_db}
