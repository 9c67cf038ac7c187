"""Functions with transforms of their own, and functionalize."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import redispatch as rd
from redispatch.autograd import Function
from redispatch.autograd import forward_ad as fwAD
from redispatch.func import functionalize, grad, hessian, jacfwd, jacrev, jvp, vmap
from redispatch.testing import assert_close
from redispatch.utils._python_dispatch import TorchDispatchMode

from .. import drawing
from ..view_programs import START, WRITTEN_KINDS, Program, layout

# A user's autograd.Function under transforms --------------------------------------------------------------------------

X = rd.tensor([1.0, 2.0, 3.0], dtype=rd.float64)
S = rd.tensor(2.0, dtype=rd.float64)
BATCH = rd.stack([X, X + 1])


class Cube(Function):
    """s x^3, with everything that a transform may ask for."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, s):
        return x**3 * s

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, s = ctx.saved_tensors
        return 3 * x * x * g * s, (g * x**3).sum()

    @staticmethod
    def jvp(ctx, t, ts):
        x, s = ctx.saved_tensors
        moved = 3 * x * x * t * s
        return moved if ts is None else moved + x**3 * ts


class Ruled(Function):
    """Twice x, by a vmap of its own."""

    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return 2 * g

    @staticmethod
    def vmap(info, in_dims, x):
        assert info.batch_size == 2 and info.randomness == "error"
        return x * 2, in_dims[0]


def cube(x):
    return Cube.apply(x, S).sum()


def test_gradients_of_gradients():
    assert_close(grad(cube)(X), 6 * X**2)
    assert_close(grad(lambda x: grad(cube)(x).sum())(X), 12 * X)
    assert_close(hessian(cube)(X), rd.diag(12 * X))


def test_forward_mode_asks_jvp():
    assert_close(jvp(cube, (X,), (X,))[1], (6 * X**3).sum())
    assert_close(jacfwd(cube)(X), 6 * X**2)
    assert_close(jacrev(cube)(X), 6 * X**2)
    with fwAD.dual_level():
        result = fwAD.unpack_dual(Cube.apply(fwAD.make_dual(X, X), S))
    assert_close(result.tangent, 6 * X**3)


@pytest.mark.parametrize("batched", [lambda f: vmap(grad(f)), lambda f: grad(lambda x: vmap(f)(x).sum())])
def test_a_generated_rule(batched):
    assert_close(batched(cube)(BATCH), 6 * BATCH**2)


def test_the_gradient_of_what_is_not_batched_is_summed_over_the_batch():
    found = grad(lambda s: vmap(lambda x: Cube.apply(x, s).sum())(BATCH).sum())(S)
    assert_close(found, (BATCH**3).sum())


