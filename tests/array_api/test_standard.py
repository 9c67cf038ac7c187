"""The array API standard: its names, and its own test suite."""

import inspect
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.array_api import make_strategies_namespace

import redispatch as rd
from redispatch import array_api
from redispatch import array_api as xp
from redispatch.testing import assert_close

# The rules of the standard --------------------------------------------------------------------------------------------

# Names, signatures, promotion, and what programs may ask of the namespace and of arrays.

# The functions of the standard 2024.12 and of its extensions, as it writes them.
ONE_ARRAY = """
abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan log
log10 log1p log2 logical_not matrix_transpose negative nonzero positive real reciprocal round sign signbit sin sinh
sqrt square tan tanh trunc unique_all unique_counts unique_inverse unique_values linalg.det linalg.eigh
linalg.eigvalsh linalg.inv linalg.matrix_transpose linalg.slogdet linalg.svdvals
"""
TWO_ARRAYS = """
add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal
floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor matmul maximum
minimum multiply nextafter not_equal pow remainder subtract linalg.matmul linalg.outer linalg.solve
"""
OTHERS = """
all(x, /, *, axis=None, keepdims=False)
any(x, /, *, axis=None, keepdims=False)
arange(start, /, stop=None, step=1, *, dtype=None, device=None)
argmax(x, /, *, axis=None, keepdims=False)
argmin(x, /, *, axis=None, keepdims=False)
argsort(x, /, *, axis=-1, descending=False, stable=True)
asarray(obj, /, *, dtype=None, device=None, copy=None)
astype(x, dtype, /, *, copy=True, device=None)
broadcast_arrays(*arrays)
broadcast_to(x, /, shape)
can_cast(from_, to, /)
clip(x, /, min=None, max=None)
concat(arrays, /, *, axis=0)
count_nonzero(x, /, *, axis=None, keepdims=False)
cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)
cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False)
diff(x, /, *, axis=-1, n=1, prepend=None, append=None)
empty(shape, *, dtype=None, device=None)
empty_like(x, /, *, dtype=None, device=None)
expand_dims(x, /, axis)
eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)
finfo(type, /)
flip(x, /, *, axis=None)
from_dlpack(x, /, *, device=None, copy=None)
full(shape, fill_value, *, dtype=None, device=None)
full_like(x, /, fill_value, *, dtype=None, device=None)
iinfo(type, /)
isdtype(dtype, kind)
linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)
max(x, /, *, axis=None, keepdims=False)
mean(x, /, *, axis=None, keepdims=False)
meshgrid(*arrays, indexing='xy')
min(x, /, *, axis=None, keepdims=False)
moveaxis(x, source, destination, /)
ones(shape, *, dtype=None, device=None)
ones_like(x, /, *, dtype=None, device=None)
permute_dims(x, /, axes)
prod(x, /, *, axis=None, dtype=None, keepdims=False)
repeat(x, repeats, /, *, axis=None)
reshape(x, /, shape, *, copy=None)
result_type(*arrays_and_dtypes)
roll(x, /, shift, *, axis=None)
searchsorted(x1, x2, /, *, side='left', sorter=None)
sort(x, /, *, axis=-1, descending=False, stable=True)
squeeze(x, /, axis)
stack(arrays, /, *, axis=0)
std(x, /, *, axis=None, correction=0.0, keepdims=False)
sum(x, /, *, axis=None, dtype=None, keepdims=False)
take(x, indices, /, *, axis=None)
take_along_axis(x, indices, /, *, axis=-1)
tensordot(x1, x2, /, *, axes=2)
tile(x, repetitions, /)
tril(x, /, *, k=0)
triu(x, /, *, k=0)
unstack(x, /, *, axis=0)
var(x, /, *, axis=None, correction=0.0, keepdims=False)
vecdot(x1, x2, /, *, axis=-1)
where(condition, x1, x2, /)
zeros(shape, *, dtype=None, device=None)
zeros_like(x, /, *, dtype=None, device=None)
linalg.cholesky(x, /, *, upper=False)
linalg.cross(x1, x2, /, *, axis=-1)
linalg.diagonal(x, /, *, offset=0)
linalg.matrix_norm(x, /, *, keepdims=False, ord='fro')
linalg.matrix_power(x, n, /)
linalg.matrix_rank(x, /, *, rtol=None)
linalg.pinv(x, /, *, rtol=None)
linalg.qr(x, /, *, mode='reduced')
linalg.svd(x, /, *, full_matrices=True)
linalg.tensordot(x1, x2, /, *, axes=2)
linalg.trace(x, /, *, offset=0, dtype=None)
linalg.vecdot(x1, x2, /, *, axis=-1)
linalg.vector_norm(x, /, *, axis=None, keepdims=False, ord=2)
fft.fft(x, /, *, n=None, axis=-1, norm='backward')
fft.fftfreq(n, /, *, d=1.0, dtype=None, device=None)
fft.fftn(x, /, *, s=None, axes=None, norm='backward')
fft.fftshift(x, /, *, axes=None)
fft.hfft(x, /, *, n=None, axis=-1, norm='backward')
fft.ifft(x, /, *, n=None, axis=-1, norm='backward')
fft.ifftn(x, /, *, s=None, axes=None, norm='backward')
fft.ifftshift(x, /, *, axes=None)
fft.ihfft(x, /, *, n=None, axis=-1, norm='backward')
fft.irfft(x, /, *, n=None, axis=-1, norm='backward')
fft.irfftn(x, /, *, s=None, axes=None, norm='backward')
fft.rfft(x, /, *, n=None, axis=-1, norm='backward')
fft.rfftfreq(n, /, *, d=1.0, dtype=None, device=None)
fft.rfftn(x, /, *, s=None, axes=None, norm='backward')
"""
SIGNATURES = [f"{name}(x, /)" for name in ONE_ARRAY.split()] + [f"{name}(x1, x2, /)" for name in TWO_ARRAYS.split()]
SIGNATURES += OTHERS.strip().splitlines()


