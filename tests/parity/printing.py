"""Our tensor printing against PyTorch's `repr`, on random tensors of all dtypes, shapes, options and oddities.

Run with a Python that has torch: `python tests/parity/printing.py [tensors]`. Exits non-zero on any difference.
"""

from __future__ import annotations

import random
import sys

import numpy as np
import torch
from loading import load

printing = load("tensor.printing")

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
COMPLEX = [torch.complex64, torch.complex128]
INTS = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]


def values(rng: random.Random, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
    """Numbers of one of several characters: whole, of one size, of many sizes, mostly zero; some not finite."""
    if dtype in INTS:
        high = rng.choice([2, 10, 1000, 2**40])
        return torch.randint(-high, high, shape).to(dtype)
    if dtype in COMPLEX:
        return torch.complex(*(values(rng, shape, torch.float64) for _ in range(2))).to(dtype)
    x = torch.randn(shape, dtype=torch.float64) * 10 ** rng.uniform(-6, 9)
    kind = rng.randrange(5)
    if kind == 0:
        x = x.round()
    elif kind == 1:
        x = (torch.randn(shape, dtype=torch.float64) * rng.choice([1, 3, 1e3])).round()
    elif kind == 2:
        x = x * 10 ** (torch.randn(shape, dtype=torch.float64) * rng.choice([0.1, 1, 3]))
    elif kind == 3:
        x = torch.randn(shape, dtype=torch.float64)
    if rng.random() < 0.2:
        odd = torch.tensor([float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1e-5, 99999999.5, 1e8, 0.99995, 0.5])
        mask = torch.rand(shape) < rng.choice([0.1, 0.5, 1.0])
        x = torch.where(mask, odd.double()[torch.randint(len(odd), shape)], x)
    return x.to(dtype)


def ours(x: torch.Tensor, default: torch.dtype) -> str:
    facts = []
    if x.grad_fn is not None:
        facts.append(f"grad_fn=<{type(x.grad_fn).__name__}>")
    elif x.requires_grad:
        facts.append("requires_grad=True")
    name, default_name = (str(dtype).removeprefix("torch.") for dtype in (x.dtype, default))
    keywords = {"shape": tuple(x.shape), "default_dtype_name": default_name, "suffixes": facts}
    if x.is_meta:
        return printing.format_tensor(None, name, device="meta", **keywords)
    plain = x.detach()
    array = (plain.float() if x.dtype in (torch.float16, torch.bfloat16) else plain).numpy()
    return printing.format_tensor(np.asarray(array), name, **keywords)


def options(rng: random.Random) -> dict:
    if rng.random() < 0.5:
        return {"profile": "default"}
    return {
        "profile": rng.choice(["default", "short", "full"]),
        "precision": rng.choice([None, 0, 1, 8]),
        "threshold": rng.choice([None, 0, 5, 50]),
        "edgeitems": rng.choice([None, 0, 1, 2, 5]),
        "linewidth": rng.choice([None, 10, 40, 200]),
        "sci_mode": rng.choice([None, None, True, False]),
    }


def compare(count: int) -> int:
    rng = random.Random(0)
    torch.manual_seed(0)
    wrong = 0
    for _ in range(count):
        dtype = rng.choice(FLOATS * 3 + COMPLEX * 2 + INTS)
        shape = [rng.choice([0, 1, 2, 3, 5, 8, 11]) for _ in range(rng.randrange(5))]
        if rng.random() < 0.05:
            shape = [rng.choice([999, 1001, 2000])] + [2] * rng.randrange(2)
        x = values(rng, shape, dtype)
        if dtype not in INTS and rng.random() < 0.3:
            x.requires_grad_()
            x = x * 1 if rng.random() < 0.5 else x
        if rng.random() < 0.05:
            x = x.to("meta")
        default = rng.choice([torch.float32, torch.float32, torch.float64])
        chosen = options(rng)
        torch.set_default_dtype(default)
        torch.set_printoptions(**chosen)
        printing.set_printoptions(**chosen)
        expected, found = repr(x), ours(x, default)
        torch.set_default_dtype(torch.float32)
        if expected != found:
            wrong += 1
            if wrong <= 5:
                print(f"--- {tuple(shape)} {dtype} {chosen}\nPyTorch\n{expected[:900]}\nours\n{found[:900]}")
    print(f"{count - wrong} of {count} tensors are printed alike")
    return wrong


if __name__ == "__main__":
    sys.exit(1 if compare(int(sys.argv[1]) if len(sys.argv) > 1 else 5000) else 0)
