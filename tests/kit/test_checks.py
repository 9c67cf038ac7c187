"""The kits for users' own modes and subclasses, and their report."""

import pytest

import redispatch as rd
from redispatch.modes import LoggingMode
from redispatch.overrides import TorchFunctionMode
from redispatch.subclasses import DiagTensor, TwoTensor, WrapperTensor
from redispatch.testing import OpInfo, ReportError, check_mode, check_subclass
from redispatch.testing.op_db.common import unary
from redispatch.testing.report import Broken, Nothing, Recorder, Report
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import TorchDispatchMode

# check_mode says what a mode changes that it should leave alone -------------------------------------------------------

aten = rd.ops.aten


class Meddler(TorchDispatchMode):
    """Changes what one operator does."""

    def __init__(self, op, instead):
        super().__init__()
        self.op, self.instead = op, instead

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return self.instead(func, *args) if func is self.op else func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    "op, instead, check, problem",
    [
        (aten.mul.Tensor, lambda func, x, y: func(x, x), "values", "the result is not what it should be"),
        (aten.mul.Tensor, lambda func, x, y: x.mul_(y), "aliasing", "the result is the argument itself"),
        (aten.mul_.Tensor, lambda func, x, y: func(x, x), "inplace", "the argument, after the call in place,"),
        (aten.mul.out, lambda func, x, y: x * y, "out", "after the call"),
        (aten.t.default, lambda func, x: func(x).clone(), "aliasing", "does not share its memory"),
        (aten.cos.default, lambda func, x: func(x) + 1, "autograd", "a gradient is not what it should be"),
    ],
)
def test_a_mode_that_changes_something_is_found(op, instead, check, problem):
    name = {aten.t.default: "t", aten.cos.default: "sin"}.get(op, "mul.Tensor")
    report = check_mode(Meddler(op, instead), ops=[name, "add.Tensor"])
    found = [one for one in report.failures if one.check == check]
    assert found and problem in found[0].problem and "aten::add.Tensor" in report.passed


def test_a_mode_that_keeps_errors_to_itself_is_found():
    class Silent(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

        def __exit__(self, *error):
            super().__exit__(*error)
            return True

    report = check_mode(Silent(), checks=["attributes"])
    assert [one.op for one in report.failures] == ["(exception)"]


def test_a_function_mode_is_checked_as_well():
    class Above(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return result + 1 if getattr(func, "__name__", "") == "exp" else result

    report = check_mode(Above(), ops=["exp", "log"], checks=["values"])
    assert {one.op for one in report.failures} == {"aten::exp"} and report.passed == ["aten::log"]


def test_the_setting_and_the_state_are_what_they_were():
    before = rd.config.specialize
    with pytest.raises(TypeError, match="expected an instance of a mode, such as LoggingMode"):
        check_mode(LoggingMode)
    check_mode(LoggingMode(), ops=["add.Tensor"]).check()
    assert rd.config.specialize == before


# check_subclass says of a class that is broken how it is broken, and of a sound one that all is well ------------------


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
        ("t", "aliasing"),
        ("t", "inplace"),
    }
    said = {(one.op, one.check): one.problem for one in report.failures}
    assert said["aten::t", "aliasing"].startswith("the result does not share its memory")
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
        not_supported={"*/functionalization": why, "t/aliasing,inplace": why, "t/vmap": why},
    )
    assert not report.failures and report.not_supported.keys() == {"aten::t"}
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


# A report prints, shows itself in a notebook, and knows what it was told ----------------------------------------------

CHECKS = ("values", "pickle")


def recorder(**stated):
    return Recorder(Report("Thing", CHECKS), {key.replace("__", "/"): why for key, why in stated.items()}, CHECKS)


def holds():
    return True


def raises(error):
    def trial():
        raise error

    return trial


def filled():
    made = recorder(sort="it has no order", mm__pickle="too large")
    made.run("aten::add.Tensor", "values", holds, lambda: "add(f32[2])")
    made.run("aten::mm", "values", raises(Broken("off by <one>")), lambda: "mm(f32[2, 2])")
    made.run("aten::mm", "pickle", raises(OSError("disk full")), lambda: "mm(f32[2, 2])")
    made.run("aten::sort.stable", "values", raises(TypeError("no order")), lambda: "sort(f32[2])")
    made.run("aten::exp", "values", raises(Nothing()), lambda: "")
    made.find_stale(whole=False)
    return made.report


