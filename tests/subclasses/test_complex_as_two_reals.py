"""ComplexPair: values and gradients are those of complex tensors, by real operators alone."""

import copy

import pytest

import redispatch as rd
from redispatch.subclasses.complex_as_two_reals import ComplexPair
from redispatch.testing import assert_close
from redispatch.utils._python_dispatch import TorchDispatchMode


def numbers(*shape, seed=0):
    return rd.randn(*shape, generator=rd.Generator().manual_seed(seed), dtype=rd.complex64)


def plain(x):
    return x.to_complex() if isinstance(x, ComplexPair) else x


CASES = [
    lambda x, y: x + y,
    lambda x, y: rd.sub(x, y[0], alpha=2),
    lambda x, y: x + 2,
    lambda x, y: 1j - x,
    lambda x, y: x * y,
    lambda x, y: x * (2 - 1j),
    lambda x, y: x * rd.arange(3.0),
    lambda x, y: x + rd.ones(2, 1, 3),
    lambda x, y: x / y,
    lambda x, y: x / 3,
    lambda x, y: 1 / y,
    lambda x, y: -x.conj(),
    lambda x, y: x.exp(),
    lambda x, y: x @ y.t(),
    lambda x, y: x @ y.mH,
    lambda x, y: x.abs(),
    lambda x, y: x.real * y.imag,
    lambda x, y: (x * x.conj()).mean(1),
    lambda x, y: rd.stack([x, y]).transpose(0, 1)[1],
    lambda x, y: rd.cat([x, y]).view(12).unsqueeze(0),
]


@pytest.mark.parametrize("run", CASES)
def test_values_and_gradients_are_those_of_complex_tensors(run):
    results = []
    for kind in (ComplexPair.of, lambda z: z.clone()):
        x, y = kind(numbers(2, 3)).requires_grad_(), kind(numbers(2, 3, seed=1)).requires_grad_()
        result = run(x, y)
        loss = result.sum() if not result.is_complex() else result.abs().sum()
        loss.backward()
        gradients = [None if z.grad is None else plain(z.grad).resolve_conj() for z in (x, y)]
        results.append((plain(result.detach()).resolve_conj(), loss.detach(), gradients))
    assert_close(results[0], results[1], rtol=1e-4, atol=1e-5)


def test_no_complex_operator_runs_inside():
    class OnlyReals(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            complexes = [x for x in args if type(x) is rd.Tensor and x.is_complex()]
            assert not complexes, func
            return func(*args, **(kwargs or {}))

    x = ComplexPair(rd.ones(2, 2), rd.ones(2, 2)).requires_grad_()
    with OnlyReals():
        (x @ x.exp() / x).abs().sum().backward()
    assert type(x.grad) is ComplexPair


def test_zero_and_large_numbers():
    zero = ComplexPair(rd.zeros(1), rd.zeros(1)).requires_grad_()
    zero.abs().sum().backward()
    assert zero.grad.to_complex().tolist() == [0]
    large = ComplexPair(rd.tensor([3e30]), rd.tensor([4e30]))
    assert_close(large.abs(), rd.tensor([5e30]))
    assert_close((large / large).to_complex(), rd.tensor([1 + 0j]))


def test_in_place_is_the_object_and_views_share_its_parts():
    z = ComplexPair(rd.zeros(2, 2), rd.ones(2, 2))
    assert z.mul_(1j) is z and z.to_complex().tolist() == [[-1, -1]] * 2
    z.t()[0].add_(1)
    assert z.to_complex().tolist() == [[0, -1]] * 2 and z.t()._base is z
    with pytest.raises(TypeError, match="a plain tensor cannot be written from a ComplexPair"):
        numbers(2, 2).add_(z)


def test_a_copy_is_a_pair():
    z = ComplexPair.of(numbers(2))
    twin = copy.deepcopy(z)
    assert type(twin) is ComplexPair and twin.re is not z.re
    assert twin.dtype == rd.complex64 and twin.to_complex().tolist() == z.to_complex().tolist()


# At points in all quadrants and on the axes; each line of the textbook is held against the kernels for complex numbers.
POINTS = rd.tensor([0.5 + 0.3j, -0.7 + 1.2j, -1.5 - 0.4j, 2.0 - 1.0j, 0.25j, -0.8], dtype=rd.complex128)
FORMULAS = "sqrt rsqrt exp exp2 expm1 log log1p log2 log10 sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh "
FORMULAS += "sigmoid reciprocal abs angle sgn square isnan logical_not any all prod var std"


@pytest.mark.parametrize("name", FORMULAS.split())
def test_formulas_of_the_textbook(name):
    assert_close(plain(getattr(rd, name)(ComplexPair.of(POINTS))), getattr(rd, name)(POINTS))


@pytest.mark.parametrize("name", "sqrt exp log sin tanh atanh sigmoid prod var".split())
def test_gradients_of_formulas(name):
    z, pair = POINTS.clone().requires_grad_(), ComplexPair.of(POINTS).requires_grad_()
    for x in (z, pair):
        getattr(rd, name)(x).abs().sum().backward()
    assert_close(pair.grad.to_complex(), z.grad)


@pytest.mark.parametrize("power", [0, 1, 2, 3, -1, 0.5, 1 - 2j])
def test_powers(power):
    assert_close((ComplexPair.of(POINTS) ** power).to_complex(), POINTS**power)
    assert_close(rd.pow(2.0, ComplexPair.of(POINTS)).to_complex(), rd.pow(2.0, POINTS))


def test_forms_that_write_give_what_the_others_give():
    x, out = ComplexPair.of(POINTS), ComplexPair.of(rd.zeros(6, dtype=rd.complex128))
    assert rd.exp(x, out=out) is out
    assert_close(out.to_complex(), POINTS.exp())
    assert x.tanh_() is x
    assert_close(x.to_complex(), POINTS.tanh())
    with pytest.raises(TypeError, match="aten.add_.Tensor: a plain tensor cannot be written from a ComplexPair"):
        rd.zeros(6, dtype=rd.complex128).add_(x)


def test_padding_is_no_imaginary_number():
    assert_close(
        rd.nn.functional.pad(ComplexPair.of(POINTS), (1, 1), value=2.0).to_complex()[0],
        rd.tensor(2 + 0j).to(rd.complex128),
    )


@pytest.mark.parametrize(
    "run",
    [
        lambda x, dtype: x.sum(dtype=dtype),
        lambda x, dtype: x.cumsum(0, dtype=dtype),
        lambda x, dtype: x.to(dtype),
        lambda x, dtype: rd.full_like(x, 2, dtype=dtype),
        lambda x, dtype: x.new_ones(3, dtype=dtype),
    ],
)
@pytest.mark.parametrize("dtype", [rd.float32, rd.complex64])
@pytest.mark.filterwarnings("ignore:Casting complex")
def test_another_dtype_is_that_of_complex_tensors(run, dtype):
    found, wanted = run(ComplexPair.of(POINTS), dtype), run(POINTS, dtype)
    assert found.dtype is dtype
    assert_close(plain(found), wanted)
