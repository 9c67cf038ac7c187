"""Lazy tensors: when programs run, how often they are compiled, what is counted, what errors are raised where."""

import io
import sys
import threading

import pytest

import redispatch as rd
import redispatch._lazy
from redispatch import nn
from redispatch._lazy import computation, config, debug, ir_cache, metrics, ts_backend
from redispatch._lazy.extract_compiled_graph import extract_compiled_graph
from redispatch.kernels.lazy import LAZY, LazyTensor, Recorder, recorder
from redispatch.kernels.lazy.program import Programs

lazy = rd._lazy


def count(name):
    return metrics.counter_value(name) or 0


def programs():
    return count("UncachedCompile"), count("CachedCompile")


def test_a_lazy_tensor_says_what_a_tensor_of_its_device_says():
    x = rd.ones(2, 3, device="lazy")
    assert str(rd._C._dispatch_keys(x)) == "DispatchKeySet(Lazy, Functionalize, ADInplaceOrView, AutogradLazy)"
    assert x.device == rd.device("lazy:0") and x.type() == "torch.lazy.FloatTensor" and x.t().stride() == (1, 3)
    assert repr(x[0]) == "tensor([1., 1., 1.], device='lazy:0')"
    w = (x * 2).requires_grad_()
    assert repr(w[:1] * 2) == "tensor([[4., 4., 4.]], device='lazy:0', grad_fn=<MulBackward0>)"
    assert repr(nn.Parameter(x[0])).startswith(
        "Parameter containing:\ntensor([1., 1., 1.], device='lazy:0', requires_grad"
    )
    assert x.to("lazy") is x


def test_init_may_be_called_again():
    ts_backend.init()
    assert rd.ones(2, device="lazy").sum().item() == 2


def test_nothing_runs_before_a_value_is_asked_for():
    x = rd.ones(3, device="lazy")
    y = (x * 2 + 1).sum()
    assert programs() == (0, 0)
    assert y.item() == 9
    assert programs() == (1, 0)
    assert y.item() == 9
    assert programs() == (1, 0)


@pytest.mark.parametrize("ask", [lambda y: bool(y > 0), repr, lambda y: y.cpu(), lambda y: y.tolist(), float])
def test_who_asks_for_a_value_has_the_program_run_once(ask):
    x = rd.ones(3, device="lazy") * 3
    ask(x.sum())
    assert sum(programs()) == 1


def test_a_program_is_compiled_once_for_each_shape():
    def run(n):
        x = rd.rand(n).to("lazy")
        return (x * 2 + x).tanh().sum().item()

    for _ in range(3):
        run(4)
    assert programs() == (1, 2)
    run(5)
    assert programs() == (2, 2)


def test_programs_that_differ_in_a_constant_or_an_edge_are_two():
    x, y = rd.ones(3).to("lazy"), rd.full((3,), 2.0).to("lazy")
    assert [(x - y).tolist(), (y - x).tolist(), (x - x).tolist()] == [[-1] * 3, [1] * 3, [0] * 3]
    assert [x.sum(0).item(), x.sum(0, dtype=rd.float64).dtype, x.clamp(max=0.5).tolist()[0]] == [3, rd.float64, 0.5]


def optimizers():
    yield "sgd", lambda p: rd.optim.SGD(p, lr=0.1, momentum=0.9), None
    yield "adam", lambda p: rd.optim.Adam(p, lr=0.01), None
    yield "schedule", lambda p: rd.optim.SGD(p, lr=0.1), lambda o: rd.optim.lr_scheduler.ExponentialLR(o, 0.9)


