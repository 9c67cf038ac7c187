"""Our optimizers and schedules against PyTorch's: twenty steps, their text, and checkpoints carried over both ways.

Run with a Python that has torch: `python tests/parity/optim.py`. Exits non-zero on any difference beyond rounding.
"""

from __future__ import annotations

import sys

import numpy as np
import torch

import redispatch as rd
import redispatch.nn
import redispatch.optim

RNG = np.random.default_rng(0)
START = [RNG.standard_normal((3, 4)), RNG.standard_normal(7)]
GRADIENTS = [[RNG.standard_normal((3, 4)), RNG.standard_normal(7)] for _ in range(20)]
# Of the order of ten roundings: PyTorch's kernels fuse some products and sums, and so round less often.
TOLERANCE = {"float32": 2e-6, "float64": 1e-14}

OPTIMIZERS = {
    "SGD": [
        {"lr": 0.1},
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01},
        {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True},
    ],
    "Adam": [{}, {"lr": 0.01, "amsgrad": True, "weight_decay": 0.1, "maximize": True, "betas": (0.8, 0.99)}],
    "AdamW": [{"lr": 0.01, "weight_decay": 0.3}, {"amsgrad": True}],
    "Adagrad": [{"lr": 0.1}, {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}],
    "Adadelta": [{}, {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1, "maximize": True}],
    "Adamax": [{"lr": 0.01}, {"lr": 0.01, "betas": (0.8, 0.9), "weight_decay": 0.1}],
    "RMSprop": [{}, {"momentum": 0.9, "weight_decay": 0.1}, {"momentum": 0.9, "centered": True, "alpha": 0.9}],
    "Rprop": [{"lr": 0.1}, {"lr": 0.1, "etas": (0.4, 1.5), "step_sizes": (0.01, 0.2), "maximize": True}],
    "ASGD": [{"lr": 0.1}, {"lr": 0.1, "lambd": 0.01, "alpha": 0.6, "t0": 5, "weight_decay": 0.1}],
    "NAdam": [{"lr": 0.01}, {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True, "momentum_decay": 0.1}],
    "RAdam": [{"lr": 0.01}, {"lr": 0.01, "betas": (0.8, 0.9), "weight_decay": 0.1, "decoupled_weight_decay": True}],
    "Adafactor": [{"lr": 0.1}, {"lr": 0.1, "d": 2.0, "weight_decay": 0.1, "eps": (1e-6, 1e-2), "beta2_decay": -0.5}],
    "Muon": [{"lr": 0.1}, {"lr": 0.1, "nesterov": False, "momentum": 0.8, "adjust_lr_fn": "match_rms_adamw"}],
}
MATRICES = {"Muon"}  # they take no others, and compute in bfloat16
SCHEDULES = [
    ("LambdaLR", (lambda t: 0.9**t,)),
    ("MultiplicativeLR", (lambda t: 0.9,)),
    ("StepLR", (3, 0.5)),
    ("MultiStepLR", ([2, 5, 5], 0.5)),
    ("ExponentialLR", (0.9,)),
    ("ConstantLR", ()),
    ("LinearLR", (0.1, 0.7, 6)),
    ("CosineAnnealingLR", (7, 0.001)),
    ("PolynomialLR", (7, 2.0)),
    ("CyclicLR", (0.01, 0.1, 3, 4)),
    ("CyclicLR", (0.01, 0.1, 3, 4, "triangular2")),
    ("CyclicLR", (0.01, 0.1, 3, 4, "exp_range", 0.9)),
    ("CyclicLR", (0.01, 0.1, 3, None, "", 1.0, lambda x: 1 / (x + 1), "iterations")),
    ("OneCycleLR", (0.5, 20)),
    ("OneCycleLR", (0.5, None, 4, 5, 0.4, "linear")),
    ("OneCycleLR", (0.5, 20, None, None, 0.25, "cos", True, 0.8, 0.9, 10.0, 1e3, True)),
    ("CosineAnnealingWarmRestarts", (4, 2, 0.001)),
    ("CosineAnnealingWarmRestarts", (3,)),
]


def made(library, name, options, dtype):
    start = START[:1] if name in MATRICES else START
    params = [library.nn.Parameter(library.from_numpy(values.astype(dtype))) for values in start]
    return params, getattr(library.optim, name)(params, **options)


def run(library, params, optimizer, gradients):
    for step in gradients:
        for param, gradient in zip(params, step, strict=False):
            param.grad = library.from_numpy(gradient).to(param.dtype)
        optimizer.step()


def carried(saved, library):
    """A state dict with its tensors made those of the other library."""
    if isinstance(saved, dict):
        return {key: carried(value, library) for key, value in saved.items()}
    if hasattr(saved, "numpy"):
        return library.tensor(saved.tolist(), dtype=getattr(library, str(saved.dtype).removeprefix("torch.")))
    return saved


