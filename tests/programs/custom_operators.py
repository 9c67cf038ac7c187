"""After "Custom Python operators": numpy inside an operator, with a fake, a derivative and a batching rule."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


@torch.library.custom_op("programs::numpy_cube", mutates_args=())
def numpy_cube(x: Tensor) -> tuple[Tensor, Tensor]:
    values = x.numpy()
    return torch.tensor(values**3), torch.tensor(3 * values**2)


@numpy_cube.register_fake
def _(x):
    return torch.empty_like(x), torch.empty_like(x)


def setup_context(ctx, inputs, output):
    (x,), (_, dx) = inputs, output
    ctx.save_for_backward(x, dx)


def backward(ctx, grad_out, grad_dx):
    x, dx = ctx.saved_tensors
    return grad_out * dx + 6 * grad_dx * x


numpy_cube.register_autograd(backward, setup_context=setup_context)


@numpy_cube.register_vmap
def _(info, in_dims, x):
    return numpy_cube(x), (in_dims[0], in_dims[0])


@torch.library.custom_op("programs::crop", mutates_args=())
def crop(picture: Tensor, box: Sequence[int]) -> Tensor:
    left, top, right, bottom = box
    return torch.from_numpy(np.ascontiguousarray(picture.numpy()[..., top:bottom, left:right]))


@crop.register_fake
def _(picture, box):
    left, top, right, bottom = box
    return picture.new_empty(*picture.shape[:-2], bottom - top, right - left)


def crop_setup(ctx, inputs, output):
    picture, ctx.box = inputs
    ctx.shape = picture.shape


def crop_backward(ctx, grad):
    left, top, right, bottom = ctx.box
    result = grad.new_zeros(ctx.shape)
    result[..., top:bottom, left:right] = grad
    return result, None


crop.register_autograd(crop_backward, setup_context=crop_setup)


@torch.library.custom_op("programs::tally", mutates_args=())
def tally(values: list[Tensor], weights: list[float], scale: float = 1.0, label: str | None = None) -> Tensor:
    return sum(v * w for v, w in zip(values, weights, strict=True)) * scale


print(torch.ops.programs.numpy_cube.default._schema)
print(torch.ops.programs.crop.default._schema)
print(torch.ops.programs.tally.default._schema)

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y, dy = numpy_cube(x)
(grad,) = torch.autograd.grad(y.sum() + dy.sum(), x)
print(y, dy, grad)
print(torch.func.vmap(lambda row: numpy_cube(row)[0])(torch.arange(6.0).view(3, 2)))

picture = torch.arange(32.0).view(2, 4, 4).requires_grad_()
part = crop(picture, (1, 0, 3, 2))
part.sum().backward()
print(part.detach(), picture.grad.sum(0))
print(crop(torch.empty(3, 8, 8, device="meta"), [0, 0, 5, 4]).shape)
print(tally([torch.ones(2), torch.ones(2)], [0.5, 0.25], scale=2.0))

for name, outcome in torch.library.opcheck(numpy_cube, (torch.ones(3, requires_grad=True),)).items():
    print(name, outcome)


@torch.library.custom_op("programs::alias", mutates_args=())
def alias(x: Tensor) -> Tensor:
    return x


try:
    alias(torch.ones(1))
except RuntimeError as problem:
    print("may not alias" in str(problem))
try:
    torch.library.custom_op("programs::vague", mutates_args=())(lambda x: x)
except ValueError as problem:
    print(type(problem).__name__)
try:
    tally(torch.ones(1), [1.0])
except RuntimeError as problem:
    print(str(problem).splitlines()[0])
