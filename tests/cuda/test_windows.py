"""Convolutions, pooling, and columns of windows on the simulated device, against the CPU's."""

import re

import pytest

import redispatch as rd
from redispatch.kernels.cuda import compiler
from redispatch.kernels.cuda.ops import convolution, matmul
from redispatch.nn import functional as F

from .helpers import compare, same_gradients

pytestmark = pytest.mark.usefixtures("simulator")

# input, weight, and how: for a product in tiles, 8 or more channels are needed
CASES = [
    ((2, 9, 6, 5), (10, 9, 3, 3), {"padding": 1}),
    ((1, 16, 7, 7), (12, 8, 3, 2), {"stride": (2, 3), "dilation": (1, 2), "groups": 2, "padding": (2, 1)}),
    ((2, 4, 5, 5), (8, 1, 3, 3), {"groups": 4}),
    ((1, 3, 9), (2, 3, 4), {"stride": 3}),
    ((1, 2, 3, 4, 3), (3, 2, 2, 2, 2), {"padding": 1}),
    ((0, 3, 4, 4), (2, 3, 2, 2), {}),
]


@pytest.mark.parametrize("shape,window,how", CASES)
def test_a_convolution_and_its_gradients(shape, window, how):
    function = (F.conv1d, F.conv2d, F.conv3d)[len(shape) - 3]
    same_gradients(lambda x, w, b: function(x, w, b, **how), rd.randn(shape), rd.randn(window), rd.randn(window[0]))


def test_a_transposed_convolution_and_its_gradients():
    how = {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}
    x, w, b = rd.randn(2, 16, 4, 3), rd.randn(16, 9, 3, 3), rd.randn(18)
    same_gradients(lambda x, w, b: F.conv_transpose2d(x, w, b, **how), x, w, b)
    same_gradients(lambda x, w: F.conv_transpose1d(x, w, stride=3), rd.randn(1, 2, 4), rd.randn(2, 3, 2))


def test_a_convolution_of_channels_last_and_of_a_view():
    x, w = rd.randn(2, 3, 6, 6).to(memory_format=rd.channels_last), rd.randn(4, 3, 3, 3)
    compare(F.conv2d(x.cuda(), w.cuda()), F.conv2d(x, w))
    compare(F.conv2d(x.cuda()[..., ::2, 1:], w.cuda()), F.conv2d(x[..., ::2, 1:], w))


@pytest.mark.parametrize("dtype", [rd.bfloat16, rd.int64], ids=str)
def test_a_convolution_of_other_dtypes(dtype):
    x, w = (rd.arange(54.0) % 5).reshape(2, 3, 3, 3).to(dtype), (rd.arange(24.0) % 3).reshape(2, 3, 2, 2).to(dtype)
    compare(F.conv2d(x.cuda(), w.cuda()), F.conv2d(x, w))


