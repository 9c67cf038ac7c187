"""NVIDIA's bindings as `kernels/cuda` sees them, over a simulated GPU.

The driver's: calls are checked against the signatures of the real ones, need a device that is current in their thread,
and fail as CUDA does where a stream is captured. A kernel's "machine code" is its PTX here, which the simulator runs.

cuBLAS, cuSOLVER and cuFFT: numpy and LAPACK do the work. Each function checks how many arguments it is given, runs in
the turn of its handle's stream, and needs the handle's device to be current. Matrices lie by columns.
"""

import ctypes
import inspect
import math
import sys
import threading
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import numpy as np
import scipy.linalg

from redispatch.kernels.cpu import lapack
from redispatch.kernels.cuda import compiler, cuda_driver
from redispatch.kernels.cuda.simulator import Device as GPU

# --- the driver's bindings --------------------------------------------------------------------------------------------


class CUDAError(Exception):
    """The error of `cuda.core`, no RuntimeError."""


class World:
    """The state that all the fakes share: the GPU, who is current where, who is captured."""

    def __init__(self, real_api, real_core, devices, memory):
        self.api, self.core, self.devices = real_api, real_core, devices
        self.gpu, self.local = GPU(memory), threading.local()
        self.captures = {}  # stream's number -> steps
        self.mode = real_api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
        self.pinned, self.owner, self.calls = {}, {}, []

    def current(self):
        found = getattr(self.local, "device", None)
        if found is None:
            raise CUDAError("CUDA_ERROR_INVALID_CONTEXT")
        return found

    def do(self, stream, step):
        self.enqueue(stream.number, step)

    def enqueue(self, number, step):
        steps = self.captures.get(number)
        if steps is None:
            step()
        else:
            steps.append(step)


class Stream:
    def __init__(self, world, number, device):
        self.world, self.number, self.device = world, number, device

    @property
    def handle(self):
        return self.world.api.CUstream(self.number)

    def record(self, event=None, options=None):
        assert event.device == self.device, "an event of another device: CUDA_ERROR_INVALID_HANDLE"
        event.recorded = True
        return event

    def wait(self, event_or_stream):
        assert event_or_stream.recorded


class Event:
    def __init__(self, device, timing):
        self.device, self.timing, self.recorded = device, timing, False

    is_done = True

    def sync(self):
        """All is done."""

    def __sub__(self, other):
        if not (self.timing and other.timing):
            raise CUDAError("timing is disabled")
        return 1.5


class Kernel:
    def __init__(self, module, name):
        self.module, self.name = module, name


def like(real):
    """Checks the arguments of a method against those of NVIDIA's."""
    signature = inspect.signature(real)

    def wrap(function):
        def call(*args, **kwargs):
            signature.bind(*args, **kwargs)
            return function(*args, **kwargs)

        return call

    return wrap


def core_of(world):
    """The module `cuda.core`."""
    core = world.core

    class Device:
        def __init__(self, number):
            self.device_id, self.name = number, f"fake card {number}"
            self.compute_capability = (8, 0)
            self.default_stream = Stream(world, 1 if number == 0 else 1000 + number, number)

        @property
        def properties(self):
            from cuda.core._device import DeviceProperties  # here, because few have it

            return SimpleNamespace(**{name: len(name) for name in dir(DeviceProperties) if not name.startswith("_")})

        @like(core.Device.set_current)
        def set_current(self, ctx=None):
            world.local.device = self.device_id

        @like(core.Device.create_stream)
        def create_stream(self, obj=None, options=None):
            assert isinstance(options, core.StreamOptions) and world.current() == self.device_id
            world.made = getattr(world, "made", 16) + 16
            return Stream(world, world.made, self.device_id)

        @like(core.Device.create_event)
        def create_event(self, options=None):
            assert isinstance(options, core.EventOptions) and world.current() == self.device_id
            return Event(self.device_id, options.timing_enabled)

    class ObjectCode:
        @staticmethod
        @like(core.ObjectCode.from_cubin)
        def from_cubin(module, *, name="", symbol_mapping=None):
            assert module[:4] == b"\x7fELF"
            return ObjectCode(module[4:].decode())

        def __init__(self, text):
            self.loaded = world.gpu.load(text)

        def get_kernel(self, name):
            return Kernel(self.loaded, name)

    def launch(stream, config, kernel, *kernel_args):
        assert isinstance(config, core.LaunchConfig) and isinstance(stream, Stream) and isinstance(kernel, Kernel)
        assert all(type(one) in (int, float) for one in kernel_args), "these are packed as int64 and double"
        if world.current() != stream.device:
            raise CUDAError("CUDA_ERROR_INVALID_HANDLE")
        strict = not kernel.name.startswith("copy_")
        world.do(
            stream,
            lambda: world.gpu.launch(kernel.module, kernel.name, config.grid, config.block, kernel_args, strict),
        )

    made = ModuleType("cuda.core")
    streams = SimpleNamespace(from_handle=lambda handle: Stream(world, int(handle), world.current()))
    vars(made).update(
        Device=SimpleNamespace(get_all_devices=lambda: tuple(Device(i) for i in range(world.devices))),
        EventOptions=core.EventOptions,
        LaunchConfig=core.LaunchConfig,
        ObjectCode=ObjectCode,
        Stream=streams,
        StreamOptions=core.StreamOptions,
        launch=launch,
    )
    return made


