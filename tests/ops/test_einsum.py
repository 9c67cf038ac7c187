"""einsum: the operators that it calls, subscripts as lists, and paths."""

import numpy as np
import pytest

import redispatch as rd

from ..seeing import seen


@pytest.mark.parametrize(
    "equation, names",
    [
        ("ij,kj->ik", "unsqueeze permute unsqueeze permute permute view permute view bmm view permute view"),
        ("i,j->ij", "unsqueeze permute unsqueeze permute mul.Tensor"),
        ("ii->i", "diagonal permute permute"),
        ("ij->j", "permute sum.dim_IntList"),
    ],
)
def test_it_calls_the_operators_that_pytorch_calls(equation, names):
    tensors = [rd.ones((2,) * len(term)) for term in equation.split("->")[0].split(",")]
    assert seen(lambda: rd.einsum(equation, *tensors)) == names


@pytest.mark.parametrize("equation", ["ij,kj->ki", "ijb,kj->kib", "...ij,jk->k...i", "aij,jkl,lm->m...a"])
def test_results_are_in_order_where_a_product_the_other_way_round_makes_them_so(equation):
    shapes = [[2, 3], [4, 3]] if equation.startswith("ij,") else None
    shapes = shapes or {"ijb,kj->kib": [[2, 3, 5], [4, 3]], "...ij,jk->k...i": [[6, 2, 3], [3, 4]]}.get(equation)
    arrays = [np.random.default_rng(0).normal(size=s) for s in shapes or [[2, 3, 4], [4, 5, 6], [6, 7]]]
    found = rd.einsum(equation, *map(rd.tensor, arrays))
    assert np.allclose(found.tolist(), np.einsum(equation, *arrays))
    if equation in ("ij,kj->ki", "ijb,kj->kib"):
        assert found.is_contiguous()


def test_numbers_stand_for_letters():
    a, b = rd.randn(2, 3), rd.randn(3, 4)
    assert rd.equal(rd.einsum(a, [0, 1], b, [1, 30], [30, 0]), rd.einsum("ij,jk->ki", a, b))
    assert rd.equal(rd.einsum(a, [..., 1], b, [1, 2]), a @ b)
    with pytest.raises(ValueError, match=r"not within the valid range \[0, 52\)"):
        rd.einsum(a, [0, 52])
    with pytest.raises(ValueError, match="must specify the equation string and at least one operand"):
        rd.einsum("ij")
    with pytest.raises(TypeError, match="argument 'equation' .position 1. must be str, not int"):
        rd.einsum(3, a)


def test_a_path_says_who_is_joined_with_whom():
    arrays = [np.random.default_rng(i).normal(size=s) for i, s in enumerate([(2, 3), (3, 4), (4, 5)])]
    tensors, einsum = list(map(rd.tensor, arrays)), rd.ops.aten.einsum.default
    expected = np.einsum("ij,jk,kl->il", *arrays)
    for path in ([0, 1, 0, 1], [2, 1, 0, 1], [0, 2, 1, 0]):
        assert np.allclose(einsum("ij,jk,kl->il", tensors, path=path).tolist(), expected)
    with pytest.raises(RuntimeError, match="path given in path parameter to have size 4 but got 2"):
        einsum("ij,jk,kl->il", tensors, path=[0, 1])
    with pytest.raises(RuntimeError, match=r"invalid contraction \(1, 2\) operand index is out of bounds"):
        einsum("ij,jk,kl->il", tensors, path=[0, 1, 1, 2])
    with pytest.raises(RuntimeError, match=r"\(0, 0\) cannot contract an operand with itself"):
        einsum("ij,jk,kl->il", tensors, path=[0, 0, 0, 1])
