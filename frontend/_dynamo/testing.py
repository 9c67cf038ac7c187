"""Helpers of tests in `torch._dynamo.testing`: test classes that run under other settings, tensors of given strides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import wraps
from typing import Any
from unittest import expectedFailure
from unittest.mock import patch

from redispatch import as_strided, randint, randn

__all__ = ["make_test_cls_with_patches", "rand_strided"]


def make_test_cls_with_patches(
    cls: type,
    cls_prefix: str,
    fn_suffix: str,
    *patches: tuple[Any, str, Any],
    xfail_prop: str | None = None,
    decorator: Callable[[Any], Any] = lambda function: function,
) -> type:
    """Returns a test class with the tests of another, each run while attributes, (owner, name, value), are replaced.

    Tests with the attribute `xfail_prop` are expected to fail.
    """
    made = type(f"{cls_prefix}{cls.__name__}", cls.__bases__, {})
    made.__qualname__ = made.__name__
    for name in dir(cls):
        value = getattr(cls, name)
        if name.startswith("test_") and callable(value):
            test = _patched(value, patches)
            test.__name__ = f"{name}{fn_suffix}"
            if xfail_prop is not None and hasattr(value, xfail_prop):
                test = expectedFailure(test)
            setattr(made, f"{name}{fn_suffix}", decorator(test))
        elif name.startswith("test_") or not hasattr(made, name):
            setattr(made, name, value)
    return made


def _patched(test: Callable[..., Any], patches: Sequence[tuple[Any, str, Any]]) -> Callable[..., Any]:
    @wraps(test)
    def patched(*args: Any, **kwargs: Any) -> Any:
        with ExitStack() as stack:
            for owner, name, value in patches:
                stack.enter_context(patch.object(owner, name, value))
            return test(*args, **kwargs)

    return patched


def rand_strided(size: Sequence[int], stride: Sequence[int], dtype: Any = None, device: Any = "cpu", **how: Any) -> Any:
    """Returns a tensor of random numbers with these strides; `extra_size` more elements lie behind it."""
    count = sum((length - 1) * step for length, step in zip(size, stride, strict=True)) + 1 + how.get("extra_size", 0)
    floating = dtype is None or dtype.is_floating_point or dtype.is_complex
    memory = randn(count, device=device) if floating else randint(0, 2, (count,), device=device)
    return as_strided(memory if dtype is None else memory.to(dtype), size, stride)