class API:
    """The module `cuda.bindings.driver`: each function returns a status, and what else it gives."""

    def __init__(self, world):
        self.world = world

    def __getattr__(self, name):
        real = getattr(self.world.api, name)
        if not name.startswith("cu"):
            return real  # an enumeration
        signature, emulated = inspect.signature(real), getattr(self, f"on_{name}")

        def call(*args, **kwargs):
            signature.bind(*args, **kwargs)
            self.world.calls.append(name)
            if name not in ("cuGraphExecDestroy", "cuGraphDestroy"):
                self.world.current()
            return emulated(*args, **kwargs)

        return call

    def ok(self, *values):
        return (self.world.api.CUresult.CUDA_SUCCESS, *values)

    def stream(self, handle):
        assert isinstance(handle, self.world.api.CUstream)
        return SimpleNamespace(number=int(handle))

    def on_cuMemAlloc(self, bytesize):
        relaxed = self.world.api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        if self.world.captures and self.world.mode != relaxed:
            return (self.world.api.CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,)
        try:
            address = self.world.gpu.allocate(bytesize)
        except MemoryError:
            return (self.world.api.CUresult.CUDA_ERROR_OUT_OF_MEMORY,)
        self.world.owner[address] = self.world.current()
        return self.ok(self.world.api.CUdeviceptr(address))

    def on_cuMemFree(self, dptr):
        assert self.world.owner.pop(int(dptr)) == self.world.current()
        self.world.gpu.free(int(dptr))
        return self.ok()

    def on_cuDriverGetVersion(self):
        return self.ok(13000)

    def on_cuMemGetInfo(self):
        arena = self.world.gpu.arena
        return self.ok(arena.capacity - arena.used, arena.capacity)

    def on_cuMemHostAlloc(self, bytesize, flags):
        array = np.empty(bytesize, np.uint8)
        self.world.pinned[array.ctypes.data] = array
        return self.ok(array.ctypes.data)

    def on_cuMemFreeHost(self, p):
        del self.world.pinned[p]
        return self.ok()

    def on_cuPointerGetAttribute(self, attribute, ptr):
        assert attribute == self.world.api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        return self.ok(self.world.owner.get(ptr, 0))

    def on_cuMemcpyHtoDAsync(self, dst, src, count, stream):
        def step():
            self.world.gpu.write(int(dst), np.frombuffer(ctypes.string_at(src, count), np.uint8))

        self.world.do(self.stream(stream), step)
        return self.ok()

    def on_cuMemcpyDtoHAsync(self, dst, src, count, stream):
        def step():
            ctypes.memmove(dst, self.world.gpu.read(int(src), count).tobytes(), count)

        self.world.do(self.stream(stream), step)
        return self.ok()

    def on_cuMemcpyDtoDAsync(self, dst, src, count, stream):
        self.world.do(self.stream(stream), lambda: self.world.gpu.arena.move(int(dst), int(src), count))
        return self.ok()

    def on_cuStreamSynchronize(self, stream):
        if self.stream(stream).number in self.world.captures:
            return (self.world.api.CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,)
        return self.ok()

    def on_cuCtxSynchronize(self):
        if self.world.captures:
            return (self.world.api.CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,)
        return self.ok()

    def on_cuThreadExchangeStreamCaptureMode(self, mode):
        former, self.world.mode = self.world.mode, mode
        return self.ok(former)

    def on_cuStreamBeginCapture(self, stream, mode):
        assert isinstance(mode, self.world.api.CUstreamCaptureMode)
        self.world.captures[self.stream(stream).number] = []
        return self.ok()

    def on_cuStreamEndCapture(self, stream):
        return self.ok(self.world.captures.pop(self.stream(stream).number))

    def on_cuStreamIsCapturing(self, stream):
        status = self.world.api.CUstreamCaptureStatus
        active = self.stream(stream).number in self.world.captures
        return self.ok(status.CU_STREAM_CAPTURE_STATUS_ACTIVE if active else status.CU_STREAM_CAPTURE_STATUS_NONE)

    def on_cuGraphGetNodes(self, graph, count):
        return self.ok([], len(graph))

    def on_cuGraphInstantiate(self, graph, flags):
        return self.ok(list(graph))

    def on_cuGraphLaunch(self, ready, stream):
        self.stream(stream)
        for step in ready:
            step()
        return self.ok()

    def on_cuGraphExecDestroy(self, ready):
        return self.ok()

    def on_cuGraphDestroy(self, graph):
        return self.ok()


