"""A wrapper subclass that keeps the elements that are not zero, and says for each operator what it does with them."""

import torch

aten = torch.ops.aten


class Sparse(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl
    __slots__ = ("elements", "places")
    kernels = {}

    @staticmethod
    def __new__(cls, size, elements, places):
        return torch.Tensor._make_wrapper_subclass(cls, size, dtype=elements.dtype)

    def __init__(self, size, elements, places):
        self.elements, self.places = elements, places

    @classmethod
    def from_dense(cls, dense):
        places = dense.nonzero().t()
        return cls(dense.shape, dense[tuple(places)], places)

    def dense(self):
        return torch.zeros(self.shape).index_put_(tuple(self.places), self.elements, accumulate=True)

    def __repr__(self):
        return f"Sparse({tuple(self.shape)}, {len(self.elements)} elements)"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func not in cls.kernels:
            raise NotImplementedError(f"no sparse {func}")
        return cls.kernels[func](*args, **(kwargs or {}))


def kernel(*ops):
    def enter(function):
        Sparse.kernels.update(dict.fromkeys(ops, function))
        return function

    return enter


@kernel(aten.mul.Tensor)
def mul(x, y):
    if not isinstance(x, Sparse):
        return mul(y, x)
    return Sparse(x.shape, x.elements * (y if not isinstance(y, torch.Tensor) else y[tuple(x.places)]), x.places)


@kernel(aten.add.Tensor)
def add(x, y):
    return Sparse(x.shape, torch.cat([x.elements, y.elements]), torch.cat([x.places, y.places], 1))


@kernel(aten.t.default)
def t(x):
    return Sparse(x.shape[::-1], x.elements, x.places.flip(0))


@kernel(aten.mm.default)
def mm(x, y):
    rows, columns = x.places
    return torch.zeros(x.shape[0], y.shape[1]).index_add_(0, rows, x.elements[:, None] * y[columns])


s = Sparse.from_dense(torch.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0]]))
print(s, s * 2, 3 * s, s + s, (s + s).dense(), s.t().shape)
y = torch.ones(3, 2, requires_grad=True)
z = s @ y
print(z, z.grad_fn.name())
z.sum().backward()
print(y.grad)
try:
    s.exp()
except NotImplementedError as problem:
    print(problem)
