"""Entry points: what their fast paths make of a call is what the slow path makes of it, error texts included."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import threading
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import redispatch as rd
from redispatch.dispatch import (
    NO_DEFAULT,
    OPERATORS,
    FixedEntryPoint,
    ListType,
    OptionalType,
    _scoped_library,
    entry_point_of,
    ops,
    overridden,
)
from redispatch.dispatch.config import config
from redispatch.dispatch.entry.entries import EntryPoint
from redispatch.dispatch.protocols.override import (
    HANDLER_CHANGED,
    PLAIN_TENSORS,
    SILENT_TENSORS,
    TensorMeta,
    _disabled_torch_function_impl,
    without_subclasses,
)
from redispatch.dispatch.schema.convert import default_of
from redispatch.dispatch.specialiser import specialise
from redispatch.dispatch.tensor import Tensor
from redispatch.subclasses.two_tensor import TwoTensor

from .. import drawing
from ..seeing import SeenFunctions

# What a call comes to -------------------------------------------------------------------------------------------------


class Reached(Exception):
    """A call got as far as its code."""


def instead_of_code(table, keys):
    """Stands in the place of all code: it says for which operator, stack, facts and keys it was looked up."""
    if table.op.name() in ("aten::item", "aten::_local_scalar_dense"):  # by which a tensor is read as a number
        return specialise.boxed(table.op, table.facts, keys & specialise.KEYS_MASK)

    def code(*values):
        left = iter(values)
        stack = [
            default_of(a) if f == "D" else None if f == "N" else next(left)
            for a, f in zip(table.op.schema.arguments, table.facts, strict=True)
        ]
        assert next(left, Reached) is Reached
        raise Reached(table.op, described(stack), table.facts, keys)

    return code


def described(value):
    """A value for comparison: tensors by identity, unless they were made by the call; numbers with class and sign."""
    if isinstance(value, list | tuple):
        return type(value).__name__, [described(item) for item in value]
    if isinstance(value, Tensor):
        return type(value), next((i for i, known in enumerate(TENSORS) if known is value), "new")
    return type(value), repr(value)


@pytest.fixture
def no_code(monkeypatch):
    """Calls stop where they reach code."""
    before = config.specialize
    config.specialize = True
    monkeypatch.setattr(specialise.Table, "__missing__", instead_of_code)
    yield
    monkeypatch.undo()
    config.specialize = before


def outcome(function, *args, **kwargs):
    """The outcome of a call: the code that it reaches, an error or a result."""
    try:
        return "returned", repr(function(*args, **kwargs))
    except Reached as reached:
        return "reached", reached.args
    except Exception as error:
        return "raised", type(error), str(error)


# Calls ----------------------------------------------------------------------------------------------------------------

PLAIN = rd.ones(2, 3)
TENSORS = [
    PLAIN,
    rd.ones(2, 3),
    rd.tensor(2),
    rd.tensor(1.5),
    rd.ones(1, requires_grad=True),
    rd.nn.Parameter(rd.ones(2)),
]
INTS = [0, 1, -1, 2, -100]
VALUES = {
    "Tensor": TENSORS,
    "Scalar": [0, 1, 2, 0.0, -0.0, 1.0, float("nan"), True, False, 1j],
    "int": INTS,
    "SymInt": INTS,
    "float": [0.0, -0.0, 1.0, 0.5, 1e-5, float("inf"), 1, 0, 2**60],
    "bool": [True, False],
    "str": ["none", "sum", "floor"],
    "ScalarType": [rd.float32, rd.int64, rd.float64, float],
    "Device": [rd.device("cpu"), rd.device("meta"), "cpu", "nowhere", 0],
    "Layout": [rd.strided],
    "MemoryFormat": [rd.contiguous_format, rd.preserve_format],
    "Generator": [rd.Generator()],
}
ODD = [None, "a", [], (), [1.5], [True], [None], 10**400, np.int64(2), np.float32(2.0), np.ones(2), [PLAIN, 1], object]
ANY = [
    *ODD,
    *(value for values in VALUES.values() for value in values),
    [1],
    (0, 1),
    rd.Size([2, 3]),
    [PLAIN, TENSORS[1]],
]


def values_of(type_):
    """Values which suit a schema type."""
    if isinstance(type_, OptionalType):
        return [None, *values_of(type_.elem)]
    if isinstance(type_, ListType):
        items = values_of(type_.elem)
        return [[], items[:1], tuple(items[:2]), items[:3], *([items[1]] if type_.size else [])]
    return VALUES.get(getattr(type_, "name", ""), ODD)


@st.composite
def calls(draw, operators, renamed=True):
    """(args, kwargs): a call that suits one of some operators, more or less."""
    arguments = draw(st.sampled_from(operators)).schema.arguments
    args, kwargs = [], {}
    by_position = draw(st.integers(0, len(arguments)))
    names = {"dim": ["dim", "axis"], "keepdim": ["keepdim", "keepdims"], "self": ["input", "self"]} if renamed else {}
    for index, argument in enumerate(arguments):
        default = default_of(argument)
        chosen = draw(st.integers(0, 9))
        pool = ANY if chosen == 0 else values_of(argument.type)
        if default is not NO_DEFAULT and chosen < 3:
            pool = [default]
        value = draw(st.sampled_from(pool))
        if index < by_position:
            args.append(value)
        elif default is NO_DEFAULT or draw(st.booleans()):
            kwargs[draw(st.sampled_from(names.get(argument.name, [argument.name])))] = value
    if draw(st.integers(0, 4)) == 0:
        name = draw(st.sampled_from(["out", "requires_grad", "dtype", "alpha", "wrong"]))
        kwargs[name] = draw(st.sampled_from([None, True, PLAIN, rd.float32]))
    if draw(st.integers(0, 9)) == 0:
        args.append(draw(st.sampled_from(ANY)))
    if draw(st.booleans()):
        kwargs = dict(reversed(kwargs.items()))
    return args, kwargs


def agree(function, operators, slow, *, before=(), examples=10, renamed=True):
    """Asserts that an entry point comes to what its slow path comes to, for calls of all kinds."""
    entry_point_of(function).make()

    @settings(max_examples=100 if drawing.everything else examples, database=None)
    @given(calls(operators, renamed))
    def check(call):
        args, kwargs = call
        expected = outcome(slow, *before, tuple(args), kwargs)
        assert outcome(function, *before, *args, **kwargs) == expected
        assert (
            outcome(function, *before, *args, **kwargs) == expected
        )  # fast paths for keywords come with the first call

    check()


def faces(room):
    return {name: value for name, value in vars(room).items() if isinstance(getattr(value, "operators", None), list)}


FUNCTIONS = {f"{room.__name__}.{name}": f for room in (rd, rd.linalg) for name, f in faces(room).items()}
FUNCTIONS |= {f"{name}.inplace": f.inplace for name, f in FUNCTIONS.items() if hasattr(f, "inplace")}
METHODS = faces(Tensor)
DUNDERS = {
    name: value
    for name, value in vars(Tensor).items()
    if name.startswith("__") and isinstance(getattr(value, "__globals__", {}).get("entry_point"), FixedEntryPoint)
}


SHARE = 4  # one in so many functions is drawn, and half as many operators: their entry points come from one writer


def initial(name):
    return name.rpartition(".")[2].strip("_")[:1]


@pytest.mark.parametrize("letter", sorted(set(map(initial, [*FUNCTIONS, *METHODS]))))
def test_public_functions_read_calls_as_the_slow_road_does(letter, no_code):
    for name, function in (FUNCTIONS | METHODS).items():
        if initial(name) == letter and drawing.one_in(SHARE, "entry", name):
            agree(function, function.operators, entry_point_of(function).slow)


def test_operators_of_python_come_to_what_their_methods_come_to(no_code):
    assert {"__add__", "__radd__", "__iadd__", "__rpow__", "__eq__", "__neg__", "__matmul__"} <= set(DUNDERS)
    for function in DUNDERS.values():
        for left in TENSORS:
            for right in ANY:
                operands = (left, right)[: len(entry_point_of(function).names)]
                expected = outcome(entry_point_of(function).slow, *operands)
                assert outcome(function, *operands) == expected


@pytest.mark.parametrize("part", range(8))
def test_operators_and_packets_read_calls_as_bind_does(part, no_code):
    for op in list(OPERATORS.values())[part::8]:
        if not drawing.one_in(2 * SHARE, "entry", op):
            continue
        packet = op.overloadpacket
        overloads = [getattr(packet, name) for name in packet.overloads()]
        agree(op.__call__, [op], op._called, examples=6, renamed=False)
        if op is overloads[0]:
            agree(packet.__call__, overloads, packet._called, examples=6, renamed=False)
            agree(op.redispatch, [op], op._redispatched, before=(PLAIN._keyset,), examples=3, renamed=False)


def test_a_packet_raises_the_error_of_a_value_at_once():
    x = rd.ones(2)
    for device, error in {"nowhere": "^Expected one of cpu", "cpu:a": "^Invalid device", "": "^Device string"}.items():
        with pytest.raises(RuntimeError, match=error):
            ops.aten.to(x, device)
        with pytest.raises(RuntimeError, match=error):
            ops.aten.to(self=x, device=device, dtype=None)


# Fast paths -----------------------------------------------------------------------------------------------------------


@contextmanager
def slow_roads(function):
    """A list that notes each call that a function does not take by a fast path."""
    noted = []
    point = entry_point_of(function)
    slow = point.slow
    point.slow = lambda *args: noted.append(args) or slow(*args)
    point.make()
    try:
        yield noted
    finally:
        point.slow = slow
        point.make()


COMMON = [
    "rd.add(x, y)", "rd.add(x, 2)", "rd.add(2, x)", "x.add(y)", "x.add_(y)", "x.relu()", "x.sum()", "x.sum(0)",
    "x.sum((0, 1))", "x.sum(1, True)", "x.sum(dim=1)", "x.sum(axis=1, keepdims=True)", "x.sum(1, keepdim=True)",
    "x.view(3, 2)", "x.view([3, 2])", "x.view(x.shape)", "rd.cat([x, y])", "rd.cat((x, y, x), 1)",
    "rd.cat([x, y], dim=1)",
    "rd.softmax(x, -1)", "rd.softmax(x, dim=-1)", "rd.mm(x, z)", "x.t()", "x.max()", "x.max(0)", "x.max(y)",
    "x.pow(2)", "x.pow(y)", "rd.pow(2, x)", "rd.where(x > 0, x, y)", "rd.where(x > 0, x, 0.0)", "rd.ones(2, 3)",
    "rd.zeros((2, 3), dtype=rd.float32)", "rd.ones(2, requires_grad=True)", "rd.add(x, y, out=rd.empty(2, 3))",
    "x.add_(y, alpha=2)", "rd.clamp(x, 0, 1)", "rd.full((2,), 1.5)", "rd.arange(3)", "x.permute(1, 0)", "x.squeeze(0)",
    "p.add(p)", "w.add(w)", "w.add(x)",
    "rd.native_layer_norm(x, [3], None, None, 1e-5)",
    "rd.ops.aten.native_layer_norm_backward.default(x, x, [3], x[:, :1], x[:, :1], None, None, [True, False, False])",
]  # fmt: skip


@pytest.mark.parametrize("text", COMMON)
def test_common_calls_take_a_lane(text):
    values = {"x": rd.rand(2, 3), "y": rd.rand(2, 3), "z": rd.rand(3, 2), "p": rd.nn.Parameter(rd.rand(2)), "rd": rd}
    values["w"] = TwoTensor(rd.rand(2, 3), rd.rand(2, 3))
    values["w"].relu(), values["p"].relu()  # their classes have been asked
    called = text.split("(")[0]
    function = vars(Tensor)[called.partition(".")[2]] if called[:2] != "rd" else eval(called, values)
    function = function.__call__ if called[:6] == "rd.ops" else function
    with slow_roads(function) as noted:
        eval(text, values)
        eval(text, values)
    assert not noted


def test_the_source_of_a_function_is_that_of_its_lanes():
    for _ in range(3):
        rd.ones(2).relu()
    source = inspect.getsource(Tensor.relu)
    assert "last = relu_T.last" in source and "return last.code(self)" in source
    assert rd.ones(2) + 1 is not None
    assert inspect.getsource(Tensor.__add__).startswith("def __add__(self, other):")


# What stays ----------------------------------------------------------------------------------------------------------


def test_a_function_stays_the_object_that_it_is():
    before = rd.add, Tensor.add, ops.aten.add, ops.aten.add.Tensor, rd.add.inplace
    described = [(f.__name__, f.__qualname__, f.__module__, f.__doc__) for f in before[:2]]
    for _ in range(4):
        rd.add(PLAIN, 1), PLAIN.add(1), ops.aten.add(PLAIN, 1), ops.aten.add.Tensor(PLAIN, 1)
    after = rd.add, Tensor.add, ops.aten.add, ops.aten.add.Tensor, rd.add.inplace
    assert all(one is other for one, other in zip(before, after, strict=True))
    assert described == [(f.__name__, f.__qualname__, f.__module__, f.__doc__) for f in after[:2]]
    assert rd.add.operators == [ops.aten.add.Tensor] and rd.add.__qualname__ == "add"
    assert Tensor.add.__qualname__ == "Tensor.add" and Tensor.add.__module__ == "torch"


def test_nothing_is_written_for_a_function_that_is_called_twice():
    function = entry_point_of(rd.add).function
    point = EntryPoint("f", entry_point_of(rd.add).forms, lambda args, kwargs: (args, kwargs))
    assert point.function(1, a=2) == ((1,), {"a": 2}) and point.function() == ((), {})
    assert point.function.__code__.co_name == "not_yet" and point.function is not function
    assert point.function("neither", b=1) == (("neither",), {"b": 1})
    assert point.function.__code__.co_name == "f"
    assert point.function("neither", b=1, c=2) == (("neither",), {"b": 1, "c": 2})
    assert point.function(1, 2, 3, 4) == ((1, 2, 3, 4), {})


def test_threads_may_make_the_same_function_at_once():
    def slow(args, kwargs):
        raise AssertionError("the slow path")

    for _ in range(20):
        point = EntryPoint("add", entry_point_of(rd.add).forms, slow)
        point.slow_at_first = 0
        results, barrier = [], threading.Barrier(4)

        def work(point=point, results=results, barrier=barrier):
            barrier.wait()
            results.append(point.function(PLAIN, 1).sum().item())
            results.append(point.function(PLAIN, 1, alpha=2).sum().item())

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(results) == [12.0] * 4 + [18.0] * 4


# Overrides -----------------------------------------------------------------------------------------------------------


def test_a_mode_sees_each_call_as_the_user_made_it():
    x = rd.ones(2, 3)
    for _ in range(4):
        with SeenFunctions() as mode:
            rd.add(x, 2, alpha=3)
            x.sum(axis=1)
            x.view(3, 2)
            x + 1
            ops.aten.add.Tensor(x, other=1)
            ops.aten.add(x, 1)
            with pytest.raises(TypeError):
                x.sum(1, 2, 3, 4, wrong=5)
    calls = [(func, args, kwargs) for func, _, args, kwargs in mode.calls]
    assert calls[0] == (rd.add, (x, 2), {"alpha": 3})
    assert calls[1] == (Tensor.sum, (x,), {"axis": 1})
    assert calls[2] == (Tensor.view, (x, 3, 2), None)
    assert calls[3] == (Tensor.add, (x, 1), None)
    assert calls[4] == (ops.aten.add.Tensor, (x,), {"other": 1})
    assert calls[5] == (ops.aten.add, (x, 1), {})
    assert calls[6] == (Tensor.sum, (x, 1, 2, 3, 4), {"wrong": 5})


def overriding(kind):
    def handler(cls, func, types, args=(), kwargs=None):
        return "overridden"

    kind.__torch_function__ = classmethod(handler)


def test_a_handler_that_comes_later_is_asked():
    class Plain(Tensor):
        __torch_function__ = _disabled_torch_function_impl

    class Below(Plain):
        pass

    x = Tensor._make_subclass(Below, rd.ones(2))
    for _ in range(4):
        assert isinstance(x + x, Tensor) and isinstance(rd.relu(x), Tensor) and isinstance(rd.cat([x, x]), Tensor)
    assert id(Below) in PLAIN_TENSORS
    overriding(Plain)
    assert id(Below) not in PLAIN_TENSORS
    for _ in range(4):
        assert x + x == rd.relu(x) == x.relu() == rd.cat([x, x]) == ops.aten.relu(x) == "overridden"
        with without_subclasses():
            assert isinstance(x + x, Tensor) and isinstance(rd.relu(x), Tensor)
    del Plain.__torch_function__
    assert isinstance(rd.relu(x), Below)  # the default of Tensor
    Plain.__torch_function__ = _disabled_torch_function_impl
    assert type(rd.relu(x)) is Tensor and id(Below) in PLAIN_TENSORS


def test_a_class_is_plain_only_where_a_change_would_be_noticed():
    class Mixin:
        __torch_function__ = _disabled_torch_function_impl

    class Mixed(Mixin, Tensor):
        pass

    x = Tensor._make_subclass(Mixed, rd.ones(2))
    assert isinstance(rd.relu(x), Tensor) and id(Mixed) not in PLAIN_TENSORS
    overriding(Mixin)
    assert rd.relu(x) == "overridden"


def test_a_plain_class_is_let_go():
    class Plain(Tensor):
        __torch_function__ = _disabled_torch_function_impl

    key = id(Plain)
    Tensor._make_subclass(Plain, rd.ones(2)).relu()
    Tensor._make_subclass(Plain, rd.ones(2)).add(1)
    assert key in PLAIN_TENSORS
    del Plain
    gc.collect()
    assert key not in PLAIN_TENSORS


def test_a_class_takes_part_as_tensor_does_where_no_class_may_override():
    class Sub(Tensor):
        pass

    x, key = rd.ones(2).as_subclass(Sub), id(Sub)
    for _ in range(4):
        assert type(x + 1) is type(rd.relu(x)) is Sub
    assert key in SILENT_TENSORS and key not in PLAIN_TENSORS
    overriding(Sub)
    assert rd.relu(x) == "overridden"
    with without_subclasses():
        assert type(rd.relu(x)) is Tensor
    del x, Sub
    gc.collect()
    assert key not in SILENT_TENSORS


def test_who_asks_is_told_of_changed_handlers():
    class Plain(Tensor):
        pass

    told = []
    HANDLER_CHANGED.append(told.append)
    try:
        Plain.__torch_function__ = _disabled_torch_function_impl
        Plain.__torch_dispatch__ = classmethod(lambda *args: NotImplemented)
        Plain.other = 1
        del Plain.__torch_dispatch__
    finally:
        HANDLER_CHANGED.remove(told.append)
    assert told == [Plain] * 3 and isinstance(Plain, TensorMeta)


# Overloads that come and go -------------------------------------------------------------------------------------------


def test_a_packet_forgets_what_it_knew_when_its_overloads_change():
    with _scoped_library("comes", "FRAGMENT") as first:
        first.define("f(Tensor x) -> str")
        first.impl("f", lambda x: "tensor", "CompositeExplicitAutograd")
        packet = ops.comes.f
        assert [packet(PLAIN) for _ in range(4)] == ["tensor"] * 4
        with pytest.raises(RuntimeError):
            packet(PLAIN, 1)
        with _scoped_library("comes", "FRAGMENT") as second:
            second.define("f.n(Tensor x, int n) -> str")
            second.impl("f.n", lambda x, n: f"tensor and {n}", "CompositeExplicitAutograd")
            assert [packet(PLAIN, 1) for _ in range(4)] == ["tensor and 1"] * 4
            assert [packet(PLAIN, n=2) for _ in range(4)] == ["tensor and 2"] * 4
            assert packet.n(PLAIN, 3) == "tensor and 3"
        with pytest.raises(RuntimeError):
            packet(PLAIN, 1)
        with pytest.raises(RuntimeError):
            packet(PLAIN, n=1)
        with pytest.raises(AttributeError):
            packet.n  # looking it up is the point
        assert packet(PLAIN) == "tensor" and ops.comes.f is packet
    with pytest.raises(AttributeError):
        ops.comes.f


def test_packets_and_operators_can_be_copied_and_pickled():
    for one in (ops.aten.add, ops.aten.add.Tensor):
        assert pickle.loads(pickle.dumps(one)) is one and copy.deepcopy(one) is one


# Switches -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", [True, False, "strict"])
def test_results_do_not_depend_on_what_runs(setting):
    before = config.specialize
    config.specialize = setting
    try:
        x = rd.ones(2, 3)
        for _ in range(4):
            assert (x + x).sum(dim=1).tolist() == [6.0, 6.0] and rd.cat([x, x], 1).shape == (2, 6)
            values, indices = x.max(0)
            assert type(x.max(dim=0)).__name__ == "max" and indices.tolist() == [0, 0, 0]
            assert isinstance(x.split(1), tuple) and rd.ones(2, requires_grad=True).requires_grad
    finally:
        config.specialize = before


def test_a_list_inside_a_list_leaves_lists_to_be_looked_into():
    class Overriding(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "overridden"

    assert not overridden(([[1]],), {})
    x = Tensor._make_subclass(Overriding, rd.ones(2))
    assert overridden(([x],), {}) and rd.cat([x, x]) == "overridden"
