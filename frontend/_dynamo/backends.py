"""Backends, by name: they make functions of recorded graphs.

backend(graph_module, example_inputs) -> a callable that takes the inputs, and gives a tuple of tensors
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from redispatch._functorch.aot_autograd import aot_function, nop
from redispatch._inductor import compile_fx_inner
from redispatch._lazy.ts_backend import init
from redispatch.dispatch.tensor import Tensor
from redispatch.fx.graph_module import GraphModule
from redispatch.kernels.engine.plain import has_llvm

__path__: list[str] = []  # PyTorch's package, with the modules `common` and `debugging`: _moved.py


def aot_autograd(**options: Any) -> Callable[..., Any]:
    """Returns a backend that hands joint graphs to compilers: the arguments are those of `aot_function`."""
    options.setdefault("fw_compiler", nop)
    return lambda module, examples: aot_function(module.forward, **options)


def found(backend: str | Callable[..., Any]) -> Callable[..., Any]:
    """Returns a backend by its name; one that is none but a function is itself."""
    return BACKENDS[backend] if isinstance(backend, str) else backend


def eager(module: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
    """The graph, as it is."""
    return module.forward


def aot_eager(module: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
    """Joint graphs of operators, forward and backward, run as they are."""
    return or_plainly(aot_function(module.forward, nop, dynamic=module.meta.get("dynamic")), module)


def native(module: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
    """Joint graphs, forward and backward, each compiled to loops; where there is no compiler, run as they are."""
    if not has_llvm():
        return aot_eager(module, examples)
    return or_plainly(aot_function(module.forward, compile_fx_inner, dynamic=module.meta.get("dynamic")), module)


def recorded(module: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
    """Joint graphs as `native` compiles them; on a CUDA device they are recorded, and later calls replay them."""
    compiler = partial(compile_fx_inner, cudagraphs=True)
    return or_plainly(aot_function(module.forward, compiler, dynamic=module.meta.get("dynamic")), module)


def backend_named(name: str, mode: str | None, options: dict[str, Any] | None) -> Callable[..., Any]:
    """The backend of a name, which may ask for graphs of CUDA by a mode or by an option, as PyTorch's does."""
    found = BACKENDS[name]
    graphs = mode in ("reduce-overhead", "max-autotune") or (options or {}).get("triton.cudagraphs", False)
    return recorded if graphs and found is native else found


def lazy(module: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
    """Joint graphs, forward and backward, of which each is run by lazy tensors: loops for chains of operators."""
    init()

    def compiler(graph: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        def run(*inputs: Any) -> Any:
            found = graph(*(one.to("lazy") if isinstance(one, Tensor) else one for one in inputs))
            return [one.to("cpu") if isinstance(one, Tensor) else one for one in found]

        return run

    return or_plainly(aot_function(module.forward, compiler, dynamic=module.meta.get("dynamic")), module)


def or_plainly(compiled: Callable[..., Any], module: GraphModule) -> Callable[..., Any]:
    """Returns a function that does what a compiled one does; where that raises, what the graph does as it is.

    Such graphs write to their inputs at their end only: an error of the program comes from the graph as it is, behind
    the writes that it has behind it there, and what cannot be compiled is not compiled again.
    """
    plain = False

    def run(*inputs: Any) -> Any:
        nonlocal plain
        if plain:
            return module.forward(*inputs)
        try:
            return compiled(*inputs)
        except Exception:
            found = module.forward(*inputs)
            plain = True
            return found

    return run


BACKENDS: dict[str, Callable[..., Any]] = {
    "native": native,
    "inductor": native,
    "lazy": lazy,
    "aot_eager": aot_eager,
    "eager": eager,
}
