"""gradcheck finds wrong derivatives; `autograd.functional`; pullbacks."""

import pytest

import redispatch as rd
from redispatch.autograd import Function, GradcheckError, gradcheck, gradgradcheck, pulled_back
from redispatch.autograd.functional import hvp, jacobian
from redispatch.testing import make_tensor


def leaf(*values, dtype=None):
    return rd.tensor(list(values), dtype=dtype or rd.float64, requires_grad=True)


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x * x


class WrongCube(Cube):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x


class Constant(Cube):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x * x


def test_right_gradients_pass():
    x, y = leaf(0.5, -1.0, 2.0), leaf(1.0, 2.0, 0.25)
    assert gradcheck(lambda a, b: (a * b, (a / b).exp().sum()), (x, y))
    assert gradcheck(Cube.apply, x)
    assert gradgradcheck(Cube.apply, (x,))
    assert gradgradcheck(lambda a, b: a * b * b, (x, y))


def test_broadcast_gradients_pass():
    assert gradcheck(lambda a, b: a * b, (leaf(1.0, 2.0).view(2, 1).detach().requires_grad_(), leaf(3.0, 4.0, 5.0)))


def test_a_wrong_gradient_is_shown_beside_the_right_one():
    with pytest.raises(GradcheckError) as error:
        gradcheck(WrongCube.apply, (leaf(2.0, 3.0),))
    assert str(error.value) == (
        "Jacobian mismatch for output 0 with respect to input 0,\n"
        "numerical:tensor([[12.0000,  0.0000],\n        [ 0.0000, 27.0000]], dtype=torch.float64)\n"
        "analytical:tensor([[4., 0.],\n        [0., 6.]], dtype=torch.float64)\n"
    )
    assert not gradcheck(WrongCube.apply, (leaf(2.0, 3.0),), raise_exception=False)


def test_a_backward_that_ignores_its_gradient_is_found():
    with pytest.raises(GradcheckError):
        gradcheck(Constant.apply, (leaf(2.0),))


def test_single_precision_is_warned_about():
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision"):
        gradcheck(lambda x: x * 2, (leaf(1.0, dtype=rd.float32),), eps=1e-2, atol=1e-2)


class WrongTangent(rd.autograd.Function):
    """The square, whose backward is right and whose forward mode is wrong."""

    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * ctx.saved_tensors[0] * grad

    @staticmethod
    def jvp(ctx, tangent):
        return 3 * ctx.x * tangent


def test_forward_mode_is_checked_when_asked_for():
    assert gradcheck(lambda a, b: (a * b, a.sin()), (leaf(1.0, 2.0), leaf(3.0, 4.0)), check_forward_ad=True)
    assert gradcheck(WrongTangent.apply, (leaf(1.0, 2.0),))
    with pytest.raises(GradcheckError, match="mismatch for output 0 with respect to input 0"):
        gradcheck(WrongTangent.apply, (leaf(1.0, 2.0),), check_forward_ad=True)
    assert not gradcheck(
        WrongTangent.apply, (leaf(1.0),), check_forward_ad=True, check_backward_ad=False, raise_exception=False
    )


def test_batches_of_gradients_are_checked():
    assert gradcheck(lambda a, b: (a * b).cumsum(0), (leaf(1.0, 2.0), leaf(3.0, 4.0)), check_batched_grad=True)


def test_second_derivatives_are_checked_both_ways():
    inputs = (leaf(0.5, 1.5),)
    assert gradgradcheck(lambda a: a.exp() * a, inputs, check_fwd_over_rev=True)
    assert gradgradcheck(lambda a: a.exp() * a, inputs, check_fwd_over_rev=True, check_rev_over_rev=False)


# Fast mode ------------------------------------------------------------------------------------------------------------