def difference(ours, theirs):
    pairs = zip(ours, theirs, strict=True)
    return max(np.abs(a.detach().numpy() - b.detach().numpy()).max() for a, b in pairs)


def valley(library, dtype, options):
    """The end of ten steps of L-BFGS in Rosenbrock's valley, and its state's counts."""
    point = library.nn.Parameter(library.tensor([-1.5, 2.0], dtype=getattr(library, dtype)))
    optimizer = library.optim.LBFGS([point], **options)

    def closure():
        optimizer.zero_grad()
        loss = (1 - point[0]) ** 2 + 100 * (point[1] - point[0] ** 2) ** 2
        loss.backward()
        return loss

    for _ in range(10):
        optimizer.step(closure)
    state = optimizer.state[point]
    return point, (state["func_evals"], state["n_iter"], len(state["old_dirs"]))


def sequence(module, optimizer):
    parts = [
        module.LinearLR(optimizer, 0.1, 1.0, 5),
        module.CosineAnnealingLR(optimizer, 8),
        module.StepLR(optimizer, 2),
    ]
    return module.SequentialLR(optimizer, parts, [5, 12])


def chain(module, optimizer):
    return module.ChainedScheduler([module.ConstantLR(optimizer, 0.1, 4), module.ExponentialLR(optimizer, 0.9)])


COMPOUND = {"SequentialLR": sequence, "ChainedScheduler": chain}


def followed(library, build):
    """The rates and momenta of twenty epochs."""
    _, optimizer = made(library, "SGD", {"lr": 0.1, "momentum": 0.9}, "float32")
    scheduler = build(library.optim.lr_scheduler, optimizer)
    (group,) = optimizer.param_groups
    seen = [(group["lr"], group["momentum"])]
    for _ in range(20):
        optimizer.step()
        scheduler.step()
        assert scheduler.get_last_lr() == [group["lr"]]
        seen.append((group["lr"], group["momentum"]))
    return seen


def plateau(library, losses, options):
    _, optimizer = made(library, "SGD", {"lr": 0.1}, "float32")
    scheduler = library.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
    seen = []
    for loss in losses:
        scheduler.step(loss)
        seen += scheduler.get_last_lr()
    return seen


def main() -> int:
    failures = 0

    def check(what, error, limit):
        nonlocal failures
        failures += not error <= limit
        print(f"{'ok  ' if error <= limit else 'FAIL'} {error:9.2e}  {what}")

    for name, variants in OPTIMIZERS.items():
        for options in variants:
            for dtype, limit in TOLERANCE.items():
                limit = 1e-5 if name in MATRICES else limit
                (ours, a), (theirs, b) = made(rd, name, options, dtype), made(torch, name, options, dtype)
                check(f"{name} {options} {dtype}: text", float(repr(a) != repr(b)), 0)
                run(rd, ours, a, GRADIENTS[:10])
                run(torch, theirs, b, GRADIENTS[:10])
                check(f"{name} {options} {dtype}: ten steps", difference(ours, theirs), limit)
                saved_a, saved_b = a.state_dict(), b.state_dict()
                a.load_state_dict(carried(saved_b, rd))
                b.load_state_dict(carried(saved_a, torch))
                run(rd, ours, a, GRADIENTS[10:])
                run(torch, theirs, b, GRADIENTS[10:])
                check(f"{name} {options} {dtype}: ten more, states exchanged", difference(ours, theirs), 2 * limit)
    for options in ({"max_iter": 4, "lr": 0.01}, {"line_search_fn": "strong_wolfe", "max_iter": 5, "history_size": 4}):
        (ours, counts), (theirs, wanted) = (valley(library, "float64", options) for library in (rd, torch))
        check(f"LBFGS {options}", difference([ours], [theirs]), 1e-9)
        check(f"LBFGS {options}: counts {counts}, {wanted}", float(counts != wanted), 0)
    for name, arguments in SCHEDULES:
        rates = [
            followed(library, lambda module, optimizer: getattr(module, name)(optimizer, *arguments))  # noqa: B023  # run before the loop goes on
            for library in (rd, torch)
        ]
        check(f"{name}{arguments}", np.abs(np.subtract(*rates)).max(), 1e-15)
    for name, build in COMPOUND.items():
        check(name, np.abs(np.subtract(*(followed(library, build) for library in (rd, torch)))).max(), 1e-15)
    losses = RNG.random(40) + np.linspace(1, 0.5, 40)
    for options in ({"patience": 2}, {"mode": "max", "threshold_mode": "abs", "cooldown": 2, "min_lr": 0.01}):
        rates = [plateau(library, losses, options) for library in (rd, torch)]
        check(f"ReduceLROnPlateau {options}", np.abs(np.subtract(*rates)).max(), 1e-15)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
