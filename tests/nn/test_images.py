"""Layers and functions of images: padding, resizing, sampling, windows, pixels and channels."""

import numpy as np
import pytest

import redispatch as rd
from redispatch.nn import functional as F


def image(*shape):
    return rd.arange(float(np.prod(shape))).reshape(shape)


# --- padding ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "row"),
    [
        ("reflect", [2.0, 1.0, 0.0, 1.0, 2.0, 1.0]),
        ("replicate", [0.0, 0.0, 0.0, 1.0, 2.0, 2.0]),
        ("circular", [1.0, 2.0, 0.0, 1.0, 2.0, 0.0]),
        ("constant", [0.0, 0.0, 0.0, 1.0, 2.0, 0.0]),
    ],
)
def test_each_mode_pads_in_its_own_way(mode, row):
    assert F.pad(image(1, 3), (2, 1), mode).tolist() == [row]


@pytest.mark.parametrize("kind", ["Reflection", "Replication", "Circular", "Zero"])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_a_padding_layer_pads_all_sides_alike_or_each_by_its_own_width(kind, dims):
    x = image(2, *[4] * dims)
    layer = getattr(rd.nn, f"{kind}Pad{dims}d")
    assert layer(1)(x).shape == (2, *[6] * dims)
    assert layer((2, 1) * dims)(x).shape == (2, *[7] * dims)
    assert repr(layer(1)) == f"{kind}Pad{dims}d({(1,) * (2 * dims)})"


def test_a_constant_layer_pads_with_its_value():
    assert rd.nn.ConstantPad1d(1, 7.0)(image(1, 2)).tolist() == [[7.0, 0.0, 1.0, 7.0]]
    assert repr(rd.nn.ConstantPad1d(1, 7.0)) == "ConstantPad1d(padding=(1, 1), value=7.0)"


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_a_convolution_pads_its_input_as_it_is_told(mode):
    layer = rd.nn.Conv2d(1, 2, 3, padding=(1, 2), padding_mode=mode)
    x = image(1, 1, 4, 5)
    by_hand = F.conv2d(F.pad(x, (2, 2, 1, 1), mode), layer.weight, layer.bias)
    assert rd.equal(layer(x), by_hand)
    same = rd.nn.Conv2d(1, 2, (2, 3), padding="same", padding_mode=mode)
    assert same(x).shape == (1, 2, 4, 5)
    assert repr(layer).endswith(f"padding=(1, 2), padding_mode={mode})")


# --- resizing ---------------------------------------------------------------------------------------------------------


def test_a_line_is_a_line_again_when_its_corners_are_kept():
    x = image(1, 1, 5)
    finer = F.interpolate(x, 9, mode="linear", align_corners=True)
    assert finer.tolist() == [[[0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0]]]


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
def test_an_image_of_one_colour_keeps_it(mode):
    x = rd.full((1, 2, 5, 4), 3.0)
    for size in ((2, 3), (7, 9)):
        rd.testing.assert_close(F.interpolate(x, size, mode=mode), rd.full((1, 2, *size), 3.0))


def test_the_mean_of_an_image_survives_shrinking_without_aliasing():
    x = rd.rand(1, 1, 32, 32)
    for mode in ("bilinear", "bicubic", "lanczos"):
        small = F.interpolate(x, (8, 8), mode=mode, antialias=True)
        assert abs(small.mean().item() - x.mean().item()) < 0.02


def test_bytes_are_resized_in_bytes():
    x = rd.tensor([[[[0, 255], [255, 0]]]], dtype=rd.uint8)
    bigger = F.interpolate(x, (3, 3), mode="bilinear", align_corners=True)
    assert bigger.dtype is rd.uint8
    assert bigger.tolist() == [[[[0, 128, 255], [128, 128, 128], [255, 128, 0]]]]


def test_a_layer_resizes_as_it_was_told():
    x = image(1, 1, 2, 2)
    assert rd.equal(rd.nn.UpsamplingNearest2d(scale_factor=2)(x), F.interpolate(x, scale_factor=2))
    layer = rd.nn.Upsample(scale_factor=(2, 3), mode="bilinear")
    assert layer(x).shape == (1, 1, 4, 6)
    assert repr(layer) == "Upsample(scale_factor=(2.0, 3.0), mode='bilinear')"


