"""Factories and tensors made of Python data: values, dtypes, shared memory, and PyTorch's errors."""

import warnings

import numpy as np
import pytest

import redispatch as rd

from ..seeing import seen


def test_a_meta_factory_allocates_nothing():
    for made in (
        rd.ones(2, 3, device="meta"),
        rd.arange(3, device="meta"),
        rd.eye(2, device="meta"),
        rd.randn(2, device="meta"),
    ):
        assert made.is_meta and made.data_ptr() == 0


@pytest.mark.parametrize(("value", "dtype"), [(True, rd.bool), (1, rd.int64), (1.0, rd.float32), (1j, rd.complex64)])
def test_full_takes_its_dtype_from_the_value(value, dtype):
    assert rd.full((2,), value).dtype is dtype


def test_like_keeps_the_order_of_dimensions():
    x = rd.zeros(2, 3).t()
    assert rd.ones_like(x).stride() == (1, 3)
    assert rd.zeros_like(x, memory_format=rd.contiguous_format).stride() == (2, 1)
    assert rd.full_like(x, 2, dtype=rd.int64).tolist() == [[2, 2]] * 3
    assert rd.zeros(1).expand(3).numel() == rd.empty_like(rd.zeros(1).expand(3)).numel()


@pytest.mark.parametrize(
    ("args", "dtype"),
    [
        ((3,), "int64"),
        ((1, 3), "int64"),
        ((1, 10, 3), "int64"),
        ((5, 0, -2), "int64"),
        ((2.5,), "float32"),
        ((0, 1, 0.25), "float32"),
    ],
)
def test_arange_counts_as_numpy_does(args, dtype):
    result = rd.arange(*args)
    assert result.dtype.name == dtype
    np.testing.assert_allclose(result.numpy(), np.arange(*args))


def test_linspace_meets_both_ends():
    np.testing.assert_allclose(rd.linspace(0, 1, 7).numpy(), np.linspace(0, 1, 7), rtol=1e-6)
    assert rd.linspace(-3, 7, 11)[-1].item() == 7
    assert rd.linspace(0, 10, 5, dtype=rd.int64).tolist() == [0, 2, 5, 7, 10]
    assert rd.linspace(0, 1, 0).tolist() == [] and rd.linspace(2, 5, 1).tolist() == [2]


def test_out_is_resized_and_filled():
    out = rd.empty(0)
    assert rd.ones(2, 2, out=out) is out and out.tolist() == [[1, 1], [1, 1]]
    assert rd.arange(3, out=rd.empty(0)).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("data", "dtype", "values"),
    [
        (1, "int64", 1),
        ([1, 2.5], "float32", [1, 2.5]),
        ([True, 2], "int64", [1, 2]),
        ([[], []], "float32", [[], []]),
        (range(3), "int64", [0, 1, 2]),
        ([np.float64(1)], "float64", [1]),
        (np.int32(1), "int32", 1),
        ([1 + 2j], "complex64", [1 + 2j]),
        ([np.ones(2), np.zeros(2)], "float64", [[1, 1], [0, 0]]),
    ],
)
def test_tensor_infers_the_dtype(data, dtype, values):
    result = rd.tensor(data)
    assert result.dtype.name == dtype and result.tolist() == values


def test_tensor_copies_and_from_numpy_shares():
    array = np.arange(6.0).reshape(2, 3)
    copied, shared = rd.tensor(array), rd.from_numpy(array)
    array[0, 0] = 9
    assert copied[0, 0].item() == 0 and shared[0, 0].item() == 9
    shared.numpy()[1, 2] = -1
    assert array[1, 2] == -1


