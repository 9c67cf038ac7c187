"""Losses and the rest of nn.functional: what is the same loss in other words, and PyTorch's errors."""

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
