"""Modes that write down what is called: logs, coverage, FLOPs, memory, time; and what all of them have in common."""

import gc
import importlib
import json
import sys
import threading
import weakref
from itertools import count
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

import redispatch as rd
import redispatch.modes
import redispatch.optim
import redispatch.subclasses
from redispatch.library import custom_op
from redispatch.modes.coverage import OperatorCoverageMode, operators
from redispatch.modes.flop_counter import FlopCounterMode, flop_registry, register_flop_formula
from redispatch.modes.logging_mode import LoggingMode, summary
from redispatch.modes.memory_tracker import GIVEN, MemoryTrackerMode
from redispatch.modes.profiler import ProfilerMode
from redispatch.overrides import TorchFunctionMode
from redispatch.subclasses.two_tensor import TwoTensor
from redispatch.utils._python_dispatch import TorchDispatchMode

# The room: every mode has a file of its own, is found by its name, and says what it teaches and how serious it is -----


def test_every_name_is_a_mode():
    modes = [getattr(rd.modes, name) for name in rd.modes.__all__]
    assert modes and all(issubclass(mode, TorchDispatchMode | TorchFunctionMode) for mode in modes)
    assert set(rd.modes.__all__) <= set(dir(rd.modes)) and set(rd.modes.__all__) == set(rd.modes.PLACES)


def test_every_file_with_a_mode_is_listed():
    files = {path.stem for path in Path(rd.modes.__file__).parent.glob("*.py")}
    helpers = {"__init__", "findings", "profiler_events"}
    assert {f".{file}" for file in files - helpers} == set(rd.modes.PLACES.values())


@pytest.mark.parametrize("name", [name for name in rd.modes.PLACES if name != "FunctionalTensorMode"])
def test_a_mode_says_what_it_teaches(name):
    about = " ".join(importlib.import_module(rd.modes.PLACES[name], "redispatch.modes").__doc__.split())
    assert about.startswith(name) and "What it teaches:" in about and "How serious it is:" in about


def test_modes_that_check_and_measure_nest_around_a_training_step():
    rd.manual_seed(0)
    model = rd.nn.Sequential(rd.nn.Linear(3, 4), rd.nn.ReLU(), rd.nn.Linear(4, 1))
    optimizer = rd.optim.SGD(model.parameters(), lr=0.1)
    x = rd.rand(5, 3)
    before = model[0].weight.detach().clone()
    with rd.modes.DeterminismMode(), rd.modes.CrossCheckMode(), rd.modes.NanDetectorMode():
        with rd.modes.MemoryTrackerMode() as memory, rd.modes.ProfilerMode() as profile:
            model(x).square().mean().backward()
            optimizer.step()
    assert not rd.equal(model[0].weight, before)
    assert profile.costs[rd.ops.aten.addmm.default].calls == 2 and memory.peak > before.nbytes


def test_the_gallery_shows_every_mode_and_subclass():
    text = (Path(__file__).parents[2] / "docs" / "gallery.md").read_text()
    headings = " ".join(line for line in text.splitlines() if line.startswith("### "))
    for name in (*rd.modes.__all__, *rd.subclasses.__all__):
        assert name in headings, name


# LoggingMode: what its lines say, and that it neither changes what runs nor stays behind ------------------------------


def test_it_records_what_runs_below_autograd():
    """The detach is autograd's: it keeps relu's result for backward."""
    x = rd.ones(2, 3, requires_grad=True)
    with LoggingMode() as log:
        (x * 2).relu().sum(dim=1)
    assert_expected_inline(
        str(log),
        """\
aten.mul.Tensor(f32[2, 3], 2) -> f32[2, 3]
aten.relu.default(f32[2, 3]) -> f32[2, 3]
aten.detach.default(f32[2, 3]) -> f32[2, 3]
aten.sum.dim_IntList(f32[2, 3], [1]) -> f32[2]""",
    )


def test_it_sees_what_backward_runs():
    x = rd.ones(2, requires_grad=True)
    y = x.exp().sum()
    with LoggingMode() as log:
        y.backward()
    assert "aten.mul.Tensor(f32[2], f32[2]) -> f32[2]" in log.lines
    assert x.grad.shape == (2,)


def test_what_it_passes_on_is_the_result_itself():
    x = rd.ones(2)
    with LoggingMode():
        assert x.add_(1) is x
    assert x.tolist() == [2.0, 2.0]


