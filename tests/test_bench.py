"""The benchmark's own arithmetic and tables: a wrong number there is worse than none."""

import importlib
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

GROUPS = ["dispatch", "kernels", "train"]


@pytest.fixture
def bench(monkeypatch):
    """The benchmark's modules, which `run.py` finds beside itself; afterwards their names are free again."""
    monkeypatch.syspath_prepend(Path(__file__).parent / "bench")
    names = ["rows", "harness", "report", *GROUPS]
    yield SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    for name in names:
        del sys.modules[name]


class Clock:
    """A clock that goes on only while a library works, so that no test depends on what else the machine does."""

    def __init__(self):
        self.now = 0.0

    def library(self, seconds):
        def work():
            self.now += seconds

        return SimpleNamespace(work=work)


@pytest.fixture
def clock(bench, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(bench.harness, "perf_counter", lambda: clock.now)
    return clock


def test_a_row_twice_as_slow_has_a_ratio_of_two(bench, clock):
    row = bench.rows.Row("work", lambda t: t.work)
    [result] = bench.harness.measure([row], clock.library(0.004), clock.library(0.002), rounds=3, seconds=0.004)
    assert result.ratio == pytest.approx(2)


def test_a_side_that_fails_is_reported_and_the_other_side_is_still_timed(bench, clock):
    row = bench.rows.Row("work", lambda t: t.work)
    [result] = bench.harness.measure([row], SimpleNamespace(), clock.library(0.001), rounds=2, seconds=0.0001)
    assert result.ours is None and result.torch > 0 and result.ratio is None
    assert result.ours_error.startswith("AttributeError: ")
    assert bench.report.mean_text([result]) == "no row ran on both sides, 1 failed"


def test_a_library_that_cannot_be_imported_fails_in_each_row(bench, clock):
    row = bench.rows.Row("work", lambda t: t.work)
    [result] = bench.harness.measure(
        [row], ImportError("no such thing"), clock.library(0.001), rounds=2, seconds=0.0001
    )
    assert result.ours_error == "ImportError: no such thing"


def test_a_call_under_a_context_runs_inside_it_and_never_while_the_other_side_is_timed(bench):
    inside = []

    @contextmanager
    def entered(name):
        inside.append(name)
        yield
        inside.remove(name)

    def build(t):
        def call():
            assert inside == [t.name]

        return bench.rows.Under(lambda: entered(t.name), call)

    sides = SimpleNamespace(name="ours"), SimpleNamespace(name="torch")
    [result] = bench.harness.measure([bench.rows.Row("mode", build)], *sides, rounds=2, seconds=0.0001)
    assert (result.ours_error, result.torch_error, inside) == (None, None, [])


def test_the_geometric_mean_of_a_ratio_and_its_inverse_is_one(bench):
    assert bench.harness.geometric_mean([4.0, 0.25]) == pytest.approx(1.0)
    assert bench.harness.geometric_mean([]) is None


def test_measuring_one_group_leaves_the_others_in_the_report(bench, tmp_path):
    files = tmp_path / "benchmarks.json", tmp_path / "benchmarks.md"
    bench.report.save({"dispatch": [bench.harness.Result("a * b", 1e-6, 2e-6)]}, *files)
    bench.report.save({"train": [bench.harness.Result("step", None, 1e-3, "TypeError: no")]}, *files)
    page = files[1].read_text()
    assert "| a \\* b | 1 us | 2 us | 0.50 |  |" in page
    assert "| step | failed: TypeError: no | 1 ms |  |  |" in page
    assert "**geometric mean 0.50 over 1 rows**" in page


def test_every_group_has_rows_with_names_of_their_own(bench):
    for group in GROUPS:
        names = [row.name for row in getattr(bench, group).GROUP]
        assert names and len(names) == len(set(names))
