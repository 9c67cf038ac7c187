"""install(): lets `import torch` find this library, until `uninstall()`.

Programs written for PyTorch then run unchanged: `import torch`, `from torch.library import custom_op`. `torch.x.y` is
`redispatch.x.y`, the same module object; a module that this library does not have is an ImportError that says so. While
it is installed the library bears torch's name and version, and so do its classes: packages tell by
`type(x).__module__` whose tensor they were given, and by the version what they may call.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from .. import _absent
from ..version import __version__ as VERSION

LIBRARY = __name__.split(".")[0]


class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `torch` and `torch.x.y` as modules of this library, and its version as that of a package."""

    def __init__(self, name: str, ours: str, own_version: str) -> None:
        self.name, self.ours, self.own_version = name, ours, own_version
        self.shadowed = taken_out(name)

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> Any:
        if fullname != self.name and not fullname.startswith(self.name + "."):
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        ours = self.ours + spec.name[len(self.name) :]
        try:
            module = importlib.import_module(ours)
        except ModuleNotFoundError as problem:
            if problem.name is None or not ours.startswith(problem.name):
                raise  # a module of ours that lacks something else
            reason = _absent.why_module(ours.partition(".")[2])
            text = f"No module named '{spec.name}' ({LIBRARY} has no {ours}{reason and f': {reason}'})"
            raise ModuleNotFoundError(text, name=spec.name) from None
        spec.loader_state = module.__spec__, module.__loader__
        enter(spec.name, ours)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """The module has run under its own name; only the import system's record of it is put back."""
        assert module.__spec__ is not None
        module.__spec__, module.__loader__ = module.__spec__.loader_state

    def find_distributions(self, context: Any) -> Iterable[Any]:
        """For `importlib.metadata`, by which packages ask for torch's version."""
        if context.name != self.name:
            return
        from importlib.metadata import Distribution  # lazy for its cost: whoever asks has imported it

        class Torch(Distribution):
            def read_text(self, filename: str) -> str | None:
                text = f"Metadata-Version: 2.1\nName: {context.name}\nVersion: {VERSION}\n"
                return text if filename == "METADATA" else None

            def locate_file(self, path: Any) -> Any:
                raise FileNotFoundError(f"{path}: {LIBRARY} stands in for {context.name}, whose files are not here")

        yield Torch()


def enter(name: str, ours: str) -> None:
    """Makes the modules of a package that are loaded those of its other name.

    An import would set an attribute of the package, and there may be a function of that name.
    """
    loaded = [(name + one[len(ours) :], module) for one, module in sys.modules.items() if one.startswith(f"{ours}.")]
    for one, module in loaded:
        sys.modules.setdefault(one, module)


def named_as(name: str, former: str, library: ModuleType) -> None:
    """Gives the library's own classes the name of a module, where they have another one."""
    for value in vars(library).values():
        if isinstance(value, type) and value.__module__ == former:
            value.__module__ = name


def install(name: str = "torch", *, shadow: bool = False) -> ModuleType:
    """Makes `import torch` (or another name) give this library; returns the library.

    shadow: whether a module of that name may be loaded already; its modules come back with `uninstall`.
    Errors: RuntimeError where one is, and may not: objects of two libraries do not mix.
    """
    library: Any = sys.modules[LIBRARY]
    present = sys.modules.get(name)
    if present is not None and present is not library and not shadow:
        raise RuntimeError(
            f"install(): {name} is loaded already, from {getattr(present, '__file__', '?')}; tensors of two libraries "
            f"do not mix. Call {LIBRARY}.install() before anything imports {name}, or `import {LIBRARY} as {name}`. "
            "install(shadow=True) hides the other one"
        )
    if present is not library:
        pairs = {name: LIBRARY} | ({"functorch": f"{LIBRARY}.functorch"} if name == "torch" else {})
        for there, ours in pairs.items():
            sys.meta_path.insert(0, _Alias(there, ours, library.__version__))
            enter(there, ours)
        sys.modules.update({name: library, f"{name}.ops": library.ops})  # of that name there is a former module, too
        if name == "torch":
            library.__version__ = VERSION
            library.__name__ = name
            vars(library)[name] = library  # PyTorch has itself as an attribute, and packages write torch.torch.Tensor
            named_as(name, LIBRARY, library)
    return library


def uninstall(name: str = "torch") -> None:
    """Takes `install(name)` back; without one it does nothing. Modules that were hidden are found again."""
    library: Any = sys.modules[LIBRARY]
    for finder in [one for one in sys.meta_path if isinstance(one, _Alias)]:
        if finder.name == name or (name == "torch" and finder.name == "functorch"):
            sys.meta_path.remove(finder)
            taken_out(finder.name)
            sys.modules.update(finder.shadowed)
        if finder.name == name == library.__name__:
            library.__name__, library.__version__ = LIBRARY, finder.own_version
            vars(library).pop(name, None)
            named_as(LIBRARY, name, library)


def taken_out(name: str) -> dict[str, ModuleType]:
    """Removes a package and its modules from those that are loaded, and returns them."""
    loaded = [one for one in sys.modules if one == name or one.startswith(name + ".")]
    return {one: sys.modules.pop(one) for one in loaded}


@contextmanager
def installed(name: str = "torch", *, shadow: bool = False) -> Iterator[ModuleType]:
    """Calls `install` for as long as its block runs, whatever ends it."""
    library = install(name, shadow=shadow)
    try:
        yield library
    finally:
        uninstall(name)
