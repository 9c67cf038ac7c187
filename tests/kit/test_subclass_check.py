"""check_subclass says of a class that is broken how it is broken, and of a sound one that all is well."""

import pytest

import redispatch as rd
from redispatch.subclasses import DiagTensor, TwoTensor, WrapperTensor
from redispatch.testing import OpInfo, ReportError, check_subclass
from redispatch.testing.op_db.common import unary
from redispatch.utils import _pytree as pytree

aten = rd.ops.aten


class Handmade(rd.Tensor):
    """A wrapper as one writes it the first time: without aliasing, and without a way to be taken apart."""

    @staticmethod
    def __new__(cls, inner):
        return rd.Tensor._make_wrapper_subclass(cls, inner.shape, strides=inner.stride(), dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args, kwargs = pytree.tree_map_only(cls, lambda x: x.inner, (args, kwargs or {}))
        return pytree.tree_map_only(rd.Tensor, cls, func(*args, **kwargs))


def handmade(**options):
    return check_subclass(Handmade, Handmade, plain=lambda x: x.inner, **options)


def broken(report):
    return {(one.op.removeprefix("aten::"), one.check) for one in report.failures}


def test_a_first_attempt_is_told_what_it_lacks():
    report = handmade(ops=["mul.Tensor", "t"])
    assert broken(report) - {("t", "functionalization")} == {
        ("mul.Tensor", "pickle"),
        ("t", "aliasing"),
        ("t", "inplace"),
        ("t", "pickle"),
    }
    said = {(one.op, one.check): one.problem for one in report.failures}
    assert said["aten::t", "aliasing"].startswith("the result does not share its memory")
    assert "give it __tensor_flatten__" in said["aten::mul.Tensor", "pickle"]
    with pytest.raises(ReportError, match="Handmade: 2 operators .* failures"):
        report.check()


@pytest.mark.parametrize(
    "rule, check, problem",
    [
        (lambda func, x, y: type(x)(x.held * 2), "values", "the result is not what it should be"),
        (lambda func, x, y: x.held * y.held, "values", "the result is a plain Tensor"),
        (lambda func, x, y: type(x)((x.held * y.held).float()), "values", "says that it is float32"),
        (lambda func, x, y: x.mul_(y), "values", "an argument, after the call, is not what it should be"),
        (lambda func, x, y: type(x)(x.held * y.held), "mixed", "has no attribute"),
    ],
)
def test_a_rule_that_is_wrong_is_found(rule, check, problem):
    class Wrong(WrapperTensor):
        pass

    Wrong.implements(aten.mul.Tensor)(rule)
    wrap = lambda x: Wrong(x)
    report = check_subclass(Wrong, wrap, ops=["mul.Tensor", "add.Tensor"], checks=["values", "mixed", "vmap"])
    assert {one.op for one in report.failures} == {"aten::mul.Tensor"} and report.passed == ["aten::add.Tensor"]
    found = next(one for one in report.failures if one.check == check)
    assert problem in found.problem and found.call.startswith("mul.Tensor(f64[2, 3]")


def test_keyword_arguments_that_are_dropped_are_missed():
    class Deaf(WrapperTensor):
        pass

    Deaf.implements(aten.add.Tensor)(lambda func, x, y, **dropped: type(x)(func(x.held, y.held)))
    report = check_subclass(Deaf, lambda x: Deaf(x), ops=["add.Tensor"], checks=["values"])
    assert "alpha=" in report.failures[0].call


def test_attributes_that_get_lost_are_named():
    class Forgetful(WrapperTensor):
        def __init__(self, inner, note=""):
            super().__init__(inner)
            self.note = note

        @staticmethod
        def __new__(cls, inner, note=""):
            return WrapperTensor.__new__(cls, inner)

    report = check_subclass(
        Forgetful, lambda x: Forgetful(x, "kept"), ops=["add.Tensor"], attributes=["note"], checks=["attributes"]
    )
    assert not report.findings  # those of the class itself are left out with chosen operators
    report = check_subclass(Forgetful, lambda x: Forgetful(x, "kept"), attributes=["note"], checks=["attributes"])
    lost = {one.op: one.problem for one in report.failures}
    assert lost["(clone)"] == "clone loses note" and lost["(Parameter)"] == "Parameter loses note"


def test_a_gradient_that_is_wrong_is_found():
    class Halved(rd.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad / 2

    class Above(TwoTensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            with rd._C.DisableTorchFunctionSubclass():
                return func(*[Halved.apply(x) if isinstance(x, rd.Tensor) else x for x in args], **(kwargs or {}))

    report = check_subclass(Above, lambda x: Above(x, x.clone()), ops=["sin"], checks=["values", "autograd"])
    assert broken(report) == {("sin", "autograd")}


def test_no_gradient_is_expected_from_where_make_lets_no_value_in():
    report = check_subclass(
        DiagTensor,
        lambda x: DiagTensor(x.diagonal()) if x.dim() == 2 and x.shape[0] == x.shape[1] else x,
        plain=DiagTensor.to_dense, closed=False, strides=False, ops=["linalg_inv_ex"], checks=["autograd"],
    )  # fmt: skip
    assert report.check().passed == ["aten::linalg_inv_ex"]


def test_what_is_stated_is_no_failure_and_what_is_stated_and_works_is_told():
    why = "nobody needs it"
    report = handmade(
        ops=["mul.Tensor", "t"],
        not_supported={"*/pickle,functionalization": why, "t/aliasing,inplace": why, "t/vmap": why},
    )
    assert not report.failures and report.not_supported.keys() == {"aten::mul.Tensor", "aten::t"}
    assert report.stale == {"t/vmap": why} and not report.ok
    with pytest.raises(ReportError, match="stated as not supported, and yet it works"):
        report.check()


def test_a_statement_covers_refusals_and_not_what_is_wrong_without_a_word():
    class Wrong(WrapperTensor):
        pass

    Wrong.implements(aten.mul.Tensor)(lambda func, x, y: type(x)(x.held))
    loud = NotImplementedError("not yet")

    @Wrong.implements(aten.mm.default)
    def mm(func, x, y):
        raise loud

    report = check_subclass(Wrong, lambda x: Wrong(x), ops=["mul.Tensor", "mm"], not_supported={"*": "a toy"})
    assert "aten::mm" in report.not_supported and {one.op for one in report.failures} == {"aten::mul.Tensor"}
    assert next(one for one in report.of("mm")).error is loud


def test_operators_of_ones_own_are_checked_by_their_entry():
    @rd.library.elementwise("kit::tripled(Tensor x) -> Tensor")
    def tripled(x):
        return 3 * x

    info = OpInfo("kit::tripled", unary())
    assert check_subclass(TwoTensor, lambda x: TwoTensor(x, x.clone()), ops=[info]).check().passed == ["kit::tripled"]


def test_progress_is_drawn_where_it_is_asked_for(capsys):
    handmade(ops=["mm", "t"], checks=["values"], progress=True)
    assert "2/2" in capsys.readouterr().out
    handmade(ops=["mm"], checks=["values"])
    assert not capsys.readouterr().out
