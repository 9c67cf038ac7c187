"""GradScaler: the scale finds itself, steps with infinite gradients are skipped, and everything can be saved."""

import pickle

import pytest

import redispatch as rd
from redispatch import nn, optim
from redispatch.amp import GradScaler

inf, nan = float("inf"), float("nan")


def parameter(gradient=None, dtype=rd.float32):
    made = nn.Parameter(rd.ones(2, dtype=dtype))
    made.grad = None if gradient is None else rd.tensor([gradient, 4.0], dtype=dtype)
    return made


def scaler(**options):
    """One whose scale there is already."""
    made = GradScaler("cpu", **{"init_scale": 4.0, "growth_interval": 2, **options})
    made.scale(rd.ones(()))
    return made


# The two operators ----------------------------------------------------------------------------------------------------


def unscale(tensors, found=None, factor=0.5):
    found = rd.zeros(()) if found is None else found
    rd._amp_foreach_non_finite_check_and_unscale_(
        tensors, found, factor if isinstance(factor, rd.Tensor) else rd.tensor(factor)
    )
    return found


@pytest.mark.parametrize("dtype", [rd.float16, rd.bfloat16, rd.float32, rd.float64])
def test_gradients_are_divided_and_looked_at(dtype):
    tensors = [rd.tensor([2.0, 4.0], dtype=dtype), rd.tensor([[8.0]], dtype=dtype)]
    assert unscale(tensors).item() == 0 and tensors[0].tolist() == [1, 2] and tensors[1].tolist() == [[4]]
    for bad in (inf, -inf, nan):
        assert unscale([rd.tensor([1.0, bad], dtype=dtype), tensors[0]]).item() == 1
    assert unscale([tensors[0]], found=rd.ones(())).item() == 1  # what was found before is not forgotten


def test_views_are_divided_where_they_lie():
    x = rd.ones(2, 3)
    before = x._version
    unscale([x[:, ::2], x.t()[1]])
    assert x.tolist() == [[0.5] * 3] * 2 and x._version > before


def test_only_lists_of_the_right_numbers_are_taken():
    x = [rd.ones(2)]
    for found, factor, message in [
        (rd.zeros(2), 0.5, "found_inf must be a 1-element tensor."),
        (rd.zeros((), dtype=rd.float64), 0.5, "found_inf must be a float tensor."),
        (None, rd.ones(2), "inv_scale must be a 1-element tensor."),
    ]:
        with pytest.raises(RuntimeError, match=message):
            unscale(x, found, factor)
    with pytest.raises(NotImplementedError, match="_amp_foreach_non_finite_check_and_unscale_cpu"):
        unscale([rd.ones(2, dtype=rd.int32)])


def updated(scale, count, found, interval=2):
    scale, count = rd.tensor(scale), rd.tensor(count, dtype=rd.int32)
    assert rd._amp_update_scale_(scale, count, rd.tensor(found), 2.0, 0.5, interval) is scale
    return scale.item(), count.item()


def test_the_scale_grows_after_good_steps_and_shrinks_at_once():
    assert updated(4.0, 0, 0.0) == (4.0, 1)
    assert updated(4.0, 1, 0.0) == (8.0, 0)
    assert updated(4.0, 1, 1.0) == (2.0, 0)
    assert updated(2.0**127, 1, 0.0) == (2.0**127, 0)  # twice as much would be infinite


def test_the_scale_is_a_float_and_what_is_counted_an_int():
    one, count = rd.ones(()), rd.zeros((), dtype=rd.int32)
    for arguments, message in [
        ((one, count.long(), one), "growth_tracker must be an int tensor."),
        ((one.double(), count, one), "current_scale must be a float tensor."),
        ((rd.ones(2), count, one), "current_scale must be a 1-element tensor."),
        ((one, count, rd.ones(2)), "found_inf must be a 1-element tensor."),
    ]:
        with pytest.raises(RuntimeError, match=message):
            rd._amp_update_scale_(*arguments, 2.0, 0.5, 1)


# A step ---------------------------------------------------------------------------------------------------------------


def test_losses_are_multiplied_in_containers_too():
    one = rd.ones(())
    made = scaler()
    assert made.scale(one).item() == 4
    assert [x.item() for x in made.scale([one, one * 2])] == [4, 8]
    assert isinstance(made.scale((one,)), tuple) and [x.item() for x in made.scale(iter([one]))] == [4]
    with pytest.raises(ValueError, match="outputs must be a Tensor or an iterable of Tensors"):
        made.scale(3)


def test_a_step_divides_the_gradients_first():
    p, made = parameter(8.0), scaler()
    made.step(optim.SGD([p], lr=1.0))
    assert p.tolist() == [-1.0, 0.0] and p.grad.tolist() == [2.0, 1.0]


@pytest.mark.parametrize("bad", [inf, nan])
def test_a_step_with_gradients_that_are_not_finite_is_skipped(bad):
    p, made = parameter(bad), scaler()
    assert made.step(optim.SGD([p], lr=1.0)) is None and p.tolist() == [1.0, 1.0]
    made.update()
    assert made.get_scale() == 2.0


def test_each_optimizer_is_skipped_by_its_own_gradients_and_the_scale_by_all():
    bad, good, made = parameter(inf), parameter(4.0), scaler()
    for p in (bad, good):
        made.step(optim.SGD([p], lr=1.0))
    assert bad.tolist() == [1.0, 1.0] and good.tolist() == [0.0, 0.0]
    made.update()
    assert made.get_scale() == 2.0


