"""What transforms refuse, and in which words; and results that had gone wrong without a word."""

import copy
import functools

import pytest

import redispatch as rd
from redispatch import nn
from redispatch.func import (
    debug_unwrap,
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    replace_all_batch_norm_modules_,
    stack_module_state,
    vjp,
    vmap,
)

X = rd.tensor([1.0, 2.0, 3.0], dtype=rd.float64)
ROWS = rd.arange(6.0).reshape(2, 3)
Z = X.to(rd.complex128)
CAPTURED = "is not possible because there exists a Tensor `other` in extra_args"


class Cube(rd.autograd.Function):
    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 3 * x**2


def with_rule(rule):
    return type("Ruled", (Cube,), {"vmap": staticmethod(rule)})


def pull(function):
    return vjp(function, X)[1]


WRITES = {  # each example into one tensor
    "add_": lambda z, x: z.add_(x),
    "sub_": lambda z, x: z.sub_(x),
    "pow_": lambda z, x: z.pow_(x),
    "fill_": lambda z, x: z.fill_(x[0]),
    "copy_": lambda z, x: z.copy_(x),
    "masked_fill_": lambda z, x: z.masked_fill_(x > 1, 1),
    "lerp_": lambda z, x: z.lerp_(x, 0.5),
    "scatter_": lambda z, x: z.scatter_(0, rd.tensor([0, 1, 2]), x),
    "scatter_add_": lambda z, x: z.scatter_add_(0, rd.tensor([0, 1, 2]), x),
    "index_add_": lambda z, x: z.index_add_(0, rd.tensor([0, 1, 2]), x),
    "a slice": lambda z, x: z.__setitem__(slice(1, None), x[1:]),
    "indices": lambda z, x: z.__setitem__(rd.tensor([0, 1]), x[0]),
    "a diagonal": lambda z, x: z.expand(3, 3).clone().diagonal().copy_(x),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_tensor_that_all_examples_share_is_not_written_by_each(name):
    shared = rd.zeros(3)
    with pytest.raises(RuntimeError, match=CAPTURED):
        vmap(lambda x: WRITES[name](shared, x))(ROWS)
    assert shared.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: vmap(lambda x, y: x, in_dims=[0, 0])(X, X), ValueError, "got: <class 'list'>"),
        (lambda: vmap(functools.partial(max, 1), in_dims=3)(X), ValueError, r"functools.partial\(max, ...\)"),
        (lambda: vmap(lambda x: x.masked_select(x > 0))(ROWS), RuntimeError, "Attempted to vmap over `mask`"),
        (lambda: vmap(copy.deepcopy)(X), NotImplementedError, "Cannot access storage of BatchedTensorImpl"),
        (lambda: vmap(lambda x: x.squeeze(1))(X), RuntimeError, r"range of \[-1, 0\], but got \[1\]"),
        (lambda: vmap(lambda x: x.transpose(0, 1))(X), IndexError, "Dimension out of range"),
        (lambda: vmap(rd.where)(ROWS), RuntimeError, "Attempted to vmap over aten::where"),
        (lambda: vmap(rd.view_as_complex)(rd.ones(2)), RuntimeError, "must have one or more dimensions"),
        (lambda: vmap(rd.linalg.inv)(rd.eye(2)), RuntimeError, "must have at least 2 dimensions"),
        (lambda: vmap(rd.linalg.svd)(rd.eye(2)), RuntimeError, "must have at least 2 dimensions"),
        (
            lambda: vmap(lambda a, b: rd.linalg.solve_triangular(a, b, upper=True))(rd.eye(2), rd.eye(2)),
            RuntimeError,
            "A must have at least 2 dimensions",
        ),
        (lambda: grad(lambda x: x.untyped_storage())(X), NotImplementedError, "storage of TensorWrapper"),
        (lambda: vmap(lambda x: x.data_ptr())(X), RuntimeError, "Cannot access data pointer"),
        (
            lambda: grad(lambda x: x)(3.0),
            ValueError,
            "Thing passed to transform API must be Tensor, got <class 'float'>",
        ),
        (lambda: grad(lambda x, y: x.sum(), (0, 1))(X, "y"), ValueError, "must be Tensor, got <class 'str'>"),
        (lambda: grad(lambda x: x.sum())(Z), RuntimeError, "only for real scalar outputs but got torch.complex128"),
        (lambda: jacrev(lambda x, y: x, argnums=(0, -2))(X, X), RuntimeError, r"must be unique, got \(0, 0\)"),
        (lambda: jacrev(lambda x: x, chunk_size=0), ValueError, "jacrev: `chunk_size` should be greater than 0"),
        (lambda: jacrev(lambda x: x)(Z), RuntimeError, "jacrev: Expected all inputs to be real"),
        (lambda: jacrev(lambda x: x * 1j)(X), RuntimeError, "jacrev: Expected all outputs to be real"),
        (lambda: jacfwd(lambda x: x)(Z), RuntimeError, "jacfwd: Expected all inputs to be real"),
        (lambda: jacfwd(lambda x: x * 1j)(X), RuntimeError, "jacfwd: Expected all outputs to be real"),
        (lambda: hessian(lambda x: x.sum())(Z), RuntimeError, "jacfwd: Expected all inputs to be real"),
        (lambda: jacrev(lambda x: (x, x > 0))(X), RuntimeError, "must be floating-point or complex.*torch.bool"),
        (lambda: jacfwd(lambda x: x)(rd.arange(3)), ValueError, "Expected primal to be floating point or complex"),
        (lambda: vjp(lambda x: None, X), RuntimeError, r"non-empty output \(got output = \[None\]\)"),
        (lambda: vjp(lambda x: (), X), RuntimeError, r"non-empty output \(got output = \[\]\)"),
        (lambda: pull(lambda x: (x, x))(X), RuntimeError, r"cotangents: \*, primal output: \(\*, \*\)"),
        (lambda: pull(lambda x: x)(3.0), TypeError, "gradients can be either Tensors or None, but got float"),
        (lambda: pull(lambda x: x)(None), RuntimeError, "grad can be implicitly created only for scalar outputs"),
        (lambda: jvp(lambda: X, (), ()), RuntimeError, "Expected primals to contain at least one Tensor"),
        (lambda: jvp(lambda x: None, (X,), (X,)), RuntimeError, "non-empty output"),
        (lambda: linearize(rd.sin, X)[1](X, X), RuntimeError, "to have the same argspec as the primals"),
        (lambda: linearize(rd.sin, X)[1](X[:2]), RuntimeError, "tangent:0 with shape.*doesn't match the shape"),
        (lambda: linearize(rd.sin, X)[1](X.float()), RuntimeError, "tangent:0 with dtype.*doesn't match the dtype"),
        (lambda: vmap(with_rule(lambda info, dims, x: x).apply)(X), RuntimeError, "to have two returns.*Got a <class"),
        (lambda: vmap(with_rule(lambda info, dims, x: (x, 0, 0)).apply)(X), RuntimeError, "Got 3 returns instead"),
        (lambda: vmap(with_rule(lambda info, dims, x: (x, (0, 0))).apply)(X), RuntimeError, "incompatible"),
    ],
)
def test_what_is_refused_is_refused_in_these_words(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_none_is_a_cotangent_of_one():
    assert pull(lambda x: x.sum())(None)[0].tolist() == [1, 1, 1]


def test_inference_mode_outside_is_no_affair_of_a_transform():
    with rd.inference_mode():
        assert grad(lambda x: (x**2).sum())(X).tolist() == [2, 4, 6]
        assert grad(lambda y: grad(lambda x: (x**3).sum())(y).sum())(X).tolist() == [6, 12, 18]
        assert vmap(grad(lambda x: x**2))(X).tolist() == [2, 4, 6]
        assert jacrev(lambda x: x**2)(X).tolist() == jacfwd(lambda x: x**2)(X).tolist()
        gradient, value = grad_and_value(lambda x: (x * x).sum())(X)
        assert gradient.is_inference() and value.item() == 14


def test_a_batch_that_outlives_its_vmap_keeps_its_number():
    kept = []
    vmap(lambda x: (kept.append(x), x)[1])(X)
    assert repr(kept[0]).startswith("BatchedTensor(lvl=1, bdim=0")


def test_debug_unwrap_shows_the_value_inside():
    seen = []
    vmap(grad(lambda x: (seen.extend([debug_unwrap(x), debug_unwrap(x, recurse=False)]), x.sum())[1]))(ROWS)
    assert seen[0] is ROWS and seen[1].shape == (3,) and "BatchedTensor" in repr(seen[1])
    assert debug_unwrap(X) is X


# Modules --------------------------------------------------------------------------------------------------------------


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", rd.zeros(()))

    def forward(self, x):
        self.calls = self.calls + 1
        return x * self.calls


def test_a_buffer_that_is_replaced_in_the_call_is_in_the_dict_afterwards():
    module, buffers = Counting(), {"calls": rd.ones(())}
    assert functional_call(module, buffers, (rd.ones(2),)).tolist() == [2, 2]
    assert buffers["calls"].item() == 2 and module.calls.item() == 0


def test_names_that_a_module_does_not_have():
    module, x = nn.Linear(2, 2), rd.ones(2)
    assert functional_call(module, {"other": x}, (x,)).tolist() == module(x).tolist()
    assert not hasattr(module, "other")
    with pytest.raises(AttributeError, match="Linear has no attribute `inner`"):
        functional_call(module, {"inner.weight": x}, (x,))
    with pytest.raises(TypeError, match="3 is not an instance of torch.Tensor"):
        functional_call(module, {"weight": 3}, (x,))
    assert isinstance(module.weight, nn.Parameter)


def test_stacked_models_agree_on_what_wants_a_gradient():
    models = [nn.Linear(2, 2), nn.Linear(2, 2)]
    models[1].bias.requires_grad_(False)
    with pytest.raises(RuntimeError, match="Expected bias from each model to have the same .requires_grad"):
        stack_module_state(models)


def test_batch_norm_of_each_example():
    module, x = nn.BatchNorm1d(2).double(), rd.randn(3, 4, 2, dtype=rd.float64)
    with pytest.raises(RuntimeError, match="running_mean or running_var, which will be updated in place, were not"):
        vmap(module)(x)
    assert module.running_mean.tolist() == [0, 0]
    each = rd.stack([module.eval()(one) for one in x])
    assert rd.allclose(vmap(module)(x), each)
    replace_all_batch_norm_modules_(module.train())

    def loss(x, weight):
        return (functional_call(module, {"weight": weight}, (x,)) ** 3).sum()

    weights = rd.randn(3, 2, dtype=rd.float64)
    for in_dims, weight in ((0, weights), ((0, None), weights[0])):
        found = vmap(grad(loss, (0, 1)), in_dims)(x, weight)
        pairs = [grad(loss, (0, 1))(x[i], weights[i] if in_dims == 0 else weight) for i in range(3)]
        for whole, parts in zip(found, zip(*pairs, strict=True), strict=True):
            assert rd.allclose(whole, rd.stack(parts))
