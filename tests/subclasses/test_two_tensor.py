"""Wrappers that hand on every operator: two at once, with a log, with a check of what was made."""

import pytest
from expecttest import assert_expected_inline

import redispatch as rd
from redispatch.subclasses.checked_tensor import CheckedTensor, NonFiniteError
from redispatch.subclasses.logging_tensor import Log, LoggingTensor
from redispatch.subclasses.two_tensor import TwoTensor
from redispatch.testing._internal import two_tensor
from redispatch.utils._python_dispatch import is_traceable_wrapper_subclass, transform_subclass

# TwoTensor: both halves run, aliasing is what it is for plain tensors, and autograd sees the wrapper ------------------


def pair(*shape):
    return TwoTensor(rd.ones(*shape), rd.zeros(*shape))


def values(x):
    return x.a.tolist(), x.b.tolist()


def test_every_operator_runs_on_both():
    assert values((pair(2) + 1) * 3) == ([6.0, 6.0], [3.0, 3.0])


def test_tensors_in_lists_are_found():
    assert values(rd.cat([pair(1), rd.ones(1)])) == ([1.0, 1.0], [0.0, 1.0])


def test_several_results_are_each_a_pair():
    first, second = pair(2, 2).unbind()
    assert type(first) is type(second) is TwoTensor
    assert values(second) == ([1.0, 1.0], [0.0, 0.0])


def test_an_in_place_operator_returns_the_wrapper_and_counts_the_write():
    x = pair(2)
    assert x.add_(1) is x
    assert x._version == 1
    assert values(x) == ([2.0, 2.0], [1.0, 1.0])


def test_out_is_written_and_returned():
    out = pair(2)
    assert rd.add(pair(2), pair(2), out=out) is out
    assert values(out) == ([2.0, 2.0], [0.0, 0.0])


def test_a_view_shares_the_wrappers_storage():
    x = pair(2, 2)
    view = x.view(4)
    assert view._is_view() and view._base is x
    assert view.untyped_storage() is x.untyped_storage()
    view.add_(1)
    assert values(x) == ([[2.0, 2.0], [2.0, 2.0]], [[1.0, 1.0], [1.0, 1.0]])


def test_an_operator_that_changes_the_shape_changes_the_wrappers():
    x = pair(2, 3)
    assert x.t_() is x
    assert x.shape == x.a.shape == (3, 2)


def test_the_graph_is_the_wrappers():
    x = pair(2).requires_grad_()
    y = x.exp().sum()
    y.backward()
    assert type(x.grad) is TwoTensor
    assert x.grad.b.tolist() == [1.0, 1.0]
    assert not x.a.requires_grad


def test_a_number_is_the_first_ones():
    assert pair(2).sum().item() == 2.0


def test_it_comes_apart_and_together_again():
    x = pair(2)
    assert is_traceable_wrapper_subclass(x)
    doubled = transform_subclass(x, lambda name, inner: inner * 2)
    assert type(doubled) is TwoTensor and values(doubled) == ([2.0, 2.0], [0.0, 0.0])


def test_it_shows_both():
    assert repr(pair(1)) == "TwoTensor(tensor([1.]), tensor([0.]))"


def test_it_is_found_where_pytorch_keeps_it():
    assert two_tensor.TwoTensor is TwoTensor


# LoggingTensor: what is written, that it spreads, and that backward is written too ------------------------------------


def logged(x):
    log = Log()
    return LoggingTensor(x, log), log


def test_it_follows_what_comes_of_it_forward_and_backward():
    x, log = logged(rd.ones(2, 3, requires_grad=True))
    (x * rd.ones(3)).sum(dim=1).sum().backward()
    text = str(log).splitlines()
    assert_expected_inline(
        "\n".join(text[:3]),
        """\
$1: f32[2, 3] = aten.mul.Tensor($0, f32[3])
$2: f32[2] = aten.sum.dim_IntList($1, [1])
$3: f32[] = aten.sum.default($2)""",
    )
    assert any("aten.expand.default" in line for line in text[3:])
    assert type(x.grad) is LoggingTensor
    assert x.grad.elem.tolist() == [[1.0] * 3] * 2


def test_what_it_never_meets_is_not_written():
    x, log = logged(rd.ones(2))
    rd.ones(2) + 1
    assert log.lines == []
    rd.ones(2) + x
    assert log.lines == ["$1: f32[2] = aten.add.Tensor(f32[2], $0)"]


