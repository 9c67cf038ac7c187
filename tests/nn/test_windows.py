"""Layers that go over windows: convolutions and pooling."""

import pytest

import redispatch as rd
from redispatch import nn
from redispatch.nn import functional as F
from redispatch.testing import assert_close

# Convolutional layers: shapes, parameters, representation, errors; a small network learns -----------------------------


@pytest.mark.parametrize(
    "layer, given, made",
    [
        (nn.Conv1d(2, 4, 3, padding=1), (5, 2, 7), (5, 4, 7)),
        (nn.Conv2d(2, 4, (3, 2), stride=2, padding=(1, 0), dilation=(2, 1), groups=2), (5, 2, 9, 8), (5, 4, 4, 4)),
        (nn.Conv2d(2, 4, 3, padding="same"), (2, 9, 8), (4, 9, 8)),
        (nn.Conv2d(2, 4, 2, padding="same"), (1, 2, 9, 8), (1, 4, 9, 8)),
        (nn.Conv3d(1, 2, 2, bias=False), (3, 1, 4, 4, 4), (3, 2, 3, 3, 3)),
        (nn.ConvTranspose1d(2, 4, 3, stride=2, output_padding=1), (1, 2, 5), (1, 4, 12)),
        (nn.ConvTranspose2d(4, 2, 3, stride=2, padding=1, groups=2), (3, 4, 5, 5), (3, 2, 9, 9)),
        (nn.ConvTranspose3d(1, 1, 2), (1, 1, 2, 2, 2), (1, 1, 3, 3, 3)),
    ],
    ids=str,
)
def test_the_shape_of_the_result(layer, given, made):
    x = rd.randn(*given)
    y = layer(x)
    assert tuple(y.shape) == made
    y.sum().backward()
    assert all(parameter.grad is not None for parameter in layer.parameters())


def test_padding_that_keeps_the_size_is_zeros_around():
    layer = nn.Conv1d(1, 1, 2, padding="same", bias=False)
    with rd.no_grad():
        layer.weight.copy_(rd.tensor([[[1.0, 10.0]]]))
    assert layer(rd.tensor([[[1.0, 2.0, 3.0]]])).tolist() == [[[21.0, 32.0, 3.0]]]


def test_the_output_size_of_a_transposed_convolution_can_be_chosen():
    layer = nn.ConvTranspose1d(1, 1, 3, stride=3)
    assert [layer(rd.randn(1, 1, 4), output_size=[size]).shape[-1] for size in (12, 13, 14)] == [12, 13, 14]
    with pytest.raises(ValueError, match=r"valid sizes range from \[12\] to \[14\]"):
        layer(rd.randn(1, 1, 4), output_size=[15])


def test_representation_and_parameters():
    layer = nn.Conv2d(2, 4, 3, stride=2, padding=1, groups=2, bias=False)
    assert repr(layer) == ("Conv2d(2, 4, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), groups=2, bias=False)")
    assert tuple(layer.weight.shape) == (4, 1, 3, 3)
    assert layer.weight.abs().max() <= 1 / 3 + 1e-6
    assert tuple(nn.ConvTranspose2d(2, 4, 3, groups=2).weight.shape) == (2, 2, 3, 3)


