"""check_mode says what a mode changes that it should leave alone."""

import pytest

import redispatch as rd
from redispatch.modes import LoggingMode
from redispatch.overrides import TorchFunctionMode
from redispatch.testing import check_mode
from redispatch.utils._python_dispatch import TorchDispatchMode

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
