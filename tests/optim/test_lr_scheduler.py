"""Learning rate schedules against their closed forms."""

import math

import pytest

import redispatch as rd
from redispatch import nn
from redispatch.optim import SGD
from redispatch.optim.lr_scheduler import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    LRScheduler,
    MultiplicativeLR,
    MultiStepLR,
    StepLR,
)


def optimizer(lr=1.0):
    return SGD([{"params": [nn.Parameter(rd.ones(1))]}, {"params": [nn.Parameter(rd.ones(1))], "lr": 0.5}], lr=lr)


CASES = [
    (lambda o: LambdaLR(o, lambda t: 1 / (t + 1)), lambda t: 1 / (t + 1)),
    (lambda o: MultiplicativeLR(o, lambda t: t / (t + 1)), lambda t: 1 / (t + 1)),
    (lambda o: StepLR(o, 3, 0.5), lambda t: 0.5 ** (t // 3)),
    (lambda o: MultiStepLR(o, [2, 5, 5], 0.5), lambda t: 0.5 ** ((t >= 2) + 2 * (t >= 5))),
    (lambda o: ExponentialLR(o, 0.9), lambda t: 0.9**t),
    (lambda o: ConstantLR(o, 0.25, 4), lambda t: 0.25 if t < 4 else 1.0),
    (lambda o: LinearLR(o, 0.1, 0.7, 6), lambda t: 0.1 + 0.6 * min(t, 6) / 6),
    (lambda o: CosineAnnealingLR(o, 7), lambda t: (1 + math.cos(math.pi * t / 7)) / 2),
]


@pytest.mark.parametrize(("make", "closed"), CASES)
def test_a_schedule_follows_its_closed_form_in_every_group(make, closed):
    o = optimizer()
    scheduler = make(o)
    for t in range(20):
        assert scheduler.get_last_lr() == pytest.approx([closed(t), 0.5 * closed(t)], abs=1e-12)
        assert [group["lr"] for group in o.param_groups] == scheduler.get_last_lr()
        o.step()
        scheduler.step()


def test_cosine_annealing_ends_at_its_least_rate():
    o = optimizer()
    scheduler = CosineAnnealingLR(o, 4, eta_min=0.1)
    for _ in range(4):
        o.step()
        scheduler.step()
    assert scheduler.get_last_lr() == pytest.approx([0.1, 0.1])


def test_schedules_of_one_optimizer_multiply():
    o = optimizer()
    warm, decay = ConstantLR(o, 0.1, 2), ExponentialLR(o, 0.5)
    for _ in range(3):
        o.step()
        warm.step()
        decay.step()
    assert o.param_groups[0]["lr"] == pytest.approx(0.125)


def test_a_rate_that_is_a_tensor_is_changed_in_place():
    o = optimizer(lr=rd.tensor(1.0))
    rate = o.param_groups[0]["lr"]
    scheduler = StepLR(o, 1, 0.5)
    o.step()
    scheduler.step()
    assert o.param_groups[0]["lr"] is rate and rate.item() == 0.5 and scheduler.base_lrs[0].item() == 1


def test_a_schedule_is_saved_and_loaded():
    class Halving:
        def __init__(self):
            self.base = 0.5

        def __call__(self, t):
            return self.base**t

    o = optimizer()
    scheduler = LambdaLR(o, [Halving(), lambda t: 1.0])
    o.step()
    scheduler.step()
    scheduler.lr_lambdas[0].base = 0.25
    saved = scheduler.state_dict()
    assert saved["lr_lambdas"] == [{"base": 0.25}, None] and "optimizer" not in saved
    other = LambdaLR(optimizer(), [Halving(), lambda t: 1.0])
    other.load_state_dict(saved)
    assert other.last_epoch == 1 and other.lr_lambdas[0].base == 0.25


def test_going_on_from_an_epoch_needs_the_initial_rates():
    o = optimizer()
    with pytest.raises(KeyError, match="param 'initial_lr' is not specified in param_groups"):
        StepLR(o, 2, last_epoch=3)
    for group in o.param_groups:
        group["initial_lr"] = 1.0
    assert LambdaLR(o, lambda t: t, last_epoch=3).get_last_lr() == [4.0, 4.0]


def test_a_step_before_the_optimizer_s_is_warned_about():
    scheduler = StepLR(optimizer(), 2)
    with pytest.warns(UserWarning, match=r"Detected call of `lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        scheduler.step()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda o: StepLR(3, 1), TypeError, "int is not an Optimizer"),
        (lambda o: LambdaLR(o, [math.sqrt]), ValueError, "Expected 2 lr_lambdas, but got 1"),
        (lambda o: MultiplicativeLR(o, 3), TypeError, "lr_lambda should be a function, but got int"),
        (lambda o: ConstantLR(o, 2), ValueError, "Constant multiplicative factor expected to be between 0 and 1."),
        (lambda o: LinearLR(o, 0), ValueError, "Starting multiplicative factor expected to be greater than 0"),
        (lambda o: LinearLR(o, 1, 2), ValueError, "Ending multiplicative factor expected to be between 0 and 1."),
        (lambda o: LRScheduler(o), NotImplementedError, "LRScheduler does not give get_lr"),
    ],
)
def test_a_schedule_refuses(make, error, message):
    with pytest.raises(error, match=message):
        make(optimizer())
