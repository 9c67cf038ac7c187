"""Gradients, and the gradients of gradients, are those of finite differences."""

import redispatch as rd
from redispatch.autograd import gradcheck, gradgradcheck
from redispatch.dispatch.tensor import Tensor
from redispatch.testing.check_operator import as_function

from ... import drawing
from ..driver import as_list, run
from .table import DoesNotApply, holds


def is_differentiable(info):
    return info.gradients and rd.float64 in info.dtypes


def is_complex(info):
    return info.gradients and "complex128" not in (*info.refused, *info.not_sampled)


# Of these many numbers are differentiated, which takes ten seconds and more: `make test` leaves them out
SLOW = {
    "grid_sampler_2d_backward",
    "grid_sampler_3d_backward",
    "lstm.data",
    "ormqr",
    "linalg_householder_product",
    "linalg_pinv.atol_rtol_tensor",
    "linalg_lstsq",
}
SLOW_TWICE = {*SLOW, "grid_sampler", "grid_sampler_3d"}


def refuse_slow(info, slow):
    if str(info) in slow and not drawing.everything:
        raise DoesNotApply("takes ten seconds and more: `make test-all` differentiates it")


def in_double(info):
    return [rd.float64]


def in_complex(info):
    return [rd.complex128]


def is_refused(function, tensors):
    """Whether the operator does not compute these arguments for complex numbers."""
    try:
        with rd.no_grad():
            function(*tensors)
    except NotImplementedError:
        return True
    return False


@holds("gradients", of=is_differentiable, dtypes=in_double, requires_grad=True, unless=["gradients"], always=True)
def gradients_are_those_of_finite_differences(info, sample):
    refuse_slow(info, SLOW)
    function, tensors = as_function(info, sample)
    if not tensors or not function(*tensors):
        return False
    assert gradcheck(function, tensors)
    return any(x.numel() for x in tensors)


@holds(
    "complex_gradients",
    of=is_complex,
    dtypes=in_complex,
    requires_grad=True,
    thorough=False,
    unless=["gradients", "complex_gradients"],
    always=True,
    one_in=16,
)
def gradients_of_complex_numbers_are_those_of_finite_differences(info, samples):
    """Those of all samples, and the second ones of the first."""
    refuse_slow(info, SLOW)
    checked = 0
    for sample in samples:
        function, tensors = as_function(info, sample)
        if not tensors or is_refused(function, tensors) or not function(*tensors):
            continue
        checked += any(x.numel() for x in tensors)
        assert gradcheck(function, tensors), sample
        if checked == 1 and "second_gradients" not in info.skips:
            assert gradgradcheck(function, tensors), sample
    return checked > 0


@holds(
    "second_gradients",
    of=is_differentiable,
    dtypes=in_double,
    requires_grad=True,
    unless=["gradients", "second_gradients"],
    most=1,
    always=True,
    one_in=8,
)
def second_gradients_are_those_of_finite_differences(info, sample):
    refuse_slow(info, SLOW_TWICE)
    function, tensors = as_function(info, sample)
    assert gradgradcheck(function, tensors)


@holds("recording", of=lambda info: not info.gradients and not info.mutates, requires_grad=True, unless=["recording"])
def what_has_no_gradient_records_nothing(info, sample):
    results = [x for x in as_list(run(info, sample)) if isinstance(x, Tensor)]
    assert not any(x.requires_grad for x in results)


@holds("no_grad", of=lambda info: is_differentiable(info) and not info.mutates, requires_grad=True)
def nothing_is_recorded_under_no_grad(info, sample):
    with rd.no_grad():
        results = [x for x in as_list(run(info, sample)) if isinstance(x, Tensor)]
    assert not any(x.grad_fn for x in results)
