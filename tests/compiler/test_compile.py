"""compile: recorded programs do what their function does, whatever changed; where there is none, it says why."""

import copy
import functools
import math
import pickle
import threading

import pytest

import redispatch as rd
from redispatch import _dynamo, compiler, nn
from redispatch._dynamo.exc import InvalidBackend, Unsupported
from redispatch._dynamo.testing import CompileCounter
from redispatch.kernels.lazy import start, stop
from redispatch.nn import functional as F
from tests import drawing

from .changing import run

RATE = 2.0


def shifted(x, by=1):
    return (x * RATE + by).relu()


def programs(compiled):
    return compiled.dynamo_ctx.programs


def ends(compiled):
    """The kinds of the ends of programs that are one segment."""
    return [type(one.segment.end).__name__ for one in programs(compiled)]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "native"])
def test_no_call_is_wrong_whatever_changed_before_it(backend):
    calls = {"eager": 120, "aot_eager": 40, "native": 25}[backend] * (20 if drawing.everything else 1)
    wrong, recorded = run(drawing.number("compile", backend), calls, backend)
    assert wrong == [] and recorded > 0


def test_a_program_is_recorded_once_and_anew_when_what_it_read_changes(monkeypatch):
    graphs = []

    def backend(module, examples):
        graphs.append((module, examples))
        return module.forward

    f = rd.compile(shifted, backend=backend)
    x = rd.randn(3)
    for _ in range(3):
        assert rd.equal(f(x), shifted(x))
    assert len(graphs) == 1 and len(graphs[0][1]) == 1
    names = [node.target.__name__ for node in graphs[0][0].graph.nodes if node.op == "call_function"]
    assert names == ["mul", "add", "relu"]
    monkeypatch.setitem(globals(), "RATE", -1.0)
    for _ in range(2):
        assert rd.equal(f(x), shifted(x)) and rd.equal(f(rd.ones(2, 5)), shifted(rd.ones(2, 5)))
    assert len(programs(f)) == 3  # sizes alone are no reason, the number of dimensions is


def test_guards_are_a_function_that_can_be_read():
    f = rd.compile(shifted, backend="eager")
    f(rd.ones(2))
    text = programs(f)[0].segment.guards.text
    assert "args[0]" in text and "['RATE']" in text and "type(" in text


def test_an_argument_is_never_asked_whether_it_is_equal():
    class Evil:
        def __eq__(self, other):
            raise AssertionError("it was asked")

        __hash__ = None
        __bool__ = __eq__

    f = rd.compile(lambda x, other: x * 2 if other is None else x, backend="eager")
    for other in (None, Evil(), 3, None):
        assert f(rd.ones(2), other).sum().item() == (4 if other is None else 2)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.drop = nn.Linear(4, 4), nn.LayerNorm(4), nn.Dropout(0.5)

    def forward(self, x, *, scale=1.0):
        return self.drop(self.norm(F.gelu(self.first(x)))) * scale


def test_a_module_is_compiled_with_its_parameters_and_stays_a_module():
    block, x = Block(), rd.randn(5, 4)
    compiled = rd.compile(block, backend="aot_eager")
    assert isinstance(compiled, nn.Module) and compiled._orig_mod is block and compiled.first is block.first
    for training in (True, False):
        compiled.train(training)
        for seed in range(3):
            rd.manual_seed(seed)
            expected = block(x, scale=2.0)
            rd.manual_seed(seed)
            found = compiled(x, scale=2.0)
            rd.testing.assert_close(found, expected)
    assert len(compiled.dynamo_ctx.programs) == 2
    compiled.train()
    rd.manual_seed(0)
    compiled(x).sum().backward()
    assert block.first.weight.grad is not None
    assert copy.deepcopy(compiled)(x).shape == (5, 4)
    assert [*compiled.state_dict()][0] == "_orig_mod.first.weight"


def branches(x):
    return x if x.sum() > 0 else -x


