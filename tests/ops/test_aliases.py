"""Second names of operators, and the functions that write over their first argument."""

import pytest

import redispatch as rd
from redispatch.kernels.ops.aliases import WRITTEN_OVER
from redispatch.library import Library

from ..seeing import Seen


def test_a_mode_sees_the_operator_that_a_second_name_calls():
    x = rd.tensor([-1.5, 2.0])
    with Seen() as mode:
        rd.absolute(x)
        x.clone().negative_()
        rd.divide(x, 2, rounding_mode="floor")
        rd.multiply(x, 2, out=rd.empty(2))
        x.greater(1)
        x.clip(0, 1)
    assert mode.names == "abs clone neg_ div.Tensor_mode empty.memory_format mul.out gt.Scalar clamp".split()


def test_a_kernel_under_the_second_name_leaves_the_first_alone():
    x = rd.tensor([-1.5, 2.0])
    with Library("aten", "IMPL") as library:
        library.impl("absolute", lambda self: self * 0, "CPU", allow_override=True)
        assert rd.absolute(x).tolist() == [0.0, 0.0]
        assert rd.abs(x).tolist() == [1.5, 2.0]
    assert rd.absolute(x).tolist() == [1.5, 2.0]


def test_positive_is_the_tensor_itself_but_not_of_bool():
    x = rd.tensor([-1.5])
    assert rd.positive(x) is x
    with pytest.raises(RuntimeError, match=r"The `\+` operator, on a bool tensor is not supported."):
        rd.positive(rd.tensor([True]))


@pytest.mark.parametrize("name", WRITTEN_OVER)
def test_a_function_with_an_underscore_ends_in_the_operators_of_that_name(name):
    function = getattr(rd, name)
    assert function.__name__ == name
    assert function.operators
    assert all(op._opname == name and op.schema.kind == "inplace" for op in function.operators)


def test_functions_with_an_underscore_write_over_their_argument():
    x = rd.tensor([-1.5, 2.0])
    assert rd.abs_(x) is x and x.tolist() == [1.5, 2.0]
    assert rd.clamp_(x, max=1.75) is x and x.tolist() == [1.5, 1.75]
    assert rd.fill_(x, 3) is x and rd.zero_(x) is x and x.tolist() == [0.0, 0.0]
