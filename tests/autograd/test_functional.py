"""autograd.functional under `strict`: what does not depend on the inputs is an error that says what it is."""

import redispatch as rd
from redispatch.autograd.functional import hvp, jacobian

ONES = rd.ones(2)


def test_what_is_independent_is_zero_elsewhere():
    assert jacobian(lambda x, y: x * 2, (ONES, ONES))[1].tolist() == [[0, 0], [0, 0]]
    assert hvp(lambda x: x.sum(), ONES, ONES)[1].tolist() == [0, 0]
