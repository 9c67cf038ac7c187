"""Numbers that take an unknown count of words: Poisson's, binomial and gamma ones, as PyTorch draws them.

Each is a function of the twister's state and two parameters. Where a number is rejected, the next words are drawn, so
that one test that goes the other way changes all numbers after it.

Sources: Hoermann, "The transformed rejection method for generating Poisson random variables", 1993, and "The generation
of binomial random variates", 1993; Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
"""

import math

import numpy as np

from ..maths.vecmath import lgamma
from .mersenne import draw_words
from .twisted_numbers import next_normal, pair_of, unit_float64

float32, float64 = np.float32, np.float64


def next_unit(state, scratch):
    draw_words(state, scratch, 2)
    return unit_float64(pair_of(scratch, 0))


def poisson_number(state, scratch, rate, unused):
    """Below 10 the count of uniform numbers whose product is above exp(-rate)."""
    if not rate > 0:
        return rate * 0
    count, drawing = -1.0, True
    if rate < 10:
        product, least = 1.0, math.exp(-rate)
        while drawing:
            product *= next_unit(state, scratch)
            count += 1
            drawing = product > least
        return count
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse, sure = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)
    while drawing:
        draw_words(state, scratch, 4)
        u, v = unit_float64(pair_of(scratch, 0)) - 0.5, unit_float64(pair_of(scratch, 2))
        near = 0.5 - abs(u)
        count = np.floor((2 * a / near + b) * u + rate + 0.43)
        if near >= 0.07 and v <= sure:
            drawing = False
        elif count >= 0 and (near >= 0.013 or v <= near):
            height = math.log(v) + math.log(inverse) - math.log(a / (near * near) + b)
            drawing = height > count * math.log(rate) - rate - lgamma(count + 1)
    return count


# log k! less Stirling's formula for it, of small k
TAILS = tuple(
    math.lgamma(k + 1) - (math.log(2 * math.pi) / 2 + (k + 0.5) * math.log(k + 1) - (k + 1)) for k in range(10)
)


def tail(k):
    if k <= 9:
        return TAILS[int(k)]
    square = (k + 1) * (k + 1)
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)


def binomial_number(state, scratch, trials, p):
    if trials != trials or p != p:
        return trials + p
    if not (trials > 0 and p > 0):
        return 0.0
    if p >= 1:
        return trials
    least = p if p <= 0.5 else 1 - p
    found = rejected(state, scratch, trials, least) if trials * least >= 10 else counted(state, scratch, trials, least)
    return found if p <= 0.5 else trials - found


def counted(state, scratch, trials, p):
    """The successes one after another: so many trials lie between two of them."""
    at, found = 0.0, -1.0
    while at <= trials:
        at += np.ceil(math.log(next_unit(state, scratch)) / math.log1p(-p))
        found += 1
    return found


def rejected(state, scratch, n, p):
    spread = math.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    odds, mode = p / (1 - p), np.floor((n + 1) * p)
    k, drawing = 0.0, True
    while drawing:
        draw_words(state, scratch, 4)
        u, v = unit_float64(pair_of(scratch, 0)) - 0.5, unit_float64(pair_of(scratch, 2))
        near = 0.5 - abs(u)
        k = np.floor((2 * a / near + b) * u + n * p + 0.5)
        if near >= 0.07 and v <= 0.92 - 4.2 / b:
            drawing = False
        elif k >= 0 and k <= n:
            height = math.log(v * (2.83 + 5.1 / b) * spread / (a / (near * near) + b))
            drawing = height > (
                (mode + 0.5) * math.log((mode + 1) / (odds * (n - mode + 1)))
                + (n + 1) * math.log((n - mode + 1) / (n - k + 1))
                + (k + 0.5) * math.log(odds * (n - k + 1) / (k + 1))
                + (tail(mode) + tail(n - mode) - tail(k) - tail(n - k))
            )
    return k


THIRD = float(np.float32(1 / 3))


def narrowed(x, single):
    return float64(float32(x)) if single != 0 else x


def gamma_number(state, scratch, a, single):
    """Below 1 the number of a + 1, times u^(1 / a). Below 0 there is none.

    single: whether what is made of `a` alone is rounded to float32.
    """
    if not (a > 0 and a < math.inf):
        return a if a == 0 or a > 0 else math.nan
    scale, shape = 1.0, a
    if a < 1:
        scale = (1 - next_unit(state, scratch)) ** narrowed(1 / a, single)
        shape = narrowed(a + 1, single)
    d = narrowed(shape - THIRD, single)
    c = 1 / math.sqrt(9 * d)
    v, drawing = 0.0, True
    while drawing:
        x = next_normal(state, scratch)
        y = 1 + c * x
        if y > 0:
            v, square, u = y * y * y, x * x, 1 - next_unit(state, scratch)
            if u < 1 - 0.0331 * square * square:
                drawing = False
            else:
                drawing = math.log(u) >= 0.5 * square + d * (1 - v + math.log(v))
    return scale * d * v
