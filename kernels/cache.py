"""Compiled kernels on disk: a kernel is compiled once per machine, not once per process.

Why not numba's own cache: its key misses edits in other files and checked against unchecked builds, a damaged file
of its crashes the interpreter, and where nothing can be written the import fails. Here

- the key is a hash of the kernel's complete text, its signature and flags, the versions, and the CPU;
- a file is sealed with a hash of its content: damage is a miss, and the kernel is compiled again, silently;
- files appear by an atomic rename, so many processes may compile at once;
- where nothing can be written, kernels live in memory, with one warning.

A cached kernel is machine code, and is unpickled: the directory is private, and one that another user owns is refused.
`REDISPATCH_CACHE_DIR` names another directory. Beside each kernel lies its source, `<name>-<key>.py`, to read.
"""

import os
import pickle
import sys
import warnings
from functools import cache as once
from pathlib import Path
from typing import Any

import numpy as np

from .digest import digest

SEAL = 32  # bytes of sha256 before the content

_warned = False


def directory() -> Path | None:
    """The cache directory, made if need be, or None where there is none to use."""
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
        _warn(problem)
        return None


def _warn(problem: Exception) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"compiled kernels cannot be kept on disk ({problem}); each process compiles its own. "
            "Set REDISPATCH_CACHE_DIR to a directory of yours to change this.",
            RuntimeWarning,
            stacklevel=3,
        )


@once
def _machine() -> str:
    """Everything outside a kernel's text that its machine code depends on."""
    import llvmlite
    import llvmlite.binding as llvm  # here, because this file is imported long before a kernel is needed
    import numba

    parts = [sys.version, numba.__version__, llvmlite.__version__, np.__version__]
    parts += [llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(), llvm.get_process_triple()]
    parts += [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("NUMBA_")]
    return "\n".join(parts)


def key(program: str, main: str, signature: tuple[str, ...], flags: str) -> str:
    """The name under which a kernel is kept."""
    facts = (program, main, repr(signature), flags, _machine())
    return digest("\0".join(facts).encode()).hex()


def load(key: str) -> Any | None:
    """The entry point of a kernel that is on disk, or None."""
    path = directory()
    if path is None:
        return None
    try:
        content = (path / f"{key}.kernel").read_bytes()
    except OSError:
        return None
    seal, payload = content[:SEAL], content[SEAL:]
    if digest(key.encode(), payload) != seal:
        return None
    from numba.core.compiler import CompileResult  # here, because importing numba takes 0.3 s

    return CompileResult._rebuild(_target(), *pickle.loads(payload)).entry_point


@once
def _target() -> Any:
    """numba's CPU target, ready to run code that it did not compile in this process."""
    from numba.core.registry import cpu_target  # here, because importing numba takes 0.3 s
    from numba.core.runtime import rtsys

    # Compiling would do this; without it, the runtime functions that a loaded kernel calls are null pointers.
    rtsys.initialize(cpu_target.target_context)
    return cpu_target.target_context


def store(key: str, result: Any, name: str, source: str) -> None:
    """Keep a compile result, and its source beside it. Failing to is no error."""
    path = directory()
    if path is None:
        return
    from numba.core.serialize import dumps  # here, because importing numba takes 0.3 s

    payload = dumps(result._reduce())
    try:
        _write(path / f"{name}-{key[:12]}.py", source.encode())
        _write(path / f"{key}.kernel", digest(key.encode(), payload) + payload)
    except OSError as problem:
        _warn(problem)


def _write(path: Path, content: bytes) -> None:
    import tempfile  # here, because it brings half of the standard library along

    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".new")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
