"""Keysets: sets of dispatch keys as plain ints, where the highest bit is where a call goes first.

Inside the library a keyset is an int: `|` unites, `&` intersects, and the highest functionality bit together with
the highest backend bit is the runtime key that answers. `DispatchKeySet`, in ../keys.py, is the same int with
PyTorch's methods, for users. Removing a key clears its functionality's bit, never a backend's:
`{CPU, AutogradCPU} - {AutogradCPU}` is still a set on CPU.

Read next: state.py (what a thread adds and takes away), then table.py (who answers at a key).
"""

from __future__ import annotations

from collections.abc import Iterator

from ..specialiser.annotations import pure
from .key import (
    BACKEND_BITS,
    KEYSET_BITS,
    PER_BACKEND,
    DispatchKey,
    backend_at,
    functionality_at,
    key_named,
    runtime_key,
)

BACKEND_MASK = (1 << BACKEND_BITS) - 1
FUNCTIONALITY_MASK = ((1 << KEYSET_BITS) - 1) ^ BACKEND_MASK


@pure
def keyset(*keys: DispatchKey | str) -> int:
    """The set of these keys, as an int. ValueError for an alias key, which no set holds.

    >>> import redispatch as rd
    >>> from redispatch.dispatch import describe, keyset
    >>> describe(keyset("CPU", "AutogradCPU"))
    'DispatchKeySet(CPU, AutogradCPU)'
    """
    bits = 0
    for key in map(key_named, keys):
        if key.is_alias:
            raise ValueError(f"{key.name} is an alias key: it stands for several keys in a table, and is in no keyset")
        bits |= key.bits
    return bits


_SHARED: dict[int, int] = {}


def shared(bits: int) -> int:
    """The one object for equal keysets: those of tensors are told apart by `is` (specialiser/site.py)."""
    return _SHARED.setdefault(bits, bits)


@pure
def below(key: DispatchKey | str) -> int:
    """The mask of everything under `key`'s functionality: every lower functionality, and every backend bit."""
    return _functionality_bit(key) - 1


def above(key: DispatchKey | str) -> int:
    """The mask of every functionality over `key`'s; no backend bit."""
    return FUNCTIONALITY_MASK & ~((_functionality_bit(key) << 1) - 1)


def _functionality_bit(key: DispatchKey | str) -> int:
    bit = key_named(key).bits & FUNCTIONALITY_MASK
    if not bit:
        raise ValueError(f"{key_named(key).name} has no place in the order of keys")
    return bit


def without(bits: int, keys: int) -> int:
    """`bits` less the functionalities of `keys`."""
    return bits & ~(keys & FUNCTIONALITY_MASK)


def has(bits: int, key: DispatchKey) -> bool:
    """Whether the set holds `key`: for a per-backend key, its functionality and its backend. No set holds an alias."""
    return key.bits != 0 and key.bits & ~bits == 0


def backend_of(bits: int) -> str | None:
    """The highest backend in the set."""
    return backend_at((bits & BACKEND_MASK).bit_length() - 1)


def runtime_keys(bits: int) -> Iterator[DispatchKey]:
    """The runtime keys that a call with this keyset meets, from the highest down.

    A per-backend functionality stands for its highest backend alone: {CPU, CUDA, Dense} runs on CUDA.
    """
    backend = backend_of(bits)
    rest = int(bits) & ~BACKEND_MASK
    while rest:
        bit = rest.bit_length() - 1
        rest ^= 1 << bit
        functionality = functionality_at(bit)
        if functionality is not None and (backend is not None or functionality not in PER_BACKEND):
            yield runtime_key(functionality, backend)


def highest(bits: int) -> DispatchKey:
    """The runtime key that comes first, or Undefined for a set without functionality."""
    return next(runtime_keys(bits), DispatchKey.Undefined)


def members(bits: int) -> Iterator[DispatchKey]:
    """Every runtime key in the set, from the lowest up; a per-backend functionality counts once per backend."""
    backends = [name for bit in range(BACKEND_BITS) if bits >> bit & 1 and (name := backend_at(bit))]
    rest = int(bits) & ~BACKEND_MASK
    while rest:
        bit = (rest & -rest).bit_length() - 1
        rest &= rest - 1
        functionality = functionality_at(bit)
        if functionality in PER_BACKEND:
            yield from (runtime_key(functionality, backend) for backend in backends)
        elif functionality is not None:
            yield runtime_key(functionality, None)


def describe(bits: int) -> str:
    """The set as PyTorch prints it: `DispatchKeySet(CPU, ADInplaceOrView, AutogradCPU)`."""
    return f"DispatchKeySet({', '.join(key.name for key in members(bits))})"
