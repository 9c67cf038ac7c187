"""Control flow as operators: the values of the Python loop that each stands for, and its gradients."""

import pytest

import redispatch as rd
from redispatch._higher_order_ops import (
    associative_scan,
    cond,
    map,
    out_dtype,
    scan,
    tag_activation_checkpoint,
    while_loop,
    wrap,
    wrap_with_autocast,
    wrap_with_set_grad_enabled,
)

from ..seeing import Seen


class SeenWhole(Seen):
    supports_higher_order_operators = True


# cond ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pred", [True, False, rd.tensor(True), rd.tensor([False])])
def test_cond_runs_one_branch_and_has_its_gradient(pred):
    x = rd.tensor(2.0, requires_grad=True)
    other = rd.tensor(5.0, requires_grad=True)
    y = cond(pred, lambda x: x * x, lambda x: x * other, (x,))
    y.backward()
    assert (y.item(), x.grad.item()) == ((4, 4) if pred else (10, 5))
    assert (other.grad is None) == bool(pred)


def test_cond_of_a_batch_chooses_for_each_example():
    x = rd.tensor([-1.0, 2.0, -3.0])
    absolute = rd.vmap(lambda x: cond(x > 0, lambda x: x.clone(), lambda x: -x, (x,)))
    assert absolute(x).tolist() == [1, 2, 3]
    slope = rd.vmap(rd.func.grad(lambda x: cond(True, lambda x: x * x, lambda x: x, (x,))))
    assert slope(x).tolist() == [-2, 4, -6]


# while_loop ---------------------------------------------------------------------------------------------------------


def test_while_loop_runs_until_its_condition_fails():
    i, x = while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (rd.tensor(0), rd.tensor([1.0])))
    assert (i.item(), x.tolist()) == (3, [8])
    nested = while_loop(lambda s: s["n"] < 2, lambda s: ({"n": s["n"] + 1},), ({"n": rd.tensor(0)},))
    assert nested[0]["n"].item() == 2


def test_while_loop_that_never_runs_gives_copies():
    x = rd.ones(2)
    (same,) = while_loop(lambda x: False, lambda x: (x + 1,), (x,))
    assert same.tolist() == [1, 1] and same.data_ptr() != x.data_ptr()


def test_while_loop_has_gradients():
    x = rd.tensor(3.0, requires_grad=True)
    _, y = while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (rd.tensor(0), rd.tensor(1.0)))
    y.backward()
    assert x.grad.item() == 27


# scan, associative_scan, map ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_carries_from_slice_to_slice(reverse):
    xs = rd.arange(1.0, 5.0).requires_grad_()
    carry, ys = scan(lambda c, x: (c + x, c * x), rd.zeros(()), xs, reverse=reverse)
    assert carry.item() == 10
    assert ys.tolist() == ([9, 14, 12, 0] if reverse else [0, 2, 9, 24])
    carry.backward()
    assert xs.grad.tolist() == [1, 1, 1, 1]


def test_scan_takes_pytrees_and_other_dimensions():
    xs = {"a": rd.arange(6.0).view(2, 3), "b": rd.ones(1, 3)}
    carry, ys = scan(lambda c, x: ((c[0] + x["a"],), [x["a"] * 2, x["b"]]), (rd.zeros(2),), xs, dim=1)
    assert carry[0].tolist() == [3, 12]
    assert ys[0].tolist() == [[0, 2, 4], [6, 8, 10]] and ys[1].shape == (1, 3)  # along the same dimension
    sums = scan(lambda c, x: (c + x.sum(), c + x.sum()), rd.zeros(()), xs["a"], dim=1, reverse=True)[1]
    assert sums.tolist() == [15, 12, 7]  # there is no such dimension: the first


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 8, 11])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_gives_all_prefixes(length, reverse):
    x = rd.randn(3, length, dtype=rd.float64, requires_grad=True)
    for dim in (1, -1):
        y = associative_scan(lambda a, b: a + b, x, dim, reverse=reverse)
        expected = x.flip(1).cumsum(1).flip(1) if reverse else x.cumsum(1)
        assert rd.allclose(y, expected)
    y.sum().backward()
    counts = list(range(1, length + 1) if reverse else range(length, 0, -1))
    assert x.grad.tolist() == [counts] * 3


