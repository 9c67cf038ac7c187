"""The older norms of weights, which are hooks; former names; the memory format of weights. Values: PyTorch 2.13's."""

import pytest

import redispatch as rd
from redispatch import nn
from redispatch.nn import utils
from redispatch.testing import assert_close

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
