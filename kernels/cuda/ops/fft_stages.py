"""Stages of a Fourier transform in shared memory: each thread takes a few elements, transforms them in registers, and
turns the results by roots of unity.

Note [A stage by Stockham]
Of a line of n elements, let `before` be the product of the radices that were done, r the radix of this stage, and
`after` what remains: n = before r after. The stage reads the elements (b r + q) after + a for q = 0 ... r - 1, which it
transforms over q, multiplies result q by exp(-2 pi i q a / (r after)), and writes it at (b + before q) after + a. After
the last stage the results stand in order: nothing is reversed. Neighbouring threads have neighbouring a.

Radices are 2, 4 and 8, and 3, 5 and 7, whose cosines and sines come from the same table as the other roots. All
transforms are forward. Source: Van Loan, "Computational Frameworks for the Fast Fourier Transform", 1.7.
Read next: fourier.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache as once
from typing import Any

import numpy as np

from redispatch.kernels.engine.primitives import double_of_bits, float_of_bits
from redispatch.kernels.engine.program import integral

from ..compiler import CUDA as cuda
from ..intrinsics import load_1, store_1

POWERS, ODD = (8, 4, 2), (7, 5, 3)  # radices
HALF_ROOT = math.sqrt(0.5)
int32, int64, uint64 = np.int32, np.int64, np.uint64


def swapped(z):
    """Real and imaginary part change places. A transform between two of these is the inverse one, but for 1 / n."""
    return complex(z.imag, z.real)


def turned(z):
    """-i z"""
    return complex(z.imag, -z.real)


def eighth_turned(z):
    """z exp(-pi i / 4)"""
    return complex((z.real + z.imag) * HALF_ROOT, (z.imag - z.real) * HALF_ROOT)


@integral
def shrunk(z, scale):
    """A complex number times a real one."""
    return complex(z.real * scale, z.imag * scale)


@integral
def quotient(n, magic, shift):
    """n // d, by the two numbers that `magic(d)` gives."""
    return int64((uint64(n) * uint64(magic)) >> uint64(shift))


@integral
def padded(i):
    """The place of element i in shared memory: steps of powers of two meet different banks."""
    return i + (i >> 4)


@integral
def number_at(x, at):
    """An element, real or complex."""
    return x[at]


@integral
def pair_at(x, at):
    """A complex element, in one access."""
    return load_1(x, at)[0]


@integral
def put_number(out, at, value):
    """Writes an element."""
    out[at] = value


@integral
def put_pair(out, at, value):
    """Writes a complex element, in one access."""
    store_1(out, at, (value,))


# --- one butterfly: x is transformed in place -------------------------------------------------------------------------


@integral
def two(x, roots):
    x[0], x[1] = x[0] + x[1], x[0] - x[1]


@integral
def four(x, roots):
    a, b, c, d = x[0] + x[2], x[0] - x[2], x[1] + x[3], turned(x[1] - x[3])
    x[0], x[1], x[2], x[3] = a + c, b + d, a - c, b - d


@integral
def eight(x, roots):
    a, b, c, d = x[0] + x[4], x[0] - x[4], x[2] + x[6], turned(x[2] - x[6])
    e0, e1, e2, e3 = a + c, b + d, a - c, b - d
    a, b, c, d = x[1] + x[5], x[1] - x[5], x[3] + x[7], turned(x[3] - x[7])
    o0, o1, o2, o3 = a + c, eighth_turned(b + d), turned(a - c), turned(eighth_turned(b - d))
    x[0], x[1], x[2], x[3] = e0 + o0, e1 + o1, e2 + o2, e3 + o3
    x[4], x[5], x[6], x[7] = e0 - o0, e1 - o1, e2 - o2, e3 - o3


@once
def odd(radix: int, compute: Any) -> Callable:
    """The butterfly of an odd prime: elements j and -j have the same cosines and opposite sines."""
    half = radix // 2
    real = compute(0).real.dtype.type

    @integral
    def butterfly(x, roots):
        even = cuda.local.array(half, compute)
        uneven = cuda.local.array(half, compute)
        first = x[0]
        for j in range(half):
            even[j] = x[j + 1] + x[radix - 1 - j]
            uneven[j] = x[j + 1] - x[radix - 1 - j]
            x[0] += even[j]
        for k in range(half):
            same, other = first, compute(complex(real(0), real(0)))
            for j in range(half):
                place = (j + 1) * (k + 1) % radix
                if place > half:
                    root = roots[radix - place]
                    sine = -root.imag
                else:
                    root = roots[place]
                    sine = root.imag
                same += shrunk(even[j], root.real)
                other += shrunk(uneven[j], sine)
            other = complex(-other.imag, other.real)
            x[k + 1] = same + other
            x[radix - 1 - k] = same - other

    return butterfly


@once
def stage(radix: int, compute: Any) -> Callable:
    """Makes the function that does one stage of all lines of a block: see Note [A stage by Stockham]."""
    whole: dict[int, Callable] = {2: two, 4: four, 8: eight}
    butterfly = whole[radix] if radix in whole else odd(radix, compute)
    kept = 1 if radix in whole else radix // 2 + 1

    @integral
    def one_stage(room, source, target, twiddles, lines, size, before, after, magic, shift, count, magic_c, shift_c):
        x = cuda.local.array(radix, compute)  # registers: all loops over it are written out by the compiler
        roots = cuda.local.array(kept, compute)
        for k in range(1, kept):
            roots[k] = pair_at(twiddles, k * count)
        e = int64(cuda.threadIdx.x)
        while e < lines * count:
            line = quotient(e, magic_c, shift_c)
            j = e - line * count
            b = quotient(j, magic, shift)
            a = j - b * after
            start = line * size + b * radix * after + a
            for q in range(radix):
                x[q] = pair_at(room, source + padded(start + q * after))
            butterfly(x, roots)
            start = line * size + j
            put_pair(room, target + padded(start), x[0])
            for q in range(1, radix):
                put_pair(room, target + padded(start + q * count), x[q] * pair_at(twiddles, q * a * before))
            e += int64(cuda.blockDim.x)

    return one_stage


def scale_of(compute: str) -> Callable:
    """Returns the function that makes the real factor of an int64 argument."""
    return single_factor if compute == "complex64" else double_of_bits


def single_factor(bits):
    return float_of_bits(int32(bits))
