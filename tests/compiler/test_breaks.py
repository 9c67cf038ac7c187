"""compile: functions with breaks and effects: what runs between them is compiled, and all happens in its turn."""

import dataclasses
from typing import Any

import pytest

import redispatch as rd
from redispatch import compiler, nn
from redispatch._dynamo import capture
from redispatch._dynamo.exc import Unsupported
from tests import drawing

from .changing import BREAKING, run


def graphs_of(made):
    def backend(module, examples):
        made.append([node.target.__name__ for node in module.graph.nodes if node.op == "call_function"])
        return module.forward

    return backend


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_no_call_with_breaks_is_wrong_whatever_changed_before_it(backend):
    calls = {"eager": 100, "aot_eager": 25}[backend] * (20 if drawing.everything else 1)
    wrong, recorded = run(drawing.number("breaks", backend), calls, backend, BREAKING)
    assert wrong == [] and recorded > 0


def test_a_branch_by_a_value_chooses_a_segment():
    made = []

    def clipped(x):
        y = x * 2
        norm = y.norm()
        return y / norm if norm > 1 else y + 1

    f = rd.compile(clipped, backend=graphs_of(made))
    for value in (1.0, 0.1, 2.0, 0.2, 3.0):
        x = rd.full((3,), value)
        assert rd.equal(f(x), clipped(x))
    assert made == [["mul", "norm", "gt"], ["div"], ["add"]]
    assert compiler.explain(f)(x).graph_break_count == 1


def test_gradients_flow_through_segments_also_twice():
    def program(x, w):
        y = (x * w).sin()
        if y.sum() > 0:
            y = y * w
        with rd.no_grad():
            big = y.detach().max().item() > 0.9
        return y.pow(3) if big else y * y

    f = rd.compile(program, backend="aot_eager")
    for value in (1.0, -1.0, 0.1, 1.5, -0.2):
        results = []
        for function in (program, f):
            x, w = rd.full((3,), value, requires_grad=True), rd.full((3,), 0.8, requires_grad=True)
            first = rd.autograd.grad(function(x, w).sum(), (x, w), create_graph=True)
            results.append([*first, *rd.autograd.grad(sum(one.sum() for one in first), (x, w))])
        rd.testing.assert_close(*results)


def test_random_numbers_and_writes_before_a_new_branch_happen_once():
    def program(x):
        y = x.add_(1) * rd.rand(3)
        return y + rd.rand(3) if y.sum() > 2 else y - rd.rand(3)

    f = rd.compile(program, backend="aot_eager")
    for seed, value in enumerate((0.0, 5.0, 0.0, 5.0, -4.0)):
        found = []
        for function in (program, f):
            rd.manual_seed(seed)
            x = rd.full((3,), value)
            found.append([function(x), x, rd.rand(1)])
        rd.testing.assert_close(*found)


def test_sizes_that_depend_on_values_are_asked_at_each_call():
    f = rd.compile(lambda x: x * x[x > 0].shape[0], backend="native")
    for values in ([1.0, -1.0, 2.0], [1.0, 2.0, 3.0], [-1.0, -1.0, 0.0], [1.0, -1.0, 5.0]):
        x = rd.tensor(values)
        assert rd.equal(f(x), x * sum(value > 0 for value in values))


TOTAL = 0


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls, self.seen, self.table, self.linear = 0, [], {}, nn.Linear(2, 2)
        self.register_buffer("mean", rd.zeros(2))

    def forward(self, x):
        global TOTAL
        self.calls += 1
        TOTAL += 2
        y = self.linear(x)
        self.mean = self.mean * 0.5 + y.detach().mean(0)
        self.seen.append(y.shape[0])
        self.table["last"] = y
        if y.sum() > 0:
            self.table["positive"] = True
            return y * 2
        return y - self.mean


def test_effects_on_objects_happen_in_each_call_and_counters_need_no_other_program(capsys):
    module, other = Counting(), Counting()
    other.load_state_dict(module.state_dict())
    f = rd.compile(other, backend="aot_eager")
    for seed in range(5):
        rd.manual_seed(seed)
        x, before = rd.randn(3, 2), TOTAL
        rd.testing.assert_close(f(x), module(x))
        assert before + 4 == TOTAL
        assert (module.calls, module.seen, [*module.table]) == (other.calls, other.seen, [*other.table])
        rd.testing.assert_close([module.mean, module.table["last"]], [other.mean, other.table["last"]])
    assert len(f.dynamo_ctx.programs) == 1 and other.calls == 5


