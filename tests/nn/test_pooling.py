"""Pooling layers: shapes, values, representation; a small convolutional network learns."""

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


def test_a_convolutional_network_tells_horizontal_from_vertical_bars():
    rd.manual_seed(0)
    features = [nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3), nn.ReLU()]
    net = nn.Sequential(*features, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
    optimizer = rd.optim.Adam(net.parameters(), lr=0.02)
    for _ in range(60):
        kind = rd.randint(0, 2, (16,))
        at = rd.randint(0, 8, (16,)).tolist()
        x = 0.1 * rd.randn(16, 1, 8, 8)
        for i, (vertical, place) in enumerate(zip(kind.tolist(), at, strict=True)):
            x[i, 0, :, place] += vertical
            x[i, 0, place, :] += 1 - vertical
        loss = F.cross_entropy(net(x), kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.2
