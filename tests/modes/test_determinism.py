"""DeterminismMode: what is the same twice, random operators and writes included, and what is not."""

from itertools import count

import pytest

import redispatch as rd
from redispatch.library import custom_op
from redispatch.modes.determinism import DeterminismMode, NondeterminismError
from redispatch.modes.logging_mode import LoggingMode
from redispatch.subclasses.two_tensor import TwoTensor
from redispatch.testing import assert_close


@pytest.fixture
def counted():
    """An operator that counts its calls, and adds their number: once, unless it is called twice."""
    calls = count(1)

    @custom_op("determinism_test::counted", mutates_args=())
    def op(x: rd.Tensor) -> rd.Tensor:
        return x + next(calls)

    return op


def test_an_operator_that_gives_something_else_each_time_is_found(counted):
    with pytest.raises(NondeterminismError) as caught, DeterminismMode():
        counted(rd.zeros(3))
    assert str(caught.value) == (
        "determinism_test.counted.default(f32[3]) gave two results for the same arguments and random state: "
        "3 of 3 elements differ, the first of them 1.0 and 2.0"
    )
    assert caught.value.func is rd.ops.determinism_test.counted.default


def test_it_may_only_be_written_down(counted):
    with DeterminismMode(action="record") as check:
        y = counted(rd.zeros(1)) + 1
    assert len(check.found) == 1 and y.item() == 3


def test_one_that_writes_something_else_each_time_is_found():
    calls = count()

    @custom_op("determinism_test::stamp", mutates_args=("x",))
    def stamp(x: rd.Tensor) -> None:
        x[next(calls)] = 1

    with pytest.raises(NondeterminismError, match="2 of 3 elements differ, the first of them 1.0 and 0.0"):
        with DeterminismMode():
            stamp(rd.zeros(3))


def test_one_that_gives_another_shape_or_number_is_found():
    calls = count()

    @custom_op("determinism_test::grows", mutates_args=())
    def grows(x: rd.Tensor) -> rd.Tensor:
        return x.new_zeros(next(calls))

    @custom_op("determinism_test::number", mutates_args=())
    def number(x: rd.Tensor) -> int:
        return next(calls)

    with DeterminismMode(action="record") as check:
        grows(rd.ones(1))
        number(rd.ones(1))
    shapes, numbers = map(str, check.found)
    assert shapes.endswith("torch.float32[0] and torch.float32[1]") and numbers.endswith("2 and 3")


def program(generator):
    """Writes, views, draws."""
    x = rd.rand(4, 4)
    x[1:].mul_(2)
    x[:, 1:].copy_(x[:, :-1])  # overlapping memory
    x.t_()
    rd.add(x, 1, out=x)
    x.add_(x)
    x.normal_(generator=generator)
    return rd.nn.functional.dropout(x) + rd.randperm(4), x.sum(), x[0, 0].item(), x.conj(), rd.empty(3).shape


def test_what_is_deterministic_is_let_through_and_gives_the_same_numbers():
    rd.manual_seed(3)
    expected = program(rd.Generator().manual_seed(4))
    after = rd.rand(2)
    rd.manual_seed(3)
    with DeterminismMode() as check:
        result = program(rd.Generator().manual_seed(4))
    assert check.found == []
    assert_close(result, expected, rtol=0, atol=0)
    assert rd.equal(rd.rand(2), after)  # the generator went on as far as it would have


def test_not_a_number_is_the_same_as_itself_and_zero_is_not_minus_zero():
    with DeterminismMode():
        rd.zeros(2) / 0
    signs = iter([0.0, -0.0])

    @custom_op("determinism_test::zero", mutates_args=())
    def zero(x: rd.Tensor) -> rd.Tensor:
        return rd.full_like(x, next(signs))

    with pytest.raises(NondeterminismError, match="the first of them 0.0 and -0.0"), DeterminismMode():
        zero(rd.ones(1))


def test_lazy_conjugates_empty_and_complex_tensors_are_compared():
    z = rd.complex(rd.ones(2), rd.ones(2)).conj()
    with DeterminismMode() as check:
        results = (z * 2, z.mul_(2), z.imag.add_(1), rd.ones(0, 3) + 1, rd.ones(2) > 0)
    assert check.found == []
    assert results[1] is z and z.tolist() == [2 - 1j, 2 - 1j] and results[4].tolist() == [True, True]


def test_dimensions_of_size_one_may_have_any_stride():
    row = rd.ones(1, 4)
    with DeterminismMode() as check:
        row.t(), row.t() * 2, rd.ones(8)[::5][:1].mul_(2), rd.ones(4).as_strided((1, 1), (3, 2))
    assert check.found == []


def test_gradients_and_versions_are_as_without_it():
    x = rd.rand(3, requires_grad=True)
    (expected,) = rd.autograd.grad((x.exp() * 2).sum(), x)
    with DeterminismMode():
        y = x.exp()
        version = y._version
        (y * 2).sum().backward()
        assert y._version == version == 0
    assert rd.equal(x.grad, expected)


def test_running_statistics_are_written_once():
    norm, plain = rd.nn.BatchNorm1d(3), rd.nn.BatchNorm1d(3)
    x = rd.rand(8, 3)
    with DeterminismMode():
        norm(x)
    plain(x)
    assert_close(norm.running_mean, plain.running_mean)


def test_subclasses_and_meta_tensors_pass():
    with DeterminismMode():
        two = TwoTensor(rd.ones(2), rd.ones(2)) + 1
        two.add_(1)
        assert two.a.tolist() == [3, 3]
        assert rd.empty(2, device="meta").exp().shape == (2,)


def test_an_error_leaves_the_generators_as_they_were():
    before = rd.get_rng_state()
    with DeterminismMode(), pytest.raises(RuntimeError):
        rd.ones(2).normal_(0, -1)
    assert rd.equal(rd.get_rng_state(), before)


def test_modes_below_see_both_runs_and_nothing_else():
    with LoggingMode() as log, DeterminismMode():
        rd.ones(2)
    assert len(log.lines) == 2 and set(log.lines) == {log.lines[0]}
