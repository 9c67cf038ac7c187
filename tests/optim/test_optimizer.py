"""What all optimizers share: groups, steps, saving and loading, hooks."""

import copy
import pickle
from contextlib import nullcontext

import pytest

import redispatch as rd
from redispatch import nn, optim
from redispatch.optim import SGD, Adam, AdamW, Optimizer
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import return_and_correct_aliasing

from ..seeing import Seen


def parameter(value=1.0):
    return nn.Parameter(rd.full((2,), value))


def stepped(optimizer, gradient=1.0, steps=1):
    for _ in range(steps):
        for group in optimizer.param_groups:
            for param in group["params"]:
                param.grad = rd.full((2,), gradient)
        optimizer.step()
    return optimizer


# Groups ---------------------------------------------------------------------------------------------------------------


shared = parameter()


def test_duplicates_in_a_group_are_warned_about():
    with pytest.warns(UserWarning, match="optimizer contains a parameter group with duplicate parameters"):
        SGD([shared, shared])


def test_groups_have_options_of_their_own_and_the_defaults_else():
    a, b = parameter(), parameter()
    optimizer = stepped(SGD([{"params": a}, {"params": [b], "lr": 0.5}], lr=0.25))
    assert a.tolist() == [0.75, 0.75] and b.tolist() == [0.5, 0.5]
    assert optimizer.param_groups[0]["momentum"] == 0


def test_named_parameters_keep_their_names():
    optimizer = SGD(nn.Linear(1, 1).named_parameters())
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]


def test_an_optimizer_prints_its_groups():
    assert repr(SGD([parameter()], lr=0.5)) == (
        "SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n    foreach: None\n    fused: None\n"
        "    lr: 0.5\n    maximize: False\n    momentum: 0\n    nesterov: False\n    weight_decay: 0\n)"
    )


# Steps ----------------------------------------------------------------------------------------------------------------


def test_a_step_leaves_parameters_without_gradient_alone_and_is_not_recorded():
    a, b = parameter(), parameter()
    optimizer = SGD([a, b], lr=0.5, momentum=0.9)
    a.grad = rd.ones(2)
    optimizer.step()
    assert a.tolist() == [0.5, 0.5] and b.tolist() == [1, 1] and a.is_leaf and b not in optimizer.state


def test_a_step_writes_in_place_and_counts_the_write():
    a = parameter()
    address, version = a.data_ptr(), a._version
    stepped(SGD([a], lr=0.5))
    assert a.data_ptr() == address and a._version == version + 1


def test_a_closure_computes_the_gradients_with_recording_on():
    a = parameter(3.0)
    optimizer = SGD([a], lr=0.25)

    def closure():
        optimizer.zero_grad()
        loss = (a * a).sum()
        loss.backward()
        return loss

    with rd.no_grad():
        assert optimizer.step(closure).item() == 18
    assert a.tolist() == [1.5, 1.5]


def test_zero_grad_takes_gradients_away_or_fills_them_with_zeros():
    optimizer = stepped(SGD([a := parameter()]))
    optimizer.zero_grad(set_to_none=False)
    assert a.grad.tolist() == [0, 0]
    optimizer.zero_grad()
    assert a.grad is None


def test_maximize_goes_uphill():
    optimizer = stepped(SGD([a := parameter()], lr=0.5, maximize=True))
    assert a.tolist() == [1.5, 1.5] and optimizer.param_groups[0]["params"][0].grad.tolist() == [1, 1]


def test_a_differentiable_step_is_recorded():
    start, a = rd.ones(2, requires_grad=True), rd.ones(2, requires_grad=True)
    moved = start.clone()
    moved.grad = a * 2
    SGD([moved], lr=0.5, differentiable=True).step()
    moved.sum().backward()
    assert start.grad.tolist() == [1, 1] and a.grad.tolist() == [-1, -1]  # moved is start - 0.5 · 2a


@pytest.mark.parametrize(
    ("make", "options"),
    [(Adam, {"amsgrad": True})]
    + [(each, {}) for each in (optim.Adadelta, optim.Adagrad, optim.Adamax, optim.NAdam, optim.RAdam, optim.RMSprop)],
)
def test_gradients_go_through_a_differentiable_step(make, options):
    def stepped(start, gradient):
        moved = start.clone()
        moved.grad = gradient
        make([moved], lr=0.1, differentiable=True, **options).step()
        return moved

    values = rd.tensor([[0.3, -0.7], [0.2, 0.9]], dtype=rd.float64)
    assert rd.autograd.gradcheck(stepped, [value.clone().requires_grad_() for value in values])


