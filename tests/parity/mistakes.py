"""The mistakes of tests/mistakes.py beside torch: its class and its first words, a traceback that is no longer.

Run with a Python that has torch: `python tests/parity/mistakes.py`. Exits non-zero on a difference that has no reason.
"""

from __future__ import annotations

import re
import statistics
import sys
import traceback
import warnings
from pathlib import Path

import torch
import torch._subclasses.fake_tensor
import torch.library
import torch.overrides
import torch.utils._python_dispatch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import redispatch as rd
from redispatch import _hints
from redispatch.dispatch import DEFAULT, STATE
from tests.mistakes import MISTAKES, error_of

# Where torch's first line is another one, and why ours is no worse
REASONS = {
    "custom operator that returns its input": "torch names a file of its own as the implementation",
    "mode that is left twice": "torch: pop from an empty deque",
    "modes left out of order": "torch: pop from an empty deque, and a wrong state until then",
    "misspelled type in a schema": "torch begins with an empty line; ours says which type is near",
    "list[int] in a schema": "torch begins with an empty line; ours says how lists are written",
    "misspelled key": "ours asks whether CPU was meant",
    "recursion in __torch_dispatch__": "Python's words say where the recursion ended",
    "recursion in __torch_function__": "Python's words say where the recursion ended",
    "mode that enters itself": "Python's words say where the recursion ended",
    "function mode that enters itself": "Python's words say where the recursion ended",
    "kernel that returns a number": "ours goes on with the schema",
    "operator without kernel": "ours names other backends",
    "save of a local class": "Python's own pickler says it, torch has another protocol",
    "vmap over an if": "torch goes on: file an issue",
    "vmap over item": "torch goes on: file a bug report",
    "fake with other parameters": "torch: _() takes 1 positional argument",
    "operator name without namespace": "torch: not enough values to unpack",
    "missing argument": "ours names the argument",
    "cuda that is not there": "ours says what to install",
}


def outcome(name, names, show):
    """(classes of the error, first line, traceback's length) of a program; None where it works."""
    error = error_of(name, names, (lambda text: text.replace("redispatch", "torch")) if names["rd"] is torch else str)
    if error is None:
        return None
    first = re.sub(r">:\d+", ">", str(error).partition("\n")[0]).replace("'redispatch", "'torch")
    return [kind.__name__ for kind in type(error).__mro__], first, len(show(error).splitlines())


def in_torch(error):
    return "".join(traceback.format_exception(error))


def main():
    warnings.simplefilter("ignore")
    wrong, lengths = [], []
    for name in MISTAKES:
        ours = outcome(name, {"rd": rd, "nn": rd.nn, "F": rd.nn.functional}, _hints.shown)
        STATE.set(DEFAULT)
        theirs = outcome(name, {"rd": torch, "nn": torch.nn, "F": torch.nn.functional}, in_torch)
        while torch._C._len_torch_dispatch_stack():
            torch.utils._python_dispatch._pop_mode()
        while torch._C._len_torch_function_stack():
            torch._C._pop_torch_function_stack()
        if ours is None or theirs is None:
            wrong += [f"{name}: {ours} here, {theirs} in torch"] if ours is not theirs else []
            continue
        lengths.append((ours[2], theirs[2]))
        alike = ours[1] == theirs[1] and theirs[0][0] in ours[0]
        if alike == (name in REASONS) and not name.startswith(("recursion", "function mode", "mode that")):
            wrong.append(f"{name}:\n    ours  {ours[0][0]}: {ours[1]}\n    torch {theirs[0][0]}: {theirs[1]}")
    print(*wrong, sep="\n")
    middle = [statistics.median(column) for column in zip(*lengths, strict=True)]
    print(f"{len(MISTAKES)} mistakes, {len(wrong)} without a reason; median lines {middle[0]}, torch {middle[1]}")
    return bool(wrong) or middle[0] > 8


if __name__ == "__main__":
    sys.exit(main())
