"""Views in the graph: what is written through one, and programs of views that were drawn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import redispatch as rd
from redispatch.dispatch.tensor import CreationMeta

from .. import drawing
from ..view_programs import KINDS, WithoutViews, WithViews

# Views and writes, one at a time, and the errors ---------------------------------------------------------------------

# --- One at a time ----------------------------------------------------------------------------------------------------


def leaf(*values):
    return rd.tensor(list(values), requires_grad=True)


def test_a_write_through_a_view_gives_its_base_a_new_history():
    x = leaf(1.0, 1.0, 1.0)
    base = x.clone()
    view = base.select(0, 0)
    view.mul_(3)
    base.sum().backward()
    assert x.grad.tolist() == [3, 1, 1]
    assert type(base.grad_fn).__name__ == "CopySlices" and "AsStrided" in type(view.grad_fn).__name__


def test_a_write_through_a_view_of_a_tensor_that_begins_inside_its_storage():
    w = leaf(2.0)
    part = rd.ones(6)[2:].detach()
    part[1:].mul_(w)
    part.sum().backward()
    assert part.tolist() == [1, 2, 2, 2] and w.grad.tolist() == [3]


def test_a_view_requires_grad_as_soon_as_its_base_does():
    base, w = rd.zeros(4), leaf(1.0, 2.0, 3.0, 4.0)
    view = base.select(0, 1)
    assert not view.requires_grad
    base.add_(w)
    assert view.requires_grad and not view.is_leaf
    view.backward()
    assert w.grad.tolist() == [0, 1, 0, 0]


def test_versions_are_shared_by_base_views_and_detached_tensors():
    base = rd.zeros(4)
    view, detached = base.view(2, 2), base.detach()
    detached.add_(1)
    view.add_(1)
    assert base._version == view._version == detached._version == 2
    assert view._base is base and not detached._is_view()


def test_a_view_of_a_view_has_the_first_base():
    base = rd.zeros(4)
    view = base.view(2, 2).select(0, 1)
    assert view._base is base and view.view(2, 1)._base is base


def test_writing_a_view_twice_and_deriving_twice():
    x = leaf(2.0, 3.0)
    base = x * 1
    part = base.select(0, 0)
    part.mul_(part.clone())
    part.mul_(2)
    (first,) = rd.autograd.grad((base * base).sum(), x, create_graph=True)  # 4 x0^4 + x1^2
    assert first.tolist() == [16 * 8, 6]
    (second,) = rd.autograd.grad(first.sum(), x)
    assert second.tolist() == [48 * 4, 2]


def test_creation_is_remembered_by_views_of_views():
    base = rd.zeros(4)
    with rd.no_grad():
        view = base.view(2, 2)
    assert view.view(4)._view.creation is CreationMeta.NO_GRAD_MODE


MULTIPLE = (
    " This view is the output of a function that returns multiple views. Such functions do not allow the output "
    "views to "
    "be modified inplace. You should replace the inplace operation by an out-of-place one."
)


def ambiguous(mode):
    return (
        " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
        "moving both "
        f"the view and the inplace either both inside the {mode} block (if you don't want the inplace to be "
        "tracked) or "
        "both outside (if you want the inplace to be tracked)."
    )


def of_no_grad():
    y = leaf(1.0, 2.0) * 1
    with rd.no_grad():
        view = y.view(2)
    return view.add_(1)


def of_inference_mode():
    y = leaf(1.0, 2.0) * 1
    with rd.inference_mode():
        view = y.view(2)
    return view.view(1, 2).add_(1)


def of_several():
    return (leaf(1.0, 2.0) * 1).unbind()[1].add_(1)


def of_several_after_a_write():
    y = leaf(1.0, 2.0) * 1
    part = y.unbind()[0]
    y.add_(1)
    return part.grad_fn


def of_a_function():
    class Same(rd.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad

    return Same.apply(leaf(1.0)).add_(1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: leaf(1.0).add_(1),
            "a leaf Variable that requires grad is being used in an in-place operation.",
        ),
        (
            lambda: leaf(1.0).view(1).add_(1),
            "a view of a leaf Variable that requires grad is being used in an in-place operation.",
        ),
        (
            of_no_grad,
            "A view was created in no_grad mode and is being modified inplace with grad mode enabled."
            + ambiguous("no_grad"),
        ),
        (
            of_inference_mode,
            "Output 0 of View is a view of a view which was created in inference mode and is being modified inplace in "
            "normal mode." + ambiguous("inference_mode"),
        ),
        (of_several, "Output 1 of Unbind is a view and is being modified inplace." + MULTIPLE),
        (
            of_several_after_a_write,
            "Output 0 of Unbind is a view and its base or another view of its base has been modified inplace."
            + MULTIPLE,
        ),
        (
            of_a_function,
            "Output 0 of Same is a view and is being modified inplace. This view was created inside a custom "
            "Function (or "
            "because an input was returned as-is) and the autograd logic to handle view+inplace would override "
            "the custom "
            "backward associated with the custom Function, leading to incorrect gradients. This behavior is forbidden. "
            "You can fix this by cloning the output of the custom Function.",
        ),
        (
            lambda: rd.add(leaf(1.0), 1, out=rd.zeros(1)),
            "add(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
            "requires grad.",
        ),
    ],
)
def test_writes_that_cannot_be_recorded_are_refused(call, message):
    with pytest.raises(RuntimeError) as error:
        call()
    assert str(error.value) == message


def test_a_tensor_that_leaves_the_graph_counts_no_write_and_leaves_its_views_there():
    x = leaf(1.0, 2.0)
    y = x * 1
    view = y.view(2)
    y.detach_()
    assert y._version == 0 and not y.requires_grad
    assert view.grad_fn.name() == "ViewBackward0"
    view.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_a_tensor_is_not_filled_in_with_another_where_elements_coincide():
    def fill(target, value):
        target[0] = value

    coinciding = rd.ones(3).expand(2, 3)
    for write in (lambda: coinciding.fill_(rd.tensor(2.0)), lambda: fill(coinciding.t(), 2.0)):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            write()
    coinciding.fill_(2.0)
    assert coinciding.tolist() == [[2, 2, 2]] * 2


def test_under_no_grad_anything_may_be_written():
    x = leaf(1.0, 2.0)
    with rd.no_grad():
        x.view(2).add_(1)
        x.unbind()[0].add_(1)
    assert x.tolist() == [3, 3] and x._version == 2


def test_the_hooks_of_a_tensor_stay_with_its_former_value():
    seen = []
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: seen.append(("before", g.item())))
    y.retain_grad()
    y.mul_(3)
    y.register_hook(lambda g: seen.append(("after", g.item())))
    y.sum().backward()
    assert seen == [("after", 1), ("before", 3)] and y.grad.item() == 1


# Random programs of views, writes and arithmetic against the same programs without views ------------------------------

# Values and gradients.

NUMBERS = st.integers(0, 11)
STEPS = st.tuples(st.sampled_from(KINDS), NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.sampled_from([0.5, 0.9, -1.1, 1.3]))
PROGRAMS = st.lists(STEPS, min_size=3, max_size=14)

# What may be refused: writes to views whose history could not be right, reading them after others were written, and
# writes to memory in which elements coincide.
EXPECTED_ERRORS = (
    "the output of a function that returns multiple views",
    "created in no_grad mode",
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location",
)


def check(steps):
    found = WithViews(rd).run(steps)
    for error in (*found.errors, *found.unreadable.values()):
        assert error in ("", "impossible") or any(part in error for part in EXPECTED_ERRORS)
    expected = WithoutViews(rd).run(steps, found)
    assert len(found.results) == len(expected.results)
    for got, wanted in zip(found.results, expected.results, strict=True):
        assert np.allclose(got, wanted, rtol=1e-7, atol=1e-9)


@drawing.at_length(6000)
@given(PROGRAMS)
def test_views_and_writes_have_the_gradients_of_their_functional_rerun(steps):
    check(steps)


def test_retained_gradients_follow_a_view_and_hooks_do_not():
    seen = []
    base = leaf(1.0).clone()
    view, other = base[:], base[:]
    view.retain_grad()
    other.retain_grad()
    other.register_hook(seen.append)
    view.mul_(2)
    (view + other).sum().backward()
    assert view.grad.tolist() == other.grad.tolist() == [1] and seen == []
