"""The reports of `make parity`: how many operators are PyTorch's in every respect, and why each of the others is not.

A test hands over what it found by `record_property`, which reaches this process from the workers of pytest-xdist, too.
Read next: test_op_db_against_torch.py and test_opinfos.py, whose findings these are.
"""

from collections import defaultdict

TABLES = {"parity:": "parity: operators of our table", "opinfo:": "parity: operators of PyTorch's table"}


def findings(reports, table):
    """operator -> aspect -> why it differs, over all tests of each operator of a table."""
    found = defaultdict(dict)
    for report in reports:
        for name, value in report.user_properties:
            if name.startswith(table):
                found[name.removeprefix(table)] |= value
    return found


def pytest_terminal_summary(terminalreporter):
    reports = [r for kind in ("passed", "failed", "skipped") for r in terminalreporter.getreports(kind)]
    reports = [report for report in reports if hasattr(report, "user_properties")]
    for table, title in TABLES.items():
        operators = findings(reports, table)
        different = {name: found for name, found in operators.items() if found}
        if operators:
            terminalreporter.section(title)
        for name, found in sorted(different.items()):
            for aspect, reason in found.items():
                terminalreporter.line(f"{name:32} {aspect:20} {reason}")
        if operators:
            terminalreporter.line(f"{len(operators) - len(different)} / {len(operators)} operators are fully equal")
