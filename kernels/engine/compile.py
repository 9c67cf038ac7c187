"""From a program to an entry point that Python calls directly.

A program is translated here (`translate/`), or by numba if it has anything that is not known there (`lower.py`); the
rest is done in `native.py`; without LLVM the text runs as Python (`plain.py`). An entry point is a C function for one
signature. It trusts its arguments: an array of another dtype than the signature's is read as if it had the right one.
So callers choose entries by dtype. A small kernel does not give up the GIL, which takes half as long as all else that a
call does.

What was compiled once is loaded from disk (`cache.py`) without parsing or typing anything. Read next: `elementwise.py`.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Mapping
from functools import cache as once
from time import perf_counter
from typing import Any
from weakref import WeakValueDictionary

from redispatch.dispatch.tensor.operand import TARGET

from . import cache, lower, native, plain, translate
from .program import Program

Entry = Callable[..., Any]

# One lock for all compiling: numba's compiler is not re-entrant, and two threads must not compile the same kernel.
_LOCK = threading.RLock()
_LINKED: WeakValueDictionary[str, Entry] = WeakValueDictionary()  # by key, as long as somebody has it


class Kernel:
    """A loop, given as a Python function or as generated text, and its compiled entries, one per signature.

    A signature is a tuple of type names: "int64", "float32", ... for numbers and "float32[]" for flat arrays (16-bit
    floats are "uint16[]").  `real` is the type of literals in scalar functions, and `reals` that of single ones, by the
    word that `given` has for them. `fastmath` names the LLVM flags, each of which needs a reason where it is given.
    `nogil` says whether other Python threads may run meanwhile, or beyond which length of a range they may. `apart`
    says that the loop writes to no array which it has by another name, too. `one_program` says that it is made for a
    single program, whose user waits: compiling it well takes longer than it would ever save (`native.QUICK`).
    """

    def __init__(
        self,
        loop: Callable | str,
        *,
        name: str | None = None,
        given: Mapping[str, object] | None = None,
        real: str | None = None,
        reals: Mapping[str, str | None] | None = None,
        fastmath: frozenset[str] = frozenset(),
        nogil: bool | int = True,
        apart: bool = False,
        one_program: bool = False,
    ) -> None:
        self.loop = loop
        self.name = name or loop.__name__  # type: ignore[union-attr]  # text comes with a name
        self.given = dict(given or {})
        self.real, self.reals = real, reals
        self.fastmath = fastmath
        self.nogil, self.apart, self.one_program = nogil, apart, one_program
        self.entries: dict[tuple[str, ...], Entry] = {}

    def entry(self, *signature: str) -> Entry:
        """The entry point for a signature: compiled, or loaded from disk, when first asked for.

        While a target is set (operand.py), it is what runs the loop there.
        """
        target = TARGET.get()
        if target is not None:
            return target.entry(self, signature)
        entry = self.entries.get(signature)
        if entry is None:
            with _LOCK:
                entry = self.entries.get(signature)
                if entry is None:
                    entry = self.entries[signature] = _build(self, signature)
        return entry

    def program(self) -> Program:
        """The loop and all that it calls, as one program."""
        program = Program(self.real)
        if isinstance(self.loop, str):
            program.add_text(self.name, self.loop, self.given, self.reals)
        else:
            program.add(self.loop, self.given, rewrite=False)  # a loop's literals are indices
        if self.apart:
            program.apart.add(program.compiled[-1])
        return program

    def source(self) -> str:
        """The text that is compiled."""
        return self.program().text()

    def ir(self, *signature: str) -> str:
        """The loop and what it calls in LLVM's language, as they are written: nothing is optimised or inlined yet."""
        with _LOCK:
            return _written(self.program(), signature, self.fastmath)[0]

    def assembly(self, *signature: str) -> str:
        """The machine code for a signature, as this machine's assembler spells it. It is compiled for that alone."""
        with _LOCK:
            return native.assembly(_compile(self, self.program(), signature)[0], self.one_program)


def _build(kernel: Kernel, signature: tuple[str, ...]) -> Entry:
    program = kernel.program()
    main = program.compiled[-1]
    if not plain.can_compile():
        return plain.entry(program, signature)
    quick = ["quick"] if kernel.one_program else []
    flags = ",".join([*sorted(kernel.fastmath), gil_word(kernel.nogil), "no runtime", *quick])
    key = cache.key(program.digest(), main, signature, flags)
    entry = kept(key, kernel.name)
    if entry is None:
        start = perf_counter()
        try:
            code = native.packed(*_compile(kernel, program, signature), quick=kernel.one_program)
        except ModuleNotFoundError as problem:  # numba, for what only it translates
            plain.say_once(problem.name or "numba", problem)
            return plain.entry(program, signature)
        _tell(kernel.name, perf_counter() - start)
        header = f"# {kernel.name}({', '.join(signature)})   flags: {flags}\n"
        cache.store(key, code, kernel.name, header + program.text())
        entry = _LINKED[key] = native.linked(code, kernel.name, key)
    return entry


