"""Modes see calls innermost first, leave the stack whatever happens, and say so where their order is broken."""

import contextlib
import itertools
import random

import pytest

import redispatch as rd
from redispatch.dispatch import (
    DEFAULT,
    STATE,
    DispatchKey,
    ModeOrderError,
    Setting,
    TorchDispatchMode,
    TorchDispatchModeKey,
    TorchFunctionMode,
    keyset,
    mode_in_slot,
    ops,
    pop_mode,
    push_mode,
    trace,
    with_function_modes,
)
from redispatch.dispatch.layers.python import _disabled_torch_dispatch_impl
from redispatch.utils import _python_dispatch

from .fakes import CPU_KEYS, PYTHON_KEYS, Fake, operator


class Mode(TorchDispatchMode):
    """Notes each call, then answers by `answer(func, args, kwargs)`; by default it lets the call go on."""

    def __init__(self, name="mode", log=None, answer=None):
        self.name, self.log, self.answer = name, [] if log is None else log, answer

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.log.append((self.name, str(func), args, kwargs, types))
        return func(*args, **(kwargs or {})) if self.answer is None else self.answer(func, args, kwargs)

    def __repr__(self):
        return f"Mode({self.name})"


class Wrapper(Fake):
    """A tensor whose class takes calls."""

    log: list = []

    def __init__(self, name="wrapper"):
        super().__init__(CPU_KEYS | PYTHON_KEYS, name)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        Wrapper.log.append((cls.__name__, types))
        return Fake(name=f"of {cls.__name__}")


@pytest.fixture(autouse=True)
def f():
    Wrapper.log.clear()
    return operator(
        "t::f(Tensor x, Tensor? y=None, *, int n=1) -> Tensor", CPU=lambda x, y=None, *, n=1: Fake(name="f")
    )


def stack():
    return STATE.get().modes


def has_python_key():
    return STATE.get().included & PYTHON_KEYS == PYTHON_KEYS


def test_a_mode_sees_the_call_as_the_user_made_it_less_the_defaults():
    x = Fake()
    with Mode() as mode:
        ops.t.f(x)
        ops.t.f(x, None, n=2)
    assert mode.log == [("mode", "t.f.default", (x,), {}, ()), ("mode", "t.f.default", (x,), {"n": 2}, ())]


def test_the_innermost_mode_is_asked_first_and_what_it_calls_goes_to_the_next():
    log = []
    with Mode("outer", log), Mode("inner", log):
        ops.t.f(Fake())
    assert [entry[0] for entry in log] == ["inner", "outer"]


def test_the_same_mode_may_be_entered_twice():
    log = []
    mode = Mode("mode", log)
    with mode, mode:
        ops.t.f(Fake())
        assert stack() == (mode, mode)
    assert len(log) == 2


def test_a_handler_runs_with_its_mode_popped_and_may_enter_it_again():
    seen = []

    def answer(func, args, kwargs):
        seen.append((stack(), has_python_key()))
        if len(seen) == 1:
            with mode:
                func(*args, **kwargs)
        return args[0]

    mode = Mode("mode", answer=answer)
    with mode:
        ops.t.f(Fake())
        assert (stack(), has_python_key()) == ((mode,), True)
    assert seen == [((), False), ((), False)]
    assert not has_python_key()


def test_inside_a_handler_the_layers_above_have_had_their_turn():
    seen = []

    def answer(func, args, kwargs):
        excluded = STATE.get().excluded
        seen.append([bool(excluded & keyset(key)) for key in ("AutogradCPU", "ADInplaceOrView", "Functionalize")])
        return args[0]

    with Mode(answer=answer):
        ops.t.f(Fake())
    assert seen == [[True, True, True]]
    assert STATE.get() == DEFAULT


def test_a_mode_may_answer_by_itself_and_then_nothing_runs():
    x = Fake(name="mine")
    with Mode(answer=lambda *call: x):
        assert ops.t.f(Fake()) is x


def test_a_factory_without_tensors_is_seen_too():
    operator("t::make() -> Tensor", CompositeExplicitAutograd=lambda: Fake(name="made"))
    with Mode() as mode:
        assert ops.t.make().name == "made"
    assert [entry[1] for entry in mode.log] == ["t.make.default"]


def test_composite_operators_come_apart_before_a_mode_sees_them():
    operator("t::g(Tensor x) -> Tensor", CompositeImplicitAutograd=lambda x: ops.t.f(ops.t.f(x)))
    with Mode() as mode:
        ops.t.g(Fake())
    assert [entry[1] for entry in mode.log] == ["t.f.default", "t.f.default"]


# Subclasses -----------------------------------------------------------------------------------------------------------


