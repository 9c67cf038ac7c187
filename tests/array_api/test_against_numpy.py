"""The namespace against numpy's, which holds to the same standard: the same line of a program, run with both.

Values, shapes and dtypes must be equal. What numpy does in a way of its own is in test_standard.py.
"""

import numpy as np
import pytest

import redispatch as rd
from redispatch import array_api

# Arrays of each kind that lines name: f, g floats; i, j integers; u unsigned; b, c bool; z complex; m, s matrices.
ARRAYS = {
    "f": np.array([[0.5, -1.25, 2.0], [3.0, -0.0, 1.5]]),
    "g": np.array([[1.5, 2.0, -0.5], [1.0, 3.0, 1.5]]),
    "h": np.array([[0.25, 1.0, 0.5], [0.75, 0.125, 1.0]], dtype=np.float32),
    "k": np.array([1.0, 2.0, 4.0]),
    "i": np.array([[3, -1, 4], [1, -5, 9]], dtype=np.int32),
    "j": np.array([[2, 6, 5], [3, 5, 8]], dtype=np.int64),
    "t": np.array([1, 2, 1], dtype=np.int8),
    "u": np.array([200, 100, 3], dtype=np.uint8),
    "b": np.array([[True, False, True], [False, False, True]]),
    "c": np.array([True, True, False]),
    "z": np.array([[1 + 2j, -0.5j, 3], [2 - 1j, 1j, -1]]),
    "o": np.array(3, dtype=np.int64),
    "m": np.array([[[4.0, 1.0], [2.0, 3.0]], [[2.0, 0.5], [0.5, 1.0]]]),
    "s": np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]]),
    "empty": np.zeros((0, 3)),
}

