"""A custom operator over numpy, with a fake, a derivative and a batching rule."""

import numpy as np
import torch
from torch.fx.experimental.proxy_tensor import make_fx


@torch.library.custom_op("zoo::sine", mutates_args=())
def sine(x: torch.Tensor, k: float = 1.0) -> torch.Tensor:
    return torch.from_numpy(np.sin(x.numpy() * k))


@sine.register_fake
def shape_of_sine(x, k=1.0):
    return torch.empty_like(x)


def keep(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])
    ctx.k = inputs[1]


def derivative(ctx, grad):
    (x,) = ctx.saved_tensors
    return grad * torch.cos(x * ctx.k) * ctx.k, None


sine.register_autograd(derivative, setup_context=keep)


@sine.register_vmap
def batched(info, in_dims, x, k=1.0):
    print("a batch of", info.batch_size)
    return sine(x, k), in_dims[0]


x = torch.zeros(3, requires_grad=True)
sine(x, 2.0).sum().backward()
print(x.grad, sine._opoverload._schema)
print(torch.vmap(sine)(torch.ones(4, 2)).shape)
print(sine(torch.empty(2, 5, device="meta")).shape)
print(make_fx(lambda x: sine(x) + 1)(torch.ones(2)).code.strip())
print(torch.library.opcheck(sine, (torch.ones(2, requires_grad=True),)))