@pytest.mark.parametrize("groups", [1, 8])
def test_the_gradient_of_a_weight_is_added_up_in_shares(groups):
    x, w = rd.randn(8, 8, 12, 9).double(), rd.randn(8, 8 // groups, 3, 3).double()
    same_gradients(lambda x, w: F.conv2d(x, w, padding=1, groups=groups), x, w)


@pytest.mark.parametrize("what", ["correlate", "spread", "correlations"])
def test_a_tile_of_a_convolution_is_kept_in_registers(what):
    source = convolution.TILES.source(
        "float32", ["float32"] * 4, **convolution.PLACES[what], **matmul.tile_of("float32")
    )
    code = compiler.ptx(source)
    assert not re.search(r"\.f64|\.local|\bcall\b", code) and code.count("bar.sync") == 2


# --- pooling ----------------------------------------------------------------------------------------------------------

HOW = [
    {"kernel_size": 2},
    {"kernel_size": (3, 2), "stride": (1, 3), "padding": 1},
    {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
]


@pytest.mark.parametrize("how", HOW, ids=str)
def test_pooling_and_its_gradients(how):
    x = rd.randn(2, 3, 7, 9)
    same_gradients(lambda x: F.max_pool2d(x, **how), x)
    same_gradients(lambda x: F.avg_pool2d(x, **how), x)
    same_gradients(lambda x: F.avg_pool2d(x, count_include_pad=False, **how), x[:, :, :, ::2])


def test_dilated_windows_at_the_edge():
    x = rd.randn(1, 2, 9, 8)
    how = {"kernel_size": 3, "stride": 1, "padding": 1, "dilation": 3}
    compare(F.max_pool2d(x.cuda(), return_indices=True, **how), F.max_pool2d(x, return_indices=True, **how))
    same_gradients(lambda x: F.max_pool2d(x, **how), x)


def test_adaptive_pooling_and_its_gradients():
    x = rd.randn(2, 5, 7)
    same_gradients(lambda x: F.adaptive_avg_pool2d(x, (3, 4)), x)
    same_gradients(lambda x: F.adaptive_max_pool2d(x, (2, 7)), x)
    same_gradients(lambda x: F.adaptive_avg_pool1d(x, 9), x)


def test_pooling_of_nan_of_other_dtypes_and_of_channels_last():
    x = rd.tensor([[[1.0, float("nan"), 3.0, float("-inf")], [2.0, 0.0, float("-inf"), float("-inf")]]])
    compare(F.max_pool2d(x.cuda(), 2, return_indices=True), F.max_pool2d(x, 2, return_indices=True))
    x = (rd.arange(48.0) % 7).reshape(1, 3, 4, 4)
    for y in (x.bfloat16(), x.long(), x.to(memory_format=rd.channels_last)):
        compare(F.max_pool2d(y.cuda(), 3, 1, return_indices=True), F.max_pool2d(y, 3, 1, return_indices=True))
        compare(F.avg_pool2d(y.cuda(), 3, 1), F.avg_pool2d(y, 3, 1))
    assert F.max_pool2d(x[:0].cuda(), 2).shape == (0, 3, 2, 2)


def test_what_is_remembered_of_a_pooling_is_right_for_the_next_images(simulator):
    for _ in range(3):
        x = rd.randn(2, 3, 6, 6)
        for given in (x, x.to(memory_format=rd.channels_last), x.transpose(2, 3)):
            same_gradients(lambda x: F.max_pool2d(x, 2), given)
            same_gradients(lambda x: F.avg_pool2d(x, 3, 2), given)


# image, windows' size, how many: of the first and the last place, and one that lies across
AT_RANDOM = [((2, 3, 9, 7), (2, 3), (4, 3)), ((3, 6, 6), (1, 2), (1, 5)), ((1, 2, 5, 6, 7), (2, 2, 3), (3, 1, 4))]


@pytest.mark.parametrize("shape,size,count", AT_RANDOM)
def test_windows_placed_at_random_and_their_gradients(shape, size, count):
    pool = (F.fractional_max_pool2d, F.fractional_max_pool3d)[len(size) - 2]
    x = rd.randn(shape)
    x.view(-1)[5] = float("nan")
    images = shape[: -len(size)]
    for samples in (rd.rand(1, *images, len(size))[0], rd.full((1, *images, len(size)), 0.999)[0]):
        samples = samples if samples.dim() == 3 else samples[None]

        def both(x, samples=samples):
            return pool(x, size, output_size=count, _random_samples=samples.to(x.device), return_indices=True)

        compare(both(x.cuda()), both(x))
        compare(both(x.mT.contiguous().mT.cuda()), both(x))
        same_gradients(lambda x: both(x)[0], x)  # it is called here
    with pytest.raises(RuntimeError, match="too large relative to input"):
        pool(x.cuda(), [99] * len(size), output_size=count, _random_samples=samples.cuda())


# --- columns ----------------------------------------------------------------------------------------------------------

# image, and how
BLOCKS = [
    ((2, 3, 5, 7), {"kernel_size": (2, 3)}),
    ((1, 2, 6, 5), {"kernel_size": 3, "padding": (2, 1), "stride": (2, 3), "dilation": (1, 2)}),
    ((2, 4, 3), {"kernel_size": (2, 1), "stride": 3}),  # between the windows are pixels of none
    ((0, 2, 4, 4), {"kernel_size": 2}),
]


@pytest.mark.parametrize("shape,how", BLOCKS)
def test_columns_of_windows_and_images_of_columns(shape, how):
    x = rd.randn(shape)
    same_gradients(lambda x: F.unfold(x, **how), x)
    columns = F.unfold(x, **how)
    same_gradients(lambda columns: F.fold(columns, shape[-2:], **how), columns)
    assert rd.equal(F.fold(columns.cuda(), shape[-2:], **how).cpu(), F.fold(columns, shape[-2:], **how))


def test_columns_of_a_view_and_of_other_dtypes():
    x = rd.randn(2, 5, 4, 3).permute(0, 3, 2, 1)
    for given in (x, x.bfloat16(), x.to(rd.complex64), x > 0):
        columns = F.unfold(given, 2)
        compare(F.unfold(given.cuda(), 2), columns)
        compare(F.fold(columns.cuda(), (4, 5), 2), F.fold(columns, (4, 5), 2))