LINES = """
abs(f) abs(z) abs(i) acos(h) acosh(g + 3) asin(h) asinh(f) atan(f) atanh(h / 2) bitwise_invert(i) bitwise_invert(b)
ceil(f) ceil(i) conj(z) cos(f) cosh(f) exp(f) exp(z) expm1(f) floor(f) floor(u) imag(z) real(z) isfinite(f) isfinite(i)
isinf(f) isnan(z) isnan(i) log(g + 1) log(z) log10(h) log1p(h) log2(h) logical_not(b) negative(i) positive(z)
reciprocal(g) round(f) round(i) sign(f) sign(i) signbit(f) sin(z) sinh(f) sqrt(h) square(i) square(z) tan(f)
tanh(f) trunc(f) trunc(i)

add(f,g) add(i,j) add(t,u) add(i,o) add(o,t) add(f,2) add(h,2.5) add(2,i) add(z,1.5) atan2(f,g) atan2(f,2.0)
bitwise_and(i,j) bitwise_and(b,c) bitwise_left_shift(i,t) bitwise_or(i,1) bitwise_right_shift(i,t) bitwise_xor(i,j)
copysign(f,g) copysign(1.0,f) divide(f,g) divide(z,g) equal(i,j) equal(f,0) floor_divide(i,j) floor_divide(f,g)
greater(f,g) greater_equal(i,3) hypot(f,g) less(u,150) less_equal(f,g) logaddexp(f,g) logical_and(b,c) logical_or(b,c)
logical_xor(b,True) maximum(f,g) maximum(i,2) minimum(i,j) minimum(h,f) multiply(i,o) multiply(z,z) nextafter(f,g)
not_equal(f,g) pow(g,2) pow(j,2) pow(j,t) remainder(i,j) remainder(f,g) subtract(i,t) subtract(1,f)
clip(f,0,1) clip(i,min=0) clip(i,max=2) clip(f,g-1,g) clip(f)

arange(5) arange(2,10,3) arange(5,2) arange(0,1,0.25) arange(5,0,-2) asarray([1,2]) asarray(2.5) asarray([[True]])
asarray(1j) asarray(f,dtype=xp.float32) zeros_like(i) ones_like(f,dtype=xp.int32) full_like(u,7) full((2,3),4)
full(3,2.5) full((),True) eye(3) eye(2,4,k=1) eye(3,2,k=-5,dtype=xp.int64) linspace(0,1,5) linspace(1,2,4,endpoint=False)
linspace(0,1,1,endpoint=False) meshgrid(k,k[:2]) meshgrid(k,k[:2],indexing="ij") ones((2,2)) ones(3,dtype=xp.uint8) zeros((0,2))
tril(s) tril(s,k=-1) triu(s,k=1) tril(m) empty((2,0)) from_dlpack(f)

astype(f,xp.int32) astype(i,xp.float32) astype(b,xp.int8) astype(f,xp.bool) can_cast(xp.int8,xp.int16)
can_cast(xp.float64,xp.float32) can_cast(xp.uint8,xp.int16) can_cast(xp.int16,xp.uint8) result_type(xp.int8,xp.uint8)
result_type(xp.float32,xp.float64,xp.float32) result_type(i,o) result_type(h,1.5) result_type(t,o) result_type(h,z)
isdtype(xp.int8,"signed integer") isdtype(xp.uint8,"signed integer") isdtype(xp.float32,("bool","real floating"))
isdtype(xp.complex64,"numeric") isdtype(xp.bool,"numeric") isdtype(xp.int8,xp.int8) isdtype(xp.int8,(xp.int16,"integral"))

broadcast_arrays(f,k) broadcast_to(k,(2,3)) concat([f,g]) concat([f,h],axis=1) concat([i,t],axis=None) expand_dims(f,axis=1)
expand_dims(f,axis=-1) flip(f) flip(f,axis=1) flip(f,axis=(0,-1)) moveaxis(m,0,-1) moveaxis(m,(0,1),(2,0))
permute_dims(m,(2,0,1)) repeat(k,2) repeat(f,2,axis=1) repeat(f,t,axis=1) repeat(f,3) reshape(f,(3,2)) reshape(f,(-1,))
reshape(f,(3,2),copy=True) roll(f,1) roll(f,1,axis=0) roll(f,(1,-1),axis=(0,1)) roll(f,2,axis=(0,1))
squeeze(m[:1],0) squeeze(f[:1,:1],(0,1)) stack([f,g]) stack([f,h],axis=-1) take(f,t,axis=1) take(k,t) take(f,-t,axis=1)
take_along_axis(f,j%3,axis=1) take_along_axis(f,-(j%3),axis=-1) tile(k,(2,)) tile(f,(2,1,2)) unstack(f) unstack(f,axis=1)

argmax(f) argmax(f,axis=0) argmax(f,axis=1,keepdims=True) argmin(i,axis=-1) argmin(i,keepdims=True) count_nonzero(f)
count_nonzero(f,axis=0) count_nonzero(b,axis=(0,1),keepdims=True) count_nonzero(o) nonzero(f) nonzero(b) searchsorted(k,f)
searchsorted(k,k,side="right") searchsorted(k,f,sorter=xp.asarray([0,1,2])) where(b,f,g) where(b,i,t) where(b,f,0.0)
where(c,1,i) argsort(f) sort(f) sort(i,axis=0) sort(b) sort(u)
unique_counts(i) unique_counts(t) unique_values(b)

all(b) all(b,axis=0) all(f,axis=(0,1),keepdims=True) all(empty) all(z,axis=1) any(b,axis=1) any(u) any(empty,axis=0)
max(f) max(i,axis=0) max(m,axis=(0,2)) max(f,keepdims=True) min(f) min(u) min(m,axis=(0,-1),keepdims=True)
mean(f) mean(f,axis=0) mean(h) mean(m,axis=(0,1),keepdims=True) prod(j) prod(i,axis=1) prod(m,axis=(0,2)) prod(h)
prod(f,axis=(0,1),keepdims=True) std(f) std(f,axis=1,correction=1) sum(f) sum(i) sum(h,axis=0) sum(m,axis=(0,-1))
sum(f,axis=0,keepdims=True) sum(i,dtype=xp.int32) sum(b,dtype=xp.int64) sum(z) sum(empty,axis=0) var(f) var(h,axis=0)
var(m,axis=(0,1),correction=1,keepdims=True) cumulative_sum(k) cumulative_sum(f,axis=1) cumulative_sum(i,axis=0,include_initial=True)
cumulative_sum(f,axis=-1,include_initial=True) cumulative_prod(j,axis=1) cumulative_prod(k,include_initial=True)
cumulative_sum(t,dtype=xp.int16) diff(k) diff(f,axis=0) diff(k,n=2) diff(k,prepend=k,append=k[:1]) diff(f,axis=0,prepend=f)

matmul(f,m[0,0,:1]*s) matmul(s,k) matmul(m,m) matmul(j,s) matrix_transpose(m) tensordot(f,s,axes=1) tensordot(f,g)
tensordot(f,g,axes=([0,1],[0,1])) tensordot(f,k,axes=0) vecdot(f,g) vecdot(z,z) vecdot(f,g,axis=-2) vecdot(f,k)
vecdot(i,j)

linalg.cholesky(s) linalg.cholesky(m[1]) linalg.cholesky(s,upper=True) linalg.cross(f,g) linalg.cross(f,k) linalg.det(m)
linalg.diagonal(m) linalg.diagonal(s,offset=1) linalg.eigvalsh(s) linalg.inv(m) linalg.matmul(s,s) linalg.matrix_norm(m)
linalg.matrix_norm(s,ord=2) linalg.matrix_norm(s,ord=1,keepdims=True) linalg.matrix_norm(s,ord="nuc") linalg.matrix_power(s,3)
linalg.matrix_power(s,0) linalg.matrix_power(m,-2) linalg.matrix_rank(s) linalg.matrix_rank(xp.ones((3,3)))
linalg.matrix_rank(s,rtol=0.4) linalg.matrix_transpose(m) linalg.outer(k,t) linalg.pinv(f) linalg.pinv(m)
linalg.pinv(xp.ones((2,3))) linalg.slogdet(m) linalg.solve(s,k) linalg.solve(s,f.T) linalg.solve(m,f[:,:2]) linalg.svdvals(f)
linalg.tensordot(f,g) linalg.trace(m) linalg.trace(s,offset=-1) linalg.trace(j) linalg.vecdot(f,g)
linalg.vector_norm(f) linalg.vector_norm(f,axis=1) linalg.vector_norm(f,ord=1) linalg.vector_norm(f,ord=xp.inf,axis=0,keepdims=True)
linalg.vector_norm(f,ord=0) linalg.vector_norm(m,axis=(0,2)) linalg.vector_norm(z)

fft.fft(f) fft.fft(z,n=4,axis=0) fft.fft(f,norm="ortho") fft.ifft(z) fft.fftn(m) fft.fftn(m,s=(2,3),axes=(0,1)) fft.ifftn(z)
fft.rfft(f) fft.rfft(f,axis=0) fft.irfft(z) fft.irfft(z,n=5) fft.rfftn(m) fft.irfftn(z) fft.irfftn(z,s=(2,4),axes=(0,1))
fft.hfft(z) fft.ihfft(f) fft.ihfft(f,norm="forward") fft.fftfreq(5) fft.fftfreq(4,d=0.5) fft.rfftfreq(5) fft.fftshift(f)
fft.fftshift(f,axes=1) fft.ifftshift(f,axes=(0,)) fft.fftshift(k)
"""  # noqa: E501  # a table reads better by topic than by width