def test_a_break_says_where_it_is_and_is_an_error_in_a_full_graph():
    f = rd.compile(branches)
    assert f(rd.ones(2)).tolist() == [1, 1] and f(-rd.ones(2)).tolist() == [1, 1]
    explained = compiler.explain(f)(rd.ones(2))
    assert explained.graph_count == 3 and "__bool__ gives what depends on a tensor's values" in str(explained)
    assert "test_compile.py" in explained.break_reasons[0] and "in branches" in explained.break_reasons[0]
    with pytest.raises(Unsupported, match="depends on a tensor's values .*test_compile.py.*: write `torch.where"):
        rd.compile(branches, fullgraph=True)(rd.ones(2))
    assert rd.ones(2).add(1).sum() == 4  # nothing of the recorder is left


def test_effects_happen_once_at_each_call():
    seen = []

    def program(x):
        seen.append(x.shape[0])
        return x + 1

    f = rd.compile(program)
    for n in (2, 3, 2):
        f(rd.ones(n))
    assert seen == [2, 3, 2]


def test_exceptions_are_the_programs_own_and_leave_nothing_behind():
    f = rd.compile(lambda x, y: x @ y, backend="eager")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
            f(rd.ones(2, 3), rd.ones(2, 3))
        assert f(rd.ones(2, 3), rd.ones(3, 2)).shape == (2, 2)


def test_modes_and_subclasses_see_every_call():
    class Count(rd.overrides.TorchFunctionMode):
        calls = 0

        def __torch_function__(self, func, types, args=(), kwargs=None):
            Count.calls += 1
            return func(*args, **(kwargs or {}))

    f, x = rd.compile(shifted, backend="eager"), rd.ones(2)
    f(x)
    with Count():
        f(x)
    assert Count.calls == 3

    class Named(rd.Tensor):
        pass

    assert type(f(rd.ones(2).as_subclass(Named))) is Named


def test_many_programs_end_in_one_warning_that_names_the_guard():
    f = rd.compile(lambda x, n: x * n, backend="eager")
    with pytest.warns(UserWarning, match=r"8 compiled programs.*args\[1\]") as warned:
        for n in range(12):
            assert f(rd.ones(1), n).item() == n
    assert len(warned) == 1 and len(programs(f)) == 8
    compiler.reset()
    assert programs(f) == [] and f(rd.ones(1), 3).item() == 3


def test_math_and_library_code_between_operators():
    def program(x, sizes):
        total = sum(size * 2 for size in sizes)
        return [x * math.sqrt(total), *(x + i for i, _ in enumerate(sizes))][:: len(sizes)]

    f, sizes = rd.compile(program, backend="eager"), [2, 6]
    for _ in range(2):
        assert [one.item() for one in f(rd.ones(()), sizes)] == [4, 2]
    sizes.append(10)
    assert f(rd.ones(()), sizes)[0].item() == 6
    assert ends(f) == ["Returned"] * 2


def test_bad_options_are_refused_in_pytorchs_words():
    with pytest.raises(InvalidBackend, match="Invalid backend: 'fast'"):
        rd.compile(shifted, backend="fast")
    with pytest.raises(RuntimeError, match="Unrecognized mode=quick"):
        rd.compile(shifted, mode="quick")
    with pytest.raises(RuntimeError, match="both can't be specified"):
        rd.compile(shifted, mode="default", options={})
    assert rd.compile(shifted, disable=True) is shifted and rd.compile(backend="eager")(shifted).__name__ == "shifted"
    assert compiler.list_backends() == ["inductor", "lazy", "native"]
    assert compiler.list_backends(()) == ["aot_eager", "eager", "inductor", "lazy", "native"]


def test_a_compiled_function_is_part_of_another():
    inner = rd.compile(shifted, backend="eager")
    outer = rd.compile(lambda x: inner(x) * 3, backend="eager")
    assert [outer(rd.ones(1)).item() for _ in range(2)] == [shifted(rd.ones(1)).item() * 3] * 2
    assert len(programs(inner)) == 0 and len(programs(outer)) == 1


