"""After the dispatch mode that counts floating-point operations."""

from collections import Counter

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten


def mm_flops(a, b):
    return 2 * a.shape[-2] * a.shape[-1] * b.shape[-1] * a.shape[:-2].numel()


RULES = {
    aten.mm.default: lambda a, b: mm_flops(a, b),
    aten.bmm.default: lambda a, b: mm_flops(a, b),
    aten.addmm.default: lambda bias, a, b, **_: mm_flops(a, b),
}


class Flops(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.by_op, self.calls = Counter(), Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls[str(func)] += 1
        if func in RULES:
            self.by_op[str(func)] += RULES[func](*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(self.up(x).relu())


model = nn.Sequential(Block(8), Block(8), nn.Linear(8, 3))
x = torch.ones(5, 8)
with Flops() as mine:
    out = model(x)
print("forward", dict(mine.by_op))
with Flops() as mine:
    model(x).sum().backward()
print("forward and backward", dict(sorted(mine.by_op.items())))
print(
    "calls of relu",
    mine.calls["aten.relu.default"],
    "of threshold_backward",
    mine.calls["aten.threshold_backward.default"],
)

with Flops() as mine:
    torch.einsum("bij,bjk->bik", torch.ones(2, 3, 4), torch.ones(2, 4, 5))
print(dict(mine.by_op))