def test_in_place_gives_back_the_argument_under_its_label():
    x, log = logged(rd.ones(2))
    assert x.mul_(3) is x
    assert log.lines == ["$0: f32[2] = aten.mul_.Tensor($0, 3)"]
    assert x.elem.tolist() == [3.0, 3.0]


def test_a_plain_tensor_written_in_place_stays_plain():
    x, log = logged(rd.ones(2))
    y = rd.zeros(2)
    assert y.add_(x) is y
    assert log.lines == ["f32[2] = aten.add_.Tensor(f32[2], $0)"]


def test_views_are_views_of_the_wrapper():
    x, log = logged(rd.ones(2, 3))
    view = x.t()
    assert view._base is x and log.lines == ["$1: f32[3, 2] = aten.t.default($0)"]


def test_lists_and_several_results():
    x, log = logged(rd.ones(2))
    rd.cat([x, rd.ones(1)]).split(2)
    assert log.lines == [
        "$1: f32[3] = aten.cat.default([$0, f32[1]])",
        "$2: f32[2], $3: f32[1] = aten.split.Tensor($1, 2)",
    ]


def test_it_shows_its_label():
    x, _ = logged(rd.ones(1))
    assert repr(x) == "LoggingTensor($0, tensor([1.]))"


def test_its_log_does_not_hide_the_method_that_formulas_call():
    x = LoggingTensor(rd.tensor([1.0, 2.0]), Log()).requires_grad_()
    assert x.log().elem.tolist() == rd.tensor([1.0, 2.0]).log().tolist()
    rd.logcumsumexp(x, 0).sum().backward()
    assert type(x.grad) is LoggingTensor


def test_a_new_result_of_an_operator_that_also_writes_is_followed():
    x, log = logged(rd.ones(2))
    noise = LoggingTensor(rd.zeros(2), log)
    result = rd.ops.aten.rrelu_with_noise.default(x, noise, 0.1, 0.3, True)
    assert type(result) is LoggingTensor and result.label == "$2"
    assert x.add_(1) is x and str(log).splitlines()[-1].startswith("$0")


def test_an_operator_that_writes_a_list_and_returns_nothing():
    x, log = logged(rd.ones(2))
    parts = [LoggingTensor(rd.zeros(1), log), LoggingTensor(rd.zeros(1), log)]
    assert rd.ops.aten.split_copy.Tensor_out(x, 1, out=parts) is None
    assert [part.elem.item() for part in parts] == [1.0, 1.0]


# CheckedTensor --------------------------------------------------------------------------------------------------------

# It names the operator that made the first NaN or infinity, forward, backward and in place.


def checked(*numbers):
    return CheckedTensor(rd.tensor(numbers))


def test_results_are_checked_tensors_with_the_values_of_plain_ones():
    y = (checked(1.0, 2.0) * 3).sum()
    assert type(y) is CheckedTensor and y.item() == 9.0


def test_it_is_the_memory_that_it_was_made_of():
    plain = rd.ones(2)
    x = CheckedTensor(plain)
    assert x.add_(1) is x
    assert plain.tolist() == [2.0, 2.0]
    assert x.data_ptr() == plain.data_ptr()


def test_the_first_operator_is_named_with_what_it_made():
    with pytest.raises(NonFiniteError, match="aten.log.default made the first value that is not finite") as caught:
        (checked(1.0, 0.0).log() * 0).sum()
    assert caught.value.op is rd.ops.aten.log.default
    assert type(caught.value.value) is rd.Tensor
    assert caught.value.value.tolist() == [0.0, float("-inf")]


def test_what_is_born_in_backward_is_caught_there():
    x = checked(0.0).requires_grad_()
    y = x.sqrt().sum()
    assert y.item() == 0.0
    with pytest.raises(NonFiniteError, match="aten.div.Tensor"):
        y.backward()


def test_gradients_are_checked_tensors():
    x = checked(1.0, 2.0).requires_grad_()
    (x * x).sum().backward()
    assert type(x.grad) is CheckedTensor and x.grad.tolist() == [2.0, 4.0]


def test_fresh_memory_and_integers_are_not_looked_at():
    x = checked(1.0)
    rd.empty_like(x.expand(64, 64))
    assert (x.to(rd.int64) + 1).tolist() == [2]


def test_views_share_memory_and_base():
    x = checked(1.0, 2.0)
    view = x.view(2, 1)
    assert type(view) is CheckedTensor and view._base is x
    view.mul_(2)
    assert x.tolist() == [2.0, 4.0]
