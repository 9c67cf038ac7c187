"""Attention on the simulated device, against its definition on the CPU."""

import numpy as np
import pytest

import redispatch as rd
from redispatch.dispatch import DispatchKey, ops
from redispatch.kernels import Operand, contiguous_strides, cuda
from redispatch.kernels.cuda import compiler
from redispatch.kernels.cuda.ops import attention
from redispatch.kernels.cuda.ops.attention import AT_ONCE, Attention
from redispatch.kernels.cuda.sass import machine_code
from redispatch.kernels.ops.generators import drawing_from
from redispatch.nn import functional as F
from redispatch.nn.attention import SDPBackend, sdpa_kernel
from redispatch.testing import assert_close

from .helpers import same_gradients

efficient = ops.aten._scaled_dot_product_efficient_attention.default
efficient_backward = ops.aten._scaled_dot_product_efficient_attention_backward.default
NAMES = "result logs grad_query grad_key grad_value grad_bias".split()


def attended(device, shapes, dtype, bias=None, dropout=0.0, is_causal=False, turned=False):
    """Results of the fused operator and all gradients, computed on a device of the same numbers on each."""
    (batch, heads, shared), (rows, columns), (width, value_width) = shapes
    rd.manual_seed(7)
    three = [rd.randn(batch, heads, rows, width), rd.randn(batch, shared, columns, width)]
    three += [rd.randn(batch, shared, columns, value_width)]
    if turned:
        three = [x.transpose(1, 2).clone().transpose(1, 2) for x in three]
    given = [*three, None if bias is None else rd.randn(*bias)]
    given = [None if x is None else x.to(dtype).to(device).detach().requires_grad_() for x in given]
    slope = rd.randn(batch, heads, rows, value_width).to(dtype).to(device)
    rd.cuda.manual_seed(9)
    with drawing_from(rd.Generator(kind="philox").manual_seed(9)):
        out, logs, seed, offset = efficient(*given, True, dropout, is_causal, scale=0.4)
    out.backward(slope)
    found = [out, logs, *(None if x is None else x.grad for x in given)]
    return [None if x is None else x.detach().cpu() for x in found], (int(seed), int(offset)) if dropout else None


CASES = {
    "tiles": (((1, 2, 2), (37, 70), (17, 9)), rd.float32, {}),
    "causal": (((1, 2, 2), (70, 37), (17, 9)), rd.float32, {"is_causal": True, "turned": True}),
    "grouped": (((2, 4, 2), (33, 5), (17, 9)), rd.float32, {"is_causal": True}),
}
LONG = {
    "bias": (((2, 2, 1), (5, 70), (17, 9)), rd.float32, {"bias": (2, 1, 1, 70)}),
    "wide": (((1, 1, 1), (20, 20), (130, 130)), rd.float32, {}),
    "widest": (((1, 2, 1), (40, 33), (256, 200)), rd.float16, {"is_causal": True}),
    "dropped": (((1, 2, 1), (70, 130), (17, 33)), rd.float32, {"bias": (70, 130), "dropout": 0.3}),
    "dropped halves": (((1, 2, 2), (37, 70), (70, 70)), rd.float16, {"is_causal": True, "dropout": 0.3}),
    "doubles": (((1, 2, 1), (5, 7), (3, 3)), rd.float64, {"dropout": 0.5}),
    "too wide": (((1, 1, 1), (3, 4), (257, 3)), rd.float32, {}),
}
SHORT = {"dropped 16 bit": (((1, 2, 1), (20, 70), (5, 6)), rd.bfloat16, {"bias": (20, 70), "dropout": 0.3})}


