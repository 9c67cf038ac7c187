"""PyTorch's modules of functions in C++: `_VariableFunctions.add` is `redispatch.add`, `_linalg.linalg_inv` is
`linalg.inv`. Handlers of `__torch_function__` find what they were given there."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.declare.public import FUNCTIONS

LIBRARY = __name__.partition(".")[0]
METHODS = "__and__ __lshift__ __or__ __rshift__ __xor__".split()  # which PyTorch has as functions, too


def functions_of(module: str, path: str) -> Callable[[str], Any]:
    """Returns the `__getattr__` of PyTorch's module in C++ that has the functions of `path`.

    What another module of PyTorch has in Python has no place there.
    """
    home = f"torch._C._{module}" if module else "torch"
    prefix = "" if module in ("", "nn") else f"{module}_"

    def __getattr__(name: str) -> Any:
        if name in METHODS and not module:
            return getattr(Tensor, name)
        public = import_module(f"{LIBRARY}.{path}".rstrip("."))
        short = name.removeprefix(prefix)
        for found in (getattr(public, short, None), FUNCTIONS[module].get(short)):
            if name.startswith(prefix) and getattr(found, "__module__", None) in (home, "torch"):
                return found
        in_python = name == "unique_dim" or getattr(getattr(public, name, None), "__module__", "") == "torch.functional"
        if in_python and not module and hasattr(ops.aten, name):  # PyTorch shows another function
            return getattr(ops.aten, name)
        raise AttributeError(f"module {home.replace('torch', LIBRARY)!r} has no attribute {name!r}")

    return __getattr__


def module_of(module: str, path: str) -> ModuleType:
    """Returns such a module."""
    made = ModuleType(f"{LIBRARY}._C._{module or 'VariableFunctions'}", f"PyTorch's functions in C++ of `{path}`.")
    vars(made)["__getattr__"] = functions_of(module, path)
    return made


_VariableFunctions = module_of("", "")
_linalg, _fft, _special = (module_of(name, name) for name in ("linalg", "fft", "special"))