def test_builtin_functions_of_modules_and_containers():
    layers = nn.ModuleList([nn.Linear(2, 2), nn.Tanh()])
    chosen = {"b", "a"}

    def program(x):
        for _, layer in enumerate(layers):
            x = layer(x)
        return (
            x * len(layers) + len(chosen),
            sorted(chosen),
            bool(layers),
            [type(one).__name__ for one in reversed([*layers])],
        )

    f, x = rd.compile(program, backend="eager"), rd.ones(1, 2)
    for change in (lambda: None, lambda: layers.append(nn.ReLU()), lambda: chosen.add("c")):
        change()
        for _ in range(2):
            expected, found = program(x), f(x)
            assert rd.equal(found[0], expected[0]) and found[1:] == expected[1:]
    assert ends(f) == ["Returned"] * 3


def test_methods_of_classes_without_a_dict_and_of_instances():
    class Slotted:
        __slots__ = ("rate",)

        def times(self, x):
            return x * self.rate

    class Usual(Slotted):
        pass

    slotted, usual = Slotted(), Usual()
    slotted.rate = usual.rate = 2
    f, x = rd.compile(lambda x: slotted.times(x) + usual.times(x), backend="eager"), rd.ones(())

    def own():
        usual.times = lambda x: x

    def another():
        Slotted.times = lambda self, x: x * 10

    for change, expected in ((lambda: None, 4), (own, 3), (another, 11), (lambda: setattr(slotted, "rate", 3), 11)):
        change()
        assert [f(x).item() for _ in range(2)] == [expected] * 2
    assert ends(f) == ["Returned"] * 3  # the last change is of what is not read


def test_what_an_operator_gives_back_as_it_is_may_be_a_copy_for_others():
    """`contiguous` gives its very input, if that is contiguous."""
    f = rd.compile(lambda x: x.contiguous().view(-1) * 2, backend="eager")
    x = rd.arange(6.0).view(2, 3)
    for one in (x, x, x.t(), x.t()):
        assert f(one).tolist() == [2 * value for value in one.contiguous().view(-1).tolist()]


FEW, PART, DOUBLED = range(3), slice(0, 2), functools.partial(rd.mul, other=2)


@pytest.mark.parametrize(
    "name, value, program",
    [
        ("FEW", range(4), lambda x: x * sum(FEW) + len(FEW)),
        ("PART", slice(1, None), lambda x: x[PART] * len([1, 2, 3][PART])),
        ("DOUBLED", functools.partial(rd.mul, other=3), lambda x: DOUBLED(x)),
    ],
)
def test_ranges_slices_and_partials_are_guarded_by_what_they_hold(monkeypatch, name, value, program):
    f, x = rd.compile(program, backend="eager"), rd.ones(3)
    assert [f(x).tolist() for _ in range(2)] == [program(x).tolist()] * 2
    monkeypatch.setitem(globals(), name, value)
    assert [f(x).tolist() for _ in range(2)] == [program(x).tolist()] * 2
    assert ends(f) == ["Returned"] * 2


def test_iterators_that_others_see_are_not_recorded():
    left = iter([1.0, 2.0, 3.0])
    f = rd.compile(lambda x: x * next(left), backend="eager")
    assert [f(rd.ones(())).item() for _ in range(3)] == [1, 2, 3]


def test_a_compiled_method_in_another_function_reads_its_object():
    class Scaled:
        rate = 2

        def times(self, x):
            return x * self.rate

    scaled = Scaled()
    times = rd.compile(scaled.times, backend="eager")
    f, x = rd.compile(lambda x: times(x) + 1, backend="eager"), rd.ones(())
    assert [f(x).item(), f(x).item(), times(x).item(), times(x).item()] == [3, 3, 2, 2]
    scaled.rate = 5
    assert [f(x).item(), f(x).item(), times(x).item(), times(x).item()] == [6, 6, 5, 5]


def test_results_of_tensors_and_none_are_recorded():
    layer, x = nn.MultiheadAttention(4, 2, batch_first=True), rd.randn(2, 3, 4)
    f = rd.compile(lambda x: layer(x, x, x, need_weights=False), backend="eager")
    for _ in range(2):
        found, expected = f(x), layer(x, x, x, need_weights=False)
        assert rd.equal(found[0], expected[0]) and found[1] is None


