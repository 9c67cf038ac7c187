"""Parametrizations, and the older norms of weights, which are hooks."""

import copy
import pickle

import pytest

import redispatch as rd
from redispatch import nn
from redispatch.nn import utils
from redispatch.nn.utils import fuse_conv_bn_eval, fuse_linear_bn_eval, parametrizations, parametrize, skip_init
from redispatch.testing import assert_close

# Parameters that are computed -----------------------------------------------------------------------------------------

# What is saved, set, copied and taken away; norms of weights; fused batch norms.


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).t()

    def right_inverse(self, x):
        return x.triu()


class Doubled(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return 2 * x


def symmetric():
    return parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())


def test_the_attribute_is_computed_from_a_parameter():
    layer = symmetric()
    assert type(layer).__name__ == "ParametrizedLinear" and isinstance(layer, nn.Linear)
    assert_close(layer.weight, layer.weight.t())
    assert [name for name, _ in layer.named_parameters()] == ["bias", "parametrizations.weight.original"]
    layer(rd.ones(2, 3)).sum().backward()
    assert not layer.parametrizations.weight.original.grad.tril(-1).any()
    assert parametrize.is_parametrized(layer, "weight") and not parametrize.is_parametrized(layer, "bias")
    assert parametrize.type_before_parametrizations(layer) is nn.Linear


def test_setting_the_attribute_sets_the_parameter():
    layer, wanted = symmetric(), rd.tensor([[1.0, 2, 3], [2, 4, 5], [3, 5, 6]])
    layer.weight = wanted
    assert_close(layer.weight, wanted)
    assert_close(layer.parametrizations.weight.original, wanted.triu())


def test_several_run_one_after_the_other_and_once_where_values_are_cached():
    layer, doubled = symmetric(), Doubled()
    once = layer.weight
    parametrize.register_parametrization(layer, "weight", doubled)
    doubled.calls = 0
    with parametrize.cached():
        assert_close(layer.weight, 2 * once)
        assert layer.weight is layer.weight
    assert doubled.calls == 1
    assert layer.weight is not layer.weight
    with pytest.raises(RuntimeError, match="parametrization Doubled does not implement right_inverse"):
        layer.weight = once


@pytest.mark.parametrize("leave", [True, False])
def test_taken_away_it_is_a_parameter_again(leave):
    layer = symmetric()
    value, original = layer.weight.detach(), layer.parametrizations.weight.original
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=leave)
    assert type(layer) is nn.Linear and list(dict(layer.named_parameters())) == ["bias", "weight"]
    assert layer.weight is original and isinstance(layer.weight, nn.Parameter)
    assert rd.equal(layer.weight, value) is leave
    with pytest.raises(ValueError, match="does not have a parametrization on weight"):
        parametrize.remove_parametrizations(layer, "weight")


def test_copies_are_apart_and_pickles_refused():
    layer = symmetric()
    other = copy.deepcopy(layer)
    with rd.no_grad():
        other.parametrizations.weight.original.zero_()
    assert layer.weight.any() and not other.weight.any()
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        pickle.dumps(layer)


# --- norms of weights -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_keeps_the_weight_and_learns_its_length_apart(dim):
    layer = nn.Linear(3, 4)
    before = layer.weight.detach().clone()
    parametrizations.weight_norm(layer, dim=dim)
    assert_close(layer.weight, before)
    length, direction = layer.parametrizations.weight.originals()
    with rd.no_grad():
        length.mul_(2)
        direction.mul_(5)
    assert_close(layer.weight, 2 * before)
    assert length.shape == {0: (4, 1), 1: (1, 3), None: ()}[dim]


def test_weight_norm_reads_older_checkpoints():
    layer = parametrizations.weight_norm(nn.Linear(2, 2))
    saved = {"bias": rd.zeros(2), "weight_g": rd.ones(2, 1), "weight_v": rd.eye(2)}
    layer.load_state_dict(saved)
    assert_close(layer.weight, rd.eye(2))


