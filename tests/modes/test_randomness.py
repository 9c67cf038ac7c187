"""Modes for random numbers: determinism that is checked, and keys instead of a state."""

from itertools import count

import pytest

import redispatch as rd
from redispatch import backend
from redispatch.library import custom_op
from redispatch.modes.determinism import DeterminismMode, NondeterminismError
from redispatch.modes.functional_rng import FunctionalRNGMode, device_of, fold_in, mixed, split, with_key
from redispatch.modes.logging_mode import LoggingMode
from redispatch.nn import functional as F
from redispatch.subclasses.two_tensor import TwoTensor
from redispatch.testing import assert_close

# DeterminismMode: what is the same twice, random operators and writes included, and what is not -----------------------


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


# FunctionalRNGMode ----------------------------------------------------------------------------------------------------

# Random numbers are a function of the key, and of nothing else; the arithmetic of keys.


def draws():
    """Numbers of every kind: operators that take a generator, that take none, in place, with and without tensors."""
    x = rd.ones(8)
    return [
        rd.rand(8),
        rd.rand(8),
        rd.randn_like(x),
        rd.randint(1000, (8,)),
        rd.randperm(8),
        x.clone().normal_(),
        x.clone().exponential_(),
        rd.bernoulli(x / 2),
        rd.normal(x, 2.0),
        rd.multinomial(x, 4),
        F.dropout(x),
        F.rrelu(-x, training=True),
    ]


def test_the_same_key_gives_the_same_numbers_whatever_was_drawn_before():
    first = with_key(draws)(3)
    rd.rand(5)
    assert_close(with_key(draws)(3), first, rtol=0, atol=0)


def test_another_key_gives_other_numbers():
    assert all(not rd.equal(a, b) for a, b in zip(with_key(draws)(3)[:7], with_key(draws)(4)[:7], strict=True))


def test_two_draws_of_a_region_differ_and_each_entry_starts_again():
    region = FunctionalRNGMode(0)
    with region:
        a, b = rd.rand(8), rd.rand(8)
    assert not rd.equal(a, b) and region.draws == 2
    with region:
        assert rd.equal(rd.rand(8), a) and region.draws == 1


def test_the_generator_outside_is_as_it_was():
    before = rd.get_rng_state()
    with_key(draws)(3)
    assert rd.equal(rd.get_rng_state(), before)


def test_it_has_its_state_back_after_an_error_too():
    before = rd.get_rng_state()
    with FunctionalRNGMode(1), pytest.raises(RuntimeError):
        rd.multinomial(-rd.ones(2), 1)
    assert rd.equal(rd.get_rng_state(), before)


def test_an_inner_region_does_not_disturb_the_outer_one():
    @with_key
    def plain():
        return rd.rand(4), rd.rand(4)

    @with_key
    def nested():
        a = rd.rand(4)
        inner = plain(7)
        return a, rd.rand(4), inner

    a, b, inner = nested(5)
    assert_close((a, b), plain(5), rtol=0, atol=0)
    assert_close(inner, plain(7), rtol=0, atol=0)


def test_a_function_of_a_key_is_differentiated_with_the_same_numbers():
    x = rd.ones(64, requires_grad=True)
    y = with_key(F.dropout)(9, x)
    y.sum().backward()
    assert rd.equal(x.grad, y.detach())


def test_a_passed_generator_is_refused():
    with (
        FunctionalRNGMode(1) as region,
        pytest.raises(RuntimeError, match="aten.rand.generator was passed a generator"),
    ):
        rd.rand(2, generator=rd.Generator())
    assert region.draws == 0


def test_numbers_of_many_keys_are_uniform():
    numbers = rd.stack([with_key(rd.rand)(key, 64) for key in split(0, 16)])
    assert abs(numbers.mean().item() - 0.5) < 5 * (1 / 12 / numbers.numel()) ** 0.5
    assert numbers.unique().numel() > 1000  # 1024 numbers, of 24 bits


def test_keys_made_of_keys():
    assert split(3, 4) == tuple(fold_in(3, number) for number in range(4))
    made = {fold_in(key, data) for key in range(50) for data in range(50)}
    assert len(made) == 2500 and all(0 <= key < 2**64 for key in made)
    assert fold_in(-1, 0) == fold_in(2**64 - 1, 0)


def test_mixing_is_that_of_splitmix64():
    golden, seed = 0x9E3779B97F4A7C15, 1234567
    stream = [mixed(seed + golden * n) for n in (1, 2, 3)]
    assert stream == [6457827717110365317, 3203168211198807973, 9817491932198370423]  # as published with the generator


def test_a_passed_generator_is_replaced_or_left_to_draw_where_that_is_said():
    own = rd.Generator().manual_seed(3)
    state = own.get_state()
    with FunctionalRNGMode(1, generators="replace") as region:
        first = rd.rand(4, generator=own)
    assert region.draws == 1 and rd.equal(own.get_state(), state) and rd.equal(first, with_key(rd.rand)(1, 4))
    with FunctionalRNGMode(1, generators="draw") as region:
        second = rd.rand(4, generator=own)
    assert region.draws == 0 and rd.equal(second, rd.rand(4, generator=rd.Generator().manual_seed(3)))
    with pytest.raises(ValueError, match="generators is one of refuse, replace, draw, got 'keep'"):
        FunctionalRNGMode(1, generators="keep")


def test_a_generator_is_made_on_the_device_that_draws():
    assert device_of((rd.ones(1),), {}).type == device_of((), {"device": rd.device("meta")}).type == "cpu"
    with backend.register("board", allocator=Board(), fallback="cpu"):
        assert device_of(([2],), {"device": rd.device("board")}).type == "board"
        assert device_of(([2],), {"generator": rd.Generator("board")}).type == "board"
        with FunctionalRNGMode(7):
            x = rd.zeros(3, device="board").uniform_()
            y = rd.rand(3, device="board")
        assert x.device.type == y.device.type == "board"
        assert x.tolist() == with_key(lambda: rd.zeros(3).uniform_())(7).tolist()


class Board(backend.Allocator):
    """Memory of its own: a block is an array of bytes."""

    def allocate(self, nbytes, device):
        return bytearray(nbytes)

    def free(self, block):
        pass

    def read(self, block, nbytes):
        return bytes(block[:nbytes])

    def write(self, block, data):
        block[: len(data)] = data.tobytes()
