"""After the notes on __torch_dispatch__: a wrapper and a mode that show what runs below autograd."""

import contextlib

import torch
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_map, tree_map_only


class Wrapped(torch.Tensor):
    """A tensor around another one, which does all the work."""

    @staticmethod
    def __new__(cls, elem, *args, **kwargs):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            elem.size(),
            strides=elem.stride(),
            storage_offset=elem.storage_offset(),
            dtype=elem.dtype,
            layout=elem.layout,
            device=elem.device,
            requires_grad=elem.requires_grad,
        )

    def __init__(self, elem):
        self.elem = elem

    def __repr__(self):
        return f"Wrapped({self.elem})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        unwrapped, unwrapped_kwargs = tree_map_only(Wrapped, lambda x: x.elem, (args, kwargs))
        out = tree_map_only(torch.Tensor, Wrapped, func(*unwrapped, **unwrapped_kwargs))
        print("  subclass:", func)
        return return_and_correct_aliasing(func, args, kwargs, out)


class LoggingMode(TorchDispatchMode):
    def __init__(self, name):
        super().__init__()
        self.name = name

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        print(f"{self.name}: {func}")
        return func(*args, **(kwargs or {}))


class NoRandomness(TorchDispatchMode):
    """A mode may refuse."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if torch.Tag.nondeterministic_seeded in func.tags:
            raise RuntimeError(f"{func} draws random numbers")
        return func(*args, **(kwargs or {}))


class ToMeta(TorchDispatchMode):
    """A mode may answer itself: shapes without work."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        meta = lambda x: x.to("meta") if isinstance(x, torch.Tensor) else x
        with contextlib.nullcontext():
            return func(*tree_map(meta, args), **tree_map(meta, kwargs or {}))


weight = torch.nn.Parameter(torch.ones(2, 3))
x = Wrapped(torch.arange(6.0).view(2, 3))
print("forward")
y = (x * weight).sum(1)
print(type(y).__name__, y.requires_grad, y.shape)
print("backward")
y.sum().backward()
print(type(weight.grad).__name__, weight.grad)

print("views alias")
view = x.t()
view.add_(1)
print(x, x._version, view._version)

print("modes")
with LoggingMode("outer"), LoggingMode("inner"):
    torch.nn.functional.linear(torch.ones(1, 3), weight).relu()
with LoggingMode("mode"):
    x.exp()
try:
    with NoRandomness():
        print(torch.ones(2).add(1))
        torch.rand(2)
except RuntimeError as problem:
    print(problem)
with ToMeta():
    print((torch.ones(100, 200) @ torch.ones(200, 5)).shape)
print("after", torch.ones(1) + 1)
