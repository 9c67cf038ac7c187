"""Zeros with a sign, the smallest and the largest numbers, infinities and NaN: each operator gives what numpy does."""

import numpy as np
import pytest

import redispatch as rd

DTYPES = ["float32", pytest.param("float64", marks=pytest.mark.long)]
ONE = [
    "negative", "abs", "floor", "ceil", "trunc", "sqrt", "exp", "expm1", "log", "log2", "log10", "log1p", "tanh",
    "isnan", "isinf", "isfinite", "sin", "cos", "arctan", "arcsinh", "exp2", "reciprocal", "square",
]  # fmt: skip
TWO = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "fmod",
    "arctan2",
    "maximum",
    "minimum",
    "less",
    "equal",
]


def special(dtype):
    info = np.finfo(dtype)
    sizes = [0.0, info.smallest_subnormal, info.tiny, 0.5, 1.0, 1.5, 2.0, 3.0, info.max, np.inf]
    return np.array([*sizes, *(-x for x in sizes), np.nan], dtype)


def same(ours, numpys):
    """Equal, up to rounding of the largest functions; zeros have the same sign."""
    np.testing.assert_allclose(ours, numpys, rtol=4e-6 if numpys.dtype == np.float32 else 4e-15)
    if numpys.dtype.kind == "f":
        zero = numpys == 0
        np.testing.assert_array_equal(np.signbit(ours[zero]), np.signbit(numpys[zero]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ONE)
def test_of_one_operand(name, dtype):
    x = special(dtype)
    with np.errstate(all="ignore"):
        same(getattr(rd, name)(rd.from_numpy(x.copy())).numpy(), getattr(np, name)(x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", TWO)
def test_of_two_operands(name, dtype):
    x, y = (np.ascontiguousarray(v) for v in np.broadcast_arrays(special(dtype)[:, None], special(dtype)))
    call = {"equal": rd.eq}.get(name) or getattr(rd, name)
    with np.errstate(all="ignore"):
        ours, numpys = call(rd.from_numpy(x), rd.from_numpy(y)).numpy(), getattr(np, name)(x, y)
    if name in ("maximum", "minimum"):  # of two zeros, either
        np.testing.assert_array_equal(ours, numpys)
    else:
        same(ours, numpys)
