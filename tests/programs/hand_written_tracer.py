"""A tracer of one's own: a wrapper subclass whose handler writes each operator down, and one that runs on no data."""

import torch
import torch.fx as fx
from torch._guards import detect_fake_mode
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_map_only


class Traced(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, elem, proxy):
        return torch.Tensor._make_wrapper_subclass(cls, elem.shape, strides=elem.stride(), dtype=elem.dtype)

    def __init__(self, elem, proxy):
        self.elem, self.proxy = elem, proxy

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args, kwargs = (args, kwargs or {})
        written = func(*tree_map_only(cls, lambda x: x.proxy, args), **tree_map_only(cls, lambda x: x.proxy, kwargs))
        result = func(*tree_map_only(cls, lambda x: x.elem, args), **tree_map_only(cls, lambda x: x.elem, kwargs))
        if isinstance(result, torch.Tensor):
            return cls(result, written)
        return tuple(cls(one, written[i]) for i, one in enumerate(result))


class Tracer(fx.Tracer):
    """Plain tensors become buffers of the root."""

    def create_arg(self, a):
        if isinstance(a, torch.Tensor):
            name = f"constant{len(list(self.root.buffers()))}"
            self.root.register_buffer(name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)


def trace(function, *inputs):
    tracer = Tracer()
    tracer.root, tracer.graph = torch.nn.Module(), fx.Graph()
    nodes = [tracer.create_node("placeholder", f"x{i}", (), {}) for i in range(len(inputs))]
    result = function(*(Traced(x, fx.Proxy(node, tracer)) for x, node in zip(inputs, nodes, strict=True)))
    tracer.create_node("output", "output", (tree_map_only(Traced, lambda x: x.proxy.node, result),), {})
    return fx.GraphModule(tracer.root, tracer.graph)


def step(w, x):
    w = w.detach().requires_grad_()
    values, _ = (x @ w).relu().max(1)
    loss = torch.cat([values, torch.ones(1)]).sum(dim=0)
    return torch.autograd.grad(loss, w)[0]


w, x = torch.ones(3, 2), torch.arange(6.0).reshape(2, 3)
traced = trace(step, w, x)
print(traced.code.strip())
print(torch.equal(traced(w, x), step(w, x)))

# The same on fakes: shapes alone, of matrices that no machine would hold.
with FakeTensorMode() as mode:
    huge = torch.empty(10**6, 10**6)
    print((huge @ huge).shape, detect_fake_mode([huge]) is mode)
    try:
        huge[huge > 0]
    except Exception as problem:
        print(type(problem).__name__)
