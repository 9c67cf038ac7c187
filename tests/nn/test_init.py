"""Initial values, their spread, and clipping."""

import math

import numpy as np
import pytest

import redispatch as rd
from redispatch import nn
from redispatch.nn import init

LARGE = (200, 300)


def test_an_initialiser_fills_in_place_unrecorded_and_returns_its_tensor():
    parameter = nn.Parameter(rd.empty(3))
    assert init.ones_(parameter) is parameter and parameter.tolist() == [1, 1, 1] and parameter.is_leaf
    assert init.zeros_(parameter).tolist() == [0, 0, 0] and init.constant_(parameter, 2.5).tolist() == [2.5] * 3
    assert init.eye_(rd.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    ("fill", "std", "bound"),
    [
        (lambda t: init.uniform_(t, -2, 2), 2 / math.sqrt(3), 2),
        (lambda t: init.normal_(t, 0, 3), 3, math.inf),
        (lambda t: init.xavier_uniform_(t, gain=2), 2 * math.sqrt(2 / 500), 2 * math.sqrt(6 / 500)),
        (lambda t: init.xavier_normal_(t), math.sqrt(2 / 500), math.inf),
        (lambda t: init.kaiming_uniform_(t, nonlinearity="relu"), math.sqrt(2 / 300), math.sqrt(6 / 300)),
        (lambda t: init.kaiming_normal_(t, mode="fan_out", nonlinearity="linear"), math.sqrt(1 / 200), math.inf),
    ],
)
def test_the_spread_is_that_of_the_scheme(fill, std, bound):
    rd.manual_seed(0)
    values = fill(rd.empty(LARGE)).numpy()
    assert abs(values.mean()) < 0.02 * std and abs(values.std() / std - 1) < 0.02
    assert np.abs(values).max() <= bound


@pytest.mark.parametrize(("mean", "std", "a", "b"), [(0.0, 1.0, -2.0, 2.0), (0.0, 1.0, 1.5, 3.0), (1.0, 0.5, 0.9, 1.1)])
def test_a_truncated_normal_stays_in_its_bounds_with_the_right_mean(mean, std, a, b):
    rd.manual_seed(0)
    values = init.trunc_normal_(rd.empty(LARGE), mean, std, a, b).numpy()
    assert values.min() >= a and values.max() <= b
    grid = np.linspace(a, b, 10001)
    density = np.exp(-(((grid - mean) / std) ** 2) / 2)
    assert abs(values.mean() - np.average(grid, weights=density)) < 0.01


def test_a_truncated_normal_warns_where_its_mean_is_far_outside():
    with pytest.warns(UserWarning, match="mean is more than 2 std from"):
        init.trunc_normal_(rd.empty(3), mean=10)


def test_gains_and_fans():
    gains = [init.calculate_gain(name) for name in ("linear", "conv2d", "sigmoid", "tanh", "relu", "selu")]
    assert gains == [1, 1, 1, 5 / 3, math.sqrt(2), 0.75]
    assert init.calculate_gain("leaky_relu", 1) == 1
    assert init._calculate_fan_in_and_fan_out(rd.empty(4, 3, 5)) == (15, 20)


def test_an_empty_weight_is_left_alone_with_a_warning():
    with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
        init.kaiming_uniform_(rd.empty(0, 3))


# Clipping and vectors -------------------------------------------------------------------------------------------------


def parameters_with_gradients():
    parameters = [nn.Parameter(rd.zeros(2)), nn.Parameter(rd.zeros(1)), nn.Parameter(rd.zeros(1))]
    parameters[0].grad, parameters[1].grad = rd.tensor([3.0, -4.0]), rd.tensor([12.0])
    return parameters


@pytest.mark.parametrize(
    ("order", "norm"), [(2, 13.0), (1, 19.0), (math.inf, 12.0), (3, (27 + 64 + 1728) ** (1 / 3)), (0, 3.0)]
)
def test_clipping_scales_all_gradients_by_one_factor(order, norm):
    parameters = parameters_with_gradients()
    total = nn.utils.clip_grad_norm_(parameters, 1.0, order)
    assert total.item() == pytest.approx(norm if order else 2.0, rel=1e-6)
    if order:
        assert parameters[0].grad.tolist() == pytest.approx([3 / norm, -4 / norm], rel=1e-5)


def test_clipping_never_scales_up():
    parameters = parameters_with_gradients()
    nn.utils.clip_grad_norm_(iter(parameters), 100.0)
    assert parameters[0].grad.tolist() == [3, -4]
    nn.utils.clip_grad_value_(parameters, 3.5)
    assert parameters[0].grad.tolist() == [3, -3.5] and parameters[1].grad.tolist() == [3.5]


def test_clipping_says_where_a_norm_is_not_finite():
    parameters = parameters_with_gradients()
    parameters[0].grad[0] = math.inf
    with pytest.raises(RuntimeError, match="The total norm of order 2.0 for gradients from `parameters` is non-finite"):
        nn.utils.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)
    assert nn.utils.clip_grad_norm_([nn.Parameter(rd.ones(1))], 1.0).item() == 0


def test_parameters_go_into_one_vector_and_back():
    net = nn.Linear(2, 2)
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert vector.tolist() == [*net.weight.flatten().tolist(), *net.bias.tolist()]
    nn.utils.vector_to_parameters(rd.arange(6.0), net.parameters())
    assert net.weight.tolist() == [[0, 1], [2, 3]] and net.bias.tolist() == [4, 5]
    with pytest.raises(TypeError, match="expected torch.Tensor, but got: int"):
        nn.utils.vector_to_parameters(3, net.parameters())


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 3)])
def test_orthogonal_rows_or_columns(shape):
    matrix = init.orthogonal_(rd.empty(*shape), gain=2.0).flatten(1)
    product = matrix @ matrix.t() if matrix.shape[0] <= matrix.shape[1] else matrix.t() @ matrix
    assert rd.allclose(product, 4 * rd.eye(len(product)), atol=1e-5)


def test_dirac_hands_channels_through():
    weight = init.dirac_(rd.empty(4, 2, 3, 3), groups=2)
    x = rd.randn(1, 4, 5, 5)
    assert rd.allclose(nn.functional.conv2d(x, weight, padding=1, groups=2), x)


def test_sparse_zeroes_a_share_of_each_column():
    matrix = init.sparse_(rd.empty(10, 3), 0.35)
    assert (matrix == 0).sum(0).tolist() == [4, 4, 4]
