"""Looking at calls: explain, traces, breakpoints, origins, tracebacks."""

import gc
import inspect
import sys
import threading
import traceback
import weakref

import pytest
from expecttest import assert_expected_inline

import redispatch as rd
from redispatch.dispatch import (
    STATE,
    TorchDispatchMode,
    TorchFunctionMode,
    define_key,
    explain,
    fallthrough_kernel,
    impl,
    keyset,
    ops,
    trace,
)
from redispatch.dispatch.config import config
from redispatch.dispatch.inspection import origins
from redispatch.dispatch.inspection.frames import STOPS
from redispatch.dispatch.inspection.python_kernels import PYTHON_KERNELS

from .fakes import CPU_KEYS, META_KEYS, Fake, operator

# `explain` says who would answer, without running anything; `trace` shows every hop that calls took -------------------


def cpu(x, n=1):
    return Fake(name="y")


def composite(x):
    return ops.t.f(ops.t.f(x, 2))


@pytest.fixture(autouse=True)
def f():
    operator("t::g(Tensor x) -> Tensor", CompositeImplicitAutograd=composite)
    return operator("t::f(Tensor x, int n=1) -> Tensor", CPU=cpu)


class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def test_explain_names_who_answers_at_each_key_and_by_which_rule(f):
    assert_expected_inline(
        explain(f, CPU_KEYS | keyset("Python")),
        """\
t::f(Tensor x, int n=1) -> Tensor
DispatchKeySet(CPU, Python, ADInplaceOrView, AutogradCPU, AutocastCPU)
  AutocastCPU            skipped                                      backend fallback
  AutogradCPU            autograd                                     backend fallback
  ADInplaceOrView        skipped                                      backend fallback
  Python                 python                                       backend fallback
  CPU                    cpu                                          kernel""",
    )


def test_explain_shows_composites_and_what_is_missing(f):
    assert_expected_inline(
        explain(ops.t.g.default, Fake()),
        """\
t::g(Tensor x) -> Tensor
DispatchKeySet(CPU, ADInplaceOrView, AutogradCPU, AutocastCPU)
  AutocastCPU            skipped                                      backend fallback
  AutogradCPU            composite                                    math kernel
  ADInplaceOrView        skipped                                      backend fallback
  CPU                    composite                                    math kernel""",
    )
    assert_expected_inline(
        explain(f, ["CUDA", "AutogradCUDA"]),
        """\
t::f(Tensor x, int n=1) -> Tensor
DispatchKeySet(CUDA, AutogradCUDA)
  AutogradCUDA           autograd                                     backend fallback
  CUDA                   nothing: a call that arrives here fails      missing""",
    )
    assert_expected_inline(
        explain(f, 0),
        """\
t::f(Tensor x, int n=1) -> Tensor
DispatchKeySet()
  Undefined              nothing: a call that arrives here fails""",
    )


def test_explain_knows_users_keys_and_fallthroughs_and_can_name_places(f):
    define_key("Taint", above="Autograd")
    impl(f, "Taint", fallthrough_kernel, convention="python", place="the test")
    assert_expected_inline(
        explain(f, ["CPU", "Taint"], places=True),
        """\
t::f(Tensor x, int n=1) -> Tensor
DispatchKeySet(CPU, Taint)
  Taint                  skipped                                      kernel  at the test
  CPU                    cpu                                          kernel  at CPU of the test""",
    )


def test_explain_takes_an_operators_name_and_a_packet_that_has_one_overload(f):
    assert explain("t::f", "CPU") == explain(ops.t.f, "CPU") == explain(f, "CPU")
    operator("t::f.other(Tensor x) -> Tensor")
    with pytest.raises(TypeError, match="explain: t.f has the overloads default, other; say which: t.f.default"):
        explain(ops.t.f, "CPU")
    with pytest.raises(TypeError, match="explain: expected an operator"):
        explain(len, "CPU")


def test_explain_runs_nothing(f):
    with trace() as hops:
        explain(f, CPU_KEYS)
        explain(f, META_KEYS)
    assert list(hops) == []


