"""What a tensor answers about one of its dimensions."""

import re

import pytest

import redispatch as rd


@pytest.mark.parametrize("name", ["size", "stride"])
def test_a_size_that_there_is_not_is_said_as_pytorch_says_it(name):
    x = rd.ones(2, 3)
    assert (getattr(x, name)(-1), getattr(x, name)(dim=0)) == {"size": (3, 2), "stride": (1, 3)}[name]
    with pytest.raises(IndexError, match=re.escape("expected to be in range of [-2, 1], but got 2")):
        getattr(x, name)(2)
    with pytest.raises(IndexError, match="Dimension specified as -1 but tensor has no dimensions"):
        getattr(rd.tensor(1.0), name)(-1)
    for wrong in ("a", 1.0, True):
        with pytest.raises(TypeError, match=re.escape(f"{name}(): argument 'dim' (position 1) must be int, not")):
            getattr(x, name)(wrong)
