"""`__torch_function__` as users meet it: what handlers are given, and the names that `resolve_name` gives back."""

from __future__ import annotations

import importlib
import inspect
import itertools

import pytest

import redispatch as rd
from redispatch import overrides
from redispatch.overrides import TorchFunctionMode, resolve_name
from redispatch.utils._python_dispatch import TorchDispatchMode

from .seeing import SeenFunctions


class Duck:
    """No tensor, but a `__torch_function__`."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__, [kind.__name__ for kind in types], len(args), kwargs


def test_a_handler_gets_none_where_no_keyword_was_given():
    assert rd.add(Duck(), 1) == ("add", ["Duck"], 2, None)
    assert rd.mean(Duck(), dim=0) == ("mean", ["Duck"], 1, {"dim": 0})
    assert rd.cat([Duck(), rd.ones(1)]) == ("cat", ["Duck"], 1, None)


class Calls(SeenFunctions):
    """Has the full names of the functions that it was asked about."""

    @property
    def seen(self):
        return [(resolve_name(func), *rest) for func, *rest in self.calls]

    @property
    def names(self):
        return [name for name, *_ in self.seen]


def test_every_public_call_has_its_name():
    with Calls() as mode:
        x = rd.ones(2)
        x + 1
        x.sum()
        x.shape  # reading the property is the call
        x[0]
        rd.ops.aten.add(x, 1)
        rd.ops.aten.add.Tensor(x, 1)
    assert mode.names == [
        "torch.ones",
        "torch.Tensor.add",
        "torch.Tensor.sum",
        "torch.Tensor.shape.__get__",
        "torch.Tensor.__getitem__",
        "aten.add",
        "aten.add.Tensor",
    ]


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda x: x.unique(), "Tensor.unique"),
        (lambda x: rd.unique(x), "functional.unique"),
        (lambda x: x.nonzero(), "Tensor.nonzero"),
        (lambda x: rd.nonzero(x), "nonzero"),
        (lambda x: x.nelement(), "Tensor.numel"),
        (lambda x: x.ndimension(), "Tensor.dim"),
        (lambda x: x.data_ptr(), "Tensor.data_ptr"),
        (lambda x: x.const_data_ptr(), "Tensor.const_data_ptr"),
        (lambda x: 1 << x, "Tensor.__rlshift__"),
        (lambda x: x[0].__long__(), "Tensor.__long__"),
        (lambda x: rd.trace(x.view(2, 2)), "trace"),
        (lambda x: rd.sym_float(x[0]), "sym_float"),
        (lambda x: rd.result_type(x, x), "result_type"),
        (lambda x: rd.promote_types(x.dtype, x.dtype), "promote_types"),
        (lambda x: rd.nn.functional.conv1d(x.view(1, 1, 4), x.view(1, 1, 4)), "nn.functional.conv1d"),
        (lambda x: rd.nn.functional.softmax(x.double(), 0), "nn.functional.softmax"),
        (lambda x: rd.softmax(x.double(), 0), "softmax"),
        (lambda x: rd.broadcast_tensors(x, x), "functional.broadcast_tensors"),
    ],
)
def test_what_has_two_names_is_seen_by_the_one_that_was_called(call, name):
    x = rd.arange(4)
    with Calls() as mode:
        call(x)
    assert f"torch.{name}" in mode.names
    assert set(mode.names) - {f"torch.{name}"} <= {
        "torch.Tensor.__getitem__",
        "torch.Tensor.view",
        "torch.Tensor.double",
        "torch.Tensor.dtype.__get__",
    }


def test_functions_that_pytorch_has_in_python_hand_on_their_defaults_and_count_plain_tensors():
    x = rd.ones(2, 2)
    functional = rd.nn.functional
    with Calls() as mode:
        functional.softmax(x, 0)
        functional.gelu(x)
        functional.relu(input=x)
        rd.nn.functional.relu(rd.nn.Parameter(x))
        rd.einsum("ij->j", x)
        rd.meshgrid(x[0], indexing="ij")
        rd.tensor([1])
        x.dtype  # reading the property is the call
    plain = (rd.Tensor,)
    assert [
        (name, types, len(args), kwargs and {k: kwargs[k] for k in sorted(kwargs)[:2]})
        for name, types, args, kwargs in mode.seen
        if name != "torch.Tensor.__getitem__"
    ] == [
        ("torch.nn.functional.softmax", plain, 1, {"_stacklevel": 3, "dim": 0}),
        ("torch.nn.functional.gelu", (), 1, None),
        ("torch.nn.functional.relu", plain, 1, {"inplace": False}),
        ("torch.nn.functional.relu", (), 1, {"inplace": False}),
        ("torch.functional.einsum", plain, 2, {}),
        ("torch.functional.meshgrid", plain, 1, {"indexing": "ij"}),
        ("torch.tensor", (), 1, None),
        ("torch.Tensor.dtype.__get__", plain, 1, None),
    ]


@pytest.mark.parametrize(
    ("call", "name", "positions", "kwargs"),
    [
        (len, "__len__", 1, {}),
        (lambda x: 1.0 in x, "__contains__", 2, {}),
        (lambda x: x.__dlpack_device__(), "__dlpack_device__", 1, {}),
        (lambda x: 1 - x, "__rsub__", 2, {}),
        (lambda x: x // 2, "__floordiv__", 2, {}),
        (lambda x: x.norm(1, dim=0), "norm", 1, {"p": 1, "dim": 0, "keepdim": False, "dtype": None}),
        (lambda x: x.split(1), "split", 2, {"dim": 0}),
        (lambda x: x.unflatten(0, (2, 1)), "unflatten", 3, {}),
        (lambda x: x.register_post_accumulate_grad_hook(print), "register_post_accumulate_grad_hook", 2, {}),
        (
            lambda x: x.sum().backward(retain_graph=True),
            "backward",
            1,
            {"gradient": None, "retain_graph": True, "create_graph": False, "inputs": None},
        ),
        (lambda x: x.sin(), "sin", 1, None),
        (lambda x: -x, "neg", 1, None),
        (lambda x: x.dim(), "dim", 1, None),
        (lambda x: x[0, 0].item(), "item", 1, None),
        (lambda x: x.new(2), "new", 2, None),
    ],
)
def test_methods_are_seen_as_pytorchs_are(call, name, positions, kwargs):
    """Those that it has in Python with all defaults, and those in C++ that have nothing to read with their class."""
    x = rd.ones(2, 2, requires_grad=True)
    for _ in range(4):  # at first by the long way, then by the one made for such calls
        with Calls() as mode:
            call(x)
        seen = [(name, types, len(args), keywords) for name, types, args, keywords in mode.seen]
        assert (f"torch.Tensor.{name}", (rd.Tensor,), positions, kwargs) in seen


def test_initializers_hand_on_everything_by_keyword():
    init = rd.nn.init
    x = rd.empty(2, 2)
    with Calls() as mode:
        assert init.constant_(x, 3.0) is x
        init.kaiming_uniform_(x)
        init.normal_(rd.nn.Parameter(x), std=2)
    seen = [(*one, sorted(kwargs)) for *one, kwargs in mode.seen if one[0].startswith("torch.nn.init")]
    assert seen == [
        ("torch.nn.init.constant_", (rd.Tensor,), (), ["tensor", "val"]),
        ("torch.nn.init.kaiming_uniform_", (rd.Tensor,), (), ["a", "generator", "mode", "nonlinearity", "tensor"]),
        ("torch.nn.init.normal_", (), (), ["generator", "mean", "std", "tensor"]),
    ]
    assert {init.constant_, init.kaiming_uniform_, init.normal_, init.uniform_} <= {*overrides.get_testing_overrides()}
    assert resolve_name(rd.randperm) == "torch.randperm"


class Told:
    """No tensor, and asked nevertheless."""

    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append((func.__name__, types))
        return "told"


@pytest.mark.parametrize("index", [Told(), (Told(), 0), [Told()]])
def test_an_index_may_have_a_handler(index):
    Told.calls.clear()
    assert rd.ones(3, 3)[index] == "told"
    assert Told.calls == [("__getitem__", (Told,))]


def test_gradients_with_respect_to_what_has_a_handler():
    Told.calls.clear()
    x = rd.ones(2, requires_grad=True)
    assert rd.autograd.grad(x.sum(), Told()) == "told" and rd.autograd.backward(Told()) is not None
    assert Told.calls == [("grad", (rd.Tensor, Told)), ("backward", (Told,))]


def test_where_nobody_answers_the_error_is_a_plain_type_error():
    class Silent(rd.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    x = rd.ones(2).as_subclass(Silent)
    for call, name in ((rd.sum, "torch.sum"), (lambda x: rd.einsum("i->", x), "torch.functional.einsum")):
        with pytest.raises(TypeError, match=name) as caught:
            call(x)
        assert type(caught.value) is TypeError
    with pytest.raises(TypeError, match="unsupported operand"):
        x + x


def test_what_makes_a_tensor_of_any_data_asks_no_class():
    class Loud(rd.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise AssertionError(resolve_name(func))

    x = rd.ones(2).as_subclass(Loud)
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        assert type(rd.tensor(x)) is rd.Tensor
    assert rd.as_tensor(x) is x
    assert type(x.as_subclass(rd.Tensor)) is rd.Tensor


HANDLED = {}


class Total:
    """A number of equal values by their total: the pattern of PyTorch's "extending" page."""

    def __init__(self, count, total):
        self.count, self.total = count, total

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in HANDLED:
            return NotImplemented
        return HANDLED[func](*args, **(kwargs or {}))


