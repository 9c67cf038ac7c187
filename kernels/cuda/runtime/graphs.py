"""CUDA graphs: work that is recorded once, and then given to the device as a whole.

    x = rd.zeros(64, device="cuda")
    graph = rd.cuda.CUDAGraph()
    with rd.cuda.graph(graph):
        y = (x * 2).tanh()      # noted, and not run
    x.copy_(numbers)
    graph.replay()              # y is computed from what x holds now

A replay costs the host one call, however many kernels there are. It reads and writes the addresses of the recording. So
what is made while recording lies in memory that belongs to the graph (memory.py, Note [Pools]); what was made before,
and is read, must be kept by whoever replays. Graphs that are given one `pool` share their memory: they are to be
replayed in the order of their recording, and what one leaves in a tensor that nobody holds any longer may be
overwritten by the next. A `MemPool` is such memory of a program's own, out of which a block makes its tensors.
Read next: frontend/cuda/graphed.py, graph_trees.py.
"""

from __future__ import annotations

import gc
import itertools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any

from redispatch.dispatch.tensor import KINDS, current_index
from redispatch.kernels.ops.generators import Generator

from .. import STREAMS
from .. import current_stream as number_of_current
from .async_errors import late_errors
from .devices import start
from .memory import CachingAllocator, PrivatePools
from .rng_state import CapturedSeed
from .streams import Stream, index_of, synchronize

Handle = tuple[int, int]
_NUMBERS = itertools.count(1)


def graph_pool_handle() -> Handle:
    """A name for memory that graphs share: the `pool` of each of them."""
    return 0, next(_NUMBERS)


def is_current_stream_capturing() -> bool:
    """Whether what is done now on the current device is recorded, and not run."""
    return start().driver.captured(number_of_current(current_index("cuda")))


class CUDAGraph:
    """A recording of one stream's work, and of those that joined it."""

    def __init__(self, keep_graph: bool = False) -> None:
        self._made: Any = None
        self._pools: PrivatePools | None = None
        self._handle: Handle | None = None
        self._where = 0, 0  # device and stream on which it was recorded
        self._may_fail: set[int] = set()  # devices on which its kernels tell of bad indices
        self._registered: list[Generator] = []
        self._seeds: list[CapturedSeed] = []

    def register_generator_state(self, generator: Generator) -> None:
        """Has what is recorded draw from a generator, beside the device's own one. RuntimeError once it is recorded."""
        if self._pools is not None:
            raise RuntimeError("a generator must be registered with a graph before the graph is recorded")
        if generator.device.type != "cuda":
            raise RuntimeError(f"a graph draws from generators of CUDA devices, but got one of {generator.device}")
        self._registered.append(generator)

    def has(self, generator: Generator) -> bool:
        """Whether what is recorded may draw from a generator, or from one with the same state."""
        return any(one.generator._state is generator._state for one in self._seeds)

    def seed_of(self, generator: Generator) -> CapturedSeed:
        """Returns the stand-in of a generator's seed in the recording. RuntimeError for one that is not registered."""
        for one in self._seeds:
            if one.generator._state is generator._state:
                return one
        raise RuntimeError(
            "random numbers were asked for from a generator that the graph which is recorded does not know, so each "
            "replay would draw the same. Call graph.register_generator_state(generator) before it is recorded"
        )

    def capture_begin(self, pool: Handle | None = None, capture_error_mode: str = "global") -> None:
        """Records what the current stream is asked to do from here on.

        Errors: RuntimeError on the default stream, or where the graph has a recording.
        """
        if self._pools is not None:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance."
            )
        if capture_error_mode not in ("global", "thread_local", "relaxed"):
            raise RuntimeError(
                f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {capture_error_mode}"
            )
        index = current_index("cuda")
        stream, running = number_of_current(index), start()
        if stream <= 0:
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to replay them "
                "on the default stream.)"
            )
        own = KINDS["cuda"].generators[index].graphsafe_get_state()
        self._seeds = [CapturedSeed(one.graphsafe_get_state()) for one in (own, *self._registered)]
        running.driver.begin_capture(stream, capture_error_mode)
        running.recorded.append(self)
        self._handle = pool or graph_pool_handle()
        self._pools, self._where = running.allocator.join(self._handle), (index, stream)
        running.allocator.redirect(index, stream, self._pools)
        running.allocator.recording += 1
        self._asked = late_errors(running.driver).exchanged(set())  # what is launched now runs later

    def capture_end(self) -> None:
        """Ends the recording. RuntimeError where something happened that cannot be a part of it."""
        self._end()
        if not start().driver.steps(self._made):
            warnings.warn(
                "The CUDA Graph is empty. This usually means that the graph was attempted to be captured on wrong "
                "device or stream.",
                stacklevel=2,
            )

    def _end(self) -> None:
        if self._pools is None or self._made is not None:
            raise RuntimeError("capture_end() was called without capture_begin()")
        running = start()
        running.recorded.remove(self)
        running.allocator.recording -= 1
        running.allocator.restore(self._pools)
        self._may_fail = late_errors(running.driver).exchanged(self._asked)
        try:
            self._made = running.driver.end_capture(self._where[1])
        except BaseException:
            self.reset()
            raise
        finally:
            running.allocator.settle()

    def abandon(self) -> None:
        """Ends the recording, and drops it: something else went wrong."""
        with suppress(RuntimeError):
            self._end()
        self.reset()

    def replay(self) -> None:
        """Has the current stream do all of it."""
        if self._made is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        driver = start().driver
        if self._may_fail:
            late_errors(driver).asked |= self._may_fail
        for seed in self._seeds:
            seed.begin(number_of_current(self._where[0]))
        driver.replay(self._made, number_of_current(self._where[0]))

    def enable_debug_mode(self) -> None:
        """Has `debug_dump` be possible, which it is not. Nothing depends on it."""

    def debug_dump(self, debug_path: str) -> None:
        """NotImplementedError: a recording is not written to a file."""
        raise NotImplementedError(
            "a recorded graph cannot be written to a file. On the null device (REDISPATCH_CUDA=null) a replay notes "
            "its launches: redispatch.kernels.cuda.driver().launched"
        )

    def pool(self) -> Handle:
        """Returns the `pool` by which other graphs share its memory."""
        if self._handle is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self._handle

    def reset(self) -> None:
        """Drops the recording. Its memory is everybody's, once no other graph shares it and no tensor lies there."""
        pools, self._pools, self._made = self._pools, None, None
        if pools is not None and self._handle is not None:
            pools.allocator.leave(self._handle)
        self._handle, self._seeds = None, []

    def __del__(self) -> None:
        self.reset()