def test_write_gets_each_line_as_it_is_made():
    lines = []
    with LoggingMode(lines.append) as log:
        rd.ones(2).neg()
    assert lines == log.lines and len(lines) == 2


def test_inner_modes_are_asked_first():
    with LoggingMode() as outer, LoggingMode() as inner:
        rd.ones(2)
    assert outer.lines == inner.lines and len(inner.lines) == 1


def test_summaries():
    class Mine(rd.Tensor):
        pass

    x = rd.ones(2, 3)
    assert summary(x) == "f32[2, 3]"
    assert summary(x.to(rd.bfloat16)) == "bf16[2, 3]"
    assert summary(x > 0) == "bool[2, 3]"
    assert summary(rd.empty((), dtype=rd.uint8)) == "u8[]"
    assert summary(rd.empty(0, dtype=rd.int64, device="meta")) == "i64[0] on meta"
    assert summary(x.as_subclass(Mine)) == "Mine(f32[2, 3])"
    assert summary((x, [x, None], 1.5, "mean")) == "(f32[2, 3], [f32[2, 3], None], 1.5, 'mean')"
    assert summary((x,)) == "(f32[2, 3],)"


# OperatorCoverageMode: what was called of a set, what was not, and the set itself -------------------------------------

aten = rd.ops.aten
A, B = rd.ones(2, 3), rd.ones(3, 4)


def test_calls_are_counted_by_member_of_the_set():
    with OperatorCoverageMode([aten.mm.default, aten.add, aten.exp.default]) as coverage:
        x = A @ B
        x + x
        rd.add(x, x, out=x)
        x.relu()
    assert coverage.calls == {aten.mm.default: 1, aten.add: 2}
    assert coverage.others == {aten.relu.default: 1}
    assert coverage.missing() == [aten.exp.default] and coverage.fraction == pytest.approx(2 / 3)


def test_without_a_set_everything_is_counted_and_nothing_is_missing():
    with OperatorCoverageMode() as coverage:
        A.exp().exp()
    assert coverage.calls == {aten.exp.default: 2} and coverage.missing() == [] and coverage.fraction == 1
    assert not coverage.others


def test_backward_counts_and_so_does_a_call_that_raises():
    x = rd.ones(3, requires_grad=True)
    with OperatorCoverageMode([aten.mul.Tensor, aten.mm.default]) as coverage:
        x.sin().sum().backward()
        with pytest.raises(RuntimeError):
            A.mm(A)
    assert coverage.missing() == []


def test_regions_add_up_until_they_are_cleared():
    coverage = OperatorCoverageMode([aten.exp.default])
    for _ in range(2):
        with coverage:
            A.exp().sin()
    assert coverage.calls[aten.exp.default] == coverage.others[aten.sin.default] == 2
    coverage.clear()
    assert coverage.missing() == [aten.exp.default] and coverage.fraction == 0 and not coverage.others


def test_the_set_of_all_operators_with_tags():
    core = operators("aten", rd.Tag.core)
    assert aten.mm.default in core and aten.mm.out not in core and all(rd.Tag.core in op.tags for op in core)
    assert core == sorted(core, key=str) and len(core) == len(set(core)) > 150
    assert set(operators("aten", rd.Tag.core, rd.Tag.pointwise)) < set(core) < set(operators())


def test_the_table():
    with OperatorCoverageMode([aten.mm, aten.exp, aten.sin, aten.cos]) as coverage:
        (A @ B).exp().exp()
    assert_expected_inline(
        coverage.get_table(missing=True),
        """\
operator       calls
--------------------
aten.exp           2
aten.mm            1
aten.sin           0
aten.cos           0
--------------------
2 of 4 called      3""",
    )
    assert "aten.sin" not in str(coverage)


# FlopCounterMode: counts by formula, by tag and by part; the table of formulas; the printed table ---------------------

LEFT, RIGHT, BIAS = rd.ones(2, 3), rd.ones(3, 4), rd.ones(4)


def flops(function, **options):
    with FlopCounterMode(display=False, **options) as counter:
        function()
    return counter.get_total_flops()


