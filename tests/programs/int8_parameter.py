"""A quantised parameter: a wrapper of int8 numbers and scales, which a module takes in the place of its weight."""

import copy
import pickle

import torch
from torch import nn
from torch.utils._python_dispatch import return_and_correct_aliasing

aten = torch.ops.aten


class Int8Weight(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, numbers, scale):
        return torch.Tensor._make_wrapper_subclass(cls, numbers.shape, dtype=scale.dtype, device=numbers.device)

    def __init__(self, numbers, scale):
        self.numbers, self.scale = numbers, scale

    def __repr__(self, *, tensor_contents=None):
        return f"Int8Weight({self.numbers.tolist()}, {self.scale.flatten().tolist()})"

    @classmethod
    def from_float(cls, weight):
        scale = weight.abs().amax(1, keepdim=True) / 127
        return cls((weight / scale).round().to(torch.int8), scale)

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        kwargs = kwargs or {}
        if func in (aten.detach.default, aten.clone.default, aten.t.default):
            inner = cls(func(args[0].numbers, **kwargs), func(args[0].scale, **kwargs))
            return return_and_correct_aliasing(func, args, kwargs, inner)
        if func in (aten.mm.default, aten.addmm.default):
            return func(*(one.numbers * one.scale if isinstance(one, cls) else one for one in args), **kwargs)
        raise NotImplementedError(f"{func} of an Int8Weight")


layer = nn.Linear(4, 2)
with torch.no_grad():
    layer.weight.copy_(torch.tensor([[0.0, 1.27, -0.5, 0.25], [1.0, 2.0, -2.54, 0.5]]))
    layer.bias.zero_()
x = torch.ones(1, 4, requires_grad=True)
exact = layer(x)
layer.weight = nn.Parameter(Int8Weight.from_float(layer.weight.detach()), requires_grad=False)
print(layer.weight)
print(torch.allclose(layer(x), exact, atol=0.02), isinstance(layer.weight, nn.Parameter))
layer(x).sum().backward()
print(x.grad)
try:
    layer.weight + 1
except NotImplementedError as problem:
    print(problem)

# It has no memory of its own, and needs no more than its attributes to be copied and pickled.
for other in (copy.copy(layer.weight), pickle.loads(pickle.dumps(layer.weight))):
    print(type(other).__name__, torch.equal(other.numbers, layer.weight.numbers))


class Packed(nn.Parameter):
    """A parameter with something beside its data, which moves with its module."""

    def __new__(cls, data, state=None):
        made = torch.Tensor._make_subclass(cls, data, False)
        made.state = state
        return made

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        return tuple(cls(part, args[0].state) for part in result) if func in (torch.chunk, torch.split) else result

    def to(self, *args, **kwargs):
        print("moved:", args, kwargs)
        return Packed(super().to(*args, **kwargs), self.state)

    def __repr__(self):
        return f"Packed({self.state})"


module = nn.Module()
module.p = Packed(torch.arange(4, dtype=torch.uint8), "four")
print(module.p, module.p.dtype, torch.chunk(module.p, 2), type(module.p + 1).__name__)
module.to(torch.float64)
