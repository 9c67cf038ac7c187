"""Forward mode agrees with reverse mode: <u, J t> is <J^T u, t>, for every operator; so do the two kinds of levels."""

import numpy as np

import redispatch as rd
from redispatch.autograd import forward_ad as fwAD
from redispatch.autograd import grad
from redispatch.dispatch.autograd.forward import FORWARD, LINEAR, composite_kernel
from redispatch.dispatch.layers.autograd import DERIVATIVES
from redispatch.dispatch.tensor import Tensor
from redispatch.func import jvp, vjp
from redispatch.testing.check_operator import as_function

from ... import drawing
from ..driver import as_list, run
from .gradients import in_complex, in_double, is_complex, is_differentiable, is_refused
from .table import DoesNotApply, holds


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


def agrees_with_backward(function, tensors):
    """Asserts that <u, J t> is <J^T u, t> for a random u and t."""
    moves = directions(tensors)
    with fwAD.dual_level():
        duals = [fwAD.make_dual(x, t) for x, t in zip(tensors, moves, strict=True)]
        unpacked = [fwAD.unpack_dual(y) for y in function(*duals)]
    outputs = function(*tensors)
    seeds = directions(outputs, 1)
    gradients = grad(outputs, tensors, seeds, allow_unused=True)
    forward = inner([tangent for _, tangent in unpacked], seeds)
    assert np.isclose(forward, inner(gradients, moves), rtol=1e-6, atol=1e-9)


def with_gradient(info, sample):
    """(a function of the sample's tensors that require grad, these tensors), or None where nothing has a gradient."""
    function, tensors = as_function(info, sample)
    found = tensors and function(*tensors) and any(x.numel() for x in tensors)
    return (function, tensors) if found else None


@holds(
    "forward",
    of=is_differentiable,
    dtypes=in_double,
    requires_grad=True,
    unless=["gradients", "forward", "second_gradients"],
    most=4,
    always=True,
    one_in=2,
)
def tangents_are_those_that_backward_implies(info, sample):
    found = with_gradient(info, sample)
    if found is None:
        return False
    agrees_with_backward(*found)
    return True


# Of these, many kernels for complex numbers are compiled, which takes seconds: `make test` leaves them out
SLOW_COMPLEX = {"convolution", "renorm", "prod"}


@holds(
    "complex_forward",
    of=is_complex,
    dtypes=in_complex,
    requires_grad=True,
    thorough=False,
    unless=["gradients", "complex_gradients", "forward", "second_gradients"],
    most=2,
    always=True,
    one_in=16,
)
def tangents_of_complex_numbers_are_those_that_backward_implies(info, sample):
    if str(info) in SLOW_COMPLEX and not drawing.everything:
        raise DoesNotApply("many kernels are compiled for it: `make test-all` does that")
    function, tensors = as_function(info, sample)
    if not tensors or is_refused(function, tensors) or not function(*tensors) or not any(x.numel() for x in tensors):
        return False
    agrees_with_backward(function, tensors)
    return True


@holds(
    "levels",
    of=is_differentiable,
    dtypes=in_double,
    requires_grad=True,
    unless=["gradients", "forward", "second_gradients"],
    most=1,
    one_in=4,
)
def levels_give_the_same_as_the_plain_modes(info, sample):
    found = with_gradient(info, sample)
    if found is None:
        return False
    function, tensors = found
    inputs = tuple(x.detach() for x in tensors)
    moves = tuple(directions(tensors))

    outputs = function(*tensors)
    seeds = directions(outputs, 1)
    gradients = grad(outputs, tensors, seeds, allow_unused=True)
    try:
        _, pull = vjp(function, *inputs)
    except RuntimeError as error:
        if "would mutate a captured Tensor" in str(error):
            raise DoesNotApply("it writes arguments that have no gradient, which transforms refuse") from error
        raise
    pulled = pull(tuple(seeds))
    for ours, theirs in zip(pulled, gradients, strict=True):
        theirs = rd.zeros_like(ours) if theirs is None else theirs
        assert np.allclose(plain(ours), plain(theirs), rtol=1e-6, atol=1e-9, equal_nan=True)
    _, pushed = jvp(function, inputs, moves)
    assert np.isclose(inner(pushed, seeds), inner(gradients, moves), rtol=1e-6, atol=1e-9)
    return True


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


@holds("linear", of=lambda info: is_differentiable(info) and has_own_rule(info) and not info.random, dtypes=in_double)
def what_is_linear_is_declared_to_be_and_nothing_else(info, samples):
    found = [is_additive(info, sample) for sample in samples]
    found = [one for one in found if one is not None]
    if FORWARD.get(info.op) == LINEAR:
        assert all(found), f"{info} is declared linear, and is not"
    elif found and all(found):
        assert info.op in FORWARD, f'{info} is linear, and does not say so: op.forward("linear")'
    return bool(found)
