"""What users of PyTorch's extension points asked for, and have here. Each test is named by the thread that asks for it:
`functorch_1124` is pytorch/functorch#1124, a bare number an issue or change of pytorch/pytorch.
"""

import redispatch as rd
from redispatch import nn
from redispatch.autograd import Function
from redispatch.func import functional_call, grad, jacrev, jvp, vmap
from redispatch.testing import assert_close

BATCH = rd.linspace(-1.0, 2.0, 12, dtype=rd.float64).reshape(4, 3)


# Backward hooks and Functions under transforms -----------------------------------------------------------------------


def hooked():
    """(a module whose parts have backward hooks, the list in which they write what they see)"""
    module, seen = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double(), []
    for part in module:
        part.register_full_backward_hook(lambda part, inputs, outputs: seen.append((part, inputs[0], outputs[0])))
    return module, seen


def test_functorch_1124_full_backward_hooks_run_under_vmap_and_jacrev():
    module, seen = hooked()
    parameters = dict(module.named_parameters())

    def loss(parameters, x):
        return functional_call(module, parameters, (x,)).square().sum()

    found = vmap(grad(loss), (None, 0))(parameters, BATCH)
    assert [part for part, *_ in seen] == [*reversed(module)]
    assert [outputs.shape for *_, outputs in seen] == [(2,), (4,), (4,)]  # of one example
    for index, x in enumerate(BATCH):
        alone = rd.autograd.grad(module(x).square().sum(), [*parameters.values()])
        assert_close([each[index] for each in found.values()], [*alone])
    seen.clear()
    assert vmap(jacrev(module))(BATCH).shape == (4, 2, 3) and len(seen) == 3


def test_functorch_638_hooks_are_called_where_a_backward_pass_outside_of_vmap_reaches_a_module_in_it():
    module, seen = hooked()
    x = BATCH.clone().requires_grad_()
    vmap(module)(x).sum().backward()
    assert [part for part, *_ in seen] == [*reversed(module)]
    assert_close(x.grad, rd.autograd.grad(module(x).sum(), x)[0])


def test_99556_a_hook_changes_gradients_under_transforms_as_it_does_outside():
    module = nn.Linear(3, 2).double()
    module.register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * 2,))
    module.register_full_backward_pre_hook(lambda module, outputs: (outputs[0] * 5,))
    assert_close(grad(lambda x: module(x).sum())(BATCH[0]), 10 * module.weight.sum(0))
    assert_close(vmap(grad(lambda x: module(x).sum()))(BATCH), (10 * module.weight.sum(0)).expand(4, 3))


class Scaled(Function):
    """sin(x y) times a factor that may come by keyword; keeps arguments, an intermediate result and a number."""

    @staticmethod
    def forward(ctx, x, y, factor=1.0):
        ctx.save_for_backward(x, y, (x * y).cos())
        ctx.factor = factor
        return (x * y).sin() * factor

    @staticmethod
    def backward(ctx, gradient):
        x, y, _ = ctx.saved_tensors
        slope = (x * y).cos() * ctx.factor * gradient
        return slope * y, slope * x if ctx.needs_input_grad[1] else None

    @staticmethod
    def jvp(ctx, dx, dy):
        return ctx.factor * dx.clone() if dy is None else ctx.factor * (dx + dy)


def scaled(x, y):
    return 3 * (x * y).sin()


def test_flash_attention_2071_functions_whose_forward_takes_the_context_run_under_grad_and_vmap():
    def apply(x, y):
        return Scaled.apply(x, y, factor=3.0)

    x, y = BATCH[0], BATCH[1]
    for transform in (
        lambda f: f(x, y),
        lambda f: grad(lambda x, y: f(x, y).sum(), (0, 1))(x, y),
        lambda f: jacrev(jacrev(f))(x, y),
        lambda f: vmap(grad(f))(x, y),
        lambda f: vmap(vmap(grad(f), (0, None)), (None, 0))(x, y),
        lambda f: grad(lambda x: vmap(f, (0, None))(x, y).sum())(x),
        lambda f: vmap(jacrev(lambda x: f(x, y)))(BATCH),
    ):
        assert_close(transform(apply), transform(scaled))


def test_functorch_296_backward_may_use_an_output_whose_own_derivative_is_the_users():
    class Rounded(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.round()
            ctx.save_for_backward(y)
            return y, y > 0

        @staticmethod
        def backward(ctx, gradient, _):
            return gradient * ctx.saved_tensors[0] ** 2

    second = vmap(grad(grad(lambda x: Rounded.apply(x)[0])))(BATCH[3])
    assert_close(second, 2 * BATCH[3].round() ** 3)
    assert_close(vmap(lambda x: Rounded.apply(x)[1])(BATCH), BATCH.round() > 0)


def test_finufft_95_a_forward_that_leaves_the_library_is_differentiated():
    class Foreign(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = x.numpy().copy()
            return rd.from_numpy(ctx.x**2)

        @staticmethod
        def backward(ctx, gradient):
            return gradient * rd.from_numpy(2 * ctx.x)

    assert_close(jacrev(Foreign.apply)(BATCH[0]), rd.diag(2 * BATCH[0]))


def test_a_function_that_writes_its_argument_or_has_a_jvp_is_split_as_well():
    class Tripled(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(3)

        backward = jvp = staticmethod(lambda ctx, given: 3 * given)

    assert_close(vmap(grad(lambda x: Tripled.apply(x.clone())))(BATCH[0]), rd.full((3,), 3.0, dtype=rd.float64))
    x, y = BATCH[0], BATCH[1]
    assert_close(jvp(lambda x, y: Scaled.apply(x, y, factor=2.0), (x, y), (y, x))[1], 2 * (x + y))
