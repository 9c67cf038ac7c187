"""Losses as modules and functions: what each hands to its operator, and which targets and saved results they take."""

import inspect
import math

import numpy as np
import pytest

import redispatch as rd
from redispatch import nn
from redispatch.nn import functional as F
from redispatch.testing import assert_close

x = rd.tensor([[0.2, 0.7, 0.1], [0.4, 0.5, 0.9]])
y = rd.tensor([[0.3, 0.6, 0.2], [0.1, 0.9, 0.8]])
signs = rd.tensor([[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]])
classes = rd.tensor([2, 0])

CASES = [
    (nn.L1Loss, {}, (x, y), F.l1_loss),
    (nn.MSELoss, {}, (x, y), F.mse_loss),
    (nn.HuberLoss, {"delta": 0.1}, (x, y), F.huber_loss),
    (nn.SmoothL1Loss, {"beta": 0.1}, (x, y), F.smooth_l1_loss),
    (nn.SmoothL1Loss, {"beta": 0.0}, (x, y), F.smooth_l1_loss),
    (nn.SoftMarginLoss, {}, (x, signs), F.soft_margin_loss),
    (nn.KLDivLoss, {"log_target": True}, (x, y), F.kl_div),
    (nn.PoissonNLLLoss, {"full": True, "log_input": False}, (x, y), F.poisson_nll_loss),
    (nn.GaussianNLLLoss, {"full": True}, (x, y, y), F.gaussian_nll_loss),
    (nn.BCELoss, {"weight": y}, (x, y), F.binary_cross_entropy),
    (nn.BCEWithLogitsLoss, {"weight": y, "pos_weight": y[0]}, (x, y), F.binary_cross_entropy_with_logits),
    (nn.NLLLoss, {"weight": y[0]}, (x, classes), F.nll_loss),
    (nn.CrossEntropyLoss, {"label_smoothing": 0.1}, (x, classes), F.cross_entropy),
    (nn.MultiMarginLoss, {"p": 2, "margin": 0.5}, (x, classes), F.multi_margin_loss),
    (nn.MultiLabelMarginLoss, {}, (x, rd.tensor([[0, 2, -1], [1, -1, 0]])), F.multilabel_margin_loss),
    (nn.MultiLabelSoftMarginLoss, {"weight": y[0]}, (x, y), F.multilabel_soft_margin_loss),
    (nn.MarginRankingLoss, {"margin": 0.5}, (x, y, signs), F.margin_ranking_loss),
    (nn.HingeEmbeddingLoss, {"margin": 0.5}, (x, signs), F.hinge_embedding_loss),
    (nn.CosineEmbeddingLoss, {"margin": 0.5}, (x, y, signs[:, 0]), F.cosine_embedding_loss),
    (nn.TripletMarginLoss, {"margin": 0.5, "swap": True}, (x, y, signs), F.triplet_margin_loss),
    (nn.TripletMarginWithDistanceLoss, {"margin": 0.5}, (x, y, signs), F.triplet_margin_with_distance_loss),
]


