"""cuFFT as `kernels/cuda/cufft.py` sees it, over a simulated GPU; numpy transforms."""

import math
import sys
from contextlib import contextmanager
from types import ModuleType

import numpy as np

# of nvmath-python 1.0; test_cufft.py compares them with those that are installed, if any are
SIGNATURES = {
    "get_version": "",
    "create": "",
    "destroy": "plan",
    "set_auto_allocation": "plan auto_allocate",
    "make_plan_many64": "plan rank n inembed istride idist onembed ostride odist type batch",
    "set_stream": "plan stream",
    "set_work_area": "plan work_area",
    "exec_c2c": "plan idata odata direction",
    "exec_z2z": "plan idata odata direction",
    "exec_r2c": "plan idata odata",
    "exec_d2z": "plan idata odata",
    "exec_c2r": "plan idata odata",
    "exec_z2d": "plan idata odata",
}
WORK = 1000  # bytes that each plan wants


class FakeFFT:
    """The functions. `done` notes (function, n, batch) of each transform."""

    def __init__(self, world):
        self.world, self.plans, self.streams, self.areas, self.done, self.made = world, {}, {}, {}, [], 0

    def get_version(self):
        return 12000

    def create(self):
        relaxed = self.world.api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        assert not self.world.captures or self.world.mode == relaxed, "cufftCreate allocates, which a capture forbids"
        self.made += 1
        return self.made

    def destroy(self, plan):
        del self.plans[plan]

    def set_auto_allocation(self, plan, auto_allocate):
        assert auto_allocate == 0 and plan not in self.plans

    def make_plan_many64(self, plan, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch):
        if any(size == 23 for size in n):
            raise RuntimeError("CUFFT_INVALID_SIZE")  # as for lengths that it does not have
        assert 1 <= rank == len(n) == len(inembed) == len(onembed) <= 3 and min(*n, batch, istride, ostride) > 0
        self.plans[plan] = n, (inembed, istride, idist), (onembed, ostride, odist), type, batch
        return WORK

    def set_stream(self, plan, stream):
        self.streams[plan] = stream

    def set_work_area(self, plan, work_area):
        self.areas[plan] = work_area

    def exec_c2c(self, plan, idata, odata, direction):
        self.transform("c2c", 41, np.complex64, np.complex64, plan, idata, odata, direction)

    def exec_z2z(self, plan, idata, odata, direction):
        self.transform("z2z", 105, np.complex128, np.complex128, plan, idata, odata, direction)

    def exec_r2c(self, plan, idata, odata):
        self.transform("r2c", 42, np.float32, np.complex64, plan, idata, odata, -1)

    def exec_d2z(self, plan, idata, odata):
        self.transform("d2z", 106, np.float64, np.complex128, plan, idata, odata, -1)

    def exec_c2r(self, plan, idata, odata):
        self.transform("c2r", 44, np.complex64, np.float32, plan, idata, odata, 1)

    def exec_z2d(self, plan, idata, odata):
        self.transform("z2d", 108, np.complex128, np.float64, plan, idata, odata, 1)

    def lines(self, at, dtype, sizes, how, batch):
        """[batch, *sizes] of what lies there, and where each of it lies."""
        embed, step, next_one = how
        places = np.arange(batch).reshape(-1, *[1] * len(sizes)) * next_one
        for d, size in enumerate(sizes):
            places = (
                places + np.arange(size).reshape(-1, *[1] * (len(sizes) - 1 - d)) * math.prod(embed[d + 1 :]) * step
            )
        item = np.dtype(dtype)
        flat = self.world.gpu.read(at, (int(places.max()) + 1) * item.itemsize).view(item)
        return flat, places

    def transform(self, name, kind, of, to, plan, idata, odata, direction):
        n, before, behind, type, batch = self.plans[plan]
        stream, area = self.streams[plan], self.areas[plan]
        assert kind == type and direction in (-1, 1)
        assert idata % np.dtype(to if of in (np.float32, np.float64) else of).itemsize == 0, "not aligned"
        assert idata != odata or (of is to and before == behind)
        self.done.append((name, n, batch))
        half = n[-1] // 2 + 1
        sizes_in = (*n[:-1], half) if name in ("c2r", "z2d") else n
        sizes_out = (*n[:-1], half) if name in ("r2c", "d2z") else n

        def step():
            self.world.gpu.write(area, np.zeros(WORK, np.uint8))
            flat, places = self.lines(idata, of, sizes_in, before, batch)
            x, axes = flat[places], tuple(range(1, 1 + len(n)))
            if name in ("r2c", "d2z"):
                found = np.fft.rfftn(x, axes=axes)
            elif name in ("c2r", "z2d"):
                found = np.fft.irfftn(x, n, axes, norm="forward")
                flat[places] = 7  # it is overwritten
                self.world.gpu.write(idata, flat.view(np.uint8))
            else:
                found = np.fft.fftn(x, axes=axes) if direction < 0 else np.fft.ifftn(x, axes=axes, norm="forward")
            item = np.dtype(to).itemsize
            _, places = self.lines(odata, to, (1,) * len(n), behind, 1)
            found = found.astype(to)
            embed, one, next_one = behind
            for index in np.ndindex(*found.shape):
                place = index[0] * next_one
                for d, i in enumerate(index[1:]):
                    place += i * math.prod(embed[d + 1 :]) * one
                self.world.gpu.write(odata + place * item, np.array([found[index]]).view(np.uint8))
            assert found.shape == (batch, *sizes_out)

        class Target:
            number = stream

        self.world.do(Target, step)


@contextmanager
def fake_fft(monkeypatch, world):
    """`nvmath.bindings` for the driver that is made inside."""
    bindings = ModuleType("nvmath.bindings")
    bindings.cufft = FakeFFT(world)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "nvmath", ModuleType("nvmath"))
        patch.setitem(sys.modules, "nvmath.bindings", bindings)
        yield bindings.cufft
