"""After "Subclassing torch.Tensor": a subclass that logs, and one that carries metadata through every function."""

import logging
import sys

import torch

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s", force=True)


class LoggingTensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        # methods of Tensor are reached by many names; the last part is the same for all
        if func is not torch.Tensor.__repr__:
            logging.info(f"func: {func.__name__}, args: {len(args)}")
        return super().__torch_function__(func, types, args, kwargs or {})


class MetadataTensor:
    """Not a tensor: a pair of one and a string."""

    def __init__(self, data, metadata=None, **kwargs):
        self._t = torch.as_tensor(data, **kwargs)
        self._metadata = metadata

    def __repr__(self):
        return f"Metadata:\n{self._metadata}\n\ndata:\n{self._t}"

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        metadatas = tuple(a._metadata for a in args if hasattr(a, "_metadata"))
        args = [getattr(a, "_t", a) for a in args]
        assert len(metadatas) > 0
        return MetadataTensor(func(*args, **(kwargs or {})), metadata=metadatas[0])


class Named(torch.Tensor):
    """A subclass that keeps an attribute in results of its own class."""

    @staticmethod
    def __new__(cls, data, unit="m"):
        made = torch.as_tensor(data).as_subclass(cls)
        made.unit = unit
        return made

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        units = {a.unit for a in args if isinstance(a, cls) and hasattr(a, "unit")}
        if len(units) > 1:
            raise ValueError(f"units differ: {sorted(units)}")
        result = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(result, cls) and units:
            result.unit = units.pop()
        return result


x = torch.ones(2).as_subclass(LoggingTensor)
y = x + 1
print(type(y).__name__, type(x.sum()).__name__, type(x.shape).__name__)
print(torch.stack([x, torch.zeros(2)]).max(0).values.tolist())
print(type(torch.split(x, 1)[0]).__name__, isinstance(x.data, LoggingTensor))

m = MetadataTensor([[1, 2], [3, 4]], metadata={"owner": "Ministry of Silly Walks"})
print(torch.add(m, torch.tensor([[1, 2], [1, 2]])))
print(torch.mul(m, torch.tensor([[10], [20]])))

length = Named([1.0, 2.0])
print(length.unit, (length * 2).unit, (length[0] + length[1]).unit, type(length).__name__)
print((length @ length).item(), length.mean().unit)
try:
    length + Named([1.0, 2.0], "s")
except ValueError as problem:
    print(problem)
with torch._C.DisableTorchFunctionSubclass():
    print(type(length + 1).__name__)
