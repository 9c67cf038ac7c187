"""Losses and the rest of nn.functional: what is the same loss in other words, and PyTorch's errors."""

# ruff: noqa: E501  (error texts stay whole, so that they can be searched for)

import numpy as np
import pytest

import redispatch as rd
from redispatch.nn import functional as F

RANDOM = np.random.RandomState(0)


def test_probabilities_and_smoothed_labels_are_the_same_loss():
    x, y = rd.tensor(RANDOM.uniform(-1, 1, (4, 3))), rd.tensor([0, 2, 1, 1])
    spread = F.one_hot(y, 3).double() * 0.9 + 0.1 / 3
    for reduction in ("none", "mean", "sum"):
        smoothed = F.cross_entropy(x, y, reduction=reduction, label_smoothing=0.1)
        as_chances = F.cross_entropy(x, spread, reduction=reduction)
        np.testing.assert_allclose(smoothed.numpy(), as_chances.numpy())


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
