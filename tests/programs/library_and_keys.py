"""After the notes on the dispatcher in Python: libraries, keys, fallbacks, and redispatching below a key."""

import torch
from torch.library import Library, fallthrough_kernel

lib = Library("programs_lib", "DEF")
lib.define("scale(Tensor x, float factor=2.0) -> Tensor")
lib.define("twice(Tensor x) -> Tensor")
lib.impl("scale", lambda x, factor=2.0: x * factor, "CPU")
lib.impl("scale", lambda x, factor=2.0: torch.empty_like(x), "Meta")
lib.impl("twice", lambda x: torch.ops.programs_lib.scale(x), "CompositeImplicitAutograd")


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        with torch._C._AutoDispatchBelowAutograd():
            return torch.ops.programs_lib.scale(x, factor)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


lib.impl("scale", lambda x, factor=2.0: Scale.apply(x, factor), "Autograd")
scale = torch.ops.programs_lib.scale.default
x = torch.ones(2, requires_grad=True)
print(scale(x), scale(x, 3.0).grad_fn is not None)
torch.ops.programs_lib.twice(x).sum().backward()
print(x.grad)
print(scale(torch.empty(2, device="meta")).device)
print(scale._schema, [a.name for a in scale._schema.arguments], scale._schema.arguments[1].default_value)

calls = []
override = Library("aten", "IMPL")


def loud_cos(keyset, x):
    calls.append("cos")
    return torch.ops.aten.cos.default.redispatch(keyset & torch._C._after_autograd_keyset, x)


override.impl("cos", loud_cos, "AutogradCPU", with_keyset=True)
print(torch.cos(torch.zeros(1)), calls)
override._destroy()
print(torch.cos(torch.zeros(1)), calls)

try:
    Library("programs_lib", "DEF")
except RuntimeError as problem:
    print("Only a single TORCH_LIBRARY" in str(problem))
try:
    lib.define("scale(Tensor x) -> Tensor")
except RuntimeError as problem:
    print("multiple times" in str(problem))
try:
    torch.ops.programs_lib.nothing
except AttributeError as problem:
    print(problem)
for bad in (("x",), (torch.ones(1), 1.0, 2), ()):
    try:
        scale(*bad)
    except (RuntimeError, TypeError) as problem:
        print(type(problem).__name__, str(problem).splitlines()[0])
print(torch._C._dispatch_keys(torch.ones(1)))
print(torch._C._dispatch_keys(torch.empty(1, device="meta")))
lib.impl("scale", fallthrough_kernel, "AutocastCPU")
with torch.autocast("cpu"):
    print(scale(torch.ones(1)).dtype)
del scale
lib._destroy()
print(hasattr(torch.ops.programs_lib, "scale"))
