"""gradcheck finds right gradients right and wrong ones wrong."""

import pytest

import redispatch as rd
from redispatch.autograd import Function, GradcheckError, gradcheck, gradgradcheck


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
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
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
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
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
