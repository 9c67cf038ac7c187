"""What wrong calls say, word for word: the transcripts `refused.txt` of the folders.

A section begins with a heading, `# ...`. A statement with an error below it, indented as Python prints it, is refused;
the others are set-up, which runs anew before each of the refused. "..." stands for anything. All know the names rd, nn,
F, np, math and aten. `EXPECTTEST_ACCEPT=1 pytest tests/test_refused.py` writes what is said now; read the diff.
"""

import math
import os
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

import redispatch as rd
from redispatch import nn
from redispatch.nn import functional as F

HERE = Path(__file__).parent
NAMES = {"rd": rd, "nn": nn, "F": F, "np": np, "math": math, "aten": rd.ops.aten}


def entries(section):
    """(statement, lines of its error) of a section."""
    found = []
    for line in section.splitlines():
        if line.startswith("    "):
            found[-1][1].append(line[4:])
        elif line and not line.startswith("#"):
            found.append((line, []))
    return found


def cases():
    """(file, set-up, statement, error) of each refused call."""
    for file in sorted(HERE.glob("*/refused.txt")):
        for section in re.split(r"(?m)^(?=# )", file.read_text()):
            found = entries(section)
            setup = "\n".join(statement for statement, error in found if not error)
            for statement, error in found:
                if error:
                    name = f"{file.parent.name}: {statement}"
                    yield pytest.param(file, setup, statement, "\n".join(error), id=name)


def said_by(setup, statement):
    """The error as Python prints it, without empty lines; "" where there is none."""
    names = {**NAMES, "__name__": "refused"}
    exec(setup, names)
    try:
        exec(statement, names)
    except Exception as error:
        return re.sub(r"\n\s*\n", "\n", f"{type(error).__name__}: {error}".rstrip())
    return ""


@pytest.mark.parametrize(("file", "setup", "statement", "error"), list(cases()))
def test_a_wrong_call_is_refused_in_these_words(file, setup, statement, error):
    said = said_by(setup, statement)
    pattern = ".*".join(map(re.escape, error.split("...")))
    if os.environ.get("EXPECTTEST_ACCEPT") and said:
        before, after = (f"\n{statement}\n{textwrap.indent(text, '    ')}\n" for text in (error, said))
        file.write_text(file.read_text().replace(before, after))
    else:
        assert re.fullmatch(pattern, said, re.DOTALL), f"{statement}\n  says  {said}\n  not   {error}"
