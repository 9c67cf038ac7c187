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
    assert rd.equal(x, x) and not rd.equal(x, x + 1)
    with pytest.raises(NotImplementedError, match="aten.equal"):
        rd.equal(x, rd.tensor([[1.0, 8.0]]))


UNEVEN = [2, 1, 3]


def ragged(*rest):
    rd.manual_seed(0)
    return [rd.randn(n, *rest, dtype=rd.float64, requires_grad=True) for n in UNEVEN]


@pytest.mark.parametrize(
    "run",
    [
        lambda x: x.softmax(0),
        lambda x: x.cumsum(0),
        lambda x: x.log_softmax(-1),
        lambda x: x.flip(1),
        lambda x: x[:, 1:],
    ],
)
def test_what_keeps_the_rows_is_done_to_each_row(run):
    rows = ragged(4)
    x = jagged(rows)
    found = run_behind(run, x)
    for row, mine in zip(rows, found.unbind(), strict=True):
        assert_close(mine, run(row))
    weights = rd.arange(sum(UNEVEN), dtype=rd.float64)[:, None]
    mine = rd.autograd.grad((found.to_values() * weights).sum(), rows)
    plain = [run(row) for row in rows]
    wanted = rd.autograd.grad((rd.cat(plain) * weights).sum(), rows)
    assert all(map(rd.allclose, mine, wanted))


class Shifted:
    """A jagged tensor as one row sees it: dimension 0 of a row is dimension 1 of the tensor."""

    def __init__(self, x):
        self.x = x

    def __getattr__(self, name):
        return lambda dim: getattr(self.x, name)(dim if dim < 0 else dim + 1)

    def __getitem__(self, index):
        return self.x[:, :, index[1]]


def run_behind(run, x):
    return run(Shifted(x))


@pytest.mark.parametrize("run", [rd.sum, rd.amax, rd.amin, rd.prod, rd.mean, rd.logsumexp])
def test_reductions_over_the_ragged_dimension_are_those_of_each_row(run):
    rows = ragged(4)
    found = run(jagged(rows), 1)
    wanted = rd.stack([run(row, 0) for row in rows])
    assert type(found) is rd.Tensor
    assert_close(found, wanted)
    mine, plain = (rd.autograd.grad(y.square().sum(), rows) for y in (found, wanted))
    assert all(map(rd.allclose, mine, plain))


def test_layers_act_on_each_row():
    rows, weight = ragged(4), rd.randn(7, 4, dtype=rd.float64)
    x = jagged(rows)
    for found, layer in [
        (rd.nn.functional.layer_norm(x, [4]), lambda row: rd.nn.functional.layer_norm(row, [4])),
        (rd.nn.functional.linear(x, weight), lambda row: rd.nn.functional.linear(row, weight)),
        (x.mean(2), lambda row: row.mean(1)),
    ]:
        assert_close(found.to_values(), rd.cat([layer(row) for row in rows]))
    words = jagged([rd.tensor([1, 2]), rd.tensor([0])])
    assert_close(rd.nn.functional.embedding(words, weight).to_values(), weight[rd.tensor([1, 2, 0])])


def test_attention_does_not_see_behind_the_end_of_a_row():
    rows = ragged(4)
    x = jagged(rows)
    found = rd.nn.functional.scaled_dot_product_attention(x, x, x)
    wanted = rd.cat([rd.nn.functional.scaled_dot_product_attention(r[None], r[None], r[None])[0] for r in rows])
    assert_close(found.to_values(), wanted)
    mine, plain = (rd.autograd.grad(y.square().sum(), rows) for y in (found.to_values(), wanted))
    assert all(map(rd.allclose, mine, plain))


def test_rows_times_matrices_and_rows_side_by_side():
    rows, matrices = ragged(4), rd.randn(3, 4, 5, dtype=rd.float64)
    x = jagged(rows)
    assert_close((x @ matrices).to_values(), rd.cat([row @ m for row, m in zip(rows, matrices, strict=True)]))
    assert_close(rd.cat([x, x], 2).to_values(), rd.cat([rd.cat([row, row], 1) for row in rows]))


def test_a_memory_format_is_not_for_what_has_an_order_of_its_own():
    x = jagged([rd.ones(2, 3, 4), rd.ones(1, 3, 4)])
    assert_close(x.clone(memory_format=rd.channels_last).to_values(), x.to_values())