def test_a_subclass_takes_the_call_and_a_mode_comes_before_it():
    assert ops.t.f(Wrapper()).name == "of Wrapper"
    with Mode() as mode:
        ops.t.f(Fake(), Wrapper())
    assert mode.log[0][4] == (Wrapper,)
    assert Wrapper.log == [("Wrapper", (Wrapper,))] * 2


def test_of_several_classes_the_most_derived_is_asked_first():
    class Derived(Wrapper):
        pass

    assert ops.t.f(Wrapper(), Derived()).name == "of Derived"
    assert Wrapper.log == [("Derived", (Derived, Wrapper))]


def test_a_mode_that_does_not_answer_leaves_the_call_to_the_classes_alone():
    log = []
    with Mode("outer", log), Mode("inner", log, answer=lambda *call: NotImplemented):
        assert ops.t.f(Wrapper()).name == "of Wrapper"
    assert [entry[0] for entry in log] == ["inner"]  # no other mode is tried


def test_where_nobody_answers_all_that_were_asked_are_named():
    class Refusing(Wrapper):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError) as caught, Mode(answer=lambda *call: NotImplemented):
        ops.t.f(Refusing())
    assert str(caught.value).startswith(
        "Multiple dispatch failed for 'torch._ops.t.f.default'; all __torch_dispatch__ handlers returned "
        "NotImplemented:\n\n  - mode object Mode(mode)\n  - tensor subclass <class '"
    )


def test_a_class_with_the_disabled_handler_is_not_asked():
    class Plain(Wrapper):
        __torch_dispatch__ = _disabled_torch_dispatch_impl

    assert ops.t.f(Wrapper(), Plain()).name == "of Wrapper"
    assert Wrapper.log == [("Wrapper", (Wrapper,))]


def test_an_answer_must_be_what_the_schema_promises():
    with pytest.raises(RuntimeError, match="Unable to cast 3 to Tensor"), Mode(answer=lambda *call: 3):
        ops.t.f(Fake())
    operator("t::two(Tensor x) -> (Tensor, Tensor)", CPU=lambda x: (x, x))
    with pytest.raises(RuntimeError, match="returns 2 values"), Mode(answer=lambda *call: Fake()):
        ops.t.two(Fake())


# Pushing and popping ------------------------------------------------------------------------------------------------


def test_push_and_pop_by_hand():
    mode = Mode()
    push_mode(mode)
    assert (stack(), has_python_key()) == ((mode,), True)
    assert pop_mode() is mode
    assert not has_python_key()
    with pytest.raises(RuntimeError, match="trying to pop from empty mode stack"):
        pop_mode()


@pytest.mark.parametrize("kind", [TorchDispatchMode, TorchFunctionMode])
def test_a_mode_that_ends_out_of_order_takes_its_own_entry_away_and_says_so(kind):
    def holding(mode):
        with mode:
            yield

    field = kind._stack
    first, second = kind(), kind()
    generator = holding(first)
    next(generator)
    with second:
        with pytest.raises(ModeOrderError, match="is still active; leave modes in the reverse order"):
            generator.close()
        assert getattr(STATE.get(), field) == (second,)
    assert getattr(STATE.get(), field) == ()


@pytest.mark.parametrize("kind", [TorchDispatchMode, TorchFunctionMode])
def test_a_mode_is_a_decorator_too_also_of_generators(kind):
    mode = kind()

    @mode
    def active():
        return getattr(STATE.get(), kind._stack)

    @mode
    def each_step():
        for _ in range(2):
            yield getattr(STATE.get(), kind._stack)

    assert active() == (mode,)
    for seen in each_step():
        assert seen == (mode,)
        assert getattr(STATE.get(), kind._stack) == ()


def test_a_mode_without_handler_says_so():
    with pytest.raises(NotImplementedError, match="TorchDispatchMode is a dispatch mode without a __torch_dispatch__"):
        with TorchDispatchMode():
            ops.t.f(Fake())


def test_function_modes_and_dispatch_modes_stand_on_stacks_of_their_own():
    function_mode, mode = TorchFunctionMode(), Mode()
    with function_mode, mode:
        assert (STATE.get().function_modes, stack()) == ((function_mode,), (mode,))
    assert with_function_modes(DEFAULT, (mode,)).modes == ()


# Whatever happens: reliability, risks 7 and 8 -----------------------------------------------------------------------


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.long)])
def test_generators_that_hold_modes_may_end_in_any_order(count):
    """The stack is the model's after each step, and there is an error exactly where the order is broken."""

    def holding(mode):
        with mode:
            yield

    for seed in range(count):
        rng = random.Random(seed)
        model, held = [], {}
        for number in range(rng.randint(1, 12)):
            if held and rng.random() < 0.5:
                mode = rng.choice(list(held))
                broken = model[-1] is not mode
                model.remove(mode)
                if broken:
                    with pytest.raises(ModeOrderError):
                        held.pop(mode).close()
                else:
                    held.pop(mode).close()
            else:
                mode = Mode(str(number))
                held[mode] = holding(mode)
                next(held[mode])
                model.append(mode)
            assert list(stack()) == model
            assert has_python_key() == bool(model)
        for mode in reversed(model):
            held[mode].close()
        assert STATE.get() == DEFAULT


