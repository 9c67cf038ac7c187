"""Softmax, losses, layer norm and the rest of nn.functional, against numpy and PyTorch's errors."""

# ruff: noqa: E501  (error texts stay whole, so that they can be searched for)

import numpy as np
import pytest

import redispatch as rd
from redispatch.nn import functional as F

RANDOM = np.random.RandomState(0)


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("dtype", [rd.float32, rd.float64, rd.bfloat16])
def test_softmax_agrees_with_numpy(dim, dtype):
    array = RANDOM.uniform(-3, 3, (3, 4, 2))
    x = rd.tensor(array).to(dtype)
    tolerance = {"bfloat16": 3e-2, "float32": 1e-5}.get(dtype.name, 1e-12)
    np.testing.assert_allclose(F.softmax(x, dim).double().numpy(), softmax(array, dim), atol=tolerance)
    expected = np.log(softmax(array, dim))
    np.testing.assert_allclose(F.log_softmax(x, dim).double().numpy(), expected, atol=3 * tolerance)


def nll(scores, target, weight, ignored, reduction):
    """By the definition, one element after the other. Classes along the second dimension."""
    scores, used = np.moveaxis(scores, 1, -1), target != ignored
    safe = np.where(used, target, 0)
    weights = np.where(used, weight[safe], 0)
    each = -np.take_along_axis(scores, safe[..., None], -1)[..., 0] * weights
    return each if reduction == "none" else each.sum() / (weights.sum() if reduction == "mean" else 1)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("rest", [(), (4,), (2, 3), (2, 1, 2)])
def test_nll_loss_and_cross_entropy_follow_their_definitions(rest, reduction):
    array, weight = RANDOM.uniform(-2, 2, (3, 5, *rest)), RANDOM.uniform(0.5, 2, 5)
    target = RANDOM.randint(0, 5, (3, *rest))
    target.flat[0] = -100
    x, y, w = rd.tensor(array, requires_grad=True), rd.tensor(target), rd.tensor(weight)
    loss = F.nll_loss(x, y, w, reduction=reduction)
    np.testing.assert_allclose(loss.detach().numpy(), nll(array, target, weight, -100, reduction))
    loss = F.cross_entropy(x, y, w, reduction=reduction)
    np.testing.assert_allclose(loss.detach().numpy(), nll(np.log(softmax(array, 1)), target, weight, -100, reduction))
    loss.sum().backward()
    chances = softmax(array, 1)
    weights = np.where(target == -100, 0, weight[np.where(target == -100, 0, target)])
    hot = np.moveaxis(np.eye(5)[np.where(target == -100, 0, target)], -1, 1)
    expected = (chances - hot) * weights[:, None] / (weights.sum() if reduction == "mean" else 1)
    np.testing.assert_allclose(x.grad.numpy(), expected, atol=1e-12)


def test_probabilities_and_smoothed_labels_are_the_same_loss():
    x, y = rd.tensor(RANDOM.uniform(-1, 1, (4, 3))), rd.tensor([0, 2, 1, 1])
    spread = F.one_hot(y, 3).double() * 0.9 + 0.1 / 3
    for reduction in ("none", "mean", "sum"):
        smoothed = F.cross_entropy(x, y, reduction=reduction, label_smoothing=0.1)
        as_chances = F.cross_entropy(x, spread, reduction=reduction)
        np.testing.assert_allclose(smoothed.numpy(), as_chances.numpy())


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_differences(reduction):
    a, b = RANDOM.uniform(-2, 2, (2, 3)), RANDOM.uniform(0, 1, (2, 3))
    reduce = {"none": lambda e: e, "mean": np.mean, "sum": np.sum}[reduction]
    x, y = rd.tensor(a, requires_grad=True), rd.tensor(b)
    np.testing.assert_allclose(F.mse_loss(x, y, reduction=reduction).detach().numpy(), reduce((a - b) ** 2))
    np.testing.assert_allclose(F.l1_loss(x, y, reduction=reduction).detach().numpy(), reduce(abs(a - b)))
    chance = 1 / (1 + np.exp(-a))
    expected = -(b * np.log(chance) + (1 - b) * np.log(1 - chance))
    loss = F.binary_cross_entropy_with_logits(x, y, reduction=reduction)
    np.testing.assert_allclose(loss.detach().numpy(), reduce(expected))
    loss.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), (chance - b) / (a.size if reduction == "mean" else 1))


def test_layer_norm_has_mean_zero_and_variance_one():
    array = RANDOM.uniform(-3, 5, (4, 2, 3))
    weight, bias = rd.full((2, 3), 2.0).double(), rd.ones(2, 3).double()
    result = F.layer_norm(rd.tensor(array), (2, 3), weight, bias, eps=0.0).numpy()
    standard = (array - array.mean((1, 2), keepdims=True)) / array.std((1, 2), keepdims=True)
    np.testing.assert_allclose(result, 2 * standard + 1)


