"""How many threads the BLAS of numpy and of scipy may use, which they themselves offer no way to say.

OpenBLAS keeps threads of its own. For a small product they cost more than they give: waiting for each other, they have
made a 64 x 64 product take 15 ms on a busy machine that one thread finishes in 16 us. So products below
`WORTH_THREADS` run on one thread, larger ones on as many as `set_num_threads` allows. Each package brings a library of
its own; where it was built with another BLAS, nothing is changed.
"""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ..engine.pool import get_num_threads

WORTH_THREADS = 16_000_000  # multiplications; about a quarter of a millisecond on one core

_NAMES = [f"{prefix}openblas_set_num_threads{suffix}" for prefix in ("scipy_", "") for suffix in ("64_", "_64", "")]
_current: dict[str, int] = {}  # what was said last to each package's library


@cache
def _setter(package: str) -> Callable[[int], None] | None:
    """OpenBLAS's own function, from the library that the package brought along; None where there is none."""
    import ctypes  # here, because a program may never multiply matrices

    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    for libraries in (folder.parent / f"{package}.libs", folder / ".dylibs", folder / ".libs"):
        for path in libraries.glob("*openblas*"):
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


def allow_threads(multiplications: int, package: str = "numpy") -> None:
    """Called before a product of that size."""
    wanted = get_num_threads() if multiplications >= WORTH_THREADS else 1
    if wanted != _current.get(package):
        _current[package] = wanted
        if (set_threads := _setter(package)) is not None:
            set_threads(wanted)
