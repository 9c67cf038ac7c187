"""`load("dispatch.schema_parser")`: one module of this repository, without running any package's `__init__`.

The parity scripts run with PyTorch's Python, where redispatch is not installed and nothing but numpy may be there. So
the packages on the way are entered as empty shells that know their folder, and relative imports work as ever.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def load(name: str) -> ModuleType:
    """The module `redispatch.<name>` from this checkout. Not for a process that imports it otherwise."""
    package, folder = "redispatch", ROOT
    for part in ["", *name.split(".")[:-1]]:
        if part:
            package, folder = f"{package}.{part}", folder / part
        if package not in sys.modules:
            shell = ModuleType(package)
            shell.__path__ = [str(folder)]
            sys.modules[package] = shell
    return importlib.import_module(f"redispatch.{name}")
