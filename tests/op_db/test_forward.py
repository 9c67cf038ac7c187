"""Forward mode agrees with reverse mode: <u, J t> is <J^T u, t>, for every operator; so do the two kinds of levels."""

import numpy as np
import pytest

import redispatch as rd
from redispatch.autograd import forward_ad as fwAD
from redispatch.autograd import grad
from redispatch.dispatch.autograd.forward import FORWARD, LINEAR, composite_kernel
from redispatch.dispatch.layers.autograd import DERIVATIVES
from redispatch.dispatch.tensor import Tensor
from redispatch.func import jvp, vjp

from .driver import as_list, each, run, skip_where_it_does_not_hold
from .test_gradients import COMPLEX, DIFFERENTIABLE, as_function, is_refused


def directions(tensors, seed=0):
    rng = np.random.default_rng(seed)
    made = []
    for x in tensors:
        values = np.asarray(rng.standard_normal(tuple(x.shape)))
        if x.dtype.is_complex:
            values = np.asarray(values + 1j * rng.standard_normal(tuple(x.shape)))
        made.append(rd.from_numpy(values).to(x.dtype))
    return made


def plain(x):
    return x.detach().resolve_conj().resolve_neg().numpy()


def inner(xs, ys):
    """The real inner product of two lists of tensors."""
    pairs = [(plain(x), plain(y)) for x, y in zip(xs, ys, strict=True) if x is not None]
    return sum(float(np.real(np.sum(np.conj(x) * y))) for x, y in pairs)


def sample_with_gradient(info, dtype):
    for sample in info.sample_inputs(dtype, requires_grad=True):
        if "gradients" not in sample.skips:
            function, tensors = as_function(info, sample)
            if tensors and function(*tensors) and any(x.numel() for x in tensors):
                yield sample, function, tensors


@each(DIFFERENTIABLE, lambda info: [rd.float64])
def test_tangents_are_those_that_backward_implies(info, dtype):
    skip_where_it_does_not_hold(info, "gradients")
    for needed in ("forward", "second_gradients"):
        skip_where_it_does_not_hold(info, needed)
    assert [agrees_with_backward(*found) for found in list(sample_with_gradient(info, dtype))[:4]]


# Of these, many kernels for complex numbers are compiled, which takes seconds
SLOW_COMPLEX = {"convolution", "renorm", "prod"}


def is_slow_complex(info, dtype):
    return not info.is_cheap or str(info) in SLOW_COMPLEX


@pytest.mark.once  # what it compares does not depend on how calls run; the test above runs both ways
@each(COMPLEX, lambda info: [rd.complex128], long=is_slow_complex)
def test_tangents_of_complex_numbers_are_those_that_backward_implies(info, dtype):
    for needed in ("gradients", "complex_gradients", "forward", "second_gradients"):
        skip_where_it_does_not_hold(info, needed)
    checked = 0
    for sample in info.sample_inputs(dtype, requires_grad=True, thorough=False):
        function, tensors = as_function(info, sample)
        if "gradients" in sample.skips or not tensors or is_refused(function, tensors) or not function(*tensors):
            continue
        if any(x.numel() for x in tensors):
            agrees_with_backward(sample, function, tensors)
            checked += 1
            if checked == 2:
                break
    assert checked, f"{info}: no sample has a gradient"


def agrees_with_backward(sample, function, tensors):
    """Asserts that <u, J t> is <J^T u, t> for a random u and t."""
    moves = directions(tensors)
    with fwAD.dual_level():
        duals = [fwAD.make_dual(x, t) for x, t in zip(tensors, moves, strict=True)]
        unpacked = [fwAD.unpack_dual(y) for y in function(*duals)]
    outputs = function(*tensors)
    seeds = directions(outputs, 1)
    gradients = grad(outputs, tensors, seeds, allow_unused=True)
    forward = inner([tangent for _, tangent in unpacked], seeds)
    assert np.isclose(forward, inner(gradients, moves), rtol=1e-6, atol=1e-9), sample
    return True


@each(DIFFERENTIABLE, lambda info: [rd.float64])
def test_levels_give_the_same_as_the_plain_modes(info, dtype):
    skip_where_it_does_not_hold(info, "gradients")
    for needed in ("forward", "second_gradients"):
        skip_where_it_does_not_hold(info, needed)
    for sample, function, tensors in list(sample_with_gradient(info, dtype))[:1]:
        inputs = tuple(x.detach() for x in tensors)
        moves = tuple(directions(tensors))

        outputs = function(*tensors)
        seeds = directions(outputs, 1)
        gradients = grad(outputs, tensors, seeds, allow_unused=True)
        try:
            _, pull = vjp(function, *inputs)
        except RuntimeError as error:
            if "would mutate a captured Tensor" in str(error):
                pytest.skip("it writes arguments that have no gradient, which transforms refuse")
            raise
        pulled = pull(tuple(seeds))
        for ours, theirs in zip(pulled, gradients, strict=True):
            theirs = rd.zeros_like(ours) if theirs is None else theirs
            assert np.allclose(plain(ours), plain(theirs), rtol=1e-6, atol=1e-9, equal_nan=True), sample
        _, pushed = jvp(function, inputs, moves)
        assert np.isclose(inner(pushed, seeds), inner(gradients, moves), rtol=1e-6, atol=1e-9), sample


# What is linear -------------------------------------------------------------------------------------------------------


def has_own_rule(info):
    """Whether the tangent is the operator's own affair: it is no view, not pointwise, and not written in others."""
    rule = DERIVATIVES.get(info.op)
    return not (info.op.schema.is_view or composite_kernel(info.op) or getattr(rule, "pointwise", rule is None))


def moves(x):
    return isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex())


def is_additive(info, sample):
    """Whether f(x + y) is f(x) + f(y), f(-x) is -f(x) and f(0) is 0, over all tensors at once; None where there is
    nothing to see."""

    def each_moving(change):
        rng = np.random.default_rng(0)
        draw = lambda x: rd.tensor(rng.standard_normal(tuple(x.shape))).to(x.dtype)
        return sample.map(lambda x: change(x.detach(), draw(x)) if moves(x) else x.clone())

    calls = (
        each_moving(lambda x, y: x.clone()),
        each_moving(lambda x, y: y),
        each_moving(lambda x, y: x + y),
        each_moving(lambda x, y: x * 0),
        each_moving(lambda x, y: -x),
    )
    try:
        results = [[plain(x) for x in as_list(run(info, one)) if moves(x)] for one in calls]
    except (RuntimeError, IndexError):
        return False
    if not any(np.isfinite(x).any() for x in results[2]):
        return None
    return all(
        np.allclose(a + b, both, atol=1e-9) and not np.any(none) and np.allclose(-a, turned, atol=1e-9)
        for a, b, both, none, turned in zip(*results, strict=True)
    )


@each([info for info in DIFFERENTIABLE if has_own_rule(info) and not info.random], lambda info: [rd.float64])
def test_what_is_linear_is_declared_to_be_and_nothing_else(info, dtype):
    found = [is_additive(info, sample) for sample in info.sample_inputs(dtype)]
    found = [one for one in found if one is not None]
    if FORWARD.get(info.op) == LINEAR:
        assert all(found), f"{info} is declared linear, and is not"
    elif found and all(found):
        assert info.op in FORWARD, f'{info} is linear, and does not say so: op.forward("linear")'