def functions():
    """Every function of the namespace and its extensions, by name."""
    for room, prefix in ((xp, ""), (xp.linalg, "linalg."), (xp.fft, "fft.")):
        for name in getattr(room, "__all__", dir(room)):
            function = getattr(room, name)
            if inspect.isroutine(function) and not name.startswith("_"):
                yield prefix + name, function


def test_every_function_is_there_with_the_signature_of_the_standard():
    found = []
    for name, function in functions():
        parameters = [p.replace(annotation=p.empty) for p in inspect.signature(function).parameters.values()]
        found.append(f"{name}{inspect.Signature(parameters)}")
    assert sorted(found) == sorted(SIGNATURES)


def test_constants_and_dtypes_are_there():
    assert (xp.e, xp.pi, xp.inf, xp.newaxis) == (np.e, np.pi, float("inf"), None)
    assert np.isnan(xp.nan)
    wanted = "bool int8 int16 int32 int64 uint8 float32 float64 complex64 complex128".split()
    assert [name for name in wanted if isinstance(getattr(xp, name), rd.dtype)] == wanted


# --- arrays and their namespace ---------------------------------------------------------------------------------------


def test_a_tensor_knows_its_namespace():
    x = rd.ones(2)
    assert x.__array_namespace__() is xp is x.__array_namespace__(api_version="2022.12")
    with pytest.raises(ValueError, match="the array API of '1999.1' is not there"):
        x.__array_namespace__(api_version="1999.1")


def test_a_tensor_moves_between_devices():
    x = rd.ones(2, 3)
    assert x.to_device("cpu") is x and x.to_device(rd.device("meta")).device.type == "meta"
    with pytest.raises(ValueError, match="there are no streams"):
        x.to_device("cpu", stream=1)


def test_the_namespace_says_what_it_can_do():
    info = xp.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    assert info.default_device() in info.devices()
    assert info.default_dtypes()["indexing"] is rd.int64
    assert info.dtypes(kind="integral").keys() == {"int8", "int16", "int32", "int64", "uint8"}
    assert info.dtypes(kind=("bool", "complex floating")).keys() == {"bool", "complex64", "complex128"}
    for name, dtype in info.dtypes().items():
        assert getattr(xp, name) is dtype and xp.empty(1, dtype=dtype).dtype is dtype


def test_an_array_of_another_library_comes_by_dlpack_over_the_same_memory():
    array = np.arange(3.0)
    x = xp.from_dlpack(array)
    x += 1
    assert array.tolist() == [1, 2, 3]
    assert np.from_dlpack(x).tolist() == [1, 2, 3]
    copied = xp.from_dlpack(array, copy=True)
    copied += 1
    assert array.tolist() == [1, 2, 3]


# --- dtypes -----------------------------------------------------------------------------------------------------------

xps = make_strategies_namespace(xp, api_version="2024.12")
BINARY = "add multiply subtract maximum equal less bitwise_and".split()


