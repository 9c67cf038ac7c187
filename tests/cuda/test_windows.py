"""Convolutions and pooling on the simulated device, against the CPU's."""

import re

import pytest

import redispatch as rd
from redispatch.kernels.cuda import compiler, convolution, matmul
from redispatch.nn import functional as F

from .families import check_entry, compare, entries, same_gradients

pytestmark = pytest.mark.usefixtures("simulator")

CONVOLUTIONS = entries("convolution convolution_backward conv1d conv2d conv3d conv_transpose2d.input conv2d.padding")


@pytest.mark.parametrize("info", CONVOLUTIONS, ids=str)
def test_a_convolution_gives_what_it_gives_on_the_cpu(info):
    check_entry(info, rd.float32)


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


@pytest.mark.parametrize("what", ["correlate", "spread", "correlations"])
def test_a_tile_of_a_convolution_is_kept_in_registers(what):
    source = convolution.TILES.source(
        "float32", ["float32"] * 4, **convolution.PLACES[what], **matmul.tile_of("float32")
    )
    code = compiler.ptx(source)
    assert not re.search(r"\.f64|\.local|\bcall\b", code) and code.count("bar.sync") == 2
