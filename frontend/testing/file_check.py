"""FileCheck: does a text have this, then that, and not the other in between? For graphs and code that are printed.

FileCheck().check("add").check_not("mul").check_count("relu", 2, exactly=True).run(str(graph))
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any, NamedTuple, NoReturn


class Check(NamedTuple):
    """One thing to look for, by kind: what a comment would call it after `CHECK-`."""

    kind: str
    text: str
    times: int = 0

    def __str__(self) -> str:
        kind = f"-{self.kind}" if self.kind else ""
        return f"CHECK{kind}{f'-{self.times}' if self.times else ''}: {self.text}"


class FileCheck:
    """Checks of a text, each of what comes after the one before. `run` raises RuntimeError for the first that fails."""

    def __init__(self) -> None:
        self._checks: list[Check] = []

    def _add(self, *checks: Check) -> FileCheck:
        self._checks += checks
        return self

    def check(self, test_string: str) -> FileCheck:
        """The text is there."""
        return self._add(Check("", test_string))

    def check_not(self, test_string: str) -> FileCheck:
        """The text is not there, before what is looked for next."""
        return self._add(Check("NOT", test_string))

    def check_same(self, test_string: str) -> FileCheck:
        """The text is there, further on in the line."""
        return self._add(Check("SAME", test_string))

    def check_next(self, test_string: str) -> FileCheck:
        """The text is there, in the next line."""
        return self._add(Check("NEXT", test_string))

    def check_count(self, test_string: str, count: int, exactly: bool = False) -> FileCheck:
        """The text is there so many times; `exactly`: and not once more before what is looked for next."""
        return self._add(Check("COUNT", test_string, count), *[Check("NOT", test_string)] * exactly)

    def check_dag(self, test_string: str) -> FileCheck:
        """The text is there, before or after those of other such checks beside it."""
        return self._add(Check("DAG", test_string))

    def check_source_highlighted(self, test_string: str) -> FileCheck:
        """The text is there, and marked in the line below."""
        return self._add(Check("SOURCE-HIGHLIGHTED", test_string))

    def check_regex(self, test_string: str) -> FileCheck:
        """Text that fits the pattern is there."""
        return self._add(Check("REGEX", test_string))

    def run(self, checks_or_text: Any, text: Any = None) -> None:
        """Looks at a text; of two at the second, for what comments of the first, `# CHECK-NOT: ...`, say as well."""
        if text is None:
            text = checks_or_text
        else:
            self._add(*read(str(checks_or_text)))
        if not self._checks:
            raise RuntimeError("No checks have been added to this instance ofFilecheck! Check for bad input.")
        text, place, forbidden = str(text), 0, list[Check]()
        # Those of a DAG beside each other are one step; what must not be there must not be up to the next step.
        for kind, group in groupby(self._checks, key=lambda one: one.kind):
            checks = [*group]
            if kind == "NOT":
                forbidden += checks
                continue
            for step in [checks] if kind == "DAG" else [[one] for one in checks]:
                spans = [found(one, text, place) for one in step]
                absent(forbidden, text, place, min(start for start, _ in spans))
                forbidden, place = [], max(end for _, end in spans)
        absent(forbidden, text, place, len(text))

    def __repr__(self) -> str:
        return "\n".join(["FileCheck checks:", *(f"\t{one}" for one in self._checks)])


def read(comments: str) -> list[Check]:
    """Returns the checks that comments say."""
    pattern = r"#\s*CHECK(?:-(NOT|SAME|NEXT|DAG|SOURCE-HIGHLIGHTED|REGEX|COUNT)(?:-(EXACTLY-)?(\d+))?)?:\s*(.*?)\s*$"
    made = FileCheck()
    for kind, exactly, count, text in re.findall(pattern, comments, re.MULTILINE):
        if kind == "COUNT":
            made.check_count(text, int(count), bool(exactly))
        else:
            made._add(Check(kind, text))
    return made._checks


def found(check: Check, text: str, place: int) -> tuple[int, int]:
    """Returns where what is looked for begins and ends, from a place on. RuntimeError where it is not."""
    pattern = re.compile(check.text if check.kind == "REGEX" else re.escape(check.text))
    first = end = -1
    start = place
    for _ in range(check.times or 1):
        match = pattern.search(text, start)
        if match is None:
            kind = "regex " if check.kind == "REGEX" else ""
            fail(f'Expected to find {kind}"{check.text}" but did not find it\nSearched string:', check, text[place:])
        first, end = (match.start() if first < 0 else first), match.end()
        start = end
    between = text[place:first]
    if check.kind in ("SAME", "NEXT") and between.count("\n") != (check.kind == "NEXT"):
        fail(r'Expected to not find "\n" but found it', check, text[place:])
    if check.kind == "SOURCE-HIGHLIGHTED":
        line = text.rfind("\n", 0, first) + 1
        below = text.find("\n", end) + 1
        if not below or not re.match(r"[~^]", text[below + first - line :]):
            fail(f'Expected to find "{check.text}"highlighted but it is not.', check, text[place:])
    return first, end


def absent(checks: list[Check], text: str, start: int, end: int) -> None:
    """RuntimeError where one of these texts is between two places."""
    for check in checks:
        if check.text in text[start:end]:
            fail(f'Expected to not find "{check.text}" but found it', check, text[start:end])


def fail(problem: str, check: Check, text: str) -> NoReturn:
    """Raises the error of a check."""
    raise RuntimeError(f"{problem}\n{text}\nFrom {check}\n")
