"""Operators called directly, with tensors that do not belong together: errors, and no read beyond the memory."""

import redispatch as rd


def test_a_view_of_nothing_behind_the_end_of_the_memory():
    empty = rd.ones(3).narrow(0, 3, 0)
    assert empty.masked_select(empty > 0).tolist() == []
    assert rd.as_strided(rd.ones(3), (0,), (1,), 1000).tolist() == []
