"""A mode that follows memory, and one that makes an operator fail: what is left after it is as it was."""

import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode
from torch.utils._pytree import tree_leaves


class LiveMemory(TorchDispatchMode):
    """The bytes of storages that were made inside and are still there, and the most that there were."""

    def __init__(self):
        super().__init__()
        self.live, self.peak, self.watched = {}, 0, []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self.watch(tensor.untyped_storage())
        self.peak = max(self.peak, sum(self.live.values()))
        return result

    def watch(self, storage):
        key = storage._cdata
        if key not in self.live:
            self.live[key] = storage.nbytes()
            self.watched.append(weakref.ref(storage, lambda _: self.live.pop(key)))


with LiveMemory() as memory:
    x = torch.ones(1000)
    y = x + 1
    view = y.view(10, 100)
    del x
    z = y * 2
    del y, view
print(memory.peak, sum(memory.live.values()))


class Failing(TorchDispatchMode):
    """Raises an error at the operator of this number."""

    def __init__(self, number):
        super().__init__()
        self.left = number

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.left -= 1
        if self.left == 0:
            raise MemoryError(f"at {func}")
        return func(*args, **(kwargs or {}))


x = torch.ones(3, requires_grad=True)
for number in range(1, 9):
    x.grad = None
    try:
        with Failing(number):
            (x.exp() * 2).sum().backward()
    except MemoryError as problem:
        print(problem, _get_current_dispatch_mode(), torch.is_grad_enabled(), x.grad)
