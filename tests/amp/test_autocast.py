"""Autocast: in which dtype operators run, which casts are kept, and what comes back after a region."""

import contextvars
import gc
import inspect
import subprocess
import sys
import warnings
import weakref

import pytest

import redispatch as rd
from redispatch import nn
from redispatch.amp import custom_bwd, custom_fwd
from redispatch.autograd import Function
from redispatch.cpu.amp import autocast as cpu_autocast
from redispatch.cuda.amp import GradScaler as CudaGradScaler
from redispatch.dispatch import STATE
from redispatch.dispatch.layers import autocast as layer
from redispatch.library import Library
from redispatch.nn import functional as F

from ..seeing import Seen


def matrix(dtype=rd.float32, **options):
    return rd.ones(2, 2, dtype=dtype, **options)


def test_products_run_in_the_regions_dtype_and_losses_in_float32():
    with rd.autocast("cpu", dtype=rd.bfloat16):
        product = matrix() @ matrix()
        assert product.dtype is rd.bfloat16
        assert (product + matrix()).dtype is rd.float32
        assert F.mse_loss(product, product).dtype is rd.float32
        assert (matrix(rd.float64) @ matrix(rd.float64)).dtype is rd.float64
    assert (matrix() @ matrix()).dtype is rd.float32


def test_cat_takes_the_wider_of_the_regions_dtype_and_float32():
    with rd.autocast("cpu", dtype=rd.bfloat16):
        assert rd.cat([matrix(rd.bfloat16), matrix(rd.bfloat16)]).dtype is rd.bfloat16
        assert rd.cat([matrix(), matrix(rd.bfloat16)]).dtype is rd.float32


def test_gradients_come_back_in_the_parameters_dtype():
    weight = matrix(requires_grad=True)
    with rd.autocast("cpu"):
        (matrix() @ weight).sum().backward()
    assert weight.grad.dtype is rd.float32


def test_a_weight_written_in_the_region_is_cast_anew():
    weight = matrix(requires_grad=True)
    with rd.autocast("cpu"):
        before = matrix() @ weight
        with rd.no_grad():
            weight.mul_(3)
        after = matrix() @ weight
    assert after.float().tolist() == (3 * before).float().tolist()


def test_a_region_inside_turns_it_off_and_is_forgotten_after():
    with rd.autocast("cpu"):
        with rd.autocast("cpu", enabled=False):
            assert (matrix() @ matrix()).dtype is rd.float32
        assert (matrix() @ matrix()).dtype is rd.bfloat16
    assert not rd.is_autocast_enabled("cpu")


# The cache ------------------------------------------------------------------------------------------------------------


def casts():
    return len(STATE.get().autocast_cache)


def test_casts_of_parameters_are_kept_for_the_outermost_region_and_by_grad_mode():
    weight, x = matrix(requires_grad=True), matrix()
    with rd.autocast("cpu"):
        x @ weight, x @ weight
        assert casts() == 1
        with rd.autocast("cpu"):
            x @ weight
        assert casts() == 1
        with rd.no_grad():
            assert not (x @ weight).requires_grad
        assert casts() == 2 and (x @ weight).requires_grad
        with rd.autocast("cpu", dtype=rd.float16):
            assert (x @ weight).dtype is rd.float16
        rd.clear_autocast_cache()
        assert casts() == 0
    assert STATE.get().autocast_cache is None


def test_the_cache_keeps_no_parameter_alive():
    weight = matrix(requires_grad=True)
    watch = weakref.ref(weight)
    with rd.autocast("cpu"):
        with rd.no_grad():
            matrix() @ weight
        assert casts() == 1
        del weight
        gc.collect()
        assert watch() is None and casts() == 0


def test_no_cast_is_kept_where_that_is_turned_off():
    weight = matrix(requires_grad=True)
    with rd.autocast("cpu", cache_enabled=False):
        assert not rd.is_autocast_cache_enabled()
        matrix() @ weight
        assert casts() == 0
        with rd.autocast("cpu"):
            assert not rd.is_autocast_cache_enabled()  # None: as it is
    assert rd.is_autocast_cache_enabled()


