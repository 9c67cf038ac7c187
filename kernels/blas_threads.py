"""How many threads numpy's BLAS may use, which numpy itself offers no way to say.

OpenBLAS keeps threads of its own. For a small product they cost more than they give: waiting for each other, they have
made a 64 x 64 product take 15 ms on a busy machine that one thread finishes in 16 us. So products below
`WORTH_THREADS` run on one thread, larger ones on as many as `set_num_threads` allows. Where numpy was built with
another BLAS, nothing is changed.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from .pool import get_num_threads

WORTH_THREADS = 16_000_000  # multiplications; about a quarter of a millisecond on one core

_NAMES = [f"{prefix}openblas_set_num_threads{suffix}" for prefix in ("scipy_", "") for suffix in ("64_", "_64", "")]
_current = 0  # what was said last; 0 is nothing yet


@cache
def _setter() -> Callable[[int], None] | None:
    """OpenBLAS's own function, from the library that numpy brought along; None where there is none."""
    import ctypes  # here, because a program may never multiply matrices

    package = Path(np.__file__).parent
    for folder in (package.parent / "numpy.libs", package / ".dylibs", package / ".libs"):
        for path in folder.glob("*openblas*"):
            try:
                library = ctypes.CDLL(str(path))
            except OSError:
                continue
            for name in _NAMES:
                if hasattr(library, name):
                    function = getattr(library, name)
                    function.argtypes, function.restype = [ctypes.c_int], None
                    return function
    return None


def allow_threads(multiplications: int) -> None:
    """Called before a product of that size."""
    global _current
    wanted = get_num_threads() if multiplications >= WORTH_THREADS else 1
    if wanted != _current:
        _current = wanted
        if (set_threads := _setter()) is not None:
            set_threads(wanted)
