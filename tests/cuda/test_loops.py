"""Loops of the CPU on a device: what they leave of the CPU's own, and what they refuse."""

import numpy as np
import pytest

import redispatch as rd
from redispatch.kernels import TARGET
from redispatch.kernels.cuda.loops import DeviceLoop
from redispatch.kernels.engine.compile import Kernel


def doubling_loop(lo, hi, sizes, out, x):
    for i in range(lo, hi):
        out[i] = x[i] * len(sizes)


def test_a_loop_does_not_write_to_the_memory_of_the_cpu():
    loop = DeviceLoop(Kernel(doubling_loop), ("int64", "int64", "int64[]", "float32[]", "float32[]"), TARGET.get)
    assert loop.uses() == ({0}, {1})
    with pytest.raises(NotImplementedError, match="doubling_loop writes to the CPU's memory"):
        loop(0, 2, np.ones(1, np.int64), np.ones(2, np.float32), np.ones(2, np.float32))


def test_the_cpu_keeps_its_own_loops(simulator):
    x = rd.tensor([[3.0, 1.0, 2.0], [0.5, -1.0, 4.0]])
    for call in (
        lambda y: y.sort(1)[0],
        lambda y: y.cumsum(0),
        lambda y: y.var(1),
        lambda y: y[y > 1],
        lambda y: y.flip([1]),
    ):
        there, here = call(x.cuda()), call(x)
        assert here.device.type == "cpu" and rd.equal(there.cpu(), here) and rd.equal(call(x), here)
    assert TARGET.get() is None


def test_gradients_go_through_what_chooses_and_gathers(simulator):
    grads = []
    for on in ("cpu", "cuda"):
        x = rd.linspace(-1, 2, 12, device=on).reshape(3, 4).requires_grad_()
        index = rd.tensor([[0, 2, 1, 0]], device=on)
        loss = x.sort(1, descending=True)[0].cumsum(1).gather(0, index).sum() + x.max(0)[0].sum() + x[x > 0].sum()
        (loss + rd.nn.functional.pad(x[None], (1, 2), mode="replicate").pow(2).sum()).backward()
        grads.append(x.grad.cpu())
    rd.testing.assert_close(*grads)
