"""out= forms that copy a finished result, and the copies of views that have them."""

import pytest

import redispatch as rd


def test_out_is_resized_with_a_warning_where_it_held_something():
    out = rd.empty(2)
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        assert rd.t_copy(rd.ones(2, 3), out=out) is out
    assert out.shape == (3, 2)


def test_the_copy_of_a_view_shares_nothing_and_is_dense():
    x = rd.arange(6.0).view(2, 3)
    y = rd.transpose_copy(x, 0, 1)
    assert y.is_contiguous() and y._base is None
    y.zero_()
    assert x.sum().item() == 15


def test_the_nodes_of_copies_are_named_after_the_views():
    x = rd.ones(2, 3, requires_grad=True)
    assert type(rd.squeeze_copy(x, 0).grad_fn).__name__ == "SqueezeBackward1_copy"
    assert type(rd.split_copy(x, 1)[0].grad_fn).__name__ == "SplitBackward0_copy"
    assert type(rd.narrow_copy(x, 0, 0, 1).grad_fn).__name__ == "NarrowCopyBackward0"