@contextmanager
def fake_cards(monkeypatch, devices=1, memory=1 << 22):
    """The driver for cards that are simulated behind fake bindings, and the world behind them."""
    import cuda.core as real_core  # here, because few have it
    from cuda.bindings import driver as real_api

    world = World(real_api, real_core, devices, memory)
    bindings = ModuleType("cuda.bindings")
    bindings.driver = API(world)
    real = {name: sys.modules[name] for name in ("cuda.core", "cuda.bindings")}
    fake = {"cuda.core": core_of(world), "cuda.bindings": bindings}

    def machine_code(source, target):
        with monkeypatch.context() as patch:  # the compiler imports the bindings, too, and is to find the real ones
            for name, module in real.items():
                patch.setitem(sys.modules, name, module)
            return b"\x7fELF" + compiler.ptx(source, target).encode()

    with monkeypatch.context() as patch:
        for name, module in fake.items():
            patch.setitem(sys.modules, name, module)
        patch.setattr(cuda_driver, "cubin", machine_code)
        yield cuda_driver.cards(), world


# --- libraries' -------------------------------------------------------------------------------------------------------


ELEMENTS = {0: np.float32, 1: np.float64, 2: np.float16, 4: np.complex64, 5: np.complex128, 14: np.uint16}


class Fake:
    """The functions of a library, by their arguments: `on_<name>`. `calls` notes what was called.

    SIGNATURES are those of nvmath-python 1.0, and are compared with those that are installed, if any are."""

    SIGNATURES = {}

    def __init__(self, world):
        self.world, self.streams, self.calls = world, {}, []

    def __getattr__(self, name):
        words, emulated = self.SIGNATURES[name].split(), getattr(type(self), f"on_{name}")

        def call(*given):
            assert len(given) == len(words), f"{name} takes {words}"
            return emulated(self, **dict(zip(words, given, strict=True)))

        return call

    def on_get_property(self, type):
        return 13

    def on_get_version(self):
        return 12000

    def on_create(self):
        relaxed = self.world.api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        assert not self.world.captures or self.world.mode == relaxed, "what is created allocates: a capture forbids it"
        self.streams[len(self.streams) + 1] = None, self.world.current()
        return len(self.streams)

    def on_set_stream(self, **named):
        handle, stream = named.values()
        self.streams[handle] = stream, self.world.current()

    def later(self, handle, step):
        """Does it in the turn of the handle's stream."""
        stream, device = self.streams[handle]
        assert self.world.current() == device, "EXECUTION_FAILED: another device is current"
        self.world.enqueue(stream, step)

    # matrices by columns

    def read(self, at, kind, rows, columns, step, next_one=0, count=1):
        """[count, rows, columns]"""
        assert step >= max(rows, 1), "INVALID_VALUE"
        item = np.dtype(ELEMENTS[kind])
        length = (count - 1) * next_one + (columns - 1) * step + rows
        flat = self.world.gpu.read(at, length * item.itemsize).view(item)
        if kind == 14:
            flat = (flat.astype(np.uint32) << 16).view(np.float32)
        strides = [one * flat.itemsize for one in (next_one, 1, step)]
        return np.lib.stride_tricks.as_strided(flat, (count, rows, columns), strides).copy()

    def matrix(self, *given):
        return self.read(*given)[0]

    def put(self, at, matrix, step=None):
        for k, column in enumerate(np.atleast_2d(matrix.T)):
            where = at + k * (step or matrix.shape[0]) * matrix.itemsize
            self.world.gpu.write(where, np.ascontiguousarray(column).view(np.uint8))


