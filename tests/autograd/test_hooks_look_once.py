"""Hooks on saved tensors unpack each once in a backward pass, however many formulas read it."""

import pytest

import redispatch as rd
from redispatch.utils.checkpoint import checkpoint

PROGRAMS = {
    "where, of two that want gradients": lambda x: rd.where(x > 0, x.sin(), x.cos()),
    "where, of one": lambda x: rd.where(x > 0, x, rd.full((), -1.0)),
    "atan2": lambda x: rd.atan2(x, x.exp()),
    "quotient": lambda x: x / x.exp(),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_saved_tensor_is_unpacked_once_in_each_pass(program):
    x, seen = rd.randn(3, requires_grad=True), []

    def note(what):
        return lambda tensor: (seen.append(what), tensor)[1]

    with rd.autograd.graph.saved_tensors_hooks(note("pack"), note("unpack")):
        y = program(x)
    y.sum().backward(retain_graph=True)
    assert 1 <= seen.count("unpack") <= seen.count("pack")
    first = seen.count("unpack")
    y.sum().backward()
    assert seen.count("unpack") == 2 * first


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_checkpoint_may_have_what_several_formulas_read(program):
    x = rd.randn(3, requires_grad=True)
    found = [rd.autograd.grad(y.sum(), x)[0] for y in (program(x), checkpoint(program, x, use_reentrant=False))]
    assert found[0].tolist() == found[1].tolist()
