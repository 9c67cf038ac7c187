"""After "Hooks for autograd saved tensors": what backward needs may be packed away, counted, or made again."""

import torch
from torch.autograd.graph import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

packed = []


def pack(x):
    packed.append(tuple(x.shape))
    return x.detach().to(torch.float16) if x.is_floating_point() else x


def unpack(x):
    return x.to(torch.float32) if x.is_floating_point() else x


a = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
b = torch.tensor([4.0, 5.0, 6.0], requires_grad=True)
with saved_tensors_hooks(pack, unpack):
    y = (a * b).exp().sum()
print("packed", packed)
(a.grad, b.grad) = torch.autograd.grad((a * b).sum(), (a, b))
with saved_tensors_hooks(pack, unpack):
    z = a * b
z.sum().backward()
print(a.grad, b.grad)

print(z.grad_fn.name(), [node.name() for node, _ in z.grad_fn.next_functions])
w = a * a
print(torch.equal(w.grad_fn._saved_self, a), w.grad_fn._saved_self is a)


class Later:
    """Stands for a tensor that is made again when asked for."""

    def __init__(self, make):
        self.make = make


def lazily(x):
    values = x.tolist()
    return Later(lambda: torch.tensor(values))


c = torch.tensor([0.5, 1.5], requires_grad=True)
with saved_tensors_hooks(lazily, lambda later: later.make()):
    d = c.sin()
d.sum().backward()
print(torch.allclose(c.grad, c.detach().cos()))

with save_on_cpu():
    e = c.tanh()
e.sum().backward()
print(c.grad)

try:
    with disable_saved_tensors_hooks("no hooks here"):
        with saved_tensors_hooks(pack, unpack):
            c * c
except RuntimeError as problem:
    print(problem)

runs = []


def block(x):
    runs.append("forward")
    return (x.sin() * x).exp()


x = torch.tensor([0.1, 0.2], requires_grad=True)
out = checkpoint(block, x, use_reentrant=False)
print(len(runs))
out.sum().backward()
print(len(runs), x.grad)

handles = []
h = (x * 2).requires_grad_()
handles.append(h.register_hook(lambda grad: print("hook", grad) or grad * 10))
handles.append(x.register_post_accumulate_grad_hook(lambda p: print("accumulated", p.grad)))
x.grad = None
h.sum().backward()
handles[0].remove()
try:
    t = torch.ones(2, requires_grad=True)
    u = t.exp()
    u.mul_(2)
    u.sum().backward()
except RuntimeError as problem:
    print("modified by an inplace operation" in str(problem))
