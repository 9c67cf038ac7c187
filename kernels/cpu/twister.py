"""Random numbers as PyTorch's CPU generator gives them: fills that draw from a Mersenne twister.

A twister is a sequence, so a number depends on all that were drawn before it, and a fill takes its words in the order
of memory, on one thread. Normal numbers come in two ways: fewer than 16, or those of a tensor with gaps, one after
another with the second of each pair kept for the next call; others 16 at a time, where the last 16 are drawn once more
if the length is no multiple.

Read next: `random.py`, the numbers that go by position.
"""

import threading
from collections.abc import Callable
from functools import cache
from inspect import isbuiltin
from typing import Any

import numpy as np

from redispatch.dispatch.tensor.geometry import contiguous_strides, is_contiguous, numel
from redispatch.dispatch.tensor.operand import DTYPES, Operand, memory

from ..engine.template import Template, store_out
from . import mersenne, sampling
from . import twisted_numbers as numbers
from .copy import copy
from .mersenne import draw_words, is_taken
from .twisted_numbers import next_normal

int64, uint64 = np.int64, np.uint64
CHUNK = 512  # as many numbers are drawn at a time: their words lie in the nearest cache
WIDE_FROM = 1 << 28  # ranges from here on take two words a number, so that none is noticeably too frequent
HALF_WORD = np.uint64(32)

# --- loops -----------------------------------------------------------------------------------------------------------

# Note [Small draws take no lock]
# To take a lock and give it back costs 0.2 us, as much as to draw four numbers. A loop over few elements keeps the GIL
# from its first step to its last; so that it is alone with the state, as long as nobody who has given up the GIL holds
# the lock. It asks that first, of a place in the state, and does nothing but return True if so: its caller then waits
# for the lock. Who holds it says how often, and is let through.

number: Any = numbers.unit_float64  # stands for one of twisted_numbers.py, or of sampling.py
unit, point, by = numbers.unit_float64, numbers.point_float64, 1  # ... and how many words it takes
wasted = 1  # or 0, where no words are drawn that nobody uses


def fill_loop(lo, hi, held, state, scratch, values, out, out_at, a, b):
    """Fills with a number for each element."""
    if is_taken(state, held):
        return True
    while lo < hi:
        some = min(hi - lo, CHUNK)
        draw_words(state, scratch, some * by)
        for k in range(some):
            if by == 1:
                word = uint64(scratch[uint64(k)])
            else:
                word = (uint64(scratch[uint64(2 * k)]) << HALF_WORD) | uint64(scratch[uint64(2 * k + 1)])
            out[uint64(out_at + lo + k)] = store_out(number(word, a, b))
        lo += some
    return False


def one_by_one_loop(lo, hi, held, state, scratch, values, out, out_at, a, b):
    """Fills with normal numbers, of which the second of a pair is kept for the next, as `number` makes them."""
    if is_taken(state, held):
        return True
    for i in range(lo, hi):
        out[uint64(out_at + i)] = store_out(number(next_normal(state, scratch), a, b))
    return False


def sixteens_loop(lo, hi, held, state, scratch, values, out, out_at, mean, std):
    """Fills with normal numbers: of each 16 the first eight give the distances, the others the directions."""
    if is_taken(state, held):
        return True
    whole, skip = hi - hi % 16, 0
    while lo < hi:
        some = min(whole - lo, CHUNK)
        if lo == whole:  # the last 16 once more, after as many words as are left over
            lo, some, skip = hi - 16, 16, hi % 16 * wasted
        draw_words(state, scratch, (skip + some) * by)
        for k in range(some):
            if by == 1:
                word = uint64(scratch[uint64(skip + k)])
            else:
                at = uint64(2 * (skip + k))
                word = (uint64(scratch[at]) << HALF_WORD) | uint64(scratch[at + uint64(1)])
            values[uint64(k)] = unit(word)
        for k in range(0, some, 16):  # within one array: LLVM vectorises no loop of eight turns that has to ask first
            for j in range(k, k + 8):
                x, y = point(values[uint64(j)], values[uint64(j + 8)], mean, std)
                values[uint64(j)], values[uint64(j + 8)] = x, y
        for k in range(some):
            out[uint64(out_at + lo + k)] = store_out(values[uint64(k)])
        lo += some
    return False


def sampled_loop(lo, hi, held, state, scratch, values, out, out_at, x, y):
    """Fills with a number for each pair of parameters."""
    if is_taken(state, held):
        return True
    for i in range(lo, hi):
        out[uint64(out_at + i)] = store_out(number(state, scratch, x[uint64(i)], y[uint64(i)]))
    return False


def shuffle_loop(lo, hi, held, state, scratch, values, out, out_at, a, b):
    """The numbers from `lo` on, shuffled (Fisher and Yates): each place changes with one of those from it on."""
    if is_taken(state, held):
        return True
    for i in range(lo, hi):
        out[uint64(out_at + i)] = i
    i = lo
    while i < hi - 1:
        some = min(hi - 1 - i, CHUNK)
        draw_words(state, scratch, some)
        for k in range(some):
            at, j = out_at + i + k, out_at + i + k + int64(uint64(scratch[uint64(k)]) % uint64(hi - i - k))
            out[uint64(at)], out[uint64(j)] = out[uint64(j)], out[uint64(at)]
        i += some
    return False


