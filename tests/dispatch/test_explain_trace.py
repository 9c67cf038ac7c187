"""`explain` says who would answer, without running anything; `trace` shows every hop that calls took."""

import gc
import threading
import weakref

import pytest
from expecttest import assert_expected_inline

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

from .fakes import CPU_KEYS, META_KEYS, Fake, operator


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
