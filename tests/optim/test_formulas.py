"""Twenty steps of each optimizer against the textbook's formulas in numpy; `tests/parity/optim.py` has PyTorch's."""

from importlib import import_module
from inspect import signature

import numpy as np
import pytest

import redispatch as rd
from redispatch import nn, optim
from redispatch.optim import SGD, Adam, AdamW

rng = np.random.default_rng(0)
START = rng.standard_normal((3, 4))
GRADIENTS = rng.standard_normal((20, 3, 4))


def sgd(p, gradients, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False):
    b = None
    for g in gradients:
        g = g + weight_decay * p
        b = g if b is None else momentum * b + (1 - dampening) * g
        p = p - lr * (g + momentum * b if nesterov else b if momentum else g)
    return p


def adam(p, gradients, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, decoupled=False):
    m = v = largest = np.zeros_like(p)
    for t, g in enumerate(gradients, 1):
        if decoupled:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        largest = np.maximum(largest, v) if amsgrad else v
        p = p - lr * (m / (1 - betas[0] ** t)) / (np.sqrt(largest / (1 - betas[1] ** t)) + eps)
    return p


def adagrad(p, gradients, lr=0.01, lr_decay=0.0, start=0.0, eps=1e-10):
    total = np.full_like(p, start)
    for t, g in enumerate(gradients):
        total = total + g**2
        p = p - lr / (1 + t * lr_decay) * g / (np.sqrt(total) + eps)
    return p


def adadelta(p, gradients, lr=1.0, rho=0.9, eps=1e-6):
    square = moved = np.zeros_like(p)
    for g in gradients:
        square = rho * square + (1 - rho) * g**2
        step = g * np.sqrt(moved + eps) / np.sqrt(square + eps)
        moved = rho * moved + (1 - rho) * step**2
        p = p - lr * step
    return p


def adamax(p, gradients, lr=2e-3, betas=(0.9, 0.999), eps=1e-8):
    m = largest = np.zeros_like(p)
    for t, g in enumerate(gradients, 1):
        m = betas[0] * m + (1 - betas[0]) * g
        largest = np.maximum(betas[1] * largest, np.abs(g) + eps)
        p = p - lr / (1 - betas[0] ** t) * m / largest
    return p


def rmsprop(p, gradients, lr=0.01, alpha=0.99, eps=1e-8, momentum=0.0, centered=False):
    square = mean = b = np.zeros_like(p)
    for g in gradients:
        square = alpha * square + (1 - alpha) * g**2
        mean = alpha * mean + (1 - alpha) * g
        b = momentum * b + g / (np.sqrt(square - mean**2 if centered else square) + eps)
        p = p - lr * b
    return p


def rprop(p, gradients, lr=0.01, etas=(0.5, 1.2), step_sizes=(1e-6, 50)):
    before, step = np.zeros_like(p), np.full_like(p, lr)
    for g in gradients:
        turn = np.sign(g * before)
        step = np.clip(step * np.where(turn < 0, etas[0], np.where(turn > 0, etas[1], 1)), *step_sizes)
        before = np.where(turn < 0, 0, g)
        p = p - step * np.sign(before)
    return p


def nadam(p, gradients, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, momentum_decay=4e-3):
    m = v = np.zeros_like(p)
    product = 1.0
    for t, g in enumerate(gradients, 1):
        mu, ahead = (betas[0] * (1 - 0.96 ** (k * momentum_decay) / 2) for k in (t, t + 1))
        product *= mu
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        mean = ahead * m / (1 - product * ahead) + (1 - mu) * g / (1 - product)
        p = p - lr * mean / (np.sqrt(v / (1 - betas[1] ** t)) + eps)
    return p


def radam(p, gradients, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    m = v = np.zeros_like(p)
    most = 2 / (1 - betas[1]) - 1
    for t, g in enumerate(gradients, 1):
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        step = lr * m / (1 - betas[0] ** t)
        length = most - 2 * t * betas[1] ** t / (1 - betas[1] ** t)
        if length > 5:
            root = np.sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length))
            step = step * root * np.sqrt(1 - betas[1] ** t) / (np.sqrt(v) + eps)
        p = p - step
    return p


def adafactor(p, gradients, lr=0.01, beta2_decay=-0.8, eps=1e-3, d=1.0):
    row, column = np.zeros((len(p), 1)), np.zeros((1, p.shape[1]))
    for t, g in enumerate(gradients, 1):
        share = t**beta2_decay
        row = row + share * ((g**2).mean(1, keepdims=True) - row)
        column = column + share * ((g**2).mean(0, keepdims=True) - column)
        update = g / np.sqrt(row @ column / row.mean())
        update = update / max(1, np.sqrt((update**2).mean()) / d)
        p = p - min(lr, 1 / np.sqrt(t)) * max(eps, np.sqrt((p**2).mean())) * update
    return p


