"""After the notes on modes: function modes that watch, replace and default; devices as modes."""

import torch
from torch.overrides import BaseTorchFunctionMode, TorchFunctionMode


class Watch(TorchFunctionMode):
    def __init__(self, name):
        super().__init__()
        self.name, self.seen = name, []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func.__name__)
        return func(*args, **(kwargs or {}))


class Swap(TorchFunctionMode):
    """Has every `relu` be a `tanh`."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in (torch.relu, torch.Tensor.relu, torch.nn.functional.relu):
            return torch.tanh(args[0])
        return func(*args, **(kwargs or {}))


class Doubles(TorchFunctionMode):
    """Has factories make float64."""

    FACTORIES = {torch.ones, torch.zeros, torch.arange}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func in self.FACTORIES:
            kwargs.setdefault("dtype", torch.float64)
        return func(*args, **kwargs)


with Watch("one") as watch:
    x = torch.ones(2)
    (x + 1).sum().item()
    torch.nn.functional.relu(x)
    x.shape  # a property is seen, too
print(watch.seen)

with Swap():
    print(torch.nn.functional.relu(torch.tensor([-1.0, 1.0])), torch.tensor([2.0]).relu())
with Doubles():
    print(torch.ones(1).dtype, torch.arange(3).dtype, torch.zeros(1, dtype=torch.int32).dtype)
with Watch("outer") as outer, Swap(), Watch("inner") as inner:
    torch.relu(torch.zeros(1))
print(outer.seen, inner.seen)
with BaseTorchFunctionMode():
    print(torch.ones(1) + 1)
with torch.device("meta"):
    print(torch.ones(2).device, torch.nn.Linear(2, 2).weight.device)
with Watch("off") as watch, torch._C.DisableTorchFunction():
    torch.ones(1) + 1
print(watch.seen)
torch.set_default_device("meta")
print(torch.zeros(1).device)
torch.set_default_device(None)
print(torch.zeros(1).device)
