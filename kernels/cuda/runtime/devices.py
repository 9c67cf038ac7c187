"""start(): has the driver's devices be devices of the library. What it registers, `Started.remove` takes back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from redispatch.dispatch import Library, MissingKernelError, OpOverload, impl, place_of
from redispatch.dispatch.tensor import KINDS, MAKERS, DeviceKind, DLPack, Tensor, device, overridable
from redispatch.kernels.cuda import current_stream, driver, why_not
from redispatch.kernels.cuda.ops.copying import spaced_on_device
from redispatch.kernels.cuda.ops.matrices import or_library
from redispatch.kernels.declare.declare import declarations
from redispatch.kernels.declare.pointwise import DECLARED, Pointwise
from redispatch.kernels.ops.creation import CONSTANTS
from redispatch.kernels.ops.device_memory import memory_kernels
from redispatch.kernels.ops.distances import cdist_backward_kernel, pdist_backward_kernel
from redispatch.kernels.ops.from_fold import FOLDS
from redispatch.kernels.ops.generators import RECORDINGS, Generator, Recording, generator_at, seed_of_all
from redispatch.kernels.ops.matrices import check_errors_kernel
from redispatch.kernels.ops.reductions import Reduced

from . import copies
from .async_errors import late_errors
from .cpu_kernels import on_device, served, through_host
from .launch_plan import Recorded, is_recorded
from .launch_recorder import taken
from .memory import Block, CachingAllocator
from .operands import block_of
from .pinned import PinnedBlock, PinnedCache
from .pointwise import PointwiseOnCUDA, ReductionOnCUDA
from .structured import DEFINED, apart_from_target, kernel_of, operator

KEY = "CUDA"
CODE = 2  # DLPack's, of CUDA devices
MEMORY: dict[str, Callable[..., Any]] = {
    "_copy_from": copies.copy_from_kernel,
    "copy_": copies.copy_kernel,
    "fill_.Scalar": copies.fill_kernel,
    "fill_.Tensor": copies.fill_tensor_kernel,
    "zero_": copies.zero_kernel,
    "conj_physical_": copies.conj_physical_inplace_kernel,
    "_local_scalar_dense": copies.item_kernel,
    "equal": copies.equal_kernel,
    "_linalg_check_errors": check_errors_kernel,
}
KERNELS: dict[str, Callable[..., Any]] = {
    "_cdist_backward": cdist_backward_kernel,
    "_pdist_backward": pdist_backward_kernel,
}
for _name, _kernel in KERNELS.items():
    kernel_of(_name)(_kernel)
_LOCK = threading.RLock()
_started: Started | None = None


class NoCUDAError(AssertionError, RuntimeError):
    """There is no CUDA device. PyTorch raises AssertionError where it was built without CUDA, and RuntimeError where it
    finds no driver."""


def start() -> Started:
    """Registers the devices, once. NoCUDAError where there is none."""
    global _started
    with _LOCK:
        if _started is None:
            found = driver()
            if found is None:
                raise NoCUDAError(f"Torch not compiled with CUDA enabled: {why_not()}.")
            _started = Started(found)
        return _started


def started() -> Started | None:
    """Returns the devices that `start` made, if it was called."""
    return _started


def stands_for(generator: Generator, count: int) -> tuple[int, int] | None:
    """Returns the stand-ins of seed and offset on a tape (launch_recorder.py), or in a graph (rng_state.py)."""
    on_tape = taken(generator, count)
    running = started()
    if on_tape is not None or running is None or not running.recorded:
        return on_tape
    if not running.driver.captured(current_stream(generator.device.index or 0)):
        return None
    return running.recorded[-1].seed_of(generator).take(count)


def check_recorded(generator: Generator, what: str) -> None:
    """RuntimeError where the generator is one of a graph that is being recorded. Its state may be set as long as
    nothing was drawn from it."""
    running = started()
    graphs = [] if running is None else [graph for graph in running.recorded if graph.has(generator)]
    if any(what != "set_state" or graph.seed_of(generator).used for graph in graphs):
        raise RuntimeError(
            f"Cannot call {what} of a CUDA generator while a graph is recorded that draws from it: what it draws is "
            "decided when it is replayed"
        )


class Started:
    """The devices of a driver, registered."""

    def __init__(self, found: Any) -> None:
        self.driver = found
        self.allocator, self.pinned = CachingAllocator(found), PinnedCache(found)
        self.side_streams: dict[int, Any] = {}  # by device: those on which graphs are recorded
        self.undo: list[Callable[[], None]] = []
        self.served: set[int] = set()  # the pointwise operators and users' reductions that have kernels, by id
        kind = KINDS["cuda"] = DeviceKind("cuda", self.allocator, found.count)
        kind.dlpack, kind.copy = DLPack(CODE, to_dlpack), copies.copy_on_device
        kind.fill, kind.spaced = copies.fill_on_device, spaced_on_device
        self.undo.append(lambda: KINDS.__delitem__("cuda"))
        for on in (device("cuda", i) for i in range(found.count)):
            MAKERS[on] = self.allocator.maker(on)
            self.undo.append(lambda on=on: MAKERS.__delitem__(on))  # type: ignore[misc]  # mypy gives up on a default argument
        self.recorded: list[Any] = []  # the graphs that are being recorded
        RECORDINGS["cuda"] = Recording(stands_for, check_recorded)
        self.undo.append(lambda: RECORDINGS.__delitem__("cuda"))
        at_first = {i: generator_at(seed_of_all(), 0, device("cuda", i)) for i in range(found.count)}
        kind.generators.update(at_first)
        self.undo += [copies.READY.clear, copies.TABLES.clear, CONSTANTS.clear]
        self._methods()
        for name, function in {**memory_kernels("cuda"), **MEMORY}.items():
            self._put(operator(name), function, "memory")
        for one in DEFINED:  # which the files of `ops` have filled
            for form, kernel in one.forms():
                (self._record if one.recorded else self._put)(form, kernel, one.title)
        for reduced in declarations():
            if isinstance(reduced, Reduced):
                self._reduce(reduced)
        self.serve_declared()
        for overload, function in through_host():
            self._put(overload, apart_from_target(or_library(overload, function)), f"by the CPU: {overload.name()}")
        for overload, kernel in [*served()]:
            title = overload.qualified_name.removeprefix("aten::").partition(".")[0]
            self._record(overload, on_device(kernel, title), f"on the device: {title}")
        self.undo.append(late_errors(found).remove)
        fallbacks = Library("_", "IMPL", KEY)
        fallbacks.fallback(self.without_kernel)
        self.undo.append(fallbacks._destroy)

    def _methods(self) -> None:
        """Methods that mean something else where there is a device."""
        former = vars(Tensor)["record_stream"]  # which says that there are no streams
        setattr(Tensor, "record_stream", overridable(record_stream))  # noqa: B010  # mypy knows no such method
        self.undo.append(lambda: setattr(Tensor, "record_stream", former))

    def _put(self, op: OpOverload, function: Callable[..., Any], name: str) -> None:
        self.undo.append(impl(op, KEY, function, convention="positional", place=place_of(function), name=name))

    def _record(self, op: OpOverload, kernel: Callable[..., Any], name: str) -> None:
        """Puts a kernel that decides anew each time, and records what it launches for arguments of such metadata."""
        if is_recorded(op):
            recorded = Recorded(op, kernel)
            self.undo.append(recorded.forget)
            kernel = recorded.run
        self._put(op, kernel, name)

    def serve_declared(self) -> bool:
        """Gives kernels to pointwise operators and users' reductions that have none yet; whether there were any."""
        fresh = [op for op in DECLARED if id(op) not in self.served]
        for op in fresh:
            self.serve(op)
        folds = [op for op in FOLDS if id(op) not in self.served]
        for fold in folds:
            self.served.add(id(fold))
            self._reduce(fold)
        return bool(fresh or folds)

    def _reduce(self, op: Reduced) -> None:
        for form, kernel in ReductionOnCUDA(op).forms():
            self._record(form, kernel, f"reduction {op.base_name}")

    def serve(self, op: Pointwise) -> None:
        self.served.add(id(op))
        self.undo.append(op.forget_plans)  # they hold launches of the driver that there was
        for form, kernel in PointwiseOnCUDA(op).forms():
            self._put(form, kernel, f"pointwise {op.base_name}")

    def without_kernel(self, op: OpOverload, *args: Any, **kwargs: Any) -> Any:
        """Answers for operators without a kernel: with an error, unless it was declared since and can have one now."""
        if self.serve_declared():
            return op(*args, **kwargs)
        raise MissingKernelError(
            f"{op.name()} has no CUDA kernel yet. Copy its tensors to the CPU by .cpu() before, and the result back by "
            ".cuda(); docs/cuda.md lists what there is",
            op,
            KEY,
        )

    def remove(self) -> None:
        """Takes all of it back. Tensors on the devices are of no use then."""
        global _started
        while self.undo:
            self.undo.pop()()
        if _started is self:
            _started = None


def record_stream(self: Tensor, stream: Any) -> None:
    """Says that a stream uses the tensor's memory: it is not given to another tensor before the stream has gone on."""
    block = block_of(self)
    if isinstance(block, Block) and stream.number != block.stream:
        block.used_by = {*(block.used_by or ()), stream.number}


def pinned(nbytes: int) -> PinnedBlock | None:
    """Pinned memory, where there is a device that would read it."""
    return None if driver() is None else start().pinned.allocate(nbytes)


def to_dlpack(x: Tensor, stream: Any, max_version: Any) -> Any:
    """A capsule around a tensor's memory."""
    from .interop import to_dlpack as export  # here, because few programs need it, and it imports ctypes

    return export(x, stream, max_version)