TWISTER = "uint64[] state", "uint32[] scratch", "real[] values"
FEW = 1024  # numbers, which take 20 us, or 0.5 ms of those that reject some
FILL = Template(fill_loop, *TWISTER, "out[] out", "real a b", nogil=FEW)
ONE_BY_ONE = Template(one_by_one_loop, *TWISTER, "out[] out", "real a b", nogil=FEW)
SIXTEENS = Template(sixteens_loop, *TWISTER, "out[] out", "real mean std", nogil=FEW)
SAMPLED = Template(sampled_loop, *TWISTER, "out[] out", "float64[] x y", nogil=FEW)
SHUFFLE = Template(shuffle_loop, *TWISTER, "int64[] out", nogil=FEW)


@cache  # by words alone: a template's own memory asks for the target, and takes a microsecond
def entry_of(template: Template, number: Callable, out: str, real: str = "float64", by: int = 2) -> Any:
    """The loop of a template that makes `number` of each `by` words, computed in `real`."""
    return template(name=f"{number.__name__}_loop", real=real, out=out, number=number, by=by)


@cache
def sixteens_of(out: str) -> Any:
    """The loop that draws 16 normal numbers at a time, in the precision of a dtype."""
    if DTYPES[out].compute == "float64":
        given: Any = {"real": "float64", "unit": numbers.unit_float64, "point": numbers.point_float64, "by": 2}
    else:
        given = {"real": "float32", "unit": numbers.unit_float32, "point": numbers.point_float32, "by": 1}
    return SIXTEENS(**given, out=out, wasted=int(out not in ("float16", "bfloat16")))


# --- the generator ---------------------------------------------------------------------------------------------------


class Lock:
    """A region in which nobody else draws from a twister; gives how often this thread is in one, as the state tells."""

    __slots__ = ("lock", "state")

    def __init__(self, state: memoryview) -> None:
        self.lock, self.state = threading.RLock(), state

    def __enter__(self) -> int:
        self.lock.acquire()
        held: int = self.state[mersenne.HELD] + 1
        self.state[mersenne.HELD] = held
        return held

    def __exit__(self, *error: object) -> None:
        self.state[mersenne.HELD] -= 1
        self.lock.release()


class Twister:
    """A sequence of random words: what a fill takes them from."""

    SIZE = 8 * mersenne.SIZE

    def __init__(self, seed: int) -> None:
        self.state = np.zeros(mersenne.SIZE + 1, np.uint64)
        self.items = self.state.data  # the same, whose numbers Python reads in a quarter of the time
        self.lock = Lock(self.items)
        self.scratch, self.values = np.empty(2 * CHUNK, np.uint32), np.empty(CHUNK)  # words and numbers under way
        self.packed = self.state[: mersenne.SIZE].view(np.uint8).data
        self.upper = self.state.view(np.uint32)[mersenne.UPPER_HALVES]
        self.restart(seed)

    @property
    def seed(self) -> int:
        return int(self.items[mersenne.SEED])

    def restart(self, seed: int) -> None:
        """Begins the sequence of a seed; of its bits the lower 32 choose it."""
        mersenne.restart(self.items, seed)

    def pack(self) -> bytes:
        """The state as PyTorch lays it out, 5,056 bytes."""
        packed = np.empty(self.SIZE, np.uint8)
        self.pack_into(packed)
        return packed.tobytes()

    def pack_into(self, packed: np.ndarray) -> None:
        """Writes the state, as `pack` gives it, into an array of bytes."""
        with self.lock.lock:  # a copy of memoryviews keeps the GIL: Note [Small draws take no lock]
            if not mersenne.has_words(self.items):
                with self.lock:
                    mersenne.DRAW_WORDS()(0, 0, self.state, self.scratch)
            packed.data[:] = self.packed

    def unpack(self, state: Any) -> None:
        """Goes on from bytes that `pack` or PyTorch wrote. RuntimeError for what is no state."""
        found = np.frombuffer(state, np.uint64)
        mersenne.check(found)
        with self.lock:
            self.state[: mersenne.SIZE] = found
            self.upper[:] = 0

    def word(self) -> int:
        """The next 64 bits."""
        with self.lock:
            mersenne.DRAW_WORDS()(0, 2, self.state, self.scratch)
            return int(self.scratch[0]) << 32 | int(self.scratch[1])

    def fill(self, name: str, out: Operand, *given: Any) -> None:
        """Fills `out` once by the fill of this name; what stands here does it again."""
        FILLS[name](out, *given)(self, out.array, out.offset)

    def permutation(self, n: int) -> np.ndarray:
        order = np.empty(n, np.int64)
        self.fill("permutation", Operand(order, "int64", (n,), (1,)))
        return order


# --- fills: each prepares what the function of its name in random.py does, for memory laid out as `out` is ------------

Fill = Callable[[Twister, Any, int], None]  # takes the flat array, and where in it the first element is