def number_at(address, dtype):
    return np.frombuffer(ctypes.string_at(address, np.dtype(dtype).itemsize), dtype)[0]


# --- cuBLAS -----------------------------------------------------------------------------------------------------------

TRSM = "handle side uplo trans diag m n alpha a lda b ldb"


class FakeBlas(Fake):
    """`products` notes (type of the sums, whether a and b are transposed) of each product."""

    SIGNATURES = {
        "get_property": "type",
        "create": "",
        "set_stream": "handle stream_id",
        "set_workspace": "handle workspace workspace_size_in_bytes",
        "gemm_strided_batched_ex": (
            "handle transa transb m n k alpha a atype lda stride_a b btype ldb stride_b beta c ctype ldc stride_c "
            "batch_count compute_type algo"
        ),
        **{f"{letter}trsm": TRSM for letter in "sdcz"},
    }

    def __init__(self, world):
        super().__init__(world)
        self.workspaces, self.products = {}, []

    def on_set_workspace(self, handle, workspace, workspace_size_in_bytes):
        self.workspaces[handle] = workspace

    def on_gemm_strided_batched_ex(
        self, handle, transa, transb, m, n, k, alpha, a, atype, lda, stride_a, b, btype, ldb, stride_b,
        beta, c, ctype, ldc, stride_c, batch_count, compute_type, algo,
    ):  # fmt: skip
        assert handle in self.workspaces and algo == -1 and atype == btype == ctype
        wide = {70: ELEMENTS[atype]}.get(compute_type, np.complex64 if atype == 4 else np.float32)
        scale, keep = (number_at(one, wide) for one in (alpha, beta))
        self.products.append((compute_type, transa, transb))

        def factor(at, turned, rows, columns, *how):
            """It lies the other way round where it is turned."""
            if turned:
                return self.read(at, atype, columns, rows, *how).swapaxes(1, 2).astype(wide)
            return self.read(at, atype, rows, columns, *how).astype(wide)

        def step():
            left = factor(a, transa, m, k, lda, stride_a, batch_count)
            total = scale * (left @ factor(b, transb, k, n, ldb, stride_b, batch_count))
            if keep:
                total = total + keep * factor(c, 0, m, n, ldc, stride_c, batch_count)
            assert ldc == m, "these results lie without gaps"
            flat = total.astype(wide).swapaxes(1, 2).reshape(batch_count, -1)
            if ctype == 14:
                bits = flat.view(np.uint32)
                flat = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
            for one in range(batch_count):
                data = np.ascontiguousarray(flat[one].astype(ELEMENTS[ctype]))
                self.world.gpu.write(c + one * stride_c * data.itemsize, data.view(np.uint8))

        self.later(handle, step)

    def trsm(self, letter, kind, handle, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb):
        assert number_at(alpha, ELEMENTS[kind]) == 1
        self.calls.append(f"{letter}trsm")

        def step():
            size = n if side else m
            factor, right = self.matrix(a, kind, size, size, lda), self.matrix(b, kind, m, n, ldb)
            factor = np.triu(factor) if uplo else np.tril(factor)
            if diag:
                np.fill_diagonal(factor, 1)
            factor = (factor, factor.T, factor.conj().T)[trans]
            found = np.linalg.solve(factor.T, right.T).T if side else scipy.linalg.solve(factor, right)
            self.put(b, found.astype(ELEMENTS[kind]), ldb)

        self.later(handle, step)


for _letter, _kind in {"s": 0, "d": 1, "c": 4, "z": 5}.items():
    setattr(
        FakeBlas, f"on_{_letter}trsm",
        lambda self, letter=_letter, kind=_kind, **named: self.trsm(letter, kind, **named),
    )  # fmt: skip