@pytest.mark.parametrize("layer", [nn.Linear(5, 4), nn.Conv2d(3, 4, 2), nn.ConvTranspose2d(3, 4, 2)])
def test_spectral_norm_makes_the_largest_singular_value_one(layer):
    rd.manual_seed(0)
    parametrizations.spectral_norm(layer, n_power_iterations=30)
    matrix = layer.weight.movedim(1, 0) if isinstance(layer, nn.ConvTranspose2d) else layer.weight
    assert_close(rd.linalg.svdvals(matrix.flatten(1)).max(), rd.tensor(1.0), rtol=1e-3, atol=1e-3)
    layer.eval()
    assert rd.equal(layer.weight, layer.weight)
    with pytest.raises(ValueError, match="has no parameter or buffer with name 'width'"):
        parametrizations.spectral_norm(nn.Linear(2, 2), "width")


# --- orthogonal weights -----------------------------------------------------------------------------------------------

MAPS = ("matrix_exp", "cayley", "householder")


@pytest.mark.parametrize("trivialized", [True, False])
@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_an_orthogonal_weight_stays_so_while_it_is_trained(shape, name, trivialized):
    rd.manual_seed(0)
    layer = nn.Linear(*reversed(shape), dtype=rd.float64)
    parametrizations.orthogonal(layer, orthogonal_map=name, use_trivialization=trivialized)
    original = layer.parametrizations.weight.original
    before = layer.weight.detach().clone()
    optimizer = rd.optim.SGD([original], lr=0.1)
    for _ in range(2):
        layer(rd.randn(5, shape[1], dtype=rd.float64)).pow(3).sum().backward()
        optimizer.step()
    q = layer.weight if shape[0] >= shape[1] else layer.weight.mT
    assert_close(q.mT @ q, rd.eye(2 if 2 in shape else 3, dtype=rd.float64))
    assert not rd.allclose(layer.weight, before)


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (2, 5, 3)])
def test_an_orthogonal_matrix_can_be_assigned(shape, name):
    rd.manual_seed(0)
    module = nn.Module()
    module.weight = nn.Parameter(rd.randn(shape, dtype=rd.float64))
    parametrizations.orthogonal(module, orthogonal_map=name)
    wanted = nn.init.orthogonal_(rd.empty(shape[-2:], dtype=rd.float64)).expand(shape).clone()
    module.weight = wanted
    assert_close(module.weight, wanted)
    bare = nn.Module()
    bare.weight = nn.Parameter(rd.randn(shape, dtype=rd.float64))
    parametrizations.orthogonal(bare, orthogonal_map=name, use_trivialization=False)
    if name == "householder":
        bare.weight = wanted
        assert_close(bare.weight, wanted)
    else:
        with pytest.raises(NotImplementedError, match="not possible to assign"):
            bare.weight = wanted


def test_the_maps_of_a_small_skew_matrix_are_the_rotations_of_the_book():
    made, turn = nn.Linear(2, 2, bias=False, dtype=rd.float64), 0.3
    angles = {"matrix_exp": turn, "cayley": 2 * rd.atan(rd.tensor(turn / 2, dtype=rd.float64)).item()}
    for name, angle in angles.items():
        with rd.no_grad():
            made.weight.copy_(rd.tensor([[7.0, 9.0], [turn, 8.0]]))  # of which the part below the diagonal counts
        layer = parametrizations.orthogonal(copy.deepcopy(made), "weight", name, use_trivialization=False)
        c, s = rd.tensor(angle, dtype=rd.float64).cos(), rd.tensor(angle, dtype=rd.float64).sin()
        assert_close(layer.weight, rd.stack([rd.stack([c, -s]), rd.stack([s, c])]))


def test_complex_weights_become_unitary():
    module = nn.Module()
    module.weight = nn.Parameter(rd.randn(2, 3, 3, dtype=rd.complex128))
    parametrizations.orthogonal(module)
    assert module.parametrizations.weight[0].orthogonal_map == "matrix_exp"
    assert_close(module.weight @ module.weight.mH, rd.eye(3, dtype=rd.complex128).expand(2, 3, 3))
    module.weight.real.sum().backward()
    assert module.parametrizations.weight.original.grad.any()