def test_a_trace_shows_every_hop_as_a_tree():
    with trace() as hops:
        ops.t.g(Fake(name="x"))
        with Mode():
            ops.t.f(Fake(name="z"), 3)
    assert_expected_inline(
        str(hops),
        """\
t.g.default  [AutogradCPU]  composite (math kernel)  (x) -> y
  t.f.default  [AutogradCPU]  autograd (backend fallback)  (x, 2) -> y
    t.f.default  [CPU]  cpu (kernel)  (x, 2) -> y
  t.f.default  [AutogradCPU]  autograd (backend fallback)  (y, 1) -> y
    t.f.default  [CPU]  cpu (kernel)  (y, 1) -> y
t.f.default  [PythonTLSSnapshot]  python_tls_snapshot (backend fallback)  (z, 3) -> y
  t.f.default  [AutogradCPU]  autograd (backend fallback)  (z, 3) -> y
    t.f.default  [Python]  python (backend fallback), asks <Mode>  (z, 3) -> y
      t.f.default  [CPU]  cpu (kernel)  (z, 3) -> y""",
    )


def test_a_trace_shows_lists_and_errors():
    def fail(xs):
        raise ZeroDivisionError("on purpose")

    operator("t::h(Tensor[] xs) -> Tensor", CPU=fail)
    with pytest.raises(ZeroDivisionError), trace() as hops:
        ops.t.h([Fake(name="a"), Fake(name="b")])
    assert_expected_inline(
        str(hops),
        """\
t.h.default  [AutogradCPU]  autograd (backend fallback)  ([a, b]) -> ZeroDivisionError
  t.h.default  [CPU]  fail (kernel)  ([a, b]) -> ZeroDivisionError""",
    )
    assert isinstance(next(iter(hops)).error, ZeroDivisionError)


def test_hops_are_records_with_places_and_times():
    with trace() as hops:
        ops.t.f(Fake())
    first, second = hops
    assert (first.key, second.key, second.answered) == ("AutogradCPU", "CPU", "cpu (kernel)")
    assert first.children == [second] and second.children == []
    assert 0 < second.seconds <= first.seconds
    assert "at CPU of the test" in hops.text(places=True)
    assert hops.text(times=True).endswith(" us")


def test_a_trace_decorates_and_nests_and_ends():
    tracing = trace()

    @tracing
    def twice():
        ops.t.f(Fake())
        with trace() as inner:
            ops.t.f(Fake())
        return inner

    inner = twice()
    assert [len(list(tree)) for tree in (tracing.root, inner)] == [2, 2]  # a call goes to the innermost trace alone
    assert STATE.get().tracer is None
    ops.t.f(Fake())
    assert len(list(tracing.root)) == 2


def test_another_thread_is_not_traced():
    with trace() as hops:
        thread = threading.Thread(target=ops.t.f, args=(Fake(),))
        thread.start()
        thread.join()
    assert list(hops) == []


def test_a_handler_is_a_hop_with_the_state_the_line_and_the_facts_of_its_arguments(f):
    x = Fake(name="x")
    with trace() as hops, Mode():
        ops.t.f(x, 3)
    walked = [hop for _, hop in hops.walk()]
    handler = next(hop for hop in walked if hop.key == "__torch_dispatch__")
    layer, below = handler.parent, handler.children[0]
    assert (handler.answered, handler.entry, layer.key, below.key) == ("Mode", None, "Python", "CPU")
    assert [layer.state.modes, handler.state.modes] == [("Mode",), ()]
    assert layer.inputs[0].tensors[0].number == below.inputs[0].tensors[0].number == 1
    assert [value.name for value in layer.inputs] == ["x", "n"] and layer.inputs[1].text == "3"
    assert below.called_at.startswith(__file__) and handler.place.startswith(__file__)
    assert walked[0].called_at.startswith(__file__) and walked[0].begins and not layer.begins and below.begins


