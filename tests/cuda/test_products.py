"""Products of matrices on the simulated device, against the CPU's."""

import re

import pytest

import redispatch as rd
from redispatch.kernels.cuda import compiler
from redispatch.kernels.cuda.ops import matmul
from redispatch.kernels.engine.convert import as_is

from .helpers import compare, same_gradients

pytestmark = pytest.mark.usefixtures("simulator")


def numbers(*shape, dtype=rd.float32):
    """Small whole numbers, whose products are exact in every dtype."""
    return (rd.arange(float(rd.Size(shape).numel())) % 7 - 3).reshape(shape).to(dtype)


SHAPES = [(65, 17, 66), (64, 16, 64), (3, 1, 2), (2, 0, 3), (0, 4, 3), (1, 33, 40), (40, 33, 1), (1, 300, 1)]


@pytest.mark.parametrize("n,k,m", SHAPES)
def test_every_shape_and_every_order_of_factors(n, k, m):
    a, b = numbers(n, k), numbers(k, m)
    for left in (a, a.t().contiguous().t(), numbers(n + 1, 2 * k)[1:, ::2]) if k < 100 else (a,):
        compare(left.cuda() @ b.cuda(), left @ b)
    compare(a.cuda() @ b.t().contiguous().cuda().t(), a @ b)


@pytest.mark.parametrize("dtype", [rd.float16, rd.bfloat16, rd.float64, rd.int8, rd.int64, rd.complex64], ids=str)
def test_every_kind_of_dtype(dtype):
    a, b, c = numbers(5, 7, dtype=dtype), numbers(7, 3, dtype=dtype), numbers(3, dtype=dtype)
    if dtype.is_complex:
        a, b = a + 2j, b.conj() * 1j
    x, y, z = a.cuda(), b.cuda(), c.cuda()
    compare([x @ y, rd.addmm(z, x, y, beta=2, alpha=3)], [a @ b, rd.addmm(c, a, b, beta=2, alpha=3)])
    compare(y[0] @ z, b[0] @ c)
    if dtype.is_complex:
        compare(rd.addmm(z, x, y.conj(), alpha=2j), rd.addmm(c, a, b.conj(), alpha=2j))


def test_sums_of_16_bit_floats_are_formed_in_32():
    a = rd.tensor([[2048.0, 1, 1, 1], [1, 1, 1, 1]], dtype=rd.float16)  # which knows no odd number behind 2048
    b = rd.ones(4, 2, dtype=rd.float16)
    compare(a.cuda() @ b.cuda(), a @ b)
    assert (a.cuda() @ b.cuda())[0].tolist() == (a.cuda() @ b.cuda()[:, 0])[:1].tolist() * 2 == [2052.0, 2052.0]


def test_what_is_added_does_not_show_where_its_factor_is_0():
    a, c = numbers(3, 3).cuda(), rd.full((3, 3), float("nan"), device="cuda")
    compare(rd.addmm(c, a, a, beta=0), a.cpu() @ a.cpu())
    assert rd.addmm(c, a, a).isnan().all()


def test_in_place_and_out():
    a, c = numbers(4, 4), numbers(4, 4) + 1
    x, y = a.cuda(), c.cuda()
    compare(y.addmm_(x, x.t()), c.addmm_(a, a.t()))
    compare(rd.mm(x, x, out=y.t()), rd.mm(a, a, out=c.t()))
    compare(rd.mm(x, x, out=x), rd.mm(a, a, out=a))
    compare(y.addbmm_(x.expand(2, 4, 4), x.expand(2, 4, 4)), c.addbmm_(a.expand(2, 4, 4), a.expand(2, 4, 4)))
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        x @ x[1:]


def test_gradients():
    same_gradients(lambda a, b, c: rd.nn.functional.linear(a, b, c), rd.randn(5, 3), rd.randn(4, 3), rd.randn(4))
    same_gradients(rd.matmul, rd.randn(2, 3, 4), rd.randn(4, 2))


def test_attention_and_its_gradients_follow_from_the_parts():
    q, k, v = rd.randn(2, 2, 5, 4), rd.randn(2, 2, 3, 4), rd.randn(2, 2, 3, 6)
    mask = rd.tensor([[True, False, True]])

    def attention(q, k, v):  # of which devices lay out the result in different ways, by the kernel that they choose
        found = rd.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask.to(q.device))
        return found.contiguous()

    same_gradients(attention, q, k, v)


def tile():
    given = {"of_a": as_is, "of_b": as_is, "of_added": as_is, "factor": matmul.FACTORS["float32"]}
    return matmul.TILED.source("float32", ["float32"] * 4, **given, **matmul.tile_of("float32"))


def test_a_tile_is_kept_in_registers_and_knows_no_double_precision():
    code = compiler.ptx(tile(), "sm_80")
    assert not re.search(r"\.f64|\.local|\bcall\b", code)
    assert code.count("fma.rn.f32") >= 16 and code.count("bar.sync") == 2
    shared = sum(int(n) for n in re.findall(r"\.shared .*\[(\d+)\]", code))
    assert shared <= 48 << 10


def test_a_missing_barrier_in_a_tile_is_found(simulator):
    broken = simulator.device.load(re.sub(r"bar\.sync.*?;", "", compiler.ptx(tile()), count=1))
    x = numbers(20, 20).cuda()
    block = x._storage.block.address
    at = (400, 20, 20, 20, 0, 0x3F800000, 0, 0, 0, *(0, 20, 1) * 4)
    with pytest.raises(RuntimeError, match="a race in shared memory"):
        simulator.device.launch(broken, "tiled_product", (1, 1, 1), (256, 1, 1), [block] * 4 + list(at))
