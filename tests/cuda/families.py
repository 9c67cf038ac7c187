"""What the tests of operator families on the simulated device have in common."""

import redispatch as rd
from redispatch.testing import assert_close
from redispatch.testing.op_db import op_db
from redispatch.utils import _pytree as pytree


def entries(names):
    """The entries of the table with these names, of the namespace aten."""
    wanted = names.split()
    found = [info for info in op_db if info.name.removeprefix("aten::") in wanted]
    assert {info.name.removeprefix("aten::") for info in found} == set(wanted)
    return found


def compare(found, wanted):
    """Both have the same metadata and numbers."""
    for ours, theirs in zip(pytree.tree_leaves(found), pytree.tree_leaves(wanted), strict=True):
        if theirs is None:
            assert ours is None
            continue
        assert (ours.shape, ours.dtype, ours.stride()) == (theirs.shape, theirs.dtype, theirs.stride())
        assert_close(ours.detach().cpu(), theirs.detach(), equal_nan=True)


def check_entry(info, dtype):
    """An entry's samples give on the device what they give on the CPU."""
    for sample in info.sample_inputs(dtype):
        wanted = info.op(*sample.copy().arguments, **sample.kwargs)
        moved = sample.map(lambda x: x.cuda()).map(lambda on: rd.device("cuda"), rd.device)
        compare(info.op(*moved.arguments, **moved.kwargs), wanted)


def same_gradients(function, *tensors):
    """A function of tensors has the same result on both devices, and the same gradients of it."""
    here = [x.detach().clone().requires_grad_(x.is_floating_point() or x.is_complex()) for x in tensors]
    there = [x.detach().cuda().requires_grad_(x.is_floating_point() or x.is_complex()) for x in tensors]
    ours, theirs = function(*there), function(*here)
    compare(ours, theirs)
    slope = rd.randn(theirs.shape).to(theirs.dtype)
    theirs.backward(slope)
    ours.backward(slope.cuda())
    for a, b in zip(there, here, strict=True):
        assert (a.grad is None) == (b.grad is None)
        if b.grad is not None:
            assert_close(a.grad.cpu(), b.grad, equal_nan=True)
