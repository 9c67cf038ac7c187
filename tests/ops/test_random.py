"""Random numbers: reproducible, the same on any number of threads, never drawn twice, and distributed as they say."""

import threading

import numpy as np
import pytest

import redispatch as rd
from redispatch.kernels import get_num_threads, set_num_threads
from redispatch.kernels.ops.random import fork_rng

pytestmark = pytest.mark.usefixtures("seeded")


def generator(seed=0):
    return rd.Generator().manual_seed(seed)


def test_a_seed_gives_the_same_numbers_and_goes_on():
    a, b = generator(), generator()
    assert rd.rand(5, generator=a).tolist() == rd.rand(5, generator=b).tolist()
    first, second = rd.rand(5, generator=a).tolist(), rd.rand(5, generator=generator()).tolist()
    assert first != second


def test_the_number_of_threads_changes_nothing():
    before = get_num_threads()
    try:
        drawn = []
        for count in (1, 2):
            set_num_threads(count)
            drawn.append(rd.randn(300_000, generator=generator()).numpy())
        np.testing.assert_array_equal(*drawn)
    finally:
        set_num_threads(before)


def test_threads_that_share_a_generator_draw_different_numbers():
    shared, drawn = generator(), []
    threads = [
        threading.Thread(target=lambda: drawn.append(rd.rand(500, generator=shared, dtype=rd.float64)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = np.sort(np.concatenate([d.numpy() for d in drawn]))
    whole = np.sort(rd.rand(4000, generator=generator(), dtype=rd.float64).numpy())
    np.testing.assert_array_equal(numbers, whole)


def test_states_are_bytes_and_come_back():
    state = rd.get_rng_state()
    assert state.dtype is rd.uint8
    first = rd.rand(3).tolist()
    rd.set_rng_state(state)
    assert rd.rand(3).tolist() == first
    with fork_rng():
        rd.rand(100)
    again = rd.rand(3).tolist()
    rd.set_rng_state(state)
    rd.rand(3)
    assert rd.rand(3).tolist() == again
    with pytest.raises(TypeError, match="RNG state must be a torch.ByteTensor"):
        rd.set_rng_state(rd.ones(2))


def test_moments():
    n = 100_000
    assert rd.rand(n).mean().item() == pytest.approx(0.5, abs=5e-3)
    x = rd.randn(n)
    assert x.mean().item() == pytest.approx(0, abs=1e-2) and x.std().item() == pytest.approx(1, abs=1e-2)
    assert rd.empty(n).exponential_(2.0).mean().item() == pytest.approx(0.5, abs=1e-2)
    assert rd.bernoulli(rd.full((n,), 0.3)).mean().item() == pytest.approx(0.3, abs=1e-2)
    assert rd.normal(rd.full((n,), 5.0), 2.0).std().item() == pytest.approx(2, abs=3e-2)
    integers = rd.randint(-2, 3, (n,))
    assert sorted(set(integers.tolist())) == [-2, -1, 0, 1, 2] and integers.dtype is rd.int64


@pytest.mark.parametrize("n", [0, 1, 10])
def test_a_permutation_holds_each_number_once(n):
    assert sorted(rd.randperm(n).tolist()) == list(range(n))


def test_dropout_keeps_the_mean():
    x = rd.ones(50_000, requires_grad=True)
    y = rd.nn.functional.dropout(x, 0.25)
    values = y.detach()
    assert set(np.round(np.unique(values.numpy()), 5)) == {0, np.float32(1.33333)}
    assert values.mean().item() == pytest.approx(1, abs=2e-2)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), values.numpy())
    assert rd.nn.functional.dropout(x, 0.5, training=False) is x
    assert rd.nn.functional.dropout(x, 1.0).sum().item() == 0


def test_native_dropout_gives_its_mask():
    x = rd.ones(1000, requires_grad=True)
    y, mask = rd.ops.aten.native_dropout.default(x, 0.5, True)
    np.testing.assert_array_equal(y.detach().numpy(), mask.numpy() * 2)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), mask.numpy() * 2)


def test_a_fill_keeps_no_gradient_of_the_former_value():
    x = rd.ones(3, requires_grad=True)
    (x * 2).normal_().sum().backward()
    assert x.grad.tolist() == [0, 0, 0]
