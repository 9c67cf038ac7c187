"""A student's file at work: a child process that answers questions, until a limit ends it."""

from __future__ import annotations

import ast
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

CHILD = Path(__file__).with_name("child.py")
MEGABYTES, SECONDS = 512, 20  # of memory and of its processor, for all of a part
PATIENCE, WAIT = 2.0, 20.0  # seconds of its processor, and by the clock, for one answer: machines may be busy
PRELOADED = ("math", "itertools", "functools", "collections", "operator", "heapq", "bisect", "dataclasses", "typing")
REACHES_AROUND = {
    "__import__",
    "__builtins__",
    "__globals__",
    "__subclasses__",
    "__loader__",
    "__spec__",
    "exec",
    "eval",
    "open",
}


class Ended(BaseException):
    """The process is no more, or takes too long: no further question makes sense, nor a smaller example."""


class Missing(BaseException):
    """A part that is still as the template has it: there is no smaller example of that."""


class Raised(Exception):
    """The student's function raised: its error in one line."""


def forbidden(source: str, imports: Iterable[str]) -> list[str]:
    """Returns the things that a file may not have, by line: other imports, and names that reach around its own."""
    found, allowed = [], {*PRELOADED, *imports, "__future__"}
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
        found += [f"line {node.lineno}: import of {name}" for name in names if name not in allowed]  # type: ignore[attr-defined]  # statements have lines
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if name in REACHES_AROUND:
            found.append(f"line {node.lineno}: {name}")  # type: ignore[attr-defined]  # so have names
    return found


class Student:
    """The process; call it with the name of a function and its arguments. Ended where it is no more."""

    def __init__(self, path: Path, imports: Iterable[str] = ()) -> None:
        theirs, ours = os.pipe(), os.pipe()
        modules = " ".join((*PRELOADED, *imports))
        arguments = [str(path.resolve()), modules, str(theirs[0]), str(ours[1]), str(MEGABYTES), str(SECONDS)]
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", str(CHILD), *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(theirs[0], ours[1]), env={}, cwd="/", start_new_session=True,
        )  # fmt: skip
        os.close(theirs[0])
        os.close(ours[1])
        self.questions, self.answers, self.rest = theirs[1], ours[0], b""
        self.count = 0

    def __enter__(self) -> Student:
        return self

    def __exit__(self, *error: object) -> None:
        """Ends the process, and what it may have started."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.questions)
        os.close(self.answers)

    def __call__(self, name: str, *args: Any) -> Any:
        """The answer of the function. Raised for its errors, Missing where it is not written yet."""
        self.count += 1
        try:
            os.write(self.questions, (json.dumps({"call": name, "args": args}) + "\n").encode())
        except BrokenPipeError:
            raise Ended(f"the process ended before {name} was called") from None
        return self.answer(f"{name} was called")

    def cpu(self) -> float:
        """The seconds of processor that the process has used, as far as the system tells."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def answer(self, when: str) -> Any:
        """The next answer, which must come in time and be one line of JSON."""
        begun, spent = time.monotonic(), 0.0
        while b"\n" not in self.rest:
            if not select.select([self.answers], [], [], 0.25)[0]:
                spent = spent or self.cpu()
                if self.cpu() - spent > PATIENCE or time.monotonic() - begun > WAIT:
                    raise Ended(f"no answer after {when}: is there an endless loop?")
                continue
            more = os.read(self.answers, 1 << 16)
            if not more:
                raise Ended(f"the process ended after {when}: the file left it, or took too much memory")
            self.rest += more
            if len(self.rest) > 1 << 22:
                raise Ended(f"an answer of more than 4 MB after {when}")
        line, _, self.rest = self.rest.partition(b"\n")
        try:
            found = json.loads(line)
        except ValueError:
            raise Ended(f"after {when} something else than the answer was written") from None
        if "missing" in found:
            raise Missing(found["missing"])
        if "error" in found:
            raise Raised(found["error"])
        return found.get("value")