def test_the_old_names_warn():
    with pytest.warns(UserWarning, match="Use `nn.functional.interpolate` instead"):
        assert F.upsample(image(1, 1, 2), 4).shape == (1, 1, 4)


# --- sampling ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_the_grid_of_the_identity_gives_the_image_back(align, mode):
    x = rd.rand(2, 3, 4, 5)
    identity = rd.tensor([[[1.0, 0, 0], [0, 1, 0]]]).expand(2, 2, 3).contiguous()
    grid = F.affine_grid(identity, [2, 3, 4, 5], align_corners=align)
    rd.testing.assert_close(F.grid_sample(x, grid, mode, align_corners=align), x, rtol=1e-4, atol=1e-5)


def test_a_point_outside_is_what_the_padding_makes_of_it():
    x = image(1, 1, 1, 3)
    grid = rd.tensor([[[[5.0 / 3, 0.0]]]])  # one and a half elements behind the edge
    found = [F.grid_sample(x, grid, padding_mode=p, align_corners=False).item() for p in ("zeros", "border")]
    assert found == [0.0, 2.0]
    assert F.grid_sample(x, grid, padding_mode="reflection", align_corners=False).item() == pytest.approx(1.5)


def test_numbers_that_are_no_places_are_outside():
    x = image(1, 1, 2, 2)
    grid = rd.tensor([[[[float("nan"), 0.0], [float("inf"), 0.0], [1e30, -1e30]]]])
    for mode in ("bilinear", "nearest", "bicubic"):
        assert F.grid_sample(x, grid, mode, align_corners=False).tolist() == [[[[0.0, 0.0, 0.0]]]]


def test_a_choice_that_is_not_made_warns():
    with pytest.warns(UserWarning, match="Please specify align_corners=True if the old behavior is desired"):
        F.grid_sample(image(1, 1, 2, 2), rd.zeros(1, 1, 1, 2))
    with pytest.raises(ValueError, match="expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: 'cubic'"):
        F.grid_sample(image(1, 1, 2, 2), rd.zeros(1, 1, 1, 2), "cubic")


# --- windows, pixels, channels ----------------------------------------------------------------------------------------


def test_folding_counts_how_many_windows_an_element_is_in():
    x = rd.ones(1, 1, 3, 3)
    columns = rd.nn.Unfold(2)(x)
    assert columns.shape == (1, 4, 4)
    assert rd.nn.Fold((3, 3), 2)(columns).tolist() == [[[[1.0, 2, 1], [2, 4, 2], [1, 2, 1]]]]
    assert repr(rd.nn.Fold((3, 3), 2)) == ("Fold(output_size=(3, 3), kernel_size=2, dilation=1, padding=0, stride=1)")


def test_pixels_become_channels_and_come_back():
    x = image(2, 8, 3, 2)
    assert rd.equal(rd.nn.PixelUnshuffle(2)(rd.nn.PixelShuffle(2)(x)), x)
    assert rd.nn.PixelShuffle(2)(x).shape == (2, 2, 6, 4)
    assert rd.nn.ChannelShuffle(2)(x)[0, :, 0, 0].tolist() == [0.0, 24, 6, 30, 12, 36, 18, 42]


def test_the_neighbours_of_a_channel_damp_it():
    x = rd.ones(1, 3, 1, 1)
    assert rd.nn.LocalResponseNorm(3, alpha=3.0, beta=1.0)(x).flatten().tolist() == pytest.approx([1 / 3, 1 / 4, 1 / 3])
    assert rd.nn.CrossMapLRN2d(3, alpha=3.0, beta=1.0)(x).flatten().tolist() == pytest.approx([1 / 3, 1 / 4, 1 / 4])
    with pytest.raises(ValueError, match="Expected input to be 4D, got 3D instead"):
        rd.nn.CrossMapLRN2d(3)(x[0])
