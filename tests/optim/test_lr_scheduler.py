"""Schedules of the learning rate."""

import math

import pytest

import redispatch as rd
from redispatch import nn
from redispatch.optim import SGD, Adam, Rprop, lr_scheduler, swa_utils
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
from redispatch.testing import assert_close

# Learning rate schedules against their closed forms -------------------------------------------------------------------


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


@pytest.mark.parametrize(("make", "closed"), CASES)
def test_a_step_to_any_epoch_goes_by_the_closed_form_and_warns(make, closed):
    o = optimizer()
    scheduler = make(o)
    o.step()
    for t in (5, 2, 19, 0) if hasattr(scheduler, "_get_closed_form_lr") else ():
        with pytest.warns(UserWarning, match="The epoch parameter in `scheduler.step\\(\\)` was not necessary"):
            scheduler.step(t)
        assert scheduler.get_last_lr() == pytest.approx([closed(t), 0.5 * closed(t)], abs=1e-12)
        assert scheduler.last_epoch == t
    assert hasattr(scheduler, "_get_closed_form_lr") != isinstance(scheduler, LambdaLR | MultiplicativeLR)


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


# Schedules that cycle, wait or are made of others ---------------------------------------------------------------------

# `tests/parity/optim.py` compares them with PyTorch's.


def sgd(lr=1.0, **options):
    return SGD([nn.Parameter(rd.zeros(1))], lr=lr, **options)


def followed(scheduler, epochs):
    """The rates of so many epochs."""
    rates = list(scheduler.get_last_lr())
    for _ in range(epochs):
        scheduler.optimizer.step()
        scheduler.step()
        rates += scheduler.get_last_lr()
    return rates


def test_a_step_that_was_replaced_is_warned_about():
    o = optimizer()
    scheduler = StepLR(o, 3)
    step = o.step
    o.step = lambda: step()
    o.step()
    with pytest.warns(UserWarning, match=r"`optimizer.step\(\)` has been overridden"):
        scheduler.step()


def test_a_polynomial_falls_to_zero_and_stays_there():
    rates = followed(lr_scheduler.PolynomialLR(sgd(), total_iters=4, power=2), 6)
    assert rates == pytest.approx([1, 9 / 16, 4 / 16, 1 / 16, 0, 0, 0])


@pytest.mark.parametrize(
    "options, wanted",
    [
        ({}, [0, 0.5, 1, 0.5, 0, 0.5, 1, 0.5, 0]),
        ({"mode": "triangular2"}, [0, 0.5, 1, 0.5, 0, 0.25, 0.5, 0.25, 0]),
        ({"mode": "exp_range", "gamma": 0.5}, [0, 0.25, 0.25, 1 / 16, 0]),
        ({"step_size_down": 1}, [0, 0.5, 1, 0, 0.5, 1, 0]),
    ],
)
def test_a_cyclic_rate_goes_up_and_down(options, wanted):
    scheduler = lr_scheduler.CyclicLR(sgd(), 0.0, 1.0, 2, cycle_momentum=False, **options)
    assert followed(scheduler, len(wanted) - 1) == pytest.approx(wanted)


def test_the_momentum_goes_against_the_rate():
    chosen = sgd(momentum=0.9)
    scheduler = lr_scheduler.CyclicLR(chosen, 0.0, 1.0, 1, base_momentum=0.5, max_momentum=0.7)
    (group,) = chosen.param_groups
    assert (group["lr"], group["momentum"]) == (0, 0.7)
    chosen.step()
    scheduler.step()
    assert (group["lr"], group["momentum"]) == pytest.approx((1, 0.5))
    with pytest.raises(ValueError, match="optimizer must support momentum or beta1"):
        lr_scheduler.CyclicLR(Rprop([nn.Parameter(rd.zeros(1))]), 0.0, 1.0)


def test_one_cycle_rises_and_then_falls_far_below_its_start():
    chosen = Adam([nn.Parameter(rd.zeros(1))])
    scheduler = lr_scheduler.OneCycleLR(
        chosen, 1.0, total_steps=10, pct_start=0.5, div_factor=4.0, final_div_factor=100.0, anneal_strategy="linear"
    )
    rates = followed(scheduler, 9)
    assert rates == pytest.approx([0.25, 0.4375, 0.625, 0.8125, 1, 0.8005, 0.601, 0.4015, 0.202, 0.0025])
    assert chosen.param_groups[0]["betas"] == pytest.approx((0.95, 0.999))
    with pytest.raises(ValueError, match="Tried to step 11 times. The specified number of total steps is 10"):
        followed(scheduler, 2)
    with pytest.raises(ValueError, match="You must define either total_steps OR"):
        lr_scheduler.OneCycleLR(chosen, 1.0, epochs=3)


def test_schedules_of_phases_and_modes_are_saved_as_plain_data():
    o = optimizer()
    one = lr_scheduler.OneCycleLR(o, 1.0, total_steps=10)
    assert one.state_dict()["_schedule_phases"][0] == {
        "end_step": 2.0, "start_lr": "initial_lr", "end_lr": "max_lr",
        "start_momentum": "max_momentum", "end_momentum": "base_momentum",
    }  # fmt: skip
    former = one.state_dict()
    del one._anneal_func_type, former["_anneal_func_type"]
    one.load_state_dict({**former, "anneal_func": lr_scheduler.OneCycleLR._annealing_linear})
    o.step()
    one.step()
    assert one.get_last_lr() == pytest.approx([0.52, 0.52])
    cyclic = lr_scheduler.CyclicLR(o, 0.1, 0.9, 4, mode="exp_range", gamma=0.5)
    assert cyclic._scale_fn_ref(2) == 0.25 and "_scale_fn_ref" not in cyclic.state_dict()


