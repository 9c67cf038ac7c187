"""install(): lets `import torch` find this library, in a process where the real one is not loaded.

Programs written for PyTorch's extension points then run unchanged: `import torch`, `from torch.library import
custom_op`. `torch.x.y` is `redispatch.x.y`, the same module object; a module that this library does not have is an
ImportError that says so.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

LIBRARY = __name__.split(".")[0]


class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `torch` and `torch.x.y` as modules of this library."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> Any:
        if fullname != self.name and not fullname.startswith(self.name + "."):
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        ours = LIBRARY + spec.name[len(self.name) :]
        try:
            return importlib.import_module(ours)
        except ModuleNotFoundError as problem:
            if problem.name is None or not ours.startswith(problem.name):
                raise  # a module of ours that lacks something else
            text = f"No module named '{spec.name}' ({LIBRARY} has no {ours})"
            raise ModuleNotFoundError(text, name=spec.name) from None

    def exec_module(self, module: ModuleType) -> None:
        """The module has run under its own name; only the import system's record of it is put back."""
        spec = importlib.util.find_spec(module.__name__)
        module.__spec__ = spec
        module.__loader__ = spec.loader if spec else None


def install(name: str = "torch") -> ModuleType:
    """Makes `import torch` (or another name) give this library; returns the library.

    Errors: RuntimeError where a module of that name is loaded already: objects of two libraries do not mix.
    """
    library = sys.modules[LIBRARY]
    present = sys.modules.get(name)
    if present is not None and present is not library:
        raise RuntimeError(
            f"install(): {name} is loaded already, from {getattr(present, '__file__', '?')}; tensors of two libraries "
            f"do not mix. Call {LIBRARY}.install() before anything imports {name}, or use `import {LIBRARY} as {name}`"
        )
    if not any(isinstance(finder, _Alias) and finder.name == name for finder in sys.meta_path):
        sys.meta_path.insert(0, _Alias(name))
    sys.modules[name] = library
    return library
