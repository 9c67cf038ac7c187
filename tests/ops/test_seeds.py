"""The numbers of a seed are PyTorch's, to the bit: calls, layers, orders of data; and states go both ways.

`tests/parity/test_seeds.py` draws the same beside real torch, from more seeds.
"""

import hashlib
import pickle
import threading

import numpy as np
import pytest

import redispatch as rd

# Recorded from PyTorch 2.13 on a CPU with AVX2: a digest of the bytes that three seeds give, two calls each, and of the
# generator's state after them.
CALLS = {
    "rand(33, generator=g)": "76d199edc2d3",
    "rand(33, dtype=t.float64, generator=g)": "af524ee01cc3",
    "rand(33, dtype=t.float16, generator=g)": "f97d0b90932e",
    "rand(33, dtype=t.bfloat16, generator=g)": "0c7427ad2bbb",
    "rand(9, dtype=t.complex64, generator=g)": "473b5321c217",
    "randn(7, generator=g)": "a7f1a8de1a3b",
    "randn(7, dtype=t.float64, generator=g)": "eea346e34a47",
    "randn(1003, generator=g)": "85b06ba3ed0b",
    "randn(1003, dtype=t.float64, generator=g)": "e37186889c9e",
    "randn(1003, dtype=t.float16, generator=g)": "e2ed55b7b393",
    "randn(1003, dtype=t.bfloat16, generator=g)": "6f7b879491ff",
    "zeros(40).normal_(0.3, 1.7, generator=g)": "07a06dec2f93",
    "zeros(40, dtype=t.float64).normal_(0.3, 1.7, generator=g)": "44c78afc2824",
    "zeros(4, 6).t().normal_(0.5, 2, generator=g)": "46c70f5d714b",
    "zeros(4, 6, dtype=t.complex64).t().normal_(1, 2, generator=g)": "4115d0bb3e8f",
    "zeros(4, 6).t().uniform_(-1.1, 2.3, generator=g)": "219c9ea5e7ee",
    "zeros(8, 3, 5)[:, :, ::2].permute(2, 0, 1).uniform_(-1.1, 2.3, generator=g)": "5c76a8cd7ef8",
    "zeros(1000).uniform_(1.0, 1.0000002, generator=g)": "7cfc23bc914d",
    "zeros(33).exponential_(1.5, generator=g)": "c4a52c215e23",
    "zeros(33, dtype=t.float64).exponential_(1.5, generator=g)": "62fefb0455cf",
    "zeros(33).bernoulli_(0.3, generator=g)": "45b2d7d4141a",
    "zeros(33).bernoulli_(t.full((33,), 0.3), generator=g)": "c37fd2ee5841",
    "zeros(5, 7).t().bernoulli_(t.full((7, 5), 0.3), generator=g)": "3059e31b7829",
    "bernoulli(t.full((33,), 0.3, dtype=t.float64), generator=g)": "bb020ceaca84",
    "bernoulli(t.full((5, 7), 0.3).t(), generator=g)": "f41f7c41eef4",
    "zeros(33).cauchy_(generator=g)": "60629f31e001",
    "zeros(33, dtype=t.float64).cauchy_(0.5, 2, generator=g)": "b93cb9cb38c8",
    "zeros(33).log_normal_(generator=g)": "6c414a3565b2",
    "zeros(33, dtype=t.float64).log_normal_(0.2, 0.7, generator=g)": "848285e8e210",
    "zeros(33).geometric_(0.3, generator=g)": "c88e12d22b86",
    "zeros(33, dtype=t.float64).random_(generator=g)": "478565271b9d",
    "zeros(33, dtype=t.int64).random_(generator=g)": "afb2fb79c036",
    "zeros(33, dtype=t.int64).random_(-(2**63), None, generator=g)": "6b30c494f4a2",
    "zeros(33, dtype=t.int8).random_(generator=g)": "c48ce772d47b",
    "randint(-5, 100, (33,), generator=g)": "8d8f95a0f8bd",
    "randint(0, 2**28, (33,), generator=g)": "07c94bbf6792",
    "randint(0, 2**40, (33,), generator=g)": "ae64b27ddbe9",
    "randperm(1000, generator=g)": "29d54ee3fa40",
    "randperm(10, dtype=t.int32, generator=g)": "2cf22ae0736d",
    "normal(t.arange(20.0), 2.0, generator=g)": "9115d9a65e11",
    "normal(0.5, t.arange(20.0), generator=g)": "ca21d72d7fc9",
    "normal(t.arange(9.0), t.arange(9.0), generator=g)": "26075ad8ef77",
    "poisson(t.arange(60.0) / 2, generator=g)": "71571e005f67",
    "binomial(t.arange(60.0), t.arange(60.0) / 60, generator=g)": "bd418be356ed",
    "binomial(t.full((60,), 200.0), t.arange(60.0) / 60, generator=g)": "e1a675b64889",
    "multinomial(t.arange(20.0), 5, generator=g)": "d2a54d841240",
    "multinomial(t.arange(60.0).reshape(3, 20), 50, True, generator=g)": "6bbc795e4771",
    "multinomial(t.arange(20.0), 1, True, generator=g)": "274ef392314e",
    "multinomial(t.arange(5000.0), 400, True, generator=g)": "41227e4eb658",
    "multinomial(t.arange(5000.0).sqrt(), 4000, True, generator=g)": "97d2cdde43c0",
    "multinomial(t.arange(2000.0).reshape(2, 1000), 3, generator=g)": "bff1fba59139",
    "bernoulli(t.arange(600.0) / 600, generator=g)": "475869a42002",
    "_standard_gamma(t.arange(60.0) / 9, generator=g)": "403bc6c71cb8",
    "_standard_gamma(t.arange(60, dtype=t.float64) / 9, generator=g)": "6b4b120ce433",
    "_sample_dirichlet(t.arange(1.0, 61.0).reshape(6, 10) / 9, generator=g)": "08bda594a538",
    "rrelu(t.arange(-20.0, 5.0), 0.1, 0.3, True, g)": "32ce2fca34b1",
    "rand(33, out=t.empty(33), generator=g)": "76d199edc2d3",
    "randn((4, 6), out=t.empty(6, 4).t(), generator=g)": "14487817157f",
    "rand_like(t.zeros(4, 6).t(), generator=g)": "b3f182e79083",
    "randn_like(t.zeros(4, 6, dtype=t.float64), generator=g)": "c0eb2bb10b8f",
    "randint_like(t.zeros(9), 2, 50, generator=g)": "6dcd9616fa97",
    "randint_like(t.zeros(9), t.tensor(50), generator=g)": "6acfbe3b2c63",
    "normal(2.136, t.arange(9, dtype=t.bfloat16), generator=g)": "69e825733094",
    "normal(t.arange(99.0), t.full((99,), 0.3, dtype=t.float64), generator=g)": "072d9091b8ca",
    "_sample_dirichlet(t.arange(1.0, 1001.0, dtype=t.float64).reshape(2, 500) / 9, generator=g)": "d89420f19124",
    "rrelu(t.arange(-200.0, 5.0, dtype=t.float64), 0.0525, 0.3, True, g)": "c028f45339f4",
}
# ... and of what draws from the default generator
PROGRAMS = {
    "nn.Linear(7, 9)": "ba71fa30131c",
    "nn.Linear(7, 9, dtype=t.bfloat16)": "8073092a3d7d",
    "nn.Bilinear(3, 4, 5)": "f7388339467c",
    "nn.Embedding(11, 6)": "b1b96ea34049",
    "nn.EmbeddingBag(11, 6)": "b1b96ea34049",
    "nn.Conv1d(3, 4, 3)": "5f8cf791531a",
    "nn.Conv2d(3, 4, 3, dtype=t.float64)": "35265f09139e",
    "nn.Conv3d(3, 4, 3)": "317b44ac2f08",
    "nn.ConvTranspose1d(3, 4, 3)": "93dd32db7f9c",
    "nn.ConvTranspose2d(3, 4, 3)": "ae073201ade3",
    "nn.ConvTranspose3d(3, 4, 3)": "38cb75dc2f27",
    "nn.RNN(5, 6, 2, bidirectional=True)": "b12ce72489d7",
    "nn.LSTM(5, 6, 2, proj_size=3)": "4fa0a243689a",
    "nn.GRU(5, 6, 2)": "4b8e7ad93389",
    "nn.RNNCell(4, 5)": "203b0414f888",
    "nn.LSTMCell(4, 5)": "31dfe1b54cab",
    "nn.GRUCell(4, 5)": "0d67cffd48ec",
    "nn.MultiheadAttention(8, 2, kdim=5, vdim=6, add_bias_kv=True)": "e908691dae0c",
    "nn.TransformerEncoderLayer(8, 2, 16)": "7965c2ce9ce1",
    "nn.TransformerDecoderLayer(8, 2, 16)": "721bb6facc47",
    "nn.Transformer(8, 2, 2, 2, 16)": "c8f30f7e1caf",
    "nn.AdaptiveLogSoftmaxWithLoss(32, 20, [5, 10])": "f1cf60f7678f",
    "nn.init.uniform_(t.zeros(20, 30), -1.0, 2.0)": "64333b47b6c8",
    "nn.init.normal_(t.zeros(20, 30), 0.5, 2.0)": "8036c31ce22e",
    "nn.init.xavier_uniform_(t.zeros(20, 30))": "42d96607c3ee",
    "nn.init.xavier_normal_(t.zeros(20, 30))": "240e4e0cf30a",
    "nn.init.kaiming_uniform_(t.zeros(20, 30))": "2169152ab242",
    "nn.init.kaiming_normal_(t.zeros(20, 30), mode='fan_out')": "6deddc7666e8",
    "nn.init.sparse_(t.zeros(20, 30), 0.3)": "916741d9a65b",
    "nn.functional.dropout(t.ones(7, 9).t(), 0.4)": "37735bfe124f",
    "nn.functional.dropout2d(t.ones(7, 9, 2, 3), 0.4)": "569ae1883e21",
    "nn.functional.alpha_dropout(t.ones(7, 9), 0.4, True)": "8d9e708464c5",
    "nn.functional.feature_alpha_dropout(t.ones(7, 9, 4), 0.4, True)": "0d498d7bed53",
    "nn.functional.feature_alpha_dropout(t.ones(8, 9, dtype=t.float64), 0.351, True)": "2d26e8a9f245",
    "ops.aten.native_dropout(t.ones(7, 9).t(), 0.4, True)[1]": "abb19c9f39c2",
    "func.vmap(lambda x: x.clone().t().normal_(), randomness='different')(t.zeros(3, 5, 4))": "885091be2e0e",
    "func.vmap(lambda x: x.clone().t().normal_(), randomness='same')(t.zeros(3, 5, 4))": "299b5521d79d",
    "func.functionalize(lambda x: x.clone().t().uniform_())(t.zeros(5, 4))": "d5a69e0f3d8f",
    "distributions.Categorical(t.arange(1.0, 9.0)).sample((3,))": "1b4396d627d5",
    "tensor([*t.utils.data.RandomSampler(range(20))])": "0d4bfbcdfeab",
    "cat([x for _ in range(2) for x in t.utils.data.DataLoader(t.arange(20), 7, shuffle=True)])": "8ee1203d8d52",
}