def test_associative_scan_keeps_the_order_of_what_does_not_commute():
    """Products of affine maps: x -> a x + b, one after the other."""
    a, b = rd.tensor([2.0, 3.0, 5.0, 7.0, 11.0]), rd.tensor([1.0, 4.0, 9.0, 16.0, 25.0])
    _, shifts = associative_scan(lambda f, g: (g[0] * f[0], g[0] * f[1] + g[1]), (a, b), 0, combine_mode="generic")
    y, expected = rd.tensor(0.0), []
    for i in range(5):
        y = a[i] * y + b[i]
        expected.append(y.item())
    assert shifts.tolist() == expected


def test_map_stacks_the_results_of_slices():
    x, y = rd.arange(6.0).view(3, 2).requires_grad_(), rd.ones(3)
    out = map(lambda xs, n: [xs[0] * xs[1] * n], (x, y), 3)
    assert out[0].tolist() == [[0, 3], [6, 9], [12, 15]]
    out[0].sum().backward()
    assert x.grad.tolist() == [[3, 3]] * 3


# Regions ------------------------------------------------------------------------------------------------------------


def test_wrap_calls_its_function():
    assert wrap(lambda x, n: x * n, rd.ones(1), n=3).tolist() == [3]


def test_regions_set_what_their_names_say():
    x = rd.ones(2, 2, requires_grad=True)
    assert not wrap_with_set_grad_enabled(False, lambda x: x * 2, x).requires_grad
    assert wrap_with_autocast("cpu", rd.bfloat16, True, True, rd.mm, x, x).dtype is rd.bfloat16


def test_a_checkpointed_region_is_computed_again_in_backward():
    calls = []

    def body(x):
        calls.append(1)
        return x.sin().sin()

    x = rd.ones(2, requires_grad=True)
    tag_activation_checkpoint(body, x).sum().backward()
    (expected,) = rd.autograd.grad(x.sin().sin().sum(), x)
    assert len(calls) == 2 and rd.equal(x.grad, expected)


def test_out_dtype_computes_in_the_wider_type():
    a = rd.full((2, 2), 100, dtype=rd.int8)
    result = out_dtype(rd.ops.aten.mm.default, rd.int32, a, a)
    assert result.dtype is rd.int32 and result.tolist() == [[20000, 20000]] * 2
    with pytest.raises(ValueError, match="first argument must be an OpOverload"):
        out_dtype(rd.mm, rd.int32, a, a)
    with pytest.raises(TypeError, match="second argument must be a torch.dtype, not int"):
        out_dtype(rd.ops.aten.mm.default, 3, a, a)
    with pytest.raises(ValueError, match="needs to be a functional operator"):
        out_dtype(rd.ops.aten.add_.Tensor, rd.int32, a, a)
    with pytest.raises(ValueError, match="can only apply to ops that return a single tensor"):
        out_dtype(rd.ops.aten.topk.default, rd.int32, a, 1)


# Modes --------------------------------------------------------------------------------------------------------------


def test_a_mode_sees_the_operator_if_it_wants_to_and_else_what_the_body_calls():
    def run():
        return cond(pred, lambda x: x.sin(), lambda x: x.cos(), (x,))

    pred, x = rd.tensor(True), rd.ones(1, requires_grad=True)
    with SeenWhole() as mode:
        assert run().requires_grad
    mode.supports_higher_order_operators = False
    with mode:
        run()
    assert mode.names[0] == "cond" and mode.names[-1] == "sin" and mode.names.count("cond") == 1
    assert rd.ops.higher_order.cond is not None and "while_loop" in dir(rd.ops.higher_order)