def test_objects_in_containers_are_compared_by_their_own_code_at_each_call():
    class Version:
        number = 1

        def __eq__(self, other):
            return self.number == other

        __hash__ = None

    versions = [Version()]
    f = rd.compile(lambda x: x * 2 if 1 in versions else x, backend="eager")
    assert [f(rd.ones(())).item() for _ in range(2)] == [2, 2]
    versions[0].number = 3
    assert f(rd.ones(())).item() == 1


def test_threads_that_call_first_record_and_compile_once():
    made = []

    def backend(module, examples):
        made.append(len(examples))
        return module.forward

    f, start = rd.compile(shifted, backend=backend), threading.Barrier(8)

    def run(found):
        start.wait()
        found += [f(rd.ones(2)).tolist() for _ in range(3)]

    found: list = []
    threads = [threading.Thread(target=run, args=(found,)) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == [shifted(rd.ones(2)).tolist()] * 24 and made == [1] and len(programs(f)) == 1


def test_an_account_shows_the_guards_of_its_graphs():
    f = rd.compile(lambda x, n: x * n if n else x.numpy(), backend="eager")
    f(rd.ones(2), 0)
    explained = compiler.explain(f)(rd.ones(2), 3)
    assert len(explained.reasons) == 1 and len(explained.guards) == 1 and "!= 3" in explained.guards[0]


def test_a_state_that_is_left_changed_and_keys_that_are_tensors_run_as_they_stand():
    def program(x, recorded):
        rd.set_grad_enabled(recorded)
        return {x: 1} if recorded else x * 2

    f, x = rd.compile(program, backend="aot_eager"), rd.ones(2, requires_grad=True)
    with rd.enable_grad():
        for recorded in (False, True, False, False):
            result = f(x, recorded)
            assert rd.is_grad_enabled() is recorded
            assert [*result][0] is x if recorded else not result.requires_grad
    assert "the state of the dispatcher is another afterwards" in programs(f)[0].segment.end.reason


def test_a_module_compiles_its_own_calls_and_copies_do_not(monkeypatch):
    module, x = nn.Sequential(nn.Linear(3, 3), nn.ReLU()), rd.randn(4, 3)
    expected = module(x)
    module.compile(backend="aot_eager")
    for _ in range(3):
        rd.testing.assert_close(module(x), expected)
    assert len(module._compiled_call_impl.programs) == 1
    hook = module.register_forward_hook(lambda module, args, result: result * 2)
    for _ in range(2):
        rd.testing.assert_close(module(x), expected * 2)
    hook.remove()
    for copied in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert copied._compiled_call_impl is None
        rd.testing.assert_close(copied(x), expected)
    outer = rd.compile(lambda x: module(x).sum(), backend="eager")
    assert [outer(x).item() for _ in range(2)] == [expected.sum().item()] * 2 and ends(outer) == ["Returned"]
    untouched = nn.Linear(2, 2)
    untouched.compile(disable=True)
    assert untouched._compiled_call_impl is None


def test_limits_are_switches():
    f = rd.compile(lambda x, n: x * n, backend="eager")
    with _dynamo.config.patch(cache_size_limit=2), pytest.warns(UserWarning, match="has 2 compiled programs"):
        assert [f(rd.ones(()), n).item() for n in range(5)] == [*range(5)] and len(programs(f)) == 2
    assert _dynamo.config.recompile_limit == _dynamo.config.cache_size_limit == 8
    with _dynamo.config.patch("disable", True):
        compiler.reset()
        assert f(rd.ones(()), 3).item() == 3 and programs(f) == []
    f(rd.ones(()), 3)
    with _dynamo.config.patch({"error_on_recompile": True}), pytest.raises(RuntimeError, match="recorded anew"):
        f(rd.ones(()), 4)
    with pytest.raises(AttributeError, match="no attribute 'none'"):
        _ = _dynamo.config.none


def test_a_function_without_text_runs_as_it_stands_and_says_so_once():
    scope: dict = {}
    exec("def double(x): return x * 2", scope)
    f = rd.compile(scope["double"])
    with pytest.warns(UserWarning, match="double runs as it stands: double: there is no source text of it") as warned:
        assert [f(rd.ones(n)).shape[0] for n in (1, 1, 2)] == [1, 1, 2]
    assert len(warned) == 1


@pytest.fixture
def lazy_device():
    yield start()
    stop()


def test_graphs_run_by_lazy_tensors(lazy_device):
    def program(x, w):
        return F.gelu(x @ w).softmax(-1) * 2

    f, x, w = rd.compile(program, backend="lazy"), rd.randn(4, 3), rd.randn(3, 3, requires_grad=True)
    for _ in range(3):
        found, expected = f(x, w), program(x, w)
        rd.testing.assert_close(found, expected)
        rd.testing.assert_close(*(rd.autograd.grad(one.square().sum(), w) for one in (found, expected)))


def test_a_graph_ends_where_that_is_asked_for():
    def program(x):
        y = x * 2
        _dynamo.graph_break()
        return y if compiler.is_compiling() else y + 1

    f = rd.compile(program, backend="eager")
    assert [f(rd.ones(())).item() for _ in range(2)] == [3, 3]
    explained = compiler.explain(f)(rd.ones(()))
    assert explained.graph_count == 2 and "graph_break is called" in explained.break_reasons[0]


def test_what_a_backend_cannot_compile_runs_as_a_graph_with_the_programs_own_errors():
    def program(x, index):
        x.add_(1)
        return x[index] * 2

    f = rd.compile(program, backend="aot_eager")
    for index in ([0, 1], [1, 0], [0, 9]):
        x, other, at = rd.zeros(3), rd.zeros(3), rd.tensor(index)
        if 9 in index:
            for function, given in ((program, other), (f, x)):
                with pytest.raises(IndexError, match="index 9 is out of bounds for dimension 0 with size 3"):
                    function(given, at)
        else:
            assert rd.equal(f(x, at), program(other, at))
        assert rd.equal(x, other)


def test_methods_behind_super_are_guarded_by_what_is_found():
    class Base:
        def twice(self, x):
            return x * 2

    class Derived(Base):
        def twice(self, x):
            return super().twice(x) + 1

    derived = Derived()
    f = rd.compile(lambda x: derived.twice(x), backend="eager")
    assert [f(rd.ones(())).item() for _ in range(3)] == [3] * 3 and len(programs(f)) == 1
    Base.twice = lambda self, x: x * 5
    assert [f(rd.ones(())).item() for _ in range(3)] == [6] * 3 and len(programs(f)) == 2


def test_backends_get_each_graph_when_it_is_recorded():
    counter = CompileCounter()

    def f(x):
        y = x + 1
        return y * 2 if y.sum() > 0 else y - 1

    compiled = rd.compile(f, backend=counter)
    assert compiled(rd.ones(3)).tolist() == [4, 4, 4] and counter.frame_count == 2
    assert compiled(rd.ones(3)).tolist() == [4, 4, 4] and counter.frame_count == 2
    assert compiled(-5 * rd.ones(3)).tolist() == [-5, -5, -5] and counter.frame_count == 3


def test_a_kernel_that_a_program_replaces_counts_in_graphs_made_before_and_after():
    def f(x):
        return (x * 2).sin() + 1

    before, x = rd.compile(f), rd.ones(3)
    expected = [f(x).tolist()] * 2
    assert [before(x).tolist(), before(x).tolist()] == expected
    with rd.library._scoped_library("aten", "IMPL") as own:
        own.impl("sin", lambda x: x * 0 + 7, "CPU", allow_override=True)
        after = rd.compile(f)
        assert [g(x).tolist() for g in (before, after, before, after)] == [[8, 8, 8]] * 4
    assert [before(x).tolist(), after(x).tolist()] == expected