def twister(seed):
    return rd.Generator().manual_seed(seed)


def bytes_of(t, x):
    """The bytes of a tensor, or of all that a module holds."""
    if isinstance(x, t.nn.Module):
        return b"".join(bytes_of(t, one) for one in x.state_dict().values())
    return x.detach().contiguous().reshape(-1).view(t.uint8).numpy().tobytes()


def digest(t, call, generators):
    drawn = hashlib.sha256()
    for g in generators:
        for _ in range(2):
            drawn.update(bytes_of(t, eval(f"t.{call}", {"t": t, "g": g})))
        drawn.update(bytes_of(t, g.get_state()))
    return drawn.hexdigest()[:12]


def digest_of_program(t, program, seeds):
    """The same of the default generators."""
    with t.random.fork_rng():
        return digest(t, program, map(t.manual_seed, seeds))


@pytest.mark.parametrize("call", CALLS)
def test_a_seed_gives_the_numbers_and_the_state_of_pytorch(call):
    assert digest(rd, call, map(twister, (0, 7, 2**40 + 1))) == CALLS[call]


@pytest.mark.parametrize("program", PROGRAMS)
def test_layers_and_programs_draw_what_they_draw_in_pytorch(program):
    assert digest_of_program(rd, program, (0, 7)) == PROGRAMS[program]


