"""compile and explain, as a user calls them.

    f = compile(f)                    # or @compile; compile(module) is a module
    print(explain(f)(x))              # programs, graphs, and why there is none

Read next: capture.py.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from functools import partial, update_wrapper
from typing import Any

from redispatch.nn import Module

from .backends import BACKENDS, backend_named
from .capture import EVERY, Compiled
from .exc import InvalidBackend
from .segments import Returned, Segment, Standing, Step

MODES = {None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"}


class OptimizedModule(Module):
    """A module whose calls run as recorded programs; everything else is that of the module, `_orig_mod`."""

    def __init__(self, module: Module, call: Compiled) -> None:
        super().__init__()
        self._orig_mod = module
        self.__dict__["dynamo_ctx"] = call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__dict__["dynamo_ctx"](*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._modules["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_orig_mod" or "_orig_mod" not in self.__dict__.get("_modules", {}):
            super().__setattr__(name, value)
        else:
            setattr(self._modules["_orig_mod"], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._modules["_orig_mod"], name)

    def __len__(self) -> int:
        return len(self._modules["_orig_mod"])

    def __bool__(self) -> bool:
        return True

    def train(self, mode: bool = True) -> OptimizedModule:
        self._modules["_orig_mod"].train(mode)
        return self

    def __reduce__(self) -> Any:
        call = self.__dict__["dynamo_ctx"]
        return OptimizedModule.again, (self._modules["_orig_mod"], call.backend, call.strict)

    def __deepcopy__(self, memo: dict[int, Any]) -> OptimizedModule:
        call = self.__dict__["dynamo_ctx"]
        return OptimizedModule.again(copy.deepcopy(self._modules["_orig_mod"], memo), call.backend, call.strict)

    @staticmethod
    def again(module: Module, backend: Callable[..., Any], strict: bool) -> OptimizedModule:
        """Returns a module that is compiled in the same way, with no program yet."""
        return OptimizedModule(module, Compiled(module, backend, strict))


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Returns a function, or module, that does what `model` does, by recorded programs; a decorator without `model`.

    A call that finds what an earlier one found (its arguments' metadata, globals, attributes, the state of the
    dispatcher) runs the graph of that one. Whatever cannot be recorded runs as it stands: `compiler.explain` says why.
    fullgraph: that is an error, and so is a break. dynamic: whether sizes are symbols, so that one graph is for many;
    by None, those that are seen to change.
    backend: a name of `list_backends(())`, or a function (graph module, example inputs) -> callable. mode,
    options: "reduce-overhead", "max-autotune" and {"triton.cudagraphs": True} have what is on a CUDA device recorded as
    graphs of CUDA; others, for PyTorch's backends, change nothing here. disable: returns `model` itself.
    Errors: InvalidBackend for an unknown name; Unsupported, at a call, with `fullgraph`; RuntimeError for an unknown
    mode, or `mode` together with `options`.
    """
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(filter(None, MODES))}")
    if isinstance(backend, str) and backend not in BACKENDS:
        raise InvalidBackend(
            f"Invalid backend: {backend!r}, see `redispatch.compiler.list_backends()` for available backends."
        )
    if model is None:
        return partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
        )
    if disable:
        return model
    if not callable(model):
        raise RuntimeError(f"compile: expected a function or module, got {type(model).__name__}")
    model = getattr(model, "__compiles__", model)
    chosen = backend_named(backend, mode, options) if isinstance(backend, str) else backend
    made = Compiled(model, chosen, fullgraph, dynamic)
    if isinstance(model, Module):
        return OptimizedModule(model, made)

    def call(*args: Any, **kwargs: Any) -> Any:
        return made(*args, **kwargs)

    update_wrapper(call, model)
    call.__dict__.update(__compiles__=model, dynamo_ctx=made, _torchdynamo_orig_callable=model)
    return call


def reset() -> None:
    """Forgets all recorded programs."""
    for one in EVERY:
        one.reset()


def list_backends(exclude_tags: Iterable[str] | None = ("debug", "experimental")) -> list[str]:
    """Returns the names of the backends; with `exclude_tags=()`, of those for debugging, too."""
    debugging = {"eager", "aot_eager"} if "debug" in (exclude_tags or ()) else set()
    return sorted(BACKENDS.keys() - debugging)


def segments_of(first: Segment) -> Iterator[Segment]:
    """Yields a segment, and those behind it."""
    yield first
    if isinstance(first.end, Step):
        for group in first.end.children.values():
            for one in group:
                yield from segments_of(one)


class Explanation:
    """Account of a call: `graphs` of the segments, and `break_reasons`: why one ends, with file and line.

    reasons: of the breaks where Python goes on by itself.
    """

    def __init__(self, call: Compiled) -> None:
        segments = [segment for program in call.programs for segment in segments_of(program.segment)]
        self.ends = [one.end for one in segments]
        self.segments = [one for one in segments if not one.empty or isinstance(one.end, Returned)]
        self.graphs = [one.graph for one in self.segments]
        self.guards = [one.guards.text + (one.sizes.source if one.sizes else "") for one in self.segments]
        self.reasons = [one.reason for one in self.ends if isinstance(one, Standing)]
        self.break_reasons = [one.reason for one in self.ends if not isinstance(one, Returned)]
        self.ops_per_graph = [[n.target for n in graph.graph.nodes if n.op == "call_function"] for graph in self.graphs]
        self.graph_count, self.graph_break_count = len(self.graphs), len(self.break_reasons)
        self.op_count = sum(map(len, self.ops_per_graph))

    def __str__(self) -> str:
        lines = [f"Graph Count: {self.graph_count}", f"Graph Break Count: {self.graph_break_count}"]
        lines += [f"Op Count: {self.op_count}", *(f"Break: {reason}" for reason in self.break_reasons)]
        for graph, guards in zip(self.graphs, self.guards, strict=True):
            lines += ["", str(graph.code).strip(), "", guards.rstrip()]
        return "\n".join(lines)


def explain(function: Any) -> Callable[..., Explanation]:
    """Returns a function that calls this one, compiled or not, and says what was recorded."""
    known = getattr(function, "__dict__", {}).get("dynamo_ctx")
    call = known if known is not None else Compiled(function, BACKENDS["eager"], False)

    def explained(*args: Any, **kwargs: Any) -> Explanation:
        call(*args, **kwargs)
        return Explanation(call)

    return explained
