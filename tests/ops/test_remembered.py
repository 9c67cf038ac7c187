"""Operators remember how a call goes by what its arguments look like: what differs must not be taken for the same."""

import numpy as np
import pytest

import redispatch as rd
from redispatch.kernels.ops import copying, geometry


def grid(*shape):
    return rd.arange(float(np.prod(shape))).view(*shape).clone()


def twice(call, *arguments):
    """The results for different arguments, each worked out when everything is remembered already."""
    for argument in arguments:
        call(argument)
    return [call(argument) for argument in arguments]


def test_a_view_begins_where_its_own_base_does():
    x = grid(4, 4)
    parts = x[1:], x[2:]
    assert [part[0, 1:3].tolist() for part in parts] == [[5, 6], [9, 10]]
    assert [part.select(0, 1).storage_offset() for part in parts] == [8, 12]


def test_a_view_shares_memory_version_and_base():
    x = grid(2, 3)
    for view in twice(lambda t: t.t(), x, x):
        assert view._base is x and view.untyped_storage()._cdata == x.untyped_storage()._cdata
        view.add_(1)
    assert x._version == 2 and x[0, 0].item() == 2


def test_views_of_an_inference_tensor_are_inference_tensors():
    with rd.inference_mode():
        inference = grid(2, 2)
    normal = grid(2, 2)
    assert [view.is_inference() for view in twice(lambda t: t.t(), normal, inference)] == [False, True]


def test_a_shape_that_does_not_fit_is_refused_each_time():
    x = grid(2, 3)
    for _ in range(3):
        with pytest.raises(RuntimeError, match=r"shape '\[4, 2\]' is invalid for input of size 6"):
            x.view(4, 2)
        with pytest.raises(RuntimeError, match="view size is not compatible"):
            x.t().view(6)


def test_a_window_onto_a_storage_that_has_grown_is_checked_anew():
    x = grid(4)
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        x.as_strided((8,), (1,))
    x.resize_(8)
    assert x.as_strided((8,), (1,)).shape == (8,)


def test_what_is_remembered_is_bounded():
    x = grid(geometry.WINDOWS + 10)
    for i in range(geometry.WINDOWS + 10):
        assert x[i].storage_offset() == i
    assert x[3].item() == 3


@pytest.mark.parametrize(
    "call",
    [lambda t: t.sum(0), lambda t: t.mean(1), lambda t: t.max(0).values, lambda t: t.argmax(1), lambda t: t.softmax(0)],
)
def test_tensors_of_one_shape_but_other_strides_or_dtype_are_not_taken_for_each_other(call):
    a = grid(3, 3)
    b, c = (a * 10).t(), a.double()
    numbers = [call(rd.tensor(t.tolist(), dtype=t.dtype)).tolist() for t in (a, b, c)]
    assert [r.tolist() for r in twice(call, a, b, c)] == numbers
    assert [r.dtype is t.dtype or r.dtype is rd.int64 for r, t in zip(twice(call, a, c), (a, c), strict=True)]


def test_dimensions_given_as_none_as_a_list_and_kept_are_told_apart():
    x = grid(2, 3)
    calls = [
        (lambda: x.sum([]), 15.0),
        (lambda: x.sum(None, True), [[15.0]]),
        (lambda: x.sum([0, 1]), 15.0),
        (lambda: x.sum(0), [3.0, 5.0, 7.0]),
        (lambda: x.sum(0, keepdim=True), [[3.0, 5.0, 7.0]]),
        (lambda: x.sum(0, dtype=rd.int64), [3, 5, 7]),
    ]
    for _ in range(3):
        for call, expected in calls:
            assert call().tolist() == expected


def test_a_reduction_of_a_tensor_without_memory_says_so_each_time():
    x = grid(4)
    assert x.sum().item() == 6
    x.untyped_storage().resize_(0)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="out of bounds for storage"):
            x.sum()
        with pytest.raises(RuntimeError, match="out of bounds for storage"):
            x.clone()


def test_meta_tensors_and_real_ones_of_the_same_shape_are_told_apart():
    real, meta = rd.ones(2, 2), rd.ones(2, 2, device="meta")
    for call in (
        lambda t: t.sum(0),
        lambda t: t @ t,
        lambda t: rd.cat([t, t]),
        lambda t: t.clone(),
        lambda t: t.max(0),
    ):
        results = twice(call, meta, real)
        values = [r if isinstance(r, rd.Tensor) else r[0] for r in results]
        assert [v.device.type for v in values] == ["meta", "cpu"]


def test_copies_into_memory_that_is_shared_are_right():
    x = grid(6)
    for _ in range(3):
        x.copy_(rd.arange(6.0))
        x[0::2].copy_(x[1::2])
        assert x.tolist() == [1, 1, 3, 3, 5, 5]
    with pytest.raises(RuntimeError, match="refer to a single"):
        x[1:].copy_(x[:-1])


def test_a_copy_that_does_not_fit_is_refused_each_time():
    x = grid(2, 2)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="The size of tensor a|doesn't match the broadcast shape"):
            x.copy_(grid(3, 2))
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            grid(1, 2).expand(2, 2).copy_(x)


@pytest.mark.parametrize(
    "dtype, fits, not_",
    [
        ("uint8", [0, 255, -5], 256),
        ("int8", [-128, 127], 200),
        ("float32", [1, 2.5, float("inf")], 1e39),
        ("bool", [True, 2], None),
        ("complex64", [1, 1j], None),
    ],
)
def test_numbers_that_fit_fill_and_others_do_not(dtype, fits, not_):
    x = rd.zeros(3, dtype=getattr(rd, dtype))
    for number in fits + fits:
        expected = rd.tensor(number % 256 if dtype == "uint8" else number, dtype=x.dtype)
        assert x.fill_(number).tolist() == [expected.item()] * 3
    if not_ is not None:
        with pytest.raises(RuntimeError, match="without overflow"):
            x.fill_(not_)
    assert x.zero_().tolist() == [0, 0, 0]


def test_a_wrapper_that_looks_like_a_tensor_spoils_nothing():
    class Wrapper(rd.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return rd.Tensor._make_wrapper_subclass(cls, inner.shape)

        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*[a.inner if isinstance(a, cls) else a for a in args], **(kwargs or {}))

    copying.COPIES.clear()
    real = grid(2, 2)
    for x in (Wrapper(real), real, Wrapper(real)):
        assert x.clone().tolist() == real.tolist()
        assert x.sum().item() == 6 and x.max(1).values.tolist() == [1, 3]


def test_views_are_written_and_derived_as_before():
    x = rd.ones(2, 3, requires_grad=True)
    for _ in range(3):
        base = x * 1
        base.t()[0].mul_(2)
        (gradient,) = rd.autograd.grad(base.view(6).sum(), x)
        assert gradient.tolist() == [[2, 1, 1], [2, 1, 1]]


@pytest.mark.parametrize("index", [5, (0, 5), (slice(None), -4)])
def test_an_index_out_of_bounds_says_so_each_time(index):
    x = grid(3, 3)
    for _ in range(3):
        with pytest.raises(IndexError, match="is out of bounds for dimension"):
            x[index]
