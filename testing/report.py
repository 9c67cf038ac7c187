"""Report: what a check of many operators found, by operator and property; and what was stated beforehand.

`check_subclass` and `check_mode` return one. It prints as a table, shows itself in a notebook, and raises only when it
is asked to: `report.check()`.

Read next: check_subclass.py and check_mode.py, which fill it; layer_checks.py, for what is checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from html import escape
from typing import Any

HOLDS, FAILS, NOT_SUPPORTED = "holds", "fails", "not supported"
MOST = 30  # lines of failures that are printed; `failures` has all


class ReportError(AssertionError):
    """What `Report.check` raises. `report`: the whole of it."""

    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message)
        self.report = report


class Broken(Exception):
    """Something else came out than should; a check raises it. Any other exception comes from what is being checked."""


@dataclass(frozen=True)
class Finding:
    """One check of one operator.

    op: "aten::add.Tensor", or in brackets what else was tried, "(optimizer)". outcome: "holds", "fails" or
    "not supported". call: what was called, by dtypes and shapes. problem: what happened instead. reason: the one stated
    for it. error: the exception, with its traceback.
    """

    op: str
    check: str
    outcome: str = HOLDS
    call: str = ""
    problem: str = ""
    reason: str = ""
    error: BaseException | None = None

    def __str__(self) -> str:
        return f"{self.op}  {self.check}: {self.outcome}" + (f"; {self.call}: {self.problem}" if self.problem else "")


class Statements:
    """What an author says is not supported: operator -> reason. Keys are names, patterns, or either with a check.

    "sort"               whatever overload: errors that are raised are no failures
    "linalg_*"           all operators of such names
    "rand*/values"       this check of theirs, whatever comes out
    "*/pickle"           this check of every operator

    A key without a check covers errors only: a result that is wrong without a word is a failure all the same.
    Errors: ValueError for a check that there is not, and for a reason that is empty.
    """

    def __init__(self, stated: Mapping[str, str], checks: Iterable[str]) -> None:
        self.stated = dict(stated)
        known = set(checks)
        for key, reason in self.stated.items():
            check = key.rpartition("/")[2] if "/" in key else ""
            if check and check not in known:
                raise ValueError(f"not_supported: {key!r} names no check; there are {', '.join(sorted(known))}")
            if not reason.strip():
                raise ValueError(f"not_supported: say why for {key!r}; the reason is empty")

    def keys_for(self, op: str, check: str, raised: bool) -> list[str]:
        """The keys that cover an outcome."""
        return [key for key in self.stated if covers(key, op, check, raised)]


def covers(key: str, op: str, check: str, raised: bool) -> bool:
    """Whether a statement is about this check of an operator; without a check in it, about what is raised."""
    pattern, _, of = key.rpartition("/") if "/" in key else (key, "", "")
    return (of == check or not of and raised) and is_named(op, pattern)


def is_named(op: str, pattern: str) -> bool:
    """Whether a pattern means an operator: by its whole name, without "aten::", or without the overload."""
    short = op.removeprefix("aten::")
    packet = short.partition(".")[0] if "::" in op else short
    return any(fnmatchcase(name, pattern) for name in (op, short, packet))


def is_pattern(key: str) -> bool:
    return any(sign in key for sign in "*?[")


@dataclass
class Report:
    """What was found.

    subject: what was checked, by name. checks: which properties. findings: all, in their order. stale: statements that
    are not true, key -> reason: a named operator that works, a pattern under which everything does, or a name that no
    operator has.
    """

    subject: str
    checks: tuple[str, ...]
    findings: list[Finding] = field(default_factory=list)
    stale: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def failures(self) -> list[Finding]:
        """What does not hold, and was not stated."""
        return [one for one in self.findings if one.outcome == FAILS]

    @property
    def passed(self) -> list[str]:
        """The operators of which everything holds that could be checked."""
        bad = {one.op for one in self.findings if one.outcome != HOLDS}
        return [op for op in dict.fromkeys(one.op for one in self.findings) if op not in bad]

    @property
    def not_supported(self) -> dict[str, str]:
        """Operators that do not work, as was stated -> the reason."""
        return {one.op: one.reason for one in self.findings if one.outcome == NOT_SUPPORTED}

    @property
    def ok(self) -> bool:
        """Whether there is no failure, and no statement that is not true."""
        return not self.failures and not self.stale

    def check(self) -> Report:
        """The report itself. ReportError, an AssertionError with the table as its text, unless all is well."""
        if not self.ok:
            raise ReportError(str(self), self)
        return self

    def of(self, op: str) -> list[Finding]:
        """What was found of an operator, or of those that a pattern names."""
        return [one for one in self.findings if is_named(one.op, op)]

    # What is shown ---------------------------------------------------------------------------------------------------

    def counts(self) -> list[tuple[str, int, int, int]]:
        """A row for each check: how often it holds, fails, and is not supported."""
        found = Counter((one.check, one.outcome) for one in self.findings)
        rows = ((check, *(found[check, o] for o in (HOLDS, FAILS, NOT_SUPPORTED))) for check in self.checks)
        return [row for row in rows if any(row[1:])]

    def reasons(self) -> dict[str, list[str]]:
        """Each reason, with the operators that it is the reason of."""
        found: dict[str, list[str]] = {}
        for op, reason in self.not_supported.items():
            found.setdefault(reason, []).append(op)
        return found

    def headline(self) -> str:
        operators = len({one.op for one in self.findings})
        verdict = "all is well" if self.ok else f"{len(self.failures)} failures"
        if self.stale:
            verdict += f", {len(self.stale)} statements that are not true"
        return f"{self.subject}: {operators:,} operators in {self.seconds:.1f} s, {verdict}"

    def __str__(self) -> str:
        lines = [self.headline(), ""]
        lines += columns([("check", "holds", "fails", "not supported"), *(tuple(map(str, row)) for row in self.counts())])
        if self.failures:
            lines += ["", "fails"]
            lines += [f"  {one.op}  {one.check}  {one.call}\n      {one.problem}" for one in self.failures[:MOST]]
            if len(self.failures) > MOST:
                lines.append(f"  … {len(self.failures) - MOST} more: report.failures has them all")
        if self.not_supported:
            lines += ["", "not supported"]
            lines += [f"  {names(operators)}\n      {reason}" for reason, operators in self.reasons().items()]
        if self.stale:
            lines += ["", "stated as not supported, and yet it works"]
            lines += [f"  {key}: {reason}" for key, reason in self.stale.items()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """A summary, and a grid of the operators of which something does not hold."""
        interesting = [op for op in dict.fromkeys(one.op for one in self.findings) if op not in set(self.passed)]
        at = {(one.op, one.check): one for one in self.findings}
        heads = "".join(f"<th>{escape(check)}</th>" for check in self.checks)
        rows = "".join(
            f"<tr><th>{escape(op)}</th>{''.join(cell(at.get((op, check))) for check in self.checks)}</tr>"
            for op in sorted(interesting, key=lambda op: not any(one.outcome == FAILS for one in self.of(op)))
        )
        sums = "".join(f"<td>{holds:,} ✓</td>" if holds else "<td></td>" for holds in self.holding())
        stale = "".join(f"<li>{escape(key)}: {escape(reason)}</li>" for key, reason in self.stale.items())
        return (
            f'{STYLE}<div class="redispatch-report"><p>{escape(self.headline())}</p><table><tr><th></th>{heads}</tr>'
            f"<tr><th>holds</th>{sums}</tr>{rows}</table>"
            + (f"<p>stated as not supported, and yet it works</p><ul>{stale}</ul>" if stale else "")
            + "</div>"
        )

    def holding(self) -> list[int]:
        found = Counter(one.check for one in self.findings if one.outcome == HOLDS)
        return [found[check] for check in self.checks]


STYLE = """<style>
.redispatch-report table{border-collapse:collapse;font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.redispatch-report th{text-align:left;font-weight:600;padding:.1em .6em}
.redispatch-report td{text-align:center;padding:.1em .6em;border:1px solid rgba(128,128,128,.25)}
.redispatch-report .fails{background:rgba(207,34,46,.22)}
.redispatch-report .stated{background:rgba(191,135,0,.18)}
</style>"""


def cell(finding: Finding | None) -> str:
    """A finding as a cell of a table, with what happened as its tooltip."""
    if finding is None:
        return "<td></td>"
    if finding.outcome == HOLDS:
        return "<td>✓</td>"
    mark, kind, said = ("✗", "fails", "") if finding.outcome == FAILS else ("–", "stated", f"{finding.reason}: ")
    text = escape(f"{said}{finding.call}: {finding.problem}", quote=True)
    return f'<td class="{kind}" title="{text}">{mark}</td>'


def names(operators: list[str]) -> str:
    """The first few of some operators."""
    shown = ", ".join(op.removeprefix("aten::") for op in operators[:6])
    return shown if len(operators) <= 6 else f"{shown} and {len(operators) - 6} more"


def columns(rows: list[tuple[str, ...]]) -> list[str]:
    """Rows as lines with columns of equal width, the first to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([first.ljust(widths[0]), *(text.rjust(w) for text, w in zip(rest, widths[1:], strict=True))])
        for first, *rest in rows
    ]


