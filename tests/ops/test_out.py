"""`out=`: where the result may go."""

import pytest

import redispatch as rd


@pytest.mark.parametrize(
    "call",
    [
        lambda x: rd.add(x, rd.ones(2, 3), out=x),
        lambda x: rd.sum(x, 0, out=x),
        lambda x: rd.cat([x, x], out=x),
        lambda x: rd.stack([rd.ones(3), x], out=x),
        lambda x: rd.index_select(x, 0, rd.tensor([1]), out=x),
    ],
)
def test_an_input_is_not_resized_to_hold_the_result(call):
    x = rd.ones(3)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        call(x)
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_an_input_of_the_results_shape_holds_it():
    x = rd.eye(2) + 1
    assert rd.mm(x, x, out=x) is x
    assert x.tolist() == [[5.0, 4.0], [4.0, 5.0]]
