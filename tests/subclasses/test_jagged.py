"""JaggedTensor: every answer is the padded tensor's, with padding that does not exist."""

import copy

import pytest

import redispatch as rd
from redispatch.subclasses.jagged import JaggedTensor, from_values, jagged
from redispatch.testing import assert_close

LENGTHS = (2, 0, 3)


def rows(*rest):
    """Rows of lengths 2, 0 and 3."""
    generator = rd.Generator().manual_seed(0)
    return [rd.randn(n, *rest, generator=generator) for n in LENGTHS]


def cut(padded):
    """The elements of a padded tensor that exist, end to end."""
    return rd.cat([padded[i, :n] for i, n in enumerate(LENGTHS)])


def test_it_is_its_rows_end_to_end_and_padded():
    x = jagged([rd.tensor([1.0, 2.0]), rd.tensor([]), rd.tensor([3.0])])
    assert x.shape == (3, 2) and x.lengths().tolist() == [2, 0, 1]
    assert x.to_values().tolist() == [1.0, 2.0, 3.0]
    assert x.to_padded(-1.0).tolist() == [[1.0, 2.0], [-1.0, -1.0], [3.0, -1.0]]
    assert repr(x) == "JaggedTensor([[1.0, 2.0], [], [3.0]])"


@pytest.mark.parametrize(
    "run",
    [
        lambda x: x.exp() * 2 - x,
        lambda x: x + rd.arange(4.0),
        lambda x: x * rd.arange(3.0)[:, None, None],
        lambda x: rd.arange(12.0).reshape(3, 4)[:, None] + x,
        lambda x: x + rd.arange(36.0).reshape(3, 3, 4),
        lambda x: rd.where(x > 0, x, rd.tensor(0.5)),
        lambda x: x.to(rd.float64),
        lambda x: rd.nn.functional.linear(x, rd.arange(8.0).reshape(2, 4), rd.ones(2)),
        lambda x: x.sum(2),
        lambda x: x.sum(-1, keepdim=True),
        lambda x: x.unsqueeze(-1).expand(-1, -1, 4, 2),
    ],
)
def test_what_keeps_rows_is_the_padded_tensors_answer(run):
    x = jagged(rows(4))
    result, padded = run(x), run(x.to_padded())
    assert type(result) is JaggedTensor and result.shape == padded.shape and result.dtype == padded.dtype
    assert_close(result.to_values(), cut(padded))


@pytest.mark.parametrize(
    "run",
    [
        lambda x: x.sum(),
        lambda x: x.sum(1),
        lambda x: x.sum(-2, keepdim=True),
        lambda x: x.sum((1, 2)),
        lambda x: x.sum((0, 1, 2), keepdim=True),
        lambda x: x.sum(1, dtype=rd.float64),
        lambda x: x.long().sum(1),
    ],
)
def test_a_sum_over_the_ragged_dimension_is_plain(run):
    x = jagged(rows(4))
    result = run(x)
    assert type(result) is rd.Tensor
    assert_close(result, run(x.to_padded()))


@pytest.mark.parametrize(
    "run",
    [
        lambda x, w: (x * x).sum(),
        lambda x, w: (x.sum(1) ** 2).sum(),
        lambda x, w: (x.sum(2).exp()).sum(),
        lambda x, w: (rd.nn.functional.linear(x, w) ** 2).sum(),
        lambda x, w: ((x if type(x) is rd.Tensor else x.to_padded()) ** 3).sum(),
    ],
)
def test_gradients_are_those_of_the_padded_tensor(run):
    results = []
    for padded in (False, True):
        leaves, w = [row.requires_grad_() for row in rows(4)], rd.arange(8.0).reshape(2, 4).requires_grad_()
        x = jagged(leaves)
        if padded:
            x = rd.zeros(3, 3, 4).index_put(x.places(), rd.cat(leaves))
        run(x, w).backward()
        assert all(type(leaf.grad) is rd.Tensor for leaf in leaves)
        results.append(([leaf.grad for leaf in leaves], w.grad))
    assert_close(results[0], results[1], rtol=1e-4, atol=1e-4)


def test_in_place_gives_the_object_and_a_copy_is_another():
    x = jagged(rows())
    twin = copy.deepcopy(x)
    assert x.mul_(2) is x
    assert_close(x.to_values(), twin.to_values() * 2)


def test_rows_of_other_lengths_do_not_mix():
    x, y = jagged(rows()), jagged([rd.ones(1), rd.ones(1), rd.ones(3)])
    with pytest.raises(ValueError, match=r"rows have lengths \[2, 0, 3\] in one JaggedTensor, but \[1, 1, 3\]"):
        x + y
    assert_close((x + jagged(rows())).to_values(), 2 * x.to_values())


def test_what_it_does_not_know_is_refused_by_name():
    x = jagged(rows(4))
    with pytest.raises(NotImplementedError, match=r"aten.sort.*run it on x.to_padded\(fill\)"):
        x.sort()
    with pytest.raises(NotImplementedError, match="a sum over the rows"):
        x.sum(0)
    with pytest.raises(NotImplementedError, match="aten.unsqueeze.default: JaggedTensor has no rule"):
        x.unsqueeze(1)
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.sum(3)
    with pytest.raises(ValueError, match="would move the ragged dimension"):
        x + rd.ones(2, 3, 3, 4)
    with pytest.raises(ValueError, match="a plain tensor cannot be written"):
        rd.zeros(3, 3, 4).add_(x)
    with pytest.raises(RuntimeError, match="expand"):
        x + rd.ones(2, 1, 1)


@pytest.mark.parametrize("offsets", [[1, 5], [0, 4], [0, 3, 2, 5], []])
def test_offsets_that_do_not_fit_are_refused(offsets):
    with pytest.raises(ValueError, match="expected int64 offsets that rise from 0"):
        from_values(rd.ones(5), rd.tensor(offsets, dtype=rd.int64))
    with pytest.raises(ValueError, match="at least one row"):
        jagged([])


def test_a_pointwise_operator_may_have_several_results_or_none_that_is_a_tensor():
    x = jagged([rd.tensor([1.0, 8.0])])
    mantissa, exponent = rd.frexp(x)
    assert type(mantissa) is type(exponent) is type(x)
    with pytest.raises(NotImplementedError, match="aten.equal"):
        rd.equal(x, x)
