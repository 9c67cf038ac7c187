"""Functions of complex numbers on the simulated device, against the CPU's."""

import pytest

import redispatch as rd

pytestmark = pytest.mark.usefixtures("simulator")

FUNCTIONS = """
    abs exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh
    sigmoid reciprocal square sgn angle
""".split()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_complex_numbers_gives_what_it_gives_on_the_cpu(name):
    parts = rd.linspace(-2, 2, 8)
    z = rd.complex(parts[:, None].expand(8, 8), parts * 1.1)
    function = getattr(rd, name)
    rd.testing.assert_close(function(z.cuda()).cpu(), function(z), rtol=2e-6, atol=2e-6)


def test_small_numbers_do_not_cancel():
    z = rd.tensor([1e-12 + 2e-12j, -3e-9 + 1e-15j], dtype=rd.complex128)
    wanted = z + z * z / 2
    for found in (rd.expm1(z.cuda()).cpu(), rd.expm1(z)):
        rd.testing.assert_close(found.real, wanted.real, rtol=1e-14, atol=0)
        rd.testing.assert_close(found.imag, wanted.imag, rtol=1e-14, atol=0)


def test_powers_and_lengths():
    z = rd.tensor([3 + 4j, -1 + 0.5j, 2 - 2j], dtype=rd.complex64)
    rd.testing.assert_close((z.cuda() ** z.cuda()).cpu(), z**z, rtol=1e-5, atol=1e-6)
    for order in (0, 1, 2, 3.0, float("inf")):
        rd.testing.assert_close(rd.linalg.vector_norm(z.cuda(), order).cpu(), rd.linalg.vector_norm(z, order))
