"""What all subclasses share: the wrapper that they are made of, defaults of handlers, their common promises."""

import copy
from importlib import import_module
from pathlib import Path

import pytest

import redispatch as rd
from redispatch import subclasses
from redispatch.subclasses import TwoTensor
from redispatch.subclasses.wrapper import WrapperTensor, unwrapped
from redispatch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing

from ..seeing import Seen, SeenFunctions

# WrapperTensor: a base class from which wrappers inherit their manners ------------------------------------------------

aten = rd.ops.aten


class Tagged(WrapperTensor):
    kept = ("tag",)


def test_results_inherit_what_is_kept():
    x = Tagged(rd.ones(2, 3), tag="a")
    y = (x + rd.ones(3)).exp().t()
    assert type(y) is Tagged and y.tag == "a" and y.held.shape == (3, 2)
    assert copy.deepcopy(x).tag == rd.nn.Parameter(x).tag == x.clone().tag == "a"
    assert repr(Tagged(rd.ones(1), tag="b")) == "Tagged(tensor([1.]), tag='b')"


def test_it_is_trained_as_a_plain_one():
    w = Tagged(rd.tensor([1.0, 2.0], requires_grad=True), tag="w")
    (w * w).sum().backward()
    assert type(w.grad) is Tagged and w.grad.held.tolist() == [2.0, 4.0] and not w.held.requires_grad
    rd.optim.SGD([w], lr=0.5).step()
    assert w.held.tolist() == [0.0, 0.0] and w.tag == "w"


def test_in_place_gives_the_object_and_a_view_shares_it():
    x = Tagged(rd.ones(2, 2), tag="x")
    assert x.add_(1) is x and x[0]._base is x
    x[0].zero_()
    assert x.held.tolist() == [[0.0, 0.0], [2.0, 2.0]]


def test_a_rule_is_of_its_class_and_those_below():
    class Loud(Tagged):
        pass

    class Louder(Loud):
        pass

    @Loud.implements(aten.mul.Tensor)
    def mul(func, x, y):
        if not isinstance(x, Loud):
            return NotImplemented
        return type(x)(func(*unwrapped((x, y))), tag=f"{x.tag}!")

    assert (Louder(rd.ones(1), tag="x") * 2).tag == "x"  # made before the rule was entered
    assert (Loud(rd.ones(1), tag="x") * 2).tag == "x!" and (Tagged(rd.ones(1), tag="x") * 2).tag == "x"
    assert (rd.ones(1) * Loud(rd.ones(1), tag="x")).tag == "x"


def test_what_one_stands_for_and_how_results_are_made_can_be_said_otherwise():
    class Scaled(WrapperTensor):
        kept = ("scale",)

        def unwrap(self):
            return self.held * self.scale

        @classmethod
        def wrap(cls, result, attributes):
            return result

        @classmethod
        def combine(cls, sources):
            return {"scale": max(x.scale for x in sources)}

    assert (Scaled(rd.ones(2), scale=3) + Scaled(rd.ones(2), scale=2)).tolist() == [5.0, 5.0]


def test_attributes_that_are_missing_or_have_a_name_of_every_tensor_are_refused():
    with pytest.raises(TypeError, match=r"Tagged: expected the attributes \['tag'\] by keyword, but got \[\]"):
        Tagged(rd.ones(1))
    with pytest.raises(TypeError, match="Wrong: every tensor has log, and formulas of derivatives use it"):

        class Wrong(WrapperTensor):
            kept = ("log",)


def test_a_wrapper_is_known_as_a_class_above_its_own_alone():
    class Other(rd.Tensor):
        pass

    x = TwoTensor(rd.ones(2), rd.zeros(2))
    assert type(x.as_subclass(rd.Tensor)) is TwoTensor
    with pytest.raises(RuntimeError, match="associated to a python object of type TwoTensor"):
        x.as_subclass(Other)


def test_wrappers_made_in_inference_mode_are_inference_tensors():
    with rd.inference_mode():
        x = TwoTensor(rd.ones(2), rd.zeros(2))
        y = x + 1
    assert x.is_inference() and y.is_inference()
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        x._version  # reading the property is the call


# The room's front door ------------------------------------------------------------------------------------------------

