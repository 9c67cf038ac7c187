"""`redispatch.profiler`: PyTorch's names over our profiler mode: windows, labels, sums, tables and files."""

import gzip
import json
import threading

import pytest
from expecttest import assert_expected_inline

import redispatch as rd
from redispatch.autograd import profiler as autograd_profiler
from redispatch.modes.profiler_events import EventList, FunctionEvent, Interval, spoken_us
from redispatch.profiler import (
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

A, B = rd.ones(2, 3), rd.ones(3, 4)


def step():
    A @ B


def by_key(events):
    return {event.key: event for event in events}


def test_labels_stand_around_the_calls_in_their_regions():
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_flops=True) as prof:
        with record_function("outer"):
            with record_function("inner"):
                A @ B
            A.exp()
        A.sin()
    events = by_key(prof.events())
    parents = {name: event.cpu_parent and event.cpu_parent.name for name, event in events.items()}
    assert parents == {"outer": None, "inner": "outer", "aten::mm": "inner", "aten::exp": "outer", "aten::sin": None}
    outer, inner, mm, exp = (events[name] for name in ("outer", "inner", "aten::mm", "aten::exp"))
    assert outer.self_cpu_time_total == pytest.approx(outer.cpu_time_total - inner.cpu_time_total - exp.cpu_time_total)
    assert (mm.input_shapes, mm.flops, mm.cpu_memory_usage) == ([[2, 3], [3, 4]], 48, 32)
    assert (outer.cpu_memory_usage, outer.self_cpu_memory_usage, inner.cpu_memory_usage) == (56, 0, 32)


def test_own_times_add_up_to_the_time_that_was_seen():
    with profile() as prof, record_function("all"):
        rd.nn.Linear(3, 4)(A).sum().backward()
    averages = prof.key_averages()
    assert averages.self_cpu_time_total == pytest.approx(by_key(averages)["all"].cpu_time_total)
    assert averages.total_average().count == len(prof.events())


def test_averages_are_by_name_and_by_shapes_where_asked():
    with profile(record_shapes=True) as prof:
        A.exp(), A.exp(), B.exp()
    assert [(event.key, event.count) for event in prof.key_averages()] == [("aten::exp", 3)]
    grouped = prof.key_averages(group_by_input_shape=True)
    assert [(event.count, event.input_shapes) for event in grouped] == [(2, [[2, 3]]), (1, [[3, 4]])]
    (exp,) = prof.key_averages()
    assert exp.cpu_time == exp.cpu_time_total / 3 and exp.cuda_time_total == 0


def test_the_table():
    def event(name, start, end, **rest):
        return FunctionEvent(name, Interval(start, end), 0, **rest)

    events = EventList(
        [event("aten::mm", 0.0, 1500.0, self_cpu_memory_usage=2048, flops=48), event("aten::exp", 1500.0, 2000.0)],
        profile_memory=True,
        with_flops=True,
    )
    assert_expected_inline(
        events.key_averages().table(sort_by="self_cpu_time_total", header="one step"),
        """\
one step
Name       Self CPU %   Self CPU  CPU total %  CPU total  CPU time avg  CPU Mem  Self CPU Mem  # of Calls  Total KFLOPs
-----------------------------------------------------------------------------------------------------------------------
aten::mm       75.00%    1.500ms       75.00%    1.500ms       1.500ms  2.0 KiB       2.0 KiB           1         0.048
aten::exp      25.00%  500.000us       25.00%  500.000us     500.000us      0 B           0 B           1            --
-----------------------------------------------------------------------------------------------------------------------
Self CPU time total: 2.000ms
""",
    )
    short = events.table(sort_by="count", row_limit=1, max_name_column_width=6)
    assert "aten::exp" not in short and "ate..." in short and spoken_us(2e6) == "2.000s"
    with pytest.raises(AttributeError, match=r"table\(sort_by='speed'\): expected one of cpu_time, "):
        events.table(sort_by="speed")


def test_a_schedule_repeats_its_rounds():
    wanted = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    names = "NONE NONE WARMUP RECORD RECORD_AND_SAVE NONE WARMUP RECORD RECORD_AND_SAVE NONE NONE"
    assert [wanted(number).name for number in range(11)] == names.split()
    at_once = schedule(wait=2, warmup=1, active=1, skip_first_wait=1)
    assert [
        at_once(number).name for number in range(6)
    ] == "WARMUP RECORD_AND_SAVE NONE NONE WARMUP RECORD_AND_SAVE".split()
    with pytest.raises(AssertionError, match="got wait=-1, .* active should be > 0, the others >= 0"):
        schedule(wait=-1, warmup=0, active=1)
    with pytest.warns(UserWarning, match="will have the compilation of kernels in them"):
        schedule(wait=0, warmup=0, active=1)


