"""The report of `make parity`: how many operators are PyTorch's in every respect, and why each of the others is not.

A test hands over what it found by `record_property`, which reaches this process from the workers of pytest-xdist, too.
Read next: test_op_db_against_torch.py, whose findings these are.
"""

from collections import defaultdict


def findings(reports):
    """operator -> aspect -> why it differs, over both tests of each operator."""
    found = defaultdict(dict)
    for report in reports:
        for name, value in report.user_properties:
            if name.startswith("parity:"):
                found[name.removeprefix("parity:")] |= value
    return found


def pytest_terminal_summary(terminalreporter):
    reports = [r for kind in ("passed", "failed", "skipped") for r in terminalreporter.getreports(kind)]
    operators = findings(r for r in reports if hasattr(r, "user_properties"))
    if not operators:
        return
    different = {name: found for name, found in operators.items() if found}
    terminalreporter.section("parity")
    for name, found in sorted(different.items()):
        for aspect, reason in found.items():
            terminalreporter.line(f"{name:32} {aspect:20} {reason}")
    terminalreporter.line(f"{len(operators) - len(different)} / {len(operators)} operators are fully equal")
