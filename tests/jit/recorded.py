"""Runs the programs of recorded.txt with one library or another, and says in words what they gave.

A program is Python in which `torch` is the library and `s` compiles; lines that begin with `>>>` are evaluated, and the
line that follows each, `<<<`, is what PyTorch 2.13 gave: result and print, or the error's class and first words.
`python tests/jit/recorded.py`, with a Python that has torch, records the file anew.
"""

from __future__ import annotations

import contextlib
import io
import json
import linecache
import pathlib
import re
import sys
import types
import typing
import warnings

FILE = pathlib.Path(__file__).with_name("recorded.txt")


def programs():
    """The programs of the file: name -> (source, expressions, what PyTorch gave)."""
    parts = re.split(r"(?m)^#### (\w+)\n", FILE.read_text())[1:]
    found = {}
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        lines = text.splitlines()
        source = "\n".join(line for line in lines if line[:4] not in (">>> ", "<<< "))
        asked, told = ([line[4:] for line in lines if line[:4] == mark] for mark in (">>> ", "<<< "))
        found[name] = source.strip("\n") + "\n", asked, [json.loads(one) for one in told]
    return found


def shown(torch, value):
    """A value in words."""
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{tidy(value.tolist())}"
    if isinstance(value, list | torch.Size):
        return f"[{', '.join(shown(torch, one) for one in value)}]"
    if isinstance(value, tuple):
        name = type(value).__name__ if type(value) is not tuple else ""
        return f"{name}({', '.join(shown(torch, one) for one in value)})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{shown(torch, key)}: {shown(torch, one)}' for key, one in value.items())}}}"
    return re.sub(r" at 0x\w+", "", repr(tidy(value)))


def tidy(value):
    """Numbers to five digits."""
    if isinstance(value, list):
        return [tidy(one) for one in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def words(problem):
    """An error's class, its first words and, of one while a program runs, its last ones."""
    kind = "RuntimeError" if type(problem).__name__ == "ScriptError" else type(problem).__name__
    lines = [line for line in str(problem).split("\n") if line.strip()] or [""]
    first = re.sub(r" \(of Python compilation unit at: 0x\w+\)| at 0x\w+", "", lines[0]).strip(": ")
    return f"{kind}: {first}" + (f" | {lines[-1]}" if "TorchScript interpreter" in first else "")


def ran(torch, name, source, asked):
    """Returns the words for each expression in one library."""
    module = types.ModuleType(name)
    sys.modules[name], file = module, f"{name}.py"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    module.__dict__.update({one: getattr(typing, one) for one in typing.__all__})
    module.__dict__.update(torch=torch, Tensor=torch.Tensor, s=torch.jit.script, __file__=file)
    told = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)
        except Exception as problem:
            return [words(problem)] * len(asked)
        for one in asked:
            written = io.StringIO()
            try:
                with contextlib.redirect_stdout(written):
                    *before, last = one.split("; ")
                    for statement in before:
                        exec(statement, module.__dict__)
                    result = shown(torch, eval(last, module.__dict__))
            except Exception as problem:
                result = words(problem)
            told.append(result + (f" printed {written.getvalue()}" if written.getvalue() else ""))
    return told


if __name__ == "__main__":
    import torch as theirs

    text = ""
    for name, (source, asked, _) in programs().items():
        rows = [
            f">>> {one}\n<<< {json.dumps(told)}"
            for one, told in zip(asked, ran(theirs, name, source, asked), strict=True)
        ]
        text += f"#### {name}\n{source}" + "\n".join(rows) + "\n"
    FILE.write_text(text)