def test_public_functions_are_keys_for_a_table_of_handlers():
    HANDLED[rd.mean] = lambda input: input.total / input.count
    try:
        assert rd.mean(Total(4, 2)) == 0.5
        with pytest.raises(TypeError, match="no implementation found|Multiple dispatch failed"):
            rd.mul(Total(4, 2), 3)
    finally:
        HANDLED.clear()


# Every function -------------------------------------------------------------------------------------------------------

OVERRIDABLE = overrides.get_overridable_functions()
FUNCTIONS = {one: found for one, found in OVERRIDABLE.items() if not isinstance(one, property)}
STAND_INS = overrides.get_testing_overrides()


class Seen:
    """Notes what its handler is given."""

    calls: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Seen.calls.append((func, types, args, kwargs))
        return -1


class SeenTensor(rd.Tensor):
    __torch_function__ = Seen.__torch_function__


# What Python's operators come to; the others arrive as themselves. So it is in PyTorch.
COMES_TO = {f"__{name}__": name for name in "abs add ge gt le lt mul ne neg sub".split()}
COMES_TO |= {"__mod__": "remainder", "__truediv__": "div", "__radd__": "add", "__rmul__": "mul", "__pos__": "positive"}
COMES_TO |= {"__div__": "div", "__idiv__": "div_", "__matmul__": "matmul", "ndimension": "dim", "nelement": "numel"}
COMES_TO |= {"__iadd__": "add_", "__isub__": "sub_", "__imul__": "mul_", "__itruediv__": "div_"}
COMES_TO |= {"__ifloordiv__": "floor_divide_", "__imod__": "remainder_"}
COMES_TO |= {f"__r{name}__": f"bitwise_{name}" for name in ("and", "or", "xor")}


