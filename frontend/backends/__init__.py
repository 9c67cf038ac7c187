"""The capabilities of this machine, under PyTorch's names: `redispatch.backends.cpu.get_cpu_capability()`.

And the backends of other packages: those that name an entry point in the group `torch.backends` are loaded with
the library.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress

from .. import _names
from . import cpu, cudnn, mkldnn

# what attention may take is known to the operators of attention, which not every import has
_, __getattr__, __dir__ = _names.late(globals(), {".": "cuda"})

__all__ = ["cpu", "cuda", "cudnn", "mkldnn"]


def _is_device_backend_autoload_enabled() -> bool:
    """Returns whether the backends of other packages are loaded with the library."""
    return os.getenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "1"


def _import_device_backends() -> None:
    """Loads and calls the entry points of the group `torch.backends`. RuntimeError that names the one that fails."""
    from importlib.metadata import entry_points  # here: it takes 15 ms, and few programs have such a package

    for backend in entry_points(group="torch.backends"):
        try:
            backend.load()()
        except Exception as error:
            raise RuntimeError(
                f"Failed to load the backend extension: {backend.name}. "
                "You can disable extension auto-loading with TORCH_DEVICE_BACKEND_AUTOLOAD=0."
            ) from error


def autoload() -> None:
    """Loads the backends of other packages, where their files name any: to look for that takes 1 ms."""
    if _is_device_backend_autoload_enabled() and any("torch.backends" in text for text in _entry_points()):
        _import_device_backends()


def _entry_points() -> Iterator[str]:
    """Yields the files of packages that name entry points."""
    for folder in sys.path:
        with suppress(OSError):  # no folder, or none that may be read
            for name in os.listdir(folder or "."):
                if name.endswith((".dist-info", ".egg-info")):
                    file = os.path.join(folder, name, "entry_points.txt")
                    if os.path.exists(file):
                        with open(file, encoding="utf-8") as text:
                            yield text.read()