def test_layer_norm_has_gradients_of_both_orders():
    x, w, b = (rd.tensor(RANDOM.uniform(0.5, 2, s), requires_grad=True) for s in ((4, 3), (3,), (3,)))
    assert rd.autograd.gradcheck(lambda *a: F.layer_norm(a[0], (3,), *a[1:]), (x, w, b))
    first = rd.autograd.grad((F.layer_norm(x, (3,), w, b) ** 3).sum(), x, create_graph=True)[0]
    assert rd.autograd.grad((first**2).sum(), x)[0].shape == x.shape


def test_one_hot():
    assert F.one_hot(rd.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert F.one_hot(rd.zeros(0, dtype=rd.int64), 3).shape == (0, 3)


def test_embedding_takes_rows():
    weight = rd.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    rows = F.embedding(rd.tensor([[1, 0], [1, 1]]), weight, padding_idx=0)
    assert rows[0].tolist() == [[3, 4], [1, 2]]
    rows.sum().backward()
    assert weight.grad.tolist() == [[0, 0], [3, 3]]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda o: F.softmax(o(2).long(), 0), NotImplementedError, "\"softmax_lastdim_kernel_impl\" not implemented for 'Long'"),
        (lambda o: F.nll_loss(o(2, 3), rd.tensor([0, 5])), IndexError, "Target 5 is out of bounds."),
        (lambda o: F.nll_loss(o(2, 3), rd.tensor([0, 1, 2])), ValueError, "Expected input batch_size (2) to match target batch_size (3)."),
        (lambda o: F.nll_loss(o(2, 3), rd.tensor([0.0, 1])), RuntimeError, "expected target dtype to be Long or Byte, but got Float"),
        (lambda o: F.nll_loss(o(2, 3), rd.tensor([0, 1]), weight=o(2)), RuntimeError, "weight tensor should be defined either for all 3 classes or no classes but got weight tensor of shape: [2]"),
        (lambda o: F.nll_loss(o(2, 3), rd.tensor([0, 1]), reduction="x"), ValueError, "x is not a valid value for reduction"),
        (lambda o: F.nll_loss(o(2, 3, 4), rd.zeros(2, 5, dtype=rd.int64)), RuntimeError, "Expected target size [2, 4], got [2, 5]"),
        (lambda o: F.cross_entropy(o(2, 3), rd.tensor([0, 1]), label_smoothing=2.0), RuntimeError, "label_smoothing must be between 0.0 and 1.0. Got: 2"),
        (lambda o: F.cross_entropy(o(2, 3), o(2, 3), ignore_index=1), RuntimeError, "ignore_index is not supported for floating point target"),
        (lambda o: F.binary_cross_entropy_with_logits(o(2), o(3)), ValueError, "Target size (torch.Size([3])) must be the same as input size (torch.Size([2]))"),
        (lambda o: F.layer_norm(o(2, 3), (2,)), RuntimeError, "Given normalized_shape=[2], expected input with shape [*, 2], but got input of size[2, 3]"),
        (lambda o: F.one_hot(rd.tensor([-1])), RuntimeError, "Class values must be non-negative."),
        (lambda o: F.dropout(o(2), 1.5), ValueError, "dropout probability has to be between 0 and 1, but got 1.5"),
    ],
)  # fmt: skip
def test_errors_are_pytorchs(call, error, text):
    with pytest.raises(error) as caught:
        call(rd.ones)
    assert str(caught.value) == text


def test_another_shape_warns():
    with pytest.warns(UserWarning, match="Using a target size"):
        assert F.mse_loss(rd.ones(2, 3), rd.zeros(3)).item() == 1


def test_saved_results_of_another_call_are_refused_by_the_gradient_of_ctc_loss():
    scores, targets = rd.randn(5, 2, 3).log_softmax(2), rd.tensor([[1, 2], [2, 1]])
    losses, alpha = rd.ops.aten._ctc_loss.default(scores, targets, [5, 5], [2, 2])

    def gradient(grad, losses, alpha):
        return rd.ops.aten._ctc_loss_backward.default(grad, scores, targets, [5, 5], [2, 2], losses, alpha, 0)

    assert gradient(rd.ones(2), losses, alpha).shape == scores.shape
    for wrong in ((rd.ones(()), losses, alpha), (rd.ones(2), losses[:1], alpha), (rd.ones(2), losses, alpha[:, :, :3])):
        with pytest.raises(
            RuntimeError, match="_ctc_loss_backward: expected (grad|neg_log_likelihood|log_alpha) of shape"
        ):
            gradient(*wrong)
    with pytest.raises(RuntimeError, match="and dtype torch.float32"):
        gradient(rd.ones(2).double(), losses, alpha)