def required(function):
    """(how many positions a call of this function must give, the names of other arguments that it must give)"""
    parameters = inspect.signature(STAND_INS[function]).parameters.values()
    needed = [one for one in parameters if one.default is one.empty]
    positions = sum(one.kind not in (one.KEYWORD_ONLY, one.VAR_KEYWORD) for one in needed)
    return positions, [one.name for one in needed if one.kind is one.KEYWORD_ONLY]


LISTED = [*itertools.chain(*OVERRIDABLE.values(), vars(rd.nn.init).values())]
UNLISTED = [one for one in STAND_INS if one not in LISTED]  # some private ones


@pytest.mark.parametrize("namespace", [*FUNCTIONS, "unlisted"])
def test_every_function_hands_its_arguments_to_a_handler_as_they_are(namespace):
    for function in FUNCTIONS.get(namespace, UNLISTED):
        if isinstance(function, type):  # PyTorch lists one, autocast, which asks nobody
            continue
        positions, names = required(function)
        kind = SeenTensor if namespace is rd.Tensor else Seen
        first = rd.ones(2).as_subclass(SeenTensor) if namespace is rd.Tensor else Seen()
        others = [first] if function.__name__ == "__matmul__" else range(max(positions, 1) - 1)
        args, kwargs = (first, *others), dict.fromkeys(names)
        assert STAND_INS[function](*args, **kwargs) == -1
        Seen.calls.clear()
        name = overrides.resolve_name(function)
        assert function(*args, **kwargs) == -1, name
        [(func, types, passed, keywords)] = Seen.calls
        method = COMES_TO.get(name.rpartition(".")[2]) if namespace is rd.Tensor else None
        assert func is (function if method is None else getattr(rd.Tensor, method)), (func, function)
        assert types == (kind,), name
        parameters = (
            inspect.signature(function).parameters if keywords else {}
        )  # functions in Python add their defaults
        defaults = {one: parameters[one].default for one in keywords or {} if one not in kwargs}
        assert (keywords or {}) == kwargs | defaults, name
        assert passed[0] is first and passed[1:] == args[1:], name


