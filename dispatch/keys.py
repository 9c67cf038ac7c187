"""Keys and keysets as users have them: `DispatchKeySet`, and keys and backends that are defined at run time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .core.key import (
    AUTOCAST_BITS,
    BACKEND_AT,
    BACKEND_BITS,
    BACKENDS,
    FUNCTIONALITIES,
    FUNCTIONALITY_AT,
    KEYS,
    KEYSET_BITS,
    ON_UNDEFINE,
    OWN_BACKENDS,
    PER_BACKEND,
    RUNTIME,
    DispatchKey,
    add_backend,
    add_single,
    is_built_in,
    key_named,
)
from .core.keyset import describe, has, highest, keyset, members, without
from .errors import RegistrationError
from .rules import body


class DispatchKeySet(int):
    """A keyset with PyTorch's methods; still an int, so that it may stand wherever the library wants a keyset."""

    def __new__(cls, keys: DispatchKey | int | Iterable[DispatchKey] = 0) -> DispatchKeySet:
        if isinstance(keys, int):
            return super().__new__(cls, keys)
        return super().__new__(cls, keyset(keys) if isinstance(keys, DispatchKey | str) else keyset(*keys))

    @staticmethod
    def from_raw_repr(bits: int) -> DispatchKeySet:
        return DispatchKeySet(bits)

    def raw_repr(self) -> int:
        return int(self)

    def __or__(self, other: int) -> DispatchKeySet:
        return DispatchKeySet(int(self) | int(other))

    def __and__(self, other: int) -> DispatchKeySet:
        return DispatchKeySet(int(self) & int(other))

    def __sub__(self, other: int) -> DispatchKeySet:
        return DispatchKeySet(without(int(self), int(other)))

    def add(self, key: DispatchKey | str) -> DispatchKeySet:
        return DispatchKeySet(int(self) | key_named(key).bits)

    def remove(self, key: DispatchKey | str) -> DispatchKeySet:
        return DispatchKeySet(without(int(self), key_named(key).bits))

    def has(self, key: DispatchKey | str) -> bool:
        return has(self, key_named(key))

    __contains__ = has

    def __iter__(self) -> Iterator[DispatchKey]:
        return members(self)

    def highestPriorityTypeId(self) -> DispatchKey:
        return highest(self)

    def __repr__(self) -> str:
        return describe(self)

    __str__ = __repr__


def as_keyset(value: Any) -> DispatchKeySet:
    """A keyset from what users pass for one: a keyset, a key, the name of one, several of them, or a tensor."""
    if isinstance(value, int):
        return DispatchKeySet(value)
    if isinstance(value, DispatchKey | str):
        return DispatchKeySet(key_named(value))
    if hasattr(value, "_keyset"):
        return DispatchKeySet(value._keyset)
    return DispatchKeySet(keys for keys in map(key_named, value))


# Keys of users' own: functionalities and backends that are defined, and removed, at run time --------------------------


def define_key(name: str, *, above: str) -> DispatchKey:
    """A functionality key of the user's own, placed just above the key named `above`, below the next one.

    Tensors that exist already stay valid, since no bit moves. Errors: RegistrationError where the name is taken
    or the gap above that key is full (Note [Gaps between keys]).
    """
    mine = body(f"key {name}")
    _check_free("define_key", name)
    start = _position_named(above)
    if start < BACKEND_BITS or AUTOCAST_BITS <= start < AUTOCAST_BITS + OWN_BACKENDS:
        raise RegistrationError(f"define_key({name!r}, above={above!r}): {above} has no place in the order of keys")
    end = min((bit for bit in (*FUNCTIONALITY_AT, AUTOCAST_BITS) if bit > start), default=KEYSET_BITS)
    if end - start < 2 and end == KEYSET_BITS:
        raise RegistrationError(f"define_key({name!r}, above={above!r}): all {KEYSET_BITS} bits are in use there")
    if end - start < 2:
        raise RegistrationError(
            f"define_key({name!r}, above={above!r}): no bit is left between {above} and "
            f"{FUNCTIONALITY_AT[end]}; put the key above another one"
        )
    FUNCTIONALITY_AT[bit := (start + end) // 2] = name
    key = add_single(name, bit)
    mine.append(lambda: undefine(key) if KEYS.get(name) is key else None)
    return key


def define_backend(name: str) -> DispatchKey:
    """The runtime key `name` of a backend of the user's own; with it come Autograd<name>, Autocast<name>, and so on.

    Errors: RegistrationError where one of these names is taken or all backend bits are in use.
    """
    mine = body(f"key {name}")
    for prefix in (*PER_BACKEND.values(), "Autocast"):
        _check_free("define_backend", prefix + name)
    free = next((bit for bit in range(BACKEND_BITS - 1) if bit not in BACKEND_AT), None)
    if free is None:
        raise RegistrationError(f"define_backend({name!r}): all {BACKEND_BITS} backend bits are in use")
    add_backend(name, free)
    autocast = AUTOCAST_BITS + free - len(BACKENDS)
    FUNCTIONALITY_AT[autocast] = f"Autocast{name}"
    add_single(f"Autocast{name}", autocast)
    key = KEYS[name]
    mine.append(lambda: undefine(key) if KEYS.get(name) is key else None)
    return key


def undefine(key: DispatchKey) -> None:
    """Removes a key or backend that `define_key` or `define_backend` made, and all that is registered for it."""
    users_own = key.functionality not in FUNCTIONALITIES if key.backend is None else not is_built_in(key.backend)
    if key.functionality is None or not users_own:
        raise RegistrationError(f"{key.name} is built in and cannot be removed")
    table, owner = (BACKEND_AT, key.backend) if key.backend else (FUNCTIONALITY_AT, key.functionality)
    for bit in [bit for bit, known in table.items() if known == owner]:
        del table[bit]
    for pair, known in list(RUNTIME.items()):
        if known.backend == key.backend if key.backend else known is key:
            del RUNTIME[pair], KEYS[known.name]
            for forget in ON_UNDEFINE:
                forget(known)
    if key.backend and f"Autocast{key.backend}" in KEYS:
        undefine(KEYS[f"Autocast{key.backend}"])


def _check_free(what: str, name: str) -> None:
    """RegistrationError where `DispatchKey.<name>` could not be the key of that name."""
    if name in FUNCTIONALITIES or hasattr(DispatchKey, name):
        raise RegistrationError(f"{what}: there is a dispatch key of the name {name!r} already, or DispatchKey uses it")
    if not name.isidentifier():
        raise RegistrationError(f"{what}: {name!r} is no name: DispatchKey.{name} could not be written")


def _position_named(name: str) -> int:
    """The bit of the functionality that `name` (a functionality, runtime key or alias like Autograd) stands for."""
    if name in FUNCTIONALITIES or name not in KEYS:
        by_name = {known: bit for bit, known in FUNCTIONALITY_AT.items()}
        if name in by_name:
            return by_name[name]
    if name == "Autograd":
        return _position_named("AutogradFunctionality")
    return key_named(name).bits.bit_length() - 1
