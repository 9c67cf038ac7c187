"""Evenly spaced numbers and unit matrices are made on the device, and numbers of the CPU's travel with a launch."""

import pytest

import redispatch as rd
from redispatch.testing import assert_close

pytestmark = pytest.mark.usefixtures("simulator")

RANGES = [(10,), (3, 17, 4), (-5, 6, 2), (0.5, 7.3, 0.7), (100, -20, -13), (0,)]
LINES = [(0, 1, 7), (-3.3, 9.7, 300), (5, 5, 1), (2, 8, 0)]


@pytest.mark.parametrize("dtype", [None, rd.float16, rd.bfloat16, rd.float64, rd.int64, rd.int8], ids=str)
def test_numbers_have_the_bits_of_the_cpus(dtype):
    for function, cases in ((rd.arange, RANGES), (rd.linspace, LINES)):
        for case in cases:
            if dtype is not None and not dtype.is_floating_point and isinstance(case[-1], float | int) and 0.7 in case:
                continue  # a step of 0
            if dtype is rd.int8 and 300 in case:
                continue
            here, there = function(*case, dtype=dtype), function(*case, dtype=dtype, device="cuda")
            assert there.is_cuda and there.dtype is here.dtype and rd.equal(there.cpu(), here), (function, case)


def test_numbers_are_written_into_what_there_is():
    for function, case in ((rd.arange, (0, 7.5, 0.3)), (rd.linspace, (0, 7.5, 25)), (rd.logspace, (0, 1, 25))):
        here, there = rd.zeros(50)[::2], rd.zeros(50, device="cuda")[::2]
        function(*case, out=here)
        function(*case, out=there)
        assert rd.equal(there.cpu(), here) and there.stride() == (2,)
    matrix = rd.ones(4, 10, device="cuda").t()[::2]
    assert rd.equal(rd.eye(5, 4, out=matrix).cpu(), rd.eye(5, 4))


@pytest.mark.parametrize("shape", [(4,), (3, 5), (5, 2), (0, 5)])
@pytest.mark.parametrize("dtype", [rd.float32, rd.int64, rd.bool, rd.complex64], ids=str)
def test_unit_matrices(shape, dtype):
    assert rd.equal(rd.eye(*shape, dtype=dtype, device="cuda").cpu(), rd.eye(*shape, dtype=dtype))


def test_they_can_be_recorded():
    def positions():
        return rd.arange(4, device="cuda") * 2 + rd.eye(4, device="cuda").sum(0) * rd.tensor(0.5)

    positions()
    graph = rd.cuda.CUDAGraph()
    with rd.cuda.graph(graph):
        found = positions()
    graph.replay()
    assert found.tolist() == [0.5, 2.5, 4.5, 6.5]


NUMBERS = [rd.tensor(2.5), rd.tensor(3), rd.tensor(True), rd.tensor(1.5, dtype=rd.float64), rd.tensor(0.1).bfloat16()]


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
@pytest.mark.parametrize("dtype", [rd.float32, rd.bfloat16, rd.int64, rd.uint8, rd.complex64], ids=str)
def test_a_number_on_the_cpu(number, dtype):
    x = rd.arange(1, 7).to(dtype)
    for call in (
        lambda x: x * number,
        lambda x: number + x,
        lambda x: rd.where(x != 2, x, number),
        lambda x: x.eq(number),
        lambda x: rd.addcmul(x, x, number),
        lambda x: x.clone().copy_(x).div(number),
    ):
        found, wanted = call(x.cuda()), call(x)
        assert found.is_cuda and found.dtype is wanted.dtype
        assert_close(found.cpu(), wanted)


def test_numbers_of_the_cpu_are_those_of_each_call():
    x, one = rd.ones(3, device="cuda"), rd.tensor(1.0)
    for wanted in (1.0, 5.0, -2.0):
        one.fill_(wanted)
        assert (x * one).tolist() == [wanted] * 3
    assert x.mul_(one).tolist() == [-2.0] * 3


def test_other_tensors_of_the_cpu_are_refused():
    x, here, places = rd.ones(3, 3, device="cuda"), rd.ones(3, 3), rd.tensor([0])
    for call in (
        lambda: x + here,
        lambda: x @ here,
        lambda: rd.cat([x, here]),
        lambda: rd.nn.functional.layer_norm(x, (3,), here[0]),
        lambda: rd.ops.aten.native_layer_norm_backward(x, here, [3], x, x, x, x, [True, True, True]),
        lambda: x.index_select(0, places),
        lambda: x.gather(0, places.unsqueeze(0)),
        lambda: rd.nn.functional.embedding(places, x),
        lambda: rd.nn.functional.cross_entropy(x, rd.tensor([0, 1, 2])),
        lambda: here.mul_(x),
    ):
        with pytest.raises(RuntimeError, match="on the same device, but found at least two devices, c"):
            call()
    assert x[places].is_cuda and x[rd.arange(3) > 0].shape == (2, 3)  # but indices may be there