def test_an_optimizer_of_the_users_own_gives_update_or_step():
    class Halving(Optimizer):
        def __init__(self, params):
            super().__init__(params, {})

        def update(self, param, grad, state, group):
            param.mul_(0.5)

    class Zeroing(Optimizer):
        def __init__(self, params):
            super().__init__(params, {})

        @rd.no_grad()
        def step(self, closure=None):
            for param in self.param_groups[0]["params"]:
                param.zero_()

    a = parameter()
    stepped(Halving([a]))
    assert a.tolist() == [0.5, 0.5]
    stepped(Zeroing([a]))
    assert a.tolist() == [0, 0]
    with pytest.raises(NotImplementedError):
        stepped(Optimizer([parameter()], {}))


def test_hooks_run_around_a_step():
    optimizer, seen = SGD([parameter()]), []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append("before"))
    handle = optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append("after"))
    stepped(optimizer)
    handle.remove()
    stepped(optimizer)
    assert seen == ["before", "after", "before"]
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple of"):
        optimizer.step()


# Saving and loading ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda p: SGD(p, lr=0.1, momentum=0.9), Adam, lambda p: AdamW(p, amsgrad=True)])
def test_a_loaded_optimizer_goes_on_as_the_saved_one(make):
    a, b = parameter(), parameter()
    first = stepped(make([a]), 0.5, steps=3)
    second = make([b])
    second.load_state_dict(first.state_dict())
    with rd.no_grad():
        b.copy_(a)
    stepped(first, -0.25, steps=3)
    stepped(second, -0.25, steps=3)
    assert a.tolist() == b.tolist()


def test_a_state_dict_numbers_the_parameters_from_group_to_group():
    optimizer = stepped(Adam([{"params": [parameter(), parameter()]}, {"params": [parameter()], "lr": 0.5}]))
    saved = optimizer.state_dict()
    assert [group["params"] for group in saved["param_groups"]] == [[0, 1], [2]]
    assert sorted(saved["state"]) == [0, 1, 2] and set(saved["state"][0]) == {"step", "exp_avg", "exp_avg_sq"}
    assert saved["state"][0]["step"].item() == 1


def test_loaded_state_gets_the_dtype_of_its_parameter_but_counts_stay():
    saved = stepped(Adam([parameter()])).state_dict()
    double = nn.Parameter(rd.ones(2, dtype=rd.float64))
    optimizer = Adam([double])
    optimizer.load_state_dict(saved)
    assert optimizer.state[double]["exp_avg"].dtype is rd.float64
    assert optimizer.state[double]["step"].dtype is rd.float32


def test_hooks_of_all_optimizers_run_around_their_own():
    seen = []
    x = rd.ones(1, requires_grad=True)
    optimizer = SGD([x], lr=1.0)
    handles = [
        rd.optim.optimizer.register_optimizer_step_pre_hook(lambda *_: seen.append("all before")),
        optimizer.register_step_pre_hook(lambda *_: seen.append("before")),
        optimizer.register_step_post_hook(lambda *_: seen.append("after")),
        rd.optim.optimizer.register_optimizer_step_post_hook(lambda *_: seen.append("all after")),
    ]
    optimizer.step()
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert seen == ["all before", "before", "after", "all after"]


def test_hooks_see_saving_and_loading():
    optimizer, seen = SGD([parameter()]), []
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("saving"))
    optimizer.register_state_dict_post_hook(lambda o, saved: {**saved, "note": 1})
    saved = optimizer.state_dict()
    optimizer.register_load_state_dict_pre_hook(lambda o, saved: seen.append(saved["note"]))
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    optimizer.load_state_dict(saved)
    assert seen == ["saving", 1, "loaded"]


def test_copies_and_pickles_keep_the_state():
    optimizer = stepped(SGD([parameter()], lr=0.5, momentum=0.9))
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        (param,) = other.param_groups[0]["params"]
        assert other.state[param]["momentum_buffer"].tolist() == [1, 1]
        stepped(other)
        assert param.tolist() == pytest.approx([0.5 - 0.5 * 1.9] * 2)


FORMS = {
    "adam": (rd.optim.Adam, {"lr": 0.1, "weight_decay": 0.1}),
    "amsgrad": (rd.optim.Adam, {"lr": 0.1, "amsgrad": True, "maximize": True}),
    "adamw": (rd.optim.AdamW, {"lr": 0.1}),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [rd.float32, rd.float64, rd.bfloat16])
def test_a_mode_sees_single_operators_and_the_bits_are_those_of_the_fused_step(form, dtype):
    kind, options = FORMS[form]
    results = []
    for mode in (Seen(), nullcontext()):
        rd.manual_seed(0)
        params = [rd.nn.Parameter(rd.randn(3, 4, dtype=dtype)), rd.nn.Parameter(rd.randn(5, dtype=dtype))]
        optimizer = kind(params, **options)
        for _ in range(5):
            for param in params:
                param.grad = rd.randn(param.shape, dtype=dtype)
            with mode:
                optimizer.step()
        results.append(params)
        if isinstance(mode, Seen):
            assert "addcdiv_" in mode.names
            assert not any("_fused_" in name or "_foreach_" in name for name in mode.names)
    assert all(rd.equal(one, other) for one, other in zip(*results, strict=True))