# Every file is listed, found by name, and says what it teaches and how serious it is.


def test_every_file_is_listed():
    files = {path.stem for path in Path(subclasses.__file__).parent.glob("*.py")} - {"__init__", "schemas"}
    assert {f".{file}" for file in files} == set(subclasses.PLACES.values())
    assert set(subclasses.PLACES) == set(subclasses.__all__)
    assert set(subclasses.__all__) <= set(dir(subclasses))
    with pytest.raises(AttributeError, match="has no attribute 'Missing'"):
        _ = subclasses.Missing


@pytest.mark.parametrize("name", subclasses.__all__)
def test_each_is_found_and_says_what_it_teaches(name):
    kind = getattr(subclasses, name)
    assert kind.__name__ == name and kind.__doc__
    lesson = " ".join(import_module(kind.__module__).__doc__.split())
    for heading in ("What it teaches:", "How serious it is:", "Read next:"):
        assert heading in lesson


@pytest.mark.parametrize("name", [name for name in subclasses.__all__ if name != "DiagTensor"])
def test_no_attribute_hides_a_method_that_formulas_may_call(name):
    kind = getattr(subclasses, name)
    fields = {field for base in kind.__mro__ for field in base.__dict__.get("__annotations__", {})}
    assert not [field for field in fields if base_has(field)]


def base_has(field):
    return hasattr(rd.Tensor, field) and not field.startswith("_")


# Subclasses that override nothing: what Tensor's own `__torch_function__` does for them -------------------------------


class Plain(rd.Tensor):
    """A class that overrides nothing."""


def often(call, times=4):
    """The results of a call: by the slow path, while code is made, and by the lane."""
    return [call() for _ in range(times)]


def test_the_default_keeps_the_class_of_results():
    a, b = rd.ones(3).as_subclass(Plain), rd.ones(3)
    a.mark = 1
    for call in (lambda: a + b, lambda: rd.add(b, a), lambda: a.add(b), lambda: a - 1, lambda: 2 - a):
        for result in often(call):
            assert type(result) is Plain and result.grad_fn is None and result.__dict__ == {}
    for first, second in often(lambda: rd.split(a, 2)):
        assert type(first) is type(second) is Plain
    for values, indices in often(lambda: rd.max(a, 0)):
        assert type(values) is type(indices) is Plain
    for result in often(lambda: rd.add(a, b, out=rd.empty(3))):
        assert type(result) is Plain
    assert all(x.add_(1) is x for x in (a, a, a)) and a._version == 3
    assert often(lambda: rd.equal(a, a)) == [True] * 4


