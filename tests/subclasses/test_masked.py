"""MaskedTensor: what does not count has no part in values, reductions and gradients, whatever it is."""

import pytest

import redispatch as rd
from redispatch.subclasses.masked import MaskedTensor, masked
from redispatch.testing import assert_close
from redispatch.utils._python_dispatch import transform_subclass

NAN = float("nan")
MASK = rd.tensor([[True, False, True], [False, True, False], [False, False, False]])


def values():
    """NaN, infinity and an overflow stand where the mask is False."""
    return rd.tensor([[1.0, NAN, 3.0], [float("inf"), 5.0, 1e38], [NAN, NAN, NAN]])


def counted(x):
    """The elements that count, in order."""
    return x.to_tensor(NAN)[x.mask].tolist()


@pytest.mark.parametrize(
    "run", [lambda x: x + 1, lambda x: 2 * x, lambda x: x.exp(), lambda x: x * x - x, lambda x: rd.where(x > 2, x, -x)]
)
def test_pointwise_operators_keep_the_mask(run):
    x = MaskedTensor(values(), MASK)
    result = run(x)
    assert type(result) is MaskedTensor
    assert result.mask.tolist() == MASK.tolist()
    assert_close(rd.tensor(counted(result)), run(rd.tensor([1.0, 3.0, 5.0])))


def test_of_two_masks_an_element_counts_where_both_say_so_after_broadcasting():
    row = MaskedTensor(rd.tensor([10.0, 20.0, 30.0]), rd.tensor([True, True, False]))
    result = MaskedTensor(values(), MASK) + row
    assert counted(result) == [11.0, 25.0]
    assert (row + rd.ones(2, 3)).mask.tolist() == [[True, True, False]] * 2


@pytest.mark.parametrize(
    "run",
    [rd.sum, rd.mean, rd.prod, rd.amax, rd.amin, rd.max, rd.min, rd.any, rd.all],
    ids=lambda run: run.__name__,
)
def test_reductions_take_what_counts(run):
    result = run(MaskedTensor(values(), MASK))
    assert type(result) is MaskedTensor and result.mask.item()
    assert_close(result.to_tensor(), run(rd.tensor([1.0, 3.0, 5.0])))


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("run", [rd.sum, rd.mean, rd.amax, rd.amin], ids=lambda run: run.__name__)
def test_along_a_dimension_a_result_counts_where_anything_did(run, keepdim):
    result = run(MaskedTensor(values(), MASK), 1, keepdim=keepdim)
    assert result.shape == ((3, 1) if keepdim else (3,))
    assert result.mask.flatten().tolist() == [True, True, False]
    assert_close(rd.tensor(counted(result)), rd.stack([run(rd.tensor([1.0, 3.0])), run(rd.tensor([5.0]))]))


def test_whole_numbers_and_booleans():
    x = MaskedTensor(rd.tensor([9, 2, -7]), rd.tensor([False, True, False]))
    assert [run(x).to_tensor().item() for run in (rd.sum, rd.amax, rd.amin, rd.prod)] == [2, 2, 2, 2]
    flags = MaskedTensor(rd.tensor([True, False]), rd.tensor([False, True]))
    assert not flags.any().to_tensor() and not flags.all().to_tensor() and not flags.amax().to_tensor()


@pytest.mark.parametrize("run", [rd.sum, rd.mean, rd.amax, rd.amin], ids=lambda run: run.__name__)
def test_the_gradient_is_that_of_the_elements_that_count_and_zero_elsewhere(run):
    x = values().requires_grad_()
    run(masked(x, MASK).sqrt() * 2).backward()
    plain = rd.tensor([1.0, 3.0, 5.0], requires_grad=True)
    run(plain.sqrt() * 2).backward()
    assert type(x.grad) is rd.Tensor
    assert_close(x.grad[MASK], plain.grad)
    assert bool((x.grad[~MASK] == 0).all())


def test_gradients_pass_the_door_out():
    x = rd.tensor([1.0, NAN], requires_grad=True)
    (masked(x, rd.tensor([True, False])) * 3).to_tensor(7.0).square().sum().backward()
    assert x.grad.tolist() == [18.0, 0.0]


def test_a_parameter_that_comes_in_by_the_door_gets_a_plain_gradient():
    w = rd.ones(1, requires_grad=True)
    (masked(values(), MASK) * masked(w, rd.tensor([True]))).sum().backward()
    assert type(w.grad) is rd.Tensor and w.grad.tolist() == [9.0]


def test_elements_move_with_their_masks():
    x = MaskedTensor(values(), MASK)
    assert counted(x.t()) == [1.0, 5.0, 3.0]
    assert counted(x[0]) == [1.0, 3.0] and counted(x[:, 1:]) == [3.0, 5.0]
    assert counted(rd.cat([x, rd.ones(1, 3)])) == [1.0, 3.0, 5.0, 1.0, 1.0, 1.0]
    assert [counted(row) for row in x.unbind()] == [[1.0, 3.0], [5.0], []]
    assert x.t()._base is x


