"""Pooling layers: shapes, values, representation."""

import pytest

import redispatch as rd
from redispatch import nn
from redispatch.nn import functional as F


@pytest.mark.parametrize(
    "layer, given, made",
    [
        (nn.MaxPool1d(2), (3, 2, 7), (3, 2, 3)),
        (nn.MaxPool2d(3, stride=2, padding=1), (3, 2, 7, 8), (3, 2, 4, 4)),
        (nn.MaxPool2d((2, 3), ceil_mode=True), (2, 7, 8), (2, 4, 3)),
        (nn.MaxPool3d(2), (1, 2, 4, 4, 4), (1, 2, 2, 2, 2)),
        (nn.AvgPool1d(3, stride=1, padding=1), (3, 2, 7), (3, 2, 7)),
        (nn.AvgPool2d(2, divisor_override=3), (3, 2, 7, 8), (3, 2, 3, 4)),
        (nn.AvgPool3d(2), (1, 2, 4, 4, 4), (1, 2, 2, 2, 2)),
        (nn.AdaptiveAvgPool1d(4), (1, 2, 7), (1, 2, 4)),
        (nn.AdaptiveAvgPool2d((None, 3)), (1, 2, 5, 7), (1, 2, 5, 3)),
        (nn.AdaptiveAvgPool2d(1), (1, 2, 5, 7), (1, 2, 1, 1)),
        (nn.AdaptiveAvgPool3d(2), (1, 2, 5, 7, 3), (1, 2, 2, 2, 2)),
    ],
    ids=str,
)
def test_the_shape_of_the_result(layer, given, made):
    x = rd.randn(*given, requires_grad=True)
    y = layer(x)
    assert tuple(y.shape) == made
    y.sum().backward()
    assert x.grad is not None


def test_indices_say_where_the_largest_are():
    x = rd.tensor([[[1.0, 5.0, 2.0], [4.0, 3.0, 9.0]]])
    values, indices = F.max_pool2d(x, 2, stride=1, return_indices=True)
    assert values.tolist() == [[[5.0, 9.0]]] and indices.tolist() == [[[1, 5]]]
    assert nn.MaxPool2d(2, 1, return_indices=True)(x)[1].tolist() == [[[1, 5]]]


def test_nan_is_the_largest_and_what_lies_in_the_padding_is_not():
    x = rd.tensor([[[-1.0, float("nan"), -3.0, -4.0]]])
    assert str(F.max_pool1d(x, 2).tolist()) == "[[[nan, -3.0]]]"
    assert F.max_pool1d(rd.tensor([[[-1.0, -2.0]]]), 2, padding=1).tolist() == [[[-1.0, -2.0]]]


def test_representation():
    assert repr(nn.MaxPool2d(2)) == "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)"
    assert repr(nn.AvgPool1d(2)) == "AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))"
    assert repr(nn.AdaptiveAvgPool2d((1, 2))) == "AdaptiveAvgPool2d(output_size=(1, 2))"


# --- largest elements, there and back ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_unpooling_puts_the_largest_where_they_were(dims):
    x = rd.randperm(4**dims).reshape(1, 1, *[4] * dims).double()
    pool = getattr(rd.nn, f"MaxPool{dims}d")(2, return_indices=True)
    unpool = getattr(rd.nn, f"MaxUnpool{dims}d")(2)
    values, places = pool(x)
    back = unpool(values, places)
    assert back.shape == x.shape
    assert rd.equal(back, x * (back != 0))
    assert unpool(values, places, output_size=[5] * dims).shape == (1, 1, *[5] * dims)
    with pytest.raises(ValueError, match="must be between 2 and 6"):
        unpool(values, places, output_size=[7] * dims)


def test_adaptive_largest_elements_cover_the_image():
    x = rd.arange(12.0).reshape(1, 3, 4)
    values, places = rd.nn.AdaptiveMaxPool2d((None, 2), return_indices=True)(x)
    assert values.tolist() == [[[1.0, 3.0], [5.0, 7.0], [9.0, 11.0]]]
    assert places.tolist() == [[[1, 3], [5, 7], [9, 11]]]


def test_random_windows_are_the_same_for_the_same_seed():
    x = rd.rand(1, 2, 9, 9)
    layer = rd.nn.FractionalMaxPool2d(2, output_ratio=0.5)
    found = []
    for _ in range(2):
        rd.manual_seed(3)
        found.append(layer(x))
    assert found[0].shape == (1, 2, 4, 4)
    assert rd.equal(*found)
    with pytest.raises(ValueError, match="requires specifying either an output size, or a pooling ratio"):
        rd.nn.FractionalMaxPool2d(2)


def test_the_norm_of_a_window_is_that_of_its_elements():
    x = rd.tensor([[[3.0, 4.0, 5.0, 12.0]]])
    assert rd.nn.LPPool1d(2, 2)(x).tolist() == [[[5.0, 13.0]]]
    assert rd.nn.LPPool1d(float("inf"), 2)(x).tolist() == [[[4.0, 12.0]]]


def test_a_window_that_lies_outside_of_the_image_has_the_lowest_number():
    x = rd.arange(12.0).reshape(1, 1, 12, 1)
    values, places = nn.functional.max_pool2d(x, (4, 2), 2, (0, 1), (1, 2), return_indices=True)  # columns -1 and 1
    assert (values == -float("inf")).all() and places.flatten().tolist() == [1, 3, 5, 7, 9]
    assert nn.functional.max_pool2d(x.int(), (4, 2), 2, (0, 1), (1, 2)).max() == rd.iinfo(rd.int32).min


@pytest.mark.parametrize("dtype", [rd.float32, rd.bfloat16, rd.int64])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_rows_of_windows_are_as_one_window_after_the_other(dtype, stride):
    x = rd.randint(-5, 6, (2, 3, 9, 40)).to(dtype)
    values, places = nn.functional.max_pool2d(x, 3, stride, 1, return_indices=True)
    around = nn.functional.pad(x.double(), (1, 1, 1, 1), value=-100.0)
    windows = around.unfold(2, 3, stride).unfold(3, 3, stride).flatten(-2)
    expected, at = windows.max(-1)
    assert values.double().equal(expected)
    rows = rd.arange(values.shape[2])[:, None] * stride - 1 + at // 3
    assert places.equal(rows * 40 + rd.arange(values.shape[3]) * stride - 1 + at % 3)


@pytest.mark.parametrize("size", [2, 3])
def test_of_several_nans_in_a_window_the_last_one_counts(size):
    x = rd.randint(-5, 6, (2, 3, 9, 40)).float()
    x.masked_fill_(rd.rand(x.shape) < 0.1, float("nan"))
    values, places = nn.functional.max_pool2d(x, size, 2, return_indices=True)
    windows = x.unfold(2, size, 2).unfold(3, size, 2).flatten(-2)
    nans = windows.isnan() * rd.arange(1, size * size + 1)
    last, at = nans.max(-1)
    at = rd.where(last > 0, at, windows.nan_to_num().max(-1).indices)
    assert values.isnan().equal(last > 0)
    rows = rd.arange(values.shape[2])[:, None] * 2 + at // size
    assert places.equal(rows * 40 + rd.arange(values.shape[3]) * 2 + at % size)
