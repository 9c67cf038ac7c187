"""Random numbers as PyTorch's CPU generator gives them: MT19937, word for word.

A Mersenne twister is a sequence, so a number depends on all that were drawn before it, and a fill takes its words in
the order of memory, on one thread. numpy's bit generator makes the words; what becomes of them is written here. Normal
numbers come in two ways: fewer than 16, or those of a tensor with gaps, one after another with the second of each pair
kept for the next call; others 16 at a time, where the last 16 are drawn once more if the length is no multiple.

Source: Matsumoto and Nishimura, "Mersenne Twister", 1998. Read next: `random.py`, the numbers that go by position.
"""

import math
import struct
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from redispatch.dispatch.tensor.geometry import contiguous_strides, is_contiguous, numel
from redispatch.dispatch.tensor.operand import DTYPES, Operand

from ..engine.template import Template
from .copy import copy

uint64 = np.uint64
WIDE_FROM = 1 << 28  # ranges from here on take two words a number, so that none is noticeably too frequent
# seed, words left, seeded, next word, the words; the kept normal number and whether there is one, in both widths
LAYOUT = struct.Struct("<QiiQ624Q3di4xf?3x")


def write(out: Operand, values: np.ndarray) -> None:
    """Stores numbers in the order of memory: the dimension with the longest steps first."""
    order = sorted(range(len(out.shape)), key=lambda d: -out.strides[d])
    shape = tuple(out.shape[d] for d in order)
    turned = out._replace(shape=shape, strides=tuple(out.strides[d] for d in order))
    copy(turned, Operand(values, values.dtype.name, shape, contiguous_strides(shape)))


def is_double(out: Operand) -> bool:
    return DTYPES[out.dtype].compute == "float64"