def test_views_and_results_are_cast_each_time():
    weight = matrix(requires_grad=True)
    with rd.autocast("cpu"):
        matrix() @ weight.t()
        matrix() @ (weight * 2)
        assert casts() == 0


# Regions --------------------------------------------------------------------------------------------------------------


def test_a_region_is_a_decorator_of_functions_and_generators():
    @rd.autocast("cpu")
    def product(x):
        return x @ x

    @rd.autocast("cpu")
    def products(x):
        yield x @ x
        yield x @ x

    assert product(matrix()).dtype is rd.bfloat16
    for found in products(matrix()):
        assert found.dtype is rd.bfloat16 and not rd.is_autocast_enabled("cpu")
    with pytest.raises(TypeError, match="requires a callable, but got Tensor"):
        rd.autocast("cpu")(matrix())


def test_an_exception_leaves_the_region():
    with pytest.raises(ZeroDivisionError), rd.autocast("cpu"):
        raise ZeroDivisionError
    assert not rd.is_autocast_enabled("cpu") and STATE.get().autocast_nesting == 0


def test_what_a_region_cannot_be_is_refused():
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`, got: `<class 'int'>`"):
        rd.autocast(3)
    with pytest.raises(RuntimeError, match="User specified an unsupported autocast device_type 'abacus'"):
        rd.autocast("abacus")
    with pytest.warns(UserWarning, match="the target dtype is not supported. Disabling autocast"):
        region = rd.autocast("cpu", dtype=rd.float64)
    with region:
        assert (matrix() @ matrix()).dtype is rd.float32
    if not rd.cuda.is_available():
        with pytest.warns(UserWarning, match="CUDA is not available or torch_xla is imported. Disabling autocast."):
            region = rd.autocast("cuda")
        with region:
            assert not rd.is_autocast_enabled("cuda")


def parts_of_a_region():
    assert rd.autocast_increment_nesting() == 1
    rd.set_autocast_enabled("cpu", True)
    rd.set_autocast_dtype("cpu", rd.float16)
    assert rd.is_autocast_enabled("cpu") and rd.get_autocast_dtype("cpu") is rd.float16
    assert (matrix() @ matrix(requires_grad=True)).dtype is rd.float16
    rd.set_autocast_cache_enabled(False)
    rd.clear_autocast_cache()
    weight = matrix(requires_grad=True)
    matrix() @ weight
    assert casts() == 0
    rd.set_autocast_cache_enabled(True)
    matrix() @ weight
    assert casts() == 1
    rd.set_autocast_enabled("cpu", False)
    assert (matrix() @ matrix()).dtype is rd.float32
    assert rd.autocast_decrement_nesting() == 0 and STATE.get().autocast_cache is None


def test_a_regions_parts_one_by_one():
    contextvars.copy_context().run(parts_of_a_region)
    with pytest.raises(RuntimeError, match="unsupported device type for autocast: abacus"):
        rd.is_autocast_enabled("abacus")


def test_the_older_names_warn_and_do_the_same():
    with pytest.warns(FutureWarning, match="`torch.cpu.amp.autocast"), cpu_autocast():
        assert (matrix() @ matrix()).dtype is rd.bfloat16
    with pytest.warns(FutureWarning, match="`torch.cuda.amp.GradScaler"):
        assert not CudaGradScaler(enabled=False).is_enabled()
    with pytest.warns(DeprecationWarning, match="Please use torch.get_autocast_dtype"):
        assert rd.get_autocast_gpu_dtype() is rd.float16


# Policies -------------------------------------------------------------------------------------------------------------


def test_a_region_may_have_policies_of_its_own():
    x = matrix()
    own = {rd.ops.aten.exp: rd.bfloat16, rd.matmul: rd.float16, "aten::mse_loss": None}
    with rd.autocast("cpu", policy=own):
        assert x.exp().dtype is rd.bfloat16 and (x @ x).dtype is rd.float16
        assert F.mse_loss(x.bfloat16(), x.bfloat16()).dtype is rd.bfloat16
        assert rd.mm(x, x).dtype is rd.bfloat16  # on the list, and not named
        with rd.autocast("cpu", policy={rd.ops.aten.exp.default: "fp32"}):
            assert x.bfloat16().exp().dtype is rd.float32 and (x @ x).dtype is rd.float16
        assert x.bfloat16().exp().dtype is rd.bfloat16
    with rd.autocast("cpu"):
        assert x.exp().dtype is rd.float32 and (x @ x).dtype is rd.bfloat16


