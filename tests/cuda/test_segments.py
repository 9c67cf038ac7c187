"""segment_reduce on the simulated device, against the CPU's."""

import pytest

import redispatch as rd

from .families import compare, same_gradients

pytestmark = pytest.mark.usefixtures("simulator")
LENGTHS = [3, 0, 1, 40, 6]
WAYS = ["mean", "min", *(pytest.param(way, marks=pytest.mark.long) for way in ("sum", "prod", "max"))]


def reduced(way, initial=None, **runs):
    def function(x):
        given = {name: rd.tensor(value, device=x.device) for name, value in runs.items()}
        return rd.segment_reduce(x, way, **given, initial=initial)

    return function


@pytest.mark.parametrize("way", WAYS)
def test_runs_shared_by_lanes_and_runs_side_by_side(way):
    for shape in ((50,), (50, 3), (50, 40)):
        x = 1 + rd.randn(shape, generator=rd.Generator().manual_seed(4)) / 4
        for initial in (None, 1):
            compare(reduced(way, initial, lengths=LENGTHS)(x.cuda()), reduced(way, initial, lengths=LENGTHS)(x))


def test_runs_by_their_ends_in_rows_and_what_is_not_a_number():
    x = rd.arange(12.0).reshape(2, 6)
    x[1, 2] = float("nan")
    for runs in ([[0, 2, 6], [3, 3, 5]], [[1, 1, 1], [0, 6, 6]]):

        def call(x, runs=runs):
            return rd.segment_reduce(x, "min", offsets=rd.tensor(runs, device=x.device), axis=1)

        compare(call(x.cuda()), call(x))
    empty = rd.zeros(0, 3)
    compare(reduced("mean", lengths=[0, 0])(empty.cuda()), reduced("mean", lengths=[0, 0])(empty))


@pytest.mark.parametrize(
    "way", [pytest.param("sum", marks=pytest.mark.long), pytest.param("mean", marks=pytest.mark.long), "prod", "max"]
)
def test_gradients(way):
    x = rd.tensor([3.0, 0.0, 2.0, 2.0, float("nan"), 0.0, 0.0, 1.0]).reshape(8, 1) * rd.ones(8, 2)
    same_gradients(reduced(way, lengths=[2, 0, 3, 3]), x)
    same_gradients(reduced(way, 2, offsets=[1, 4, 4]), x)


def test_errors_are_the_cpus_and_unsafe_calls_wait_for_nothing():
    x = rd.arange(6.0)
    for runs in ({"lengths": [1, 2]}, {"lengths": [7, -1]}, {"offsets": [0, 9]}, {}):
        with pytest.raises(RuntimeError) as there:
            reduced("sum", **runs)(x.cuda())
        with pytest.raises(RuntimeError) as here:
            reduced("sum", **runs)(x)
        assert str(there.value) == str(here.value)
    data, lengths = x.cuda(), rd.tensor([2, 4]).cuda()
    rd.segment_reduce(data, "sum", lengths=lengths, unsafe=True)
    graph = rd.cuda.CUDAGraph()
    with rd.cuda.graph(graph):
        found = rd.segment_reduce(data, "sum", lengths=lengths, unsafe=True)
    graph.replay()
    assert found.tolist() == [1, 14]
    wrong = rd.segment_reduce(data, "sum", offsets=rd.tensor([-3, 2, 99]).cuda(), unsafe=True)
    assert wrong.tolist() == [1, 14]  # what lies outside is left out
