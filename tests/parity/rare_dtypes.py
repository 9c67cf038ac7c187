"""Operators on each rare dtype, and sums, comparisons and copies of each pair of dtypes, against PyTorch's.

Run with a Python that has torch: `python tests/parity/rare_dtypes.py [dtype ...]`. Exits non-zero on any difference
that is not listed: in the dtype, shape and elements of a result, or in the class and the first words of a refusal.
"""

from __future__ import annotations

import copy
import io
import itertools
import random
import sys
import warnings
from fnmatch import fnmatch

import numpy as np
import torch

import redispatch as rd

warnings.simplefilter("ignore")
NAMES = sorted(
    n for n in dir(torch) if isinstance(d := getattr(torch, n), torch.dtype) and str(d) == f"torch.{n}" and n[0] != "q"
)
COMMON = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
RARE = [name for name in NAMES if name not in COMMON]  # of quantised ones, see quantized.py
CHOSEN = ["complex32", "uint16", "float8_e4m3fn", "bits8"]

# Of a dtype d; of a tensor x of three elements, a matrix m of them, places `at` and a mask; and what x holds afterwards
MADE = """
lib.tensor([1, 0, 3], dtype=d) | lib.tensor([1.5], dtype=d) | lib.tensor([-1], dtype=d) |
lib.tensor([2 ** 40], dtype=d) | lib.tensor([1j], dtype=d) | lib.zeros(2, dtype=d) | lib.ones(2, dtype=d) |
lib.full((2,), 3, dtype=d) | lib.empty(2, dtype=d).shape | lib.arange(4, dtype=d) | lib.linspace(0, 4, 3, dtype=d) |
lib.eye(2, dtype=d) | lib.rand(2, dtype=d).shape | lib.randn(2, dtype=d).shape | lib.randint(0, 1, (2,), dtype=d) |
lib.randperm(1, dtype=d) | lib.scalar_tensor(2, dtype=d)
"""
READ = """
x.clone() | x[::2].contiguous() | x.to(x.dtype) | lib.zeros_like(x) | lib.ones_like(x) | lib.full_like(x, 2) |
lib.rand_like(x).shape | x.new_tensor([1]) | x.new_zeros(2) | x.new_full((2,), 2) | -x | x.abs() | x.sign() |
x.exp() | x.sqrt() | x.sin() | x.floor() | x.round() | x.reciprocal() | x.relu() | x.sigmoid() | x.tanh() |
x.square() | x.log() | x.trunc() | x.frac() | x.isnan() | x.isinf() | x.isfinite() | x.signbit() | ~x |
x.logical_not() | x.bool() | x.real | x.imag | x.conj() | x.conj().resolve_conj() | x.angle() | lib.view_as_real(x)
| x + x | x + 1 | x + 1.5 | x + 1j | x - x | 1 - x | x * x | x * 2 | x / x | x / 2 | x // 2 | x % 2 | x ** 2 |
x ** x | x & x | x | x | x ^ x | x << 1 | x >> 1 | x << x | x & 1 | x == x | x != x | x < x | x <= x | x > x |
x >= x | x == 3 | x < 3 | x == 2.5 | lib.equal(x, x) | lib.allclose(x, x) | lib.isclose(x, x) | lib.maximum(x, x) |
lib.minimum(x, x) | lib.fmax(x, x) | x.clamp(0, 2) | x.clamp(min=1) | lib.logical_and(x, x) | lib.logical_or(x, x) |
lib.logical_xor(x, x) | lib.atan2(x, x) | lib.hypot(x, x) | lib.gcd(x, x) | lib.lerp(x, x, 0.5) |
lib.addcmul(x, x, x) | lib.remainder(x, x) | lib.fmod(x, 2) | x.sum() | x.sum(0) | x.sum(dtype=lib.float32) |
x.sum(dtype=x.dtype) | x.prod() | x.mean() | x.mean(dtype=lib.float32) | x.amax() | x.max() | x.max(0) | x.min() |
x.argmax() | x.argmin() | x.any() | x.all() | x.any(0) | x.cumsum(0) | x.cumprod(0) | x.norm() | x.std() | x.var() |
x.logsumexp(0) | x.softmax(0) | x.nansum() | x.count_nonzero() | lib.aminmax(x) | x.median() | x.mode() |
x.cummax(0) | m.mm(m) | m.mv(x[:2]) | x.dot(x) |
lib.bmm(lib.as_strided(x, (1, 2, 2), (1, 1, 1)), lib.as_strided(x, (1, 2, 2), (1, 1, 1))) | x @ x | lib.outer(x, x)
| lib.addmm(*[m] * 3) | F.linear(m, m) | lib.kron(x, x) | lib.vdot(x, x) | lib.einsum('i,i->i', x, x) | x[at] |
x[mask] | x[1:] | x[1] | x.index_select(0, at) | x.gather(0, at) | x.take(at) | x.scatter(0, at, x[:2]) |
x.scatter(0, at, 1) | x.scatter_add(0, at, x[:2]) | x.index_add(0, at, x[:2]) | x.index_copy(0, at, x[:2]) |
x.index_fill(0, at, 1) | x.index_put((at,), x[:2]) | x.index_put((at,), x[:2], accumulate=True) |
x.masked_fill(mask, 1) | x.masked_select(mask) | x.masked_scatter(mask, x) | x.nonzero() | lib.where(mask, x, x) |
lib.where(mask, x, 0) | lib.argwhere(x) | lib.cat([x, x]) | lib.stack([x, x]) | x.split(2) | x.flip(0) | x.roll(1) |
x.repeat(2) | x.repeat_interleave(2) | x.tile(2) | F.pad(x, (1, 1)) | F.pad(x[None], (1, 1), mode='reflect') |
m.tril() | x.diag() | lib.diag_embed(x) | m.diagonal() | m.t().contiguous() |
lib.as_strided(x, (2, 2), (2, 1) if 0 else (1, 1)).t().clone() | x.unfold(0, 2, 1) | x.expand(2, 3) |
x.reshape(3, 1) | lib.meshgrid(x, x, indexing='ij') | lib.hstack([x, x]) | lib.rot90(m) | x.sort() | x.argsort() |
x.topk(2) | x.unique() | x.kthvalue(1) | lib.searchsorted(x, x) | x.bincount() | lib.isin(x, x) | x.histc(2) |
lib.bucketize(x, x) | lib.msort(x) | x.unique_consecutive() | repr(x) | repr(x[0]) | repr(x[:0]) | f'{x[0]}' |
x[0].item() | x.tolist() | int(x[0]) | float(x[0]) | complex(x[0]) | bool(x[0]) | [1, 2, 3, 4][x[0]] | x.numpy() |
np.asarray(x) | saved(lib, x) | copy.deepcopy(x) | repr(lib.finfo(x.dtype)) | repr(lib.iinfo(x.dtype)) | x.type() |
x.element_size() | (x.is_floating_point(), x.is_complex(), x.is_quantized) | x.is_signed() | x[0].is_nonzero() |
lib.from_dlpack(x) | x.nbytes | x.untyped_storage().nbytes() | 3 in x | x.clone().requires_grad_().requires_grad |
x.to('meta').dtype | x.is_contiguous() | F.dropout(x, 0.0) | F.gelu(x) | F.conv1d(x[None, None], x[None, None, :1])
| F.embedding(x, lib.ones(4, 2)) | F.one_hot(x) | F.mse_loss(x, x) | lib.fft.fft(x) | lib.bernoulli(x).shape |
lib.heaviside(x, x) | x.nan_to_num() | lib.polar(x, x) | lib.complex(x, x) | lib.linalg.cross(x, x) |
lib.ldexp(x, x) | F.interpolate(x[None, None], scale_factor=2) | F.max_pool1d(x[None], 2) | lib.arange(4)[x] |
lib.ones(3) * x | lib.result_type(x, 1.5)
"""
WRITTEN = """
x.fill_(2) | x.zero_() | x.fill_(lib.tensor(2)) | x.fill_(1j) | x.fill_(1.5) | x.fill_(-1) | x.__setitem__(1, 2) |
x.__setitem__(slice(None), lib.tensor([1.0, 2, 3])) | x.__setitem__(mask, 1) | x.add_(1) | x.add_(x) | x.mul_(2) |
x.div_(2) | x.copy_(lib.tensor([1.0, 2.0, 3.0])) | x.copy_(lib.tensor([1, 2, 3])) | x.clamp_(0, 2) |
x.uniform_().zero_() | x.normal_().zero_() | x.random_(0, 1) | x.random_().zero_() | x.resize_(2) |
x.bernoulli_(1.0) | x.neg_() | x.__iadd__(lib.ones(3)) | x.set_(x.clone()) | x.exponential_().zero_()
"""
EXCEPTIONS = {
    "complex32 lib.fmax(x, x)": "of all complex dtypes, another subclass of RuntimeError",
    "complex32 x.[sv]*": "std and var are rounded once",
    "complex32 x.expand*": "numpy has no complex32, and gets a copy that is not strided so",
    "complex32 lib.meshgrid*": "the same",
    "complex32 [fi]*(x[[]0])": "Python's words",
    "* lib.fft.fft(x)": "no transform has such a dtype",
    "uint16 lib.tensor([[]1j], dtype=d)": "Python's words",
    "* x.__setitem__(mask, 1)": "a number is written by index_put_",
    "float8* x.isfinite()": "is written in operators that know float8",
    "float8* x.std()": "the reason is another one",
    "float8* x.var()": "the same",
    "*float4* x*": "which of two kernels refuses",
    "bits8 lib.ones*": "is written as bytes",
    "bits8 lib.from_dlpack*": "bits are handed on as bytes",
    "bits8 x.isfinite*": "bits are no numbers, and none is infinite",
    **{
        f"bits8 {program}": "which of several checks refuses"
        for program in "lib.rand* lib.scalar_tensor* ~x x.logsumexp* lib.where*0) repr* [[]* lib.ldexp* "
        "F.interpolate* x.fill_(lib* x.__setitem__(1* x.random_* x.set_*".split(" ")
        if program
    },
}


