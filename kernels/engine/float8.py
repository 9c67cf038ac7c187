"""Floats of eight bits: a sign, an exponent, and 3 or 2 bits behind the point.

    float8_e4m3fn      bias 7    no infinities: what is larger than 448 becomes 448; NaN is 0x7f
    float8_e5m2        bias 15   as float16, shorter: infinities, and NaN
    float8_e4m3fnuz    bias 8    one zero and one NaN, 0x80, which is also what is too large becomes
    float8_e5m2fnuz    bias 16   the same
    float8_e8m0fnu     an exponent alone, bias 127: powers of two, without sign and zero; NaN is 0xff

Sources: Micikevicius et al., FP8 Formats for Deep Learning (2022), for the first two; Noune et al., 8-bit Numerical
Formats for Deep Neural Networks (2022), for the next two; OCP Microscaling Formats (2023), for the last. PyTorch's rule
for what is too large.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .primitives import bits_of_float, float_of_bits
from .program import integral

int32, uint8, uint32, float32 = np.int32, np.uint8, np.uint32, np.float32


class Float8(NamedTuple):
    """A format. most, beyond, nan: the codes of the largest number, of what is larger, and of NaN."""

    behind: int  # bits behind the point
    bias: int
    most: int
    beyond: int
    nan: int

    @property
    def infinity(self) -> int:
        """The code of infinity, or one that there is not."""
        return self.beyond if self.beyond == self.most + 1 else 0x100


FORMATS = {
    "float8_e4m3fn": Float8(3, 7, 0x7E, 0x7E, 0x7F),
    "float8_e5m2": Float8(2, 15, 0x7B, 0x7C, 0x7F),
    "float8_e4m3fnuz": Float8(3, 8, 0x7F, 0x80, 0x80),
    "float8_e5m2fnuz": Float8(2, 16, 0x7F, 0x80, 0x80),
}


def storing(form: Float8) -> Callable:
    """Returns the function from a number to the code nearest to it, ties to even."""
    drop = 23 - form.behind
    least = (128 - form.bias) << 23  # the bits of the smallest number with a full exponent
    below = float32(2.0 ** (form.bias - 1 + form.behind))  # by which smaller ones become whole
    shift = (127 - form.bias) << form.behind
    most, beyond, nan, signed = form.most, form.beyond, form.nan, form.nan != 0x80

    @integral
    def store_float8(x):
        bits = int32(bits_of_float(float32(x)))
        size = bits & int32(0x7FFFFFFF)
        if size > int32(0x7F800000):
            code = int32(nan)
        elif size < int32(least):
            scaled = float_of_bits(size) * below
            whole = int32(math.floor(scaled))
            left = scaled - float32(whole)
            code = whole + int32(left > float32(0.5) or (left == float32(0.5) and whole & int32(1) == int32(1)))
        else:
            half = int32((1 << (drop - 1)) - 1) + ((size >> int32(drop)) & int32(1))
            code = ((size + half) >> int32(drop)) - int32(shift) if size < int32(0x7F000000) else int32(0xFF)
            if code > int32(most):
                code = int32(beyond)
        if bits < int32(0) and (signed or (code != int32(0) and code != int32(0x80))):
            code |= int32(0x80)
        return uint8(code)

    return store_float8


def loading(form: Float8) -> Callable:
    """Returns the function from a code to its value, a float32."""
    drop, rebias = 23 - form.behind, 127 - form.bias
    below = float32(2.0 ** -(form.bias - 1 + form.behind))
    infinity, nan, signed = form.infinity, form.nan, form.nan != 0x80

    @integral
    def load_float8(code):
        size = int32(code) & int32(0x7F)
        minus = float32(-1) if int32(code) & int32(0x80) else float32(1)
        if size == int32(infinity):
            return float32(minus * float32(math.inf))
        if (size if signed else int32(code)) == int32(nan) or (signed and size > int32(infinity)):
            return float32(math.nan)
        if size >> int32(23 - drop) == int32(0):
            return float32(minus * float32(size) * below)
        return float32(minus * float_of_bits((size << int32(drop)) + int32(rebias << 23)))

    return load_float8


@integral
def store_exponent(x):
    """The exponent of the power of two nearest to a number, ties to even: up, but from the smallest one."""
    bits = int32(bits_of_float(float32(x))) & int32(0x7FFFFFFF)
    exponent, behind = bits >> int32(23), bits & int32(0x7FFFFF)
    up = behind > int32(0x400000) or (behind == int32(0x400000) and exponent > int32(0))
    return uint8(exponent + int32(up) if exponent < int32(255) else int32(255))


@integral
def load_exponent(code):
    exponent = int32(code)
    if exponent == int32(255):
        return float32(math.nan)
    return float32(float_of_bits(int32(0x400000) if exponent == int32(0) else exponent << int32(23)))


LOAD = {name: loading(form) for name, form in FORMATS.items()} | {"float8_e8m0fnu": load_exponent}
STORE = {name: storing(form) for name, form in FORMATS.items()} | {"float8_e8m0fnu": store_exponent}