class Wrong(Function):
    """Twice its argument, with a gradient in which one number comes from another, too."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2 + 0.1 * grad.flip(0)


@pytest.mark.parametrize("dtype", [rd.float64, rd.complex128])
def test_fast_mode_finds_what_the_whole_matrices_show(dtype):
    x = rd.tensor([0.5, -1.0, 2.0], dtype=dtype, requires_grad=True)
    both = {"fast_mode": True, "check_forward_ad": True}
    assert gradcheck(lambda x: (x * x.sum(), x.exp()), x, **both)
    assert gradgradcheck(lambda x: x**3, x, fast_mode=True)
    with pytest.raises(GradcheckError, match="mismatch for output 0 with respect to input 0"):
        gradcheck(Wrong.apply, x, fast_mode=True)


def test_fast_mode_calls_the_function_a_few_times():
    calls = []
    gradcheck(
        lambda x: (calls.append(1), x.sin())[1], rd.ones(50, dtype=rd.float64, requires_grad=True), fast_mode=True
    )
    assert len(calls) < 20


def test_batches_of_tangents_are_checked():
    x = rd.tensor([0.5, -1.0, 2.0], dtype=rd.float64, requires_grad=True)
    assert gradcheck(lambda x: x * x.sum(), x, check_forward_ad=True, check_batched_forward_grad=True)


@pytest.mark.parametrize("fast", [False, True])
def test_inputs_with_lazy_bits_are_moved_as_they_are_seen(fast):
    x = rd.randn(3, dtype=rd.complex128).conj().requires_grad_()
    assert rd.autograd.gradcheck(lambda x: x * x.imag, x, fast_mode=fast)


# autograd.functional under `strict` -----------------------------------------------------------------------------------

# What does not depend on the inputs is an error that says what it is.

ONES = rd.ones(2)


def test_what_is_independent_is_zero_elsewhere():
    assert jacobian(lambda x, y: x * 2, (ONES, ONES))[1].tolist() == [[0, 0], [0, 0]]
    assert hvp(lambda x: x.sum(), ONES, ONES)[1].tolist() == [0, 0]


# Derivatives that follow from the mathematics of an operator, run once more and recorded ------------------------------

F = rd.nn.functional


def numbers(*shape):
    return make_tensor(shape, dtype=rd.float64, low=-2, high=2, requires_grad=True)


def test_it_gives_the_gradients_and_none_where_none_is_wanted():
    x, y = numbers(3), numbers(3)
    found = pulled_back(lambda x, y, z: [x * y, None, x.sin()], (x, y, None), [y, None], [True, True, True])
    assert rd.equal(found[0], y * y) and rd.equal(found[1], x * y) and found[2] is None
    assert pulled_back(lambda x, y: [x * y], (x, y), [y], [False, True])[0] is None


def test_what_it_gives_can_be_differentiated_again():
    assert gradgradcheck(lambda x, y: pulled_back(lambda x: [x.exp() * x], (x,), [y])[0], (numbers(3), numbers(3)))


@pytest.mark.parametrize("mask", [[True, True, True], [True, False, False]])
def test_backward_of_layer_norm_moves_with_the_mean_and_deviation_of_its_input(mask):
    def backward(grad, x, weight):
        mean, var = x.mean(1, True), x.var(1, correction=0, keepdim=True)
        with rd.no_grad():  # what native_layer_norm has saved
            rstd = (var + 0.1).rsqrt()
            mean = mean.clone()
        found = rd.ops.aten.native_layer_norm_backward.default(grad, x, [3], mean, rstd, weight, weight, mask)
        return tuple(one for one in found if one is not None)

    assert gradcheck(backward, (numbers(2, 3), numbers(2, 3), numbers(3)))


@pytest.mark.parametrize("train", [True, False])
def test_backward_of_batch_norm_moves_with_the_mean_and_deviation_of_its_input(train):
    running_mean, running_var = rd.zeros(3, dtype=rd.float64), rd.ones(3, dtype=rd.float64) * 2

    def backward(grad, x, weight):
        with rd.no_grad():
            mean, rstd = x.mean(0), (x.var(0, correction=0) + 0.1).rsqrt()
        stats = running_mean, running_var, mean, rstd
        return rd.ops.aten.native_batch_norm_backward.default(grad, x, weight, *stats, train, 0.1, [True] * 3)

    assert gradcheck(backward, (numbers(4, 3), numbers(4, 3), numbers(3)))


@pytest.mark.parametrize("mode", ["bilinear", "nearest", pytest.param("bicubic", marks=pytest.mark.long)])
def test_sampling_at_a_grid_has_derivatives_of_the_third_order(mode):
    image = numbers(1, 1, 2, 2)
    grid = rd.tensor([[[[0.13, -0.42]]]], dtype=rd.float64, requires_grad=True)

    def slopes(image, grid):
        sampled = F.grid_sample(image, grid, mode, align_corners=False).sin().sum()
        return rd.autograd.grad(sampled, (image, grid), create_graph=True)

    assert gradgradcheck(slopes, (image, grid))


# What is said of mistakes ---------------------------------------------------------------------------------------------


def hooked(hook):
    """A function that is right but for a hook."""

    def function(x):
        y = x.clone()
        y.register_hook(hook)
        return y

    return function


@pytest.mark.parametrize("fast_mode", [False, True])
def test_each_mistake_has_its_words(fast_mode):
    x = leaf(1.0, 1.0)
    plus = hooked(lambda g: g + 1e-2)
    with pytest.raises(GradcheckError, match="imaginary part of complex outputs only"):
        gradcheck(plus, leaf(1.0, 1.0, dtype=rd.complex128), fast_mode=fast_mode)

    def undefined(g):
        if g is None:
            raise RuntimeError("x is undefined")

    with pytest.warns(UserWarning, match="Backwards compatibility: New undefined gradient"):
        with pytest.raises(GradcheckError, match="Expected backward function to handle undefined output grads"):
            gradcheck(hooked(undefined), x, fast_mode=fast_mode)
    with pytest.raises(AssertionError, match="outputs with the same shape when inputs are perturbed"):
        gradcheck(lambda x: rd.cat([x, x]) if bool((x >= 1).all()) else x, x, fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(hooked(lambda g: g * (1 + rd.rand_like(g) * 1e-6)), x, fast_mode=fast_mode)


def test_former_names_are_deprecated():
    from redispatch.autograd.gradcheck import get_analytical_jacobian, get_numerical_jacobian

    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with pytest.warns(FutureWarning, match="was part of PyTorch's private API"):
        first, second = get_numerical_jacobian(lambda xs: 2 * xs[0] + xs[1], (a, b), eps=1e-6)
    assert first.allclose(2 * rd.eye(2, dtype=rd.float64)) and second.allclose(rd.eye(2, dtype=rd.float64))
    with pytest.warns(FutureWarning):
        (first, second), *good = get_analytical_jacobian((a, b), 2 * a + b)
    assert first.tolist() == [[2, 0], [0, 2]] and good == [True] * 3
    with pytest.warns(FutureWarning), pytest.raises(ValueError, match=r"Expected grad_out to be 1\.0"):
        get_numerical_jacobian(lambda xs: xs[0], (a,), grad_out=2.0)


def test_batches_of_derivatives_go_through_any_function():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

        @staticmethod
        def jvp(ctx, t):
            return t * 2

    assert gradcheck(
        Twice.apply, (leaf(1.0, 2.0),), check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True
    )


def test_powers_of_numbers_have_derivatives_by_the_exponent():
    for base in (-1, -rd.ones(2, dtype=rd.float64)):
        assert gradcheck(lambda x, base=base: rd.pow(base, x), leaf(0.5, 1.5, dtype=rd.complex128))
    exponent = leaf(-1.0, 0.0, 1.0)
    rd.pow(0, exponent).sum().backward()
    assert exponent.grad.tolist() == [-float("inf"), 0, 0]