def test_a_convolution_learns_the_kernel_that_made_the_data():
    rd.manual_seed(0)
    wanted, layer = nn.Conv2d(1, 1, 3), nn.Conv2d(1, 1, 3)
    optimizer = rd.optim.SGD(layer.parameters(), lr=0.2)
    for _ in range(150):
        x = rd.randn(8, 1, 6, 6)
        loss = nn.functional.mse_loss(layer(x), wanted(x).detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 1e-4


def test_images_that_lie_channels_last_give_such_results():
    x = rd.randn(2, 3, 5, 5).contiguous(memory_format=rd.channels_last)
    layer = nn.Conv2d(3, 4, 3)
    y = layer(x)
    assert y.is_contiguous(memory_format=rd.channels_last)
    assert_close(y.contiguous(), layer(x.contiguous()))


@pytest.mark.parametrize("stride, padding, dilation", [(1, 1, 1), (2, 0, 1), (1, 2, 2)])
@pytest.mark.parametrize("each", [1, 2])
def test_a_channel_for_itself_is_convolved_as_if_alone(stride, padding, dilation, each):
    x = rd.randn(2, 3, 6, 7, dtype=rd.float64, requires_grad=True)
    weight = rd.randn(3 * each, 1, 3, 2, dtype=rd.float64, requires_grad=True)
    how = (None, stride, padding, dilation)
    together = rd.conv2d(x, weight, *how, 3)
    parts = zip(x.split(1, 1), weight.split(each), strict=True)
    alone = rd.cat([rd.conv2d(image, window, *how) for image, window in parts], 1)
    assert_close(together, alone)
    found, expected = (rd.autograd.grad(y.square().sum(), (x, weight)) for y in (together, alone))
    for mine, wanted in zip(found, expected, strict=True):
        assert_close(mine, wanted)


def test_what_is_no_number_stays_in_its_channel():
    x = rd.ones(1, 2, 3, 3)
    x[0, 0, 1, 1] = float("nan")
    weight = rd.ones(2, 1, 3, 3, requires_grad=True)
    y = rd.conv2d(x, weight, None, 1, 1, 1, 2)
    assert y[0, 0].isnan().all() and not y[0, 1].isnan().any()
    (grad,) = rd.autograd.grad(y.sum(), weight)
    assert grad[0].isnan().all() and not grad[1].isnan().any()


def by_definition(x, weight, stride, padding, dilation, groups):
    """The sums over windows, each element of the window for itself."""
    (sy, sx), (py, px), (dy, dx), (kh, kw) = stride, padding, dilation, weight.shape[2:]
    x = nn.functional.pad(x, (px, px, py, py))
    rows, columns = (x.shape[2] - dy * (kh - 1) - 1) // sy + 1, (x.shape[3] - dx * (kw - 1) - 1) // sx + 1
    total = 0
    for i in range(kh):
        for j in range(kw):
            met = x[:, :, i * dy :, j * dx :][:, :, ::sy, ::sx][:, :, :rows, :columns].unflatten(1, (groups, -1))
            w = weight[:, :, i, j].unflatten(0, (groups, -1))
            total = total + rd.einsum("ngcyx,goc->ngoyx", met, w).flatten(1, 2)
    return total


@pytest.mark.parametrize("stride", [(1, 1), (2, 3)])
@pytest.mark.parametrize("padding, dilation", [((0, 0), (1, 1)), ((1, 3), (1, 2)), ((4, 2), (2, 1))])
@pytest.mark.parametrize("into, out, groups", [(1, 3, 1), (9, 4, 1), (8, 10, 2), (4, 66, 1)])
def test_sums_over_windows_are_those_of_the_definition(stride, padding, dilation, into, out, groups):
    x = rd.randn(3, into, 9, 8, dtype=rd.float64, requires_grad=True)
    weight = rd.randn(out, into // groups, 3, 2, dtype=rd.float64, requires_grad=True)
    y = rd.conv2d(x, weight, None, stride, padding, dilation, groups)
    expected = by_definition(x, weight, stride, padding, dilation, groups)
    assert_close(y, expected)
    grad = rd.randn_like(y)
    for mine, wanted in zip(*(rd.autograd.grad(one, (x, weight), grad) for one in (y, expected)), strict=True):
        assert_close(mine, wanted)


def test_long_rows_and_many_images_are_done_in_parts():
    x, weight = rd.randn(2, 3, 3000, dtype=rd.float64), rd.randn(5, 3, 4, dtype=rd.float64)
    y = rd.conv1d(x, weight, rd.arange(5, dtype=rd.float64), 1, 2)
    columns = nn.functional.pad(x, (2, 2)).unfold(2, 4, 1)
    assert_close(y, rd.einsum("nclk,ock->nol", columns, weight) + rd.arange(5)[:, None])
    images = rd.randn(70, 32, 12, 12)  # more than are laid out at a time
    weight = rd.randn(4, 32, 3, 3)
    assert_close(rd.conv2d(images, weight)[69:], rd.conv2d(images[69:], weight))


def test_infinity_counts_only_in_the_windows_that_hold_it():
    x = rd.ones(2, 5, 6, 6)
    x[0, 0, 2, 5] = float("inf")  # the last of a row: only the last element of a window ever meets it
    weight = rd.ones(4, 5, 3, 3, requires_grad=True)
    y = rd.conv2d(x, weight)
    assert y.isinf().sum() == 4 * 3 and not y.isnan().any()
    (grad,) = rd.autograd.grad(y, weight, rd.ones(2, 4, 4, 4))
    assert grad[:, 0, :, 2].isinf().all() and grad[:, 0, :, :2].isfinite().all() and grad[:, 1:].isfinite().all()


# Pooling layers: shapes, values, representation -----------------------------------------------------------------------


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
def test_the_shape_of_what_is_pooled(layer, given, made):
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