# --- cuSOLVER ---------------------------------------------------------------------------------------------------------

WORK = "buffer_on_device workspace_in_bytes_on_device buffer_on_host workspace_in_bytes_on_host info"
ASKED = {
    "xpotrf": "uplo n data_type_a a lda compute_type",
    "xgetrf": "m n data_type_a a lda compute_type",
    "xgeqrf": "m n data_type_a a lda data_type_tau tau compute_type",
    "xsyevd": "jobz uplo n data_type_a a lda data_type_w w compute_type",
    "xgesvd": "jobu jobvt m n data_type_a a lda data_type_s s data_type_u u ldu data_type_vt vt ldvt compute_type",
}
GIVEN = {**ASKED, "xgetrf": "m n data_type_a a lda ipiv compute_type"}


class FakeSolver(Fake):
    SIGNATURES = {
        "create": "",
        "create_params": "",
        "set_stream": "handle stream_id",
        **{f"{name}_buffer_size": f"handle params {words}" for name, words in ASKED.items()},
        **{name: f"handle params {words} {WORK}" for name, words in GIVEN.items()},
    }

    def on_create_params(self):
        return 77

    def factor(self, name, handle, params, info, **named):
        assert params == 77
        assert (named["workspace_in_bytes_on_device"], named["workspace_in_bytes_on_host"]) == (96, 24), "as was said"
        self.calls.append(name)

        def step():
            self.world.gpu.write(named["buffer_on_device"], np.zeros(96, np.uint8))  # it is there
            found = getattr(self, f"do_{name}")(**named)
            self.world.gpu.write(info, np.array([found], np.int32).view(np.uint8))

        self.later(handle, step)

    def do_xpotrf(self, uplo, n, data_type_a, a, lda, **_):
        x = self.matrix(a, data_type_a, n, n, lda)
        factor, info = lapack.cholesky(x, bool(uplo))
        beside = np.tril(x, -1) if uplo else np.triu(x, 1)  # which is left alone
        self.put(a, factor + beside)
        return info

    def do_xgetrf(self, m, n, data_type_a, a, lda, ipiv, **_):
        factors, pivots, info = lapack.lu(self.matrix(a, data_type_a, m, n, lda))
        self.put(a, factors)
        self.put(ipiv, pivots.astype(np.int64))
        return info

    def do_xgeqrf(self, m, n, data_type_a, a, lda, tau, **_):
        factors, scales = lapack.geqrf(self.matrix(a, data_type_a, m, n, lda))
        self.put(a, factors)
        self.put(tau, scales)
        return 0

    def do_xsyevd(self, jobz, uplo, n, data_type_a, a, lda, data_type_w, w, **_):
        values, vectors, info = lapack.eigh(self.matrix(a, data_type_a, n, n, lda), bool(uplo), bool(jobz))
        self.put(w, values.astype(ELEMENTS[data_type_w]))
        if jobz:
            self.put(a, vectors)
        return info

    def do_xgesvd(self, jobu, jobvt, m, n, data_type_a, a, lda, data_type_s, s, u, ldu, vt, ldvt, **_):
        assert m >= n and jobu == jobvt, "INVALID_VALUE"
        wanted = chr(jobu)
        x = self.matrix(a, data_type_a, m, n, lda)
        left, values, right, info = lapack.svd(x, wanted == "A", wanted != "N")
        self.put(s, values.astype(ELEMENTS[data_type_s]))
        if wanted != "N":
            self.put(u, left, ldu)
            self.put(vt, right, ldvt)
        self.put(a, np.full_like(x, 7))  # what is left there
        return info


for _name in ASKED:
    setattr(FakeSolver, f"on_{_name}", lambda self, name=_name, **named: self.factor(name, **named))
    setattr(FakeSolver, f"on_{_name}_buffer_size", lambda self, **named: (96, 24))

# --- cuFFT ------------------------------------------------------------------------------------------------------------

NEEDED = 1000  # bytes that each plan wants
KINDS = {  # cuFFT's number, and the dtypes that are read and written
    "c2c": (41, np.complex64, np.complex64),
    "r2c": (42, np.float32, np.complex64),
    "c2r": (44, np.complex64, np.float32),
    "z2z": (105, np.complex128, np.complex128),
    "d2z": (106, np.float64, np.complex128),
    "z2d": (108, np.complex128, np.float64),
}


