"""Programs as compiled graphs, beside `torch.compile`, which wants a C++ compiler and some seconds for each."""

from __future__ import annotations

import importlib

from rows import Group

GROUP = Group()
row = GROUP.row


def compiled(t, function, *inputs):
    """The call of a compiled function."""
    if t.__name__ == "torch":
        made = t.compile(function)
        return lambda: made(*inputs)
    make_fx = importlib.import_module("redispatch.fx.experimental.proxy_tensor").make_fx
    graph = importlib.import_module("redispatch._inductor").compile_fx_inner(make_fx(function)(*inputs), inputs)
    return lambda: graph(*inputs)


@row("eight pointwise operators, a million elements", target=0.55)
def chain(t):
    return compiled(t, lambda x: ((x * 2 + 1).tanh() * x.exp()).relu() - x / 3, t.randn(1000, 1000))


@row("softmax and mask, 2048 x 512", target=0.7)
def softmax(t):
    def program(x, mask):
        return t.softmax(x, -1) * mask if t.__name__ == "torch" else over_rows(x) * mask

    def over_rows(x):
        e = (x - x.amax(-1, keepdim=True)).exp()
        return e / e.sum(-1, keepdim=True)

    return compiled(t, program, t.randn(2048, 512), t.ones(2048, 512))


@row("layer norm as its formula, 2048 x 512", target=0.5)
def layer_norm(t):
    def program(x, w, b):
        d = x - x.mean(-1, keepdim=True)
        return d * ((d * d).mean(-1, keepdim=True) + 1e-5).rsqrt() * w + b

    return compiled(t, program, t.randn(2048, 512), t.randn(512), t.randn(512))


@row("MLP 32-64-10, batch 64: forward, backward, SGD", target=0.12)
def mlp(t):
    f, shapes = t.nn.functional, ((64, 32), (64,), (10, 64), (10,))
    weights = [t.randn(*shape) / 8 for shape in shapes]
    x, y = t.randn(64, 32), t.randint(10, (64,))

    def loss(*leaves):
        return f.cross_entropy(f.linear(f.relu(f.linear(x, leaves[0], leaves[1])), leaves[2], leaves[3]), y)

    if t.__name__ == "torch":
        made, leaves = t.compile(loss), [one.clone().requires_grad_() for one in weights]

        def train():
            gradients = t.autograd.grad(made(*leaves), leaves)
            with t.no_grad():
                for leaf, gradient in zip(leaves, gradients, strict=True):
                    leaf.sub_(gradient, alpha=0.1)

        return train

    def step(*given):
        leaves = [one.detach().requires_grad_() for one in given]
        gradients = t.autograd.grad(loss(*leaves), leaves)
        return [leaf.detach() - 0.1 * gradient for leaf, gradient in zip(leaves, gradients, strict=True)]

    return compiled(t, step, *weights)
