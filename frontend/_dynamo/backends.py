"""Backends, by name: they make functions of recorded graphs.

backend(graph_module, example_inputs) -> a callable that takes the inputs, and gives a tuple of tensors
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from redispatch._functorch.aot_autograd import aot_function, nop
from redispatch._inductor import compile_fx_inner
from redispatch.fx.graph_module import GraphModule


def eager(module: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
    """The graph, as it is."""
    return module.forward


def aot_eager(module: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
    """Joint graphs of operators, forward and backward, run as they are."""
    return aot_function(module.forward, nop)


def native(module: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
    """Joint graphs, forward and backward, each compiled to loops."""
    return aot_function(module.forward, compile_fx_inner)


def recorded(module: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
    """Joint graphs as those of `native`; on a CUDA device they are recorded as graphs of CUDA, and replayed."""
    return aot_function(module.forward, partial(compile_fx_inner, cudagraphs=True))


def backend_named(name: str, mode: str | None, options: dict[str, Any] | None) -> Callable[..., Any]:
    """The backend of a name, which may ask for graphs of CUDA by a mode or by an option, as PyTorch's does."""
    found = BACKENDS[name]
    graphs = mode in ("reduce-overhead", "max-autotune") or (options or {}).get("triton.cudagraphs", False)
    return recorded if graphs and found is native else found


BACKENDS: dict[str, Callable[..., Any]] = {"native": native, "inductor": native, "aot_eager": aot_eager, "eager": eager}