def prepared(entry: Any, out: Operand, a: Any, b: Any) -> Fill:
    """A loop that fills in the order of memory, with its last two arguments."""
    if is_contiguous(out.shape, out.strides):
        return in_sequence(entry, numel(out.shape), a, b)
    dense = in_order_of_memory(out)
    count, strides = numel(dense.shape), contiguous_strides(dense.shape)
    fill = in_sequence(entry, count, a, b)
    if dense.strides == strides:
        return fill

    def fill_apart(twister: Twister, array: Any, at: int) -> None:
        filled = Operand(memory(count, DTYPES[out.dtype].storage), out.dtype, dense.shape, strides)
        fill(twister, filled.array, 0)
        copy(dense._replace(array=array, offset=at), filled)

    return fill_apart


def in_sequence(entry: Any, count: int, a: Any, b: Any) -> Fill:
    def fill(twister: Twister, array: Any, at: int) -> None:
        with twister.lock as held:
            entry(0, count, held, twister.state, twister.scratch, twister.values, array, at, a, b)

    if count > FEW or not isbuiltin(entry):  # a loop that is run by Python itself can be interrupted
        return fill

    def fill_at_once(twister: Twister, array: Any, at: int) -> None:  # Note [Small draws take no lock]
        if entry(0, count, 0, twister.state, twister.scratch, twister.values, array, at, a, b):
            fill(twister, array, at)

    return fill_at_once


def is_double(out: Operand) -> bool:
    return DTYPES[out.dtype].compute == "float64"


def in_order_of_memory(out: Operand) -> Operand:
    """The same elements with the dimension of the longest steps first."""
    order = sorted(range(len(out.shape)), key=lambda d: -out.strides[d])
    return out._replace(shape=tuple(out.shape[d] for d in order), strides=tuple(out.strides[d] for d in order))


def filled(out: Operand, number: Callable, a: float, b: float, real: str = "float64", by: int = 2) -> Fill:
    return prepared(entry_of(FILL, number, out.dtype, real, by), out, a, b)


def uniform(out: Operand, low: float = 0.0, high: float = 1.0) -> Fill:
    if is_double(out):
        return filled(out, numbers.uniform_float64, low, high)
    return filled(out, UNIFORM.get(out.dtype, numbers.uniform_float32), low, high, "float32", 1)


def normal(out: Operand, mean: float = 0.0, std: float = 1.0) -> Fill:
    few = numel(out.shape) < 16 or not is_contiguous(out.shape, out.strides)
    entry = entry_of(ONE_BY_ONE, numbers.scaled, out.dtype) if few else sixteens_of(out.dtype)
    return prepared(entry, out, mean, std)


def exponential(out: Operand, rate: float = 1.0) -> Fill:
    return filled(out, numbers.exponential_number, -1.0 / rate, 0.0)


def cauchy(out: Operand, median: float, sigma: float) -> Fill:
    return filled(out, numbers.cauchy_number, median, sigma)


def log_normal(out: Operand, mean: float, std: float) -> Fill:
    return prepared(entry_of(ONE_BY_ONE, numbers.log_normal_number, out.dtype), out, mean, std)


def geometric(out: Operand, log_of_rest: float) -> Fill:
    return filled(out, numbers.geometric_number, log_of_rest, 0.0)


def bernoulli(out: Operand, p: float) -> Fill:
    return filled(out, numbers.is_below, p, 0.0)


def randint(out: Operand, low: int, high: int, whole: bool = False) -> Fill:
    """Integers. `whole`: all that the dtype holds from 0 on, of one word but where it has 64 bits."""
    size = high - low
    if size >= WIDE_FROM and not (whole and out.dtype not in ("int64", "float64", "uint64")):
        signed = (size + (1 << 63)) % (1 << 64) - (1 << 63)  # its 64 bits
        return filled(out, numbers.wide_integer, low, signed, "int64", 2)
    return filled(out, numbers.integer, low, size, "int64", 1)


def poisson(out: Operand, rates: np.ndarray) -> Fill:
    return prepared(entry_of(SAMPLED, sampling.poisson_number, out.dtype), out, rates, rates)


def binomial(out: Operand, trials: np.ndarray, p: np.ndarray) -> Fill:
    return prepared(entry_of(SAMPLED, sampling.binomial_number, out.dtype), out, trials, p)


def gamma(out: Operand, a: np.ndarray, single: bool) -> Fill:
    entry = entry_of(SAMPLED, sampling.gamma_number, out.dtype)
    return prepared(entry, out, a, np.full(a.shape, float(single)))


def permutation(out: Operand) -> Fill:
    """The numbers from 0 on in random order, as int64."""
    return prepared(SHUFFLE(real="float64"), out, 0.0, 0.0)


UNIFORM = {name: getattr(numbers, f"uniform_{name}") for name in ("float16", "bfloat16", "float32")}
EACH = (uniform, normal, exponential, cauchy, log_normal, geometric, bernoulli, randint, poisson, binomial, gamma)
FILLS: dict[str, Callable[..., Fill]] = {one.__name__: one for one in (*EACH, permutation)}
