"""The list of operators under which this process imports the library, if there is one.

The environment variable REDISPATCH_OPS names the list; a wheel that was cut from one has it beside this file. Kernels
of operators that it leaves out are not registered, and files of these not opened: a call says that the operator was
omitted. selective.py writes such lists. Read next: _postponed.py, which does that.
"""

from __future__ import annotations

import os
import sys

ROOT = __name__.partition(".")[0]
HERE = os.path.dirname(__file__)
LIST, WHERE = "selection.txt", "selection.json"  # in a wheel that was cut
ROOMS = tuple(f"{ROOT}.kernels.{room}" for room in ("ops.", "batching", "cuda"))
ALWAYS = "lift_fresh empty full ones zeros".split()  # with these tensors come into being; no list need name them


def chosen() -> str:
    """The path of the list; empty where all operators are wanted."""
    beside = os.path.join(HERE, LIST)
    return os.environ.get("REDISPATCH_OPS", "") or (beside if os.path.exists(beside) else "")


def entries(path: str | os.PathLike[str]) -> dict[str, frozenset[str]]:
    """Reads a list: "aten::add.Tensor", or "add" for all overloads -> the dtypes that are wanted, none for all.

    A line is a name and its dtypes; what follows a # is a comment.
    """
    with open(path, encoding="utf-8") as lines:
        rows = [line.partition("#")[0].split() for line in lines]
    return {row[0]: frozenset(row[1:]) for row in rows if row}


def packet(name: str) -> str:
    """The overloads to which an entry belongs: "aten::add" for "aten::add.Tensor" and for "add"."""
    return name.partition(".")[0] if "::" in name else f"aten::{name}"


if _path := chosen():
    from ._postponed import Finder

    sys.meta_path.insert(0, Finder(_path))  # type: ignore[arg-type]  # a finder by what it has, no subclass
