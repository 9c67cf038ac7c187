"""Modes that find mistakes: cross checks, dtypes, schemas, NaN."""

import math

import numpy as np
import pytest
from expecttest import assert_expected_inline

import redispatch as rd
from redispatch._subclasses import schema_check_mode
from redispatch.library import Library, custom_op
from redispatch.modes.cross_check import AccuracyError, CrossCheckMode, relative_error
from redispatch.modes.dtype_check import DtypeCheckMode, UpcastError
from redispatch.modes.fake_tensor import FakeTensorMode
from redispatch.modes.logging_mode import LoggingMode
from redispatch.modes.nan_detector import NanDetectorMode, NonFiniteError
from redispatch.modes.schema_check import Aliasing, Mutation, SchemaCheckMode
from redispatch.nn import functional as F
from redispatch.subclasses.two_tensor import TwoTensor
from redispatch.testing import assert_close

# CrossCheckMode -------------------------------------------------------------------------------------------------------

# Which errors are found, against float64 and against another device, and what is left out.

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


# DtypeCheckMode: which upcasts are silent, which are asked for, and the policies --------------------------------------

F32, F64, F16 = rd.ones(2), rd.ones(2, dtype=rd.float64), rd.ones(2, dtype=rd.float16)
C64 = rd.ones(2, dtype=rd.complex64)


def found(function, *args, **options):
    with DtypeCheckMode(*args, action="record", **options) as check:
        function()
    return [(finding.func, finding.dtype) for finding in check.found]


@pytest.mark.parametrize(
    "function, expected",
    [
        (lambda: F32 * rd.from_numpy(np.ones(2)), [(aten.mul.Tensor, rd.float64)]),
        (lambda: (F32 + F64).exp().sum(), [(aten.add.Tensor, rd.float64)]),  # the first, and nothing after it
        (lambda: C64 + F64, [(aten.add.Tensor, rd.complex128)]),
        (lambda: rd.cat([F32, F64]), [(aten.cat.default, rd.float64)]),
        (lambda: F64 * 2, []),
        (lambda: F32 * 2.5, []),
        (lambda: F32 * rd.tensor(2.0, dtype=rd.float64), []),  # a tensor without dimensions does not promote
        (lambda: F32.double(), []),
        (lambda: F32.sum(dtype=rd.float64), []),
        (lambda: rd.zeros(2, dtype=rd.float64), []),
        (lambda: F64.clone().add_(F32), []),  # it was that before
        (lambda: rd.add(F32, F32, out=rd.empty(2, dtype=rd.float64)), []),
        (lambda: F16 + F32, []),
        (lambda: rd.arange(2) + F64, []),
    ],
)
def test_promotion(function, expected):
    assert found(function) == expected


def test_other_dtypes_may_be_forbidden():
    assert found(lambda: F16 + F32, [rd.float32]) == [(aten.add.Tensor, rd.float32)]
    assert found(lambda: F16.float() + 1, [rd.float32]) == []


def test_the_policy_any_tells_of_what_was_asked_for():
    assert found(lambda: (F32.double(), rd.ones(2, dtype=rd.float64)), policy="any") == [
        (aten._to_copy.default, rd.float64),
        (aten.ones.default, rd.float64),
    ]


def test_operators_may_be_allowed():
    assert found(lambda: (F32 + F64, F32 * F64), allow=[aten.add, aten.mul.Tensor]) == []
    assert len(found(lambda: (F32 + F64, F32 * F64), allow=[aten.add])) == 1


def test_meta_tensors_are_enough():
    assert len(found(lambda: F32.to("meta") + F64.to("meta"))) == 1


def test_what_it_says():
    with pytest.warns(UserWarning) as said, DtypeCheckMode():
        F32 * F64
    assert said[0].filename == __file__  # the line that multiplies, and none of the library's
    assert_expected_inline(
        str(said[0].message),
        "aten.mul.Tensor(f32[2], f64[2]) made float64 of float32, and nobody asked for it; say so (`.to(dtype)`), or "
        "convert the wider input first",
    )
    with (
        pytest.raises(UpcastError, match="made float64 which is forbidden"),
        DtypeCheckMode(policy="any", action="raise"),
    ):
        rd.ones(2, dtype=rd.float64)


