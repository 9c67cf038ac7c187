"""Operators called directly, with tensors that do not belong together: errors, and no read beyond the memory."""

import pytest

import redispatch as rd

aten = rd.ops.aten
INDEX = rd.zeros(2, dtype=rd.int64)


@pytest.mark.parametrize(
    "call",
    [
        lambda: aten.mse_loss_backward(rd.ones(2, 3), rd.ones(3, 3), rd.ones(()), 0),
        lambda: aten.native_dropout_backward(rd.ones(()), rd.ones(2) > 0, 1.0),
        lambda: rd.ones(2, 3).bernoulli_(rd.ones(0)),
        lambda: aten.embedding_dense_backward(rd.ones(1, 1, 3, 3), rd.zeros(2, 0, dtype=rd.int64), 1, -1, False),
        lambda: aten.embedding_dense_backward(rd.ones(2, 3), rd.ones(2), 1, -1, False),
        lambda: aten.embedding_renorm_(rd.ones(2), INDEX, 1.0, 2.0),
        lambda: aten.nll_loss_backward(rd.ones(()), rd.ones(2, 3), INDEX, None, 1, -100, rd.ones(0)),
        lambda: aten._local_scalar_dense(rd.ones(0)),
        lambda: aten._local_scalar_dense(rd.ones(3)),
        lambda: rd.repeat_interleave(rd.ones(4), rd.tensor([2**62] * 4)),
    ],
)
def test_shapes_that_do_not_fit_are_an_error(call):
    with pytest.raises(RuntimeError):
        call()


def test_a_view_of_nothing_behind_the_end_of_the_memory():
    empty = rd.ones(3).narrow(0, 3, 0)
    assert empty.masked_select(empty > 0).tolist() == []
    assert rd.as_strided(rd.ones(3), (0,), (1,), 1000).tolist() == []
