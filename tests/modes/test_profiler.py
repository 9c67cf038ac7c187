"""ProfilerMode: counts, times by a clock of the test's own, bytes, key paths, tables and the Chrome trace."""

import json
import sys
import threading
from itertools import count

import pytest
from expecttest import assert_expected_inline

import redispatch as rd
from redispatch.modes.profiler import ProfilerMode
from redispatch.subclasses.two_tensor import TwoTensor

A, B = rd.ones(2, 3), rd.ones(3, 4)
aten = rd.ops.aten


def ticking():
    """A clock that goes on by a millisecond each time it is read: every call takes one."""
    return map(lambda tick: tick / 1000, count()).__next__


def profiled(function, **options):
    with ProfilerMode(clock=ticking(), **options) as profile:
        function()
    return profile


def test_calls_times_and_bytes_are_those_of_each_operator():
    profile = profiled(lambda: (A @ B, A @ B, A.exp()))
    assert list(profile.costs) == [aten.mm.default, aten.exp.default]
    mm = profile.costs[aten.mm.default]
    assert (mm.calls, mm.nbytes) == (2, 2 * 2 * 4 * 4) and mm.seconds == pytest.approx(0.002)
    assert [event.op for event in profile.events] == [aten.mm.default, aten.mm.default, aten.exp.default]
    assert profile.events[0].arguments == "f32[2, 3], f32[3, 4]" and profile.events[0].result == "f32[2, 4]"


def test_a_real_clock_is_the_default():
    with ProfilerMode() as profile:
        A.exp()
    (event,) = profile.events
    assert event.seconds > 0 and profile.total_seconds() == event.seconds


def test_views_and_writes_make_no_bytes():
    assert [e.nbytes for e in profiled(lambda: (A.t(), rd.empty(3), A.clone().add_(1))).events] == [0, 12, 24, 0]


def test_backward_is_seen():
    x = rd.ones(3, requires_grad=True)
    assert profiled(lambda: x.exp().sum().backward()).costs[aten.exp.default].calls == 1


def test_an_operator_that_raises_is_timed_and_its_error_goes_on():
    with ProfilerMode(clock=ticking()) as profile:
        with pytest.raises(RuntimeError, match="cannot be multiplied"):
            A.mm(A)
    assert profile.events[0].result == "raised RuntimeError" and profile.costs[aten.mm.default].calls == 1


def test_paths_are_the_keys_at_which_a_call_stopped():
    two = TwoTensor(A, A)
    profile = profiled(lambda: (rd.ones(2), two.exp()), paths=True)
    assert profile.costs[aten.ones.default].path == ["BackendSelect", "CPU"]
    assert "Python" in profile.costs[aten.exp.default].path[0]
    assert "BackendSelect > CPU" in profile.get_table()


def test_each_region_starts_from_nothing():
    profile = profiled(A.exp)
    with profile:
        A.sin()
    assert list(profile.costs) == [aten.sin.default] and len(profile.events) == 1


def test_the_table():
    assert_expected_inline(
        str(profiled(lambda: (A @ B).relu() @ B.t())),
        """\
operator           calls    time   share    mean  bytes
-------------------------------------------------------
aten.mm.default        2  2.0 ms   50.0%  1.0 ms   56 B
aten.relu.default      1  1.0 ms   25.0%  1.0 ms   32 B
aten.t.default         1  1.0 ms   25.0%  1.0 ms    0 B
-------------------------------------------------------
total                  4  4.0 ms  100.0%  1.0 ms   88 B""",
    )


def test_the_order_of_the_table():
    profile = profiled(lambda: (A.t(), A.t(), A @ B))
    first = {order: profile.get_table(order).splitlines()[2].split()[0] for order in ("calls", "bytes", "name")}
    assert first == {"calls": "aten.t.default", "bytes": "aten.mm.default", "name": "aten.mm.default"}
    with pytest.raises(ValueError, match="sort_by should be one of time, calls, bytes, name, got 'speed'"):
        profile.get_table("speed")


def test_the_table_of_an_empty_region():
    assert profiled(lambda: None).get_table().splitlines()[-1].split() == [
        "total",
        "0",
        "0.0",
        "µs",
        "-",
        "-",
        "0",
        "B",
    ]


def test_the_table_is_printed_plainly_without_rich_and_drawn_with_it(monkeypatch, capsys):
    profile = profiled(A.exp)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "rich", None)
        patch.setitem(sys.modules, "rich.console", None)
        profile.print_table()
    assert capsys.readouterr().out == profile.get_table() + "\n"
    pytest.importorskip("rich", reason="the table is drawn by rich where that is installed")
    monkeypatch.setenv("COLUMNS", "120")
    profile.print_table()
    drawn = capsys.readouterr().out
    assert "aten.exp.default" in drawn and "┃" in drawn and "total" in drawn


def test_the_chrome_trace(tmp_path):
    profile = profiled(lambda: (A.exp(), A @ B))
    profile.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [event["args"]["name"] for event in events if event["ph"] == "M"] == ["redispatch", "thread 0"]
    exp, mm = (event for event in events if event["ph"] == "X")
    assert (exp["name"], mm["name"]) == ("aten.exp.default", "aten.mm.default")
    assert [exp["ts"], exp["dur"], mm["ts"]] == pytest.approx([0, 1000, 2000])
    assert mm["args"] == {"arguments": "f32[2, 3], f32[3, 4]", "result": "f32[2, 4]", "bytes": 32}


def test_threads_that_share_a_profile_have_rows_of_their_own():
    profile = ProfilerMode()

    def elsewhere():
        with profile:
            A.sin()
            there.set()
            done.wait(10)

    there, done = threading.Event(), threading.Event()
    thread = threading.Thread(target=elsewhere)
    thread.start()
    there.wait(10)
    profile.__torch_dispatch__(aten.exp.default, (), (A,))
    done.set()
    thread.join()
    calls = [event for event in json.loads(profile.chrome())["traceEvents"] if event["ph"] == "X"]
    assert [(call["name"], call["tid"]) for call in calls] == [("aten.sin.default", 0), ("aten.exp.default", 1)]
