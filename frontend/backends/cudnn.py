"""cuDNN's switches, under PyTorch's names. The library is not used here: convolutions and recurrent layers on CUDA are
kernels of our own, which give the same result each time. So programs may set these, and nothing depends on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

enabled = True
benchmark = False
benchmark_limit: int | None = 10
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Returns whether cuDNN is used: no."""
    return False


def version() -> int | None:
    """Its version: none."""
    return None


def is_acceptable(tensor: object) -> bool:
    """Returns whether it would take a tensor: no."""
    return False


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
) -> tuple[bool, bool, int | None, bool, bool]:
    """Sets those that are given, and returns what they were."""
    former = enabled, benchmark, benchmark_limit, deterministic, allow_tf32
    given = {
        "enabled": _enabled,
        "benchmark": _benchmark,
        "benchmark_limit": _benchmark_limit,
        "deterministic": _deterministic,
        "allow_tf32": _allow_tf32,
    }
    globals().update({name: value for name, value in given.items() if value is not None})
    return former


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int | None = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> Iterator[None]:
    """A region in which they are so."""
    former = set_flags(enabled, benchmark, benchmark_limit, deterministic, allow_tf32)
    try:
        yield
    finally:
        set_flags(*former)
