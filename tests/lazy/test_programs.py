"""Programs on the lazy device give what they give on the CPU: bit for bit as they stand, and close where compiled."""

import pytest

import redispatch as rd

from .programs import PROGRAMS

COMPILED = ("views", "gradients", "losses", "several_results", "sgd", "adam")  # the others' loops take long to compile


def flat(results):
    return list(results) if isinstance(results, tuple) else [results]


def check(name, exact):
    for wanted, found in zip(flat(PROGRAMS[name]("cpu")), flat(PROGRAMS[name]("lazy")), strict=True):
        if not isinstance(wanted, rd.Tensor):
            assert found == wanted
            continue
        assert found.device.type == "lazy"
        assert (found.shape, found.stride(), found.dtype) == (wanted.shape, wanted.stride(), wanted.dtype)
        close = {"rtol": 0, "atol": 0} if exact else {"rtol": 1e-4, "atol": 1e-5}
        rd.testing.assert_close(found.cpu(), wanted, equal_nan=True, **close)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_lazy_program_gives_the_bits_of_the_cpu(name, as_it_stands):
    check(name, exact=True)


@pytest.mark.parametrize("name", COMPILED)
def test_a_compiled_lazy_program_gives_the_values_of_the_cpu(name):
    check(name, exact=False)