def test_the_backward_pass_is_checked():
    x = rd.ones(2, requires_grad=True)
    y = (x.double() * F64).sum()
    assert found(lambda: y.backward()) == []


# SchemaCheckMode: a broken promise of a schema is an error at the call ------------------------------------------------


def called(schema, kernel, *args):
    """The result of an operator of this schema and kernel under the mode, and the mode."""
    with Library("t", "FRAGMENT") as lib:
        lib.define(schema)
        lib.impl("f", kernel, "CPU")
        with SchemaCheckMode() as mode:
            return rd.ops.t.f(*args), mode


@pytest.mark.parametrize(
    ("schema", "kernel", "text"),
    [
        ("f(Tensor x) -> Tensor", lambda x: x.add_(1).clone(), "Argument x is not defined as mutable but was mutated"),
        ("f(Tensor x) -> Tensor", lambda x: (x.t_(), x.clone())[1], "Argument x is not defined as mutable"),
        ("f(Tensor[] x) -> Tensor", lambda x: x[0].add_(1).clone(), "Argument x is not defined as mutable"),
        ("f(Tensor x) -> Tensor", lambda x: x.view(-1), "Argument x is not defined to alias output but was aliasing"),
        ("f(Tensor x) -> Tensor", lambda x: x, "Argument x is not defined to alias output but was aliasing"),
        ("f(Tensor(a) x) -> Tensor(a)", lambda x: x, "not allowed to directly return inputs"),
        ("f(Tensor x) -> (Tensor, Tensor)", lambda x: (x.clone(),) * 2, "Outputs 0 and 1 alias unexpectedly"),
        ("f(Tensor self) -> Tensor", lambda x: x.add_(1).clone(), "Argument input is not defined as mutable"),
    ],
)
def test_a_broken_promise_raises(schema, kernel, text):
    x = rd.arange(6.0).view(2, 3)
    with pytest.raises(RuntimeError, match=text):
        called(schema, kernel, [x] if "[]" in schema else x)


def test_what_the_schema_says_is_recorded():
    x = rd.ones(2, 3)
    with SchemaCheckMode() as mode:
        x.add_(1).view(-1)
    assert mode.ops == ["aten::add_", "aten::view"]
    assert mode.mutated == [Mutation("aten::add_", "input")]
    assert mode.aliasing == [Aliasing("aten::add_", "input", "output_0"), Aliasing("aten::view", "input", "output_0")]
    mode.reset_cache()
    assert mode.ops == mode.mutated == mode.aliasing == []


def test_a_write_that_is_declared_and_does_not_happen_is_reported():
    """PyTorch's mode says nothing, and nobody learns that the schema costs a copy for nothing."""
    with pytest.warns(UserWarning, match="t::f: argument x is declared as written and was not"):
        _, mode = called("f(Tensor(a!) x) -> Tensor", lambda x: x.clone(), rd.ones(2))
    assert mode.unmutated == [Mutation("t::f", "x")]


def test_not_a_number_is_no_change():
    with SchemaCheckMode() as mode:
        rd.full((2,), float("nan")).sin()
    assert mode.mutated == [] and "aten::sin" in mode.ops


def test_training_holds_every_promise():
    layer = rd.nn.Sequential(rd.nn.Linear(3, 4), rd.nn.ReLU(inplace=True), rd.nn.BatchNorm1d(4))
    with SchemaCheckMode() as mode:
        layer(rd.ones(2, 3)).sum().backward()
    assert Mutation("aten::relu_", "input") in mode.mutated or "aten::relu_" in mode.ops


def test_wrappers_are_looked_into():
    with SchemaCheckMode() as mode:
        TwoTensor(rd.ones(2), rd.ones(2)).mul_(2)
    assert Mutation("aten::mul_", "input") in mode.mutated


def test_the_module_has_pytorchs_name():
    assert schema_check_mode.SchemaCheckMode is SchemaCheckMode


def test_views_of_one_memory_may_be_copied_into_one_another():
    x = rd.arange(6)
    with SchemaCheckMode():
        assert x[:2].copy_(x[4:]).tolist() == [4, 5]
        assert [len(part) for part in rd.unsafe_split_with_sizes(x, [2, 4])] == [2, 4]