def test_every_property_arrives_as_its_getter():
    x = rd.ones(2, 2).as_subclass(SeenTensor)
    for owner, (getter,) in ((one, found) for one, found in OVERRIDABLE.items() if isinstance(one, property)):
        Seen.calls.clear()
        assert getter(x) == -1
        assert Seen.calls == [(getter, (SeenTensor,), (x,), None)] or Seen.calls[0][2][0] is x
        assert overrides.resolve_name(
            getter
        ) == f"torch.Tensor.{owner.fget.__name__.removeprefix('_get_')}.__get__" or (
            overrides.is_tensor_method_or_property(getter)
        )


def test_as_many_functions_as_in_pytorch_can_be_overridden_and_cannot():
    """Counts are those of PyTorch 2.13, which has four of the 500 twice; tests/parity/lists.py compares names."""
    count = {
        one.__name__.rpartition(".")[2]: len(found)
        for one, found in OVERRIDABLE.items()
        if not isinstance(one, property)
    }
    assert (count["redispatch"], count["functional"], count["Tensor"]) == (500, 114, 632)
    assert (count["linalg"], count["fft"], count["special"]) == (41, 20, 56)
    assert len(OVERRIDABLE[importlib.import_module("redispatch.functional")]) == 21
    assert len(overrides.get_ignored_functions()) == 253 and len(STAND_INS) == 1426


def test_names_for_products_with_sparse_matrices_are_those_of_products():
    assert rd.spmm is rd.dsmm is rd.mm and overrides.resolve_name(rd.spmm) == "torch.mm"
    assert rd.spmm(rd.ones(2, 3), rd.ones(3, 1)).tolist() == [[3.0], [3.0]]


def test_what_takes_no_tensor_is_left_to_modes():
    ignored = overrides.get_ignored_functions()
    assert {rd.ones, rd.arange, rd.manual_seed, rd.promote_types, rd.as_tensor, rd.Tensor.new_zeros} <= ignored
    assert not ignored & set(STAND_INS)
    with Calls() as mode:
        rd.ones(1)
    assert mode.names == ["torch.ones"]


def test_names_of_what_is_no_function_of_ours():
    assert overrides.resolve_name(len) is None and overrides.resolve_name([]) is None
    assert overrides.is_tensor_method_or_property(rd.Tensor.add)
    assert overrides.is_tensor_method_or_property(rd.Tensor.grad.__set__)
    assert not overrides.is_tensor_method_or_property(rd.add)
    assert not overrides.is_tensor_method_or_property(rd.Tensor.stride)  # which is listed as one that cannot be


def test_a_mode_is_told_the_class_of_a_propertys_owner_even_where_that_opted_out():
    parameter, grad = rd.nn.Parameter(rd.ones(1)), rd.ones(1)
    with SeenFunctions() as mode:
        assert parameter.shape == (1,)
        parameter.grad = grad
        parameter + 1
    assert [tuple(types) for _, types, *_ in mode.calls] == [
        (rd.nn.Parameter,),
        (rd.nn.Parameter,),
        (),
    ] and parameter.grad.item() == 1


# redispatch_function --------------------------------------------------------------------------------------------------


def scaled_mul(a, b):
    if overrides.has_torch_function((a, b)):
        return overrides.handle_torch_function(scaled_mul, (a, b), a, b)
    return a * b + 1


LOG = []


