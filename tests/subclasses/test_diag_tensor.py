"""DiagTensor: the structure is kept where known, every answer is the dense matrix's, gradients find the diagonal."""

import pytest

import redispatch as rd
from redispatch.subclasses.diag_tensor import DiagTensor
from redispatch.testing import assert_close


def diag(*numbers):
    return DiagTensor(rd.tensor(numbers))


MATRIX = rd.arange(4.0).reshape(2, 2) + 1


@pytest.mark.parametrize(
    "run",
    [
        lambda d: d + diag(3.0, 4.0),
        lambda d: rd.add(d, diag(3.0, 4.0), alpha=2),
        lambda d: d - diag(3.0, 4.0),
        lambda d: d * diag(3.0, 4.0),
        lambda d: d * 3,
        lambda d: 3 * d,
        lambda d: d * rd.tensor(3.0),
        lambda d: MATRIX * d,
        lambda d: d @ diag(3.0, 4.0),
        lambda d: rd.linalg.inv(d),
        lambda d: rd.t(d),
    ],
)
def test_the_structure_is_kept_and_the_answer_is_the_dense_one(run):
    d = diag(2.0, 5.0)
    kept = run(d)
    assert type(kept) is DiagTensor
    dense = run(d.to_dense())
    assert_close(kept.to_dense(), dense.to_dense() if isinstance(dense, DiagTensor) else dense)


@pytest.mark.parametrize(
    "run",
    [
        lambda d: d @ MATRIX,
        lambda d: MATRIX @ d,
        lambda d: d @ MATRIX[0],
        lambda d: MATRIX[0] @ d,
        lambda d: rd.ones(3, 2, 2) @ d,
        lambda d: rd.matmul(d, rd.ones(3, 2, 2)),
        lambda d: rd.linalg.solve(d, MATRIX),
        lambda d: rd.linalg.det(d),
        lambda d: rd.trace(d),
        lambda d: rd.diagonal(d),
        lambda d: rd.diagonal(d, 1),
        # no rule for these: they get the dense matrix
        lambda d: d + 1,
        lambda d: MATRIX + d,
        lambda d: rd.exp(d),
        lambda d: rd.cat([d, MATRIX]),
        lambda d: d * MATRIX[0],
    ],
)
def test_every_other_answer_is_the_dense_one(run):
    d = diag(2.0, 5.0)
    result = run(d)
    assert type(result) is rd.Tensor or type(result) is DiagTensor
    assert_close(result.to_dense() if isinstance(result, DiagTensor) else result, run(d.to_dense()))


def test_gradients_arrive_at_the_diagonal():
    x = rd.tensor([2.0, 5.0], requires_grad=True)
    (rd.linalg.inv(DiagTensor(x)) @ MATRIX).sum().backward()
    dense = rd.tensor([2.0, 5.0], requires_grad=True)
    (rd.linalg.inv(rd.diag(dense)) @ MATRIX).sum().backward()
    assert_close(x.grad, dense.grad)


def test_a_zero_by_structure_is_zero_even_times_infinity():
    product = diag(1.0, 2.0) * rd.full((2, 2), float("inf"))
    assert product.to_dense().tolist() == [[float("inf"), 0.0], [0.0, float("inf")]]


def test_another_class_of_its_kind_is_let_answer():
    class Other:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "other"

    assert rd.matmul(diag(1.0), Other()) == "other"


def test_it_cannot_be_written_and_says_so():
    d, keep = diag(1.0, 2.0), diag(1.0, 2.0)
    with pytest.raises(TypeError, match="a DiagTensor cannot be written"):
        rd.tril(MATRIX, out=d)
    with pytest.raises(TypeError, match="aten.linalg_qr.out: a DiagTensor cannot be written"):
        rd.ops.aten.linalg_qr.out(MATRIX, Q=d, R=rd.zeros(2, 2))
    with pytest.raises(TypeError, match="fill_diagonal_: a DiagTensor cannot be written"):
        rd.Tensor.fill_diagonal_(d, 5)
    assert d.diagonal.tolist() == keep.diagonal.tolist()