@pytest.mark.parametrize(
    "function, expected",
    [
        (lambda: LEFT.mm(RIGHT), 2 * 2 * 3 * 4),
        (lambda: rd.addmm(BIAS, LEFT, RIGHT), 2 * 2 * 3 * 4),
        (lambda: rd.bmm(LEFT.expand(5, 2, 3), RIGHT.expand(5, 3, 4)), 5 * 2 * 2 * 3 * 4),
        (lambda: rd.baddbmm(BIAS, LEFT.expand(5, 2, 3), RIGHT.expand(5, 3, 4)), 5 * 2 * 2 * 3 * 4),
        (lambda: LEFT.exp(), 6),
        (lambda: LEFT + rd.empty(5, 1, 1), 30),
        (lambda: LEFT.add_(0), 6),
        (lambda: LEFT.sum(), 6),
        (lambda: LEFT.mean(1), 6),
        (lambda: LEFT.amax(0), 6),
        (lambda: LEFT.softmax(1), 30),
        (lambda: LEFT.log_softmax(1), 30),
        (lambda: rd.empty(0, 3).mm(RIGHT), 0),
        (lambda: LEFT.t().clone(), 0),
        (lambda: rd.ones(9), 0),
    ],
)
def test_counts(function, expected):
    assert flops(function) == expected