class Recorder:
    """Fills a report: runs one check after another, and holds what comes out against what was stated."""

    def __init__(self, report: Report, stated: Mapping[str, str]) -> None:
        self.report, self.statements = report, Statements(stated, report.checks)
        self.used: set[str] = set()
        self.seen: set[str] = set()  # the operators

    def run(self, op: str, check: str, trial: Callable[[], bool], call: Callable[[], str]) -> None:
        """Records a trial. It returns whether there was something to check, and raises where it does not hold."""
        self.seen.add(op)
        try:
            if trial():
                self.report.findings.append(Finding(op, check))
        except Exception as error:
            problem = said(error)
            keys = self.statements.keys_for(op, check, raised=not isinstance(error, Broken))
            self.used.update(keys)
            reason = self.statements.stated[keys[0]] if keys else ""
            outcome = NOT_SUPPORTED if keys else FAILS
            self.report.findings.append(Finding(op, check, outcome, call(), problem, reason, error))

    def find_stale(self, whole: bool) -> None:
        """Enters the statements that no failure has used. whole: whether the whole table was run."""
        for key, reason in self.statements.stated.items():
            named = key.rpartition("/")[0] if "/" in key else key
            tried = any(is_named(op, named) for op in self.seen)
            judged = whole or tried and not is_pattern(named)
            if key not in self.used and judged:
                self.report.stale[key] = reason if tried else f"no operator is called so ({reason})"


def said(error: BaseException) -> str:
    """An exception in a line."""
    text = " ".join(str(error).split())
    text = text if isinstance(error, Broken) else f"{type(error).__name__}: {text}"
    return text if len(text) <= 300 else f"{text[:299]}…"


