"""A seed gives the same numbers on a device as on the CPU."""

import pytest

import redispatch as rd

DRAWS = {
    "rand": lambda on: rd.rand(1003, device=on),
    "rand_double": lambda on: rd.rand(7, 9, device=on, dtype=rd.float64),
    "bernoulli_": lambda on: rd.empty(257, device=on).bernoulli_(0.3),
    "randint": lambda on: rd.randint(-5, 1 << 20, (301,), device=on),
    "wide_randint": lambda on: rd.randint(-(1 << 60), 1 << 61, (31,), device=on),
    "randperm": lambda on: rd.randperm(53, device=on),
    "uniform_16": lambda on: rd.empty(33, device=on, dtype=rd.bfloat16).uniform_(-2, 3),
    "dropout": lambda on: rd.nn.functional.dropout(rd.ones(1000, device=on), 0.4),
}
NEARLY = {
    "randn": lambda on: rd.randn(1003, device=on),
    "randn_double": lambda on: rd.randn(31, device=on, dtype=rd.float64),
    "exponential_": lambda on: rd.empty(257, device=on).exponential_(2.0),
    "normal_complex": lambda on: rd.randn(9, device=on, dtype=rd.complex64),
    "normal": lambda on: rd.normal(rd.arange(9.0, device=on), rd.ones(9, device=on)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_bits_are_those_of_the_cpu(simulator, name):
    rd.manual_seed(5)
    here = DRAWS[name]("cpu"), DRAWS[name]("cpu")
    rd.cuda.manual_seed(5)
    for wanted in here:
        assert rd.equal(DRAWS[name]("cuda").cpu(), wanted)


@pytest.mark.parametrize("name", NEARLY)
def test_numbers_made_by_functions_differ_in_their_last_bits_at_most(simulator, name):
    rd.manual_seed(5)
    here = NEARLY[name]("cpu")
    there = NEARLY[name]("cuda").cpu()
    rd.testing.assert_close(there, here, rtol=1e-6 if here.dtype != rd.float64 else 1e-14, atol=1e-6)


def test_a_checkpointed_function_drops_the_same_elements_again(simulator):
    x = rd.ones(40, device="cuda", requires_grad=True)
    found = []
    for again in (lambda f, x: f(x), rd.utils.checkpoint.checkpoint):
        rd.cuda.manual_seed(1)
        options = {} if not found else {"use_reentrant": False}
        again(lambda x: rd.nn.functional.dropout(x, 0.5) * x, x, **options).sum().backward()
        found.append((x.grad.cpu(), rd.cuda.get_rng_state()))
        x.grad = None
    assert rd.equal(found[0][0], found[1][0]) and rd.equal(found[0][1], found[1][1])
    before = rd.cuda.get_rng_state()
    with rd.random.fork_rng():
        rd.rand(3, device="cuda")
    assert rd.equal(rd.cuda.get_rng_state(), before)


def test_generators_of_a_device(simulator):
    generator = rd.Generator(device="cuda").manual_seed(3)
    assert generator.device == rd.device("cuda:0")
    first = rd.rand(4, device="cuda", generator=generator)
    assert rd.equal(first.cpu(), rd.rand(4, generator=rd.Generator().manual_seed(3)))
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
        rd.rand(4, device="cuda", generator=rd.Generator())
    state = rd.cuda.get_rng_state()
    once = rd.rand(4, device="cuda")
    rd.cuda.set_rng_state(state)
    assert rd.equal(rd.rand(4, device="cuda"), once)
    assert rd.cuda.initial_seed() == rd.cuda.default_generators[0].initial_seed()
