"""What users of PyTorch's extension points asked for, and have here. Each test is named by the thread that asks for it:
`functorch_1124` is pytorch/functorch#1124, a bare number an issue or change of pytorch/pytorch.
"""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

import redispatch as rd
from redispatch import nn
from redispatch.autograd import Function
from redispatch.func import functional_call, grad, jacrev, jvp, vmap
from redispatch.modes import FakeTensorMode
from redispatch.modes.fake_tensor import FakeTensor
from redispatch.overrides import TorchFunctionMode, skip_torch_function_mode_dispatch
from redispatch.subclasses import TwoTensor
from redispatch.testing import assert_close
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import TorchDispatchMode, with_current_modes
from redispatch.utils.data import dataloader
from redispatch.utils.data._utils.pin_memory import pin_memory

from .seeing import Seen

BATCH = rd.linspace(-1.0, 2.0, 12, dtype=rd.float64).reshape(4, 3)


# Backward hooks and Functions under transforms -----------------------------------------------------------------------


def hooked():
    """(a module whose parts have backward hooks, the list in which they write what they see)"""
    module, seen = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double(), []
    for part in module:
        part.register_full_backward_hook(lambda part, inputs, outputs: seen.append((part, inputs[0], outputs[0])))
    return module, seen


def test_functorch_1124_full_backward_hooks_run_under_vmap_and_jacrev():
    module, seen = hooked()
    parameters = dict(module.named_parameters())

    def loss(parameters, x):
        return functional_call(module, parameters, (x,)).square().sum()

    found = vmap(grad(loss), (None, 0))(parameters, BATCH)
    assert [part for part, *_ in seen] == [*reversed(module)]
    assert [outputs.shape for *_, outputs in seen] == [(2,), (4,), (4,)]  # of one example
    for index, x in enumerate(BATCH):
        alone = rd.autograd.grad(module(x).square().sum(), [*parameters.values()])
        assert_close([each[index] for each in found.values()], [*alone])
    seen.clear()
    assert vmap(jacrev(module))(BATCH).shape == (4, 2, 3) and len(seen) == 3


def test_functorch_638_hooks_are_called_where_a_backward_pass_outside_of_vmap_reaches_a_module_in_it():
    module, seen = hooked()
    x = BATCH.clone().requires_grad_()
    vmap(module)(x).sum().backward()
    assert [part for part, *_ in seen] == [*reversed(module)]
    assert_close(x.grad, rd.autograd.grad(module(x).sum(), x)[0])


def test_99556_a_hook_changes_gradients_under_transforms_as_it_does_outside():
    module = nn.Linear(3, 2).double()
    module.register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * 2,))
    module.register_full_backward_pre_hook(lambda module, outputs: (outputs[0] * 5,))
    assert_close(grad(lambda x: module(x).sum())(BATCH[0]), 10 * module.weight.sum(0))
    assert_close(vmap(grad(lambda x: module(x).sum()))(BATCH), (10 * module.weight.sum(0)).expand(4, 3))


class Scaled(Function):
    """sin(x y) times a factor that may come by keyword; keeps arguments, an intermediate result and a number."""

    @staticmethod
    def forward(ctx, x, y, factor=1.0):
        ctx.save_for_backward(x, y, (x * y).cos())
        ctx.factor = factor
        return (x * y).sin() * factor

    @staticmethod
    def backward(ctx, gradient):
        x, y, _ = ctx.saved_tensors
        slope = (x * y).cos() * ctx.factor * gradient
        return slope * y, slope * x if ctx.needs_input_grad[1] else None

    @staticmethod
    def jvp(ctx, dx, dy):
        return ctx.factor * dx.clone() if dy is None else ctx.factor * (dx + dy)


def scaled(x, y):
    return 3 * (x * y).sin()


def test_flash_attention_2071_functions_whose_forward_takes_the_context_run_under_grad_and_vmap():
    def apply(x, y):
        return Scaled.apply(x, y, factor=3.0)

    x, y = BATCH[0], BATCH[1]
    for transform in (
        lambda f: f(x, y),
        lambda f: grad(lambda x, y: f(x, y).sum(), (0, 1))(x, y),
        lambda f: jacrev(jacrev(f))(x, y),
        lambda f: vmap(grad(f))(x, y),
        lambda f: vmap(vmap(grad(f), (0, None)), (None, 0))(x, y),
        lambda f: grad(lambda x: vmap(f, (0, None))(x, y).sum())(x),
        lambda f: vmap(jacrev(lambda x: f(x, y)))(BATCH),
    ):
        assert_close(transform(apply), transform(scaled))