def test_matrix_products_of_a_step_count_twice_as_much_backward_as_forward():
    a, b = rd.ones(2, 3, requires_grad=True), rd.ones(3, 4, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        a.mm(b).sum().backward()
    assert counter.get_flop_counts()["Global"][rd.ops.aten.mm] == 3 * (2 * 2 * 3 * 4)
    assert counter.calls[rd.ops.aten.mm] == 3


def test_shapes_are_enough():
    assert flops(lambda: rd.empty(200, 300, device="meta") @ rd.empty(300, 400, device="meta")) == 48_000_000


def test_operators_that_arrive_whole_in_inference_mode_are_counted_by_their_parts():
    with rd.inference_mode(), FlopCounterMode(display=False) as counter:
        rd.nn.functional.linear(LEFT, RIGHT.t(), BIAS)
    assert counter.get_flop_counts() == {"Global": {rd.ops.aten.addmm: 48}}


def test_a_custom_operator_brings_its_formula():
    @custom_op("flops_test::cube", mutates_args=())
    def cube(x: rd.Tensor) -> rd.Tensor:
        return x * x * x

    packet = rd.ops.flops_test.cube
    assert flops(lambda: cube(LEFT)) == 0  # what its kernel calls is the kernel's business
    formula = {packet: lambda shape, out_shape: 2 * shape[0] * out_shape[1]}
    assert flops(lambda: cube(LEFT), custom_mapping=formula) == 12

    @register_flop_formula(packet)
    def cube_flops(x_shape, *, out_shape):
        return 2 * x_shape[0] * x_shape[1]

    try:
        assert flops(lambda: cube(LEFT)) == 12
        with pytest.raises(RuntimeError, match=r"duplicate registrations for .*cube.* from .*test_measuring.py:\d+"):
            register_flop_formula([packet])(cube_flops)
    finally:
        del flop_registry[packet]
    register_flop_formula(packet, get_raw=True)(lambda x, *, out_val: out_val.numel())
    assert flops(lambda: cube(LEFT)) == 6
    del flop_registry[packet]


def test_each_region_counts_from_nothing():
    counter = FlopCounterMode(display=False)
    for _ in range(2):
        with counter:
            LEFT.exp()
        assert counter.get_total_flops() == 6


def test_the_table_is_printed_at_the_end(capsys):
    with FlopCounterMode():
        (LEFT @ RIGHT).relu().t()
    assert_expected_inline(
        capsys.readouterr().out,
        """\
operator   calls  FLOPs   share
-------------------------------
aten.mm        1     48   85.7%
aten.relu      1      8   14.3%
aten.t         1      0    0.0%
-------------------------------
total          3     56  100.0%
""",
    )


def test_the_table_of_a_region_without_flops():
    with FlopCounterMode(display=False) as counter:
        pass
    assert counter.get_table().splitlines()[-1].split() == ["total", "0", "0", "-"]


# MemoryTrackerMode: storages counted once, freed when they die, the peak, by operator, the timeline -------------------

KIB = 256  # float32 numbers in a KiB


def test_what_dies_is_counted_no_more():
    with MemoryTrackerMode() as memory:
        x = rd.empty(KIB)
        assert memory.live == 1024
        y = rd.empty(KIB)
        assert memory.live == memory.peak == 2048
        del x
        assert memory.live == 1024
    del y
    assert memory.live == 0 and memory.peak == 2048


def test_views_share_and_keep_a_storage():
    with MemoryTrackerMode() as memory:
        x = rd.empty(KIB)
        view = x[1:2].expand(9)
        del x
        assert memory.live == memory.peak == 1024
        del view
        assert memory.live == 0


def test_the_peak_of_temporaries():
    with MemoryTrackerMode() as memory:
        x = rd.ones(KIB)
        y = x.exp().sin().cos()  # at most three at a time
    assert memory.peak == 3 * 1024 and memory.live == 2 * 1024
    assert memory.made == {"aten.ones.default": 1024, "aten.exp.default": 1024, "aten.sin.default": 1024} | {
        "aten.cos.default": 1024
    }
    assert memory.at_peak == {"aten.ones.default": 1024, "aten.exp.default": 1024, "aten.sin.default": 1024}
    assert y.shape == x.shape


def test_the_timeline_has_a_point_for_each_call():
    with MemoryTrackerMode() as memory:
        x = rd.ones(KIB)
        x = x.exp()
        x.add_(1)
    assert memory.timeline == [("aten.ones.default", 1024), ("aten.exp.default", 2048), ("aten.add_.Tensor", 1024)]


def test_what_was_there_before_counts_from_its_first_use():
    x = rd.ones(KIB)
    with MemoryTrackerMode() as memory:
        assert memory.live == 0
        x.t()
        assert memory.live == 1024 and memory.made == {GIVEN: 1024}


def test_what_autograd_saves_is_alive_until_backward():
    x = rd.ones(KIB, requires_grad=True)
    with MemoryTrackerMode() as memory:
        y = x.exp().sin().sum()
        assert memory.live == 2 * 1024 + 4  # x, exp(x), which both derivatives need, and the sum; sin(…) is gone
        y.backward()
        del y
        gc.collect()
    assert memory.live == 2 * 1024  # x and its gradient


def test_a_resized_storage_counts_as_what_it_is_now():
    with MemoryTrackerMode() as memory:
        x = rd.empty(KIB)
        x.resize_(4 * KIB)
        assert memory.live == 4096
    assert memory.peak == 4096 and x.shape == (1024,)


def test_meta_tensors_are_counted_without_memory():
    with MemoryTrackerMode() as memory:
        x = rd.empty(10**6, 10**6, device="meta")
        (x @ x).sum()
    assert memory.peak == 8 * 10**12 + 4


def test_a_wrapper_counts_as_the_tensors_inside_it():
    with MemoryTrackerMode() as memory:
        two = TwoTensor(rd.ones(KIB), rd.ones(KIB))
        two.exp()
    assert memory.peak == 4 * 1024


def test_storages_that_die_in_another_thread_are_counted():
    with MemoryTrackerMode() as memory:
        box = [rd.ones(KIB)]
        thread = threading.Thread(target=box.clear)
        thread.start()
        thread.join()
        assert memory.live == 0


def test_storages_may_outlive_the_mode():
    with MemoryTrackerMode() as memory:
        x = rd.ones(KIB)
    gone = weakref.ref(memory)
    del memory
    gc.collect()
    assert gone() is None  # the storage, which still tells of its end, does not keep the mode
    del x


def test_each_region_tracks_from_nothing():
    memory = MemoryTrackerMode()
    kept = []
    for _ in range(2):
        with memory:
            kept.append(rd.ones(KIB))
        assert memory.live == memory.peak == 1024
    kept.clear()
    assert memory.live == 0


def test_an_error_leaves_the_counts_true():
    with MemoryTrackerMode() as memory:
        x = rd.ones(KIB)
        with pytest.raises(RuntimeError):
            x.view(7)
        assert memory.live == 1024 and len(memory.timeline) == 1


def test_the_table_of_memory():
    with MemoryTrackerMode() as memory:
        x = rd.ones(KIB)
        x.exp().sin()
        rd.zeros(8)
    assert_expected_inline(
        str(memory),
        """\
made by             calls     made  at peak
-------------------------------------------
aten.exp.default        1  1.0 KiB  1.0 KiB
aten.ones.default       1  1.0 KiB  1.0 KiB
aten.sin.default        1  1.0 KiB  1.0 KiB
aten.zeros.default      1     32 B      0 B
-------------------------------------------
total                   4  3.0 KiB  3.0 KiB""",
    )


# ProfilerMode ---------------------------------------------------------------------------------------------------------

# Counts, times by a clock of the test's own, bytes, key paths, tables and the Chrome trace.


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


def test_each_region_is_timed_from_nothing():
    profile = profiled(A.exp)
    with profile:
        A.sin()
    assert list(profile.costs) == [aten.sin.default] and len(profile.events) == 1


def test_the_table_of_times():
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
