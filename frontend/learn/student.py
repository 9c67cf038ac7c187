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
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .lesson import Lesson, Wrong
from .wire import Table

CHILD = Path(__file__).with_name("child.py")
MEGABYTES, SECONDS = 512, 20  # of memory and of its processor, for all of a part
SHOWN = 600  # letters of a question at which the student's function raised
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
    """The student's function raised: its error in one line. `kind` is the name of its class, `text` its words."""

    def __init__(self, line: str, kind: str = "", text: str = "") -> None:
        super().__init__(line)
        self.kind, self.text = kind, text


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
    """The process; call it with the name of a function and its arguments. Ended where it is no more.

    Arguments and answers are values, namedtuples among `records`, or else stay where they are: the student's functions
    call functions that they are given, and an object of theirs is a `Far` here, with `far.ask(method, *args)`.
    `printed` holds the lines that the last call printed, `last` its name and answer.
    """

    def __init__(self, path: Path, imports: Iterable[str] = (), records: Iterable[Any] = (), given: str = "") -> None:
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
        os.set_blocking(self.questions, False)
        self.printed: list[str] = []
        self.last: tuple[str | None, Any] = (None, None)  # that was called, and its answer
        self.table = Table(self.ask)
        self.table.made = {record.__name__: record for record in records}
        fields = {name: record._fields for name, record in self.table.made.items()}
        self.send({"records": fields, "given": given}, "the process was started")

    @staticmethod
    def of(lesson: Lesson, path: Path) -> Student:
        return Student(path, lesson.imports, lesson.records, lesson.given)

    def __enter__(self) -> Student:
        try:
            self.answer("the file was read")
        except BaseException:
            self.__exit__()
            raise
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
        try:
            return self.ask({"call": name}, args)
        except Raised as error:
            asked = f"{name}({', '.join(map(repr, args))})"
            said = f"{asked if len(asked) < SHOWN else asked[:SHOWN] + ' ...'}\nyours   {error}\nright   no error"
            raise Raised(said, error.kind, error.text) from None

    def ask(self, question: dict[str, Any], args: tuple[Any, ...]) -> Any:
        """Asks, and answers meanwhile, where a function of the checker's is called."""
        when = f"{question['call']} was called"
        self.send({**question, "args": self.table.encode(list(args))}, when)
        ours: Wrong | None = None
        try:
            while "call" in (found := self.answer(when)):
                try:
                    answer: dict[str, Any] = {"value": self.table.encode(self.asked(found, when))}
                except Wrong as wrong:  # said when the student's function has ended, which may do as it likes about it
                    ours, answer = ours or wrong, {"raise": ["RuntimeError", "stopped"]}
                except Exception as error:
                    answer = {"raise": [type(error).__name__, str(error)[:2000]]}
                self.send(answer, when)
        except (Raised, Missing):
            if ours is None:
                raise
        if ours:
            raise ours
        self.last = question["call"], found["value"]
        return found["value"]

    def asked(self, question: dict[str, Any], when: str) -> Any:
        """The answer of a function that the student's were given: such, and their methods not."""
        called, args = self.read(question.get("of"), question.get("args"), when)
        if question["call"] != "__call__" or not callable(called):
            raise Ended(f"{when}, and it asked for something that it was not given")
        return called(*args)

    def read(self, number: Any, args: Any, when: str) -> tuple[Callable[..., Any], list[Any]]:
        try:
            return self.table.mine[number], self.table.decode(args)
        except Exception:
            raise Ended(f"after {when} something else than a question was written") from None

    def send(self, message: dict[str, Any], when: str) -> None:
        rest, until = (json.dumps(message) + "\n").encode(), time.monotonic() + WAIT
        while rest:
            if not select.select([], [self.questions], [], 0.25)[1]:
                if time.monotonic() > until:
                    raise Ended(f"the process did not listen when {when}")
                continue
            try:
                rest = rest[os.write(self.questions, rest) :]
            except BrokenPipeError:
                raise Ended(f"the process ended before {when}") from None

    def cpu(self) -> float:
        """The seconds of processor that the process has used, as far as the system tells."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def answer(self, when: str) -> dict[str, Any]:
        """The next message, which must come in time and be one line of JSON: a decoded "value", or a question."""
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
            self.printed = [str(one) for one in found.get("printed", ())]
            if "value" in found:
                return {"value": self.table.decode(found["value"])}
            said = [str(found.get(word, "")) for word in ("error", "kind", "text")]
        except Exception:
            found = {}
        if not {"call", "missing", "error"} & set(found):
            raise Ended(f"after {when} something else than the answer was written")
        if "call" in found:
            return dict(found)
        if "missing" in found:
            raise Missing(str(found["missing"]))
        raise Raised(*said)