ERRORS = [ValueError, KeyboardInterrupt, SystemExit, MemoryError, RecursionError, GeneratorExit, StopIteration]


@pytest.mark.parametrize("count", [1_000, pytest.param(50_000, marks=pytest.mark.long)])
def test_no_error_in_a_handler_a_kernel_or_a_region_leaves_anything_behind(f, count):
    """Random nests of modes, settings and calls, of which some part raises. The state is the default afterwards."""
    rng = random.Random(0)
    raised = 0

    def fail_sometimes(chance):
        if rng.random() < chance:
            raise rng.choice(ERRORS)

    def answer(func, args, kwargs):
        fail_sometimes(0.1)
        result = func(*args, **kwargs)
        fail_sometimes(0.1)
        return result

    def kernel(x):
        fail_sometimes(0.1)
        return x

    def nest(depth):
        fail_sometimes(0.05)
        if depth == 0:
            return ops.t.g(Wrapper() if rng.random() < 0.3 else Fake())
        before = STATE.get()
        region = Mode(answer=answer) if rng.random() < 0.6 else Setting(grad_enabled=rng.random() < 0.5)
        try:
            with region:
                nest(depth - 1)
                fail_sometimes(0.05)
        finally:
            assert STATE.get() == before

    operator("t::g(Tensor x) -> Tensor", CPU=kernel)
    for _ in range(count):
        try:
            nest(rng.randint(1, 4))
        except tuple(ERRORS):
            raised += 1
        assert STATE.get() == DEFAULT
    assert 0.2 * count < raised < 0.8 * count


def test_endless_recursion_in_a_handler_leaves_nothing_behind():
    def answer(func, args, kwargs):
        with mode:
            return func(*args, **kwargs)

    mode = Mode(answer=answer)
    with pytest.raises(RecursionError), mode:
        ops.t.f(Fake())
    assert STATE.get() == DEFAULT


def test_pytorchs_names_answer_about_the_stack():
    from redispatch import _C

    with Mode("outer") as outer, Mode("inner") as inner:
        assert _C._len_torch_dispatch_stack() == 2
        assert (_C._get_dispatch_stack_at(0), _C._get_dispatch_stack_at(1)) == (outer, inner)
        assert _C._pop_torch_dispatch_stack() is inner
        _C._push_on_torch_dispatch_stack(inner)
        with _C._DisableTorchDispatch():
            assert ops.t.f(Wrapper()).name == "f"
    assert not outer.log and not inner.log
    with pytest.raises(RuntimeError, match="Tried to get stack at idx that's too big"):
        _C._get_dispatch_stack_at(0)
    assert _C._dispatch_isTensorSubclassLike(Wrapper()) and not _C._dispatch_isTensorSubclassLike(Fake())


@pytest.mark.parametrize(
    "kind, name", [(TorchDispatchMode, "__torch_dispatch__"), (TorchFunctionMode, "__torch_function__")]
)
def test_a_handler_is_no_classmethod(kind, name):
    mode = type("Mode", (kind,), {name: classmethod(lambda cls, func, types, args=(), kwargs=None: None)})
    with pytest.raises(RuntimeError, match=f"{name}` as a classmethod is not supported"), mode():
        pass


def test_a_modes_repr_is_not_asked_for_unless_a_trace_wants_it():
    """A user's `__repr__` may be slow, or call operators itself."""
    asked = []

    class Shy(TorchDispatchMode):
        def __repr__(self):
            asked.append(1)
            return "shy"

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with Shy():
        rd.ones(2)
    assert not asked
    with trace() as hops, Shy():
        rd.ones(2)
    assert "asks shy" in str(hops) and asked


# Infra modes and the key PreDispatch ----------------------------------------------------------------------------------


class Slotted(Mode):
    def __init__(self, key, name="infra", log=None):
        super().__init__(name, log)
        self._mode_key = key


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_infra_modes_stand_in_their_slots_below_those_of_users(order):
    fake, proxy, functional = infra = [Slotted(key, key.name) for key in TorchDispatchModeKey]
    user = Mode("user")
    with contextlib.ExitStack() as entered:
        for index in order:
            entered.enter_context([*infra, user][index])
        assert stack() == (fake, proxy, functional, user)
        ops.t.f(Fake())
        assert [mode_in_slot(key) for key in TorchDispatchModeKey] == infra
    assert STATE.get() == DEFAULT
    assert all(len(mode.log) == 1 for mode in (*infra, user))


