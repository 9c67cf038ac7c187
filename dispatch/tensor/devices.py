"""Devices: a type and an index. The dispatcher's backend that serves a type gives the type's tensors their keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from redispatch.dispatch import (
    ARGUMENT_TYPES,
    BACKEND_OF_DEVICE,
    LAZY_BITS,
    VALUE_CLASSES,
    WITHOUT_MODULE,
    DispatchKey,
    Slot,
    key_of_device,
    keyset,
    shared,
)

from ..records import dataclass

# The names that PyTorch knows, in the order of its error message; those without kernels here fail when used.
DEVICE_TYPES = [
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy",
    "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
]  # fmt: skip

BACKEND_OF_DEVICE |= {
    "cpu": "CPU", "cuda": "CUDA", "hip": "HIP", "xla": "XLA", "mps": "MPS", "ipu": "IPU", "xpu": "XPU", "hpu": "HPU",
    "ve": "VE", "lazy": "Lazy", "mtia": "MTIA", "maia": "MAIA", "privateuseone": "PrivateUse1", "meta": "Meta",
    "fpga": "FPGA", "vulkan": "Vulkan",
}  # fmt: skip


WITHOUT_MODULE |= {"privateuseone", "hpu"}


# (what a `with device(...)` statement does at its start, what at its end)
DEVICE_CONTEXT: Slot[tuple[Callable[[Any], None], Callable[[Any], None]]] = Slot("with device(...)")

_DEVICES: dict[tuple[str, int | None], device] = {}

# how a type may be called -> how it is called: users add types, and rename the one that PyTorch keeps for them
TYPE_NAMED = {name: name for name in DEVICE_TYPES}


class device:
    """The place of a tensor's data: `device("cuda:1")`, `device("cuda", 1)`. Immutable; one object for each device."""

    __module__ = "redispatch"  # where users find it

    __slots__ = ("type", "index")
    type: str
    index: int | None

    def __new__(cls, type: Any, index: int | None = None) -> device:
        if isinstance(type, device):
            if index is not None:
                raise TypeError("device(): an index cannot be given beside a device, which has its own")
            return type
        if isinstance(type, int):
            type, index = "cuda", type
        if not isinstance(type, str):
            raise TypeError(f"device(): argument 'type' (position 1) must be str, not {_type_name(type)}")
        if not type:
            raise RuntimeError("Device string must not be empty")
        name, colon, number = type.partition(":")
        if colon and index is not None:
            raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {type}")
        if name not in TYPE_NAMED:
            own = [own for own in TYPE_NAMED if own not in DEVICE_TYPES]
            raise RuntimeError(
                f"Expected one of {', '.join(DEVICE_TYPES + own)} device type at start of device string: {name}"
            )
        name = TYPE_NAMED[name]
        if colon:
            if not number.isdigit() or (len(number) > 1 and number[0] == "0"):
                raise RuntimeError(f"Invalid device string: '{type}'")
            index = int(number)
        found = _DEVICES.get((name, index))
        if found is None:
            if index is not None and index < 0:
                raise RuntimeError("Device index must not be negative")
            made = object.__new__(cls)
            object.__setattr__(made, "type", name)
            object.__setattr__(made, "index", index)
            found = _DEVICES.setdefault((name, index), made)  # another thread may have made it meanwhile
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")

    def __enter__(self) -> device:
        """From here on, tensors are made on this device where a call names none."""
        DEVICE_CONTEXT()[0](self)
        return self

    def __exit__(self, *error: Any) -> None:
        DEVICE_CONTEXT()[1](self)

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.type, self.index)


def _type_name(value: Any) -> str:
    return type(value).__name__


def add_device_type(name: str, backend: str) -> Callable[[], None]:
    """Has devices of the type `name` be served by that backend of the dispatcher; returns what takes it back.

    Errors: RuntimeError where there is such a type, ValueError for what is no name.
    """
    if name in TYPE_NAMED:
        raise RuntimeError(f"there is a device type {name!r} already")
    if not name.isidentifier():
        raise ValueError(f"{name!r} cannot be the name of a device type: Tensor.is_{name} could not be written")
    TYPE_NAMED[name], BACKEND_OF_DEVICE[name] = name, backend

    def undo() -> None:
        del TYPE_NAMED[name], BACKEND_OF_DEVICE[name]
        forget_type(name)

    return undo