def test_print_between_operators_prints_at_each_call(capsys):
    def program(x):
        y = x * 2
        print("before", x.shape[0])
        z = y + 1
        print(z)
        return z

    f = rd.compile(program, backend="aot_eager")
    for value in (1.0, 2.0, 1.0):
        f(rd.full((2,), value))
        compiled = capsys.readouterr().out
        program(rd.full((2,), value))
        assert compiled == capsys.readouterr().out != ""
    with pytest.raises(Unsupported, match=r"print writes .*test_breaks.py:\d+, in program\): print what"):
        rd.compile(program, fullgraph=True)(rd.ones(2))


def test_effects_are_part_of_a_full_graph():
    module = Counting()
    f = rd.compile(lambda x: (module.seen.append(1), module.linear(x))[1], fullgraph=True, backend="eager")
    assert [f(rd.ones(1, 2)).shape[0] for _ in range(3)] == [1] * 3 and module.seen == [1] * 3


def test_python_goes_on_where_code_is_not_shown(monkeypatch):
    monkeypatch.setattr(capture, "WORTH", 1)
    made, seen = [], []

    def program(x):
        y = (x * 2).relu()
        seen.extend(y.tolist())
        return y + len(seen)

    f = rd.compile(program, backend=graphs_of(made))
    assert [f(rd.ones(1)).item() for _ in range(4)] == [3, 4, 5, 6] and seen == [2.0] * 4
    assert made == [["mul", "relu"]]


def test_a_break_with_many_values_warns_once_and_stays_right():
    f = rd.compile(lambda x: x * 2 + x.sum().item(), backend="eager")
    with pytest.warns(UserWarning, match=r"goes on in 8 ways behind a break.*item gives.*test_breaks.py") as warned:
        for value in range(20):
            assert f(rd.full((1,), float(value))).item() == value * 3
    assert len(warned) == 1


def test_recording_may_be_asked_for_within_a_region_without():
    x = rd.ones(2, requires_grad=True)

    def program(x):
        with rd.enable_grad():
            return x * 2

    f = rd.compile(program, backend="aot_eager")
    with rd.no_grad():
        assert [f(x).requires_grad for _ in range(3)] == [True] * 3


@dataclasses.dataclass
class Output:
    logits: Any
    hidden: Any = None
    extra: list = dataclasses.field(default_factory=list)


class Scaled:
    rate = 2

    def __init__(self, x, by=3):
        self.x, self.by = x * by, by
        self.count = 0

    @property
    def value(self):
        return self.x * self.rate

    def __call__(self, y):
        self.count += 1
        return self.value + y * self.count


def test_instances_of_a_programs_own_classes_are_made_anew_at_each_call(monkeypatch):
    def program(x):
        scaled = Scaled(x)
        y = scaled(x) + scaled(x)
        return Output(y, hidden=(y + 1, scaled), extra=[scaled.count])

    f, results = rd.compile(program, backend="aot_eager"), []
    for rate in (2, 2, 5, 5):
        monkeypatch.setattr(Scaled, "rate", rate)
        x = rd.randn(2)
        found, expected = f(x), program(x)
        assert type(found) is Output and type(found.hidden[1]) is Scaled and found.extra == [2]
        rd.testing.assert_close([found.logits, found.hidden[0]], [expected.logits, expected.hidden[0]])
        assert found.hidden[1].by == 3 and rd.equal(found.hidden[1].x, expected.hidden[1].x)
        results.append(found)
    assert len(f.dynamo_ctx.programs) == 2 and results[0].extra is not results[1].extra


class Noted:
    def __init__(self, seen):
        self.seen = seen

    def __enter__(self):
        self.seen.append("in")
        return self

    def __exit__(self, *error):
        self.seen.append("out")


def test_regions_of_a_programs_own_are_entered_and_left_in_each_call():
    seen = []

    def program(x):
        with Noted(seen) as region:
            y = x * 2 + len(region.seen)
        return y.relu()

    f = rd.compile(program, backend="aot_eager")
    assert [f(rd.ones(())).item() for _ in range(3)] == [3, 5, 7] and seen == ["in", "out"] * 3


def test_effects_before_an_error_have_happened_as_they_do_without_compile():
    seen = []

    def program(x, w):
        seen.append("before")
        x.add_(1)
        y = x @ w
        seen.append("behind")
        return y

    f = rd.compile(program, backend="aot_eager")
    for columns in (3, 3, 4, 3, 4):
        found = []
        for function in (program, f):
            x = rd.zeros(2, columns)
            try:
                result = function(x, rd.ones(3, 2)).tolist()
            except RuntimeError as error:
                result = str(error)
            found.append((result, x.tolist(), list(seen)))
            seen.clear()
        assert found[0] == found[1]
