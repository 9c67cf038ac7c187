"""Generators of random numbers, and the default one of each device.

The CPU's is PyTorch's, a Mersenne twister (kernels/cpu/twister.py): a seed gives the same numbers there as here, one
after another. Those of other devices, and of `Generator(kind="philox")`, are a seed and an offset. Element i of a fill
then is a function of (seed, offset, i) alone (kernels/cpu/random.py), and a fill moves the offset on, under a lock, by
the blocks of numbers that it may use. With either, two threads that share a generator never draw the same numbers, and
a seed gives the same ones on any number of threads.

Read next: draws.py, how a tensor is filled.
"""

from __future__ import annotations

import contextlib
import os
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from redispatch import kernels
from redispatch.dispatch import ARGUMENT_TYPES, VALUE_CLASSES
from redispatch.dispatch.tensor import (
    CPU,
    KINDS,
    Size,
    Tensor,
    as_device,
    as_numpy,
    device,
    dtypes,
    empty_from,
    indexed,
    output_spec,
)
from redispatch.kernels import Twister

_STATE = struct.Struct("<QQ")
_DEFAULT_SEED = 67280421310721
_MASK = 2**64 - 1


class State:
    """The position of a generator, or of several: a seed, and how many blocks of numbers were taken."""

    def __init__(self, seed: int = _DEFAULT_SEED, offset: int = 0) -> None:
        self.seed, self.offset, self.lock = seed, offset, threading.Lock()

    SIZE = _STATE.size

    def restart(self, seed: int) -> None:
        self.seed, self.offset = seed, 0

    def pack(self) -> bytes:
        with self.lock:
            return _STATE.pack(self.seed, self.offset)

    def pack_into(self, packed: np.ndarray) -> None:
        packed[:] = np.frombuffer(self.pack(), np.uint8)

    def unpack(self, state: Any) -> None:
        with self.lock:
            self.seed, self.offset = _STATE.unpack(state)


STATES: dict[str, Any] = {"philox": State, "mt19937": Twister}
PACKED = {kind: output_spec(Size((kind.SIZE,)), dtypes.uint8) for kind in STATES.values()}


class Recording(NamedTuple):
    """Answers of a kind of devices about its generators while work is recorded, to be run later.

    take: what stands for seed and offset of so many blocks; None where nothing is recorded. check: raises for what may
    not be done to a generator meanwhile, by its name.
    """

    take: Callable[[Generator, int], tuple[int, int] | None]
    check: Callable[[Generator, str], None]


RECORDINGS: dict[str, Recording] = {}  # by type of device


class Generator:
    """A source of random numbers: `Generator().manual_seed(0)`. Threads may share it.

    kind: "mt19937", whose numbers are PyTorch's, on the CPU alone; or "philox", whose numbers go by position. The
    default is that of the device.
    Errors: RuntimeError for a device that is neither the CPU nor a user's: no other draws numbers. ValueError for a
    kind that the device has not.
    """

    __module__ = "redispatch"  # where users find it

    def __init__(self, device: Any = CPU, *, kind: str | None = None) -> None:
        on = indexed(as_device(device))
        kind = kind or ("mt19937" if on.type == "cpu" else "philox")
        if on.type != "cpu" and on.type not in KINDS:
            raise RuntimeError(
                f"Cannot get a generator for device type {on.type}: the CPU has one here, and so have devices "
                "registered by backend.register."
            )
        if kind not in STATES or (kind != "philox" and on.type != "cpu"):
            raise ValueError(f"Expected a kind of generator that device type {on.type} has, got {kind!r}")
        self.device, self.kind = on, kind
        self._state = STATES[kind](_DEFAULT_SEED)

    def take(self, count: int) -> tuple[Any, int]:
        """(seed, offset) of the next `count` blocks, which are then used up; of a twister itself, for the seed."""
        if isinstance(self._state, Twister):
            return self._state, 0
        recording = RECORDINGS.get(self.device.type)
        if recording is not None:
            stands = recording.take(self, count)
            if stands is not None:
                return stands
        state = self._state
        with state.lock:
            offset = state.offset
            state.offset = (offset + count) & _MASK
            return state.seed, offset

    def position(self, count: int) -> tuple[int, int]:
        """(seed, offset) as `take` gives it, for numbers that go by position; of a twister a word is the seed."""
        state, offset = self.take(count)
        return (state.word() if isinstance(state, Twister) else state), offset

    def _check(self, what: str) -> None:
        recording = RECORDINGS.get(self.device.type)
        if recording is not None:
            recording.check(self, what)

    def manual_seed(self, seed: int) -> Generator:
        """Starts over from a seed. ValueError for one that takes more than 64 bits."""
        seed = int(seed)
        if not -(2**63) <= seed < 2**64:
            raise ValueError("Overflow when unpacking long long")
        self._check("manual_seed")
        with self._state.lock:
            self._state.restart(seed & _MASK)
        return self

    def initial_seed(self) -> int:
        """The seed from which the present numbers come."""
        return self._state.seed

    def seed(self) -> int:
        """Starts over from a seed that the operating system chooses, and returns it."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self._state.seed

    def get_state(self) -> Tensor:
        """The state as a tensor of bytes: of a twister the 5,056 that PyTorch's has, else seed and offset."""
        state = empty_from(PACKED[type(self._state)])
        self._state.pack_into(state._array)
        return state

    def set_state(self, new_state: Tensor) -> Generator:
        """Continues where `get_state` was called. Errors: TypeError or RuntimeError for what is no state."""
        if not isinstance(new_state, Tensor) or new_state._dtype is not dtypes.uint8 or new_state._array is None:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if new_state._shape.numel() != self._state.SIZE:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {self._state.SIZE} but found the input RNG state size to be "
                f"{new_state._shape.numel()}"
            )
        self._check("set_state")
        self._state.unpack(bytes_of(new_state))
        return self

    def graphsafe_get_state(self) -> Generator:
        """A generator that has the same state, and goes on with this one: what `graphsafe_set_state` takes.

        Errors: NotImplementedError on devices that record no graphs.
        """
        self._check_graphs("graphsafe_get_state")
        shared = Generator(self.device, kind=self.kind)
        shared._state = self._state
        return shared

    def graphsafe_set_state(self, state: Generator) -> Generator:
        """Has this generator go on with the state of another one, which both have from here on."""
        self._check_graphs("graphsafe_set_state")
        if not isinstance(state, Generator):
            raise TypeError(f"expected a Generator, but got {type(state).__name__}")
        self._state = state._state
        return self

    def _check_graphs(self, what: str) -> None:
        if self.device.type not in RECORDINGS:
            raise NotImplementedError(f"{what} is not supported in this Generator")

    def clone_state(self) -> Generator:
        """Another generator that will draw the same numbers."""
        return _revived(self.device, self.kind, self._state.pack())

    def __reduce__(self) -> Any:
        return _revived, (self.device, self.kind, self._state.pack())