class Indented(rd.Tensor):
    """Runs the body of each function, and sees the calls in there."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        LOG.append(func.__name__)
        return overrides.redispatch_function(func, types, args, kwargs)


class IndentedMode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        LOG.append(func.__name__)
        with self:
            return overrides.redispatch_function(func, types, args, kwargs)


def test_a_handler_may_run_the_body_of_a_function_and_see_what_it_calls():
    LOG.clear()
    x, y = rd.tensor([3.0]).as_subclass(Indented), rd.tensor([4.0]).as_subclass(Indented)
    assert scaled_mul(x, y).tolist() == [13.0]
    assert LOG == ["scaled_mul", "mul"]  # whose result is a plain tensor
    LOG.clear()
    plain = rd.tensor([3.0]), rd.tensor([4.0])
    with IndentedMode():
        assert scaled_mul(*plain).item() == 13
    assert LOG == ["scaled_mul", "mul", "add", "item"]
    LOG.clear()
    assert rd.nn.functional.softsign(x).tolist() == [0.75]
    assert LOG[0] == "softsign" and len(LOG) > 1
    LOG.clear()
    assert (x.shape, LOG) == ((1,), ["__get__"])


def test_a_wrapped_function_is_overridable_and_skips_its_hop_too():
    @overrides.wrap_torch_function(lambda a: (a,))
    def twice(a):
        return a + a

    LOG.clear()
    assert twice(rd.tensor([3.0]).as_subclass(Indented)).tolist() == [6.0]
    assert LOG == ["twice", "add"]
    assert twice(Duck()) == ("twice", ["Duck"], 1, {})


# Handlers -------------------------------------------------------------------------------------------------------------


def test_a_plain_method_as_handler_is_told_to_become_a_classmethod():
    class Old:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return self, func

    old = Old()
    with pytest.warns(UserWarning, match="as a plain method is deprecated.*plain method of .*Old"):
        assert rd.add(old, 1) == (old, rd.add)
    with pytest.warns(DeprecationWarning, match="please define it as a classmethod"):
        assert rd.nn.functional.dropout(old)[0] is old


class Refusing:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


class RefusingMode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return NotImplemented


def test_where_nobody_answers_the_message_names_the_function_and_who_was_asked():
    with pytest.raises(TypeError) as caught:
        rd.add(Refusing(), 1)
    assert str(caught.value).startswith(
        "Multiple dispatch failed for 'torch.add'; all __torch_function__ handlers returned NotImplemented:\n\n"
        f"  - tensor subclass {Refusing}\n\nTo fix this, answer torch.add"
    )
    with pytest.raises(TypeError, match="no implementation found for 'torch.nn.functional.dropout' on types that impl"):
        rd.nn.functional.dropout(Refusing())
    with pytest.raises(TypeError, match=r"mode object <RefusingMode>\n  - tensor subclass"), RefusingMode():
        rd.add(Refusing(), 1)
    x = rd.ones(2).as_subclass(type("Shy", (rd.Tensor,), {"__torch_function__": Refusing.__torch_function__}))
    with pytest.raises(TypeError, match=r"failed for 'torch.Tensor.shape.__get__'"):
        x.shape  # reading the property is the call
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+: 'Shy' and 'int'"):
        x + 1


def test_a_handler_may_show_what_it_was_given_without_an_end():
    class Printing(rd.Tensor):
        shown: list = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            Printing.shown.append((func.__name__, repr(args[0])))
            return super().__torch_function__(func, types, args, kwargs)

    x = rd.ones(1).as_subclass(Printing)
    assert repr(x) == "Printing([1.])" and Printing.shown == [("__repr__", "Printing([1.])")]
    x + 1
    assert Printing.shown[-2:] == [("__repr__", "Printing([1.])"), ("add", "Printing([1.])")]


def test_the_repr_of_a_mode_that_calls_functions_does_not_ask_the_mode():
    class Counting(RefusingMode):
        def __repr__(self):
            return f"Counting({rd.ones(2).sum().item()})"

    with pytest.raises(TypeError, match=r"mode object Counting\(2.0\)"), Counting():
        rd.ones(1)

    class Dispatching(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return NotImplemented

        def __repr__(self):
            return f"Dispatching({rd.ones(2).sum().item()})"

    with pytest.raises(TypeError, match=r"mode object Dispatching\(2.0\)"), Dispatching():
        rd.ones(1)

    class Broken(RefusingMode):
        def __repr__(self):
            raise ValueError

    with pytest.raises(TypeError, match=r"mode object <.*Broken, whose repr raised ValueError>"), Broken():
        rd.ones(1)


# Devices --------------------------------------------------------------------------------------------------------------


def test_a_device_in_a_with_statement_is_where_new_tensors_are_made():
    with rd.device("meta"):
        assert rd.ones(2).device.type == rd.tensor([1.0]).device.type == rd.rand(2).device.type == "meta"
        assert rd.ones(2, device="cpu").device.type == "cpu"
        assert rd.zeros_like(rd.ones(2, device="cpu")).device.type == "cpu"
        assert rd.get_default_device().type == "meta"
        with rd.device("cpu"):
            assert rd.full((2,), 1.0).device.type == "cpu"
    assert rd.ones(2).device.type == "cpu"
    rd.set_default_device("meta")
    try:
        assert rd.arange(3).device.type == "meta"
        with rd.device("cpu"):
            assert rd.arange(3).device.type == "cpu"
    finally:
        rd.set_default_device(None)
    assert rd.arange(3).device.type == "cpu"


def test_function_modes_are_pushed_and_popped_by_hand():
    mode = Calls()
    overrides._push_mode(mode)
    assert overrides._get_current_function_mode() is mode and overrides._get_current_function_mode_stack() == [mode]
    with overrides._pop_mode_temporarily() as off:
        rd.ones(1)
        assert off is mode and overrides._get_current_function_mode() is None
    with rd._C.DisableTorchFunction():
        rd.ones(1)
        with overrides._enable_torch_function():
            rd.ones(1)
    assert overrides._pop_mode() is mode and mode.names == ["torch.ones"]
    with pytest.raises(RuntimeError, match="trying to pop from empty mode stack"):
        overrides._pop_mode()


class Foreign:
    """A tensor of another library: its default `__torch_function__` runs the function, and so hands the call back."""

    asked = 0

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.asked += 1
        return func(*args, **(kwargs or {}))


def test_a_handler_that_hands_the_call_back_is_not_asked_for_ever():
    x, foreign = rd.ones(2), Foreign()
    for call in (lambda: x + foreign, lambda: rd.add(x, foreign), lambda: rd.cat([x, foreign]), lambda: x < foreign):
        Foreign.asked = 0
        with pytest.raises(TypeError):
            call()
        assert Foreign.asked == 1
    assert (x == foreign) is False and (x != foreign) is True


def test_tensor_is_not_asked_for_ever_by_another_librarys_functions():
    def foreign(one):  # as a function of that library does, which knows nothing of our regions
        result = type(one).__torch_function__(foreign, (type(one),), (one,), None)
        if result is NotImplemented:
            raise TypeError("no implementation found")
        return result

    with pytest.raises(TypeError, match="no implementation found"):
        foreign(rd.ones(2))
    assert rd.Tensor.__torch_function__(rd.add, (rd.Tensor,), (rd.ones(2), 1)).tolist() == [2, 2]


def test_a_function_is_named_by_its_public_place():
    for name in (
        "linalg.qr",
        "div",
        "nn.functional.gelu",
        "special.expit",
        "fft.rfft",
        "nn.functional.local_response_norm",
    ):
        function = rd
        for word in name.split("."):
            function = getattr(function, word)
        assert resolve_name(function) == f"torch.{name}"
    assert not hasattr(rd.nn.functional, "div") and not hasattr(rd.nn.init, "qr")


def test_functions_that_are_not_here_ask_all_the_same():
    class Quantized:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return resolve_name(func)

    assert rd.quantize_per_tensor(Quantized(), 0.1, 0, rd.qint8) == "torch.quantize_per_tensor"
    assert rd.quantized_max_pool1d(Quantized(), 2) == "torch.quantized_max_pool1d"
    assert rd.smm(rd.ones(1), [Quantized()]) == "torch.smm"
    assert rd.distributed.all_reduce(Quantized()) == "torch.distributed.distributed_c10d.all_reduce"
    with pytest.raises(
        NotImplementedError, match="quantized_max_pool1d.. is not here: quantized tensors have no layers"
    ):
        rd.quantized_max_pool1d(rd.ones(1), 2)
    listed = rd.overrides.get_testing_overrides()
    assert {rd.q_scale, rd._native_batch_norm_legit, rd.Tensor._cdata.__get__} <= listed.keys()
    assert rd.sparse_coo_tensor in rd.overrides.get_ignored_functions()


def test_properties_are_named_as_those_written_in_cpp():
    assert rd.Tensor.shape.__qualname__ == "TensorBase.shape" and rd.Tensor._grad.__qualname__ == "TensorBase._grad"
    x = rd.ones(2, requires_grad=True)
    assert x._post_accumulate_grad_hooks is None and x._cdata == id(x)
    x.register_post_accumulate_grad_hook(print)
    assert list(x._post_accumulate_grad_hooks.values()) == [print]
