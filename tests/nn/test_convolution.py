"""Convolutional layers: shapes, parameters, representation, errors; a small network learns."""

import pytest

import redispatch as rd
from redispatch import nn
from redispatch.testing import assert_close


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
