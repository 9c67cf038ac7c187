"""Setting requires_grad, hooks and retain_grad on tensors: what works, and the errors."""

import pytest

import redispatch as rd


def leaf(*values):
    return rd.tensor(list(values), requires_grad=True)


def test_requires_grad_is_given_and_taken_from_leaves():
    x = rd.ones(2)
    assert x.requires_grad_() is x and x.requires_grad and x.is_leaf
    x.requires_grad = False
    assert not x.requires_grad and not (x * 2).requires_grad


def test_a_leaf_that_was_written_with_a_gradient_is_no_leaf():
    x = rd.zeros(2)
    x.add_(leaf(1.0, 2.0))
    assert x.requires_grad and not x.is_leaf and type(x.grad_fn).__name__ == "AddBackward0"


def test_nodes_show_what_the_references_nodes_show():
    x = leaf(1.0)
    node = (x * 2).grad_fn
    assert node.name() == "MulBackward0" and node.metadata == {} and repr(node).startswith("<MulBackward0 object at")
    accumulator, number = node.next_functions[0]
    assert accumulator.variable is x and number == 0 and accumulator.name() == "torch::autograd::AccumulateGrad"
    assert accumulator._sequence_nr() == 2**64 - 1
    assert node.next_functions[1] == (None, 0)
    assert tuple(node._input_metadata[0].shape) == (1,)
    assert node(rd.ones(1))[0].item() == 2


def test_a_leaf_has_one_accumulator_as_long_as_somebody_holds_it():
    x = leaf(1.0)
    a, b = x * 2, x * 3
    assert a.grad_fn.next_functions[0][0] is b.grad_fn.next_functions[0][0]


def test_retain_grad_keeps_the_gradient_of_a_result():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    assert y.retains_grad
    (y * 3).backward()
    assert y.grad.item() == 3 and x.grad.item() == 6


def test_inputs_of_backward_may_be_results():
    x = leaf(1.0)
    y = x * 2
    (y * 3).backward(inputs=[y])
    assert y.grad.item() == 3 and x.grad is None


@pytest.mark.parametrize(
    ("hook", "error", "message"),
    [
        (lambda g: 3, TypeError, "expected Variable, but hook returned 'int'"),
        (lambda g: rd.ones(7), RuntimeError, "hook '<lambda>' has changed the size of value"),
        (
            lambda g: g.double(),
            RuntimeError,
            "hook '<lambda>' has changed the type of value (was torch.FloatTensor got torch.DoubleTensor)",
        ),
    ],
)
def test_errors_of_hooks(hook, error, message):
    y = leaf(1.0) * 2
    y.register_hook(hook)
    with pytest.raises(error) as raised:
        y.backward()
    assert str(raised.value) == message


def test_a_nodes_hook_must_return_as_many_gradients():
    y = leaf(1.0).exp()
    y.grad_fn.register_hook(lambda gi, go: (1, 2))
    with pytest.raises(RuntimeError) as raised:
        y.backward()
    assert str(raised.value) == "hook '<lambda>' has returned an incorrect number of values (got 2, but expected 1)"


# grad_dtype -----------------------------------------------------------------------------------------------------------


def test_gradients_of_a_leaf_are_kept_in_the_dtype_that_it_asks_for():
    w = rd.ones(2, dtype=rd.bfloat16, requires_grad=True)
    assert w.grad_dtype is rd.bfloat16
    w.grad_dtype = rd.float32
    for _ in range(2):
        (w.expand(3, 2) * 2).sum().backward()
    assert w.grad.dtype is rd.float32 and w.grad.tolist() == [12, 12]
    assert rd.autograd.grad(w.sum(), w)[0].dtype is rd.float32
    assert w.detach().grad_dtype is rd.bfloat16


def test_a_leaf_may_take_gradients_of_any_dtype():
    w = rd.ones(2, requires_grad=True)
    w.grad_dtype = None
    w.grad = rd.ones(2, dtype=rd.float64)
    assert w.grad_dtype is None and w.grad.dtype is rd.float64


def test_what_grad_dtype_refuses():
    w = rd.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="grad_dtype can only be accessed on leaf tensors"):
        (w * 2).grad_dtype
    with pytest.raises(RuntimeError, match="grad_dtype can only be set on leaf tensors"):
        (w * 2).grad_dtype = None
    with pytest.raises(RuntimeError, match="must be a torch.dtype or None, but got int"):
        w.grad_dtype = 3
    with pytest.raises(RuntimeError, match="'double' to a tensor with grad_dtype 'Float'.*or None to allow any dtype"):
        w.grad = rd.ones(2, dtype=rd.float64)
    w.grad = rd.ones(2)
    with pytest.raises(RuntimeError, match="already a gradient with dtype 'float'"):
        w.grad_dtype = rd.float64
    assert w.grad_dtype is rd.float32


def test_what_is_not_made_by_hand():
    saved = (rd.ones(2, requires_grad=True) ** 2).grad_fn._raw_saved_self
    with pytest.raises(RuntimeError, match="Trying to create a SavedTensor object from Python is forbidden"):
        type(saved)()
    with pytest.warns(DeprecationWarning, match="should not be instantiated. Methods on autograd functions are all"):
        rd.autograd.Function()
