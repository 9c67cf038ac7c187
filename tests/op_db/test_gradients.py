"""Gradients, and the gradients of gradients, are those of finite differences."""

import redispatch as rd
from redispatch.autograd import gradcheck, gradgradcheck
from redispatch.dispatch.tensor import Tensor
from redispatch.testing.op_db import op_db
from redispatch.testing.op_info import SampleInput
from redispatch.utils import _pytree as pytree

from .driver import as_list, each, run, skip_where_it_does_not_hold

DIFFERENTIABLE = [info for info in op_db if info.gradients and rd.float64 in info.dtypes]
COMPLEX = [info for info in op_db if info.gradients and "complex128" not in (*info.refused, *info.not_sampled)]


# Of these many numbers are differentiated, which takes ten seconds and more: they are left to the long run
SLOW = {
    "grid_sampler_2d_backward",
    "grid_sampler_3d_backward",
    "lstm.data",
    "ormqr",
    "linalg_householder_product",
    "linalg_pinv.atol_rtol_tensor",
    "linalg_lstsq",
}


def is_slow(info, dtype):
    return str(info) in SLOW or info.is_left_by("test_gradients_are_those_of_finite_differences")


def as_function(info, sample):
    """(a function of the sample's tensors that require grad, these tensors)

    The function gives those of the results that have a gradient.
    """
    leaves, spec = pytree.tree_flatten((sample.arguments, dict(sample.kwargs)))
    places = [i for i, x in enumerate(leaves) if isinstance(x, Tensor) and x.requires_grad]

    def function(*tensors):
        filled = list(leaves)
        for place, x in zip(places, tensors, strict=True):
            filled[place] = x.clone() if info.mutates and place == 0 else x
        if info.hermitian:
            filled[0] = (filled[0] + filled[0].mH) / 2
        args, kwargs = pytree.tree_unflatten(filled, spec)
        results = run(info, SampleInput(args[0], tuple(args[1:]), kwargs))
        results = as_list(info.definite(results) if info.definite else results)
        results = [x for x in results if isinstance(x, Tensor)]
        if not differentiable:  # known from the first call, which is made on the sample's own tensors
            differentiable.extend(i for i, x in enumerate(results) if x.requires_grad)
        return tuple(results[i] for i in differentiable)

    differentiable = []
    return function, tuple(leaves[i] for i in places)


@each(DIFFERENTIABLE, lambda info: [rd.float64], long=is_slow)
def test_gradients_are_those_of_finite_differences(info, dtype):
    skip_where_it_does_not_hold(info, "gradients")
    checked = 0
    for sample in info.sample_inputs(dtype, requires_grad=True):
        if "gradients" in sample.skips:
            continue
        function, tensors = as_function(info, sample)
        if tensors and function(*tensors):
            checked += any(x.numel() for x in tensors)
            assert gradcheck(function, tensors), sample
    assert checked, f"{info}: no sample has a gradient"


@each(COMPLEX, lambda info: [rd.complex128], long=lambda info, dtype: not info.is_cheap or is_slow(info, dtype))
def test_gradients_of_complex_numbers_are_those_of_finite_differences(info, dtype):
    skip_where_it_does_not_hold(info, "gradients")
    skip_where_it_does_not_hold(info, "complex_gradients")
    checked = 0
    for sample in info.sample_inputs(dtype, requires_grad=True, thorough=False):
        function, tensors = as_function(info, sample)
        if "gradients" in sample.skips or not tensors or is_refused(function, tensors) or not function(*tensors):
            continue
        checked += any(x.numel() for x in tensors)
        assert gradcheck(function, tensors), sample
        if checked == 1 and "second_gradients" not in info.skips:
            assert gradgradcheck(function, tensors), sample
    assert checked, f"{info}: no sample has a gradient"


def is_refused(function, tensors):
    """Whether the operator does not compute these arguments for complex numbers."""
    try:
        with rd.no_grad():
            function(*tensors)
    except NotImplementedError:
        return True
    return False


SLOW_TWICE = {"grid_sampler", "grid_sampler_3d", "grid_sampler_2d_backward", "grid_sampler_3d_backward"}


def is_slow_twice(info, dtype):
    return str(info) in SLOW_TWICE or info.is_left_by("test_second_gradients_are_those_of_finite_differences")


@each(DIFFERENTIABLE, lambda info: [rd.float64], long=is_slow_twice)
def test_second_gradients_are_those_of_finite_differences(info, dtype):
    skip_where_it_does_not_hold(info, "second_gradients")
    samples = info.sample_inputs(dtype, requires_grad=True)
    sample = next(sample for sample in samples if "gradients" not in sample.skips)
    function, tensors = as_function(info, sample)
    assert gradgradcheck(function, tensors), sample


@each([info for info in op_db if not info.gradients])
def test_what_has_no_gradient_records_nothing(info, dtype):
    skip_where_it_does_not_hold(info, "recording")
    for sample in info.sample_inputs(dtype, requires_grad=True):
        if not info.mutates:
            results = [x for x in as_list(run(info, sample)) if isinstance(x, Tensor)]
            assert not any(x.requires_grad for x in results), sample


@each(DIFFERENTIABLE)
def test_nothing_is_recorded_under_no_grad(info, dtype):
    for sample in info.sample_inputs(dtype, requires_grad=True):
        if not info.mutates:
            with rd.no_grad():
                results = [x for x in as_list(run(info, sample)) if isinstance(x, Tensor)]
            assert not any(x.grad_fn for x in results), sample