def test_a_cyclic_rate_that_is_a_tensor_leaves_its_bounds_alone():
    low = rd.tensor(0.1, dtype=rd.float64)
    o = optimizer(rd.tensor(1.0))
    scheduler = lr_scheduler.CyclicLR(o, low, 0.9, 4, cycle_momentum=False)
    o.step()
    scheduler.step()
    assert low.item() == 0.1 and o.param_groups[0]["lr"].item() == pytest.approx(0.3)


def test_warm_restarts_begin_again_after_longer_and_longer():
    scheduler = lr_scheduler.CosineAnnealingWarmRestarts(sgd(), T_0=2, T_mult=2)
    rates = followed(scheduler, 6)
    assert rates == pytest.approx([1, 0.5, 1, (2 + math.sqrt(2)) / 4, 0.5, (2 - math.sqrt(2)) / 4, 1])
    scheduler.step(3.5)
    assert (scheduler.T_cur, scheduler.T_i, scheduler.last_epoch) == (1.5, 4, 3)


def test_a_plateau_makes_the_rate_fall():
    scheduler = lr_scheduler.ReduceLROnPlateau(sgd(), patience=1, factor=0.5, min_lr=0.3)
    rates = []
    for loss in (1.0, 0.9, 0.9, 0.9, 0.8, 0.8, 0.8, 0.8, 0.8):
        scheduler.step(loss)
        rates += scheduler.get_last_lr()
    assert rates == [1, 1, 1, 0.5, 0.5, 0.5, 0.3, 0.3, 0.3]
    with pytest.raises(ValueError, match="mode upwards is unknown!"):
        lr_scheduler.ReduceLROnPlateau(sgd(), "upwards")


def test_schedules_follow_one_another():
    chosen = sgd()
    parts = [lr_scheduler.ConstantLR(chosen, 0.1, 2), lr_scheduler.ExponentialLR(chosen, 0.5)]
    scheduler = lr_scheduler.SequentialLR(chosen, parts, [2])
    assert followed(scheduler, 4) == pytest.approx([0.1, 0.1, 1, 0.5, 0.25])


def test_schedules_act_together():
    chosen = sgd()
    parts = [lr_scheduler.ConstantLR(chosen, 0.1, 2), lr_scheduler.ExponentialLR(chosen, 0.5)]
    assert followed(lr_scheduler.ChainedScheduler(parts), 3) == pytest.approx([0.1, 0.05, 0.25, 0.125])


def test_chained_schedules_begin_together_within_a_sequence():
    o = optimizer()
    chained = lr_scheduler.ChainedScheduler([LinearLR(o, 0.1, total_iters=5), ConstantLR(o, 0.1, total_iters=5)])
    scheduler = lr_scheduler.SequentialLR(o, [chained, ConstantLR(o, 0.5, total_iters=5)], milestones=[2])
    seen = [scheduler.get_last_lr()[0]]
    for _ in range(2):
        o.step()
        scheduler.step()
        seen.append(scheduler.get_last_lr()[0])
    assert seen == pytest.approx([0.01, 0.028, 0.5])


def test_compound_schedules_save_their_parts():
    def made():
        chosen = sgd()
        parts = [lr_scheduler.LinearLR(chosen, 0.1, 1, 3), lr_scheduler.StepLR(chosen, 2, 0.5)]
        return lr_scheduler.SequentialLR(chosen, parts, [3])

    one, other = made(), made()
    followed(one, 4)
    other.load_state_dict(one.state_dict())
    other.optimizer.load_state_dict(one.optimizer.state_dict())
    assert followed(one, 3) == followed(other, 3)


def test_what_cannot_be_put_together_is_an_error():
    chosen = sgd()
    plateau = lr_scheduler.ReduceLROnPlateau(chosen)
    with pytest.raises(ValueError, match="does not support `ReduceLROnPlateau`"):
        lr_scheduler.ChainedScheduler([plateau])
    with pytest.raises(ValueError, match="but got no scheduler"):
        lr_scheduler.ChainedScheduler([])
    step = lr_scheduler.StepLR(chosen, 1)
    with pytest.raises(ValueError, match="number of schedulers 1 and the number of milestones to be equal to 1"):
        lr_scheduler.SequentialLR(chosen, [step], [3])
    with pytest.raises(ValueError, match="expects all schedulers to belong to the same optimizer"):
        lr_scheduler.ChainedScheduler([step, lr_scheduler.StepLR(sgd(), 1)])


# --- averages of models -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, wanted",
    [
        ({}, (1 + 2 + 6) / 3),
        ({"avg_fn": swa_utils.get_ema_avg_fn(0.5)}, ((1 + 2) / 2 + 6) / 2),
        ({"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.5)}, ((1 + 2) / 2 + 6) / 2),
    ],
)
def test_an_averaged_model_is_the_average_of_what_it_was_told_of(options, wanted):
    model = nn.Linear(1, 1, bias=False)
    averaged = swa_utils.AveragedModel(model, **options)
    for value in (1, 2, 6):
        nn.init.constant_(model.weight, value)
        averaged.update_parameters(model)
    assert averaged.module.weight.item() == wanted
    assert averaged(rd.ones(1)).item() == wanted
    assert list(averaged.state_dict()) == ["n_averaged", "module.weight"] and averaged.n_averaged.item() == 3


def test_swa_lr_goes_to_its_rate_and_stays():
    rates = followed(swa_utils.SWALR(sgd(), 0.2, anneal_epochs=4, anneal_strategy="linear"), 6)
    assert_close(rd.tensor(rates), rd.tensor([1, 0.8, 0.6, 0.4, 0.2, 0.2, 0.2]))
