"""BatchedTensor: `vmap` by hand gives what a loop over the examples gives, rule or no rule, at any depth."""

import pytest

import redispatch as rd
from redispatch.subclasses.batched_by_hand import BatchedTensor, vmap
from redispatch.testing import assert_close

W = rd.arange(6.0).reshape(3, 2)


def examples(*shape, seed=0):
    return rd.randn(*shape, generator=rd.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    "run",
    [
        lambda x: x * 2 + x,
        lambda x: x + x[0],
        lambda x: x - rd.ones(5, 1, 1),
        lambda x: rd.where(x > 0, x, -x),
        lambda x: x.sum(),
        lambda x: x.mean(),
        lambda x: x.sum(0),
        lambda x: x.sum((0, -1), keepdim=True),
        lambda x: x.amax(1),
        lambda x: x.amax(()),
        lambda x: x.sum([]),
        lambda x: x[0, 0].sum(-1),
        lambda x: x.softmax(0),
        lambda x: x.t(),
        lambda x: x.transpose(0, -1),
        lambda x: x.view(6)[1:4],
        lambda x: x.reshape(3, 2).cumsum(1),
        lambda x: x[:, 1].expand(4, 2),
        lambda x: x @ W,
        lambda x: x @ x.t(),
        lambda x: x @ x[0],
        lambda x: x[0] @ x[1],
        lambda x: rd.ones(4, 2) @ x,
        # no rule: example by example
        lambda x: x.sort(0)[0],
        lambda x: rd.cat([x, W.t()]),
        lambda x: x.flip(0),
        lambda x: x.std(),
        lambda x: x.unbind(1)[0],
    ],
)
def test_it_is_what_a_loop_gives(run):
    x = examples(4, 2, 3)
    assert_close(vmap(run)(x), rd.stack([run(example) for example in x]), rtol=1e-5, atol=1e-6)


def test_dimensions_in_and_out_and_arguments_that_are_not_split():
    a, b = examples(3, 4), examples(3, seed=1)
    result = vmap(lambda column, whole: column * whole, in_dims=(1, None), out_dims=1)(a, b)
    assert_close(result, a * b[:, None])


def test_several_results_and_one_that_depends_on_no_example():
    x = examples(4, 3)
    total, constant = vmap(lambda row: (row.sum(), rd.ones(2)))(x)
    assert_close(total, x.sum(1))
    assert constant.tolist() == [[1.0, 1.0]] * 4


def test_one_level_inside_another():
    a, b = examples(4, 3), examples(5, 3, seed=1)
    table = vmap(lambda row: vmap(lambda other: row @ other)(b))(a)
    assert_close(table, a @ b.t(), rtol=1e-5, atol=1e-6)
    both = vmap(vmap(lambda v: v.softmax(0) + v.sort()[0]))(examples(2, 3, 4))
    assert_close(both, examples(2, 3, 4).softmax(2) + examples(2, 3, 4).sort(2)[0])


def test_a_function_sees_one_example():
    seen = []
    vmap(lambda row: seen.append((type(row), row.shape)) or row)(examples(4, 3))
    assert seen == [(BatchedTensor, (3,))]


def test_an_error_in_the_function_leaves_no_level_behind():
    with pytest.raises(ZeroDivisionError):
        vmap(lambda row: row * (1 // 0))(examples(2, 2))
    assert vmap(lambda row: row.level)(examples(2, 2)) == 1


def test_an_answer_that_is_no_tensor_has_to_be_the_same_for_all():
    x = examples(3, 2)
    seen = []
    vmap(lambda row: seen.append(rd.equal(row, row)) or row)(x)
    assert seen == [True]
    with pytest.raises(NotImplementedError, match="aten.equal.default: examples of a BatchedTensor differ"):
        vmap(lambda row: rd.equal(row, x[0]) or row)(x)


def test_an_order_of_dimensions_is_that_of_an_example():
    x = examples(2, 3, 4, 5, 6)
    assert_close(vmap(lambda one: one.clone(memory_format=rd.channels_last) * 2)(x), x * 2)
