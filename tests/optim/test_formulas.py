"""Twenty steps of each optimizer against the textbook's formulas in numpy; `tests/parity/optim.py` has PyTorch's."""

import numpy as np
import pytest

import redispatch as rd
from redispatch import nn
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


CASES = [
    (SGD, sgd, {"lr": 0.1}),
    (SGD, sgd, {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    (SGD, sgd, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    (Adam, adam, {}),
    (Adam, adam, {"lr": 0.01, "betas": (0.8, 0.99), "eps": 1e-3, "weight_decay": 0.1, "amsgrad": True}),
    (AdamW, lambda *args, **options: adam(*args, **options, decoupled=True), {"lr": 0.01, "weight_decay": 0.3}),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("optimizer", "reference", "options"), CASES)
def test_twenty_steps_follow_the_formula(optimizer, reference, options, dtype):
    parameter = nn.Parameter(rd.from_numpy(START.astype(dtype)))
    made = optimizer([parameter], **options)
    for gradient in GRADIENTS:
        parameter.grad = rd.from_numpy(gradient.astype(dtype))
        made.step()
    tolerance = {"float32": 2e-6, "float64": 1e-14}[dtype]
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