class Twister:
    """A sequence of random words: its seed, where it is, and the normal number that was left over."""

    SIZE = LAYOUT.size

    def __init__(self, seed: int) -> None:
        self.lock = threading.RLock()
        self.restart(seed)

    def restart(self, seed: int) -> None:
        """Begins the sequence of a seed; of its bits the lower 32 choose it."""
        from numpy.random import MT19937, Generator  # `import redispatch` does without

        words = MT19937(0)
        words._legacy_seeding(seed & 0xFFFFFFFF)
        self.seed, self._bits, self._source = seed, words, Generator(words)
        self._kept: float | None = None
        self._fresh = True

    def pack(self) -> bytes:
        """The state as PyTorch lays it out, 5,056 bytes."""
        with self.lock:
            state: Any = self._bits.state["state"]
            at, kept = state["pos"], self._kept
            return LAYOUT.pack(
                self.seed, 625 - at, 1, 0 if self._fresh else at, *state["key"].tolist(), 0.0, kept or 0.0, 0.0,
                kept is not None, 0.0, False,
            )  # fmt: skip

    def unpack(self, state: bytes) -> None:
        """Goes on from a state that `pack` or PyTorch wrote. RuntimeError for bytes that are none."""
        seed, left, seeded, at, *rest = LAYOUT.unpack(state)
        words, (_, kept, _, is_kept, _, _) = rest[:624], rest[624:]
        if not seeded or not 1 <= left <= 624 or at > 624 or max(words) >> 32:
            raise RuntimeError("Invalid mt19937 state")
        with self.lock:
            key = np.array(words, np.uint32)
            self._bits.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": 625 - left}}
            self.seed, self._fresh, self._kept = seed, at == 0, kept if is_kept else None

    def words(self, count: int) -> np.ndarray:
        """The next words, as uint32."""
        self._fresh &= not count
        return self._source.integers(0, 1 << 32, size=count, dtype=np.uint32)

    def pairs(self, count: int) -> np.ndarray:
        """The next words, two in a uint64: the first is the high one."""
        self._fresh &= not count
        return self._source.integers(0, 1 << 64, size=count, dtype=np.uint64)

    def singles(self, count: int, bits: int = 24) -> np.ndarray:
        """float32 numbers of [0, 1), of a word each."""
        return (self.words(count) & np.uint32((1 << bits) - 1)).astype(np.float32) * np.float32(2.0**-bits)

    def doubles(self, count: int) -> np.ndarray:
        """float64 numbers of [0, 1), of two words each."""
        return (self.pairs(count) & np.uint64((1 << 53) - 1)).astype(np.float64) * 2.0**-53

    def units(self, out: Operand, count: int) -> np.ndarray:
        """Numbers of [0, 1) in the precision of `out`."""
        return self.doubles(count) if is_double(out) else self.singles(count)

    # Each fills `out` as the function of this name in random.py does.

    def uniform(self, out: Operand, low: float = 0.0, high: float = 1.0) -> None:
        with self.lock:
            units = self.units(out, numel(out.shape))
        kind = units.dtype.type
        write(out, units * (kind(high) - kind(low)) + kind(low))

    def normal(self, out: Operand, mean: float = 0.0, std: float = 1.0) -> None:
        count = numel(out.shape)
        with self.lock:
            if count < 16 or not is_contiguous(out.shape, out.strides):
                write(out, self.one_by_one(count) * std + mean)
                return
            rest = 16 if count % 16 else 0
            units = self.units(out, count + rest)
        whole = count - count % 16
        numbers = np.empty(count, units.dtype)
        numbers[:whole] = by_sixteens(units[:whole], mean, std)
        if rest:
            numbers[-16:] = by_sixteens(units[count:], mean, std)
        write(out, numbers)

    def one_by_one(self, count: int) -> np.ndarray:
        """Standard normal numbers, of which the second of a pair is kept for the next call."""
        head = [] if self._kept is None or not count else [self._kept]
        fresh = count - len(head)
        drawn = self.doubles(fresh + fresh % 2)
        PAIRS()(0, len(drawn) // 2, drawn)
        numbers = np.concatenate([head, drawn])
        if count:
            self._kept = float(numbers[-1]) if fresh % 2 else None
        return numbers[:count]

    def exponential(self, out: Operand, rate: float = 1.0) -> None:
        with self.lock:
            units = self.doubles(numel(out.shape))
        write(out, each(exponential_number, units, -1.0 / rate))

    def cauchy(self, out: Operand, median: float, sigma: float) -> None:
        with self.lock:
            units = self.doubles(numel(out.shape))
        write(out, each(cauchy_number, units, median, sigma))

    def log_normal(self, out: Operand, mean: float, std: float) -> None:
        with self.lock:
            numbers = self.one_by_one(numel(out.shape))
        write(out, each(log_normal_number, numbers, mean, std))

    def geometric(self, out: Operand, log_of_rest: float) -> None:
        with self.lock:
            units = self.doubles(numel(out.shape))
        write(out, np.ceil(each(log_number, units) / log_of_rest))

    def bernoulli(self, out: Operand, p: float) -> None:
        with self.lock:
            units = self.doubles(numel(out.shape))
        write(out, (units < p).astype(np.uint8))

    def randint(self, out: Operand, low: int, high: int, whole: bool = False) -> None:
        """Draws integers. `whole`: all that the dtype holds from 0 on, of one word but where it has 64 bits."""
        count, size = (
            numel(out.shape),
            high - low + (whole and out.dtype == "int64"),
        )  # as a range it cannot end at 2^63
        with self.lock:
            if size >= WIDE_FROM and not (whole and out.dtype not in ("int64", "float64", "uint64")):
                words = self.pairs(count)
            else:
                words = self.words(count)
        if size < 1 << 8 * words.itemsize:
            words %= words.dtype.type(size)
        words = words.astype(np.uint64)
        write(out, (words + np.uint64(low & (1 << 64) - 1)).view(np.int64))

    def permutation(self, n: int) -> np.ndarray:
        with self.lock:
            keys = self.words(max(n - 1, 0)).astype(np.int64)
        order = np.arange(n)
        SHUFFLE()(0, len(keys), order, keys, n)
        return order


# --- from uniform numbers to others ----------------------------------------------------------------------------------

TURN = 2 * math.pi


def pairs_loop(lo, hi, x):
    for i in range(lo, hi):
        first = uint64(2 * i)
        radius, turn = math.sqrt(-2.0 * math.log1p(-x[first + uint64(1)])), TURN * x[first]
        x[first], x[first + uint64(1)] = radius * math.cos(turn), radius * math.sin(turn)


def sixteens_loop(lo, hi, x, mean, std):
    for i in range(lo, hi):
        for j in range(8):
            first = uint64(16 * i + j)
            radius, turn = math.sqrt(-2.0 * math.log(1.0 - x[first])), TURN * x[first + uint64(8)]
            x[first] = radius * math.cos(turn) * std + mean
            x[first + uint64(8)] = radius * math.sin(turn) * std + mean


def each_loop(lo, hi, x, a, b):
    for i in range(lo, hi):
        x[uint64(i)] = number(x[uint64(i)], a, b)


def number(x, a, b):  # stands for one of these
    return x


def exponential_number(x, minus_mean, unused):
    return minus_mean * math.log1p(-x)


def cauchy_number(x, median, sigma):
    return median + sigma * math.tan(math.pi * (x - 0.5))


def log_normal_number(x, mean, std):
    return math.exp(x * std + mean)


def log_number(x, unused, unused_too):
    return math.log(x)


def shuffle_loop(lo, hi, out, keys, n):
    for i in range(lo, hi):
        j = i + keys[uint64(i)] % (n - i)
        out[uint64(i)], out[uint64(j)] = out[uint64(j)], out[uint64(i)]


# The C library's functions, as PyTorch calls: those of vecmath differ in the last bit.
PAIRS = Template(pairs_loop, "float64[] x")
SIXTEENS = Template(sixteens_loop, "float64[] x", "float64 mean std")
EACH = Template(each_loop, "float64[] x", "float64 a b")
SHUFFLE = Template(shuffle_loop, "int64[] out keys")


def each(number: Callable, x: np.ndarray, a: float = 0.0, b: float = 0.0) -> np.ndarray:
    """Replaces each element by `number` of it."""
    EACH(name=f"{number.__name__}_loop", number=number)(0, len(x), x, float(a), float(b))
    return x


def by_sixteens(units: np.ndarray, mean: float, std: float) -> np.ndarray:
    """Normal numbers of Box and Muller: of each 16 the first eight give the distances, the others the directions."""
    if units.dtype == np.float64:
        numbers = units.copy()
        SIXTEENS()(0, len(units) // 16, numbers, float(mean), float(std))
        return numbers
    u = units.reshape(-1, 2, 8)
    radius = np.sqrt(single(-2) * log(single(1) - u[:, 0]))
    across, along = sine_and_cosine(single(TURN) * u[:, 1])
    both = np.stack([radius * along, radius * across], 1)
    return fused(both, single(std), single(mean)).reshape(-1)


# In float32 PyTorch computes by the polynomials of Cephes, with products and sums that round once; so these do.

single = np.float32
LOGARITHM = (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
             2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)  # fmt: skip
COSINE = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
SINE = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
EIGHTH = (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)  # of a turn, negative, in three parts


def fused(a: Any, b: Any, c: Any) -> Any:
    """Returns a * b + c, rounded to float32 once."""
    return (np.float64(a) * np.float64(b) + np.float64(c)).astype(single)


def polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    y = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        y = fused(y, x, single(coefficient))
    return y


def log(x: np.ndarray) -> Any:
    bits = x.view(np.int32)
    exponent, x = ((bits >> 23) - 126).astype(single), ((bits & 0x7FFFFF) | 0x3F000000).view(single)
    low = x < single(0.5**0.5)
    x, exponent = x - single(1) + np.where(low, x, single(0)), exponent - low.astype(single)
    square = x * x
    y = fused(polynomial(x, LOGARITHM) * x, square, exponent * single(-2.12194440e-4))
    return fused(exponent, single(0.693359375), x + fused(-square, single(0.5), y))


def sine_and_cosine(x: np.ndarray) -> tuple[Any, Any]:
    eighths = ((x * single(4 / math.pi)).astype(np.int32) + 1) & ~1
    for part in EIGHTH:
        x = fused(eighths.astype(single), single(part), x)
    square = x * x
    along = fused(polynomial(square, COSINE) * square, square, -(square * single(0.5))) + single(1)
    across = fused(polynomial(square, SINE) * square, x, x)
    straight, one = (eighths & 2) == 0, single(1)
    sine = np.where(straight, across, along) * np.where(eighths & 4, -one, one)
    return sine, np.where(straight, along, across) * np.where((eighths - 2) & 4, one, -one)
