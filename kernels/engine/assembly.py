"""Reading assembly: which of some thousand lines are the loop that does the work.

LLVM writes a loop several times: unrolled with vector registers for most of the elements, and once more, one by one,
for the rest; around it stand checks, and the code by which Python calls it. `busiest_loop` picks the one that counts.
Read next: compile.py, whose `Kernel.assembly` gives the text.
"""

from __future__ import annotations

import re

LABEL = re.compile(r"^(\.?L?[\w.$]+):")
JUMP = re.compile(r"^\s+(?:j\w+|b\.?\w*|cbn?z|tbn?z)\s+(?:\S+,\s*)*(\.L?\w+)\s*$")
DIRECTIVE = re.compile(r"^\s*(\.(?!L)|#|//|;)")
# Registers of several elements: x86's ymm and zmm (and xmm in packed instructions), ARM's v0.4s.
VECTOR = re.compile(r"%?[yz]mm\d+|\bv?\w+p[sd]\b.*xmm|\bv\d+\.\d+[bhsd]\b")


def loops(assembly: str) -> list[list[str]]:
    """The innermost loops, each as its lines: from a label to a jump back to it with no other such jump between."""
    lines = [line.rstrip() for line in assembly.splitlines() if line.strip() and not DIRECTIVE.match(line)]
    found: list[list[str]] = []
    labels: dict[str, int] = {}
    for at, line in enumerate(lines):
        label = LABEL.match(line)
        if label:
            labels[label[1]] = at
            continue
        jump = JUMP.match(line)
        if jump and jump[1] in labels:
            start = labels[jump[1]]
            found.append(lines[start : at + 1])
            labels = {name: place for name, place in labels.items() if place > start}  # loops around it do not count
    return found


def is_vector(line: str) -> bool:
    """Whether an instruction works on several elements at once."""
    return VECTOR.search(line) is not None


def busiest_loop(assembly: str) -> str:
    """The innermost loop with the most vector instructions; without any, the longest. Empty where there is no loop."""
    found = loops(assembly)
    best = max(found, key=lambda lines: (sum(map(is_vector, lines)), len(lines)), default=[])
    return "\n".join(best)
