"""The directory on disk in which work is kept that need not be done again: compiled kernels, specialised code.

- A file is sealed with a hash of its name and content: damage is a miss, and the work is done again. The first time, a
  warning says so.
- Files appear by an atomic rename, so many processes may write at once.
- Where nothing can be written, everything lives in memory.

What is read from there is run: the directory is private, and one that another user owns is refused.
`REDISPATCH_CACHE_DIR` names another directory. Who keeps something there:
kernels/engine/cache.py, specialiser/reads.py, and the compiler of graphs.
"""

from __future__ import annotations

import os
import warnings
from contextlib import suppress
from pathlib import Path

SEAL = 32  # bytes of sha256 before the content

_told: set[str] = set()  # the warnings that were given


def digest(*parts: bytes) -> bytes:
    """The sha256 of the parts, one after the other."""
    import hashlib  # here, because loading OpenSSL for it would be a tenth of the import of this library

    return hashlib.sha256(b"".join(parts)).digest()


def directory(warns: bool = True) -> Path | None:
    """The directory, made if need be, or None where there is none to use; `warns` says why, the first time."""
    chosen = os.environ.get("REDISPATCH_CACHE_DIR")
    try:
        if chosen:
            path = Path(chosen)
        else:
            path = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "redispatch"
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if hasattr(os, "getuid"):
            facts = path.stat()
            if facts.st_uid != os.getuid():
                raise PermissionError(f"{path} is owned by another user")
            if facts.st_mode & 0o022:
                raise PermissionError(f"{path} can be written by other users")
        return path
    except (OSError, RuntimeError) as problem:  # RuntimeError: no home directory
        if warns:
            warn_once(problem)
        return None


def warn_once(problem: Exception) -> None:
    """Says that nothing can be kept, the first time."""
    tell_once(
        "kept",
        f"compiled kernels cannot be kept on disk ({problem}); each process compiles its own. "
        "Set REDISPATCH_CACHE_DIR to a directory of yours to change this.",
    )


def tell_once(topic: str, text: str) -> None:
    """Warns, the first time for a topic."""
    if topic not in _told:
        _told.add(topic)
        warnings.warn(text, RuntimeWarning, stacklevel=4)


def read_sealed(path: Path, key: str) -> bytes | None:
    """The content of a file that was kept under this key; None where there is none, or none that is whole.

    Errors: a RuntimeWarning for the first that is not whole.
    """
    try:
        content = path.read_bytes()
    except OSError:
        return None
    seal, payload = content[:SEAL], content[SEAL:]
    if digest(key.encode(), payload) == seal:
        return payload
    tell_once(
        "damaged",
        f"{path} is damaged, or was kept for something else; it is made anew. "
        "`python -m redispatch.cache clear` removes all that is kept.",
    )
    return None


def write_sealed(path: Path, key: str, payload: bytes) -> None:
    """Keeps content under a key, for `read_sealed`."""
    write_whole(path, digest(key.encode(), payload) + payload)


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file such that it is there as a whole, or not."""
    import tempfile  # here, because it brings half of the standard library along

    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".new")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):  # an interrupt may come behind the rename; callers pass over OSError, but not over it
            os.unlink(temporary)
        raise
