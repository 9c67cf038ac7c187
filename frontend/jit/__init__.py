"""`redispatch.jit`: TorchScript, a part of Python with types, compiled to graphs that run and are saved without it.

    @jit.script
    def f(x: Tensor, n: int):
        for i in range(n):
            x = x + i
        return x

    f.graph, f.code, f(rd.ones(2), 3); f.save("f.pt"); jit.load("f.pt")

source and types, then a graph (graph.py), made of a syntax tree (statements.py, expressions.py, calls.py), run by
interpreter.py, printed by code.py, written by archive.py. tracing.py makes graphs of calls instead.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, Final

from redispatch import nn
from redispatch.futures import Future

from . import marks
from .archive import load, save
from .classes import Compiler
from .function import RECORDING, ScriptFunction
from .graph import Graph
from .interpreter import Error
from .marks import Attribute, annotate, export, ignore, is_scripting, isinstance, script_method, unused
from .module import RecursiveScriptModule, ScriptModule, TopLevelTracedModule, TracedModule, scripted
from .optimizing import freeze, optimize_for_inference, run_frozen_optimizations
from .source import UnsupportedNodeError
from .text import compiled_source
from .tracing import TracerWarning, TracingCheckError, trace, trace_module

__all__ = [
    "Attribute",
    "CompilationUnit",
    "Error",
    "Final",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "TopLevelTracedModule",
    "TracedModule",
    "TracerWarning",
    "TracingCheckError",
    "annotate",
    "export",
    "fork",
    "freeze",
    "fuser",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "optimize_for_inference",
    "run_frozen_optimizations",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

UNIT = Compiler()  # of functions and classes that are scripted by themselves


def script(obj: Any, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """Compiles a function, a module or a class.

    A class is handed back as it is, known from then on to programs. Errors: RuntimeError, which points at the source,
    for what is no TorchScript.
    """
    if type(obj) in (ScriptFunction, RecursiveScriptModule, TopLevelTracedModule):
        return obj
    if inspect.isclass(obj):
        if issubclass(obj, nn.Module):
            raise RuntimeError(
                f"Type '{obj}' cannot be compiled since it inherits from nn.Module, pass an instance instead"
            )
        UNIT.type_of_class(obj)
        return obj
    if type(obj) is dict or type(obj) is list:
        return obj.copy()
    if nn.Module in type(obj).__mro__:
        return scripted(obj, Compiler())
    made = UNIT.function(obj)
    made.__doc__ = getattr(obj, "__doc__", None)
    made._torchdynamo_inline = obj  # type: ignore[attr-defined]  # PyTorch's name
    return made


class CompilationUnit:
    """Functions that are compiled from text: `CompilationUnit("def f(x): ...").f`."""

    def __init__(self, lang: str | None = None, _frames_up: int = 0) -> None:
        self._unit = Compiler({})
        self._functions: dict[str, ScriptFunction] = {}
        if lang is not None:
            self.define(lang)

    def define(self, lang: str, rcb: Any = None, _frames_up: int = 0) -> None:
        """Compiles more functions, which may call those that there are."""
        self._functions |= compiled_source(self._unit, inspect.cleandoc(lang) if lang[:1].isspace() else lang)

    def get_functions(self) -> list[ScriptFunction]:
        return list(self._functions.values())

    def find_function(self, name: str) -> ScriptFunction | None:
        return self._functions.get(name)

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__.get("_functions", {}).get(name)
        if found is None:
            raise AttributeError(f"'CompilationUnit' has no attribute '{name}'")
        return found


@marks.special("is_tracing")
def is_tracing() -> bool:
    """Whether `trace` is running a function."""
    return RECORDING.get() is not None


def script_if_tracing(fn: Any) -> Any:
    """Compiles a function when it is first called while tracing: its branches and loops stay in the trace."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return script(fn)(*args, **kwargs) if is_tracing() else fn(*args, **kwargs)

    wrapper.__original_fn = fn  # type: ignore[attr-defined]  # PyTorch's names
    wrapper.__script_if_tracing_wrapper = True  # type: ignore[attr-defined]  # another one
    return wrapper


_script_if_tracing = script_if_tracing


def interface(obj: Any) -> Any:
    """Returns a class as it is: methods by which modules may be called."""
    return obj


_overload = _overload_method = marks.overload


@contextmanager
def fuser(name: str) -> Any:
    """A region in which PyTorch fuses loops in one way or another; here they are what they are."""
    yield


@marks.special("fork")
def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """Returns a future whose value is there: the function is called at once, and its errors pass."""
    future: Future[Any] = Future()
    future.set_result(func(*args, **kwargs))
    return future


@marks.special("wait")
def wait(future: Future[Any]) -> Any:
    """Returns the value of a future, as soon as it is there."""
    return future.wait()


_fork, _wait = fork, wait


def export_opnames(m: Any) -> list[str]:
    """Returns the operators that a compiled module or function calls."""
    functions = [m] if type(m) is ScriptFunction else list(m._script_type.methods.values())
    names = {
        node.op.qualified_name
        for one in functions
        for node in one.inlined_graph.all_nodes()
        if node.op is not None and hasattr(node.op, "qualified_name")
    }
    return sorted(names)