@pytest.mark.parametrize("kind, options, inputs, function", CASES, ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
def test_a_module_is_its_function_with_its_options(kind, options, inputs, function, reduction):
    loss = kind(**options, reduction=reduction)
    assert_close(loss(*inputs), function(*inputs, **options, reduction=reduction))


@pytest.mark.parametrize("kind", [case[0] for case in CASES if "size_average" in inspect.signature(case[0]).parameters])
def test_the_old_switches_still_choose_the_reduction(kind):
    with pytest.warns(UserWarning, match="please use reduction='sum' instead"):
        assert kind(size_average=False).reduction == "sum"
    with pytest.warns(UserWarning, match="please use reduction='none' instead"):
        assert kind(reduce=False).reduction == "none"


def test_batchmean_is_the_sum_over_the_number_of_samples():
    assert_close(F.kl_div(x, y, reduction="batchmean"), F.kl_div(x, y, reduction="sum") / 2)


def test_a_sequence_without_a_batch_has_one_ctc_loss():
    scores = rd.rand(6, 4).log_softmax(1)
    alone = nn.CTCLoss(reduction="none")(scores, rd.tensor([1, 2]), (6,), (2,))
    batch = F.ctc_loss(scores.unsqueeze(1), rd.tensor([[1, 2]]), rd.tensor([6]), rd.tensor([2]), reduction="none")
    assert alone.shape == ()
    assert_close(alone, batch[0])


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_behind_log_softmax_the_gradient_of_ctc_loss_is_that_of_finite_differences(reduction):
    rd.manual_seed(0)
    scores = rd.randn(6, 3, 4, dtype=rd.float64, requires_grad=True)
    labels, times, counts = rd.tensor([[1, 1, 2], [3, 2, 0], [2, 0, 0]]), (6, 5, 3), (3, 2, 0)

    def loss(scores):
        return F.ctc_loss(scores.log_softmax(2), labels, times, counts, reduction=reduction)

    assert rd.autograd.gradcheck(loss, scores)


def test_an_impossible_sequence_has_an_infinite_loss_or_none():
    scores = rd.randn(2, 1, 4).log_softmax(2).requires_grad_()
    labels, lengths = rd.tensor([[1, 1]]), ((2,), (2,))  # a repetition needs a blank in between, and so three times
    assert F.ctc_loss(scores, labels, *lengths, reduction="sum").item() == math.inf
    loss = F.ctc_loss(scores, labels, *lengths, reduction="sum", zero_infinity=True)
    loss.backward()
    assert loss.item() == 0 and not scores.grad.any()


@pytest.mark.parametrize("out_features", [(), (2,)])
def test_linear_cross_entropy_is_that_of_a_linear_layers_results(out_features):
    loss = nn.LinearCrossEntropyLoss(3, 5, out_features=out_features, bias=True)
    target = rd.tensor([4, 1]) if not out_features else rd.tensor([[4, 1], [0, 2]])
    scores = loss.linear(x).reshape(2, 5, *out_features)
    assert_close(loss(x, target), F.cross_entropy(scores, target))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weight", [None, rd.tensor([0.5, 2.0, 1.0, 0.25])])
def test_linear_cross_entropy_in_chunks_is_the_same_with_its_gradients(reduction, weight):
    rows, target = rd.randn(7, 3), rd.tensor([0, 1, 2, 3, 3, -100, 1])
    found = []
    for options in (None, nn.LinearCrossEntropyOptions(batch_chunk_size=2), nn.LinearCrossEntropyOptions()):
        rd.manual_seed(1)
        leaves = [x.clone().requires_grad_() for x in (rows, rd.randn(4, 3), rd.randn(4))]
        how = {"linear_bias": leaves[2], "weight": weight, "reduction": reduction, "options": options}
        loss = F.linear_cross_entropy(*leaves[:2], target, **how)
        found.append([loss.detach(), *rd.autograd.grad(loss.square().sum(), leaves)])
    for other in found[1:]:
        for one, another in zip(found[0], other, strict=True):
            assert_close(one, another)


def test_options_of_linear_cross_entropy_say_what_is_wrong_with_them():
    for name, value in {"acc_policy": "x", "chunking_method": "x", "batch_chunk_size": 0, "acc_dtype": rd.int8}.items():
        with pytest.raises(ValueError, match=name):
            nn.LinearCrossEntropyOptions(**{name: value})
    with pytest.raises(ValueError, match="give different chunk sizes"):
        nn.LinearCrossEntropyOptions(batch_chunk_size=3, chunking_method="aspect_ratio").rows(8, 4, 4)
    with pytest.warns(UserWarning, match="``options`` ignored"):
        given = rd.randn(2, 3), rd.randn(4, 3), rd.tensor([0, 1])
        F.linear_cross_entropy(*given, label_smoothing=0.5, options=nn.LinearCrossEntropyOptions())


def test_adaptive_log_softmax_gives_each_class_its_probability():
    loss = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2.0, head_bias=True)
    inputs, target = rd.randn(6, 8), rd.tensor([0, 3, 11, 6, 7, 2])
    every = loss.log_prob(inputs)
    assert_close(every.exp().sum(1), rd.ones(6))
    output, mean = loss(inputs, target)
    assert_close(output, every.gather(1, target.unsqueeze(1)).squeeze(1))
    assert_close(mean, -output.mean())
    assert loss.predict(inputs).tolist() == every.argmax(1).tolist()
    assert_close(loss(inputs[2], target[2]).output, output[2])
    mean.backward()
    assert all(parameter.grad is not None for parameter in loss.parameters())


# Losses and the rest of nn.functional: what is the same loss in other words, and PyTorch's errors ---------------------

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


@pytest.mark.parametrize("target", [rd.arange(3), rd.full((3, 4), 0.25)], ids=["classes", "probabilities"])
def test_smoothing_by_more_than_one_is_refused(target):
    with pytest.raises(RuntimeError, match=r"label_smoothing must be between 0\.0 and 1\.0\. Got: 1\.2"):
        F.cross_entropy(rd.zeros(3, 4), target, label_smoothing=1.2)
