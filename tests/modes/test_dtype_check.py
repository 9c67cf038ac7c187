"""DtypeCheckMode: which upcasts are silent, which are asked for, and the policies."""

import numpy as np
import pytest
from expecttest import assert_expected_inline

import redispatch as rd
from redispatch.modes.dtype_check import DtypeCheckMode, UpcastError

aten = rd.ops.aten
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
