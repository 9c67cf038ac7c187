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
}
SCHEDULES = [
    ("LambdaLR", (lambda t: 0.9**t,)),
    ("MultiplicativeLR", (lambda t: 0.9,)),
    ("StepLR", (3, 0.5)),
    ("MultiStepLR", ([2, 5, 5], 0.5)),
    ("ExponentialLR", (0.9,)),
    ("ConstantLR", ()),
    ("LinearLR", (0.1, 0.7, 6)),
    ("CosineAnnealingLR", (7, 0.001)),
]


def made(library, name, options, dtype):
    params = [library.nn.Parameter(library.from_numpy(values.astype(dtype))) for values in START]
    return params, getattr(library.optim, name)(params, **options)


def run(library, params, optimizer, gradients):
    for step in gradients:
        for param, gradient in zip(params, step, strict=True):
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


def main() -> int:
    failures = 0

    def check(what, error, limit):
        nonlocal failures
        failures += not error <= limit
        print(f"{'ok  ' if error <= limit else 'FAIL'} {error:9.2e}  {what}")

    for name, variants in OPTIMIZERS.items():
        for options in variants:
            for dtype, limit in TOLERANCE.items():
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
    for name, arguments in SCHEDULES:
        rates = []
        for library in (rd, torch):
            _, optimizer = made(library, "SGD", {"lr": 0.1}, "float32")
            scheduler = getattr(library.optim.lr_scheduler, name)(optimizer, *arguments)
            rates.append(scheduler.get_last_lr())
            for _ in range(20):
                optimizer.step()
                scheduler.step()
                rates[-1] = rates[-1] + scheduler.get_last_lr()
        check(f"{name}{arguments}", max(abs(x - y) for x, y in zip(*rates, strict=True)), 1e-15)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