@pytest.mark.parametrize(
    "view", [lambda a: a.T, lambda a: a[1:, ::2], lambda a: a[:, :0], lambda a: np.broadcast_to(a[:1], a.shape)]
)
def test_from_numpy_takes_any_positive_strides(view):
    array = view(np.arange(24.0).reshape(4, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a broadcast array is read-only
        result = rd.from_numpy(array)
    np.testing.assert_array_equal(result.numpy(), array)
    np.testing.assert_array_equal((result + 1).numpy(), array + 1)


def test_dlpack_and_buffers_share_memory():
    array = np.arange(3.0)
    shared = rd.from_dlpack(array)
    array[0] = 5
    assert shared.tolist() == [5, 1, 2]
    assert rd.frombuffer(bytearray(b"\x01\x02\x03"), dtype=rd.uint8, offset=1).tolist() == [2, 3]
    x = rd.ones(2)
    assert rd.as_tensor(x) is x and rd.asarray(x) is x and rd.asarray(x, copy=True) is not x


def test_a_list_of_tensors_without_dimensions_is_read_by_value():
    assert rd.tensor([rd.tensor(1), rd.tensor(2.5)]).tolist() == [1, 2.5]


def test_copying_a_tensor_warns():
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        assert rd.tensor(rd.ones(2)).tolist() == [1, 1]


def test_the_legacy_constructor_reads_sizes_or_data():
    assert rd.Tensor(2, 3).shape == (2, 3) and rd.Tensor().shape == (0,)
    assert rd.Tensor([1, 2]).dtype is rd.float32
    x = rd.ones(2, dtype=rd.float64)
    assert rd.Tensor(x).data_ptr() == x.data_ptr()


def test_modes_see_what_pytorchs_modes_see():
    assert seen(lambda: rd.tensor([1.0])) == "lift_fresh"
    assert seen(lambda: rd.from_numpy(np.ones(2))) == "lift_fresh"
    assert seen(lambda: rd.Tensor(2, 3)) == "empty.memory_format"
    assert seen(lambda: rd.arange(1, 3)) == "arange.start"
    assert seen(lambda: rd.ones(2)) == "ones"


@pytest.mark.parametrize("value", [-1.5, -0.5, 300, 300.7, float("nan")])
def test_numbers_that_do_not_fit_are_refused_wherever_they_are_written(value):
    x = rd.zeros(3, dtype=rd.uint8)
    writes = [
        lambda: x.__setitem__(0, value),
        lambda: x.__setitem__(rd.tensor([1]), value),
        lambda: x.fill_(value),
        lambda: x.masked_fill_(x == 0, value),
        lambda: x.index_fill_(0, rd.tensor([0]), value),
        lambda: rd.full((2,), value, dtype=rd.uint8),
        lambda: rd.tensor([1, value], dtype=rd.uint8),
    ]
    for write in writes:
        with pytest.raises(RuntimeError, match="value cannot be converted to type uint8(_t)? without overflow"):
            write()
    assert rd.tensor([-1], dtype=rd.uint8).index_fill_(0, rd.tensor([0]), -2).tolist() == [254]


def test_deterministic_programs_find_no_values_of_before_in_new_memory():
    """NaN, True or the largest integer, unless `utils.deterministic.fill_uninitialized_memory` is off."""
    from redispatch.utils import deterministic

    makers = [
        lambda dtype: rd.empty(2, 3, dtype=dtype),
        lambda dtype: rd.empty(2, 3, out=rd.empty(0, dtype=dtype)),
        lambda dtype: rd.empty_like(rd.zeros(2, 3, dtype=dtype)),
        lambda dtype: rd.empty_strided((2, 2), (1, 5), dtype=dtype),
        lambda dtype: rd.empty_permuted((2, 3), (1, 0), dtype=dtype),
        lambda dtype: rd.zeros(1, dtype=dtype).new_empty(3),
        lambda dtype: rd.zeros(2, dtype=dtype).resize_(5)[2:],
    ]
    rd.use_deterministic_algorithms(True)
    try:
        for make in makers:
            for dtype in (rd.float32, rd.bfloat16, rd.complex64):
                assert make(dtype).isnan().all()
            assert make(rd.bool).all() and (make(rd.int16) == 2**15 - 1).all()
        assert rd.view_as_real(rd.empty(3, dtype=rd.complex64))[:, 1].tolist() == [0, 0, 0]
        assert rd.zeros(2).resize_(3)[:2].tolist() == [0, 0] and rd.ones(2).tolist() == [1, 1]
        deterministic.fill_uninitialized_memory = False
        x = rd.zeros(2).resize_(2000)
        assert not deterministic.fill_uninitialized_memory and not x.isnan().all()
    finally:
        deterministic.fill_uninitialized_memory = True
        rd.use_deterministic_algorithms(False)


def test_a_range_that_is_asked_for_again_is_new_memory_and_tells_numbers_that_are_equal():
    def once():
        calls = [
            *[rd.arange(3), rd.arange(3.0), rd.arange(True), rd.arange(3, dtype=rd.int8), rd.linspace(-1, 0, 2)],
            *[rd.linspace(-1, -0.0, 2), rd.arange(2000)[:3], rd.arange(0)],
        ]
        found = [(x.dtype, x.tolist(), x.signbit().tolist()) for x in calls]
        for x in calls:
            x.add_(x + 1)
        return found

    first = once()
    assert once() == first == once() and first[4] != first[5]
    try:
        rd.set_default_dtype(rd.float64)
        assert rd.arange(3.0).dtype is rd.float64 is rd.linspace(-1, 0, 2).dtype
    finally:
        rd.set_default_dtype(rd.float32)


def test_bernoulli_writes_into_whole_numbers():
    out = rd.empty(0, dtype=rd.int32)
    assert rd.bernoulli(rd.tensor([0.0, 1.0, 1.0]), out=out) is out and out.tolist() == [0, 1, 1]