def kept(key: str, name: str) -> Entry | None:
    """The entry that is kept under a key, in this process or on disk; None where there is none."""
    with _LOCK:
        entry = _LINKED.get(key)
        if entry is None:
            code = cache.load(key)
            if code is not None and not native.outdated(code):
                entry = _LINKED[key] = native.linked(code, name, key)
        return entry


def key_of(entry: Entry | None) -> str | None:
    """The key under which an entry's code is kept; None for one that is plain Python."""
    held = getattr(entry, "__self__", None)
    return held[-1] if isinstance(held, tuple) else None


def gil_word(nogil: bool | int) -> str:
    """Returns the word for the use of the GIL, which is part of a kernel's key on disk."""
    return ("nogil" if nogil else "gil") if isinstance(nogil, bool) else f"nogil beyond {nogil}"


PATIENCE = 1.0  # seconds of compiling before a word is said about it
_compiled: list[str] = []  # what was compiled in this process
_seconds = 0.0  # how long that took; below 0 once it was told


def _tell(name: str, seconds: float) -> None:
    """Says once, on stderr, why a process is slow: after a second of compiling in all."""
    global _seconds
    _compiled.append(name)
    if _seconds < 0:
        return
    _seconds += seconds
    if _seconds < PATIENCE:
        return
    if os.environ.get("REDISPATCH_QUIET", "0") in ("", "0"):
        where = cache.directory()
        kept = f"They are kept in {where} for the next time" if where else "They cannot be kept on disk"
        many = f"{len(_compiled)} kernels" if len(_compiled) > 1 else "a kernel"
        names = ", ".join([*_compiled[-3:], *(["..."] if len(_compiled) > 3 else [])])
        print(
            f"redispatch: compiled {many} on first use, in {_seconds:.1f} s ({names}). {kept}; "
            "REDISPATCH_QUIET=1 silences this.",
            file=sys.stderr,
        )
    _seconds = -1.0


def _compile(kernel: Kernel, program: Program, signature: tuple[str, ...]) -> tuple[Any, str]:
    """The last function of the program, as an optimised module of LLVM with a function for Python to call it.

    The second is the version of numba if that has translated it.
    """
    text, others, result = _written(program, signature, kernel.fastmath)
    version, quick = "" if others is None else native.numba_version(), kernel.one_program
    return native.optimised(text + native.calling(signature, result, kernel.nogil), others, quick), version


def _written(program: Program, signature: tuple[str, ...], fastmath: frozenset[str]) -> tuple[str, Any, str]:
    """The program as LLVM's text; the module that it needs, if numba wrote it; its result's type."""
    try:
        unit = translate.Unit()
        symbol, result = unit.function(program, program.compiled[-1], signature, fastmath)
        return unit.text() + native.plain(symbol, signature, result), None, result
    except translate.Unknown:
        return lower.lowered(program, signature, fastmath)


@once
def is_translated(body: Callable, real: str | None, types: tuple[str, ...]) -> bool:
    """Whether a scalar function has no part, for arguments of these types, that only numba knows."""
    program, words = Program(real), ", ".join(f"x{k}" for k in range(len(types)))
    name = program.add_text("one", f"def one({words}):\n    return body({words})\n", {"body": body})
    try:
        translate.Unit().function(program, name, types)
    except translate.Unknown:
        return False
    return True


# --- which of some thousand lines of assembly are the loop that does the work -----------------------------------------

# LLVM writes a loop several times: unrolled with vector registers for most of the elements, and once more, one by one,
# for the rest; around it stand checks, and the code by which Python calls it. `busiest_loop` picks the one that counts.

LABEL = re.compile(r"^(\.?L?[\w.$]+):")
JUMP = re.compile(r"^\s+(?:j\w+|b\.?\w*|cbn?z|tbn?z)\s+(?:\S+,\s*)*(\.L?\w+)\s*$")
DIRECTIVE = re.compile(r"^\s*(\.(?!L)|#|//|;)")
# Registers of several elements: x86's ymm and zmm (and xmm in packed instructions), ARM's v0.4s.
VECTOR = re.compile(r"%?[yz]mm\d+|\bv?\w+p[sd]\b.*xmm|\bv\d+\.\d+[bhsd]\b")


def loops(assembly: str) -> list[list[str]]:
    """The innermost loops, each as its lines: from a label to a jump back to it with no other such jump between."""
    lines = [line.rstrip() for line in assembly.splitlines() if line.strip() and not DIRECTIVE.match(line)]
    found: list[list[str]] = []
    labels: dict[str, int] = {}
    for at, line in enumerate(lines):
        label = LABEL.match(line)
        if label:
            labels[label[1]] = at
            continue
        jump = JUMP.match(line)
        if jump and jump[1] in labels:
            start = labels[jump[1]]
            found.append(lines[start : at + 1])
            labels = {name: place for name, place in labels.items() if place > start}  # loops around it do not count
    return found


def is_vector(line: str) -> bool:
    """Whether an instruction works on several elements at once."""
    return VECTOR.search(line) is not None


def busiest_loop(assembly: str) -> str:
    """The innermost loop with the most vector instructions; without any, the longest. Empty where there is no loop."""
    found = loops(assembly)
    best = max(found, key=lambda lines: (sum(map(is_vector, lines)), len(lines)), default=[])
    return "\n".join(best)