def test_an_orthogonal_weight_is_saved_with_its_base():
    layer, other = (parametrizations.orthogonal(nn.Linear(4, 2)) for _ in range(2))
    assert list(layer.state_dict())[1:] == ["parametrizations.weight.original", "parametrizations.weight.0.base"]
    other.load_state_dict(layer.state_dict())
    assert rd.equal(other.weight, layer.weight)


# --- from one module to another ---------------------------------------------------------------------------------------


def test_parametrizations_move_to_another_module_with_what_they_start_from():
    class Product(nn.Module):
        def forward(self, a, b):
            return a @ b

        def right_inverse(self, weight):
            return weight[:, :1].clone(), weight[:1].clone()

    source, target = symmetric(), nn.Linear(3, 3)
    assert parametrize.transfer_parametrizations_and_params(source, target) is target
    assert rd.equal(target.weight, source.weight) and not rd.equal(target.bias, source.bias)
    assert target.parametrizations.weight.original is source.parametrizations.weight.original
    pair, empty = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Product()), nn.ReLU()
    parametrize.transfer_parametrizations_and_params(pair, empty, "weight")
    assert rd.equal(empty.weight, pair.weight) and parametrize.type_before_parametrizations(empty) is nn.ReLU
    plain = nn.Linear(1, 1)
    parametrize.transfer_parametrizations_and_params(nn.Linear(1, 1), plain)
    assert not parametrize.is_parametrized(plain)


# --- batch norms taken in, initial values left out --------------------------------------------------------------------


@pytest.mark.parametrize("transpose", [False, True])
def test_a_fused_convolution_does_what_both_do(transpose):
    conv = (nn.ConvTranspose2d if transpose else nn.Conv2d)(3, 4, 3, bias=transpose).eval()
    norm, x = nn.BatchNorm2d(4), rd.randn(2, 3, 6, 6)
    norm(conv(x))  # its statistics are of something
    norm.eval()
    assert_close(fuse_conv_bn_eval(conv, norm, transpose)(x), norm(conv(x)), rtol=1e-4, atol=1e-5)
    linear, norm = nn.Linear(3, 4).eval(), nn.BatchNorm1d(4).eval()
    assert_close(fuse_linear_bn_eval(linear, norm)(x[..., 0, 0]), norm(linear(x[..., 0, 0])), rtol=1e-4, atol=1e-5)
    with pytest.raises(AssertionError, match="Fusion only for eval!"):
        fuse_conv_bn_eval(conv.train(), norm)


def test_a_module_may_be_made_without_its_initial_values():
    layer = skip_init(nn.Linear, 3, 4)
    assert layer.weight.shape == (4, 3) and layer.weight.device.type == "cpu"
    with pytest.raises(RuntimeError, match="Module must support a 'device' arg"):
        skip_init(nn.ReLU)


# The older norms of weights, which are hooks --------------------------------------------------------------------------

# Former names; the memory format of weights. Values: PyTorch 2.13's.

WEIGHT = [[3.0, 0.0, 4.0], [0.0, 5.0, 12.0]]


def layer():
    made = nn.Linear(3, 2)
    with rd.no_grad():
        made.weight.copy_(rd.tensor(WEIGHT))
        made.bias.zero_()
    return made


@pytest.mark.parametrize(("dim", "length"), [(0, [[5.0], [13.0]]), (1, [[3.0, 5.0, 160**0.5]]), (None, 194**0.5)])
def test_weight_norm_makes_the_weight_before_each_forward(dim, length):
    with pytest.warns(FutureWarning, match="deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`"):
        normed = utils.weight_norm(layer(), dim=dim)
    assert list(normed.state_dict()) == ["bias", "weight_g", "weight_v"]
    assert_close(normed.weight_g.detach(), rd.tensor(length))
    with rd.no_grad():
        normed.weight_g.mul_(2)
    assert_close(normed(rd.ones(1, 3)), rd.tensor([[14.0, 34.0]]))
    normed(rd.ones(1, 3)).sum().backward()
    assert normed.weight_g.grad.shape == normed.weight_g.shape and normed.weight_v.grad.shape == (2, 3)
    with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="Cannot register two weight_norm hooks"):
        utils.weight_norm(normed)
    utils.remove_weight_norm(normed)
    assert_close(normed.weight.detach(), 2 * rd.tensor(WEIGHT))
    assert list(dict(normed.named_parameters())) == ["bias", "weight"] and not normed._forward_pre_hooks
    with pytest.raises(ValueError, match="weight_norm of 'weight' not found in Linear"):
        utils.remove_weight_norm(normed)


