"""autograd.Function: what forward and backward see, what becomes of outputs, and what is refused."""

import gc
import weakref

import pytest

import redispatch as rd
from redispatch.autograd import Function, grad
from redispatch.autograd import forward_ad as fwAD


def leaf(*values):
    return rd.tensor(list(values), requires_grad=True)


def function(forward, backward=lambda ctx, *grads: grads[0], **more):
    """A Function of two plain functions."""
    members = {"forward": forward, "backward": backward} | more
    return type("F", (Function,), {name: staticmethod(member) for name, member in members.items()}).apply


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.factor = 2
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return ctx.factor * x * grad


def test_what_was_saved_can_be_packed_afterwards():
    x = leaf(3.0)
    y = Square.apply(x)
    (saved,) = y.grad_fn._raw_saved_tensors
    saved.register_hooks(lambda t: t.tolist(), lambda values: rd.tensor(values) * 10)
    y.backward()
    assert x.grad.item() == 60
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        y.grad_fn._raw_saved_tensors  # to look is what raises


def test_backward_is_the_users():
    x = leaf(3.0)
    y = Square.apply(x)
    assert type(y.grad_fn).__name__ == "SquareBackward" and y.grad_fn.factor == 2
    y.backward()
    assert x.grad.item() == 6


def test_it_is_differentiable_again_where_backward_is():
    x = leaf(3.0)
    (first,) = rd.autograd.grad(Square.apply(x), x, create_graph=True)
    assert rd.autograd.grad(first, x)[0].item() == 2


def test_forward_is_not_recorded_and_knows_what_is_wanted():
    seen = []

    def forward(ctx, x, n, y):
        seen.append((rd.is_grad_enabled(), ctx.needs_input_grad))
        return x * n

    y = function(forward, lambda ctx, g: (g * 7, None, None))(leaf(1.0), 2, rd.ones(1))
    y.backward()
    assert seen == [(False, (True, False, False))]


def test_setup_context_gets_inputs_and_output():
    seen = []

    def setup(ctx, inputs, output):
        seen.append((inputs[1], output.item()))
        ctx.save_for_backward(output)

    apply = function(lambda x, n=4: x * n, lambda ctx, g: (g * ctx.saved_tensors[0], None), setup_context=setup)
    x = leaf(2.0)
    apply(x, n=3).backward()
    assert seen == [(3, 6)] and x.grad.item() == 6


def test_undefined_gradients_are_zeros_or_none():
    seen = []

    def backward(ctx, *grads):
        seen.append([None if g is None else g.item() for g in grads])
        return grads[0]

    def forward(ctx, x):
        return x * 2, x * 3, "text"

    def bare(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    function(forward, backward)(leaf(1.0))[0].backward()
    function(bare, backward)(leaf(1.0))[0].backward()
    assert seen == [[1, 0, None], [1, None]]


def test_outputs_may_be_marked_non_differentiable():
    def forward(ctx, x):
        second = x * 3
        ctx.mark_non_differentiable(second)
        return x * 2, second

    first, second = function(forward)(leaf(1.0))
    assert first.requires_grad and not second.requires_grad


def test_a_returned_input_is_handed_out_as_a_view():
    x = leaf(1.0)
    y = function(lambda ctx, x: x, lambda ctx, g: g * 5)(x)
    assert y is not x and y._base is x
    y.backward()
    assert x.grad.item() == 5


def test_a_written_input_has_the_functions_history():
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.add_(1)

    x = leaf(1.0)
    z = x * 1
    y = function(forward, lambda ctx, g: g * 5)(z)
    assert y is z and z._version == 2
    (z * 2).backward()
    assert x.grad.item() == 10


def test_a_written_view_changes_its_base():
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(4)

    x = leaf(1.0, 1.0)
    base = x * 1
    function(forward, lambda ctx, g: g * 4)(base.select(0, 0))
    base.sum().backward()
    assert x.grad.tolist() == [4, 1]


def test_a_saved_output_keeps_nobody_alive():
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    x = leaf(0.0)
    gc.disable()
    try:
        y = function(forward, lambda ctx, g: g * ctx.saved_tensors[0])(x)
        node = weakref.ref(y.grad_fn)
        y.backward()
        del y
        assert node() is None and x.grad.item() == 1
    finally:
        gc.enable()


def dirty_and_lost(ctx, x):
    ctx.mark_dirty(x)
    return x.add_(1) * 2


def dirty_pair(ctx, x):
    ctx.mark_dirty(x)
    return x.add_(1), x * 2


def saves_a_number(ctx, x):
    ctx.save_for_backward(3)
    return x * 1


def marks_dirty(ctx, x):
    ctx.mark_dirty(x)
    return x.add_(1)


def double(ctx, x, *rest):
    return x * 2


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: function(double, lambda ctx, g: (g, g))(leaf(1.0)).backward(),
            RuntimeError,
            "function FBackward returned an incorrect number of gradients (expected 1, got 2)",
        ),
        (
            lambda: function(double, lambda ctx, g: (g, 1))(leaf(1.0), 2).backward(),
            RuntimeError,
            "function FBackward returned a gradient different than None at position 2, but the corresponding "
            "forward input "
            "was not a Variable",
        ),
        (
            lambda: function(double, lambda ctx, g: rd.ones(7))(leaf(1.0, 2.0)).sum().backward(),
            RuntimeError,
            "Function FBackward returned an invalid gradient at index 0 - got [7] but expected shape compatible "
            "with [2]",
        ),
        (
            lambda: function(double, lambda ctx, g: 3)(leaf(1.0)).backward(),
            RuntimeError,
            "expected Variable or None (got int)",
        ),
        (
            lambda: function(marks_dirty)(leaf(1.0)),
            RuntimeError,
            "a leaf Variable that requires grad has been used in an in-place operation.",
        ),
        (
            lambda: function(dirty_and_lost)(leaf(1.0) * 1),
            RuntimeError,
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
            "modified inplace must all be outputs of the Function.",
        ),
        (
            lambda: function(dirty_pair)((leaf(1.0) * 1).view(1)),
            RuntimeError,
            "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot "
            "return more "
            "than one Tensor.",
        ),
        (
            lambda: function(saves_a_number)(leaf(1.0)),
            TypeError,
            "save_for_backward can only save variables, but argument 0 is of type int",
        ),
        (
            lambda: type("G", (Function,), {"forward": staticmethod(double)}).apply(leaf(1.0)).backward(),
            NotImplementedError,
            "You must implement either the backward or vjp method for your custom autograd.Function",
        ),
        (
            lambda: type("G", (Function,), {}).apply(leaf(1.0)),
            NotImplementedError,
            "You must implement the forward function for custom autograd.Function.",
        ),
    ],
)
def test_errors_say_what_the_reference_says(call, error, message):
    with pytest.raises(error) as raised:
        call()
    assert message in str(raised.value)