def test_a_function_mode_is_a_hop_of_a_line_of_its_own():
    class Named:
        def __repr__(self):
            raise AssertionError("nobody is to ask")

    class Functions(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return Named()

    with trace() as hops, Functions():
        ops.t.f(Fake(name="x"), n=2)
    assert str(hops) == "f  [__torch_function__]  Functions  (x, n=2) -> <Named>"


def test_a_trace_keeps_no_tensor(f):
    x = Fake(name="x")
    gone = weakref.ref(x)
    with trace() as hops:
        ops.t.f(x)
        del x
        gc.collect()
        assert gone() is None
        ops.t.f(Fake(name="another"))
    first, second = hops.children
    assert [first.inputs[0].tensors[0].number, second.inputs[0].tensors[0].number] == [1, 3]  # 2 is what came out


# `breakpoint`: calls stop in the debugger at a key, boxed or specialised, and nowhere else ----------------------------


@pytest.fixture
def stops(monkeypatch):
    """The stops of the debugger: (operator, key, number of arguments)."""
    found = []

    def debugger():
        seen = sys._getframe(1).f_locals
        assert set(seen) >= {"op", "keyset", "stack", "entry"}
        found.append((str(seen["op"]), seen["entry"].key.name, len(seen["stack"])))

    monkeypatch.setattr(sys, "breakpointhook", debugger)
    yield found
    assert breakpoints() == []


def breakpoints():
    """The stops that are there; that of Python kernels stays, once some operator had one."""
    return [stop for stop in STOPS if stop is not PYTHON_KERNELS]


def often(function):
    """Often enough for specialised code."""
    for _ in range(4):
        function()


def test_a_call_stops_at_the_key_and_goes_on(stops):
    x = rd.ones(2, 2, requires_grad=True)
    often(lambda: x @ x)
    with rd.breakpoint("aten::mm", key="AutogradCPU") as point:
        assert (x @ x).tolist() == [[2, 2], [2, 2]]
        assert (x @ x).grad_fn.name() == "MmBackward0"
        assert "aten.mm.default" in repr(point) and "removed" not in repr(point)
    often(lambda: x @ x)
    assert stops == [("aten.mm.default", "AutogradCPU", 2)] * 2
    assert repr(point).endswith("removed>")


def test_specialised_code_stops_and_comes_back_afterwards(stops):
    x = rd.ones(3)
    op = rd.ops.aten.exp.default
    often(lambda: op(x))
    point = rd.breakpoint(op, key="CPU")
    often(lambda: op(x))
    assert len(stops) == 4
    assert not any(op.tables[facts] for facts in op.tables)  # boxed meanwhile
    point.remove()
    point.remove()
    often(lambda: op(x))
    assert len(stops) == 4
    if rd.config.specialize:
        assert any(op.tables[facts] for facts in op.tables)


def test_a_packet_an_alias_key_and_every_operator(stops):
    x = rd.ones(2, requires_grad=True)
    with rd.breakpoint(rd.ops.aten.mul, key="Autograd"):
        x * 2
        x * x
        x + 1
    assert [op for op, _, _ in stops] == ["aten.mul.Tensor"] * 2
    stops.clear()
    with rd.breakpoint(key="AutogradCPU"):
        (x * 2).sum()
    assert stops == [("aten.mul.Tensor", "AutogradCPU", 2), ("aten.sum.default", "AutogradCPU", 2)]
    stops.clear()
    with rd.breakpoint("exp"):
        x.exp()
    assert [key for _, key, _ in stops] == ["AutogradCPU", "CPU"]


def test_two_at_one_place_both_stop_and_tables_read_as_before(stops):
    x = rd.ones(2)
    before = explain(ops.aten.exp.default, x)
    with rd.breakpoint("exp", key="CPU"), rd.breakpoint(key="CPU"), rd.trace() as hops:
        assert explain(ops.aten.exp.default, x) == before
        x.exp()
    assert len(stops) == 2
    assert "unary" in str(hops) or "pointwise" in str(hops)
    assert STATE.get().tracer is None


def test_mistakes_are_said():
    with pytest.raises(TypeError, match="say which operator, which key, or both"):
        rd.breakpoint()
    with pytest.raises(ValueError, match="no call of aten.exp.default stops at ADInplaceOrView"):
        rd.breakpoint(rd.ops.aten.exp.default, key="ADInplaceOrView")
    with pytest.raises(TypeError, match="expected an operator"):
        rd.breakpoint(len, key="CPU")
    with pytest.raises(RuntimeError, match="there is no operator"):
        rd.breakpoint("aten::nothing")
    with pytest.raises(ValueError, match="Autograd"):
        rd.breakpoint("exp", key="AutogradCP")
    assert breakpoints() == []


# Where tensors were made, as errors tell it: `config.debug_origins` ---------------------------------------------------


@pytest.fixture
def noted():
    config.debug_origins = True
    yield
    config.debug_origins = False


def here(offset: int = 0) -> str:
    """The line that calls this, or one `offset` lines below."""
    frame = inspect.currentframe().f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno + offset}"


