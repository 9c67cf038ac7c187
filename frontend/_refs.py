"""`redispatch._refs`: PyTorch's path of its reference implementations in Python. Here an operator is Python: itself."""

import sys
from importlib import import_module
from typing import Any

from redispatch import _names

_LIBRARY = sys.modules[__name__.rpartition(".")[0]]
# This is no package: what would import its parts from the library's folder would run them once more.
for _part in ("fft", "linalg", "nn", "nn.functional", "special"):
    sys.modules[f"{__name__}.{_part}"] = import_module(f"{_LIBRARY.__package__}.{_part}")


def _of_library(name: str) -> Any:
    return None if name.startswith("__") else getattr(_LIBRARY, name, None)


PLACES, __getattr__, __dir__ = _names.late(globals(), {}, _of_library)