def test_in_place_keeps_the_object_or_changes_nothing():
    x = MaskedTensor(rd.ones(2), rd.tensor([True, False]))
    assert x.add_(1) is x and counted(x) == [2.0]
    with pytest.raises(ValueError, match="aten.add_.Tensor: the result counts elsewhere"):
        x.add_(MaskedTensor(rd.ones(2), rd.tensor([False, True])))
    plain = rd.zeros(2)
    with pytest.raises(ValueError, match="not in place"):
        plain.add_(x)
    assert counted(x) == [2.0] and plain.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "run", [rd.std, rd.var, lambda x: rd.logsumexp(x, 0), lambda x: rd.linalg.vector_norm(x, 3), rd.count_nonzero]
)
def test_other_reductions_take_what_counts(run):
    x = rd.tensor([1.0, NAN, 3.0, 7.0], requires_grad=True)
    found, wanted = run(masked(x, rd.tensor([True, False, True, True]))), run(rd.tensor([1.0, 3.0, 7.0]))
    assert_close(found.to_tensor(), wanted)
    assert_close(found.item(), wanted.item())
    if found.requires_grad:
        plain = rd.tensor([1.0, 3.0, 7.0], requires_grad=True)
        found.backward()
        run(plain).backward()
        assert_close(x.grad[[0, 2, 3]], plain.grad)
        assert x.grad[1] == 0


def test_what_does_not_count_has_no_part_in_running_sums_softmax_and_products():
    x, mask = rd.tensor([[1.0, NAN, 3.0]]), rd.tensor([[True, False, True]])
    m = MaskedTensor(x, mask)
    assert counted(m.cumsum(1)) == [1.0, 4.0] and counted(m.cummax(1).values) == [1.0, 3.0]
    assert_close(rd.tensor(counted(m.softmax(1))), rd.softmax(rd.tensor([1.0, 3.0]), 0))
    product = m @ rd.tensor([[1.0], [5.0], [10.0]])
    assert type(product) is MaskedTensor and counted(product) == [31.0]
    assert (MaskedTensor(x, ~mask & False) @ rd.ones(3, 1)).mask.tolist() == [[False]]


def test_gradients_of_parts_add_up_where_each_counts():
    x = rd.tensor([[1.0, 2.0], [3.0, NAN]], requires_grad=True)
    m = masked(x, rd.tensor([[True, True], [True, False]]))
    (m[0].sum() + 2 * m[1].sum()).backward()
    assert x.grad.tolist() == [[1.0, 1.0], [2.0, 0.0]]


def test_elements_are_picked_with_their_masks_by_indices_that_count():
    x = MaskedTensor(values(), MASK)
    assert counted(x.index_select(0, rd.tensor([1, 0]))) == [5.0, 1.0, 3.0]
    with pytest.raises(ValueError, match="an index of MaskedTensor that does not count"):
        x.index_select(0, MaskedTensor(rd.tensor([1, 0]), rd.tensor([True, False])))
    with pytest.raises(ValueError, match="does not count; see x.mask"):
        x[0, 1].item()


def test_forms_that_write_give_what_the_others_give():
    x = MaskedTensor(rd.tensor([1.0, 2.0]), rd.tensor([True, False]))
    out = MaskedTensor(rd.zeros(2), rd.tensor([True, False]))
    assert rd.cumsum(x, 0, out=out) is out and counted(out) == [1.0]
    assert counted(x.zero_()) == [0.0] and counted(x.copy_(rd.ones(2))) == [1.0]
    with pytest.raises(RuntimeError, match="can't be cast"):
        MaskedTensor(rd.ones(2, dtype=rd.int64), rd.tensor([True, False])).add_(x)


def test_it_shows_what_counts_and_comes_apart():
    x = MaskedTensor(rd.tensor([[1.5, NAN]]), rd.tensor([[True, False]]))
    assert repr(x) == "MaskedTensor([[1.5, --]])"
    assert repr(transform_subclass(x, lambda name, inner: inner.clone())) == repr(x)


def test_a_pointwise_operator_may_have_several_results_or_none_that_is_a_tensor():
    x = masked(rd.tensor([1.0, 8.0]), rd.tensor([True, False]))
    mantissa, exponent = rd.frexp(x)
    assert type(mantissa) is type(exponent) is type(x)
    with pytest.raises(NotImplementedError, match="aten.equal"):
        rd.equal(x, x)


def test_pytorchs_class_has_memory_of_its_own():
    data, mask = rd.tensor(1.0).expand(3), rd.tensor([True, False, True])
    x = rd.masked.masked_tensor(data, mask)
    x.get_data().masked_fill_(~mask, 0)
    mask.fill_(False)
    assert (
        x.get_data().tolist() == [1, 0, 1] and x.get_mask().tolist() == [True, False, True] and data.tolist() == [1] * 3
    )