def test_marking_what_is_no_input_warns():
    def forward(ctx, x):
        y = x.clone()
        ctx.mark_dirty(y)
        return y

    with pytest.warns(UserWarning, match="received a tensor that was not an input"):
        function(forward)(leaf(1.0))


def test_arguments_by_keyword_reach_forward():
    power = function(lambda ctx, x, k=1: x**k)
    assert power(leaf(2.0), k=3).tolist() == [8.0]


def test_a_node_shows_the_function_that_it_belongs_to():
    assert repr(Square.apply(leaf(1.0)).grad_fn).startswith("<torch.autograd.function.SquareBackward object at 0x")


# Forward mode ---------------------------------------------------------------------------------------------------------


def tangent_of(function, tangent):
    with fwAD.dual_level():
        x = fwAD.make_dual(rd.ones(3), tangent).clone()
        return fwAD.unpack_dual(function.apply(x))


class Doubles(rd.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def jvp(ctx, tangent):
        return tangent.mul_(2)


def test_forward_runs_once_in_forward_mode():
    primal, tangent = tangent_of(Doubles, rd.ones(3))
    assert primal.tolist() == [2, 2, 2] and tangent.tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    "jvp, message",
    [
        (lambda ctx, t: t * 2, "An inplace custom Function is not modifying the forward mode gradients inplace"),
        (lambda ctx, t: rd.ones(2), "Tensor is of size \\[3\\] while the given forward gradient is of size \\[2\\]"),
        (lambda ctx, t: (t, t), "invalid number of forward gradients \\(expected 1 but got 2\\)"),
        (lambda ctx, t: 3, "expected Variable or None \\(got int\\) for grad output 0"),
    ],
)
def test_a_jvp_is_checked(jvp, message):
    function = type("F", (Doubles,), {"jvp": staticmethod(jvp)})
    with pytest.raises(RuntimeError, match=message):
        tangent_of(function, rd.ones(3))


def test_a_function_is_not_called_itself():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        made = Doubles()
    with pytest.raises(RuntimeError, match="Legacy autograd function"):
        made(rd.ones(3))


# Views, tangents and contexts, as PyTorch has them --------------------------------------------------------------------


