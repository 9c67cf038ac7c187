"""The process in which a student's file runs: plain Python, in which there is no library to import, nor torch.

The checker asks it over a pipe: {"call": "keyset", "args": [...]} is answered by {"value": ...} or {"error": ...}; with
"of" it is a method of something that the file made. While a function runs, it may ask in turn, where it was given a
function of the checker's. What is right is known to the other side alone, and so is who asks; so there is nothing here
to patch, to import or to forge. Memory and time have limits, and an audit hook refuses files, processes, the network
and frames. This file is run by its path, without the package.
"""

import builtins
import json
import os
import resource
import sys
from collections import namedtuple
from typing import Any

# What a student's code may do besides computing; what is not among these raises.
ALLOWED = ("exec", "compile", "object.__getattr__", "object.__setattr__", "object.__delattr__", "builtins.id", "array.")
PRINTED = 20  # lines of one call that are told


def limit(megabytes, seconds):
    for what, much in (("AS", megabytes << 20), ("CPU", seconds), ("FSIZE", 1 << 20), ("CORE", 0)):
        kind = getattr(resource, f"RLIMIT_{what}")
        resource.setrlimit(kind, (much, much))


def guard(event, args):
    """Refuses everything that is no computation."""
    if not event.startswith(ALLOWED):
        raise PermissionError(f"a lesson's file may not do this: {event}")


def said(error, path):
    """An error in one line, with the student's line."""
    line, at = 0, error.__traceback__
    while at is not None:
        line = at.tb_lineno if at.tb_frame.f_code.co_filename == path else line
        at = at.tb_next
    place = f" (line {line})" if line else ""
    return f"{type(error).__name__}: {str(error)[:300]}{place}"


class Served:
    """One end of the pipe: answers calls, and asks while one is answered."""

    def __init__(self, path, wire, questions, answers):
        self.path, self.scope, self.printed = path, {}, []
        self.questions, self.write, self.flush = questions, answers.write, answers.flush
        self.dumps, self.loads = json.dumps, json.loads
        self.table = wire.Table(self.ask)

    def send(self, message):
        self.write(self.dumps(message) + "\n")
        self.flush()

    def ask(self, question, args):
        """Asks the checker, whose functions a student's function may have been given."""
        self.send({**question, "args": self.table.encode(list(args))})
        answer = self.serve()
        if "raise" in answer:
            kind, text = answer["raise"]
            error = getattr(builtins, kind, RuntimeError)
            raise (error if isinstance(error, type) and issubclass(error, Exception) else RuntimeError)(text)
        return self.table.decode(answer["value"])

    def serve(self):
        """Answers calls until an answer comes, which it returns."""
        while True:
            message = self.loads(self.questions.readline())
            if "call" not in message:
                return message
            self.send(self.answer(message))

    def answer(self, question):
        called = question["call"]
        self.printed.clear()
        try:
            function = getattr(self.table.mine[question["of"]], called) if "of" in question else self.scope[called]
            found = {"value": self.table.encode(function(*self.table.decode(question["args"])))}
            self.dumps(found)
        except NotImplementedError:
            found = {"missing": called}
        except Exception as error:
            found = {"error": said(error, self.path), "kind": type(error).__name__, "text": str(error)[:2000]}
        if self.printed:
            found["printed"] = self.printed[:PRINTED]
        return found

    def print(self, *values, sep=" ", **ignored):
        if len(self.printed) < PRINTED:
            self.printed.append(sep.join(map(str, values))[:500])


def main(path, imports, asked, answered, megabytes, seconds):
    for name in imports.split():
        __import__(name)
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    wire = __import__("wire")  # beside this file, which belongs to no package here
    del sys.path[0], sys.modules["wire"]
    with open(path, encoding="utf-8") as file:
        source = file.read()
    served = Served(path, wire, os.fdopen(int(asked), "r"), os.fdopen(int(answered), "w"))
    limit(int(megabytes), int(seconds))
    code = compile(source, path, "exec")
    sys.argv = [path]
    first = served.loads(served.questions.readline())
    records = {name: namedtuple(name, fields) for name, fields in first["records"].items()}
    scope: dict[str, Any] = {"__name__": "lesson", "print": served.print, **records}
    exec(first["given"], scope)
    served.scope, served.table.made = scope, records
    sys.addaudithook(guard)
    try:
        exec(code, scope)
        found: dict[str, Any] = {"value": sorted(name for name, one in scope.items() if callable(one))}
    except NotImplementedError:
        found = {"missing": "the file"}
    except Exception as error:
        found = {"error": said(error, path)}
    served.send(found)
    served.serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
