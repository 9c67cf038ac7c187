"""Report: what a check of many operators found, by operator and property; and what was stated beforehand.

`check_subclass` and `check_mode` return one. It prints as a table, shows itself in a notebook, and raises only when it
is asked to: `report.check()`.

Read next: subclass_check.py, which fills it; layer_checks.py, for what is checked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from html import escape
from pathlib import PurePath

from redispatch.dispatch import OPERATORS, OpOverload

HOLDS, FAILS, NOT_SUPPORTED = "holds", "fails", "not supported"
REFUSALS = (NotImplementedError, TypeError, ValueError)  # errors that say: this is not for me
MOST = 30  # lines of failures that are printed; `failures` has all


class ReportError(AssertionError):
    """The error that `Report.check` raises. `report`: the whole of it."""

    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message)
        self.report = report


class Broken(Exception):
    """Something else came out than should; a check raises it. Any other exception comes from what is being checked."""


class Nothing(Exception):
    """There is nothing to check: the call does not work without the layer, either, or does not concern it."""


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
    """An author's unsupported operators -> reason. Keys name operators, in words of these kinds:

    "sort", "linalg_*"   by name, whatever overload, or by pattern
    "@sorting"           by family: those that kernels/ops/sorting.py declares
    "#pointwise"         by tag; "#view" is what gives views, "#writes" what writes, in place or by out=
    "@views @shape"      several words are several statements with one reason
    "rand*/values"       this check of theirs, whatever comes out
    "*/pickle,deepcopy"  these checks of every operator

    A key without a check covers what says that it does not work (REFUSALS), by the operator that was called, or by the
    one that the error names at its beginning ("aten.sort.default: ..."), which the call came to. A result that is wrong
    without a word, and an error of another kind, is a failure all the same. Of several words that cover an outcome the
    longest tells why.
    Errors: ValueError for a check that there is not, and for a reason that is empty.
    """

    def __init__(self, stated: Mapping[str, str], checks: Iterable[str]) -> None:
        self.stated: dict[str, str] = {}
        known = {*checks}
        for key, reason in stated.items():
            words, slash, of = key.rpartition("/") if "/" in key else (key, "", "")
            if slash and not known.issuperset(of.split(",")):
                raise ValueError(f"not_supported: {key!r} names no check; there are {', '.join(sorted(known))}")
            if not reason.strip():
                raise ValueError(f"not_supported: say why for {key!r}; the reason is empty")
            self.stated.update((f"{word}{slash}{of}", reason) for word in re.findall(r"\([^)]*\)|\S+", words))

    def keys_for(self, operators: Iterable[str], check: str, refused: bool) -> list[str]:
        """The words that cover an outcome, which one of these operators had; the longest first."""
        found = (key for key in self.stated if any(covers(key, op, check, refused) for op in operators))
        return sorted(found, key=len, reverse=True)


def covers(key: str, op: str, check: str, refused: bool) -> bool:
    """Whether a statement is about this check of an operator; without a check in it, about refusals."""
    pattern, _, of = key.rpartition("/") if "/" in key else (key, "", "")
    return (check in of.split(",") if of else refused) and is_named(op, pattern)


def is_named(op: str, pattern: str) -> bool:
    """Whether a pattern means an operator: by its whole name, without "aten::", without the overload, or by a word."""
    known = OPERATORS.get(op)
    if pattern.startswith("#"):
        asked = pattern[1:]
        if known is None or asked in ("view", "writes"):
            return known is not None and (known.schema.is_view if asked == "view" else known.schema.is_mutable)
        return asked in map(str, known.tags)
    if pattern.startswith("@"):
        return known is not None and fnmatchcase(family(known), pattern[1:])
    short = op.removeprefix("aten::")
    packet = short.partition(".")[0] if "::" in op else short
    return any(fnmatchcase(name, pattern) for name in (op, short, packet))


def family(op: OpOverload) -> str:
    """The name of the file that declares an operator: "sorting"."""
    return PurePath(op.place.rpartition(":")[0]).stem


def is_pattern(key: str) -> bool:
    return any(sign in key for sign in "*?[#@")


def refused_by(error: BaseException) -> list[str]:
    """The operator that an error is about, as its text says at the beginning: "aten.sort.stable: ..."."""
    found = re.match(r"(\w+)\.(\w+)\.(\w+)(: |$)", str(error))
    if found is None:
        return []
    space, name, overload = found.groups()[:3]
    return [f"{space}::{name}" if overload == "default" else f"{space}::{name}.{overload}"]


@dataclass
class Report:
    """The findings of a check.

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
        """Returns the failures that were not stated."""
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
        """Returns the findings of an operator, or of those that a pattern names."""
        return [one for one in self.findings if is_named(one.op, op)]

    # What is shown ---------------------------------------------------------------------------------------------------

    def counts(self) -> list[tuple[str, int, int, int]]:
        """A row for each check: how often it holds, fails, and is not supported."""
        found = Counter((one.check, one.outcome) for one in self.findings)
        rows = ((c, found[c, HOLDS], found[c, FAILS], found[c, NOT_SUPPORTED]) for c in self.checks)
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
        lines += columns(
            [("check", "holds", "fails", "not supported"), *(tuple(map(str, row)) for row in self.counts())]
        )
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

    def __init__(self, report: Report, stated: Mapping[str, str], checks: Iterable[str]) -> None:
        self.report, self.statements = report, Statements(stated, checks)
        self.used: dict[str, set[str]] = {}  # statement -> the operators that it excuses

    def run(
        self, op: str, check: str, trial: Callable[[], bool], call: Callable[[], str], known: str = "", form: str = ""
    ) -> bool:
        """Records a trial, and says whether an error was raised in it.

        trial: returns whether there was something to check, and raises where it does not hold. known: the reason, if
        it is known beforehand that it cannot. form: the operator that is called, where it is another form of `op`.
        """
        try:
            if trial():
                self.report.findings.append(Finding(op, check))
        except Nothing:
            pass
        except Exception as error:
            raised = not isinstance(error, Broken)
            names = [op, *([form] if form else []), *(refused_by(error) if raised else [])]
            keys = self.statements.keys_for(names, check, isinstance(error, REFUSALS))
            for key in keys:
                self.used.setdefault(key, set()).add(op)
            reason = self.statements.stated[keys[0]] if keys else known
            outcome = NOT_SUPPORTED if reason else FAILS
            self.report.findings.append(Finding(op, check, outcome, call(), said(error), reason, error))
            return raised
        return False

    def find_stale(self, whole: bool) -> None:
        """Enters the statements that are not true. whole: whether the whole table was run.

        Of a name: everything works. Of a pattern, which is judged by the whole table: it excuses nothing, or of the
        operators that it means more work than not.
        """
        for key, reason in self.statements.stated.items():
            named, _, of = key.rpartition("/") if "/" in key else (key, "", "")
            excused = self.used.get(key, set())
            meant = {
                one.op
                for one in self.report.findings
                if is_named(one.op, named) and (not of or one.check in of.split(","))
            }
            if is_pattern(named):
                works = sorted(meant - excused)
                if whole and (not excused or len(works) > len(meant & excused) > 0):
                    self.report.stale[key] = (
                        f"{names(works)} work ({reason})" if works else f"excuses nothing ({reason})"
                    )
            elif not excused and (meant or whole):
                self.report.stale[key] = reason if meant else f"no operator is called so ({reason})"


def said(error: BaseException) -> str:
    """An exception in a line."""
    text = " ".join(str(error).split())
    text = text if isinstance(error, Broken) else f"{type(error).__name__}: {text}"
    return text if len(text) <= 300 else f"{text[:299]}…"