def message(call) -> str:
    with pytest.raises(RuntimeError) as caught:
        call()
    return str(caught.value)


def test_a_written_inference_tensor_says_where_it_was_made(noted):
    with rd.inference_mode():
        x, place = rd.ones(3), here()
    told = message(lambda: x.add_(1))
    assert told.startswith("Inplace update to inference tensor outside InferenceMode is not allowed.")
    assert told.endswith(f"the tensor was made at       {place}, by aten.ones.default")


def test_every_error_about_an_inference_tensor_says_where_it_was_made(noted):
    with rd.inference_mode():
        x, place = rd.ones(3) * 2, here()
    w = rd.ones(3, requires_grad=True)
    for call in (lambda: w * x, lambda: x.requires_grad_(), lambda: x._version):
        assert f"{place}, by aten.mul.Tensor" in message(call)


def test_a_view_says_where_it_and_its_base_were_made(noted):
    base, base_place = rd.ones(4, requires_grad=True).clone(), here()
    with rd.no_grad():
        view, place = base[1:], here()
    told = message(lambda: view.mul_(2))
    assert told.startswith("A view was created in no_grad mode and is being modified inplace with grad mode enabled.")
    assert f"the view was made at         {place}, by aten.slice.Tensor" in told
    assert f"the base was made at         {base_place}, by aten.clone.default" in told


def test_one_of_several_views_says_where_it_was_made(noted):
    base = rd.ones(4, requires_grad=True).clone()
    (first, _), place = base.chunk(2), here()
    assert f"the view was made at         {place}, by aten.split.Tensor" in message(lambda: first.mul_(2))


def test_each_of_several_results_is_forgotten_when_it_goes(noted):
    first, second = rd.ones(4).chunk(2)
    keys = id(first), id(second)
    del first, second
    gc.collect()
    assert not any(key in origins._ORIGINS and origins._ORIGINS[key][0]() is None for key in keys)


def test_a_leaf_says_where_it_was_made(noted):
    leaf, place = rd.zeros(2), here()
    leaf.requires_grad_()
    assert f"the leaf was made at         {place}, by aten.zeros.default" in message(lambda: leaf.add_(1))
    told = message(lambda: leaf[0].add_(1))
    assert told.startswith("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    assert f"the view was made at         {here(-2)}, by aten.select.int" in told


def test_what_returns_its_argument_did_not_make_it(noted):
    x, place = rd.ones(2), here()
    x.add_(1)
    rd.add(x, 1, out=x)
    assert origins.origin_of(x).place == place


def test_the_line_is_that_of_the_program_in_modes_and_nested_operators(noted):
    class Double(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {})) * 2  # here

    lines, first = inspect.getsourcelines(Double)
    inside = first + next(i for i, line in enumerate(lines) if "# here" in line)
    with Double():
        x = rd.ones(2)
    assert origins.origin_of(x).place == f"{__file__}:{inside}"
    y, place = rd.nn.functional.linear(rd.ones(1, 2), rd.ones(3, 2)), here()
    assert origins.origin_of(y) == origins.Origin(rd.ops.aten.mm.default, place)


@pytest.mark.parametrize("how", [True, False, "strict"])
def test_values_and_gradients_are_the_same_while_origins_are_noted(noted, how):
    before = config.specialize
    config.specialize = how
    try:
        w = rd.ones(3, requires_grad=True)
        (w.exp() * w[1:].sum()).sum().backward()
        assert origins.origin_of(w.grad) is not None or how is False
    finally:
        config.specialize = before
    config.debug_origins = False
    v = rd.ones(3, requires_grad=True)
    (v.exp() * v[1:].sum()).sum().backward()
    assert w.grad.tolist() == v.grad.tolist()