def test_a_gradient_that_broadcasting_made_larger_is_summed_to_an_examples_shape():
    class Times(Function):
        generate_vmap_rule = True
        forward = staticmethod(lambda x, y: x * y)
        setup_context = staticmethod(lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
        backward = staticmethod(lambda ctx, g: (g * ctx.saved_tensors[1], g * ctx.saved_tensors[0]))

    found = grad(lambda x: vmap(Times.apply, (0, None))(x, BATCH[0]).sum())(BATCH[1])
    assert_close(found, BATCH[0].sum().expand_as(BATCH[1]))


def test_a_rule_by_the_user():
    assert_close(vmap(Ruled.apply)(BATCH), 2 * BATCH)
    assert_close(vmap(grad(lambda x: Ruled.apply(x).sum()))(BATCH), rd.full_like(BATCH, 2))


def test_what_is_missing_is_named():
    class Unruled(Function):
        forward = staticmethod(lambda x: x * 2)
        setup_context = staticmethod(lambda ctx, inputs, output: None)

    with pytest.raises(RuntimeError, match="does not have vmap support"):
        vmap(Unruled.apply)(BATCH)
    with pytest.raises(NotImplementedError, match="must implement the jvp function"):
        jvp(Unruled.apply, (X,), (X,))


class Product(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, y, times):
        return x * y * times

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(*inputs[:2])
        ctx.times = inputs[2]

    @staticmethod
    def jvp(ctx, x_tangent, y_tangent, times):
        assert times is None
        x, y = ctx.saved_tensors
        return (x_tangent * y + x * y_tangent) * ctx.times


class Sparing(Product):
    @staticmethod
    def setup_context(ctx, inputs, output):
        Product.setup_context(ctx, inputs, output)
        ctx.set_materialize_grads(False)

    @staticmethod
    def jvp(ctx, x_tangent, y_tangent, times):
        assert y_tangent is None
        return x_tangent * ctx.saved_tensors[1] * ctx.times


@pytest.mark.parametrize("kind", [Product, Sparing])
def test_a_jvp_is_given_zeros_for_missing_tangents_if_it_wants_them(kind):
    other = X.exp()
    assert_close(jvp(lambda x: kind.apply(x, other, 2), (X,), (X,))[1], 2 * X * other)
    assert_close(jacfwd(lambda x: kind.apply(x, other, 2))(X), rd.diag(2 * other))
    found = vmap(lambda y: jvp(lambda x: kind.apply(x, y, 2), (X,), (X,))[1])(BATCH)
    assert_close(found, 2 * X * BATCH)
    with fwAD.dual_level():
        assert_close(fwAD.unpack_dual(kind.apply(fwAD.make_dual(X, X), other, 2)).tangent, 2 * X * other)


def test_a_whole_number_has_no_tangent():
    class Scaled(Product):
        @staticmethod
        def jvp(ctx, x_tangent, y_tangent, times):
            assert y_tangent is None
            return x_tangent * ctx.saved_tensors[1] * ctx.times

    assert_close(jvp(lambda x: Scaled.apply(x, rd.tensor([1, 2, 3]), 2), (X,), (X,))[1], 2 * X * rd.tensor([1, 2, 3]))


# functionalize --------------------------------------------------------------------------------------------------------

# Values, layout and aliasing are those of the program, and no operator below writes anything.

NUMBERS = st.integers(0, 11)
FACTORS = st.sampled_from([0.5, 0.9, -1.1, 1.3])
STEPS = st.tuples(st.sampled_from(WRITTEN_KINDS), NUMBERS, NUMBERS, NUMBERS, NUMBERS, FACTORS)
PROGRAMS = st.lists(STEPS, min_size=3, max_size=14)


class Watch(TorchDispatchMode):
    """Notes the operators that are called, and refuses those that write while a program runs."""

    def __init__(self):
        self.running = False
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert not (self.running and func._schema.is_mutable), f"{func} writes"
        self.seen.append(func)
        return func(*args, **(kwargs or {}))

    def around(self, function):
        def run(*args):
            self.running = True
            try:
                return function(*args)
            finally:
                self.running = False

        return run


def inputs():
    return rd.tensor(START, dtype=rd.float64), rd.tensor(START[::-1][:6], dtype=rd.float64)


def check(steps, remove="mutations"):
    eager, functional, watch = Program(rd, steps), Program(rd, steps), Watch()
    x, y = inputs()
    wanted = eager(x, y)
    p, q = inputs()
    with watch:
        found = functionalize(watch.around(functional), remove=remove)(p, q)
    assert functional.errors == eager.errors
    for a, b in zip([p, q, *found], [x, y, *wanted], strict=True):
        assert np.allclose(a.tolist(), b.tolist(), rtol=1e-12, atol=0)
    if remove == "mutations":
        assert layout([p, q, *found]) == layout([x, y, *wanted])
    else:
        assert not any(func._schema.is_view for func in watch.seen)


@drawing.at_length(5000)
@given(PROGRAMS)
def test_a_functionalized_program_has_the_values_layout_and_aliasing_of_the_program(steps):
    check(steps)


@given(PROGRAMS)
def test_views_may_be_removed_as_well(steps):
    check(steps, "mutations_and_views")


def test_what_a_compiler_asks_of_wrappers():
    values = rd.zeros(2), rd.ones(2)
    x = rd._to_functional_tensor(values[0])
    with rd._C._ForceDispatchKeyGuard(rd._C._dispatch_tls_local_include_set(), rd._C._dispatch_tls_local_exclude_set()):
        rd._enable_functionalization(reapply_views=True)
        first = x[0]
        assert rd._is_functional_tensor_base(x) and not rd._is_functional_tensor_base(first)
        rd._functionalize_replace(x, values[1])
        assert not rd._functionalize_has_data_mutation(x)
        rd._functionalize_commit_update(x)
        assert rd._functionalize_has_data_mutation(first) and rd._functionalize_mutation_counter(x) == 1
        rd._functionalize_sync(first)
        assert not rd._functionalize_has_metadata_mutation(x)
        x.unsqueeze_(0)
        assert rd._functionalize_has_metadata_mutation(x)
    assert rd._from_functional_tensor(first).item() == 1 and values[0].tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="expected a functional tensor, got Tensor"):
        rd._functionalize_mutation_counter(values[0])
