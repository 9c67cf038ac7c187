"""After "Extending torch.autograd": functions with a derivative of their own, checked and batched."""

import torch
from torch.autograd import Function, gradcheck, gradgradcheck
from torch.autograd.function import once_differentiable

asked = set()


class Linear(Function):
    """Without the bias: the forward with `ctx`, as it was first written."""

    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        if bias is not None:
            output = output + bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        asked.add(ctx.needs_input_grad)
        grad_input = grad_output.mm(weight) if ctx.needs_input_grad[0] else None
        grad_weight = grad_output.t().mm(input) if ctx.needs_input_grad[1] else None
        grad_bias = grad_output.sum(0) if bias is not None and ctx.needs_input_grad[2] else None
        return grad_input, grad_weight, grad_bias


class Scale(Function):
    """A number among the arguments gets no gradient."""

    @staticmethod
    def forward(x, factor):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, ctx.factor = inputs
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, grad_output):
        return None if grad_output is None else (grad_output * ctx.factor), None


class SortValues(Function):
    """One result has a gradient, the other is an index."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        values, order = torch.sort(x)
        return values, order

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, order = output
        ctx.mark_non_differentiable(order)
        ctx.save_for_backward(order)

    @staticmethod
    def backward(ctx, grad_values, _):
        (order,) = ctx.saved_tensors
        return torch.zeros_like(grad_values).scatter(-1, order, grad_values)


class Cube(Function):
    """With a tangent, too, and a rule for batches."""

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 3 * ctx.saved_tensors[0] ** 2

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * 3 * ctx.saved_tensors[0] ** 2

    @staticmethod
    def vmap(info, in_dims, x):
        print("a batch of", info.batch_size, "along", in_dims[0])
        return Cube.apply(x), in_dims[0]


class Once(Function):
    """Its backward is computed without being recorded."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        return 2 * grad_output * ctx.saved_tensors[0]


class AddInPlace(Function):
    """Writes its first argument and says so."""

    @staticmethod
    def forward(ctx, x, y):
        x.add_(y)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output


x = torch.arange(6, dtype=torch.double).view(2, 3).requires_grad_()
w = (torch.arange(12, dtype=torch.double).view(4, 3) / 10).requires_grad_()
b = torch.ones(4, dtype=torch.double)
out = Linear.apply(x, w, b)
print(out)
out.sum().backward()
print(x.grad, w.grad, b.grad, asked)
print(gradcheck(lambda x, w: Linear.apply(x, w), (x, w)))

y = torch.tensor([1.0, 2.0], requires_grad=True)
print(torch.autograd.grad(Scale.apply(y, 5).sum(), y))

values, order = SortValues.apply(torch.tensor([3.0, 1.0, 2.0], requires_grad=True))
print(values, order, order.requires_grad)
batch = torch.tensor([[3.0, 1.0, 2.0], [5.0, 9.0, 7.0]])
print(torch.func.vmap(torch.func.grad(lambda x: (SortValues.apply(x)[0] * torch.arange(3.0)).sum()))(batch))

z = torch.tensor([1.0, 2.0, 3.0], dtype=torch.double, requires_grad=True)
print(gradgradcheck(Cube.apply, (z,)))
print(torch.func.jvp(Cube.apply, (z.detach(),), (torch.ones(3, dtype=torch.double),)))
print(torch.func.vmap(Cube.apply)(batch))

once = Once.apply(z)
(first,) = torch.autograd.grad(once.sum(), z, create_graph=True)
try:
    first.sum().backward()
except RuntimeError as problem:
    print(type(problem).__name__, str(problem)[:60])

leaf = torch.ones(2, requires_grad=True)
base = leaf * 2
written = AddInPlace.apply(base, leaf)
print(written is base, base._version, base.grad_fn.name())
written.sum().backward()
print(leaf.grad)