@pytest.mark.parametrize(
    ("make", "schedule"), [case[1:] for case in optimizers()], ids=[case[0] for case in optimizers()]
)
def test_a_training_loop_compiles_nothing_after_its_second_step(make, schedule):
    module = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).to("lazy")
    optimizer = make(module.parameters())
    scheduler = schedule and schedule(optimizer)
    compiled = []
    for _ in range(6):
        x, t = rd.randn(5, 4).to("lazy"), rd.randint(0, 3, (5,)).to("lazy")
        optimizer.zero_grad()
        nn.functional.cross_entropy(module(x), t).backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        lazy.mark_step()
        compiled.append(count("UncachedCompile"))
    assert compiled[1:] == [compiled[1]] * 5
    assert not [name for name in metrics.counter_names() if name.startswith("aten::")]


def test_a_number_that_changes_is_an_input_and_others_are_constants():
    x = rd.arange(4.0).to("lazy")
    results = [((x * 2.5 + x).exp() * number).tolist() for number in (3.5, 4.5, 5.5)]
    assert programs() == (2, 1)
    (program,) = recorder.programs.known.values()
    assert program.free == (1,)
    x = rd.arange(4.0)
    for found, number in zip(results, (3.5, 4.5, 5.5), strict=True):
        rd.testing.assert_close(rd.tensor(found), (x * 2.5 + x).exp() * number)


def test_equal_calls_are_one_node():
    x = rd.ones(3).to("lazy")
    y, z = x * 2 + 1, x * 2 + 1
    assert y.current_result() is z.current_result()
    y.add_(1)
    assert (y.tolist(), z.tolist()) == ([4, 4, 4], [3, 3, 3])
    config.set_reuse_ir(False)
    try:
        assert (x * 2).current_result() is not (x * 2).current_result()
    finally:
        config.set_reuse_ir(True)


def test_what_depends_on_values_runs_at_once_and_is_counted():
    x = rd.tensor([0.0, 2.0, 0.0]).to("lazy")
    assert x.nonzero().tolist() == [[1]] and x[x > 0].tolist() == [2]
    assert count("aten::nonzero") == 1 and count("aten::index") == 1 and count("lazy::gt") == 1
    assert "Counter: aten::nonzero\n  Value: 1\n" in metrics.metrics_report()
    assert "Metric: TensorsGraphSize" in metrics.metrics_report()
    assert metrics.counter_value("nothing") is None
    metrics.reset()
    assert metrics.counter_names() == []


def test_an_operator_can_be_made_to_run_at_once():
    x = rd.ones(3, device="lazy")
    assert (x + x).tolist() == [2, 2, 2] and count("aten::add") == 0
    config.set_force_fallback("aten::add")
    try:
        assert config.get_force_fallback() == "aten::add"
        assert (x + x).tolist() == [2, 2, 2] and count("aten::add") == 1
    finally:
        config.set_force_fallback("")


def test_custom_operators_run_at_once():
    lib = rd.library.Library("lazyness", "DEF")
    calls = []
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: calls.append(1) or x * 2, "CPU")
    lib.define("triple_(Tensor(a!) x) -> ()")
    lib.impl("triple_", lambda x: x.mul_(3) is None or None, "CPU")
    x = rd.ones(2, device="lazy")
    y = x.clone()
    rd.ops.lazyness.triple_(y)
    assert (rd.ops.lazyness.twice(x).tolist(), y.tolist(), x.tolist()) == ([2, 2], [3, 3], [1, 1])
    assert calls == [1] and count("lazyness::twice") == 1


# Errors ---------------------------------------------------------------------------------------------------------------