def calls():
    """The lines one by one: a call ends where its brackets are closed."""
    depth, start = 0, None
    for place, sign in enumerate(LINES):
        if start is None and not sign.isspace():
            start = place
        depth += (sign in "([") - (sign in ")]")
        if start is not None and sign == ")" and depth == 0:
            yield LINES[start : place + 1]
            start = None


@pytest.fixture(autouse=True)
def floats_are_float64():
    """numpy's default dtype, for the test's time."""
    before = rd.get_default_dtype()
    rd.set_default_dtype(rd.float64)
    yield
    rd.set_default_dtype(before)


def leaves(result):
    return [x for item in result for x in leaves(item)] if isinstance(result, tuple | list) else [result]


def plain(x):
    """An array, a number or a dtype as numpy has it."""
    return x.numpy() if isinstance(x, rd.Tensor) else x.numpy if isinstance(x, rd.dtype) else x


@pytest.mark.parametrize("line", list(calls()))
def test_the_line_gives_what_it_gives_with_numpy(line):
    wanted = eval(f"xp.{line}", {"xp": np, **ARRAYS})
    found = eval(f"xp.{line}", {"xp": array_api, **{name: rd.tensor(array) for name, array in ARRAYS.items()}})
    for mine, its in zip(map(plain, leaves(found)), leaves(wanted), strict=True):
        if isinstance(mine, np.ndarray):
            assert mine.dtype == np.asarray(its).dtype and mine.shape == np.shape(its)
            if not line.startswith("empty("):
                np.testing.assert_allclose(mine, its, rtol=2e-6 if mine.dtype == np.float32 else 1e-12, atol=1e-12)
        else:
            assert mine == its


def test_every_function_has_a_line():
    tried = {call.partition("(")[0] for call in calls()}
    here = {name for name in dir(array_api) if callable(getattr(array_api, name)) and not name.startswith("_")}
    here -= {"bool", *(x for x in here if isinstance(getattr(array_api, x), rd.dtype))}
    here |= {f"{room}.{name}" for room in ("linalg", "fft") for name in getattr(array_api, room).__all__}
    elsewhere = {"finfo", "iinfo", "unique_all", "unique_inverse", "empty_like"}  # test_standard.py
    elsewhere |= {"linalg.eigh", "linalg.qr", "linalg.svd"}  # unique up to signs
    assert here - elsewhere <= tried, sorted(here - elsewhere - tried)
