"""Helpers of tests in `torch._dynamo.testing`: backends that count, classes under other settings, strided tensors."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import wraps
from typing import Any
from unittest import expectedFailure
from unittest.mock import patch

from redispatch import as_strided, randint, randn
from redispatch._functorch.aot_autograd import aot_function
from redispatch.fx.graph_module import GraphModule

from .backends import found

__all__ = [
    "AotEagerAndRecordGraphs",
    "CompileCounter",
    "CompileCounterWithBackend",
    "EagerAndRecordGraphs",
    "make_test_cls_with_patches",
    "normalize_gm",
    "rand_strided",
]


class CompileCounterWithBackend:
    """A backend that counts the graphs that it gets, and their calls, and keeps them. backend: what compiles them."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.clear()

    def clear(self) -> None:
        self.frame_count = self.op_count = 0
        self.graphs: list[GraphModule] = []

    def __call__(self, gm: GraphModule, example_inputs: Sequence[Any]) -> Any:
        self.frame_count += 1
        self.op_count += sum("call" in node.op for node in gm.graph.nodes)
        self.graphs.append(gm)
        return found(self.backend)(gm, example_inputs)


class CompileCounter(CompileCounterWithBackend):
    """Counter of graphs that runs them as they are."""

    def __init__(self) -> None:
        super().__init__("eager")


class EagerAndRecordGraphs(CompileCounter):
    """Keeper of graphs, for those who do not ask how many they are."""


class AotEagerAndRecordGraphs:
    """A backend that keeps the graphs that it gets, and those of forward and backward that come of each."""

    def __init__(self) -> None:
        self.graphs: list[GraphModule] = []
        self.fw_graphs: list[GraphModule] = []
        self.bw_graphs: list[GraphModule] = []

    def __call__(self, gm: GraphModule, example_inputs: Sequence[Any]) -> Any:
        self.graphs.append(gm)

        def kept(graphs: list[GraphModule]) -> Any:
            def keep(module: GraphModule, _: Any) -> GraphModule:
                graphs.append(module)
                return module

            return keep

        return aot_function(gm.forward, kept(self.fw_graphs), kept(self.bw_graphs))


def normalize_gm(gm_str: str) -> str:
    """Returns the text of a graph module without comments and trailing spaces, which differ between places."""
    lines = [re.sub(r"#.*", "", line).rstrip() for line in gm_str.splitlines()]
    return "\n".join(line for at, line in enumerate(lines) if line or at and lines[at - 1]) + "\n"


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