def test_an_operator_stops_at_the_layer_as_long_as_a_region_names_it():
    op = rd.ops.aten.sinh.default
    region = rd.autocast("cpu", policy={op: rd.float16})
    assert op.has_kernel_for_dispatch_key("AutocastCPU")

    @region
    def f(x):
        return x.sinh()

    del region
    assert f(matrix()).dtype is rd.float16
    del f
    gc.collect()
    assert not op.has_kernel_for_dispatch_key("AutocastCPU")


def test_gradients_flow_through_policies():
    weight = matrix(requires_grad=True)
    with rd.autocast("cpu", policy={rd.ops.aten.tanh.default: rd.bfloat16}):
        weight.tanh().sum().backward()
    assert weight.grad.dtype is rd.float32


@pytest.fixture
def listed():
    """`listed(op, policy)` puts an operator on the CPU's list until the test ends."""
    undo = []
    yield lambda op, policy: undo.append(layer.register_policy(op, "cpu", policy))
    for one in undo:
        one()


def test_a_dtype_is_appended_where_the_schema_has_no_place_for_one(listed):
    listed(rd.ops.aten.norm.Scalar, layer.fp32_append_dtype)
    x = matrix(rd.bfloat16)
    with rd.autocast("cpu"):
        assert rd.ops.aten.norm.Scalar(x, 2).dtype is rd.float32
        assert rd.ops.aten.norm.Scalar(x.double(), 2).dtype is rd.float64


def test_distances_and_traces_are_taken_in_float32_on_cpus():
    x = matrix(rd.bfloat16)
    with rd.autocast("cpu"):
        assert rd.cdist(x, x).dtype is rd.float32 and x.trace().dtype is rd.float32
        assert rd.einsum("ij->i", x).dtype is rd.bfloat16  # einsum itself is on the list of CUDA alone


def test_as_many_operators_are_on_lists_as_in_pytorch():
    """In a process of its own: tests put others on the lists."""
    program = "import redispatch as rd; count = rd._C._dispatch_get_registrations_for_dispatch_key; "
    program += "print(len(count('AutocastCPU')), len(count('AutocastCUDA')))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert found.split() == ["127", "119"]  # tests/parity/lists.py compares their names


def test_a_dtype_is_set_where_none_was_given(listed):
    listed(rd.ops.aten.cumsum.default, layer.fp32_set_opt_dtype)
    x = matrix(rd.bfloat16)
    with rd.autocast("cpu"):
        assert x.cumsum(0).dtype is rd.float32 and x.cumsum(0, dtype=rd.float16).dtype is rd.float16


def test_operators_of_libraries_are_cast_as_what_they_are_made_of():
    x, weight, number = rd.ones(3, 2), rd.ones(2, 2), rd.tensor([0.5])
    with rd.autocast("cpu"):
        assert rd.ops.aten._addmm_activation(x, x, weight).dtype is rd.bfloat16
        assert rd.conv_tbc(rd.ones(3, 1, 2), rd.ones(2, 2, 2), rd.ones(2)).dtype is rd.bfloat16
        half = x.bfloat16()
        assert rd.fake_quantize_per_tensor_affine(half, 0.5, 0, -4, 4).dtype is rd.float32
        assert rd.fake_quantize_per_tensor_affine(half, number, number, -4, 4).dtype is rd.bfloat16  # on no list


