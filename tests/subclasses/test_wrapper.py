"""WrapperTensor: a base class from which wrappers inherit their manners."""

import copy

import pytest

import redispatch as rd
from redispatch.subclasses import TwoTensor
from redispatch.subclasses.wrapper import WrapperTensor, unwrapped

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