class graph:
    """`with graph(g):` records what is done inside, on a stream of its own, as the graph `g`."""

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: Handle | None = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
    ) -> None:
        self.cuda_graph, self.pool, self.capture_error_mode = cuda_graph, pool, capture_error_mode
        self.capture_stream = stream or side_stream()

    def __enter__(self) -> None:
        synchronize()
        gc.collect()  # what goes while recording could not be given back
        start().allocator.empty_cache()
        self.capture_stream.__enter__()
        try:
            self.cuda_graph.capture_begin(pool=self.pool, capture_error_mode=self.capture_error_mode)
        except BaseException:
            self.capture_stream.__exit__(None, None, None)
            raise

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if error is None:
                self.cuda_graph.capture_end()
            else:
                self.cuda_graph.abandon()
        finally:
            self.capture_stream.__exit__(kind, error, trace)


def side_stream() -> Stream:
    """The stream for recordings, on the current device and of the devices that there are now."""
    running, index = start(), current_index("cuda")
    found = running.side_streams.get(index)
    if found is None:
        found = running.side_streams[index] = Stream(index)
    return found


@contextmanager
def warming_up() -> Iterator[None]:
    """A block whose work goes to the stream for recordings, in its turn, and is run."""
    stream, before = side_stream(), Stream(_number=number_of_current(current_index("cuda")))
    stream.wait_stream(before)
    with stream:
        yield
    before.wait_stream(stream)


def memory_of(handle: Handle) -> PrivatePools:
    """The memory that a handle names. KeyError where no graph uses it."""
    found: CachingAllocator = start().allocator
    return found.private[handle]


class MemPool:
    """Memory apart from everybody's, for `use_mem_pool`, and for the `pool` of graphs by its `id`.

    Errors: NotImplementedError for an allocator of the program's own: memory comes from the driver.
    """

    def __init__(self, allocator: Any = None, use_on_oom: bool = False) -> None:
        if allocator is not None or use_on_oom:
            raise NotImplementedError("MemPool has its memory from the driver: leave `allocator` and `use_on_oom` out")
        self.id: Handle = graph_pool_handle()
        self._allocator = start().allocator
        self._pools = self._allocator.join(self.id)

    def use_count(self) -> int:
        """The number of its users: this object, and graphs."""
        return self._pools.users

    def __del__(self) -> None:
        if hasattr(self, "_pools"):
            self._allocator.leave(self.id)


@contextmanager
def use_mem_pool(pool: MemPool, device: Any = None) -> Iterator[None]:
    """A block whose tensors, on the current stream of a device, lie in a pool."""
    index = index_of(device)
    stream = number_of_current(index)
    token = STREAMS.set({**STREAMS.get(), index: stream})  # where none was chosen, nobody looks for another pool
    pool._allocator.redirect(index, stream, pool._pools)
    try:
        yield
    finally:
        pool._allocator.restore(pool._pools)
        STREAMS.reset(token)
