"""opcheck finds what is wrong with an operator's registration, and says it."""

import warnings

import pytest

import redispatch as rd
from redispatch.library import Library, PyTree, custom_op, opcheck
from redispatch.testing.op_check import BY_DEFAULT, OpCheckError


def sine(name="t::sine"):
    @custom_op(name, mutates_args=())
    def sine(x: rd.Tensor) -> rd.Tensor:
        return rd.sin(x)

    sine.register_fake(lambda x: rd.empty_like(x))
    return sine


def differentiable_sine():
    made = sine()

    def keep(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    made.register_autograd(lambda ctx, grad: grad * ctx.saved_tensors[0].cos(), setup_context=keep)
    return made


def test_a_good_operator_passes_every_test():
    x = rd.ones(2, 3, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert opcheck(differentiable_sine(), (x,)) == dict.fromkeys(BY_DEFAULT, "SUCCESS")
    assert x.grad is None
    assert opcheck(rd.ops.aten.linear.default, (x, rd.ones(4, 3))) == dict.fromkeys(BY_DEFAULT, "SUCCESS")
    assert opcheck(rd.ops.aten.sin.default, (x,)) == dict.fromkeys(BY_DEFAULT, "SUCCESS")


def test_a_kernel_that_writes_against_its_schema_is_found():
    bad = custom_op("t::bad", lambda x: x.add_(1).clone(), mutates_args=(), schema="(Tensor x) -> Tensor")
    x = rd.ones(2)
    with pytest.raises(OpCheckError, match="test_schema failed with Argument x is not defined as mutable but was mut"):
        opcheck(bad, (x,))
    assert x.tolist() == [1, 1]


def test_a_write_that_is_declared_and_never_happens_is_reported():
    @custom_op("t::idle", mutates_args={"x"})
    def idle(x: rd.Tensor) -> rd.Tensor:
        return x.clone()

    idle.register_fake(lambda x: rd.empty_like(x))
    with pytest.warns(UserWarning, match="declares argument x as written, and with these arguments nothing was"):
        opcheck(idle, (rd.ones(2),))


def test_a_fake_that_says_something_else_is_shown_beside_the_kernel():
    made = sine()
    made.register_fake(lambda x: rd.empty(*x.shape[::-1], device="meta"))
    expected = (
        "test_faketensor failed with t::sine: the fake does not say what the kernel does\n"
        "  you passed   float32[2, 3] with strides (3, 1)\n"
        "  the kernel   float32[2, 3] with strides (3, 1)\n"
        "  the fake     float32[3, 2] with strides (2, 1)"
    )
    with pytest.raises(OpCheckError) as problem:
        opcheck(made, (rd.ones(2, 3),))
    assert expected in str(problem.value)


def test_a_fake_that_is_right_for_one_size_only_is_found():
    made = sine()
    made.register_fake(lambda x: x.new_empty((2, 3)))
    found = opcheck(made, (rd.ones(2, 3),), raise_exception=False)
    assert found["test_faketensor"] == "SUCCESS"
    assert "the fake     float32[2, 3]" in str(found["test_aot_dispatch_dynamic"])


def test_a_missing_fake_is_found():
    @custom_op("t::no_fake", mutates_args=())
    def no_fake(x: rd.Tensor) -> rd.Tensor:
        return x.clone()

    with pytest.raises(OpCheckError, match="test_faketensor failed with There was no fake impl registered"):
        opcheck(no_fake, (rd.ones(2),))


def test_a_missing_derivative_is_found_where_a_gradient_is_wanted():
    with pytest.raises(OpCheckError, match="test_autograd_registration failed with t::sine: at least one output"):
        opcheck(sine(), (rd.ones(2, requires_grad=True),))
    assert opcheck(sine("t::other"), (rd.ones(2),))["test_autograd_registration"] == "SUCCESS"


def test_a_backward_that_does_not_run_without_data_is_found():
    made = sine()
    made.register_autograd(lambda ctx, grad: grad * float(grad.sum()))
    found = opcheck(made, (rd.ones(2, requires_grad=True),), raise_exception=False)
    assert found["test_aot_dispatch_dynamic"] != "SUCCESS"


def test_operators_with_pytrees_and_devices_can_be_checked():
    @custom_op("t::made_of", mutates_args=())
    def made_of(tree: PyTree, device: rd.device) -> rd.Tensor:
        return rd.zeros(tree["x"].shape, device=device)

    made_of.register_fake(lambda tree, device: rd.empty(tree["x"].shape, device=device))
    found = opcheck(made_of, ({"x": rd.ones(2)}, rd.device("cpu")))
    assert found == dict.fromkeys(BY_DEFAULT, "SUCCESS")


@pytest.mark.parametrize(
    ("schema", "kernel", "fake", "check"),
    [
        ("(Tensor x) -> Tensor", lambda x: x * 2, lambda x: x, "outputs_alias_inputs"),
        (
            "(Tensor x) -> (Tensor, Tensor)",
            lambda x: (x + 1, x + 2),
            lambda x: (x.new_empty(2),) * 2,
            "outputs_alias_each_other",
        ),
    ],
)
def test_a_fake_that_shares_memory_where_the_kernel_does_not_is_found(schema, kernel, fake, check):
    with Library("t", "FRAGMENT") as lib:
        lib.define(f"f{schema}")
        lib.impl("f", kernel, "CPU")
        lib.impl("f", fake, "Meta")
        with pytest.raises(OpCheckError, match=rf"test_faketensor failed with .* mismatch in {check}"):
            opcheck(rd.ops.t.f.default, (rd.ones(2),))


def test_what_is_no_operator_or_no_test_is_refused():
    with pytest.raises(ValueError, match="op must be instance of torch._ops.OpOverload"):
        opcheck(len, ())
    with pytest.raises(ValueError, match="expected test_utils to be subset of"):
        opcheck(sine(), (rd.ones(1),), test_utils="test_luck")
    with pytest.raises(ValueError, match="if you specify one of rtol/atol"):
        opcheck(rd.ops.t.sine.default, (rd.ones(1),), rtol=0.1)
    with pytest.raises(RuntimeError, match="can only test operators without overloads"):
        opcheck(rd.ops.aten.add, (rd.ones(1), 1))
    for name in ("test_schema", "test_aot_dispatch_static"):
        assert opcheck(rd.ops.t.sine, (rd.ones(1),), test_utils=name) == {name: "SUCCESS"}


def test_a_library_operator_can_be_checked():
    with Library("t", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x.view(-1), "CPU")
        with pytest.raises(OpCheckError, match="Argument x is not defined to alias output but was aliasing"):
            opcheck(rd.ops.t.f.default, (rd.ones(2),))
