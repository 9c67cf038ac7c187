"""Programs that are text alone: functions of a CompilationUnit, classes and functions of an archive.

Read next: archive.py.
"""

from __future__ import annotations

import ast
import builtins
import math
import typing
from collections.abc import Callable
from typing import Any

import redispatch
from redispatch import nn
from redispatch.dispatch import ops

from .classes import Compiler
from .function import ScriptFunction
from .overloads import candidates
from .pending import Pending, parsed_text
from .source import Place, Source, fail
from .sugared import Functional, Names, Op

# Names that every text knows
COMMON: dict[str, Any] = {name: getattr(typing, name) for name in "List Dict Tuple Optional Union Any Final".split()}
COMMON |= {name: name for name in ("uninitialized", "unchecked_cast", "annotate", "fork", "wait")}
COMMON |= {
    name: getattr(builtins, name) for name in "print int float bool str complex range isinstance list getattr".split()
}
COMMON |= {
    "inf": math.inf, "nan": math.nan, "Tensor": redispatch.Tensor, "Device": redispatch.device,
    "NoneType": type(None), "Future": redispatch.futures.Future,
}  # fmt: skip


def source_finder(names: dict[str, Any]) -> Any:
    """Returns a function from a name in a user's text to its object, or None."""
    known = COMMON | {"torch": redispatch, "ops": ops, "math": math, "NamedTuple": typing.NamedTuple}
    return lambda name: names.get(name, known.get(name, getattr(builtins, name, None)))


class ArchiveNames:
    """Returns what names of an archive's text are. program: what is `__torch__.a.B`; constants: the text's tensors."""

    strict = True

    def __init__(self, program: Callable[[str], Any], constants: dict[str, Any]) -> None:
        self.program, self.constants = program, constants

    def __call__(self, name: str) -> Any:
        if name in ("torch", "ops", "__torch__", "CONSTANTS"):
            return Names(name, self.resolve)
        return COMMON.get(name)

    def resolve(self, path: str) -> Any:
        head, _, name = path.rpartition(".")
        if path.startswith("__torch__."):
            return self.program(path)
        if head == "CONSTANTS":
            return self.constants.get(name)
        if head == "torch.nn.functional" and name in vars(nn.functional)["__all__"]:
            return Functional(name)
        space = "aten" if head == "torch" else head.removeprefix("ops.")
        if candidates(f"{space}::{name}") or path == "ops.prim.ModuleCall":
            return Op(f"{space}::{name}")
        return None


def compiled_source(unit: Compiler, text: str) -> dict[str, ScriptFunction]:
    """Compiles a text of several functions, which may call each other."""
    source = Source(text)
    pending = []
    for one in parsed_text(text).body:
        if not isinstance(one, ast.FunctionDef):
            fail(Place(source, one), "a compilation unit holds functions alone")
        unit.names[one.name] = Pending(unit, one, source, source_finder(unit.names))
        pending.append(unit.names[one.name])
    return {one.tree.name: one.compiled_for(None, None) for one in pending}