def test_a_second_mode_takes_the_slot_of_the_first_until_it_ends():
    first, second = Slotted(TorchDispatchModeKey.PROXY), Slotted(TorchDispatchModeKey.PROXY)
    user = Mode()
    with first, user:
        with first:  # it is there already
            assert stack() == (first, user)
        with pytest.raises(ValueError), second:
            assert stack() == (second, user)
            with first, second:
                assert stack() == (second, user)
            assert stack() == (second, user)
            raise ValueError
        assert stack() == (first, user)
        with pytest.raises(RuntimeError, match="trying to set the current PROXY mode, but one already exists"):
            push_mode(second)
    assert STATE.get() == DEFAULT
    with pytest.raises(ModeOrderError, match="not among the active modes"):
        first.__exit__(None, None, None)


def test_an_infra_mode_may_be_entered_again_by_its_own_handler():
    class Again(Slotted):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.log.append((stack(), mode_in_slot(self._mode_key)))
            with self:
                self.log.append(stack())
            return func(*args, **(kwargs or {}))

    mode, user = Again(TorchDispatchModeKey.FUNCTIONAL), Mode()
    with mode, user:
        ops.t.f(Fake())
    assert mode.log == [((), None), (mode,)]
    assert STATE.get() == DEFAULT


def test_a_mode_at_pre_dispatch_sees_what_the_user_called_and_its_calls_are_recorded():
    log = []

    class Early(Mode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            log.append(("early", str(func), rd.is_grad_enabled()))
            result = func(*args, **(kwargs or {}))
            assert result.requires_grad
            return result

    x, weight = rd.ones(2, 3), rd.ones(4, 3, requires_grad=True)
    early, late = Early(), Mode(log=log)
    early._dispatch_key = DispatchKey.PreDispatch
    with early, late:
        y = rd.nn.functional.linear(x, weight)
        assert (STATE.get().pre_dispatch_modes, stack()) == ((early,), (late,))
        with _python_dispatch._disable_current_modes() as modes:
            assert modes == [early, late] and STATE.get().included == DEFAULT.included
    assert y.grad_fn is not None
    assert [entry[:2] for entry in log] == [("early", "aten.linear.default"), *(("mode", e[1]) for e in log[1:])]
    assert STATE.get() == DEFAULT
    refusing = Mode(answer=lambda *call: NotImplemented)
    refusing._dispatch_key = DispatchKey.PreDispatch
    with pytest.raises(TypeError, match="Multiple dispatch failed"), refusing:
        rd.ones(2)


def test_infra_modes_are_found_taken_out_and_put_back_by_their_key():
    key = TorchDispatchModeKey.FUNCTIONAL
    mode, early = Slotted(key), Slotted(key)
    early._dispatch_key = DispatchKey.PreDispatch
    for one in (mode, early):
        with one:
            assert _python_dispatch._detect_infra_mode(key) is one
            with _python_dispatch._disable_infra_mode(key) as off:
                assert off is one and _python_dispatch._detect_infra_mode(key) is None
            assert _python_dispatch._pop_mode(DispatchKey.PreDispatch if one is early else key) is one
            _python_dispatch._push_mode(one)
            assert _python_dispatch.is_in_torch_dispatch_mode()
            assert not _python_dispatch.is_in_torch_dispatch_mode(include_infra_modes=False)
    with mode, early, pytest.raises(AssertionError, match="both in PreDispatch and Python Key"):
        with _python_dispatch._disable_current_modes():
            pass
    with pytest.raises(RuntimeError, match="trying to pop from empty mode stack"):
        _python_dispatch._pop_mode(key)
    assert STATE.get() == DEFAULT


def test_a_mode_says_whether_it_sees_composites_in_parts():
    x, w = rd.ones(2, 3), rd.ones(4, 3)
    seen = {}
    for decompose in (None, True, False):

        class Names(TorchDispatchMode, decompose=decompose):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                self.names.append(str(func))
                return func(*args, **(kwargs or {}))

        for inference in (False, True):
            Names.names = seen[decompose, inference] = []
            with rd.inference_mode(inference), Names():
                result = rd.nn.functional.linear(x, w)
            assert result.tolist() == [[3.0] * 4] * 2 and result.is_inference() == inference
    parts, whole = ["aten.t.default", "aten.mm.default"], ["aten.linear.default"]
    assert seen == {
        (None, False): parts, (None, True): whole,
        (True, False): parts, (True, True): parts,
        (False, False): whole, (False, True): whole,
    }  # fmt: skip