class FakeFFT(Fake):
    """`done` notes (function, n, batch) of each transform."""

    SIGNATURES = {
        "get_version": "",
        "create": "",
        "destroy": "plan",
        "set_auto_allocation": "plan auto_allocate",
        "make_plan_many64": "plan rank n inembed istride idist onembed ostride odist type batch",
        "set_stream": "plan stream",
        "set_work_area": "plan work_area",
        **{f"exec_{name}": "plan idata odata" for name in KINDS},
        "exec_c2c": "plan idata odata direction",
        "exec_z2z": "plan idata odata direction",
    }

    def __init__(self, world):
        super().__init__(world)
        self.plans, self.areas, self.done = {}, {}, []

    @property
    def made(self):
        return len(self.streams)

    def on_destroy(self, plan):
        del self.plans[plan]

    def on_set_auto_allocation(self, plan, auto_allocate):
        assert auto_allocate == 0 and plan not in self.plans

    def on_make_plan_many64(self, plan, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch):
        if any(size == 23 for size in n):
            raise RuntimeError("CUFFT_INVALID_SIZE")  # as for lengths that it does not have
        assert 1 <= rank == len(n) == len(inembed) == len(onembed) <= 3 and min(*n, batch, istride, ostride) > 0
        self.plans[plan] = n, (inembed, istride, idist), (onembed, ostride, odist), type, batch
        return NEEDED

    def on_set_work_area(self, plan, work_area):
        self.areas[plan] = work_area

    def places(self, sizes, how, batch):
        """[batch, *sizes]: where each number lies."""
        embed, step, next_one = how
        steps = [next_one, *(step * math.prod(embed[d + 1 :]) for d in range(len(sizes)))]
        return sum(
            np.arange(size).reshape(-1, *[1] * (len(sizes) - d)) * one
            for d, (size, one) in enumerate(zip((batch, *sizes), steps, strict=True))
        )

    def transform(self, name, plan, idata, odata, direction=-1):
        kind, of, to = KINDS[name]
        n, before, behind, type, batch = self.plans[plan]
        area = self.areas[plan]
        assert kind == type and direction in (-1, 1)
        assert idata % np.dtype(to if name[0] in "rd" else of).itemsize == 0, "not aligned"
        assert idata != odata or (of is to and before == behind)
        self.done.append((name, n, batch))
        half = (*n[:-1], n[-1] // 2 + 1)

        def step():
            self.world.gpu.write(area, np.zeros(NEEDED, np.uint8))
            places, item = self.places(half if name[2] in "rd" else n, before, batch), np.dtype(of).itemsize
            flat = self.world.gpu.read(idata, (int(places.max()) + 1) * item).view(of)
            x, axes = flat[places], tuple(range(1, 1 + len(n)))
            if name[0] in "rd":
                found = np.fft.rfftn(x, axes=axes)
            elif name[2] in "rd":
                found = np.fft.irfftn(x, n, axes, norm="forward")
                flat[places] = 7  # it is overwritten
                self.world.gpu.write(idata, flat.view(np.uint8))
            else:
                found = np.fft.fftn(x, axes=axes) if direction < 0 else np.fft.ifftn(x, axes=axes, norm="forward")
            found, places = found.astype(to), self.places(half if name[0] in "rd" else n, behind, batch)
            for place, number in zip(places.ravel().tolist(), found.ravel(), strict=True):
                self.world.gpu.write(odata + place * found.itemsize, np.array([number]).view(np.uint8))

        self.later(plan, step)


for _name in KINDS:
    setattr(FakeFFT, f"on_exec_{_name}", lambda self, name=_name, **named: self.transform(name, **named))


@contextmanager
def fake_libraries(monkeypatch, world):
    """`nvmath.bindings` for the driver that is made inside."""
    bindings, cusolver = ModuleType("nvmath.bindings"), ModuleType("cusolver")
    cusolver.get_property = lambda type: 12
    vars(bindings).update(cublas=FakeBlas(world), cusolverDn=FakeSolver(world), cusolver=cusolver, cufft=FakeFFT(world))
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "nvmath", ModuleType("nvmath"))
        patch.setitem(sys.modules, "nvmath.bindings", bindings)
        yield bindings
