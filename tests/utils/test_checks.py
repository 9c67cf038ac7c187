"""`_check` and its kin."""

import pytest

import redispatch as rd


@pytest.mark.parametrize(
    ("check", "error"),
    [
        (rd._check, RuntimeError),
        (rd._check_index, IndexError),
        (rd._check_value, ValueError),
        (rd._check_type, TypeError),
        (rd._check_not_implemented, NotImplementedError),
    ],
)
def test_a_condition_that_fails_raises_its_error_with_the_message(check, error):
    check(True)
    with pytest.raises(error, match="Expected cond to be True"):
        check(False)
    with pytest.raises(error, match="said 3"):
        check(False, lambda: f"said {3}")
    with pytest.raises(TypeError, match="cond must be a bool"):
        check(rd.tensor(True))
    with pytest.raises(TypeError, match="message must be a callable"):
        check(False, "text")


def test_all_elements_are_checked_and_sizes():
    rd._check_tensor_all(rd.tensor([True, True]))
    with pytest.raises(RuntimeError, match="some"):
        rd._check_tensor_all(rd.tensor([True, False]), lambda: "some")
    with pytest.raises(TypeError, match="cond tensor must have dtype torch.bool"):
        rd._check_tensor_all(rd.ones(2))
    rd._check_is_size(0, max=3)
    for size, most in ((-1, None), (4, 3)):
        with pytest.raises(RuntimeError):
            rd._check_is_size(size, max=most)
