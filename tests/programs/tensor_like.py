"""After "Extending torch with a Tensor-like type": a diagonal matrix that is no tensor, by __torch_function__."""

import functools

import torch

HANDLED = {}


def implements(torch_function):
    def decorator(function):
        functools.update_wrapper(function, torch_function)
        HANDLED[torch_function] = function
        return function

    return decorator


class Diagonal:
    """value * identity(n), kept as two numbers."""

    def __init__(self, n, value):
        self.n, self.value = n, value

    def __repr__(self):
        return f"Diagonal(n={self.n}, value={self.value})"

    def tensor(self):
        return self.value * torch.eye(self.n)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in HANDLED or not all(issubclass(t, (torch.Tensor, Diagonal)) for t in types):
            return NotImplemented
        return HANDLED[func](*args, **(kwargs or {}))


def ensure_tensor(data):
    return data.tensor() if isinstance(data, Diagonal) else torch.as_tensor(data)


@implements(torch.mean)
def mean(input):
    return float(input.value) / input.n


@implements(torch.add)
def add(input, other):
    if isinstance(input, Diagonal) and isinstance(other, Diagonal):
        return Diagonal(input.n, input.value + other.value)
    return torch.add(ensure_tensor(input), ensure_tensor(other))


@implements(torch.matmul)
def matmul(input, other):
    return input.value * other if isinstance(input, Diagonal) else input * other.value


@implements(torch.stack)
def stack(tensors, dim=0):
    return torch.stack([ensure_tensor(x) for x in tensors], dim)


class Other(Diagonal):
    """A subclass is asked before its parent."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print("Other was asked for", func.__name__, "with", [t.__name__ for t in types])
        return super().__torch_function__(func, types, args, kwargs)


d = Diagonal(2, 3)
print(torch.mean(d), torch.add(d, d))
print(torch.add(d, torch.ones(2, 2)))
print(torch.matmul(d, torch.tensor([1.0, 2.0])))
print(torch.stack([torch.zeros(2, 2), d]))
print(torch.add(d, Other(2, 4)))
try:
    torch.mul(d, 2)
except TypeError as problem:
    print("no implementation found for 'torch.mul'" in str(problem))
print(
    torch.overrides.is_tensor_like(d),
    torch.overrides.has_torch_function((1, d)),
    torch.overrides.has_torch_function((1,)),
)