def shown(value):
    """The part of a result that is compared."""
    if isinstance(value, torch.Tensor | rd.Tensor):
        try:
            inner = repr(value.tolist())
        except Exception:
            inner = "untold"
        return f"{value.dtype} {tuple(value.shape)} {inner}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(shown, value)) + "]"
    return f"{value.dtype} {value.tolist()}" if isinstance(value, np.ndarray) else repr(value)


def made(lib, name):
    numbers = [1 + 2j, 0, -3.5] if name == "complex32" else [3, 0, 2]
    try:
        return lib.tensor(numbers, dtype=getattr(lib, name))
    except Exception:
        return lib.tensor([3, 0, 2, 7] * 4, dtype=lib.uint8).view(getattr(lib, name))[:3]


def saved(lib, x):
    file = io.BytesIO()
    lib.save(x, file)
    file.seek(0)
    return lib.load(file)


def answer(lib, program, *dtypes, after=False):
    try:
        x = made(lib, dtypes[0])
        x, y = x.clone() if after else x, made(lib, dtypes[-1])
        given = {"lib": lib, "F": lib.nn.functional, "d": getattr(lib, dtypes[0]), "x": x, "y": y, "saved": saved}
        given |= {"m": x.as_strided((2, 2), (1, 1)), "at": lib.tensor([2, 0]), "mask": lib.tensor([True, False, True])}
        result = eval(program, {"np": np, "copy": copy} | given)
        return shown(x if after else result)
    except Exception as error:
        kind = next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")
        text = str(error).splitlines()[0] if str(error) else ""
        return f"{kind.__name__}: {'an internal assertion' if 'INTERNAL ASSERT' in text else text[:80]}"