@pytest.mark.parametrize(
    "name", [*CASES, *SHORT, *(pytest.param(one, marks=pytest.mark.long) for one in LONG)]
)  # 12 s, nearly all of it compiling two sets of kernels, once per machine
def test_attention_and_its_gradients_are_those_of_the_definition(simulator, name):
    shapes, dtype, options = {**CASES, **SHORT, **LONG}[name]
    wanted, drawn = attended("cpu", shapes, dtype, **options)
    found, drawn_there = attended("cuda", shapes, dtype, **options)
    assert drawn == drawn_there
    tolerance = {} if dtype is rd.float64 else dict.fromkeys(("rtol", "atol"), 1e-4 if dtype is rd.float32 else 2e-2)
    for title, ours, theirs in zip(NAMES, found, wanted, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert ours.stride() == theirs.stride() and ours.shape == theirs.shape
            assert_close(ours, theirs, **tolerance, msg=lambda problem, title=title: f"{title}: {problem}")


def test_rows_that_see_nothing_give_zeros(simulator):
    q, k = rd.randn(1, 1, 3, 4), rd.randn(1, 1, 5, 4)
    mask = rd.zeros(3, 5)
    mask[0], mask[2, 1:] = -float("inf"), -float("inf")
    for each in (mask, mask == 0):
        same_gradients(
            lambda q, k, v, each=each: F.scaled_dot_product_attention(q, k, v, each.to(q.device)).flatten(),
            *(q, k, k.clone()),
        )


def test_the_chooser_takes_the_fused_kernel_and_users_may_forbid_it(simulator):
    q = rd.randn(1, 2, 3, 4, device="cuda")
    choice = ops.aten._fused_sdp_choice.default
    assert choice(q, q, q) == int(SDPBackend.EFFICIENT_ATTENTION)
    assert choice(q.half(), q.half(), q.half()) == int(SDPBackend.FLASH_ATTENTION)
    assert choice(q.double(), q.double(), q.double()) == int(SDPBackend.MATH)
    assert choice(q[0], q[0], q[0]) == int(SDPBackend.MATH)
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.EFFICIENT_ATTENTION], set_priority=True):
        assert choice(q, q, q) == 0
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION), pytest.warns(UserWarning) as told:
        with pytest.raises(RuntimeError, match="No available kernel"):
            F.scaled_dot_product_attention(q, q, q)
    told = [str(one.message) for one in told]
    assert "Memory Efficient attention has been runtime disabled." in told
    assert any("Got Query dtype: Float, Key dtype: Float, and" in one or "Query dtype: Float" in one for one in told)
    params = rd.backends.cuda.SDPAParams(q, q, q, None, 0.0, False, False)
    assert rd.backends.cuda.can_use_efficient_attention(params)
    with pytest.warns(UserWarning, match="all be of dtype: {Half, BFloat16}"):
        assert not rd.backends.cuda.can_use_flash_attention(params, debug=True)


def test_a_batch_of_examples_is_one_long_batch(simulator):
    q, mask = rd.randn(3, 1, 2, 5, 4), rd.randn(3, 5, 5)
    both = rd.vmap(lambda q, m: F.scaled_dot_product_attention(q, q, q, m))
    with pytest.warns(UserWarning, match="batching rule"):  # the CPU's kernel has none
        wanted = both(q, mask)
    assert_close(both(q.cuda(), mask.cuda()).cpu(), wanted)
    drop = rd.vmap(lambda q: F.scaled_dot_product_attention(q, q, q, dropout_p=0.5), randomness="different")
    assert drop(q.cuda()).shape == q.shape
    with pytest.raises(RuntimeError, match="randomness"):
        rd.vmap(lambda q: F.scaled_dot_product_attention(q, q, q, dropout_p=0.5))(q.cuda())


# --- the kernels ------------------------------------------------------------------------------------------------------


def sources(dtype, width, with_bias, dropout):
    """The four kernels of a call."""

    def like(*shape):
        return Operand(None, dtype, shape, contiguous_strides(shape))

    x = like(2, 2, 100, width)
    call = Attention(x, x, x, like(100, 100) if with_bias else None, True, 0.5, dropout)
    made = call.forward(x, 128), call.products(x, x), call.of_queries(x, None, x, 128), call.of_keys(x, x, x, 128)
    return [launch.kernel.make() for launch, _ in made]


