"""From a program to PTX, and from PTX to machine code: the one place that talks to compilers, and needs no GPU.

A `Source` is a kernel's complete text and its signature; `ptx(source, target)` is what the simulator runs, and
`cubin(source, target)` what a card runs. Both are kept on disk, under a hash of all that decides them but the compiler,
whose versions stand in the file: where numba-cuda is not installed, what lies there is used as it is. So a directory
that was filled on one machine serves another one that has neither compiler nor, when it is filled, a GPU.

There are two compilers. numba-cuda, with NVIDIA's libraries, compiles the operators' kernels where it is installed; it
is used as a compiler alone: not its launcher, its arrays or its allocator. The library's own translator, with the LLVM
that numba brings along (`nvptx.py`), compiles everything elsewhere, and a graph's kernels in any case: these compute
with the CPU's scalar functions. REDISPATCH_CUDA_COMPILER=own in the environment has it compile all. Arguments are
addresses, int64 and float64.

Note [The compute capability that numba-cuda asks for]
To compile a function that calls another, numba-cuda asks the driver which card there is. There need be none here; so
the one name by which it asks is replaced while it compiles.

Note [A name that numpy has dropped]
numba-cuda, which is in maintenance, mentions `numpy.row_stack` where it is imported; numpy has no such name since 2.5.
It is lent one meanwhile: parts of numba-cuda are imported when the first kernel is compiled. Read next:
`elementwise.py`, where sources come from.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache as once
from importlib import util
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from redispatch.dispatch.disk import digest, directory, read_sealed, warn_once, write_sealed, write_whole

from ..engine.program import Program
from ..engine.translate import Unknown
from . import nvptx

FORMAT = "1"  # of files on disk; another one makes all of them be compiled again
PACKAGES = ("numba-cuda", "numba", "llvmlite", "nvidia-nvvm")
CUDA = ModuleType("numba.cuda")  # what stands for it in programs, until one is compiled
INSTALL = "install redispatch[cuda]: numba-cuda with NVIDIA's compiler libraries"

_LOCK = threading.RLock()  # numba's compiler is not re-entrant


@dataclass(frozen=True, slots=True)
class Source:
    """A kernel to be compiled. `signature` names types: "int64", "float64", and "float32*" for addresses.

    together: how many blocks, of `threads` each, a processor is to hold at once, which bounds the registers of a lane;
        0 leaves them to the compiler.
    """

    name: str
    text: str  # the kernel's own function
    given: Mapping[str, object]  # the functions and numbers that it names
    signature: tuple[str, ...]
    real: str | None  # what literals in its functions become
    threads: int = field(default=0, kw_only=True)
    together: int = field(default=0, kw_only=True)
    is_own: bool = field(default=False, kw_only=True)  # for the library's own translator, whatever is installed

    def program(self) -> Program:
        """The function and all that it calls."""
        program = Program(self.real)
        program.add_text(self.name, self.text, {**self.given, "cuda": CUDA})
        return program


def available() -> bool:
    """Whether there is numba-cuda, and NVIDIA's NVVM that it calls."""
    return util.find_spec("numba_cuda") is not None and util.find_spec("nvidia") is not None


def is_own(source: Source) -> bool:
    """Whether the library's own translator compiles a kernel."""
    return source.is_own or not available() or os.environ.get("REDISPATCH_CUDA_COMPILER") == "own"


def ptx(source: Source, target: str = "sm_80") -> str:
    """The kernel's PTX for a compute capability ("sm_90") and all later ones: from disk, or compiled.

    Errors: NotImplementedError for what cannot be compiled for a GPU.
    """
    program, own = source.program(), is_own(source)
    key = _key(program, source, target, own)
    text = _kept(key, own)
    if text is None and own and not source.is_own and not available():  # what numba-cuda left there serves, too
        text = _kept(_key(program, source, target, False), False)
    if text is None:
        with _LOCK:
            text = emit_ptx(program, source, target)
        _keep(key, source, target, text, own)
    return text


def cubin(source: Source, target: str) -> bytes:
    """The machine code for cards of that compute capability: from disk, or linked from the PTX by nvJitLink."""
    program = source.program()
    key = _key(program, source, target, is_own(source))
    path = directory()
    file = None if path is None else path / f"{key}.cubin"
    if path is not None and file is not None and not available() and not source.is_own and not file.exists():
        key = _key(program, source, target, False)  # which numba-cuda left there
        file = path / f"{key}.cubin"
    kept = None if file is None else read_sealed(file, key)
    if kept is not None:
        return kept
    code = link(ptx(source, target), target)
    if file is not None:
        write_sealed(file, key, code)
    return code


def link(text: str, target: str) -> bytes:
    """PTX as machine code. ImportError where cuda-core or nvJitLink is missing."""
    from cuda.core import Linker, LinkerOptions, ObjectCode  # here, because few have it

    linker = Linker(ObjectCode.from_ptx(text.encode()), options=LinkerOptions(arch=target))
    return bytes(linker.link("cubin").code)


def emit_ptx(program: Program, source: Source, target: str) -> str:
    """Has a program compiled: by the library's own translator, or by numba-cuda."""
    if is_own(source):
        try:
            text = nvptx.compiled(program, source.signature, target, not source.is_own)
            return bounded(tidy(text, source.name), source)
        except Unknown as problem:
            raise refused(source, problem) from problem
    capability = capability_of(target)
    with compiling_for(capability) as cuda:
        namespace = program.load()
        namespace["cuda"] = cuda
        # No fastmath: it would flush subnormal numbers, and make division approximate. NVVM fuses without it.
        for name in program.compiled[:-1]:
            namespace[name] = cuda.jit(device=True, inline="never")(namespace[name])
        main = namespace[program.compiled[-1]]
        try:
            text, _ = cuda.compile_ptx(main, tuple(map(_type, source.signature)), cc=capability)
        except Exception as problem:  # numba's own, NVVM's, and a KeyError for a function that numba-cuda lacks
            raise refused(source, problem) from problem
    return bounded(tidy(text, source.name), source)