def test_what_was_found_is_told_apart():
    report = filled()
    assert report.passed == ["aten::add.Tensor"] and [one.op for one in report.failures] == ["aten::mm"]
    assert report.not_supported == {"aten::mm": "too large", "aten::sort.stable": "it has no order"}
    assert report.counts() == [("values", 1, 1, 1), ("pickle", 0, 0, 1)] and not report.ok
    assert [one.check for one in report.of("mm")] == ["values", "pickle"]


def test_it_prints_as_a_table():
    assert str(filled()).splitlines() == [
        "Thing: 3 operators in 0.0 s, 1 failures",
        "",
        "check   holds  fails  not supported",
        "values      1      1              1",
        "pickle      0      0              1",
        "",
        "fails",
        "  aten::mm  values  mm(f32[2, 2])",
        "      off by <one>",
        "",
        "not supported",
        "  mm",
        "      too large",
        "  sort.stable",
        "      it has no order",
    ]


def test_a_notebook_shows_what_does_not_hold_with_texts_escaped():
    text = filled()._repr_html_()
    assert "off by &lt;one&gt;" in text and "<one>" not in text
    assert text.count("<tr>") == 4 and "aten::sort.stable" in text and "aten::add" not in text


def test_statements_that_are_not_true_are_found_as_far_as_one_can_tell():
    made = recorder(exp="slow", **{"lin*": "hard", "gone": "who knows"})
    made.run("aten::exp", "values", holds, lambda: "")
    made.find_stale(whole=False)
    assert made.report.stale == {"exp": "slow"}
    made.find_stale(whole=True)
    assert made.report.stale.keys() == {"exp", "lin*", "gone"}
    assert made.report.stale["gone"] == "no operator is called so (who knows)"


def test_tags_patterns_and_checks_name_operators():
    made = Recorder(Report("Thing", CHECKS), {"#nondeterministic_seeded/values": "by key"}, CHECKS)
    made.run("aten::rand_like", "values", raises(Broken("other numbers")), lambda: "")
    made.run("aten::exp", "values", raises(Broken("other numbers")), lambda: "")
    assert [one.outcome for one in made.report.findings] == ["not supported", "fails"]


def judged(stated, *trials):
    made = Recorder(Report("Thing", CHECKS), stated, CHECKS)
    for op, error in trials:
        made.run(op, "values", holds if error is None else raises(error), lambda: "")
    made.find_stale(whole=True)
    return made.report


def test_families_and_what_writes_name_operators():
    no = TypeError("not here")
    report = judged(
        {"@sorting": "it has no order", "#writes": "it is constant", "#view": "it has no memory"},
        ("aten::sort", no), ("aten::zero_", no), ("aten::t", no), ("aten::exp", no),
    )  # fmt: skip
    assert report.not_supported == {
        "aten::sort": "it has no order",
        "aten::zero_": "it is constant",
        "aten::t": "it has no memory",
    }
    assert [one.op for one in report.failures] == ["aten::exp"] and not report.stale


def test_words_share_a_reason_and_are_judged_one_by_one():
    report = judged({"exp (two words) log/values": "why not"}, ("aten::exp", Broken("3")), ("(two words)", Broken("3")))
    assert len(report.not_supported) == 2 and report.stale == {"log/values": "no operator is called so (why not)"}


def test_a_refusal_is_covered_by_the_operator_that_refused():
    error = NotImplementedError("aten.sort.default: Thing has no order")
    assert judged({"@sorting": "no order"}, ("aten::msort", error), ("aten::unique_dim", error)).ok


def test_a_pattern_under_which_more_works_than_not_is_not_true():
    no = TypeError("not here")
    report = judged({"@sorting": "no order"}, ("aten::sort", None), ("aten::topk", no), ("aten::mode", None))
    assert report.stale == {"@sorting": "mode, sort work (no order)"}
    assert judged({"@sorting": "no order"}, ("aten::sort", None), ("aten::topk", no)).ok
    assert judged({"@sorting": "no order"}, ("aten::exp", None)).stale == {"@sorting": "excuses nothing (no order)"}


def test_a_form_that_is_called_is_judged_by_its_own_name():
    made = Recorder(Report("Thing", CHECKS), {"#writes": "it is constant"}, CHECKS)
    made.run("aten::exp", "values", raises(TypeError("no")), lambda: "", form="aten::exp_")
    assert not made.report.failures
