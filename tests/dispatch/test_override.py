"""Before the dispatcher: function modes and `__torch_function__`, in order, and the ways to keep them out."""

import pytest

import redispatch as rd
from redispatch.dispatch import (
    STATE,
    TorchFunctionMode,
    _disabled_torch_function_impl,
    handle_torch_function,
    one_per_type,
    ops,
    overridden,
    overrides,
    overriding,
    without_overrides,
    without_subclasses,
)

from .fakes import Fake, operator


class Logged:
    """Answers every function with its own name, or not at all."""

    log: list = []
    answers = True

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Logged.log.append((cls.__name__, types))
        return cls.__name__ if cls.answers else NotImplemented


class A(Logged):
    pass


class B(A):
    pass


class C(Logged):
    pass


class Silent(Logged):
    answers = False


class Disabled:
    __torch_function__ = _disabled_torch_function_impl


class Mode(TorchFunctionMode):
    def __init__(self, name, answer=True):
        self.name, self.answer = name, answer

    def __torch_function__(self, func, types, args=(), kwargs=None):
        Logged.log.append((self.name, types))
        return self.name if self.answer else NotImplemented

    def __repr__(self):
        return f"Mode({self.name})"


@pytest.fixture(autouse=True)
def empty_log():
    Logged.log.clear()


def public(*args, **kwargs):
    """A function of the public face: asks before it runs."""
    if overridden(args, kwargs):
        return handle_torch_function(public, overriding(args, kwargs), *args, **kwargs)
    return "plain"


@pytest.mark.parametrize(
    ("values", "order"),
    [
        ((A(), C(), A()), "AC"),
        ((C(), A(), B()), "CBA"),  # a subclass before its superclass, otherwise from left to right
        ((A(), B(), C()), "BAC"),
        ((B(), A()), "BA"),
        ((), ""),
    ],
)
def test_one_value_per_type_with_subclasses_first(values, order):
    assert "".join(type(value).__name__ for value in one_per_type(values)) == order


def test_the_first_that_answers_wins_and_is_told_all_types():
    assert public(A(), B(), Silent()) == "B"
    assert Logged.log == [("B", (B, A, Silent))]
    Logged.log.clear()
    assert public(Silent(), C()) == "C"
    assert [name for name, _ in Logged.log] == ["Silent", "C"]


def test_arguments_are_found_by_keyword_and_in_lists_one_level_deep():
    assert public(1, other=A()) == "A"
    assert public([1, A()]) == public((A(),)) == public(other=[A()]) == "A"
    assert public([[A()]]) == "plain"


@pytest.mark.parametrize("value", [1, "s", None, [1, 2.0], A, Disabled(), Fake(), object(), {}])
def test_what_has_no_handler_passes(value):
    assert public(value) == "plain"


def test_a_class_written_in_python_may_be_given_a_handler_later():
    class Late:
        pass

    assert not overrides(Late())
    Late.__torch_function__ = classmethod(lambda cls, func, types, args, kwargs: "late")
    assert overrides(Late())
    assert public(Late()) == "late"


def test_a_mode_comes_before_the_classes_and_runs_with_itself_popped():
    class Inner(Mode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            Logged.log.append((self.name, types))
            return [self.name, STATE.get().function_modes, func(*args, **(kwargs or {}))]

    outer, inner = Inner("outer"), Inner("inner")
    with outer, inner:
        assert public(A()) == ["inner", (outer,), ["outer", (), "A"]]
    assert Logged.log == [("inner", (A,)), ("outer", (A,)), ("A", (A,))]


def test_a_mode_that_does_not_answer_leaves_the_call_to_the_classes():
    with Mode("outer"), Mode("inner", answer=False):
        assert public(A()) == "A"
    assert [name for name, _ in Logged.log] == ["inner", "A"]


def test_subclasses_and_modes_can_be_kept_out():
    with Mode("mode"):
        with without_subclasses():
            assert public(A()) == "mode"
            assert Logged.log == [("mode", ())]
        with without_overrides():
            assert public(A()) == "plain"
            with without_subclasses():  # does not let the modes in again
                assert public(A()) == "plain"
        assert public(A()) == "mode"
    with without_subclasses():
        assert public(A()) == "plain"


def test_arguments_named_like_the_handlers_own_are_passed_on():
    class Echo:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return kwargs

    assert handle_torch_function(len, [Echo()], public=1, relevant=2) == {"public": 1, "relevant": 2}


def test_operators_and_packets_ask_too():
    operator("t::f(Tensor x) -> str", CompositeImplicitAutograd=lambda x: "kernel")

    class Tensorlike(Fake):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func, args, kwargs

    x = Tensorlike()
    assert ops.t.f(x) == (ops.t.f, (x,), {})
    assert ops.t.f.default(x=x) == (ops.t.f.default, (), {"x": x})
    with without_subclasses():
        assert ops.t.f(x) == "kernel"


def test_a_mode_without_handler_says_so():
    class Empty(TorchFunctionMode):
        pass

    with pytest.raises(NotImplementedError, match="Empty is a function mode without a __torch_function__"), Empty():
        public(1)
    with pytest.raises(NotImplementedError, match="TorchFunctionMode is a function mode without"), TorchFunctionMode():
        public(1)


def test_pytorchs_names_answer_about_overrides():
    from redispatch import _C

    assert _C._has_torch_function((A(),)) and not _C._has_torch_function((1,))
    assert _C._is_torch_function_enabled() and not _C._is_torch_function_all_disabled()
    with _C.DisableTorchFunctionSubclass():
        assert not _C._is_torch_function_enabled() and not _C._is_torch_function_all_disabled()
    with Mode("mode") as mode:
        assert _C._is_torch_function_mode_enabled()
        assert (_C._len_torch_function_stack(), _C._get_function_stack_at(0)) == (1, mode)
        assert _C._pop_torch_function_stack() is mode
        _C._push_on_torch_function_stack(mode)
        with _C.DisableTorchFunction():
            assert _C._is_torch_function_all_disabled() and not _C._is_torch_function_mode_enabled()
    with pytest.raises(RuntimeError, match="trying to pop from empty mode stack"):
        _C._pop_torch_function_stack()
    with pytest.raises(RuntimeError, match="Tried to get stack at idx that's too big"):
        _C._get_function_stack_at(0)


def test_function_modes_see_recording_go_on_and_off():
    seen = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is rd._C._set_grad_enabled:
                seen.append(args[0])
            return func(*args, **(kwargs or {}))

    with Mode():
        with rd.no_grad():
            assert not rd.is_grad_enabled()
        assert rd.is_grad_enabled() and seen == [False, True]
        with rd.set_grad_enabled(False):
            assert not rd.is_grad_enabled()
        rd.no_grad()(lambda: None)()
    assert rd.is_grad_enabled() and seen == [False, True, False, False, True, False, True]
