"""CrossCheckMode: which errors are found, against float64 and against another device, and what is left out."""

import pytest
from expecttest import assert_expected_inline

import redispatch as rd
from redispatch.library import custom_op
from redispatch.modes.cross_check import AccuracyError, CrossCheckMode, relative_error
from redispatch.modes.logging_mode import LoggingMode
from redispatch.nn import functional as F
from redispatch.subclasses.two_tensor import TwoTensor
from redispatch.testing import assert_close

aten = rd.ops.aten


@pytest.fixture
def sloppy():
    """An exponential of three terms: wrong from the second digit on, in float32 only."""

    @custom_op("cross_check_test::sloppy", mutates_args=())
    def op(x: rd.Tensor) -> rd.Tensor:
        return x.exp() if x.dtype is rd.float64 else 1 + x + x * x / 2

    return op


def test_an_operator_that_is_off_is_found(sloppy):
    with pytest.raises(
        AccuracyError, match=r"cross_check_test.sloppy.default\(f32\[2\]\) is off by 8.0e-02 of its"
    ) as e:
        with CrossCheckMode():
            sloppy(rd.tensor([0.0, 1.0]))
    assert e.value.func is rd.ops.cross_check_test.sloppy.default
    assert 0.08 < e.value.error < 0.0804 and e.value.tolerance == 16 * rd.finfo(rd.float32).eps


def test_the_tolerance_decides(sloppy):
    for tolerance, found in ((0.1, 0), (0.01, 1)):
        with CrossCheckMode(tolerance=tolerance, action="record") as check:
            sloppy(rd.tensor([0.0, 1.0]))
        assert len(check.found) == found


def test_an_overflow_that_the_dtype_alone_is_to_blame_for_is_found():
    with CrossCheckMode(action="record") as check:
        rd.tensor([100.0]).exp()
        rd.tensor([1e5]).to(rd.float16)
    assert [(e.func, e.error) for e in check.found] == [
        (aten.exp.default, float("inf")),
        (aten._to_copy.default, float("inf")),
    ]


def test_a_training_step_is_as_close_as_float32_can_be():
    rd.manual_seed(0)
    model = rd.nn.Sequential(rd.nn.Linear(5, 7), rd.nn.BatchNorm1d(7), rd.nn.Tanh(), rd.nn.Linear(7, 3))
    x, target = rd.randn(8, 5), rd.arange(8) % 3
    with CrossCheckMode() as check:
        F.cross_entropy(model(x), target).backward()
    assert {"aten.addmm.default", "aten.tanh.default", "aten.native_batch_norm_backward.default"} <= set(check.errors)
    assert max(check.errors.values()) < 16 * rd.finfo(rd.float32).eps and not any(
        "witness" in reason for _, reason in check.skipped
    )


def test_the_program_is_as_without_it():
    norm, plain = rd.nn.BatchNorm1d(3), rd.nn.BatchNorm1d(3)
    x = rd.rand(8, 3)
    with CrossCheckMode():
        y = norm(x)
        y = y.detach().mul_(2)
        rd.add(y, 1, out=y)
    assert_close(y, plain(x) * 2 + 1)
    assert_close(norm.running_mean, plain.running_mean)


def test_what_is_left_out_is_counted_with_the_reason():
    x = rd.ones(2)
    with CrossCheckMode() as check:
        x.t(), x.double().exp(), rd.rand(2), rd.empty(2), TwoTensor(x, x).exp(), x.to("meta").exp()
    reasons = {reason for _, reason in check.skipped}
    assert reasons >= {"a view", "random", "uninitialised", "a subclass", "no data", "no floating input to widen"}


def test_an_operator_that_the_witness_cannot_run_is_counted():
    @custom_op("cross_check_test::only32", mutates_args=())
    def only32(x: rd.Tensor) -> rd.Tensor:
        if x.dtype is not rd.float32:
            raise NotImplementedError("float32 only")
        return x + 1

    x = rd.ones(2)
    with CrossCheckMode() as check:
        assert only32(x).tolist() == [2, 2]
    assert check.skipped == {("cross_check_test.only32.default", "NotImplementedError of the witness"): 1}


def test_another_device_is_a_witness_too():
    with CrossCheckMode(device="cpu", wide=False, tolerance=0.0) as check:
        (rd.ones(3) + 1).exp().sum()
    assert list(check.errors.values()) == [0.0] * 4 and check.calls.total() == 4
    with pytest.raises(ValueError, match="wide=False runs each operator twice in the same way; pass a device"):
        CrossCheckMode(wide=False)


def test_errors_are_measured_by_the_largest_element():
    f64 = {"dtype": rd.float64}
    assert relative_error(rd.tensor([1.0, 100.0]), rd.tensor([2.0, 100.0], **f64)) == 0.01
    assert relative_error(rd.tensor([1.0, float("nan")]), rd.tensor([1.0, float("nan")], **f64)) == 0
    assert relative_error(rd.tensor([float("inf")]), rd.tensor([1.0], **f64)) == float("inf")
    assert relative_error(rd.tensor([1.0]), rd.tensor([0.0], **f64)) == float("inf")
    assert relative_error(rd.ones(2), rd.ones(3, **f64)) == float("inf")
    assert relative_error(rd.tensor([3 + 4j]), rd.tensor([3 + 5j], dtype=rd.complex128)) == pytest.approx(34**-0.5)
    assert relative_error(rd.ones(0), rd.ones(0, **f64)) == 0


def test_modes_around_it_do_not_see_the_witness():
    with LoggingMode() as log, CrossCheckMode():
        rd.ones(2).exp()
    assert log.lines[1:] == ["aten.exp.default(f32[2]) -> f32[2]"]


def test_the_table():
    with CrossCheckMode() as check:
        x = rd.tensor([0.5, 2.0])
        x * 2 + x
    assert_expected_inline(
        str(check),
        """\
operator         calls  error
-----------------------------
aten.add.Tensor      1  0e+00
aten.mul.Tensor      1  0e+00
-----------------------------
largest              2  0e+00""",
    )
