"""Kinds of devices that users bring: where their memory comes from, and which device of the kind is the current one.

A `DeviceKind` stands in `KINDS` under the name of its type. Its `Allocator` is all that the library asks of memory that
is not the CPU's: to get it, to give it back, and to copy bytes between it and the CPU. A kind without an allocator has
tensors whose memory is known to their own kernels alone.

Read next: storage.py, and frontend/backend/register.py, which fills the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from .devices import device


class Allocator:
    """The memory of a kind of device. Subclasses say what a block of it is: an address, a handle, an array.

    Errors: what the methods raise goes to whoever asked for the memory; RuntimeError where there is too little.

    returning: whether blocks go back by themselves when nobody holds them, so that storages need not see to it, which
        would take 2 us for each.
    """

    returning = False

    def allocate(self, nbytes: int, device: device) -> Any:
        """A block of that many bytes of undefined value."""
        raise NotImplementedError(f"{type(self).__name__} has no allocate(nbytes, device)")

    def free(self, block: Any) -> None:
        """Takes a block back that no storage holds any longer."""

    def read(self, block: Any, nbytes: int) -> Any:
        """The first bytes of a block, as any object with the buffer protocol; a copy, or what nobody writes."""
        raise NotImplementedError(f"{type(self).__name__} has no read(block, nbytes)")

    def write(self, block: Any, data: np.ndarray) -> None:
        """Puts bytes (a flat array of uint8) at the beginning of a block."""
        raise NotImplementedError(f"{type(self).__name__} has no write(block, data)")

    def address(self, block: Any) -> int:
        """Returns the `data_ptr` of a block."""
        return block if isinstance(block, int) else id(block)


class DLPack(NamedTuple):
    """How tensors of a kind of device go to other libraries: the kind's code, and what makes a capsule of a tensor, for
    a stream of the consumer's and the greatest version that it understands."""

    code: int
    export: Callable[[Any, Any, Any], Any]


@dataclass(slots=True, eq=False)
class DeviceKind:
    """A device type of a user's: its name, its allocator, how many devices there are."""

    name: str
    allocator: Allocator | None = None
    count: int = 1
    generators: dict[int, Any] = field(default_factory=dict)  # index -> the default generator of that device
    dlpack: DLPack | None = None  # where other libraries may use its memory
    copy: Callable[[Any, Any], None] | None = None  # writes a tensor of a device into a new one of the same device
    fill: Callable[[Any, Any], None] | None = None  # writes a number into every place of a new one
    spaced: Callable[..., None] | None = None  # writes evenly spaced numbers (kernels/ops/creation.py, `spaced`)


KINDS: dict[str, DeviceKind] = {}

# device -> what makes a storage of so many bytes there, where an allocator has a shorter way to do that.
MAKERS: dict[device, Callable[[int], Any]] = {}

# What makes tensors over the memory of other libraries' objects: by the name of a protocol, or by DLPack's code of the
# kind of device; a capsule without an object has the code 0.
FOREIGN: dict[str | int, Callable[[Any], Any]] = {}

# device type -> what makes its devices usable when one is first asked for. It raises where there are none.
STARTERS: dict[str, Callable[[], object]] = {}

# device type -> the index of the device that this thread or task has chosen; 0 where it has chosen none
_CURRENT: ContextVar[Mapping[str, int]] = ContextVar("current devices", default=MappingProxyType({}))


def current_index(kind: str) -> int:
    """The index of the current device of that type."""
    return _CURRENT.get().get(kind, 0)


def set_current_index(kind: str, index: int) -> None:
    """Chooses another one, in this thread or task. RuntimeError where there is none of that index."""
    _CURRENT.set({**_CURRENT.get(), kind: indexed(device(kind, index)).index or 0})


def indexed(on: device) -> device:
    """The device with an index: of a user's kind, that of the current one where it has none.

    Errors: RuntimeError for a device that the kind does not have.
    """
    kind = KINDS.get(on.type)
    if kind is None:
        return on
    if on.index is None:
        return device(on.type, current_index(on.type))
    if on.index >= kind.count:
        raise RuntimeError(f"{on} was asked for, but there {devices_of(kind)}: invalid device ordinal")
    return on


def devices_of(kind: DeviceKind) -> str:
    return f"is one {kind.name} device" if kind.count == 1 else f"are {kind.count} {kind.name} devices"