CASES = [
    (SGD, sgd, {"lr": 0.1}),
    (SGD, sgd, {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    (SGD, sgd, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    (Adam, adam, {}),
    (Adam, adam, {"lr": 0.01, "betas": (0.8, 0.99), "eps": 1e-3, "weight_decay": 0.1, "amsgrad": True}),
    (AdamW, lambda *args, **options: adam(*args, **options, decoupled=True), {"lr": 0.01, "weight_decay": 0.3}),
    (optim.Adagrad, adagrad, {"lr": 0.1, "lr_decay": 0.1}),
    (optim.Adadelta, adadelta, {"lr": 0.5, "rho": 0.8}),
    (optim.Adamax, adamax, {"lr": 0.05}),
    (optim.RMSprop, rmsprop, {"momentum": 0.5}),
    (optim.RMSprop, rmsprop, {"centered": True, "alpha": 0.9}),
    (optim.Rprop, rprop, {"lr": 0.1, "step_sizes": (0.02, 0.2)}),
    (optim.NAdam, nadam, {"lr": 0.01}),
    (optim.RAdam, radam, {"lr": 0.01, "betas": (0.9, 0.99)}),
    (optim.Adafactor, adafactor, {"lr": 0.1}),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("optimizer", "reference", "options"), CASES)
def test_twenty_steps_follow_the_formula(optimizer, reference, options, dtype):
    parameter = nn.Parameter(rd.from_numpy(START.astype(dtype)))
    made = optimizer([parameter], **options)
    for gradient in GRADIENTS:
        parameter.grad = rd.from_numpy(gradient.astype(dtype))
        made.step()
    # NAdam's product of shares is a float32 of its state, as in PyTorch.
    tolerance = {"float32": 2e-6, "float64": 1e-14 if optimizer is not optim.NAdam else 2e-8}[dtype]
    np.testing.assert_allclose(parameter.detach().numpy(), reference(START, GRADIENTS, **options), tolerance, tolerance)


@pytest.mark.parametrize("dtype", [rd.float32, rd.bfloat16])
def test_adam_updates_parameters_however_they_lie_in_memory(dtype):
    """Dense, transposed, strided; one with gradients that lie otherwise; at different steps."""
    values = [rd.from_numpy(rng.standard_normal((4, 6)).astype("float32")).to(dtype) for _ in range(2)]
    layouts = [
        lambda x: x.clone(),
        lambda x: x.t().contiguous().t(),
        lambda x: rd.stack([x, x], -1)[..., 0],
    ]
    results = []
    for lay, lay_gradient in [(one, other) for one in layouts for other in layouts]:
        parameter = nn.Parameter(lay(values[0]))
        parameter.grad = lay_gradient(values[1])
        late = nn.Parameter(rd.ones(2, dtype=dtype))
        optimizer = AdamW([parameter, late], lr=0.1)
        optimizer.step()
        late.grad = rd.ones(2, dtype=dtype)
        optimizer.step()
        assert [optimizer.state[one]["step"].item() for one in (parameter, late)] == [2, 1]
        assert late.tolist() == pytest.approx([0.9 - 0.001] * 2, rel=1e-2 if dtype is rd.bfloat16 else 1e-5)
        results.append(parameter.tolist())
    assert all(result == results[0] for result in results)


def test_adam_counts_a_write_for_each_parameter_and_records_nothing():
    parameter = nn.Parameter(rd.ones(2))
    parameter.grad = rd.ones(2)
    version = parameter._version
    Adam([parameter]).step()
    assert parameter._version > version and parameter.is_leaf and parameter.requires_grad


def test_averaged_sgd_begins_its_mean_two_steps_behind_t0():
    parameter = nn.Parameter(rd.zeros(1, dtype=rd.float64))
    optimizer = optim.ASGD([parameter], lr=1.0, lambd=0.0, t0=2)
    seen = []
    for _ in range(6):
        parameter.grad = rd.ones(1, dtype=rd.float64)
        optimizer.step()
        seen.append(parameter.item())
    assert seen == [-1, -2, -3, -4, -5, -6]
    assert optimizer.state[parameter]["ax"].item() == pytest.approx(np.mean(seen[3:]), rel=1e-6)


@pytest.mark.parametrize("line_search", [None, "strong_wolfe"])
def test_lbfgs_finds_the_minimum_of_a_parabola_in_a_few_steps(line_search):
    x = nn.Parameter(rd.tensor([3.0, -2.0], dtype=rd.float64))
    optimizer = optim.LBFGS([x], line_search_fn=line_search)
    stretch = rd.tensor([1.0, 10.0], dtype=rd.float64)

    def closure():
        optimizer.zero_grad()
        loss = (stretch * (x - 1) ** 2).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 94.0
    assert x.tolist() == pytest.approx([1, 1], abs=1e-5)


def test_muon_takes_steps_whose_singular_values_are_near_one():
    matrix = nn.Parameter(rd.zeros(6, 4))
    matrix.grad = rd.from_numpy(rng.standard_normal((6, 4)).astype("float32"))
    optim.Muon([matrix], lr=1.0, weight_decay=0.0).step()
    values = np.linalg.svd(matrix.detach().numpy(), compute_uv=False) / np.sqrt(6 / 4)
    assert (0.6 < values).all() and (values < 1.4).all()
    with pytest.raises(ValueError, match="Muon only supports 2D parameters"):
        optim.Muon([nn.Parameter(rd.zeros(3))])


def test_a_step_without_any_gradient_does_nothing():
    for kind in {case[0] for case in CASES}:
        parameter = nn.Parameter(rd.ones(2))
        kind([parameter]).step()
        assert parameter.tolist() == [1, 1]


def test_a_learning_rate_may_be_a_tensor():
    for lr in (0.5, rd.tensor(0.5)):
        parameter = nn.Parameter(rd.ones(2))
        parameter.grad = rd.ones(2)
        SGD([parameter], lr=lr).step()
        assert parameter.tolist() == [0.5, 0.5]


def test_a_model_is_trained():
    rd.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
    x = rd.randn(64, 2)
    target = (x[:, 0] * x[:, 1] > 0).to(rd.int64)
    loss_of = nn.CrossEntropyLoss()
    optimizer = AdamW(net.parameters(), lr=0.05)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = loss_of(net(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]


# The same steps as functions, with the state in lists ----------------------------------------------------------------

FUNCTIONS = {
    "adadelta": (optim.Adadelta, dict(lr=0.1, rho=0.9, eps=1e-6, weight_decay=0.1, maximize=True)),
    "adagrad": (optim.Adagrad, dict(lr=0.1, weight_decay=0.1, lr_decay=0.01, eps=1e-10, maximize=False)),
    "adam": (Adam, dict(lr=0.1, beta1=0.9, beta2=0.99, eps=1e-8, weight_decay=0.1, amsgrad=True, maximize=False)),
    "adamax": (optim.Adamax, dict(lr=0.1, beta1=0.9, beta2=0.99, eps=1e-8, weight_decay=0.1)),
    "adamw": (AdamW, dict(lr=0.1, beta1=0.9, beta2=0.99, eps=1e-8, weight_decay=0.1, amsgrad=False, maximize=True)),
    "asgd": (optim.ASGD, dict(lr=0.1, lambd=1e-4, t0=1.0, alpha=0.75, weight_decay=0.1)),
    "nadam": (optim.NAdam, dict(lr=0.1, beta1=0.9, beta2=0.99, eps=1e-8, weight_decay=0.1, momentum_decay=0.004)),
    "radam": (optim.RAdam, dict(lr=0.1, beta1=0.9, beta2=0.99, eps=1e-8, weight_decay=0.1)),
    "rmsprop": (optim.RMSprop, dict(lr=0.1, alpha=0.9, eps=1e-8, weight_decay=0.1, momentum=0.9, centered=True)),
    "rprop": (optim.Rprop, dict(step_size_min=1e-6, step_size_max=50, etaminus=0.5, etaplus=1.2)),
    "sgd": (SGD, dict(lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.1, nesterov=False, maximize=False)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_function_of_a_class_takes_its_steps(name):
    kind, options = FUNCTIONS[name]
    function = getattr(import_module(f"redispatch.optim.{name}"), name)
    pairs = {
        "betas": ("beta1", "beta2"),
        "step_sizes": ("step_size_min", "step_size_max"),
        "etas": ("etaminus", "etaplus"),
    }
    given = {pair: tuple(options[one] for one in names) for pair, names in pairs.items() if names[0] in options}
    given |= {one: value for one, value in options.items() if one not in sum(pairs.values(), ())}
    wanted, p = rd.tensor(START, requires_grad=True), rd.tensor(START)
    optimizer = kind([wanted], **given)
    lists = [
        one for one in signature(function).parameters if one.endswith(("s", "_list")) and one not in ("params", "grads")
    ]
    lists = lists[: next((i for i, one in enumerate(lists) if one == "state_steps"), 0) + 1]
    state = None
    for g in map(rd.tensor, GRADIENTS[:3]):
        wanted.grad = g
        optimizer.step()
        if state is None:  # the first step makes it; there is none for `p` yet, which moves with it
            p.copy_(wanted.detach())
            kept = {one: value.clone() for one, value in optimizer.state[wanted].items()}
            key = {one: one.removesuffix("_list").removesuffix("s").removeprefix("state_") for one in lists}
            state = [[kept[key[one]]] if key[one] in kept else [] for one in lists]
        else:
            function([p], [g], *state, **options)
    assert rd.allclose(p, wanted.detach(), rtol=1e-12)


def test_steps_that_are_no_tensors_are_an_error():
    adam = import_module("redispatch.optim.adam").adam
    with pytest.raises(RuntimeError, match="`state_steps` argument must contain a list of singleton tensors"):
        adam([rd.ones(1)], [rd.ones(1)], [rd.ones(1)], [rd.ones(1)], [], [1], **FUNCTIONS["adam"][1])
    with pytest.raises(TypeError, match="missing a required argument"):
        adam([], [], [], [], [], [])
