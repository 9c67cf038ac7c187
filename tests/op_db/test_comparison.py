"""assert_close says where and by how much; make_tensor makes what it was asked for."""

import numpy as np
import pytest
from expecttest import assert_expected_inline

import redispatch as rd
from redispatch.testing import assert_close, make_tensor


def complaint(actual, expected, **options):
    with pytest.raises(AssertionError) as raised:
        assert_close(actual, expected, **options)
    return "\n".join(line.rstrip() for line in str(raised.value).splitlines())


def test_values_that_differ_are_named_with_their_index():
    assert_expected_inline(
        complaint(rd.tensor([[1.0, 2.0], [3.0, 4.0]]), rd.tensor([[1.0, 2.0], [3.5, 4.0]])),
        """\
Tensor-likes are not close!

Mismatched elements: 1 / 4 (25.0%)
Greatest absolute difference: 0.5 at index (1, 0) (up to 1e-05 allowed): 3.0 instead of 3.5
Greatest relative difference: 0.142857 at index (1, 0) (up to 1.3e-06 allowed): 3.0 instead of 3.5""",
    )


def test_whole_numbers_must_be_equal():
    assert_expected_inline(
        complaint(rd.tensor([1, 2]), rd.tensor([1, 3])),
        """\
Tensor-likes are not equal!

Mismatched elements: 1 / 2 (50.0%)
Greatest absolute difference: 1 at index (1,): 2 instead of 3
Greatest relative difference: 0.333333 at index (1,): 2 instead of 3""",
    )


def test_attributes_come_before_values():
    x = rd.zeros(2, 3)
    assert complaint(x, rd.ones(3)) == "The values for attribute 'shape' do not match: (2, 3) != (3,)."
    assert complaint(x, x.double()) == (
        "The values for attribute 'dtype' do not match: torch.float32 != torch.float64."
    )
    assert_close(x, x.double(), check_dtype=False)
    assert complaint(x, x.t().contiguous().t(), check_stride=True) == (
        "The values for attribute 'stride()' do not match: (3, 1) != (1, 2)."
    )


def test_in_sequences_and_mappings_the_item_is_named():
    text = complaint({"a": [rd.ones(1), 1]}, {"a": [rd.ones(1), 2]})
    assert_expected_inline(
        text,
        """\
Scalars are not equal!
The failure occurred for item ['a'][1]

Expected 2 but got 1.
Absolute difference: 1""",
    )
    assert complaint([1], [1, 2]) == "The length of the sequences mismatch: 1 != 2"


@pytest.mark.parametrize(
    "dtype, near, far", [("float32", 1e-6, 1e-4), ("float64", 1e-8, 1e-6), ("bfloat16", 0.01, 0.1)]
)
def test_the_tolerance_is_that_of_the_dtype(dtype, near, far):
    dtype = getattr(rd, dtype)
    one = rd.ones(1, dtype=rd.float64)
    assert_close((one + near).to(dtype), one.to(dtype))
    complaint((one + far).to(dtype), one.to(dtype))


def test_nans_are_equal_only_where_asked():
    nan = rd.tensor([float("nan")])
    complaint(nan, nan)
    assert_close(nan, nan, equal_nan=True)
    assert_close(rd.tensor([float("inf")]), rd.tensor([float("inf")]))


def test_what_cannot_be_compared_is_an_error():
    with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type"):
        assert_close(rd.ones(1), "1")
    with pytest.raises(ValueError, match="rtol and atol must both be specified"):
        assert_close(rd.ones(1), rd.ones(1), rtol=0.1)


def test_made_tensors_have_the_range_and_the_layout_asked_for():
    x = make_tensor(20, 30, dtype=rd.float32, low=-1, high=2, generator=0)
    assert x.min() >= -1 and x.max() < 2 and x.is_contiguous()
    assert make_tensor((3, 4), dtype=rd.int64, noncontiguous=True).stride() == (8, 2)
    assert make_tensor(2, dtype=rd.float64, requires_grad=True).requires_grad
    assert make_tensor(1, 2, 3, 4, dtype=rd.float32, memory_format=rd.channels_last).stride() == (24, 1, 8, 2)
    assert bool((make_tensor(50, dtype=rd.int64, low=0, high=2, exclude_zero=True, generator=0) == 1).all())
    with pytest.raises(ValueError, match="`low` must be less than `high`"):
        make_tensor(2, dtype=rd.float32, low=1, high=1)


def test_unsigned_values_are_close_whichever_is_greater():
    low, high = rd.tensor([5, 6], dtype=rd.uint8), rd.tensor([6, 5], dtype=rd.uint8)
    assert_close(low, high, rtol=0, atol=1)
    with pytest.raises(AssertionError, match="Greatest absolute difference: 2"):
        assert_close(low, high + 1, rtol=0, atol=1)


def test_arrays_are_compared_as_tensors():
    assert_close(np.ones(2), np.ones(2) + 1e-9)
    with pytest.raises(AssertionError, match="Tensor-likes are not close"):
        assert_close(np.ones(2), np.zeros(2))
    for other in (rd.ones(2), [1.0, 1.0], np.array(["a", "b"])):
        with pytest.raises(TypeError, match="No comparison pair was able to handle inputs of type"):
            assert_close(np.ones(2), other)