# NanDetectorMode: who is blamed for a NaN, who is not, and what is said -----------------------------------------------

ZERO, ONE = rd.zeros(2), rd.ones(2)


def blamed(function, **options):
    """The operators that are found, in their order."""
    with NanDetectorMode(action="record", **options) as detector:
        function()
    return [finding.func for finding in detector.found]


def test_the_first_to_make_a_nan_is_named_with_what_it_was_given():
    with pytest.raises(NonFiniteError) as caught, NanDetectorMode():
        ((rd.tensor([0.0, 3.0]) / rd.tensor([0.0, 2.0])) + 1).exp()
    assert caught.value.func is aten.div.Tensor
    assert_expected_inline(
        str(caught.value),
        """\
aten.div.Tensor(f32[2], f32[2]) made 1 NaN in 2 elements, of finite inputs:
  float32[2], from 0 to 3
  float32[2], from 0 to 2""",
    )


@pytest.mark.parametrize(
    "function, ops",
    [
        (lambda: ZERO / ZERO, [aten.div.Tensor]),
        (lambda: ONE / ZERO + 1, [aten.div.Tensor]),  # what passes it on is not to blame
        (lambda: (-ONE).log(), [aten.log.default]),
        (lambda: ONE.clone().div_(0), [aten.div_.Scalar]),
        (lambda: rd.div(ONE, 0, out=rd.full((2,), math.nan)), [aten.div.out]),
        (lambda: rd.full((2,), math.nan).copy_(rd.tensor([1e300] * 2, dtype=rd.float64)), [aten.copy_.default]),
        (lambda: rd.tensor([1e5, 1.0]).half(), [aten._to_copy.default]),
        (lambda: rd.complex(ZERO, ONE).reciprocal() / 0, [aten.div.Tensor]),
        (lambda: TwoTensor(ONE, ONE) / TwoTensor(ONE, ZERO), [aten.div.Tensor]),
        (lambda: ONE + ONE, []),
        (lambda: rd.arange(3) // 1, []),
        (lambda: rd.tensor([math.inf, math.nan]) * 2, []),  # they came from outside
        (lambda: ONE.masked_fill(ONE > 0, -math.inf).softmax(0), []),  # so was it asked for
        (lambda: rd.full((2,), math.inf), []),
        (lambda: rd.empty(64).new_empty(64), []),
        (lambda: rd.empty(2, device="meta") / 0, []),
        (lambda: rd.empty(0) / 0, []),
    ],
)
def test_who_is_to_blame(function, ops):
    assert [op.overloadpacket for op in blamed(function)] == [op.overloadpacket for op in ops]


def test_infinities_count_if_they_are_meant_to():
    assert blamed(lambda: ONE / ZERO, infinities=False) == []
    assert blamed(lambda: ZERO / ZERO, infinities=False) == [aten.div.Tensor]
    assert blamed(lambda: rd.tensor([math.inf]) - rd.tensor([math.inf]), infinities=False) == [aten.sub.Tensor]


def test_a_nan_of_the_backward_pass_is_found_there():
    x = rd.zeros(1, requires_grad=True)
    with NanDetectorMode():
        y = x.sqrt().sum()
    with pytest.raises(NonFiniteError, match="made 1 inf in 1 elements"), NanDetectorMode():
        y.backward()


def test_in_place_findings_show_what_was_there_before():
    with NanDetectorMode(action="record") as detector:
        rd.tensor([4.0, 5.0]).div_(0)
    assert detector.found[0].inputs == ["float32[2], from 4 to 5"]


def test_it_warns_where_it_is_asked_to():
    with pytest.warns(UserWarning, match=r"aten.log.default\(f32\[2\]\) made 2 NaN"), NanDetectorMode(action="warn"):
        (-ONE).log()


def test_modes_around_it_do_not_see_its_work():
    with LoggingMode() as log, NanDetectorMode():
        ONE.exp()
    assert log.lines == ["aten.exp.default(f32[2]) -> f32[2]"]


def test_fake_tensors_are_let_through():
    with FakeTensorMode(), NanDetectorMode() as detector:
        assert (rd.ones(2) / 0).shape == (2,)
    assert detector.found == []
