"""Memory that processes share: `share_memory_` moves the bytes of a storage there.

A child made by `fork` sees what its parent writes, and the other way round. A tensor that is put into a queue of
`multiprocessing` travels as a file descriptor, and the process that gets it maps the same pages; what is not shared
travels as a copy. The memory is a file without a name, so it goes when the last process lets go of it, whatever way
that process ends: there is nothing to clean up.

Read next: storage.py.
"""

from __future__ import annotations

import mmap
import os
import weakref
from typing import Any

import numpy as np

from .storage import BYTE, UntypedStorage


def anonymous_file(nbytes: int) -> int:
    """The descriptor of a file that has no name and this size; in memory where the system can."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("redispatch")
    else:
        from tempfile import mkstemp  # here, because it takes long to import, and few systems need it

        descriptor, path = mkstemp()
        os.unlink(path)
    os.ftruncate(descriptor, nbytes)
    return descriptor


def map_file(storage: UntypedStorage, descriptor: int, nbytes: int) -> None:
    """Makes the first bytes of a file those of a storage, which from now on owns the descriptor."""
    pages = mmap.mmap(descriptor, max(nbytes, 1))
    storage.take(np.frombuffer(pages, BYTE)[:nbytes])
    storage.descriptor = descriptor
    storage.resizable = False
    weakref.finalize(storage, os.close, descriptor).atexit = False  # the system closes it then


def share_memory_(self: UntypedStorage) -> UntypedStorage:
    """Moves the bytes to where other processes can see them; all tensors over the storage come along.

    Errors: RuntimeError for a storage that is not in the CPU's memory.
    """
    if self.is_shared():
        return self
    if self.device.type != "cpu" or not self.has_data:
        raise RuntimeError("_share_fd_: only available on CPU")
    register()
    former = self.read()
    descriptor = anonymous_file(max(len(former), 1))
    map_file(self, descriptor, len(former))
    self.write(former)
    return self


def new_shared(nbytes: int) -> UntypedStorage:
    """A shared storage of zeros."""
    register()
    storage = UntypedStorage(0)
    map_file(storage, anonymous_file(max(nbytes, 1)), nbytes)
    return storage


# --- between processes ------------------------------------------------------------------------------------------------


def register() -> None:
    """Tells multiprocessing how a storage travels, once something is shared."""
    from multiprocessing.reduction import ForkingPickler  # here, because few programs need it

    ForkingPickler.register(UntypedStorage, reduce_shared)


def reduce_shared(storage: UntypedStorage) -> Any:
    """A descriptor for shared memory, which only multiprocessing can hand over; what pickle keeps for other memory."""
    from multiprocessing.reduction import DupFd  # here, because few programs need it

    if storage.descriptor is None:
        return storage.__reduce__()
    return received, (DupFd(storage.descriptor), storage.nbytes())


def received(handle: Any, nbytes: int) -> UntypedStorage:
    """The storage over the memory that another process has sent."""
    register()
    storage = UntypedStorage(0)
    map_file(storage, handle.detach(), nbytes)
    return storage


UntypedStorage.share_memory_ = share_memory_  # type: ignore[attr-defined]  # attached here
UntypedStorage._new_shared = staticmethod(new_shared)  # type: ignore[attr-defined]  # attached here