def rename_device_type(name: str, new: str) -> Callable[[], None]:
    """Has devices of the type `name` be called `new`; the former name is understood, too."""
    undo = add_device_type(new, BACKEND_OF_DEVICE[name])
    TYPE_NAMED[name] = new
    if name in WITHOUT_MODULE:
        WITHOUT_MODULE.add(new)
    for (kind, index), known in list(_DEVICES.items()):
        if kind == name:
            object.__setattr__(known, "type", new)
            _DEVICES[new, index] = _DEVICES.pop((kind, index))

    def undo_both() -> None:
        TYPE_NAMED[name] = name
        WITHOUT_MODULE.discard(new)
        undo()

    return undo_both


def forget_type(name: str) -> None:
    """Drops the devices of a type that is no more, and with them what others know by them: its keys may change."""
    for pair in [pair for pair in _DEVICES if pair[0] == name]:
        del _DEVICES[pair]
    for triple in [triple for triple in _KEYSETS if triple[0] == name]:
        del _KEYSETS[triple]


CPU = device("cpu")
META = device("meta")

_KEYSETS: dict[tuple[str, bool, int], int] = {}


def device_keyset(type: str, inference: bool = False, bits: int = 0) -> int:
    """The keys that a dense tensor on this device type carries, with these bits: lazy ones, and on the CPU those of its
    dtype. An inference tensor's if `inference`.

    A tensor made in inference mode has no autograd and no version: neither of these layers is to see it.
    """
    found = _KEYSETS.get((type, inference, bits))
    if found is None:
        backend = key_of_device(type).name
        names = [f"Quantized{backend}" if type == "cpu" and bits & keyset("QuantizedCPU") else backend]
        if f"Autocast{backend}" in DispatchKey.__members__:
            names.append(f"Autocast{backend}")
        if not inference:
            autograd = f"Autograd{backend}"
            names += ["ADInplaceOrView", autograd if autograd in DispatchKey.__members__ else "AutogradOther"]
        found = _KEYSETS[type, inference, bits] = shared(keyset(*names) | (bits if type == "cpu" else bits & LAZY_BITS))
    return found


def as_device(value: Any) -> device:
    """A device from what a schema's Device argument accepts: a device, its name, an index."""
    if isinstance(value, device):
        return value
    return (_NAMED.get(value) if type(value) is str else None) or device(value)


_NAMED = {
    "cpu": CPU,
    "meta": META,
    "cuda": device("cuda"),
}  # most names that are given: taking a name apart takes longer


ARGUMENT_TYPES["Device"], VALUE_CLASSES["Device"] = as_device, device


# Kinds of devices that users bring: where their memory comes from, and which device of the kind is the current one ----
#
# A `DeviceKind` stands in `KINDS` under the name of its type. Its `Allocator` is all that the library asks of memory
# that is not the CPU's: to get it, to give it back, and to copy bytes between it and the CPU. A kind without an
# allocator has tensors whose memory is known to their own kernels alone.


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
    """The way of a kind of device's tensors to other libraries: the kind's code, and what makes a tensor's capsule, for
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
    take: Callable[[Any], Any] | None = None  # makes a new tensor of the CPU, nobody else's, one of the device
    spaced: Callable[..., None] | None = None  # writes evenly spaced numbers (kernels/ops/creation.py, `spaced`)


KINDS: dict[str, DeviceKind] = {}

# device -> what makes a storage of so many bytes there, where an allocator has a shorter way to do that.
MAKERS: dict[device, Callable[[int], Any]] = {}

# device -> what makes the array of a fresh tensor there, of so many elements of a numpy type; for devices whose tensors
# have arrays, as the CPU's do.
ARRAYS: dict[device, Callable[[int, Any], Any]] = {}

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
