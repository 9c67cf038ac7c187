"""Mistakes of beginners, and of authors of extensions: the programs of mistakes.txt, each with what it says.

A section begins with what is wrong, `# ...`; lines that begin with `! ` are the words of the error and what to do. All
know `rd`, `nn` and `F`; real torch can stand for `rd`, and tests/parity/mistakes.py compares. The first 66 are those of
a survey; the others are from forums and issues.
"""

import linecache
from pathlib import Path

FILE = Path(__file__).with_suffix(".txt")
SECTIONS = {
    name: lines.splitlines() for name, _, lines in (text.partition("\n") for text in FILE.read_text()[2:].split("\n# "))
}
MISTAKES = {
    name: "\n".join(line for line in lines if line and not line.startswith("! ")) + "\n"
    for name, lines in SECTIONS.items()
}
KEPT = []  # what programs have defined: a namespace is free again when its Library goes


def error_of(name, names, change=lambda text: text):
    """The error of a program, with the traceback from the program on; None where it works."""
    text, file = change(MISTAKES[name]), f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = {**names, "__name__": "__main__"}
    KEPT.append(scope)
    try:
        exec(compile(text, file, "exec"), scope)
    except BaseException as error:
        error.__traceback__ = error.__traceback__.tb_next
        return error
    return None