@pytest.mark.parametrize(
    "name, numbers",
    [
        ("cudnn_convolution", ([0, 0], [1, 1], [1, 1], 1, False, False, False)),
        ("_thnn_fused_gru_cell", (matrix(),)),
        ("_scaled_dot_product_flash_attention", (matrix(),)),
    ],
)
def test_what_is_for_gpus_alone_says_so(name, numbers):
    with pytest.raises(NotImplementedError, match=f"Could not run 'aten::{name}' with arguments from the 'CPU'"):
        getattr(rd.ops.aten, name)(matrix(), matrix(), *numbers)


def test_what_is_banned_says_what_to_do_instead(listed):
    listed(rd.ops.aten.sgn.default, layer.banned)
    with rd.autocast("cpu"), pytest.raises(RuntimeError, match="binary_cross_entropy_with_logits and BCEWithLogits"):
        matrix().sgn()


def test_a_policy_for_an_operator_of_ones_own():
    with Library("amped", "DEF") as lib:
        lib.define("half(Tensor x) -> Tensor")
        lib.impl("half", lambda x: x / 2, "CompositeExplicitAutograd")
        op = rd.ops.amped.half.default
        with Library("amped", "FRAGMENT") as casts:
            rd.library.register_autocast("amped::half", "cpu", rd.float16, lib=casts)
            with rd.autocast("cpu"):
                assert op(matrix()).dtype is rd.float16 and op(matrix(rd.float64)).dtype is rd.float64
        with rd.autocast("cpu"):
            assert op(matrix()).dtype is rd.float32
        with pytest.raises(ValueError, match="Device type 'abacus' does not support autocast"):
            rd.library.register_autocast("amped::half", "abacus", rd.float16)


# Functions of one's own -----------------------------------------------------------------------------------------------


SEEN = []


class Product(Function):
    @staticmethod
    @custom_fwd(device_type="cpu", cast_inputs=rd.float32)
    def forward(ctx, a, b):
        SEEN[:] = [(a.dtype, rd.is_autocast_enabled("cpu"))]
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    @custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        SEEN.append(rd.is_autocast_enabled("cpu"))
        return grad @ b.t(), a.t() @ grad


class AsItIs(Product):
    @staticmethod
    @custom_fwd(device_type="cpu")
    def forward(ctx, a, b):
        return inspect.unwrap(Product.forward)(ctx, a, b)


def test_a_function_is_given_its_inputs_in_the_dtype_that_it_wants():
    a, b = matrix(rd.bfloat16, requires_grad=True), matrix(requires_grad=True)
    with rd.autocast("cpu"):
        out = Product.apply(a, b)
        assert out.dtype is rd.float32
        out.sum().backward()
    assert SEEN == [(rd.float32, False), False] and a.grad.dtype is rd.bfloat16


def test_backward_runs_as_forward_did():
    a = matrix(requires_grad=True)
    with rd.autocast("cpu", dtype=rd.float16):
        out = AsItIs.apply(a, a)
        assert out.dtype is rd.float16
    out.sum().backward()
    assert SEEN == [(rd.float32, True), True]
    assert Product.apply(a, a).dtype is rd.float32  # outside of regions nothing is changed
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        custom_fwd(device_type=0)


# Training -------------------------------------------------------------------------------------------------------------


