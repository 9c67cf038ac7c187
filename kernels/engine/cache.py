"""Compiled kernels on disk: a kernel is compiled once per machine, not once per process.

Why not numba's own cache: its key misses edits in other files and checked against unchecked builds, a damaged file
of its crashes the interpreter, and where nothing can be written the import fails. Here

- the key is a hash of the kernel's complete text, its signature and flags, the versions, and the CPU (numba's version
  is inside of the file, and only of a kernel that it has translated);
- the directory is one where damage is a miss, many processes may write at once, and which need not be there.

A cached kernel is machine code, and is run: that is why the directory must be private. Beside each kernel lies its
source, `<name>-<key>.py`, to read; its first line says what was compiled. `python -m redispatch.cache` lists, fills and
empties the directory.
"""

import os
import re
import sys
from functools import cache as once
from pathlib import Path

import numpy as np

from redispatch.dispatch import dataclass
from redispatch.dispatch.disk import digest, directory, read_sealed, warn_once, write_sealed, write_whole


@once
def _machine() -> str:
    """Everything outside a kernel's text that its machine code depends on."""
    import llvmlite  # here, because importing it takes 40 ms, and no kernel may be needed
    import llvmlite.binding as llvm

    parts = [sys.version, llvmlite.__version__, np.__version__]
    here = Path(__file__).parent
    files = [here / "lower.py", here / "native.py", *sorted((here / "translate").glob("*.py"))]
    parts += [file.read_text() for file in files]  # they decide how a kernel is translated and called
    parts += [llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(), llvm.get_process_triple()]
    parts += [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("NUMBA_")]
    return "\n".join(parts)


def key(program: str, main: str, signature: tuple[str, ...], flags: str) -> str:
    """The name under which a kernel is kept."""
    facts = (program, main, repr(signature), flags, _machine())
    return digest("\0".join(facts).encode()).hex()


def load(key: str) -> bytes | None:
    """The code of a kernel that is on disk, or None."""
    path = directory()
    return None if path is None else read_sealed(path / f"{key}.kernel", key)


def store(key: str, code: bytes, name: str, source: str) -> None:
    """Keeps a kernel's code, and its source beside it. Failing to is no error."""
    path = directory()
    if path is None:
        return
    try:
        write_whole(path / f"{name}-{key[:12]}.py", source.encode())
        write_sealed(path / f"{key}.kernel", key, code)
    except OSError as problem:
        warn_once(problem)


# Listing and clearing -------------------------------------------------------------------------------------------------

# The names of files that `store` makes, cuda/compiler.py, and the compiler of graphs
OURS = re.compile(r"[0-9a-f]{64}\.(?:kernel|graph|ptx|cubin)|.+-[0-9a-f]{12}\.py|tmp.+\.new")


@dataclass(frozen=True)
class Kept:
    """A kernel on disk."""

    title: str  # "add_loop(int64, float32[], ...)": what was compiled, for which types
    file: Path
    source: Path | None
    bytes: int  # of all its files
    seconds: float  # when it was written, since the epoch


def kept() -> list[Kept]:
    """The kernels on disk, by title."""
    path = directory()
    if path is None:
        return []
    sources = {source.stem[-12:]: source for source in path.glob("*-*.py") if OURS.fullmatch(source.name)}
    found = []
    for file in path.glob("*.kernel"):
        source = sources.get(file.name[:12])
        try:
            facts = file.stat()
            title, size = file.name[:12], facts.st_size
            if source is not None:
                title, size = header_of(source), size + source.stat().st_size
        except OSError:
            continue  # another process has just removed it
        found.append(Kept(title, file, source, size, facts.st_mtime))
    for file in path.glob("*.ptx"):
        try:
            facts, title = file.stat(), header_of(file)
            size = facts.st_size + sum(one.stat().st_size for one in path.glob(f"{file.stem}.cubin"))
        except OSError:
            continue
        found.append(Kept(title, file, file, size, facts.st_mtime))
    return sorted(found, key=lambda one: one.title)


def header_of(source: Path) -> str:
    """Reads the statement on itself in the first line of a kernel's source."""
    with open(source, encoding="utf-8", errors="replace") as lines:
        first = lines.readline()
    if first.startswith("// "):  # PTX: for which compute capability, and by which compiler
        return first.removeprefix("// ").partition("   by:")[0].replace("   for: ", " for ").strip()
    return first.removeprefix("# ").partition("   flags:")[0].strip()


def clear() -> tuple[int, int]:
    """Removes all kernels on disk, and nothing else that lies there: (how many, how many bytes)."""
    path = directory()
    count = size = 0
    for file in [] if path is None else list(path.iterdir()):
        if OURS.fullmatch(file.name):
            try:
                facts = file.stat()
                file.unlink()
            except OSError:
                continue  # another process was faster, or it is not ours to remove
            count, size = count + (file.suffix in (".kernel", ".ptx")), size + facts.st_size
    return count, size
