"""oneDNN's switch, under PyTorch's name. The library is not used here, so nothing depends on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

enabled = True
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Returns whether oneDNN is used: no."""
    return False


def set_flags(
    _enabled: bool | None = None, _deterministic: bool | None = None, _allow_tf32: bool | None = None
) -> tuple[bool, bool, bool]:
    """Sets those that are given, and returns what they were."""
    former = enabled, deterministic, allow_tf32
    given = {"enabled": _enabled, "deterministic": _deterministic, "allow_tf32": _allow_tf32}
    globals().update({name: value for name, value in given.items() if value is not None})
    return former


@contextmanager
def flags(enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True) -> Iterator[None]:
    """A region in which they are so."""
    former = set_flags(enabled, deterministic, allow_tf32)
    try:
        yield
    finally:
        set_flags(*former)