class Images(nn.Module):
    """A small convolutional model."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(1, 4, 3, padding=1), nn.Linear(64, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.first(x.view(-1, 1, 8, 8))), 2)
        return self.last(x.flatten(1))


class Sequences(nn.Module):
    """A small model with attention: an image is a sequence of its rows."""

    def __init__(self):
        super().__init__()
        self.project, self.last, self.norm = nn.Linear(8, 24), nn.Linear(8, 4), nn.LayerNorm(8)

    def forward(self, x):
        q, k, v = self.project(x).chunk(3, -1)
        return self.last(self.norm(x + F.scaled_dot_product_attention(q, k, v)).mean(1))


def losses_of_training(model, steps, **region):
    """The losses of `steps` steps on images of four kinds, which differ by the rows that are bright."""
    rd.manual_seed(0)
    model = model()
    optimizer = rd.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    kinds = rd.arange(32) % 4
    bright = (rd.arange(8) // 2 == kinds[:, None])[:, :, None].float()
    x = bright + 0.5 * rd.randn(32, 8, 8)
    found = []
    for _ in range(steps):
        with rd.autocast("cpu", **region):
            loss = F.cross_entropy(model(x), kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("model", [Images, Sequences])
def test_a_hundred_steps_under_bfloat16_reach_the_loss_of_float32(model):
    """Within 0.02 at each step, of a loss that falls from about 1.4 to less than 0.1: bfloat16 has eight bits."""
    low, full = losses_of_training(model, 100), losses_of_training(model, 100, enabled=False)
    assert full[0] > 1 and full[-1] < 0.1 and low != full
    assert max(abs(a - b) for a, b in zip(low, full, strict=True)) < 0.02


def test_nothing_warns_in_a_usual_step():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        losses_of_training(Images, 1)


@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True, "batch_first": True, "bias": False}])
def test_an_lstm_runs_in_the_regions_dtype_as_a_whole(options):
    rd.manual_seed(0)
    network, x = nn.LSTM(3, 2, **options), rd.randn(4, 5, 3)
    with rd.autocast("cpu"):
        result, (hidden, cell) = network(x)
    assert result.dtype is hidden.dtype is cell.dtype is rd.bfloat16
    exact, states = network(x)
    rd.testing.assert_close((result.float(), hidden.float(), cell.float()), (exact, *states), rtol=0.05, atol=0.02)
    result.float().sum().backward()
    assert all(weight.grad.dtype is rd.float32 and weight.grad.any() for weight in network.parameters())


def test_an_lstm_with_projections_and_a_gru_keep_their_states_dtype():
    x = rd.randn(4, 5, 3)
    with rd.autocast("cpu"):
        assert nn.LSTM(3, 2, proj_size=1)(x)[1][1].dtype is nn.GRU(3, 2)(x)[0].dtype is rd.float32
        assert nn.LSTM(3, 2)(nn.utils.rnn.pack_padded_sequence(x, rd.tensor([4] * 5)))[0].data.dtype is rd.float32


def test_a_parameter_made_in_inference_mode_is_cast_and_not_kept():
    with rd.inference_mode(), rd.autocast("cpu"):
        layer_, x = nn.Linear(2, 2), matrix()
        layer_.bias.zero_()
        layer_.weight.fill_(1)
        assert layer_(x).dtype is rd.bfloat16 and layer_(x).tolist() == [[2, 2], [2, 2]]
        layer_.weight.fill_(3)
        assert layer_(x).tolist() == [[6, 6], [6, 6]]


def test_what_is_no_dtype_or_device_is_refused_and_changes_nothing():
    with pytest.raises(TypeError, match="'dtype' .* must be torch.dtype, not int"):
        rd.set_autocast_dtype("cpu", 3)
    assert rd.get_autocast_dtype("cpu") is rd.bfloat16
    with pytest.raises(TypeError, match="must be str, not int"):
        rd.is_autocast_enabled(3)
    with pytest.raises(TypeError, match="expected .* but got .str, NoneType"):
        rd.set_autocast_enabled("cpu")


def test_one_bool_turns_autocast_for_cuda_on_and_off():
    def both():
        rd.set_autocast_enabled(True)
        assert rd.is_autocast_enabled() and not rd.is_autocast_enabled("cpu")
        rd.set_autocast_enabled(False)
        assert not rd.is_autocast_enabled()

    contextvars.copy_context().run(both)


def test_a_mode_sees_casts_in_pytorchs_order_and_with_pytorchs_arguments():
    x, weight, bias = rd.ones(2, 3), rd.ones(4, 3, requires_grad=True), rd.ones(4, requires_grad=True)
    with Seen() as mode:
        with rd.autocast("cpu", dtype=rd.bfloat16):
            result = F.linear(x, weight, bias)
        result.sum().backward()
    casts = [(args[0].shape, kwargs) for func, _, args, kwargs in mode.calls if func is rd.ops.aten._to_copy.default]
    assert [shape for shape, _ in casts[:3]] == [(4,), (4, 3), (2, 3)]  # from the last argument on
    assert all(kwargs["layout"] is rd.strided for _, kwargs in casts[3:]) and len(casts) == 5
