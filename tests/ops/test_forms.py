"""The other forms of an operator: `out=`, copies of views, second names, functions that write over their argument."""

import pytest

import redispatch as rd
from redispatch.kernels.declare.public import FUNCTIONS
from redispatch.library import Library

from ..seeing import Seen

# `out=`: where the result may go --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda x: rd.add(x, rd.ones(2, 3), out=x),
        lambda x: rd.sum(x, 0, out=x),
        lambda x: rd.stack([rd.ones(3), x], out=x),
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


# out= forms that copy a finished result, and the copies of views that have them ---------------------------------------


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


# Second names of operators, and the functions that write over their first argument ------------------------------------


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


@pytest.mark.parametrize("name", [name for name in FUNCTIONS[""] if name.endswith("_") and name[0] != "_"])
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


def test_tags_are_pytorchs():
    """Source: `op.tags` in PyTorch 2.13, which sorts them by name."""
    aten = rd.ops.aten
    for op, tags in [
        (aten.sin.default, ["core", "pointwise", "pt2_compliant_tag"]),
        (aten.sin_.default, ["inplace", "pointwise", "pt2_compliant_tag"]),
        (aten.fill.Tensor_out, ["generated", "out", "pt2_compliant_tag"]),
        (aten.bernoulli.Tensor_out, ["generated", "nondeterministic_seeded", "out", "pt2_compliant_tag"]),
    ]:
        assert sorted(map(str, op.tags)) == tags
