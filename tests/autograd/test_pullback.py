"""Derivatives that follow from the mathematics of an operator, run once more and recorded."""

import pytest

import redispatch as rd
from redispatch.autograd import gradcheck, gradgradcheck, pulled_back
from redispatch.testing import make_tensor

F = rd.nn.functional


def numbers(*shape):
    return make_tensor(shape, dtype=rd.float64, low=-2, high=2, requires_grad=True)


def test_it_gives_the_gradients_and_none_where_none_is_wanted():
    x, y = numbers(3), numbers(3)
    found = pulled_back(lambda x, y, z: [x * y, None, x.sin()], (x, y, None), [y, None], [True, True, True])
    assert rd.equal(found[0], y * y) and rd.equal(found[1], x * y) and found[2] is None
    assert pulled_back(lambda x, y: [x * y], (x, y), [y], [False, True])[0] is None


def test_what_it_gives_can_be_differentiated_again():
    assert gradgradcheck(lambda x, y: pulled_back(lambda x: [x.exp() * x], (x,), [y])[0], (numbers(3), numbers(3)))


@pytest.mark.parametrize("mask", [[True, True, True], [True, False, False]])
def test_backward_of_layer_norm_moves_with_the_mean_and_deviation_of_its_input(mask):
    def backward(grad, x, weight):
        mean, var = x.mean(1, True), x.var(1, correction=0, keepdim=True)
        with rd.no_grad():  # what native_layer_norm has saved
            rstd = (var + 0.1).rsqrt()
            mean = mean.clone()
        found = rd.ops.aten.native_layer_norm_backward.default(grad, x, [3], mean, rstd, weight, weight, mask)
        return tuple(one for one in found if one is not None)

    assert gradcheck(backward, (numbers(2, 3), numbers(2, 3), numbers(3)))


@pytest.mark.parametrize("train", [True, False])
def test_backward_of_batch_norm_moves_with_the_mean_and_deviation_of_its_input(train):
    running_mean, running_var = rd.zeros(3, dtype=rd.float64), rd.ones(3, dtype=rd.float64) * 2

    def backward(grad, x, weight):
        with rd.no_grad():
            mean, rstd = x.mean(0), (x.var(0, correction=0) + 0.1).rsqrt()
        stats = running_mean, running_var, mean, rstd
        return rd.ops.aten.native_batch_norm_backward.default(grad, x, weight, *stats, train, 0.1, [True] * 3)

    assert gradcheck(backward, (numbers(4, 3), numbers(4, 3), numbers(3)))


@pytest.mark.parametrize("mode", ["bilinear", "nearest", pytest.param("bicubic", marks=pytest.mark.long)])
def test_sampling_at_a_grid_has_derivatives_of_the_third_order(mode):
    image = numbers(1, 1, 2, 2)
    grid = rd.tensor([[[[0.13, -0.42]]]], dtype=rd.float64, requires_grad=True)

    def slopes(image, grid):
        sampled = F.grid_sample(image, grid, mode, align_corners=False).sin().sum()
        return rd.autograd.grad(sampled, (image, grid), create_graph=True)

    assert gradgradcheck(slopes, (image, grid))