class Doubled(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None


def test_what_a_function_writes_through_a_view_is_differentiated():
    a, b = leaf(1.0, 1.0), leaf(1.0)
    base = a.clone()
    out = Doubled.apply(base[:1], b)
    assert out.grad_fn.next_functions[0][0].name() == "torch::autograd::CopySlices"
    base.sum().backward()
    assert a.grad.tolist() == [2, 1] and b.grad is None
    base = a.clone()
    Doubled.apply(base[:1], b * 1)
    assert grad(base.sum(), b, allow_unused=True) == (None,)


def test_a_view_made_by_a_function_where_nothing_is_recorded_stays_one():
    class Part(Function):
        @staticmethod
        def forward(ctx, x):
            return x[:1]

    with rd.no_grad():
        part = Part.apply(leaf(1.0, 2.0))
    assert part.requires_grad and part._is_view()
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        part.zero_()


def test_lists_and_several_results_of_an_operator_may_have_no_gradient():
    with rd.library._scoped_library("unlisted", "DEF") as lib:
        lib.define("f(Tensor x) -> (Tensor[], Tensor, Tensor)")
        lib.impl("f", lambda x: ([x.clone(), x * 2], x + 1, x * 3), "CompositeExplicitAutograd")
        rd.library.register_autograd(
            "unlisted::f",
            lambda ctx, of_list, of_second, of_third: 3 * of_third,
            setup_context=lambda ctx, inputs, output: ctx.mark_non_differentiable(*output[0], output[1]),
        )
        x = rd.ones(2, requires_grad=True)
        parts, second, third = rd.ops.unlisted.f(x)
        assert [one.requires_grad for one in (*parts, second, third)] == [False, False, False, True]
        assert rd.autograd.grad(third.sum(), x)[0].tolist() == [3, 3]


def test_results_that_are_declared_constant_have_no_gradient():
    from redispatch import _custom_ops as custom

    @custom.custom_op("constant_parts::f")
    def f(x: rd.Tensor) -> tuple[rd.Tensor, rd.Tensor, rd.Tensor]:
        raise NotImplementedError

    custom.impl("constant_parts::f")(lambda x: (x + 1, x + 2, x + 3))
    custom.impl_save_for_backward("constant_parts::f")(lambda inputs, output: [])
    custom.impl_backward("constant_parts::f", output_differentiability=[False, True, False])(
        lambda ctx, saved, *grads: {"x": grads[1]}
    )
    try:
        found = rd.ops.constant_parts.f(rd.ones(2, requires_grad=True))
        assert [one.requires_grad for one in found] == [False, True, False]
    finally:
        custom._destroy("constant_parts::f")


def applied(forward, jvp):
    """Applies a Function of these to dual numbers."""
    made = type("Made", (Function,), {"forward": staticmethod(forward), "jvp": staticmethod(jvp)})
    with fwAD.dual_level():
        return made.apply(fwAD.make_dual(rd.ones(2), rd.ones(2)))


def unmarked(ctx, x):
    out = x.clone()
    ctx.mark_non_differentiable(out)
    return out


def written(ctx, x):
    ctx.mark_dirty(x)
    return x.mul_(2)


@pytest.mark.parametrize(
    ("forward", "jvp", "text"),
    [
        (unmarked, lambda ctx, t: t * 1, "returned a gradient at position 0.*You should return None"),
        (lambda ctx, x: x, lambda ctx, t: t * 2, r"returning a view \(or an input as-is\) but the jvp is not"),
        (lambda ctx, x: x[:1], lambda ctx, t: t.clone()[:1], "not returning a view of the given grad input"),
        (written, lambda ctx, t: t, "is not modifying the forward mode gradients inplace"),
    ],
)
def test_jvp_is_held_to_what_forward_did(forward, jvp, text):
    with pytest.raises(RuntimeError, match=text):
        applied(forward, jvp)


def test_jvp_has_what_was_saved_for_forward_and_backward_the_rest():
    class Kept(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def jvp(ctx, t):
            assert ctx.saved_tensors == ()
            return t * 1

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x

    x = leaf(3.0)
    with fwAD.dual_level():
        Kept.apply(fwAD.make_dual(x, rd.ones(1))).sum().backward()
    assert x.grad.tolist() == [3]


def test_saved_nones_and_hooks_that_are_none_are_refused():
    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            with pytest.warns(DeprecationWarning, match="saved_variables"):
                assert ctx.saved_variables[1] is None
            return g

    out = Two.apply(leaf(1.0))
    x, nothing = out.grad_fn._raw_saved_tensors
    with pytest.raises(RuntimeError, match="value None is forbidden"):
        nothing.register_hooks(abs, abs)
    for hooks in ((abs,), (1, 1)):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            x.register_hooks(*hooks)
    out.sum().backward()


def test_gradients_of_outputs_without_gradient_are_zeros_or_none_as_asked():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x, wanted):
            out = x.clone()
            ctx.mark_non_differentiable(out)
            ctx._materialize_non_diff_grads = wanted
            return x.clone(), out

        @staticmethod
        def backward(ctx, g, none):
            seen.append(none)
            return g, None

    for wanted in (True, False):
        Two.apply(leaf(1.0), wanted)[0].backward()
    assert seen[0].tolist() == [0] and seen[1] is None


def test_a_function_without_a_vmap_rule_says_so():
    assert not Doubled.generate_vmap_rule
    with pytest.raises(NotImplementedError, match="override the vmap staticmethod"):
        Doubled.vmap(None, (0,), rd.ones(1))
