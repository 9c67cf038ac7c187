"""MemPool: memory of a program's own, out of which a block makes its tensors. Read graphs.py, which do the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from redispatch.kernels.cuda import STREAMS, current_stream

from .devices import start
from .graphs import Handle, graph_pool_handle
from .streams import index_of


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
        """How many use it: this object, and graphs."""
        return self._pools.users

    def __del__(self) -> None:
        if hasattr(self, "_pools"):
            self._allocator.leave(self.id)


@contextmanager
def use_mem_pool(pool: MemPool, device: Any = None) -> Iterator[None]:
    """A block whose tensors, on the current stream of a device, lie in a pool."""
    index = index_of(device)
    stream = current_stream(index)
    token = STREAMS.set({**STREAMS.get(), index: stream})  # where none was chosen, nobody looks for another pool
    pool._allocator.redirect(index, stream, pool._pools)
    try:
        yield
    finally:
        pool._allocator.restore(pool._pools)
        STREAMS.reset(token)
