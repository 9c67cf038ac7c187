"""Fourier transforms on a GPU: lines of numbers, several of them in the shared memory of each block.

A pass (`transformed_lines`) carries lines into shared memory, transforms them there by stages (fft_stages.py), and
carries them back. A line of more elements than a block has room for takes several passes, each of which is to the long
line what a stage is to a short one: Note [A stage by Stockham], with whole lines for radices. Its roots
exp(-2 pi i q a / n) are products of two of a fine and a coarse table, so that these stay small.

A length with a prime factor that no stage has is transformed by Bluestein's algorithm: with c(i) = exp(pi i i^2 / n),
2 i k = i^2 + k^2 - (k - i)^2 makes of the sum a convolution of x / c with c, times 1 / c. It is made by transforms of
length m >= 2 n - 1, which has small factors; the transform of c stands in a table.

Inverse transforms are forward ones whose real and imaginary parts change places before and behind. Reals are read as
complex numbers without imaginary part; of what follows from the other half nothing is written, and, in the other
direction, nothing is read. All tables are worked out on the host in double precision. Sources: Bailey, "FFTs in
external or hierarchical memory"; Bluestein, "A linear filtering approach to the computation of discrete Fourier
transform".

An operator's dimensions are transformed one after the other: what comes first reads the argument, and what follows
works in the result. NVIDIA's library, where it is and can, takes up to three dimensions at once (cufft.py); a factor is
put on by a launch of ours, of lines of one element.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined, assignment"
# Names like load_x, store_out, zero are put there by `Written`.

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache as once
from typing import Any, NamedTuple

import numpy as np

from redispatch.dispatch.tensor import Tensor
from redispatch.dispatch.tensor.geometry import contiguous_strides, plan
from redispatch.dispatch.tensor.operand import DTYPES
from redispatch.kernels.engine.convert import as_is, real_part
from redispatch.kernels.engine.program import integral, steps
from redispatch.kernels.ops.fft import axes_of, fft_c2c_op, fft_c2r_op, fft_r2c_op

from .. import cufft
from ..compiler import CUDA as cuda
from ..elementwise import MOST, as_argument, magic
from ..runtime.copies import table_on
from ..runtime.operands import allocator
from ..runtime.structured import SCRATCH, Task, work_of
from ..templates import Written, threads_for
from .fft_stages import (
    ODD,
    POWERS,
    number_at,
    padded,
    pair_at,
    put_number,
    put_pair,
    quotient,
    scale_of,
    shrunk,
    stage,
    swapped,
)

ROOM = 16 << 10  # bytes of the lines of a block; it has twice as much, to read stages here and write them there
NARROW = 512  # elements of a line whose neighbours are read with it, so that whole sectors of memory are
FINE = 1 << 10  # roots of the fine table
THREADS, BLOCKS = 256, 256  # elements of a block at least, and blocks at least where lines need no neighbours
COMPUTE = {"float32": "complex64", "float64": "complex128", "complex64": "complex64", "complex128": "complex128"}
int64, uint64 = np.int64, np.uint64


@integral
def starts(table, dims, line):
    """The starts of a line in x and in out, by its number: `table` has size, magic, shift and both steps of each
    dimension, outermost first."""
    of_x, of_out, rest = int64(0), int64(0), line
    for d in range(dims - 1, -1, -1):
        above = quotient(rest, table[d * 5 + 1], table[d * 5 + 2])
        here = rest - above * table[d * 5]
        of_x += here * table[d * 5 + 3]
        of_out += here * table[d * 5 + 4]
        rest = above
    return of_x, of_out


def transformed_lines(
    out, x, twiddles, factors, table, lines, together, size, before, after, m_together, s_together, m_size, s_size,
    m_before, s_before, m_after, s_after, dims, stages, x_start, x_step, x_size, stored, mirror, x_across, x_swaps,
    x_factors, out_start, out_step, out_size, out_across, out_swaps, out_factors, scale,
):  # fmt: skip
    """A block has `together` neighbouring lines. Line (o, b, a) of a pass is what `Pass` says.

    Elements from `x_size` on are zero, and so are those of which no more than `stored` are there; those from `mirror`
    on are the conjugated ones from the other end. Element p of a long line is multiplied by `factors[x_factors + p]`,
    result p by `factors[out_factors + p]`, where these are not negative.
    """
    # One function: stages are called; reading and writing share with them the block's lines and most of 35 arguments.
    room = cuda.shared.array(SHARED, compute, 16)
    thread, threads = int64(cuda.threadIdx.x), int64(cuda.blockDim.x)
    first, all_of_it = int64(cuda.blockIdx.x) * together, together * size
    for e in steps(thread, all_of_it, threads):
        i = quotient(e, m_together, s_together) if x_across == 1 else e
        line = e - i * together if x_across == 1 else quotient(e, m_size, s_size)
        i = i if x_across == 1 else e - line * size
        value = zero
        if first + line < lines:
            b = quotient(first + line, m_after, s_after)
            a = first + line - b * after
            o = quotient(b, m_before, s_before)
            place = ((b - o * before) * size + i) * after + a
            other = place >= mirror
            at = x_size - place if other else place
            if place < x_size and at < stored:
                value = load_x(x_at(x, starts(table, dims, o)[0] + x_start + at * x_step))
                if other:
                    value = value.conjugate()
                if x_swaps == 1:
                    value = swapped(value)
                if x_factors >= 0:
                    value = value * pair_at(factors, x_factors + place)
        put_pair(room, padded(line * size + i), value)
    cuda.syncthreads()
    source, target, done = int64(0), int64(SHARED // 2), int64(1)
    for k in range(stages):
        at = dims * 5 + k * 6
        radix, left, m_left, s_left = table[at], table[at + 1], table[at + 2], table[at + 3]
        given = (together, size, done, left, m_left, s_left, done * left, table[at + 4], table[at + 5])
        if radix == 8:
            stage_8(room, source, target, twiddles, *given)
        elif radix == 4:
            stage_4(room, source, target, twiddles, *given)
        elif radix == 2:
            stage_2(room, source, target, twiddles, *given)
        elif radix == 3:
            stage_3(room, source, target, twiddles, *given)
        elif radix == 5:
            stage_5(room, source, target, twiddles, *given)
        else:
            stage_7(room, source, target, twiddles, *given)
        cuda.syncthreads()
        source, target, done = target, source, done * radix
    for e in steps(thread, all_of_it, threads):
        i = quotient(e, m_together, s_together) if out_across == 1 else e
        line = e - i * together if out_across == 1 else quotient(e, m_size, s_size)
        i = i if out_across == 1 else e - line * size
        if first + line < lines:
            b = quotient(first + line, m_after, s_after)
            a = first + line - b * after
            o = quotient(b, m_before, s_before)
            place = (b - o * before + before * i) * after + a
            if place < out_size:
                value = pair_at(room, source + padded(line * size + i))
                if after > 1:
                    turn = i * a
                    fine = pair_at(twiddles, size + (turn & (FINE - 1)))
                    value = value * (fine * pair_at(twiddles, size + FINE + (turn >> 10)))
                if out_factors >= 0:
                    value = value * pair_at(factors, out_factors + place)
                value = shrunk(value, factor(scale))
                if out_swaps == 1:
                    value = swapped(value)
                put_out(out, starts(table, dims, o)[1] + out_start + place * out_step, store_out(of_out(value)))


KERNEL = Written(transformed_lines, ("out", "x", "twiddles", "factors", "table"))


def given(compute: str, out: str, x: str) -> dict[str, object]:
    """Returns the names of the kernel beside those that `Written` puts there."""
    real = DTYPES[out].kind != "complex"
    reads = number_at if DTYPES[x].kind != "complex" else pair_at
    ends = {"of_out": real_part if real else as_is, "put_out": put_number if real else put_pair, "x_at": reads}
    return {**stages_of(compute), **ends}


@once
def stages_of(compute: str) -> dict[str, object]:
    """The stages in a type, and shared memory's size."""
    kind: Any = np.dtype(compute)
    stages: dict[str, object] = {f"stage_{radix}": stage(radix, kind.type) for radix in (*POWERS, *ODD)}
    return {**stages, "SHARED": 2 * int(padded(ROOM // kind.itemsize)), "factor": scale_of(compute)}


# --- lengths ----------------------------------------------------------------------------------------------------------


def radices(n: int) -> list[int] | None:
    """The radices of the stages for a length; None where it has another prime factor."""
    found = []
    for radix in (*ODD, *POWERS):
        while n % radix == 0:
            found.append(radix)
            n //= radix
    return found if n == 1 else None


def parts(n: int, most: int) -> list[int]:
    """A length as lengths of passes: itself if it is at most `most`, else factors of at most NARROW, as alike as they
    can be. Its prime factors are those of radices."""
    if n <= most:
        return [n]
    primes = [p for radix in radices(n) or () for p in ([radix] if radix % 2 else [2] * (radix.bit_length() - 1))]
    count = 2
    while True:
        found = [1] * count
        for prime in primes:
            found[found.index(min(found))] *= prime
        if max(found) <= NARROW:
            return sorted(found, reverse=True)
        count += 1


def convolved(n: int) -> int:
    """The length in which Bluestein's convolution is made: the least one with few factors that holds 2 n - 1."""
    least = 2 * n - 1
    return min(odd << (-(-least // odd) - 1).bit_length() for odd in (1, 3, 5, 7))


def roots(k: np.ndarray, n: int) -> np.ndarray:
    """exp(-2 pi i k / n) in complex128, of angles of at most pi / 4 and quarter turns."""
    quarters = (4 * k + n // 2) // n
    angle = (4 * k - quarters * n) * (math.pi / 2 / n)
    return (np.cos(angle) - 1j * np.sin(angle)) * np.array([1, -1j, -1, 1j])[quarters % 4]


def twiddle_table(size: int, after: int, compute: str) -> np.ndarray:
    """Makes the roots that a pass reads: those of its own size; of `size after`, the first FINE, and every FINE-th."""
    found = [roots(np.arange(size), size)]
    if after > 1:
        whole = size * after
        found += [roots(np.arange(FINE), whole), roots(np.arange(0, whole + 1, FINE), whole)]
    return np.concatenate(found).astype(compute)


def factor_table(n: int, compute: str) -> np.ndarray:
    """Bluestein's factors: n of 1 / c, the transform of c around zero, and n of c."""
    chirp = roots(np.arange(n) ** 2 % (2 * n), 2 * n)
    length = convolved(n)
    around = np.zeros(length, np.complex128)
    around[:n] = chirp.conj()
    around[length - n + 1 :] = chirp[:0:-1].conj()
    return np.concatenate([chirp, np.fft.fft(around), chirp.conj()]).astype(compute)


# --- from a transform to launches -------------------------------------------------------------------------------------


class Place(NamedTuple):
    """The place of numbers: a tensor's index among the arguments or SCRATCH, and how they lie there, in elements."""

    tensor: int
    dtype: str
    strides: tuple[int, ...]
    start: int = 0


class Transform(NamedTuple):
    """One dimension to be transformed: `n` elements over `axis`, of which `stored` are there.

    halved: what is not stored follows from what is, the result being real. kept: the number of results. scale: what
    they are multiplied by.
    """

    shape: tuple[int, ...]  # of all lines; what it has at `axis` does not count
    axis: int
    n: int
    stored: int
    kept: int
    forward: bool
    halved: bool = False
    scale: float = 1.0


class End(NamedTuple):
    """The end where a pass reads or writes: the steps between lines, outermost first, and along a long one; the changes
    of numbers there (`transformed_lines`)."""

    tensor: int
    dtype: str
    start: int
    steps: tuple[int, ...]
    step: int
    size: int
    stored: int = 0
    mirror: int = 0
    swaps: bool = False
    factors: int = -1
    scale: float = 1.0


class Lines:
    """The lines of a transform on a device, and the memory between its passes. `tasks` are the launches."""

    def __init__(self, t: Transform, x: Place, out: Place, start: int, on: Any) -> None:
        """start: how many elements of SCRATCH are taken."""
        self.compute, self.on = COMPUTE[x.dtype], on
        self.start, self.tasks = start, list[Task]()
        others = [d for d in range(len(t.shape)) if d != t.axis]
        walk = plan(tuple(t.shape[d] for d in others), tuple(tuple(one.strides[d] for d in others) for one in (out, x)))
        self.sizes, self.count = tuple(walk.sizes.tolist()), walk.numel
        steps = walk.strides.reshape(2, -1).tolist()
        stored = min(t.stored, t.n // 2 + 1) if t.halved else t.stored
        first = End(x.tensor, x.dtype, x.start, tuple(steps[1]), x.strides[t.axis], t.n, stored, t.n, not t.forward)
        if t.halved:
            first = first._replace(mirror=t.n // 2 + 1)
        last = End(out.tensor, out.dtype, out.start, tuple(steps[0]), out.strides[t.axis], t.kept)
        last = last._replace(swaps=not t.forward, scale=t.scale)
        if radices(t.n) is not None:
            self.transformed(first, last, t.n, ())
            return
        length = convolved(t.n)
        between = self.between(length)
        table = t.n, self.compute
        self.transformed(first._replace(factors=0), between._replace(swaps=True, factors=t.n), length, table)
        last = last._replace(factors=t.n + length, swaps=t.forward, scale=t.scale / length)
        self.transformed(between, last, length, table)

    def between(self, length: int) -> End:
        """Fresh memory for long lines."""
        steps = contiguous_strides((*self.sizes, length))
        found = End(SCRATCH, self.compute, self.start, steps[:-1], 1, length, length, length)
        self.start += self.count * length
        return found

    def transformed(self, x: End, out: End, length: int, factors: tuple[Any, ...]) -> None:
        """The passes over lines of a length with small factors."""
        most = NARROW if is_across(x) or is_across(out) else ROOM // np.dtype(self.compute).itemsize
        sizes, before = parts(length, most), 1
        freed = self.start
        for k, size in enumerate(sizes):
            target = out if k == len(sizes) - 1 else self.between(length)
            self.passed(x, target, size, before, length // (before * size), factors)
            x, before = target, before * size
        self.kept, self.start = max(getattr(self, "kept", 0), self.start), freed

    def table(self, make: Callable[..., np.ndarray], *key: Any) -> Tensor:
        """`make(*key)`, sent to the device once."""
        return table_on(self.on, (make.__name__, key), lambda: make(*key))

    def passed(self, x: End, out: End, size: int, before: int, after: int, factors: tuple[Any, ...]) -> None:
        """One pass."""
        lines, room = self.count * before * after, ROOM // np.dtype(self.compute).itemsize
        if lines >= MOST:
            raise NotImplementedError(f"a Fourier transform of {lines} lines is more than one CUDA launch counts yet")
        x_across = after > 1 or (before == 1 and is_across(x))
        out_across = after > 1 or before > 1 or is_across(out)
        together = min(room // size, lines)
        if not (x_across or out_across):  # more blocks, where there are few
            together = min(together, max(-(-lines // BLOCKS), -(-THREADS // size)))
        within = radices(size) or []
        table = self.table(stage_table, self.sizes, x.steps, out.steps, size, tuple(within))
        dtypes = (out.dtype, x.dtype, self.compute, self.compute, "int64")
        given_names = given(self.compute, out.dtype, x.dtype)
        counts = (together, size, before, after)
        scale = as_argument(out.scale, "float32" if self.compute == "complex64" else "float64")
        rest = (
            lines, *counts, *[part for count in counts for part in magic(count)], len(self.sizes), len(within),
            x.start, x.step, x.size, x.stored, x.mirror, int(x_across), int(x.swaps), x.factors,
            out.start, out.step, out.size, int(out_across), int(out.swaps), out.factors, scale,
        )  # fmt: skip
        twiddles = self.table(twiddle_table, size, after, self.compute)
        own = self.table(factor_table, *factors) if factors else twiddles
        threads = threads_for(-(-together * size // 4))
        launch = KERNEL.launch(self.compute, dtypes, -(-lines // together), threads, **given_names)
        self.tasks.append(Task(launch, (out.tensor, x.tensor), rest, 0, (twiddles, own, table)))


def is_across(end: End) -> bool:
    """Whether neighbouring lines lie nearer to each other than neighbours in a line."""
    return abs(end.steps[-1]) < abs(end.step)


def stage_table(
    sizes: Sequence[int], x_steps: Sequence[int], out_steps: Sequence[int], size: int, within: Sequence[int]
) -> np.ndarray:
    """Makes the table of dimensions and of stages that a kernel reads."""
    found: list[int] = []
    for one, x_step, out_step in zip(sizes, x_steps, out_steps, strict=True):
        found += [one, *magic(one), x_step, out_step]
    left = size
    for radix in within:
        left //= radix
        found += [radix, left, *magic(left), *magic(size // radix)]
    return np.array(found, np.int64)


# --- operators --------------------------------------------------------------------------------------------------------

OUT, SELF = 0, 1


class Work:
    """The launches of a call, as they are found."""

    def __init__(self, out: Tensor, self_: Tensor) -> None:
        self.out, self.self = out, self_
        self.compute = COMPUTE[self_._dtype.name]
        self.taken, self.most, self.nbytes, self.tasks = 0, 0, 0, list[Task]()

    def place(self, tensor: int) -> Place:
        x = self.out if tensor == OUT else self.self
        return Place(tensor, x._dtype.name, tuple(x._stride))

    def scratch(self, shape: Sequence[int], like: Place) -> Place:
        """Memory between dimensions, in which these lie in the order that they have there."""
        order = sorted(range(len(shape)), key=lambda d: -like.strides[d])
        steps = dict(zip(order, contiguous_strides(tuple(shape[d] for d in order)), strict=True))
        found = Place(SCRATCH, self.compute, tuple(steps[d] for d in range(len(shape))), self.taken)
        self.taken += math.prod(shape)
        return found

    def put(self, transform: Transform, x: Place, out: Place) -> None:
        lines = Lines(transform, x, out, self.taken, self.out._device)
        self.most = max(self.most, lines.kept, self.taken)
        self.tasks += lines.tasks

    def copy(self, shape: tuple[int, ...], x: Place, out: Place, scale: float = 1.0) -> None:
        """Lines of one element."""
        x, out = (one._replace(strides=(*one.strides, 1)) for one in (x, out))
        self.put(Transform((*shape, 1), len(shape), 1, 1, 1, True, scale=scale), x, out)

    def by_library(
        self, shape: tuple[int, ...], axes: Sequence[int], x: Place, out: Place, halves: tuple[int, int], forward: bool
    ) -> bool:
        """Has cuFFT do it, where it is and can: a transform without a factor. See `cufft.layout`."""
        fft = allocator().driver.fft
        if fft is None:
            return False
        how = cufft.layout(shape, axes, (x.dtype, x.strides), (out.dtype, out.strides), halves)
        plan = None if how is None else fft.plan(how, self.out._device.index or 0)
        if plan is None:
            return False
        complex_bytes = np.dtype(self.compute).itemsize
        real = x.dtype != self.compute
        reached = 1 + sum((size - 1) * step for size, step in zip(shape, x.strides, strict=True))
        span = reached * complex_bytes // 2 if real else 0
        run = cufft.Transformation(plan, forward, complex_bytes, span)
        taken = self.taken if SCRATCH in (x.tensor, out.tensor) else 0
        at = -(-taken * complex_bytes // cufft.ALIGNED) * cufft.ALIGNED
        self.tasks.append(Task(run, (out.tensor, x.tensor, SCRATCH), (at,)))
        self.nbytes = max(self.nbytes, at + run.nbytes)
        return True

    def all(self) -> list[Task]:
        nbytes = max(self.nbytes, self.most * np.dtype(self.compute).itemsize)
        return [task._replace(scratch=nbytes) for task in self.tasks]


def normalized(normalization: int, count: int) -> float:
    """The factor of a transform over so many elements."""
    return (1.0, 1 / math.sqrt(count), 1 / count)[normalization]


def outermost_first(axes: Sequence[int], place: Place) -> list[int]:
    return sorted(axes, key=lambda d: -place.strides[d])


def several(
    work: Work, shape: tuple[int, ...], axes: Sequence[int], x: Place, out: Place, forward: bool, scale: float
) -> None:
    """Complex transforms over `axes`, from x to out; the first also brings the numbers there."""
    axes = outermost_first(axes, out)
    while axes:
        axes, group = axes[: -cufft.MOST_DIMS], axes[-cufft.MOST_DIMS :]
        n = shape[group[-1]]
        if work.by_library(shape, group, x, out, (n, n), forward):
            x = out
            continue
        for axis in group[::-1]:
            n = shape[axis]
            work.put(Transform(shape, axis, n, n, n, forward, scale=scale), x, out)
            x, scale = out, 1.0
    if scale != 1:
        work.copy(shape, out, out, scale)


@work_of(fft_c2c_op)
def c2c(out: Tensor, self: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> list[Task]:
    work, shape, axes = Work(out, self), tuple(self._shape), axes_of(self, dim)
    if not out._shape.numel():
        return []
    x, there = work.place(SELF), work.place(OUT)
    if axes:
        scale = normalized(normalization, math.prod(shape[d] for d in axes))
        several(work, shape, axes, x, there, forward, scale)
    else:
        work.copy(shape, x, there)
    return work.all()


@work_of(fft_r2c_op)
def r2c(out: Tensor, self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> list[Task]:
    """The last dimension first, of which no more is written than is asked for."""
    work, shape, axes = Work(out, self), tuple(self._shape), axes_of(self, dim)
    if not out._shape.numel():
        return []
    x, there = work.place(SELF), work.place(OUT)
    if not axes:
        work.copy(shape, x, there)
        return work.all()
    *others, last = axes
    scale, n = normalized(normalization, math.prod(shape[d] for d in axes)), shape[last]
    kept = n // 2 + 1 if onesided else n
    halved = (*shape[:last], kept, *shape[last + 1 :])
    if not onesided and allocator().driver.fft is not None:
        work.copy(shape, x, there)
        several(work, shape, axes, there, there, True, scale)
        return work.all()
    others = outermost_first(others, there)
    others, group = others[: 1 - cufft.MOST_DIMS], others[1 - cufft.MOST_DIMS :]
    if not (onesided and work.by_library(shape, [*group, last], x, there, (n, kept), True)):
        work.put(Transform(shape, last, n, n, kept, True, scale=scale), x, there)
        others, scale = [*others, *group], 1.0
    several(work, halved, others, there, there, True, scale)
    return work.all()


@work_of(fft_c2r_op)
def c2r(out: Tensor, self: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> list[Task]:
    """The last dimension last, of which the other half is never read."""
    work, shape, axes = Work(out, self), tuple(self._shape), axes_of(self, dim)
    if not out._shape.numel():
        return []
    *others, last = axes
    x, there, half = work.place(SELF), work.place(OUT), last_dim_size // 2 + 1
    scale = normalized(normalization, last_dim_size * math.prod(shape[d] for d in others))
    whole = (*shape[:last], last_dim_size, *shape[last + 1 :])
    wanted = Transform(shape, last, last_dim_size, shape[last], last_dim_size, False, True, scale)
    if allocator().driver.fft is None or shape[last] < half:
        between = work.scratch(shape, there) if others else x
        several(work, shape, others, x, between, False, 1.0)
        work.put(wanted, between, there)
        return work.all()
    others, between = outermost_first(others, there), work.scratch(shape, there)
    others, group = others[: 1 - cufft.MOST_DIMS], others[1 - cufft.MOST_DIMS :]
    if others:
        several(work, shape, others, x, between, False, 1.0)
    else:  # what cuFFT reads it overwrites
        work.copy(shape, x, between)
    if not work.by_library(whole, [*group, last], between, there, (half, last_dim_size), False):
        several(work, shape, group, between, between, False, 1.0)
        work.put(wanted, between, there)
    elif scale != 1:
        work.copy(whole, there, there, scale)
    return work.all()