def test_spectral_norm_steps_in_training_and_divides_by_what_it_found():
    normed = utils.spectral_norm(layer())
    assert sorted(normed.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    assert type(normed.weight) is rd.Tensor and not normed.weight.requires_grad
    for _ in range(20):
        normed(rd.ones(1, 3))
    assert_close(rd.linalg.matrix_norm(normed.weight, 2), rd.tensor(1.0))
    u = normed.weight_u.clone()
    normed.eval()(rd.ones(1, 3)).sum().backward()
    assert rd.equal(normed.weight_u, u) and normed.weight_orig.grad.shape == (2, 3)
    with pytest.raises(RuntimeError, match="Cannot register two spectral_norm hooks"):
        utils.spectral_norm(normed)
    utils.remove_spectral_norm(normed)
    assert list(normed.state_dict()) == ["bias", "weight"] and isinstance(normed.weight, nn.Parameter)
    with pytest.raises(ValueError, match="spectral_norm of 'weight' not found in Linear"):
        utils.remove_spectral_norm(normed)


def test_spectral_norm_takes_one_step_in_each_training_call():
    normed = utils.spectral_norm(layer())
    with rd.no_grad():
        normed.weight_u.fill_(0.5)
    # Wᵀu = (1.5, 2.5, 8), so v = (0.1762, 0.2937, 0.9395) and |Wv| = |(4.2866, 12.7423)| = 13.4440.
    assert_close(normed(rd.ones(1, 3)), rd.tensor([[7.0, 17.0]]) / 13.4440, rtol=1e-4, atol=0)


def test_spectral_norm_of_a_transposed_convolution_is_along_its_outputs():
    assert utils.spectral_norm(nn.ConvTranspose2d(2, 3, 2)).weight_u.shape == (3,)
    assert utils.spectral_norm(nn.Conv2d(2, 3, 2)).weight_v.shape == (8,)
    with pytest.raises(ValueError, match="n_power_iterations=0"):
        utils.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)
    with pytest.raises(KeyError, match="width"):
        utils.spectral_norm(nn.Linear(2, 2), "width")
    with pytest.raises(ValueError, match="parameter `bias` is None"):
        utils.spectral_norm(nn.Linear(2, 2, bias=False), "bias")


def test_the_former_name_of_clipping_warns():
    weight = nn.Parameter(rd.zeros(2))
    weight.grad = rd.tensor([3.0, 4.0])
    with pytest.warns(FutureWarning, match="deprecated in favor of `torch.nn.utils.clip_grad_norm_`"):
        assert utils.clip_grad_norm([weight], 1.0) == 5
    assert_close(weight.grad, rd.tensor([0.6, 0.8]))


def test_weights_of_convolutions_are_laid_out_anew():
    model = nn.Sequential(nn.Conv2d(3, 4, 2), nn.Sequential(nn.ConvTranspose2d(3, 4, 2)), nn.Conv3d(3, 4, 2))
    before = model[0].weight.detach().clone()
    assert utils.convert_conv2d_weight_memory_format(model, rd.channels_last) is model
    assert model[0].weight.stride() == (12, 1, 6, 3)
    assert model[1][0].weight.is_contiguous(memory_format=rd.channels_last)
    assert rd.equal(model[0].weight, before) and model[2].weight.is_contiguous()
    utils.convert_conv3d_weight_memory_format(model, rd.channels_last_3d)
    assert model[2].weight.is_contiguous(memory_format=rd.channels_last_3d)