VERSIONS = [("float32", 17, False, 0.0), ("bfloat16", 6, True, 0.3)]
OTHERS = [
    (dtype, width, with_bias, dropout)
    for dtype in ("float32", "float16", "bfloat16")
    for width in (8, 32, 64, 80, 96, 128, 144, 256)
    for with_bias, dropout in ((False, 0.0), (True, 0.0), (False, 0.1), (True, 0.1))
    if width <= 144 or not (with_bias and dropout)
]


SPILLED = 48  # bytes: twelve registers, by the library's own translator, for the keys under dropout


@pytest.mark.skipif(not cuda.available(), reason="registers are counted by nvJitLink: install redispatch[cuda]")
@pytest.mark.parametrize("by", ["numba-cuda", "own"])
@pytest.mark.parametrize(
    "version", [*VERSIONS, *(pytest.param(one, marks=pytest.mark.long) for one in OTHERS)], ids=str
)
def test_two_blocks_fit_on_a_processor_and_nothing_is_spilled(version, by, monkeypatch):
    monkeypatch.setenv("REDISPATCH_CUDA_COMPILER", by)
    for source in sources(*version):
        for target in ("sm_80", "sm_90"):
            text = compiler.ptx(source, target)
            code = machine_code(compiler.cubin(source, target), source.name)
            spilled = SPILLED * (compiler.is_own(source) and version[-1] > 0 and source.name == "gradient_of_keys")
            assert code.registers <= 65536 // AT_ONCE and code.frame == code.stack <= spilled, (source.name, target)
            assert code.shared <= 48 << 10 and not code.unresolved and ".f64" not in text and ".local" not in text


# What is changed in the kernels' text, and must be noticed.
CHANGES = [
    ("attended", "shrink = exp(most[r] - shift)", "shrink = one"),
    ("attended", "top + (16 * HIGH - 1) + reach", "top + (16 * HIGH - 2) + reach"),
    ("attended", "totals[r] += share", "totals[r] = share"),
    ("attended", "side += TILE", "side += TILE + 1"),
    ("attended", "min(columns, row + reach)", "min(columns, row + reach + 1)"),
    ("attended", "divided(head, together)", "divided(head, together + 1)"),
    ("gradient_of_queries", "- delta)", ")"),
    ("gradient_of_queries", "slope * number(scale)", "slope"),
    ("gradient_of_keys", "max(side - reach + 1, 0)", "max(side - reach + 65, 0)"),
    ("gradient_of_keys", "for member in range(together)", "for member in range(1)"),
    ("gradient_of_keys", "pair * rows + row", "pair * rows"),
]


WRITTEN = attention.ATTENDED, attention.OF_QUERIES, attention.OF_KEYS


@pytest.mark.long
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: " ".join(change[:2]))
def test_a_changed_kernel_is_noticed(simulator, change, monkeypatch, request):
    name, before, after = change
    written = next(one for one in WRITTEN if one.function.__name__ == name)
    assert before in written.text

    def forget():
        """The values recorded of the kernels as they are."""
        for one in (efficient, efficient_backward):
            one.registrations[DispatchKey.CUDA][-1].function.__self__.forget()

    forget()
    request.addfinalizer(forget)
    monkeypatch.setattr(written, "text", written.text.replace(before, after))
    monkeypatch.setattr(written, "kernels", {})
    shapes = ((1, 4, 2), (70, 70), (17, 9))
    try:
        found, _ = attended("cuda", shapes, rd.float32, is_causal=True)
    except RuntimeError:
        return  # the simulator saw a read out of bounds, or of what nobody wrote
    wanted, _ = attended("cpu", shapes, rd.float32, is_causal=True)
    pairs = [(a.numpy(), b.numpy()) for a, b in zip(found, wanted, strict=True) if a is not None]
    assert not all(np.allclose(a, b, 1e-3, 1e-3) for a, b in pairs)
