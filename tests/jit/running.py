"""Runs the programs of programs.py with one library or another."""

from __future__ import annotations

import contextlib
import io
import linecache
import sys
import types

HEAD = "import torch\nfrom torch import Tensor\nfrom typing import *\n"


def defined(library, name, source):
    """The module that a program's text makes, with `library` under the name `torch`."""
    module = types.ModuleType(f"torchscript_program_{name}")
    file = f"<program {name}>"
    text = source.strip("\n") + "\n"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    sys.modules[module.__name__] = module
    import typing

    names = {one: getattr(typing, one) for one in typing.__all__}
    module.__dict__.update(names, torch=library, Tensor=library.Tensor, __file__=file)
    text = text.replace("import torch.nn.functional as F", "F = torch.nn.functional")
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec"), module.__dict__)
    return module


def shown(library, value):
    """A value in words, in which lists and tuples differ, and sizes are lists."""
    if isinstance(value, library.Tensor):
        return f"{value.dtype}{tidy(value.tolist())}"
    if isinstance(value, library.Size):
        value = list(value)
    if isinstance(value, list | tuple):
        inner = ", ".join(shown(library, one) for one in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {shown(library, one)}" for key, one in value.items()) + "}"
    return f"{tidy(value)}" if isinstance(value, float) else repr(value)


def tidy(value):
    """Numbers to five digits: what two libraries compute may differ in the last."""
    if isinstance(value, list):
        return [tidy(one) for one in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def called(library, function, arguments):
    """The result of a call in words, and what it printed."""
    written = io.StringIO()
    with contextlib.redirect_stdout(written):
        result = function(*eval(arguments, {"torch": library}))
    return shown(library, result), written.getvalue()
