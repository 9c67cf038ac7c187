"""Matrix products agree with numpy; `matmul` and `linear` decompose as PyTorch's do."""

# ruff: noqa: E501  (error texts stay whole, so that they can be searched for)

import numpy as np
import pytest

import redispatch as rd
from redispatch.utils._python_dispatch import TorchDispatchMode

RANDOM = np.random.RandomState(0)
SHAPES = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3,)), ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)), ((3,), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)), ((6, 5, 2, 3), (6, 1, 3, 4)), ((5, 2, 3), (1, 3, 4)),
    ((1, 2, 3), (5, 3, 4)), ((0, 2, 3), (3, 4)), ((2, 0), (0, 3)), ((5, 2, 3), (6, 1, 3, 4)),
]  # fmt: skip


def seen(function):
    names = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(str(func).removeprefix("aten.").removesuffix(".default"))
            return func(*args, **(kwargs or {}))

    with Log():
        function()
    return " ".join(names)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_matmul_agrees_with_numpy(a, b, dtype):
    x, y = (RANDOM.randint(-4, 5, shape).astype(dtype) for shape in (a, b))
    np.testing.assert_array_equal(rd.matmul(rd.tensor(x), rd.tensor(y)).numpy(), np.matmul(x, y))


@pytest.mark.parametrize(("a", "b"), [pair for pair in SHAPES if 0 not in pair[0]])
def test_gradients_of_matmul(a, b):
    x, y = (rd.tensor(RANDOM.rand(*shape), requires_grad=True) for shape in (a, b))
    (x @ y).sum().backward()
    ones = np.ones(np.matmul(x.detach().numpy(), y.detach().numpy()).shape)
    moved = 1e-6
    for t in (x, y):
        first = (0,) * t.dim()
        step = np.zeros(tuple(t.shape))
        step[first] = moved
        up, down = (np.matmul(*[u.detach().numpy() + (s if u is t else 0) for u in (x, y)]) for s in (step, -step))
        assert t.grad.numpy()[first] == pytest.approx(((up - down) * ones).sum() / (2 * moved), rel=1e-6)


@pytest.mark.parametrize(
    ("a", "b", "operators"),
    [
        ((3,), (3,), "dot"),
        ((2, 3), (3,), "mv"),
        ((3,), (3, 4), "unsqueeze mm squeeze_.dim"),
        ((5, 2, 3), (3,), "view mv _unsafe_view"),
        ((5, 2, 3), (3, 4), "view mm _unsafe_view"),
        ((2, 3), (5, 3, 4), "transpose.int expand view expand view bmm _unsafe_view"),
        ((5, 2, 3), (5, 3, 4), "expand view expand view bmm _unsafe_view"),
        ((6, 5, 2, 3), (6, 1, 3, 4), "expand view expand clone _unsafe_view bmm _unsafe_view"),
        ((5, 2, 3), (1, 3, 4), "squeeze.dim view mm _unsafe_view"),
    ],
)
def test_matmul_decomposes_as_pytorchs(a, b, operators):
    x, y = rd.ones(a), rd.ones(b)
    assert seen(lambda: rd.matmul(x, y)) == operators


def test_linear_decomposes_as_pytorchs():
    weight, bias = rd.ones(4, 3), rd.ones(4)
    linear = rd.nn.functional.linear
    for shape, with_bias, without in [
        ((2, 3), "t addmm", "t mm"),
        ((5, 2, 3), "view t addmm view", "t view mm _unsafe_view"),
        ((3,), "view t addmm view", "t unsqueeze mm squeeze_.dim"),
    ]:
        x = rd.ones(shape)
        assert seen(lambda x=x: linear(x, weight, bias)) == with_bias
        assert seen(lambda x=x: linear(x, weight)) == without


def test_scaled_sums_of_products():
    c, a, b = RANDOM.rand(4), RANDOM.rand(2, 3), RANDOM.rand(3, 4)
    tensors = [rd.tensor(array) for array in (c, a, b)]
    np.testing.assert_allclose(rd.addmm(*tensors, beta=2, alpha=0.5).numpy(), 2 * c + 0.5 * (a @ b))
    nan = rd.full((4,), float("nan"), dtype=rd.float64)
    np.testing.assert_allclose(rd.addmm(nan, *tensors[1:], beta=0).numpy(), a @ b)
    batch = rd.baddbmm(tensors[0], tensors[1].expand(2, 2, 3), tensors[2].expand(2, 3, 4))
    np.testing.assert_allclose(batch.numpy(), c + np.stack([a @ b] * 2))
    np.testing.assert_allclose(rd.addmv(rd.ones(2).double(), tensors[1], tensors[0][:3]).numpy(), 1 + a @ c[:3])
    np.testing.assert_allclose(rd.outer(tensors[0], tensors[0]).numpy(), np.outer(c, c))


def test_in_place_and_out():
    total = rd.ones(2, 2)
    total.addmm_(rd.ones(2, 3), rd.ones(3, 2))
    assert total.tolist() == [[4, 4], [4, 4]]
    out = rd.empty(0)
    assert rd.mm(rd.ones(2, 3), rd.ones(3, 1), out=out).tolist() == [[3], [3]]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda o: o(2, 3).mm(o(2, 3)), RuntimeError, "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"),
        (lambda o: o(2, 3).mm(o(3)), RuntimeError, "mat2 must be a matrix"),
        (lambda o: o(2, 3).mm(o(3, 2).double()), RuntimeError, "expected m1 and m2 to have the same dtype, but got: float != double"),
        (lambda o: o(2, 2).bool().mm(o(2, 2).bool()), NotImplementedError, "\"addmm_impl_cpu_\" not implemented for 'Bool'"),
        (lambda o: o(2, 2, 3).bmm(o(2, 2, 3)), RuntimeError, "Expected size for first two dimensions of batch2 tensor to be: [2, 3] but got: [2, 2]."),
        (lambda o: rd.addmm(o(2), o(2, 3), o(3, 4)), RuntimeError, "The expanded size of the tensor (4) must match the existing size (2) at non-singleton dimension 1.  Target sizes: [2, 4].  Tensor sizes: [2]"),
        (lambda o: rd.addmm(o(4), o(2, 3), o(3, 4).double()), RuntimeError, "self and mat2 must have the same dtype, but got Float and Double"),
        (lambda o: o(2, 3).mv(o(2)), RuntimeError, "size mismatch, got input (2), mat (2x3), vec (2)"),
        (lambda o: o(2).dot(o(3)), RuntimeError, "inconsistent tensor size, expected tensor [2] and src [3] to have the same number of elements, but got 2 and 3 elements respectively"),
        (lambda o: rd.matmul(o(()), o(2)), RuntimeError, "both arguments to matmul need to be at least 1D, but they are 0D and 1D"),
        (lambda o: rd.outer(o(2, 2), o(2)), RuntimeError, "outer: Expected 1-D argument self, but got 2-D"),
    ],
)  # fmt: skip
def test_errors_are_pytorchs(call, error, text):
    with pytest.raises(error) as caught:
        call(rd.ones)
    assert str(caught.value) == text
