"""Under vmap, each operator gives for a batch what it gives for each example; so do gradients under it, and it under
gradients."""

import warnings

import numpy as np

import redispatch as rd
from redispatch.dispatch.tensor import Tensor
from redispatch.func import grad, vmap
from redispatch.testing import assert_close

from ..driver import as_list, run
from .gradients import in_double, is_differentiable
from .table import DoesNotApply, holds

WRITES = "is not possible because there exists a Tensor"  # which all examples share, and the operator writes
REFUSED = (
    "dynamic shape",
    "differently shaped Tensor",
    "calling .item()",
    "isn't supported yet",
    "could not generate a fallback",
    "out= or view",
    "requires_grad_() (or",
)


def batches(tensors, size, rng):
    """For each tensor a batch with it as the first example; others of its dtype follow, where its values may differ."""
    made = []
    for x in tensors:
        values = x.detach()
        examples = [values] + [permuted(values, rng) for _ in range(size - 1)]
        made.append(rd.stack(examples))
    return made


def permuted(x, rng):
    """The same values in another order: for any operator they are as good as the first."""
    order = rd.from_numpy(rng.permutation(x.numel())) if x.numel() else None
    return x.clone() if order is None else x.reshape(-1)[order].reshape(x.shape)


def looped(function, batched):
    """The results that vmap should give: the function of each example, the results stacked."""
    results = [function(*(x[i].clone() for x in batched)) for i in range(len(batched[0]))]
    return [rd.stack([one[place] for one in results]) for place in range(len(results[0]))]


def compare(info, sample, which, in_dim):
    filled, tensors = sample.parted(which)
    if not tensors:
        return False
    rng = np.random.default_rng(0)
    batched = batches(tensors, 2, rng)

    def function(*xs):
        xs = [x.clone() for x in xs] if info.mutates else xs
        return tuple(x for x in as_list(run(info, filled(*xs))) if isinstance(x, Tensor))

    try:
        wanted = looped(function, batched)
    except (RuntimeError, IndexError, ValueError):
        return False  # some example is none of the operator's: an index out of bounds, shapes that differ
    dims = tuple(-1 if in_dim and x.dim() > 1 else 0 for x in batched)
    moved = [x.movedim(0, -1) if dim else x for x, dim in zip(batched, dims, strict=True)]
    actual = vmap(function, in_dims=dims, randomness="same")(*moved)
    assert_close(list(actual), wanted, equal_nan=True, rtol=1e-4, atol=1e-5, msg=lambda text: f"{sample}: {text}")
    return True


def has_defined_values(info):
    return info.reference is not None or "empty" not in str(info)


def draws_the_same(info):
    """Random operators draw other numbers in each call: see tests/func/test_transforms.py."""
    return not info.random


def first_ones(info, dtype):
    return info.sample_inputs(dtype)[:6]


@holds(
    "vmap",
    of=lambda info: has_defined_values(info) and draws_the_same(info),
    unless=["vmap"],
    make=first_ones,
    one_in=2,
)
def a_batch_gives_what_its_examples_give(info, sample):
    compared = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first, *rest = [*sample.tensors(), None]
        for which in (lambda x: True, lambda x: x is first, lambda x: x is rest[0]):  # called at once
            for in_dim in (False, True):
                try:
                    compared += compare(info, sample, which, in_dim)
                except RuntimeError as error:
                    if any(text in str(error) for text in REFUSED):
                        raise DoesNotApply(f"vmap refuses it: {error}") from error
                    if not (info.mutates and WRITES in str(error)):
                        raise
    return compared > 0


@holds(
    "batched_gradients",
    of=lambda info: is_differentiable(info) and draws_the_same(info),
    dtypes=in_double,
    make=lambda info, dtype: info.sample_inputs(dtype, requires_grad=True)[:2],
    unless=["gradients", "vmap"],
    one_in=4,
)
def gradients_of_examples_are_examples_of_gradients(info, sample):
    filled, tensors = sample.parted(lambda x: x.requires_grad)
    batched = batches(tensors, 2, np.random.default_rng(0))

    def total(*xs):
        xs = [x.clone() for x in xs] if info.mutates else xs
        results = [x for x in as_list(run(info, filled(*xs))) if isinstance(x, Tensor) and x.is_floating_point()]
        return sum(((x * x).sum() if x.numel() else x.sum() for x in results), rd.zeros(()))

    try:
        wanted = looped(lambda *xs: grad(total, tuple(range(len(xs))))(*xs), batched)
    except (RuntimeError, IndexError, ValueError):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            inside = vmap(grad(total, tuple(range(len(batched)))))(*batched)
            outside = grad(lambda *xs: vmap(total)(*xs).sum(), tuple(range(len(batched))))(*batched)
        except RuntimeError as error:
            if any(text in str(error) for text in REFUSED):
                raise DoesNotApply(f"vmap refuses it: {error}") from error
            raise
    for actual in (inside, outside):
        assert_close(list(actual), wanted, equal_nan=True)
    return True