def test_a_twister_goes_on_from_a_state_its_copy_and_its_pickle():
    g = twister(3)
    rd.randn(3, generator=g)  # one number of the second pair is kept
    again = [twister(0).set_state(g.get_state()), g.clone_state(), pickle.loads(pickle.dumps(g))]
    expected = rd.randn(5, generator=g).tolist()
    assert [rd.randn(5, generator=one).tolist() for one in again] == [expected] * 3
    assert {one.initial_seed() for one in again} == {3} and {one.kind for one in again} == {"mt19937"}


def test_a_twister_refuses_what_is_no_state_and_keeps_its_own():
    g = twister(3)
    before = g.get_state()
    with pytest.raises(RuntimeError, match="size 5056 but found the input RNG state size to be 16"):
        g.set_state(rd.Generator(kind="philox").get_state())
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        g.set_state(rd.full((5056,), 255, dtype=rd.uint8))
    assert g.get_state().equal(before)
    above = before.clone()
    above.view(rd.int64)[3:627] += 5 << 32  # of words the lower half counts, as in PyTorch
    assert twister(0).set_state(above).get_state().equal(before)
    with pytest.raises(ValueError, match="got 'dice'"):
        rd.Generator(kind="dice")


def test_small_and_large_draws_of_threads_share_a_sequence_without_a_number_twice():
    """Small draws take no lock: Note [Small draws take no lock]."""
    shared, pieces, done = twister(5), [], threading.Event()

    def draw(size):
        pieces.append(rd.randint(0, 2**20, (size,), generator=shared))

    def draw_many():
        for size in (3_000_000, 2000, 3_000_000):
            draw(size)
        done.set()

    def draw_few():
        while not done.is_set():
            draw(7)

    threads = [threading.Thread(target=work) for work in (draw_few, draw_many, draw_few)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    drawn = rd.from_numpy(np.concatenate([one.numpy() for one in pieces]))  # thousands
    in_turn = rd.randint(0, 2**20, (len(drawn),), generator=twister(5))
    assert drawn.bincount().equal(in_turn.bincount())


def test_what_is_remembered_of_a_fill_is_for_a_twister_and_the_numbers_that_it_was_decided_for():
    calls = [
        lambda: rd.rand(3),
        lambda: rd.randperm(5),
        lambda: rd.randint_like(rd.zeros(3), 4),
        lambda: rd.zeros(3).uniform_(2, 5),
        lambda: rd.zeros(3).normal_(0.0, 2.0),
        lambda: rd.zeros(2, dtype=rd.complex64).normal_(),
        lambda: rd.zeros(4, 3).t().exponential_(),
        lambda: rd.zeros(4, 3).t().bernoulli_(rd.full((3, 4), 0.4)),
    ]
    philox = rd.Generator(kind="philox")
    with rd.random.fork_rng():
        for call in calls:
            rd.manual_seed(1)
            expected = [call().tolist() for _ in range(5)]
            with rd.random.drawing_from(philox.manual_seed(1)):
                other = call().tolist()
            assert other != expected[0] or call is calls[1]
            rd.manual_seed(1)
            assert [call().tolist() for _ in range(5)] == expected
            with rd.random.drawing_from(philox.manual_seed(1)):
                assert call().tolist() == other


def test_a_fill_is_refused_each_time_and_changes_nothing():
    g = twister(3)
    for _ in range(4):
        rd.zeros(3).uniform_(0, 1, generator=g)
        rd.zeros(3).bernoulli_(rd.tensor([0.1, 0.2, 0.3]), generator=g)
    before = g.get_state()
    for _ in range(4):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single"):
            rd.zeros(1).expand(3).uniform_(0, 1, generator=g)
        with pytest.raises(RuntimeError, match="found from=2 > to=1"):
            rd.zeros(3).uniform_(2, 1, generator=g)
        with pytest.raises(RuntimeError, match="Expected p_in >= 0 && p_in <= 1"):
            rd.zeros(3).bernoulli_(rd.tensor([0.1, 0.2, 1.3]), generator=g)
        with pytest.raises(RuntimeError, match="'from' to be less than 'to'"):
            rd.randint(3, 3, (2,), generator=g)
    assert g.get_state().equal(before)


def test_factories_follow_the_default_dtype_and_inference_mode():
    for _ in range(4):
        assert rd.rand(2).dtype is rd.float32
    try:
        rd.set_default_dtype(rd.float64)
        assert [rd.rand(2).dtype for _ in range(4)] == [rd.float64] * 4
    finally:
        rd.set_default_dtype(rd.float32)
    assert rd.rand(2).dtype is rd.float32 and rd.rand(2)._version == 0
    with rd.inference_mode():
        assert rd.rand(2).is_inference() and rd.randn(2, generator=twister(0)).is_inference()
