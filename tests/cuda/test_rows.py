"""Softmax, losses and norms on the simulated device, against the CPU's."""

import re

import numpy as np
import pytest

import redispatch as rd
from redispatch.kernels.cuda import compiler
from redispatch.kernels.cuda.ops import softmax
from redispatch.nn import functional as F
from redispatch.testing import assert_close

from .helpers import compare, same_gradients

pytestmark = pytest.mark.usefixtures("simulator")

# --- softmax ----------------------------------------------------------------------------------------------------------

SHAPES = [((3, 5), 1), ((2, 300), -1), ((2, 7, 33), 1), ((5,), 0), ((0, 3), 1), ((3, 0), 1), ((4, 3, 2), 0), ((), 0)]


@pytest.mark.parametrize("shape,dim", SHAPES)
def test_softmax_over_every_dimension(shape, dim):
    x = rd.randn(shape)
    same_gradients(lambda x: rd.softmax(x, dim), x)
    same_gradients(lambda x: rd.log_softmax(x, dim), x)
    compare(rd.logsumexp(x.cuda(), dim), rd.logsumexp(x, dim))


@pytest.mark.parametrize("dtype", [rd.float16, rd.bfloat16], ids=str)
def test_softmax_of_16_bit_floats_of_a_transposed_tensor(dtype):
    x = rd.randn(7, 3).to(dtype)
    compare(rd.log_softmax(x.cuda().t(), 1), rd.log_softmax(x.t(), 1))


def test_softmax_of_what_is_infinite():
    x = rd.tensor([[1.0, float("inf")], [-float("inf"), -float("inf")], [float("nan"), 0.0], [1e30, 1.0]])
    for function in (rd.softmax, rd.log_softmax, rd.logsumexp):
        compare(function(x.cuda(), 1), function(x, 1))
    compare(rd.logsumexp(x.cuda(), (0, 1)), rd.logsumexp(x, (0, 1)))
    out = rd.empty(4, 4, device="cuda")[:, ::2]
    assert rd.ops.aten._softmax.out(x.cuda(), 1, False, out=out) is out
    assert_close(out.cpu(), rd.softmax(x, 1), equal_nan=True)


def test_a_row_is_read_in_single_precision():
    given = {"TOGETHER": 1, "lowest": np.float32(-np.inf), "LOGARITHM": True, **softmax.BY_BLOCK}
    source = softmax.SOFTMAX.source("float32", ["bfloat16"] * 2, **given)
    code = compiler.ptx(source)
    assert "shfl.sync" in code and not re.search(r"\.f64|\.local|\bcall\b", code)


# --- losses -----------------------------------------------------------------------------------------------------------

LOSSES = [
    ((7, 5), (7,), "mean"),
    ((7, 5), (7,), "none"),
    ((2, 5, 3, 4), (2, 3, 4), "sum"),
    ((2, 5, 3), (2, 3), "none"),
    ((5,), (), "mean"),
    ((0, 5), (0,), "mean"),
    ((4100, 2), (4100,), "mean"),
]


@pytest.mark.parametrize("shape,labels,reduction", LOSSES)
def test_cross_entropy(shape, labels, reduction):
    target = rd.arange(rd.Size(labels).numel()).reshape(labels) % shape[min(1, len(shape) - 1)]
    if target.numel() > 2:
        target.view(-1)[1] = -100
    weight = rd.arange(1.0, 1.0 + shape[min(1, len(shape) - 1)])
    x = rd.randn(shape)
    same_gradients(lambda x: F.cross_entropy(x, target.to(x.device), reduction=reduction), x)
    same_gradients(lambda x: F.cross_entropy(x, target.to(x.device), weight.to(x.device), reduction=reduction), x)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_label_that_is_no_class_is_told_of_when_the_program_waits(reduction):
    x, target = rd.randn(4, 3, device="cpu").cuda(), rd.tensor([0, 2, 3, -100]).cuda()
    loss = F.nll_loss(x, target, reduction=reduction)
    with pytest.raises(IndexError, match="nll_loss: index 3 is out of bounds for dimension 1 with size 3"):
        loss.cpu()
    F.nll_loss(x, target.clamp(max=2), reduction=reduction).cpu()  # and the next call is a call like any other


# --- norms ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape,size", [((3, 5), 5), ((2, 300), 300), ((2, 3, 33), 33), ((0, 4), 4), ((40, 1), 1)])
def test_layer_norm_and_its_gradients(shape, size):
    same_gradients(lambda x, w, b: F.layer_norm(x, [size], w, b), rd.randn(shape), rd.randn(size), rd.randn(size))
    turned = rd.randn(shape).transpose(0, -1).contiguous().transpose(0, -1)
    same_gradients(lambda x, b: F.layer_norm(x, [size], None, b), turned, rd.randn(size))


def test_layer_norm_of_bfloat16_with_weights_of_float32():
    x, w, b = rd.randn(3, 7).bfloat16(), rd.randn(7), rd.randn(7)
    found = F.layer_norm(x.cuda(), [7], w.cuda(), b.cuda())
    assert found.dtype is rd.bfloat16
    assert_close(found.cpu(), F.layer_norm(x.float(), [7], w, b).bfloat16())  # nothing between is rounded to 16 bits


def test_group_norm_and_its_gradients():
    x = rd.randn(2, 6, 3, 5)
    same_gradients(lambda x, w, b: F.group_norm(x, 3, w, b), x, rd.randn(6), rd.randn(6))
    same_gradients(lambda x: F.group_norm(x, 2), x)


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 5), (2, 3, 4, 5), (5, 1, 2, 3)])
def test_batch_norm_trains_moves_its_statistics_and_evaluates(shape):
    here = rd.nn.BatchNorm1d(shape[1]) if len(shape) < 4 else rd.nn.BatchNorm2d(shape[1])
    there = type(here)(shape[1]).cuda()
    for training in (True, True, False):
        x = rd.randn(shape)
        a, b = x.cuda().requires_grad_(), x.clone().requires_grad_()
        ours, theirs = there.train(training)(a), here.train(training)(b)
        compare(ours, theirs)
        ours.square().sum().backward()
        theirs.square().sum().backward()
        assert_close(a.grad.cpu(), b.grad, atol=1e-5, rtol=1e-4)
    assert_close([v.cpu() for v in there.state_dict().values()], list(here.state_dict().values()))
    assert_close([p.grad.cpu() for p in there.parameters()], [p.grad for p in here.parameters()])


def test_a_norm_of_channels_last_lies_so():
    x = rd.randn(2, 4, 3, 5).to(memory_format=rd.channels_last)
    compare(F.batch_norm(x.cuda(), None, None, training=True), F.batch_norm(x, None, None, training=True))