def refused(source: Source, problem: Exception) -> NotImplementedError:
    """The error for what a compiler does not take."""
    said = " ".join(str(problem).split())
    return NotImplementedError(
        f"{source.name} has no CUDA kernel for {', '.join(source.signature)}: its scalar function cannot be "
        f"compiled for a GPU yet ({type(problem).__name__}: {said[:200]}). Copy the tensors by .cpu() before"
    )


def bounded(text: str, source: Source) -> str:
    """The PTX with what it says of blocks."""
    if not source.together:
        return text
    bounds = f".maxntid {source.threads}, 1, 1\n.minnctapersm {source.together}"
    return re.sub(r"(\.entry[^{]*\))\s*\{", rf"\1\n{bounds}\n{{", text, count=1)


@contextmanager
def compiling_for(capability: tuple[int, int]) -> Iterator[Any]:
    """numba-cuda's module, of which the two notes above are taken care while the block lasts."""
    with numpy_with("row_stack", np.vstack):
        import numba_cuda  # noqa: F401  # before numba.cuda, which it replaces; without it, numba has an older one
        from numba import cuda
        from numba.cuda import dispatcher

        from . import intrinsics  # here, because it needs numba-cuda

        intrinsics.register()
        former = dispatcher.get_current_device
        dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability)
        try:
            yield cuda
        finally:
            dispatcher.get_current_device = former


@contextmanager
def numpy_with(name: str, function: Any) -> Iterator[None]:
    """Note [A name that numpy has dropped]."""
    if hasattr(np, name):
        yield
        return
    setattr(np, name, function)
    try:
        yield
    finally:
        delattr(np, name)


def capability_of(target: str) -> tuple[int, int]:
    """(8, 0) for sm_80. ValueError for what is no such name."""
    found = re.fullmatch(r"sm_(\d+)(\d)[af]?", target)
    if found is None:
        raise ValueError(f"{target!r} names no compute capability; sm_80, sm_90 and the like do")
    return int(found[1]), int(found[2])


def _type(name: str) -> Any:
    from numba import types  # here, because importing numba takes 0.3 s

    return types.CPointer(getattr(types, name[:-1])) if name.endswith("*") else getattr(types, name)


def tidy(text: str, name: str) -> str:
    """PTX without what only numba wants, and with the kernel's own name."""
    text = re.sub(r"^\.common .*NumbaEnv.*\n", "", text, flags=re.M)
    text = re.sub(r"^//.*\n|^\s*// \.globl.*\n", "", text, flags=re.M)
    found = re.search(r"\.entry\s+([\w$]+)", text)
    assert found is not None
    return text.replace(found[1], name).strip() + "\n"


# --- on disk ----------------------------------------------------------------------------------------------------------


@once
def _here(own: bool) -> bytes:
    """A hash of the files that say what a program means on a GPU."""
    folder = Path(__file__).parent
    files = [folder / name for name in ("intrinsics.py", "compiler.py")]
    if own:
        files = [folder / name for name in ("translation.py", "of_complex.py", "nvptx.py")]
        files.append(folder.parent / "engine" / "primitives.py")
        files += sorted((folder.parent / "engine" / "translate").glob("*.py"))
    return digest(*(file.read_bytes() for file in files))


@once
def versions(own: bool = False) -> str:
    """The compiler's versions; "" where there is none."""
    if own:
        import llvmlite  # here, because importing it takes 40 ms, and no kernel may be needed

        return f"llvmlite {llvmlite.__version__}"
    if not available():
        return ""
    from importlib import metadata  # here, because it brings half of the standard library along

    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            found.append(f"{package} of the system")
    return ", ".join(found)


def _key(program: Program, source: Source, target: str, own: bool) -> str:
    facts = [FORMAT, program.digest(), source.name, repr(source.signature), target]
    facts += [f"{source.threads} {source.together}"] if source.together else []
    return digest("\0".join(facts).encode(), _here(own)).hex()


HEADER = re.compile(rb"// (?P<title>.*?)   for: (?P<target>\w+)   by: (?P<by>.*?)   seal: (?P<seal>[0-9a-f]{64})\n")


def _kept(key: str, own: bool) -> str | None:
    """The PTX on disk, or None: where there is none, where it is damaged, and where another compiler made it."""
    path = directory()
    if path is None:
        return None
    try:
        content = (path / f"{key}.ptx").read_bytes()
    except OSError:
        return None
    found = HEADER.match(content)
    if found is None or digest(key.encode(), content[found.end() :]).hex().encode() != found["seal"]:
        return None
    by = found["by"].decode()
    return content[found.end() :].decode() if versions(own) in ("", by) else None


def _keep(key: str, source: Source, target: str, text: str, own: bool) -> None:
    path = directory()
    if path is None:
        return
    seal = digest(key.encode(), text.encode()).hex()
    title = f"{source.name}({', '.join(source.signature)})"
    try:
        head = f"// {title}   for: {target}   by: {versions(own)}   seal: {seal}\n"
        write_whole(path / f"{key}.ptx", (head + text).encode())
    except OSError as problem:
        warn_once(problem)