@given(st.lists(st.sampled_from([rd.int8, rd.int16, rd.int32, rd.int64, rd.uint8]), min_size=2, max_size=2), st.data())
def test_dimensions_have_no_say_in_the_dtype(dtypes, data):
    """A tensor without dimensions has, by PyTorch's rules."""
    shapes = data.draw(xps.mutually_broadcastable_shapes(2, max_dims=2, max_side=3))
    x, y = (xp.ones(shape, dtype=dtype) for shape, dtype in zip(shapes.input_shapes, dtypes, strict=True))
    for name in BINARY:
        out = getattr(xp, name)(x, y)
        wanted = rd.promote_types(*dtypes)
        assert out.dtype is (xp.bool if name in ("equal", "less") else wanted) and out.shape == shapes.result_shape


@pytest.mark.filterwarnings("ignore:Array module redispatch.array_api does not have")  # uint16, say
@given(xps.arrays(xps.scalar_dtypes(), xps.array_shapes(min_dims=0, max_dims=3, max_side=4)))
def test_unique_elements_are_found_again(x):
    values, indices, inverse, counts = xp.unique_all(x)
    row = xp.reshape(x, (-1,))
    assert (values.dtype, inverse.shape, int(xp.sum(counts))) == (x.dtype, x.shape, row.shape[0])
    same = xp.equal(xp.take(values, xp.reshape(inverse, (-1,))), row)
    assert bool(xp.all(same | (row != row)))
    for value, index in zip(values, indices, strict=True):
        if bool(value == value):
            assert int(index) == row.tolist().index(value.item())


def test_limits_name_their_dtype():
    assert xp.finfo(xp.float32) == (
        32,
        2.0**-23,
        (2 - 2.0**-23) * 2.0**127,
        -(2 - 2.0**-23) * 2.0**127,
        2.0**-126,
        rd.float32,
    )
    assert xp.finfo(xp.asarray(1j)).dtype is rd.float32
    assert xp.iinfo(xp.asarray(1, dtype=xp.int16)) == (16, 2**15 - 1, -(2**15), rd.int16)


def test_nans_are_distinct():
    x = xp.asarray([xp.nan, 1.0, xp.nan, 1.0])
    z = xp.astype(x, xp.complex64)
    assert xp.unique_counts(z).values.shape == (3,)
    assert xp.unique_counts(x).counts.tolist() == [2, 1, 1]
    assert xp.unique_inverse(x).inverse_indices.shape == (4,)


def test_zeros_and_nans_are_those_of_the_standard():
    """Runs where PyTorch's are others."""
    assert np.isnan(xp.sign(xp.asarray(xp.nan)).item())
    rest = xp.remainder(xp.asarray([4.0, -4.0, 0.0, -0.0]), xp.asarray([-2.0, 2.0, -2.0, 2.0]))
    assert xp.signbit(rest).tolist() == [True, False, True, False] and not bool(xp.any(rest))


def test_decompositions_give_back_the_matrix():
    x = xp.asarray([[2.0, 1.0, 0.5], [1.0, 3.0, 0.25]], dtype=xp.float64)
    q, r = xp.linalg.qr(x)
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    symmetric = x @ x.T
    values, vectors = xp.linalg.eigh(symmetric)
    assert_close(q @ r, x)
    assert_close(u * s @ vh, x)
    assert_close(vectors * values @ vectors.T, symmetric)
    assert xp.linalg.qr(x, mode="complete").Q.shape == (2, 2) and xp.linalg.svd(x).Vh.shape == (3, 3)
    assert xp.empty_like(x, dtype=xp.int8).dtype is xp.int8


def test_a_sort_with_equal_elements_is_stable_in_both_directions():
    x = xp.asarray([1, 0, 1, 0])
    assert xp.argsort(x).tolist() == [1, 3, 0, 2] and xp.argsort(x, descending=True).tolist() == [0, 2, 1, 3]


# --- errors -----------------------------------------------------------------------------------------------------------

x = rd.ones(2, 3)


# `make array-api` runs the standard's own suite, for whoever has it ---------------------------------------------------

# Here, what can be known without it.

HERE = Path(__file__).parent
SKIPS = (HERE / "skips.txt").read_text()
IDS = [line for line in SKIPS.splitlines() if line and not line.startswith("#")]


def test_without_the_path_of_the_suite_make_says_what_to_do():
    command = ["make", "array-api", "ARRAY_API_TESTS=nowhere"]
    made = subprocess.run(command, cwd=HERE.parents[1], capture_output=True, text=True)
    assert made.returncode and "make array-api ARRAY_API_TESTS=../array-api-tests" in made.stderr


def test_every_group_of_tests_left_out_has_a_reason():
    for group in SKIPS.strip().split("\n\n"):
        assert group.startswith("# ")
    assert len(IDS) == len(set(IDS))


def test_what_is_left_out_is_a_function_or_an_operator():
    for one in IDS:
        name = re.search(r"\[(\w+)\(", one)[1]
        assert hasattr(array_api, name) or name.startswith("__"), one
