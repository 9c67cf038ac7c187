"""PyTorch's `functorch.compile`: `aot_function` and its kin, and small compilers to hand to it.

aot_function(f, print_compile)                      # shows the graphs
memory_efficient_fusion(f)                          # backward computes again what is cheap
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from redispatch._decomp import get_decompositions
from redispatch.dispatch import ops
from redispatch.fx import GraphModule
from redispatch.fx.passes.graph_drawer import picture
from redispatch.nn import Module

from . import config
from .aot_autograd import (
    aot_function,
    aot_module,
    aot_module_simplified,
    compiled_function,
    compiled_module,
    default_partition,
    get_aot_compilation_context,
    get_aot_graph_name,
    get_graph_being_compiled,
    make_boxed_compiler,
    make_boxed_func,
    min_cut_rematerialization_partition,
    nop,
)
from .stages import stages_of

__all__ = [
    "aot_function",
    "aot_module",
    "aot_module_simplified",
    "compiled_function",
    "compiled_module",
    "config",
    "debug_compile",
    "default_decompositions",
    "default_partition",
    "draw_graph",
    "draw_graph_compile",
    "get_aot_compilation_context",
    "get_aot_graph_name",
    "get_graph_being_compiled",
    "make_boxed_compiler",
    "make_boxed_func",
    "memory_efficient_fusion",
    "min_cut_rematerialization_partition",
    "nop",
    "print_compile",
    "stages_of",
]

aten = ops.aten
default_decompositions = get_decompositions(
    [
        *(aten.elu, aten.elu_backward, aten.gelu_backward, aten.hardsigmoid, aten.hardsigmoid_backward),
        *(aten.hardswish, aten.hardswish_backward, aten.hardtanh, aten.hardtanh_backward, aten.leaky_relu),
        *(aten.leaky_relu_backward, aten.masked_fill, aten.sigmoid_backward, aten.silu_backward, aten.tanh_backward),
        *(aten.threshold_backward,),
    ]
)


def memory_efficient_fusion(fn: Any, **kwargs: Any) -> Any:
    """Returns a function or module that runs ahead of time, saves little for backward, and computes the rest again."""
    settings: dict[str, Any] = {
        "fw_compiler": nop,
        "partition_fn": min_cut_rematerialization_partition,
        "decompositions": default_decompositions,
        **kwargs,
    }
    return (aot_module if isinstance(fn, Module) else aot_function)(fn, **settings)


def print_compile(fx_g: GraphModule, _: Any) -> GraphModule:
    """A compiler that prints the code of a graph."""
    print(fx_g.code)
    return fx_g


def debug_compile(fx_g: GraphModule, inps: list[Any]) -> GraphModule:
    """A compiler that prints the code of a graph, with the shapes of values, and what its inputs are."""
    fx_g.print_readable()
    print("inputs:", ", ".join(str(getattr(one, "shape", one)) for one in inps))
    return fx_g


def draw_graph(traced: GraphModule, fname: str, figname: str = "fx_graph", *_: Any, **__: Any) -> None:
    """Draws a graph: an SVG in a file `fname`, which gets this ending if it has none."""
    path = Path(fname)
    picture(traced).write_svg(path if path.suffix else path.with_suffix(".svg"))


def draw_graph_compile(name: str) -> Callable[..., Any]:
    """Returns a compiler that draws graphs into a file of this name."""
    return partial(_drawn, name)


def _drawn(name: str, fx_g: GraphModule, _: Any) -> GraphModule:
    draw_graph(fx_g, name)
    return fx_g