WRONG = {
    "mm": lambda x: x @ x,
    "add": lambda x: x + x[:, :2],
    "view": lambda x: x.view(5),
    "dim": lambda x: x.sum(7),
    "write": lambda x: x.add_(x[:, :2]),
    "leaf": lambda x: x.requires_grad_().add_(1),
    "cat": lambda x: rd.cat([x, x[:, :1]], 0),
    "dtype": lambda x: x.long().requires_grad_(),
    "bool": bool,
    "item": lambda x: x.item(),
    "cholesky": lambda x: rd.linalg.cholesky(-x[:2, :2] @ x[:2, :2].t()),
    "negative size": lambda x: x.new_empty(-1),
    "backward": lambda x: x.sum().backward(),
    "squeeze": lambda x: x.softmax(3),
    "saved": lambda x: (lambda w: (w.exp().add_(1), w)[0].sum().backward())(x.requires_grad_()),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_error_of_metadata_is_raised_by_the_call_as_on_the_cpu(name):
    with pytest.raises(Exception) as wanted:
        WRONG[name](rd.ones(2, 3))
    x = rd.ones(2, 3).to("lazy")
    with pytest.raises(type(wanted.value)) as found:
        WRONG[name](x)
    assert str(found.value).partition("[")[0] == str(wanted.value).partition("[")[0]
    assert x.sum().item() == 6


def test_an_error_of_values_is_raised_to_who_needs_them_and_to_nobody_else():
    w, i = rd.ones(4, 3).to("lazy"), rd.tensor([0, 9]).to("lazy")
    bad = w.index_select(0, i)
    needs, good = bad + 1, w * 3
    assert good.sum().item() == 36
    for _ in range(2):
        with pytest.raises(IndexError):
            needs.cpu()
        with pytest.raises(IndexError):
            bad.tolist()
    assert (w + 1).sum().item() == 24
    again = w.index_select(0, i)
    with pytest.raises(IndexError):
        lazy.mark_step()
    del again


def test_tensors_of_the_cpu_and_lazy_ones_do_not_mix():
    x = rd.ones(3, device="lazy")
    with pytest.raises(RuntimeError, match=r"Input tensor is not a lazy tensor: torch\.FloatTensor"):
        x + rd.ones(3)
    assert (x + rd.tensor(2.0)).tolist() == [3, 3, 3]
    with pytest.raises(RuntimeError, match="mutating a non-functional tensor with a functional tensor is not allowed"):
        rd.ones(3).add_(x)
    with pytest.raises(TypeError, match="can't convert lazy:0 device type tensor to numpy"):
        x.numpy()
    with pytest.raises(RuntimeError, match="Input tensor is not a lazy tensor"):
        lazy.sync_multi([rd.ones(3)], [])


# Memory and threads ---------------------------------------------------------------------------------------------------


def test_what_nobody_asks_for_is_run_before_it_is_too_much(as_it_stands, monkeypatch):
    monkeypatch.setattr(sys.modules["redispatch.kernels.lazy.recorder"], "LIMIT_NODES", 100)
    x = rd.zeros(3, device="lazy")
    most = 0
    for _ in range(1000):
        x = x + 1
        most = max(most, len(recorder.pending))
    assert most <= 100 and x.tolist() == [1000] * 3


def test_values_from_outside_are_let_go_of(as_it_stands, monkeypatch):
    monkeypatch.setattr(sys.modules["redispatch.kernels.lazy.recorder"], "LIMIT_BYTES", 10_000)
    held = [rd.ones(100).to("lazy") + 1 for _ in range(200)]
    assert recorder.bytes <= 10_000 and len(recorder.pending) < 200
    assert sum(one.sum().item() for one in held) == 200 * 200


def test_a_run_node_holds_nothing_of_what_it_was_computed_of(as_it_stands):
    x = rd.ones(3, device="lazy")
    y = (x * 2) * 3
    lazy.mark_step()
    node = y.current_result().node
    assert node.inputs == () and node.results[0].tolist() == [6, 6, 6]


def test_threads_record_and_run(as_it_stands):
    found = []

    def work():
        x = rd.ones(3, device="lazy")
        for _ in range(200):
            x = x + 1
        found.append(x.sum().item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == [603] * 4


# PyTorch's names ------------------------------------------------------------------------------------------------------


def test_the_nodes_are_shown_as_text_and_as_a_graph():
    y = rd.ones(2).to("lazy") * 2 + 1
    assert debug.dump_ir([y], "text") == (
        "IR {\n  %0 = [Float[2]] lazy_tensors::device_data(), device=CPU0\n  %1 = [Float[2]] aten::mul(%0, other=2)\n"
        "  %2 = [Float[2]] aten::add(%1, other=1), ROOT=0\n}\n"
    )
    assert "torch.ops.aten.mul.Tensor" in debug.dump_ir([y], "backend")
    assert 'node1 [label="aten::mul\\nFloat[2]"]' in debug.render_ir_graph([y])
    with pytest.raises(RuntimeError, match="Unrecognized IR format: nothing"):
        debug.dump_ir([y], "nothing")


def test_a_graph_has_a_hash_and_runs_on_other_inputs():
    def graph():
        x = rd.ones(2).to("lazy")
        return x * 2 + 1

    key = computation.get_graph_hash([graph()])
    assert key == computation.get_graph_hash([graph()]) != computation.get_graph_hash([graph() + 1])
    numbers, values = computation.get_tensors_ts_device_data_node([graph()])
    assert len(numbers) == 1 and values[0].tolist() == [1, 1]
    assert computation.run_cached_graph(key, [rd.tensor([3.0, 4.0])])[0].tolist() == [7, 9]
    with pytest.raises(RuntimeError, match="Failed running cached Lazy graph"):
        computation.run_cached_graph(b"", [])


def test_closures_of_a_step_see_its_values():
    x, seen = rd.ones(3, device="lazy").sum() * 2, []
    lazy.add_step_closure(lambda one: seen.append(one.item()), (x,))
    assert seen == []
    lazy.mark_step()
    lazy.mark_step()
    assert seen == [6]
    done = threading.Event()
    lazy.add_step_closure(lambda: 1 / 0, run_async=True)
    lazy.add_step_closure(done.set, run_async=True)
    lazy.mark_step()
    assert done.wait(10)
    lazy.add_step_closure(done.set, run_async=True)
    with pytest.raises(RuntimeError, match="previously raised exception"):
        lazy.mark_step()


def test_trees_go_to_the_cpu_and_to_files(tmp_path):
    x = rd.ones(2, device="lazy")
    found = lazy.to_cpu({"a": [x * 2, 1]})
    assert found["a"][0].device.type == "cpu" and found["a"][0].tolist() == [2, 2] and found["a"][1] == 1
    file = io.BytesIO()
    lazy.save([x], file)
    file.seek(0)
    assert rd.load(file)[0].tolist() == [1, 1]
    y = x * 7
    ir_cache.dump(str(tmp_path / "nodes.dot"))
    assert "aten::mul" in (tmp_path / "nodes.dot").read_text()
    ir_cache.reset()
    assert y.tolist() == [7, 7] and recorder.calls == {}


class Writing(nn.Module):
    def forward(self, a, b):
        a.add_(1)
        return a * b + rd.ones(3), a


class Choosing(nn.Module):
    def forward(self, a):
        return a.nonzero()


def test_a_traced_graph_becomes_the_function_that_lazy_tensors_record():
    run = extract_compiled_graph(rd.fx.symbolic_trace(Writing()), [rd.zeros(3), rd.ones(3)])
    a = rd.full((3,), 4.0)
    product, same = run(a, rd.full((3,), 2.0))
    assert product.tolist() == [11, 11, 11] and same.tolist() == a.tolist() == [5, 5, 5]
    with pytest.raises(RuntimeError, match="because of fallback: aten::nonzero=1"):
        extract_compiled_graph(rd.fx.symbolic_trace(Choosing()), [rd.ones(3)])


def test_a_recorder_records_tensors_of_its_own():
    own = Recorder(LAZY)
    own.programs = Programs()
    x = own.record(rd.ops.aten.ones.default, [[3], None, None, LAZY, None])
    y = own.record(rd.ops.aten.mul.Tensor, [x, 2.5])
    assert type(y) is LazyTensor and len(own.pending) == 2 and not recorder.pending
    assert own.value(y).tolist() == [2.5] * 3 and own.pending == {}
