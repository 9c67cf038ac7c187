"""NanDetectorMode: who is blamed for a NaN, who is not, and what is said."""

import math

import pytest
from expecttest import assert_expected_inline

import redispatch as rd
from redispatch.modes.fake_tensor import FakeTensorMode
from redispatch.modes.logging_mode import LoggingMode
from redispatch.modes.nan_detector import NanDetectorMode, NonFiniteError
from redispatch.subclasses.two_tensor import TwoTensor

aten = rd.ops.aten
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
