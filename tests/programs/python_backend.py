"""After the backend in Python: the device "npy", whose tensors are numpy arrays, at the key PrivateUse1."""

import numpy as np
import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

_setup_privateuseone_for_python_backend("npy")

DTYPES = {np.dtype("float32"): torch.float32, np.dtype("bool"): torch.bool, np.dtype("int64"): torch.int64}


class NumpyTensor(torch.Tensor):
    """A tensor that knows its array; to the library it has no memory."""

    @staticmethod
    def __new__(cls, array):
        made = torch._C._acc.create_empty_tensor(array.shape, DTYPES[array.dtype])
        made.__class__ = NumpyTensor
        return made

    def __init__(self, array):
        self.array = array

    __torch_function__ = torch._C._disabled_torch_function_impl  # results are of the class that kernels give them

    def __repr__(self):
        return f"NumpyTensor({self.array.tolist()})"


def kernel(name):
    return torch.library.impl(f"aten::{name}", "privateuseone")


@kernel("empty.memory_format")
def empty(size, dtype=None, layout=None, device=None, pin_memory=False, memory_format=None):
    return NumpyTensor(np.empty(tuple(size), dtype=np.float32))


@kernel("empty_strided")
def empty_strided(size, stride, dtype=None, layout=None, device=None, pin_memory=None):
    return NumpyTensor(np.empty(tuple(size), dtype=np.float32))


@kernel("_copy_from")
def copy_from(source, target, non_blocking=False):
    if target.device.type == "npy":
        values = source.array if source.device.type == "npy" else source.detach().numpy()
        target.array = np.array(values)
    else:
        target.copy_(torch.from_numpy(source.array))
    return target


@kernel("add.Tensor")
def add(x, y, alpha=1):
    return NumpyTensor(x.array + alpha * getattr(y, "array", y))


@kernel("mul.Tensor")
def mul(x, y):
    print("mul on numpy")
    return NumpyTensor(np.asarray(x.array * getattr(y, "array", y), dtype=np.float32))


@kernel("mm")
def mm(x, y):
    return NumpyTensor(x.array @ y.array)


@kernel("detach")
def detach(x):
    return NumpyTensor(x.array)


@kernel("fill_.Scalar")
def fill(x, value):
    x.array[...] = value
    return x


print(torch.device("npy:0"), torch._C._get_privateuse1_backend_name())
x = torch.ones(2, 2).to("npy")
print(x.device.type, type(x).__name__, x)
y = x * x
print(y, (y + x).cpu())
print(torch.mm(x, y).cpu())
z = torch.empty(2, 3, device="npy")
print(z.shape, z.device.type, z.is_cpu)
a = torch.tensor([1.0, 2.0]).to("npy").requires_grad_()
b = a * a
print(b.requires_grad, type(b.grad_fn).__name__)
try:
    torch.sin(x)
except NotImplementedError as problem:
    print("Could not run 'aten::sin" in str(problem), "npy" in str(problem) or "PrivateUse1" in str(problem))
