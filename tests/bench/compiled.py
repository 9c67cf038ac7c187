"""Programs as compiled graphs, beside `torch.compile`, which wants a C++ compiler and some seconds for each."""

from __future__ import annotations

import importlib

from rows import Group

GROUP = Group()
row = GROUP.row


RECORDED = False  # whether what is compiled is recorded as a graph of CUDA: tests/gpu/speed.py


def compiled(t, function, *inputs):
    """The call of a compiled function."""
    if t.__name__ == "torch":
        made = t.compile(function, mode="reduce-overhead" if RECORDED else "default")
        return lambda: made(*inputs)
    make_fx = importlib.import_module("redispatch.fx.experimental.proxy_tensor").make_fx
    module = make_fx(function)(*inputs)
    graph = importlib.import_module("redispatch._inductor").compile_fx_inner(module, inputs, cudagraphs=RECORDED)
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


def training(t, loss, *weights):
    """The call of a compiled step of SGD, from the function of the weights that is to become less."""
    if t.__name__ == "torch":
        made = t.compile(loss, mode="reduce-overhead" if RECORDED else "default")
        leaves = [one.clone().requires_grad_() for one in weights]

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


@row("layer norm and its gradients, 2048 x 512", target=0.5)
def layer_norm(t):
    x = t.randn(2048, 512)
    y = t.randn(2048, 512)
    return training(
        t, lambda w, b, x: (t.nn.functional.layer_norm(x, (512,), w, b) * y).sum(), t.randn(512), t.randn(512), x
    )


@row("cross entropy and z-loss, 256 x 32,000, and gradients", target=0.35)
def cross_entropy(t):
    y = t.randint(32000, (256,))

    def loss(x):
        return t.nn.functional.cross_entropy(x, y) + 1e-4 * t.logsumexp(x, 1).square().mean()

    return training(t, loss, t.randn(256, 32000))


@row("MLP 32-64-10, batch 64: forward, backward, SGD", target=0.12)
def mlp(t):
    return training(t, *mlp_of(t, 64, 32, 64, 10))


@row("MLP 512-1024-10, batch 256: forward, backward, SGD", target=1.0)
def big_mlp(t):
    return training(t, *mlp_of(t, 256, 512, 1024, 10))


def mlp_of(t, batch, width, hidden, classes):
    """(the loss, the weights) of a perceptron of two layers, for one batch."""
    f, shapes = t.nn.functional, ((hidden, width), (hidden,), (classes, hidden), (classes,))
    x, y = t.randn(batch, width), t.randint(classes, (batch,))

    def loss(a, b, c, d):
        return f.cross_entropy(f.linear(f.relu(f.linear(x, a, b)), c, d), y)

    return loss, *(t.randn(*shape) / 8 for shape in shapes)


@row("CNN of two convolutions, 32 x 1 x 28 x 28: forward, backward, SGD", target=0.6)
def cnn(t):
    f, x, y = t.nn.functional, t.randn(32, 1, 28, 28), t.randint(10, (32,))

    def loss(a, b, c, d):
        h = f.max_pool2d(f.relu(f.conv2d(x, a, padding=1)), 2)
        h = f.max_pool2d(f.relu(f.conv2d(h, b, padding=1)), 2)
        return f.cross_entropy(f.linear(h.flatten(1), c, d), y)

    shapes = ((8, 1, 3, 3), (16, 8, 3, 3), (10, 784), (10,))
    return training(t, loss, *(t.randn(*shape) / 8 for shape in shapes))


@row("GPT of two layers, 4 x 64 tokens of 128: forward, backward, SGD", target=1.0)
def gpt(t):
    f, width, heads, words = t.nn.functional, 128, 4, 1000
    ids, targets = t.randint(words, (4, 64)), t.randint(words, (256,))
    shapes = [(words, width), (64, width)]
    for _ in range(2):
        shapes += [(width,), (width,), (3 * width, width), (width, width)]
        shapes += [(width,), (width,), (4 * width, width), (width, 4 * width)]

    def loss(tokens, places, *blocks):
        x = f.embedding(ids, tokens) + places
        for k in range(0, len(blocks), 8):
            g, h, qkv, out, g2, h2, up, down = blocks[k : k + 8]
            parts = f.linear(f.layer_norm(x, (width,), g, h), qkv).view(4, 64, 3, heads, width // heads)
            q, k_, v = (parts[:, :, i].transpose(1, 2) for i in range(3))
            mixed = f.scaled_dot_product_attention(q, k_, v, is_causal=True)
            x = x + f.linear(mixed.transpose(1, 2).reshape(4, 64, width), out)
            x = x + f.linear(f.gelu(f.linear(f.layer_norm(x, (width,), g2, h2), up)), down)
        return f.cross_entropy(f.linear(x, tokens).view(256, words), targets)

    return training(t, loss, *(t.randn(*shape) / 12 for shape in shapes))