def differs(program, *dtypes, after=False):
    """Prints what the two libraries answer, where it is not the same. Of internal assertions, the class counts."""
    theirs, ours = (answer(lib, program, *dtypes, after=after) for lib in (torch, rd))
    if theirs == ours or ("an internal assertion" in theirs and ours.partition(":")[0].endswith("Error")):
        return False
    if any(fnmatch(f"{' '.join(dtypes)} {program}", pattern) for pattern in EXCEPTIONS):
        return False
    print(f"{program}  of {' and '.join(dtypes)}", theirs, ours, sep="\n    ")
    return True


def main():
    chosen = sys.argv[1:] or CHOSEN
    found = compared = 0
    for name in chosen:
        for programs, after in ((MADE, False), (READ, False), (WRITTEN, True)):
            for program in programs.replace("\n", " ").split(" | "):
                compared += 1
                found += differs(program.strip(), name, after=after)
    pairs = [(a, b) for a, b in itertools.product(NAMES, NAMES) if {a, b} & set(RARE)]
    for a, b in random.Random(0).sample(pairs, 300):
        for program in ("x + y", "x == y", "x.clone().copy_(y)"):
            compared += 1
            found += differs(program, a, b)
    print(f"{compared} answers compared, {found} differ")
    sys.exit(found > 0)


main()