def test_functorch_296_backward_may_use_an_output_whose_own_derivative_is_the_users():
    class Rounded(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.round()
            ctx.save_for_backward(y)
            return y, y > 0

        @staticmethod
        def backward(ctx, gradient, _):
            return gradient * ctx.saved_tensors[0] ** 2

    second = vmap(grad(grad(lambda x: Rounded.apply(x)[0])))(BATCH[3])
    assert_close(second, 2 * BATCH[3].round() ** 3)
    assert_close(vmap(lambda x: Rounded.apply(x)[1])(BATCH), BATCH.round() > 0)


def test_finufft_95_a_forward_that_leaves_the_library_is_differentiated():
    class Foreign(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = x.numpy().copy()
            return rd.from_numpy(ctx.x**2)

        @staticmethod
        def backward(ctx, gradient):
            return gradient * rd.from_numpy(2 * ctx.x)

    assert_close(jacrev(Foreign.apply)(BATCH[0]), rd.diag(2 * BATCH[0]))


def test_a_split_function_that_returns_too_many_gradients_is_told_of_its_own_arguments():
    class Many(Function):
        forward = staticmethod(lambda ctx, x: x * 2)
        backward = staticmethod(lambda ctx, gradient: (gradient, gradient))

    with pytest.raises(RuntimeError, match=r"ManyBackward returned an incorrect number .*expected 1, got 2\)"):
        grad(lambda x: Many.apply(x).sum())(BATCH)


def test_a_function_that_writes_its_argument_or_has_a_jvp_is_split_as_well():
    class Tripled(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(3)

        backward = jvp = staticmethod(lambda ctx, given: 3 * given)

    assert_close(vmap(grad(lambda x: Tripled.apply(x.clone())))(BATCH[0]), rd.full((3,), 3.0, dtype=rd.float64))
    x, y = BATCH[0], BATCH[1]
    assert_close(jvp(lambda x, y: Scaled.apply(x, y, factor=2.0), (x, y), (y, x))[1], 2 * (x + y))


# Errors that name tensor, mode and fix ------------------------------------------------------------------------------


def test_147822_mixing_fake_modes_names_the_tensor_and_both_modes():
    of = FakeTensorMode().from_tensor(rd.ones(4))
    expected = (
        r"Mixing fake modes NYI x.fake_mode=<FakeTensorMode> vs self=<FakeTensorMode>\n"
        r"  x is argument 'other' of aten.add.Tensor, FakeTensor\(..., size=\(4,\)\)\n"
        rf"  x.fake_mode was made at {__file__}:\d+, self at {__file__}:\d+\n  To fix: make all fakes by one mode; "
    )
    with pytest.raises(AssertionError, match=expected) as caught:
        FakeTensorMode().from_tensor(rd.ones(4)) + of
    assert len(set(re.findall(r"complaints.py:(\d+)", str(caught.value)))) == 2
    with FakeTensorMode() as other, pytest.raises(AssertionError, match="x is argument 'self' of aten.relu.default"):
        of.relu()
    with pytest.raises(AssertionError, match=r"x is FakeTensor\(..., size=\(4,\)\)\n"):
        other.from_tensor(of)


def test_127374_convert_all_tensors_names_the_one_that_is_not_converted():
    weight = nn.Linear(3, 2).weight
    with pytest.raises(AssertionError) as caught, FakeTensorMode() as mode:
        rd.ones(1, 3) @ weight.t()
    text = str(caught.value)
    assert text.startswith("Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with 'allow_")
    assert "It has values: argument 'self' of aten.t.default, tensor([...], size=(2, 3))\n" in text
    assert f"The mode was made at {__file__}:" in text and "To fix: pass mode.from_tensor(x)" in text
    with mode:
        assert (rd.ones(1, 3) @ mode.from_tensor(weight).t()).shape == (1, 2)


# Tensor-likes --------------------------------------------------------------------------------------------------------


class Diagonal:
    """A diagonal matrix, by its diagonal. It is no Tensor."""

    def __init__(self, diagonal):
        self.diagonal, self.dtype, self.shape = diagonal, diagonal.dtype, (len(diagonal),) * 2

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        assert cls in types
        if func is rd.ops.aten.mm.default and isinstance(args[0], cls):
            if isinstance(args[1], cls):
                return cls(args[0].diagonal * args[1].diagonal)
            return args[0].diagonal[:, None] * args[1]
        args, kwargs = pytree.tree_map_only(cls, lambda one: rd.diag(one.diagonal), (args, kwargs or {}))
        return func(*args, **kwargs)


def test_68265_an_object_without_a_tensor_base_takes_part_below_autograd():
    scale, x = Diagonal(BATCH[3]), BATCH.t().clone().requires_grad_()
    dense = rd.diag(scale.diagonal)
    result = scale_matmul = rd.matmul(scale, x)  # a composite: the class is asked about mm
    assert_close(result, dense @ x)
    assert_close(rd.autograd.grad(scale_matmul.sum(), x)[0], dense.t() @ rd.ones_like(x))
    squared = rd.mm(scale, scale)
    assert type(squared) is Diagonal and squared.diagonal.equal(scale.diagonal**2)
    assert_close(rd.ops.aten.add.Tensor(x, other=dense[:, :1]), x + dense[:, :1])
    assert_close(rd.ones(3, 3, dtype=rd.float64) - scale, 1 - dense)
    assert_close(rd.cat([scale, x], 1), rd.cat([dense, x], 1))
    assert_close(nn.functional.linear(x.t(), scale), x.t() @ dense.t())
    assert_close(vmap(lambda x: rd.mv(scale, x))(x.t()), (dense @ x).t())


def test_150861_what_a_tensor_like_answers_keeps_its_history_and_modes_see_it():
    class Held:
        def __init__(self, tensor):
            self.tensor = tensor

        @property
        def shape(self):
            return self.tensor.shape

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            args, kwargs = pytree.tree_map_only(cls, lambda one: one.tensor, (args, kwargs or {}))
            result = func(*args, **kwargs)
            return result if func is rd.ops.aten.sum.default else pytree.tree_map_only(rd.Tensor, cls, result)

    w, held = rd.tensor([1.0, 2.0], requires_grad=True), Held(rd.tensor([3.0, 4.0]))
    with Seen() as mode:
        loss = rd.sum(rd.exp(rd.mul(w, held)))
    assert all(args[0].shape == (2,) for _, _, args, _ in mode.calls)
    assert [name for name in mode.names if "detach" not in name] == ["mul.Tensor", "exp", "sum"]
    loss.backward()
    assert_close(w.grad.like.tensor, rd.tensor([3.0, 4.0]) * (w.detach() * rd.tensor([3.0, 4.0])).exp())


def test_a_tensor_like_that_answers_to_nothing_is_named_and_other_objects_are_refused_as_ever():
    class Silent:
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match=r"(?s)all __torch_dispatch__ handlers returned NotImplemented:.*Silent"):
        rd.add(rd.ones(2), Silent())
    with pytest.raises(TypeError, match=r"add\(\): argument 'other' \(position 2\) must be Tensor, not object"):
        rd.add(rd.ones(2), object())


# Modes ---------------------------------------------------------------------------------------------------------------


class Names(TorchDispatchMode):
    def __init__(self, _dispatch_key=None):
        super().__init__(_dispatch_key)
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(func._opname)
        return func(*args, **(kwargs or {}))


def test_103719_modes_go_to_other_threads_on_request():
    def work(x):
        return rd.ones(2) + x

    def parts(x):
        yield x.exp()
        yield x.neg()

    with ThreadPoolExecutor(1) as pool:
        with Names() as names, FakeTensorMode(), rd.device("meta"):
            assert pool.submit(work, 1).result().tolist() == [2, 2] and names.seen == []
            result = pool.submit(with_current_modes(work), 1).result()
            assert result.device.type == "meta" and names.seen == ["ones", "add"] and isinstance(result, FakeTensor)
            lazy = with_current_modes(parts)
        names.seen.clear()
        assert pool.submit(lambda x: [*lazy(x)], rd.ones(2, device="meta")).exception() is not None  # a real one
        assert [*pool.map(with_current_modes(work), [1])][0].tolist() == [2, 2]  # those of here: none
    assert names.seen == ["exp"]


def test_174098_a_function_mode_stays_active_in_the_backward_pass_that_it_lets_through():
    seen = []

    class Calls(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            if func not in (rd.Tensor.backward, rd.autograd.backward, rd.autograd.grad):
                return func(*args, **(kwargs or {}))
            with skip_torch_function_mode_dispatch(self):
                return func(*args, **(kwargs or {}))

    x = rd.ones(2, requires_grad=True)
    x.register_hook(lambda gradient: gradient.neg())
    losses = [x.sum() for _ in range(3)]
    with Calls():
        losses[0].backward()
        rd.autograd.backward(losses[1])
        rd.autograd.grad(losses[2], x)
    assert [name for name in seen if name in ("backward", "grad", "neg")] == 2 * ["backward", "neg"] + ["grad", "neg"]


def test_65426_a_mode_may_ask_to_see_composites_before_they_decompose_in_inference_mode_or_not():
    module, x = nn.Linear(3, 2), rd.ones(4, 3)

    def seen(run, key=None, kind=Names):
        with kind(key) as names:
            run()
        return names.seen

    class Whole(Names, decompose=False):
        """Sees composites whole."""

    class Parts(Names, decompose=True):
        """Sees their parts."""

    assert seen(lambda: module(x)) == ["t", "addmm"]
    for run in (lambda: module(x), rd.inference_mode()(lambda: module(x)), rd.no_grad()(lambda: module(x))):
        assert seen(run, rd._C.DispatchKey.PreDispatch) == ["linear"]
        assert seen(run, kind=Whole) == ["linear"] and seen(run, kind=Parts) == ["t", "addmm"]


# Inference tensors, parameters, batches ------------------------------------------------------------------------------


def inference_tensor(*size):
    with rd.inference_mode():
        return rd.ones(*size)


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x.add_(1),
        lambda x: x * rd.ones(3, requires_grad=True),
        lambda x: x.requires_grad_(),
        lambda x: x._version,
    ],
)
def test_57369_inference_tensors_say_where_they_were_made_and_how_they_come_back(use):
    with pytest.raises(RuntimeError, match="(?i)inference tensor") as caught:
        use(inference_tensor(3))
    assert "x.to_normal_()" in caught.value.__notes__[1] and "config.debug_origins = True" in caught.value.__notes__[0]
    rd.config.debug_origins = True
    try:
        with pytest.raises(RuntimeError, match=rf"made at +{re.escape(__file__)}:\d+, by aten.ones.default"):
            use(inference_tensor(3))
    finally:
        rd.config.debug_origins = False
    use(inference_tensor(3).to_normal_())


def test_rfcs_55_an_inference_tensor_becomes_a_normal_one_without_a_copy_where_no_other_tensor_sees_its_memory():
    x = inference_tensor(3)
    place = x.data_ptr()
    assert x.to_normal_() is x and not x.is_inference() and x.data_ptr() == place
    assert rd._C._dispatch_keys(x) == rd._C._dispatch_keys(rd.ones(3)) and x.add_(1)._version == 1
    assert x.to_normal_()._version == 1
    with rd.inference_mode():
        base = rd.arange(6.0).reshape(2, 3)
        part = base.t()
    part.to_normal_().add_(1)  # it has a copy: what writes `base` is not counted for it
    assert base.is_inference() and base.tolist() == [[0, 1, 2], [3, 4, 5]] and part.tolist() == [[1, 4], [2, 5], [3, 6]]


def test_1968_a_module_that_was_made_in_inference_mode_trains():
    with rd.inference_mode():
        module, pair = nn.Linear(2, 1), TwoTensor(rd.ones(2), rd.ones(2))
    for parameter in module.parameters():
        parameter.to_normal_()
    loss = module(rd.ones(2))
    loss.backward()
    assert type(module.weight) is nn.Parameter and module.weight.grad.tolist() == [[1, 1]]
    pair.to_normal_().add_(1)
    assert pair.a.tolist() == [2, 2] and not pair.b.is_inference()


class Unwrapping(rd.Tensor):
    """A wrapper whose operators give plain tensors."""

    @staticmethod
    def __new__(cls, inner):
        return rd.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args, kwargs = pytree.tree_map_only(cls, lambda one: one.inner, (args, kwargs or {}))
        return func(*args, **kwargs)


def test_77265_a_subclass_that_unwraps_is_a_parameter_and_trains():
    given = Unwrapping(rd.ones(2, 3))
    weight = nn.Parameter(given)
    assert type(weight) is Unwrapping and isinstance(weight, nn.Parameter) and weight.requires_grad and weight.is_leaf
    assert weight is not given and weight.inner is given.inner and not given.requires_grad
    module = nn.Linear(3, 2)
    module.weight = weight
    assert dict(module.named_parameters())["weight"] is weight
    optimizer = rd.optim.SGD(module.parameters(), lr=0.5, momentum=0.9)
    module(rd.ones(1, 3)).sum().backward()
    optimizer.step()
    assert_close(weight.inner, rd.full((2, 3), 0.5))
    frozen = nn.Parameter(Unwrapping(rd.ones(2, dtype=rd.int64)), requires_grad=False)
    assert type(frozen) is Unwrapping and not frozen.requires_grad


def test_82185_pin_memory_is_the_objects_own_method_before_it_is_that_of_a_container(monkeypatch):
    class Batch(dict):
        def pin_memory(self):
            return "of the batch"

    class Aware:
        def pin_memory(self, device=None):
            return f"of {device}"

    class Kept(dict):
        pass

    assert pin_memory(Batch(x=rd.ones(2))) == "of the batch"
    assert pin_memory([Aware(), "text"], "cuda") == ["of cuda", "text"] and pin_memory(Aware()) == "of None"  # 116403
    held = pin_memory(Kept(x=(Aware(), 1)))  # 67831
    assert type(held) is Kept and held == {"x": ("of None", 1)}
    monkeypatch.setattr(dataloader, "pinned_memory", lambda size: memoryview(bytearray(size)))
    loader = rd.utils.data.DataLoader([1, 2], collate_fn=lambda samples: Batch(), pin_memory=True)
    assert [*loader] == 2 * ["of the batch"]
