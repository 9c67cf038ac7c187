"""The process in which a student's file runs: plain Python, in which there is no library to import, nor torch.

The library asks it over a pipe: {"call": "keyset", "args": [...]} is answered by {"value": ...} or {"error": ...}. What
is right is known to the other side alone, and so is who asks; so there is nothing here to patch, to import or to forge.
Memory and time have limits, and an audit hook refuses files, processes, the network and frames. This file is run by its
path, without the package: it imports nothing of it.
"""

import json
import os
import resource
import sys
from collections import namedtuple
from typing import Any

Tensor = namedtuple("Tensor", "keys")  # as students see one

# What a student's code may do besides computing; what is not among these raises.
ALLOWED = ("exec", "compile", "object.__getattr__", "object.__setattr__", "object.__delattr__", "builtins.id", "array.")


def decoded(value):
    """Values of JSON as students see them: {"Tensor": 5} is a tensor with these keys, {"set": [...]} a set."""
    if isinstance(value, list):
        return [decoded(one) for one in value]
    if isinstance(value, dict):
        if len(value) == 1 and "Tensor" in value:
            return Tensor(value["Tensor"])
        if len(value) == 1 and "set" in value:
            return set(value["set"])
        return {key: decoded(one) for key, one in value.items()}
    return value


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


def main(path, imports, asked, answered, megabytes, seconds):
    for name in imports.split():
        __import__(name)
    with open(path, encoding="utf-8") as file:
        source = file.read()
    questions, answers = os.fdopen(int(asked), "r"), os.fdopen(int(answered), "w")
    write, flush, dumps, loads = answers.write, answers.flush, json.dumps, json.loads
    limit(int(megabytes), int(seconds))
    code = compile(source, path, "exec")
    sys.argv = [path]
    scope: dict[str, Any] = {"__name__": "lesson", "Tensor": Tensor}
    sys.addaudithook(guard)
    try:
        exec(code, scope)
        write(dumps({"value": sorted(name for name, one in scope.items() if callable(one))}) + "\n")
    except Exception as error:
        write(dumps({"error": said(error, path)}) + "\n")
    flush()
    for line in questions:
        question = loads(line)
        try:
            found = {"value": scope[question["call"]](*map(decoded, question["args"]))}
            text = dumps(found)
        except NotImplementedError:
            text = dumps({"missing": question["call"]})
        except Exception as error:
            text = dumps({"error": said(error, path)})
        write(text + "\n")
        flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