def test_origins_keep_no_tensor_alive(noted):
    x = rd.ones(3)
    gone, key = weakref.ref(x), id(x)
    del x
    gc.collect()
    assert gone() is None and (key not in origins._ORIGINS or origins._ORIGINS[key][0]() is not None)


def test_while_they_are_off_nothing_is_noted_and_errors_say_how_to_turn_them_on():
    with rd.inference_mode():
        x = rd.ones(3)
    assert origins.origin_of(x) is None
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor") as caught:
        x.add_(1)
    assert str(caught.value).endswith("See https://github.com/pytorch/rfcs/pull/17 for more details.")
    assert caught.value.__notes__ == [
        "To be told where it was made, set redispatch.config.debug_origins = True before.",
        "To fix: x.to_normal_() makes it a normal tensor in place; x.clone() gives one beside it.",
    ]


def test_turning_them_off_forgets_them_and_brings_specialised_code_back(noted):
    x = rd.ones(3)
    config.debug_origins = False
    assert origins.origin_of(x) is None and not origins._ORIGINS
    if config.specialize:
        for _ in range(3):
            x + x
        table = rd.ops.aten.add.Tensor.table(("T", "T", "D"))
        assert all(hasattr(code, "source") for code in table.values()) and table


def test_the_switch_takes_truth_values_only():
    with pytest.raises(ValueError, match="config.debug_origins must be True or False, not 'yes'"):
        config.debug_origins = "yes"
    assert "debug_origins=False" in repr(config)


# Tracebacks show the user's frames and those of operators -------------------------------------------------------------

# The dispatcher's only where they are asked for.


class Log(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@pytest.fixture
def hiding_frames():
    before = rd.config.full_tracebacks
    rd.config.full_tracebacks = False
    yield rd.config
    rd.config.full_tracebacks = before


def frames_of(call):
    """The (module, function) of each frame of what a call raises, below this one."""
    try:
        call()
    except Exception as error:
        walked = list(traceback.walk_tb(error.__traceback__))[1:]
        return [(frame.f_globals["__name__"], frame.f_code.co_name) for frame, _ in walked]
    raise AssertionError("it did not raise")


X = rd.ones(2, 3, requires_grad=True)
CALLS = {
    "function": lambda: rd.mm(X, X),
    "method": lambda: X.mm(X),
    "keyword": lambda: X.mm(mat2=X),
    "operator of Python": lambda: X @ X,
    "operator": lambda: rd.ops.aten.mm.default(X, X),
    "packet": lambda: rd.ops.aten.mm(X, X),
    "wrong arguments": lambda: X.mm(X, beta=1),
    "function that calls others": lambda: rd.nn.functional.linear(X, rd.ones(2, 2)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_dispatchers_frames_are_hidden_from_the_first_call_on(hiding_frames, call):
    for _ in range(4):  # slow, then by lanes, then specialised
        names = frames_of(call)
        assert names[0][1] == "<lambda>"
        assert not [name for name, _ in names if name.startswith("redispatch.dispatch") or "specialised" in name]
        assert len(names) <= 8


def test_a_handlers_frame_stays(hiding_frames):
    with Log():
        names = frames_of(lambda: rd.mm(X, X))
    assert (__name__, "__torch_dispatch__") in names and names[-1][0] == "redispatch.kernels.ops.linalg"


def test_all_frames_are_shown_where_they_are_asked_for(hiding_frames):
    hiding_frames.full_tracebacks = True
    names = {name for _ in range(4) for name, _ in frames_of(lambda: rd.mm(X, X))}
    assert any(name.startswith(("redispatch.dispatch", "redispatch.specialised")) for name in names)
    assert "full_tracebacks=True" in repr(hiding_frames)


def test_an_interrupt_is_left_alone(hiding_frames):
    class Interrupted(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as raised, Interrupted():
        rd.ones(2)
    assert len(raised.traceback) > 2