def test_the_scale_grows_after_as_many_updates_as_were_asked_for():
    p, made = parameter(), scaler()
    scales = []
    for _ in range(4):
        p.grad = rd.ones(2)
        made.step(optim.SGD([p], lr=1.0))
        made.update()
        scales.append(made.get_scale())
    assert scales == [4.0, 8.0, 8.0, 16.0]


def test_gradients_may_be_clipped_between():
    p, made = parameter(8.0), scaler()
    optimizer = optim.SGD([p], lr=1.0)
    made.unscale_(optimizer)
    assert p.grad.tolist() == [2.0, 1.0]
    nn.utils.clip_grad_value_(p, 0.5)
    made.step(optimizer)
    assert p.tolist() == [0.5, 0.5]


def test_an_optimizer_may_divide_by_itself():
    class Own(optim.SGD):
        _step_supports_amp_scaling = True

        def step(self):
            given.append((self.grad_scale.item(), self.found_inf.item()))

    given, made = [], scaler()
    for gradient in (8.0, inf):
        optimizer = Own([parameter(gradient)], lr=1.0)
        made.step(optimizer)
        assert not hasattr(optimizer, "grad_scale") and not hasattr(optimizer, "found_inf")
    made.update()
    assert given == [(4.0, 0.0), (4.0, 1.0)] and made.get_scale() == 2.0


def test_a_scale_of_ones_own():
    made = scaler()
    made.update(16.0)
    assert made.get_scale() == 16.0
    made.update(rd.tensor(3.0))
    assert made.get_scale() == 3.0
    for wrong in (rd.ones(2), rd.ones((), requires_grad=True)):
        with pytest.raises(AssertionError, match="new_scale should be a float or a 1-element"):
            made.update(wrong)


def test_training_with_float16_losses_that_would_vanish():
    rd.manual_seed(0)
    model, made = nn.Linear(4, 1), GradScaler("cpu", init_scale=2.0**10, growth_interval=5)
    optimizer = optim.SGD(model.parameters(), lr=0.2)
    x = rd.randn(32, 4)
    y = x.sum(1, keepdim=True)
    for _ in range(60):
        with rd.autocast("cpu", dtype=rd.float16):
            loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        made.scale(loss).backward()
        made.step(optimizer)
        made.update()
    assert loss.item() < 1e-3 and made.get_scale() > 1


# Mistakes -------------------------------------------------------------------------------------------------------------


def test_calls_in_the_wrong_order_are_refused():
    made, optimizer = GradScaler("cpu"), optim.SGD([parameter(1.0)], lr=1.0)
    for name, call in [("step", made.step), ("unscale_", made.unscale_)]:
        with pytest.raises(AssertionError, match=f"Attempted {name} but _scale is None.  This may indicate"):
            call(optimizer)
    with pytest.raises(AssertionError, match="Attempted update but _scale is None"):
        made.update()
    made = scaler()
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update."):
        made.update()
    made.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="has already been called on this optimizer since the last"):
        made.unscale_(optimizer)
    made.step(optimizer)
    with pytest.raises(RuntimeError, match="is being called after step"):
        made.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="has already been called since the last update"):
        made.step(optimizer)
    with pytest.raises(RuntimeError, match="Closure use is not currently supported"):
        made.step(optimizer, closure=lambda: 1)
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer."):
        made.step(optim.SGD([parameter()], lr=1.0))
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients."):
        made.unscale_(optim.SGD([parameter(1.0, rd.float16)], lr=1.0))


def test_factors_go_their_way():
    with pytest.raises(AssertionError, match="The growth factor must be > 1.0."):
        GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(AssertionError, match="The backoff factor must be < 1.0."):
        GradScaler("cpu", backoff_factor=1.0)
    with pytest.warns(UserWarning, match="CUDA is not available"):
        assert not GradScaler().is_enabled()


def test_one_that_is_off_does_nothing_but_step():
    made, p, one = GradScaler("cpu", enabled=False), parameter(1.0), rd.ones(())
    optimizer = optim.SGD([p], lr=1.0)
    assert made.scale(one) is one and made.get_scale() == 1.0 and made.state_dict() == {}
    made.unscale_(optimizer), made.step(optimizer), made.update(), made.load_state_dict({})
    assert p.tolist() == [0.0, -3.0]


# Saving ---------------------------------------------------------------------------------------------------------------


def test_a_scaler_goes_on_where_another_was():
    made, p = scaler(), parameter(1.0)
    made.step(optim.SGD([p], lr=1.0))
    made.update()
    state = made.state_dict()
    assert state == {
        "scale": 4.0,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": 2,
        "_growth_tracker": 1,
    }
    for other in (GradScaler("cpu"), scaler(init_scale=64.0)):
        other.load_state_dict(state)
        assert other.state_dict() == state
        other.scale(rd.ones(()))
        assert other.state_dict() == state
    with pytest.raises(RuntimeError, match="The source state dict is empty"):
        made.load_state_dict({})


def test_a_scaler_is_pickled_between_steps():
    made = scaler(init_scale=32.0)
    other = pickle.loads(pickle.dumps(made))
    assert other.state_dict() == made.state_dict()
    assert other.scale(rd.ones(())).item() == 32.0
    made.unscale_(optim.SGD([parameter(1.0)], lr=1.0))
    with pytest.raises(AssertionError, match="may only be pickled at the beginning"):
        pickle.dumps(made)


def test_factors_can_be_set():
    made = scaler()
    made.set_growth_factor(3.0), made.set_backoff_factor(0.25), made.set_growth_interval(1)
    assert (made.get_growth_factor(), made.get_backoff_factor(), made.get_growth_interval()) == (3.0, 0.25, 1)
    made.step(optim.SGD([parameter(1.0)], lr=1.0))
    made.update()
    assert made.get_scale() == 12.0