def bytes_of(state: Tensor) -> np.ndarray:
    """Returns the elements of a tensor of bytes, one after the other."""
    array: Any = state._array
    if state._stride == (1,):
        at = state._offset
        return array[at : at + state._shape[0]]
    return np.ascontiguousarray(as_numpy(state))


class LentGenerator(Generator):
    """Another device's generator, for kernels of the CPU that draw numbers in its place."""

    def __init__(self, owner: Generator) -> None:
        super().__init__(kind=owner.kind)
        self.owner = owner

    def take(self, count: int) -> tuple[Any, int]:
        return self.owner.take(count)


def _revived(device: Any, kind: str, state: bytes) -> Generator:
    generator = Generator(device, kind=kind)
    generator._state.unpack(state)
    return generator


def _restored(seed: int, offset: int, device: Any = CPU) -> Generator:
    generator = Generator(device, kind="philox")
    generator._state = State(seed, offset)
    return generator


def _as_generator(value: Any) -> Generator:
    if isinstance(value, Generator):
        return value
    raise TypeError(f"Unable to cast {value!r} to a Generator")


ARGUMENT_TYPES["Generator"], VALUE_CLASSES["Generator"] = _as_generator, Generator
default_generator = Generator()


def manual_seed(seed: Any) -> Generator:
    """Seeds the default generator of the CPU, which is returned, and those of users' devices.

    >>> import redispatch as rd
    >>> _ = rd.manual_seed(0)
    >>> x = rd.rand(2)
    >>> _ = rd.manual_seed(0)
    >>> bool((rd.rand(2) == x).all())
    True
    """
    default_generator.manual_seed(int(seed))
    for kind in KINDS.values():
        for generator in kind.generators.values():
            generator.manual_seed(int(seed))
    _of_all[0] = int(seed)
    return default_generator


_of_all = [_DEFAULT_SEED]


def seed_of_all() -> int:
    """The last seed that was given for all devices, also for those that start later."""
    return _of_all[0]


def seed() -> int:
    """Seeds the default generator from the operating system; returns the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """Returns the seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """Returns the state of the default generator, for `set_rng_state`."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Puts the default generator into a state that `get_rng_state` gave."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """A region after which default generators are as they were before: the CPU's, and those of other devices; of the
    devices with these indices, where `devices` is given."""
    if not enabled:
        yield
        return
    states = default_states(None if devices is None else {indexed(as_device(one)).index or 0 for one in devices})
    try:
        yield
    finally:
        restore_states(states)


def default_states(indices: set[int] | None = None) -> list[tuple[Generator, Tensor]]:
    """The default generators, of the CPU and of other devices, and where they are."""
    others = [one for kind in KINDS.values() for i, one in kind.generators.items() if indices is None or i in indices]
    return [(one, one.get_state()) for one in (default_generator, *others)]


def restore_states(states: list[tuple[Generator, Tensor]]) -> None:
    """Puts generators where `default_states` found them."""
    for generator, state in states:
        generator.set_state(state)


@contextlib.contextmanager
def drawing_from(generator: Generator) -> Iterator[None]:
    """A region in which the CPU's default generator is in the state of another one, whose kind may differ."""
    before = default_generator._state
    default_generator._state = generator._state
    try:
        yield
    finally:
        default_generator._state = before


def generator_at(seed: int, offset: int, on: Any) -> Generator:
    """A generator of a device that goes on from an offset of a seed."""
    return _restored(seed & _MASK, offset & _MASK, on)


def drawn(generator: Generator | None, count: int, on: device = CPU) -> tuple[Any, int]:
    """(seed, offset) of the next `count` numbers of `generator`, or of the device's default one, as a fill takes it."""
    return source(generator, on).take(kernels.blocks(count))


def position(count: int, on: device) -> tuple[int, int]:
    """(seed, offset) of the next `count` numbers of a device's default generator, for numbers that go by position."""
    return source(None, on).position(kernels.blocks(count))


def source(generator: Generator | None, on: device) -> Generator:
    """The generator that is given for a device, or the device's default one."""
    if generator is None:
        own = KINDS[on.type].generators if on.type in KINDS else {}
        generator = own.get(indexed(on).index or 0, default_generator)
    elif generator.device.type != on.type:
        raise RuntimeError(f"Expected a '{on.type}' device type for generator but found '{generator.device.type}'")
    return generator


def twister_of(generator: Generator | None, on: device) -> Twister | None:
    """The twister from which a device's numbers come, if they come from one."""
    state = (generator or default_generator)._state
    return state if on.type == "cpu" and isinstance(state, Twister) else None