def test_the_default_leaves_alone_what_somebody_else_holds():
    held = []

    class Holds(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            held.append(func(*args, **(kwargs or {})))
            return held[-1]

    a = rd.ones(3).as_subclass(Plain)
    with Holds():
        results = often(lambda: a + 1)
    sums = [one for one in held if type(one) is rd.Tensor]
    assert len(sums) == 4 and all(type(result) is Plain for result in results)
    assert all(one.data_ptr() == result.data_ptr() for one, result in zip(sums, results, strict=True))


def test_the_default_records_one_more_node():
    w = rd.ones(3, requires_grad=True).as_subclass(Plain)
    for result in often(lambda: w * 2):
        assert result.grad_fn.name() == "AliasBackward0" and type(result._base) is rd.Tensor
        assert result._base.grad_fn.name() == "MulBackward0"


def test_the_default_of_a_subclass_of_a_subclass_and_of_unrelated_classes():
    class Below(Plain):
        pass

    class Other(rd.Tensor):
        pass

    a, below, other = (rd.ones(2).as_subclass(kind) for kind in (Plain, Below, Other))
    assert all(type(result) is Below for result in (*often(lambda: a + below), *often(lambda: below + a)))
    for _ in range(4):
        with pytest.raises(TypeError, match="unsupported operand type"):
            other + a
        with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch.add'"):
            rd.add(other, a)


def test_the_default_of_a_class_with_slots_of_its_own():
    class Slotted(rd.Tensor):
        __slots__ = ("extra",)

    a = rd.ones(2).as_subclass(Slotted)
    assert all(type(result) is Slotted and not hasattr(result, "extra") for result in often(lambda: a + 1))


def test_as_subclass_leaves_the_tensor_that_a_handler_returned_as_it_was():
    kept = rd.ones(3)

    class Same(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return kept

    with Same():
        made = kept.as_subclass(Plain)
    assert type(kept) is rd.Tensor and type(made) is Plain


def test_a_class_that_overrides_later_is_asked():
    class Late(rd.Tensor):
        pass

    a = rd.ones(2).as_subclass(Late)
    assert all(type(result) is Late for result in often(lambda: a + 1))
    Late.__torch_function__ = classmethod(lambda cls, func, types, args=(), kwargs=None: func.__name__)
    assert often(lambda: a + 1) == ["add"] * 4 and often(lambda: rd.add(a, 1)) == ["add"] * 4
    del Late.__torch_function__
    assert all(type(result) is Late for result in often(lambda: rd.add(a, 1)))
    Late.__torch_dispatch__ = classmethod(lambda cls, func, types, args=(), kwargs=None: rd.zeros(2))
    results = often(lambda: rd.add(rd.ones(2).as_subclass(Late), 1))
    assert all(type(result) is Late and "Python" in str(rd._C._dispatch_keys(result)) for result in results)


def test_a_function_mode_is_asked_before_the_default():
    a = rd.ones(2).as_subclass(Plain)
    often(lambda: rd.add(a, a))
    with SeenFunctions() as mode:
        assert type(rd.add(a, a)) is Plain
    assert mode.calls[0][:2] == (rd.add, (Plain,))


def test_pythons_operators_are_tensors_own_methods():
    class Named(rd.Tensor):
        def add(self, other):
            return "add"

        def __sub__(self, other):
            return "sub"

    a = rd.ones(2).as_subclass(Named)
    assert type(a + 1) is type(1 + a) is type(1 - a) is Named
    assert a.add(1) == "add" and a - 1 == "sub"


def test_modes_are_told_the_class_whose_data_is_asked_for_and_of_nothing_else_its_own():
    x = rd.ones(2).as_subclass(Plain)
    with Seen() as mode:
        x.detach()
        plain = rd.ones(2).data
        x.data.add_(1)
    names = [(func.__name__, types) for func, types, *_ in mode.calls]
    assert names == [
        ("detach.default", ()),
        ("ones.default", ()),
        ("detach.default", (rd.Tensor,)),
        ("detach.default", (Plain,)),
        ("add_.Tensor", ()),
    ]
    assert type(plain) is rd.Tensor and x.tolist() == [2, 2]


def test_a_mode_that_leaves_data_to_others_lets_it_be():
    class Leaves(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    x = rd.ones(2)
    with Leaves(), pytest.raises(TypeError, match="Multiple dispatch failed"):
        x.data  # nobody answers, as for any other operator


def test_modes_are_not_asked_about_what_touches_no_memory():
    x, y = rd.ones(2), rd.ones(2, requires_grad=True) * 2
    with Seen() as mode:
        assert type(x.as_subclass(Plain)) is Plain
        x.detach_()
        y.detach_()
    assert mode.calls == [] and not y.requires_grad and y.grad_fn is None and y._version == 0


def test_the_first_gradient_is_made_in_the_layout_of_the_result():
    x = rd.ones((), requires_grad=True)
    with Seen() as mode:
        (x * 2).backward()
    options = {"pin_memory": False, "memory_format": rd.preserve_format}
    assert (rd.ops.aten.ones_like.default, (), options) in [(func, types, more) for func, types, _, more in mode.calls]


def test_a_wrapper_set_to_another_has_its_shape():
    class Holder(rd.Tensor):
        @staticmethod
        def __new__(cls, inner):
            made = rd.Tensor._make_wrapper_subclass(cls, inner.shape, strides=inner.stride(), dtype=inner.dtype)
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            result = func(*[one.inner if isinstance(one, cls) else one for one in args], **(kwargs or {}))
            return return_and_correct_aliasing(func, args, kwargs, cls(result))

    x, other = Holder(rd.zeros(2)), Holder(rd.ones(3, 1))
    assert x.set_(other) is x and x.shape == x.inner.shape == (3, 1) and x.inner.tolist() == [[1], [1], [1]]
