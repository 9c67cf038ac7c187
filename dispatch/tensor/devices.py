"""Devices: a type and an index. The dispatcher's backend that serves a type gives the type's tensors their keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch import (
    ARGUMENT_TYPES,
    BACKEND_OF_DEVICE,
    VALUE_CLASSES,
    WITHOUT_MODULE,
    DispatchKey,
    Slot,
    keyset,
    shared,
)

# The names that PyTorch knows, in the order of its error message; those without kernels here fail when used.
DEVICE_TYPES = [
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy",
    "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
]  # fmt: skip

BACKEND_OF_DEVICE |= {
    "cpu": "CPU", "cuda": "CUDA", "hip": "HIP", "xla": "XLA", "mps": "MPS", "ipu": "IPU", "xpu": "XPU", "hpu": "HPU",
    "ve": "VE", "lazy": "Lazy", "mtia": "MTIA", "maia": "MAIA", "privateuseone": "PrivateUse1", "meta": "Meta",
}  # fmt: skip


WITHOUT_MODULE.add("privateuseone")


# (what a `with device(...)` statement does at its start, what at its end)
DEVICE_CONTEXT: Slot[tuple[Callable[[Any], None], Callable[[Any], None]]] = Slot("with device(...)")

_DEVICES: dict[tuple[str, int | None], device] = {}

# how a type may be called -> how it is called: users add types, and rename the one that PyTorch keeps for them
TYPE_NAMED = {name: name for name in DEVICE_TYPES}


class device:
    """Where a tensor's data is: `device("cuda:1")`, `device("cuda", 1)`. Immutable; one object for each device."""

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
    """The keys that a dense tensor on this device type carries, with these lazy bits; an inference tensor's if
    `inference`.

    A tensor made in inference mode has no autograd and no version: neither of these layers is to see it.
    """
    found = _KEYSETS.get((type, inference, bits))
    if found is None:
        backend = BACKEND_OF_DEVICE[type]
        names = [backend]
        if f"Autocast{backend}" in DispatchKey.__members__:
            names.append(f"Autocast{backend}")
        if not inference:
            names += ["ADInplaceOrView", f"Autograd{backend}"]
        found = _KEYSETS[type, inference, bits] = shared(keyset(*names) | bits)
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
