"""Fourier transforms by NVIDIA's cuFFT, where its bindings are installed: `nvmath.bindings`. Read fourier.py before.

cuFFT transforms up to three dimensions at once, of lines that lie at equal distances; each dimension's step must be a
multiple of the next one's. What lies otherwise falls to our own kernel. Its results have no factor, so that one is put
on afterwards. A plan belongs to a device and to the metadata of its operands; it is kept while a call may come that
wants it, is told its stream and its working memory at each call, and serves one thread at a time.

Transforms to reals overwrite what they read, and those of reals want it aligned as complex numbers are: the caller
hands the one a copy, and the other is copied where it lies otherwise. Source: NVIDIA, cuFFT Library documentation,
"Advanced Data Layout" and "Multidimensional Transforms".
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from redispatch.dispatch.tensor.geometry import plan

from .driver import Driver, Start, calling, where_bound

# cufftType_t and the functions, by the dtypes read and written
KINDS = {
    ("complex64", "complex64"): (41, "exec_c2c"),
    ("float32", "complex64"): (42, "exec_r2c"),
    ("complex64", "float32"): (44, "exec_c2r"),
    ("complex128", "complex128"): (105, "exec_z2z"),
    ("float64", "complex128"): (106, "exec_d2z"),
    ("complex128", "float64"): (108, "exec_z2d"),
}
FORWARD, INVERSE = -1, 1
MOST_DIMS, MOST_PLANS = 3, 64
ALIGNED = 256  # bytes, where working memory begins


class Layout(NamedTuple):
    """The layout of a plan, in the words of cufftMakePlanMany64."""

    n: tuple[int, ...]
    inembed: tuple[int, ...]
    istride: int
    idist: int
    onembed: tuple[int, ...]
    ostride: int
    odist: int
    kinds: tuple[str, str]
    batch: int


class Plan:
    """cuFFT's plan on a device. nbytes: its working memory."""

    def __init__(self, library: Library, layout: Layout, device: int) -> None:
        self.library, self.device, self.lock = library, device, threading.Lock()
        api, driver = library.api, library.driver
        driver.enter(device)
        with driver.relaxed():
            self.handle = api.create()
            api.set_auto_allocation(self.handle, 0)
            *where, kinds, batch = layout[1:]
            self.nbytes = int(
                api.make_plan_many64(self.handle, len(layout.n), layout.n, *where, KINDS[kinds][0], batch)
            )
        self.execute = getattr(api, KINDS[kinds][1])
        self.directed = kinds[0] == kinds[1]

    def __del__(self) -> None:
        handle = self.__dict__.get("handle")
        if handle is not None:
            try:
                self.library.driver.enter(self.device)
                self.library.api.destroy(handle)
            except Exception:  # the process ends, and the device is gone
                pass


class Library:
    """cuFFT on the devices of a driver."""

    def __init__(self, api: Any, driver: Any) -> None:
        self.api, self.driver = api, driver
        self.plans: dict[tuple[Layout, int], Plan] = {}

    def plan(self, layout: Layout, device: int) -> Plan | None:
        """The plan for operands that look so; None where cuFFT makes none."""
        found = self.plans.get((layout, device))
        if found is None:
            if len(self.plans) >= MOST_PLANS:
                self.plans.clear()  # calls that are planned keep theirs
            try:
                found = self.plans[layout, device] = Plan(self, layout, device)
            except Exception:  # the bindings' own errors, for lengths and layouts that it does not have
                return None
        return found


@where_bound
def library(driver: Any) -> Library:
    """cuFFT for a driver of cards."""
    from nvmath.bindings import cufft  # here, because few have it

    cufft.get_version()  # finds the library itself
    return Library(cufft, driver)


class Transformation:
    """A plan in one direction: what stands in the place of a launch. It is told the addresses of out, x and of memory,
    and where in it `nbytes` are free. Where `span` is not 0, so many bytes of x are copied there if x is not aligned.
    """

    def __init__(self, plan: Plan, forward: bool, aligned: int, span: int) -> None:
        self.plan, self.direction = plan, FORWARD if forward else INVERSE
        self.aligned, self.span = aligned, span
        self.work = -(-plan.nbytes // ALIGNED) * ALIGNED
        self.nbytes = self.work + span

    def on(self, driver: Driver) -> Start:
        """Returns the function that computes it: `start(arguments, stream)`."""
        fft: Any = driver.fft
        plan, api, direction = self.plan, fft.api, (self.direction,) if self.plan.directed else ()

        def transform(stream: int, out: int, x: int, memory: int, free: int) -> None:
            scratch = memory + free
            if self.span and x % self.aligned:
                driver.copy(scratch + self.work, x, self.span, stream)
                x = scratch + self.work
            with plan.lock:
                raw = int(fft.driver.raw(stream))
                api.set_stream(plan.handle, raw)
                api.set_work_area(plan.handle, scratch)
                plan.execute(plan.handle, x, out, *direction)

        return calling(transform)


def embedded(sizes: Sequence[int], strides: Sequence[int]) -> tuple[int, ...] | None:
    """The sizes of the array that these dimensions are a part of; None where they are of none. Outermost first."""
    found = [sizes[0]]
    for k in range(1, len(sizes)):
        size, rest = divmod(strides[k - 1], max(strides[k], 1))
        if rest or size < sizes[k]:
            return None
        found.append(size)
    return tuple(found) if strides[-1] > 0 else None


def layout(
    shape: Sequence[int],
    axes: Sequence[int],
    x: tuple[str, Sequence[int]],
    out: tuple[str, Sequence[int]],
    halves: tuple[int, int],
) -> Layout | None:
    """The layout of a transform of tensors of this shape over `axes`, outermost first; None where it is not for cuFFT.

    x, out: dtypes and strides. halves: how many elements x and out have along the last of `axes`.
    """
    n = tuple(shape[d] for d in axes)
    embeds = [embedded((*n[:-1], size), [one[1][d] for d in axes]) for one, size in zip((x, out), halves, strict=True)]
    others = [d for d in range(len(shape)) if d not in axes]
    walk = plan(tuple(shape[d] for d in others), tuple(tuple(one[1][d] for d in others) for one in (out, x)))
    next_out, next_x = walk.strides.reshape(2, -1)[:, -1].tolist()
    if embeds[0] is None or embeds[1] is None or len(walk.sizes) != 1 or min(next_out, next_x) <= 0:
        return None
    last = axes[-1]
    kinds = x[0], out[0]
    return Layout(n, embeds[0], x[1][last], next_x, embeds[1], out[1][last], next_out, kinds, walk.numel)