def test_each_window_of_a_schedule_is_handed_over():
    windows = []

    def ready(prof):
        counts = {event.key: event.count for event in prof.key_averages()}
        windows.append((prof.step_num, counts))

    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=ready) as prof:
        for _ in range(10):
            step()
            prof.step()
    assert windows == [(number, {"ProfilerStep*": 2, "aten::mm": 2}) for number in (4, 8)]
    assert [event.name for event in prof.events() if event.is_user_annotation] == ["ProfilerStep#6", "ProfilerStep#7"]


def test_windows_are_kept_where_asked():
    with profile(schedule=schedule(wait=0, warmup=1, active=1), acc_events=True) as prof:
        for _ in range(4):
            step()
            prof.step()
    assert by_key(prof.key_averages())["aten::mm"].count == 2


def test_files_open_as_json_with_nested_events(tmp_path):
    with profile(record_shapes=True) as prof:
        with record_function("forward"):
            A @ B
    prof.add_metadata("run", "one")
    prof.add_metadata_json("sizes", "[1, 2]")
    prof.export_chrome_trace(tmp_path / "t.json")
    prof.export_chrome_trace(str(tmp_path / "t.json.gz"))
    content = json.loads((tmp_path / "t.json").read_text())
    with gzip.open(tmp_path / "t.json.gz", "rt") as file:
        assert json.load(file) == content
    assert (content["run"], content["sizes"]) == ("one", [1, 2])
    forward, mm = (event for event in content["traceEvents"] if event["ph"] == "X")
    assert (forward["cat"], mm["cat"], mm["name"]) == ("user_annotation", "cpu_op", "aten::mm")
    assert forward["ts"] <= mm["ts"] and mm["ts"] + mm["dur"] <= forward["ts"] + forward["dur"]
    assert mm["args"]["Input Dims"] == [[2, 3], [3, 4]] and mm["tid"] == forward["tid"] == 0
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path / "logs"), "me")):
        step()
    (written,) = (tmp_path / "logs").iterdir()
    assert written.name.startswith("me.") and written.name.endswith(".pt.trace.json")


def test_a_label_is_a_decorator_too_and_costs_nothing_outside_a_profile():
    @record_function("work")
    def work(x):
        return x + 1

    assert work(A).shape == A.shape
    prof = profile()
    prof.start()
    work(A)
    prof.stop()
    work(A)
    assert [event.key for event in prof.key_averages()] == ["work", "aten::add"]
    with pytest.raises(TypeError, match=r"record_function\(name\): expected a string, got int"):
        record_function(3)


def test_a_region_that_raises_keeps_what_was_seen():
    with pytest.raises(ZeroDivisionError):
        with profile() as prof, record_function("failing"):
            step()
            raise ZeroDivisionError
    assert [event.key for event in prof.events()] == ["failing", "aten::mm"]
    A.exp()
    assert len(prof.events()) == 2


def test_a_profile_that_does_not_run_has_no_steps():
    prof = profile()
    prof.stop()
    with pytest.raises(RuntimeError, match=r"step\(\) is for a profile that runs"):
        prof.step()
    with prof, pytest.raises(RuntimeError, match="it runs already"):
        prof.start()
    A.exp()
    assert prof.events() == []


def test_another_thread_is_not_seen():
    with profile() as prof:
        thread = threading.Thread(target=step)
        thread.start()
        thread.join()
    assert prof.events() == []


def test_what_cannot_be_watched_is_said():
    assert supported_activities() == {ProfilerActivity.CPU}
    with pytest.raises(AssertionError, match="No valid profiler activities found: expected ProfilerActivity.CPU"):
        profile(activities=[ProfilerActivity.CUDA])
    with pytest.warns(UserWarning, match="ProfilerActivity.CUDA has no effect here"):
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
    with pytest.warns(UserWarning, match="with_stack has no effect here"):
        profile(with_stack=True)
    with pytest.raises(AssertionError, match="has recorded nothing yet"):
        profile().key_averages()


def test_the_older_face_has_its_results_itself():
    with autograd_profiler.profile(record_shapes=True, use_kineto=autograd_profiler.kineto_available()) as prof:
        assert rd.autograd._profiler_enabled()
        with record_function("outer"):
            rd.ones(2) * 2
    assert not rd.autograd._profiler_enabled()
    assert {"outer", "aten::mul"} <= {event.name for event in prof.function_events}
    assert str(prof) == prof.table() and prof.self_cpu_time_total > 0
    with autograd_profiler.profile(enabled=False) as prof:
        assert prof is None


def test_events_made_by_hand_are_nested_and_averaged():
    every = [
        autograd_profiler.FunctionEvent(id=i, node_id=0, name="foo", thread=0, start_us=start, end_us=end)
        for i, (start, end) in enumerate([(0, 2), (1, 2), (1, 3)])
    ]
    events = autograd_profiler.EventList(every)
    events._populate_cpu_children()
    assert [[child.id for child in event.cpu_children] for event in every] == [[], [], [1]]
    average = autograd_profiler.FunctionEventAvg()
    average.add(autograd_profiler.FunctionEvent(0, "foo", 0, 10, 15))
    average.add(average)
    assert (average.key, average.count, average.cpu_time_total, average.cpu_time) == ("foo", 2, 10, 5)