@pytest.mark.parametrize("kind", [rd.optim.SGD, rd.optim.Adam, rd.optim.AdamW, rd.optim.Adagrad])
def test_a_fused_step_is_one_operator(kind):
    x = rd.nn.Parameter(rd.ones(3))
    x.grad = rd.ones(3)
    optimizer = kind([x], lr=0.1, fused=True)
    with Seen() as mode:
        optimizer.step()
    assert sum("_fused_" in name for name in mode.names) == 1
    with pytest.raises(RuntimeError, match="`fused` and `foreach` cannot be `True` together"):
        kind([x], lr=0.1, fused=True, foreach=True)


def test_steps_that_a_graph_could_hold_are_refused_on_the_cpu():
    x = rd.nn.Parameter(rd.ones(3))
    x.grad = rd.ones(3)
    with pytest.raises(AssertionError, match="If capturable=True, params and state_steps must be on supported devices"):
        rd.optim.Adam([x], capturable=True).step()


def test_without_momentum_there_is_no_state():
    x = rd.nn.Parameter(rd.ones(3))
    x.grad = rd.ones(3)
    optimizer = rd.optim.SGD([x], lr=0.1)
    optimizer.step()
    assert optimizer.state_dict()["state"] == {}


TOGETHER = {
    "SGD": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    "Adam": {"amsgrad": True, "weight_decay": 0.1},
    "AdamW": {"maximize": True},
    "Adagrad": {"lr_decay": 0.1, "weight_decay": 0.1},
    "Adadelta": {"weight_decay": 0.1, "maximize": True},
    "Adamax": {"weight_decay": 0.1},
    "NAdam": {"decoupled_weight_decay": True, "weight_decay": 0.1},
    "RAdam": {"weight_decay": 0.1, "maximize": True},
    "RMSprop": {"momentum": 0.9, "centered": True, "weight_decay": 0.1},
    "Rprop": {"maximize": True},
    "ASGD": {"t0": 2, "weight_decay": 0.1, "maximize": True},
    "Adafactor": {"weight_decay": 0.1},
}


@pytest.mark.parametrize("name", TOGETHER)
def test_operators_on_lists_move_parameters_as_single_ones_do(name):
    results = []
    for together in (False, True):
        rd.manual_seed(0)
        params = [nn.Parameter(rd.randn(*shape, dtype=rd.float64)) for shape in ((3, 4), (5,), (2, 3))]
        params.append(nn.Parameter(rd.randn(3)))  # of another dtype
        optimizer = getattr(optim, name)(params, foreach=together, **TOGETHER[name])
        for _ in range(8):
            for param in params:
                param.grad = rd.randn(param.shape, dtype=param.dtype)
            with Seen() as mode:
                optimizer.step()
        assert any("_foreach_" in one for one in mode.names) is together
        results.append(params)
    for one, other in zip(*results, strict=True):
        rd.testing.assert_close(one, other)


class CoreOnly(rd.Tensor):
    """Knows core operators alone: others come as their decomposition, or fail."""

    @staticmethod
    def __new__(cls, inner):
        return rd.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, strides=inner.stride())

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if not (rd.Tag.core in func.tags or func._schema.is_mutable or str(func) in KEPT):
            parts = func.decompose(*args, **(kwargs or {}))
            assert parts is not NotImplemented, f"{func} is no core operator"
            return parts
        inner = pytree.tree_map_only(cls, lambda x: x.inner, (args, kwargs or {}))
        result = pytree.tree_map_only(rd.Tensor, cls, func(*inner[0], **inner[1]))
        return return_and_correct_aliasing(func, args, kwargs or {}, result)


# No core operators, and without a decomposition of their own
KEPT = [f"aten.{name}.default" for name in ("detach", "t", "ones_like", "zeros_like", "tanh_backward")]


def test_a_subclass_that_knows_core_operators_trains_with_adam():
    rd.manual_seed(0)
    x, y = rd.randn(16, 4), rd.randn(16, 1)
    plain = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    wrapped = copy.deepcopy(plain)
    for module in (wrapped[0], wrapped[2]):
        for name, param in list(module.named_parameters()):
            setattr(module, name, nn.Parameter(CoreOnly(param.detach())))
    losses = []
    for model, data, target in ((plain, x, y), (wrapped, CoreOnly(x), CoreOnly(y))):
        optimizer = Adam(model.parameters(), lr=0.05)
        for _ in range(10):
            optimizer.zero_grad()
            loss = ((model(data) - target) ** 2).mean()
            loss.backward()
            optimizer.step()
        losses.append(loss.detach())
    assert type(next(wrapped.parameters())) is CoreOnly
    rd.testing.assert_close(losses[1].inner, losses[0])
