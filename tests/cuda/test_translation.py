"""Kernels that the library's own translator compiles: families of operators, and what a GPU's functions mean there."""

import math
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import redispatch as rd
from redispatch.kernels import Elementwise, cuda
from redispatch.kernels.cuda import compiler, elementwise, nvptx
from redispatch.kernels.cuda.runtime import operands
from redispatch.kernels.cuda.simulated_driver import SimulatedDriver
from redispatch.kernels.cuda.simulator import Device
from redispatch.testing import assert_close

from .conftest import devices_of
from .test_products import tile
from .texts import sources


@pytest.fixture(scope="module")
def own():
    """A device whose kernels are all compiled by the library."""
    former = os.environ.get("REDISPATCH_CUDA_COMPILER")
    os.environ["REDISPATCH_CUDA_COMPILER"] = "own"
    try:
        with devices_of(SimulatedDriver(1 << 26)) as driver:
            yield driver
    finally:
        del os.environ["REDISPATCH_CUDA_COMPILER"]
        if former is not None:
            os.environ["REDISPATCH_CUDA_COMPILER"] = former


f = rd.nn.functional
FAMILIES = {
    "pointwise": lambda x: (x.exp() + x.sin() * x.tanh()).lgamma(),
    "float16": lambda x: (x.half() * 2 + 1).sigmoid(),
    "bfloat16": lambda x: x.bfloat16().exp(),
    "bytes": lambda x: (x * 10).to(rd.uint8) * 3,
    "complex": lambda x: rd.complex(x, x + 1) * rd.complex(x, -x),
    "turned": lambda x: x.t() + x.t().exp().t().contiguous().t(),
    "strided": lambda x: x[::2, 1:] - x[0, 1:],
    "rows": lambda x: (x.sum(1), x.amax(1), x.var(1)),
    "columns": lambda x: (x.sum(0), x.prod(0)),
    "scans": lambda x: (x.cumsum(1), x.cummax(0).values),
    "sorts": lambda x: (x.sort(1).values, x.topk(3).values, x.argmax(1)),
    "indices": lambda x: (x[[3, 1]], x.gather(1, rd.zeros(40, 2, dtype=rd.int64, device=x.device)), x.nonzero()),
    "atomic": lambda x: rd.zeros(3, device=x.device).index_add(0, rd.arange(40, device=x.device) % 3, x[:, 0]),
    "lengths": lambda x: (rd.hypot(x, x + 1), rd.hypot(x.double() * 1e300, x.double()), rd.hypot(x / 0, x)),
    "interpolated": lambda x: rd.complex(x, x + 1).lerp(rd.complex(x, -x), 0.3),
    "products": lambda x: (x @ x.t(), rd.einsum("ij,kj->ik", x, x.exp())),
    "softmax": lambda x: (f.softmax(x, 1), f.layer_norm(x, (33,))),
    "convolution": lambda x: f.conv2d(x[:32, :32].reshape(2, 2, 16, 16), x[:3, :18].reshape(3, 2, 3, 3), padding=1),
    "attention": lambda x: f.scaled_dot_product_attention(*(x[:, :32].reshape(1, 2, 20, 32) for _ in range(3))),
    "factorisation": lambda x: rd.linalg.lu_factor(x[:8, :8] + 3 * rd.eye(8, device=x.device)).LU,
    "fourier": lambda x: rd.fft.rfft(x[:, :32]),
    "remainders": lambda x: (rd.fmod(x * 1000, 0.37), rd.remainder(x * 1000, -0.37), x // 0.1),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_of_operators_gives_what_it_gives_on_the_cpu(own, name):
    rd.manual_seed(0)
    x = rd.randn(40, 33)
    assert_close(rd.utils._pytree.tree_map(lambda one: one.cpu(), FAMILIES[name](x.cuda())), FAMILIES[name](x))


@pytest.mark.parametrize("dtype", [rd.float32, rd.float64])
def test_the_next_number_is_exact(own, dtype):
    ends = rd.tensor([0.0, -0.0, 1.0, -1.0, 1e-45, 3e38, math.inf, -math.inf, math.nan], dtype=dtype)
    x, y = (one.reshape(-1) for one in rd.meshgrid(ends, ends, indexing="ij"))
    found, wanted = rd.nextafter(x.cuda(), y.cuda()).cpu(), rd.nextafter(x, y)
    assert_close(found, wanted, rtol=0, atol=0, equal_nan=True)
    known = ~wanted.isnan()
    assert rd.equal(found.signbit()[known], wanted.signbit()[known])


def test_random_numbers_are_those_of_their_place(own):
    found = rd.rand(1000, device="cuda", generator=rd.Generator("cuda").manual_seed(3)).cpu()
    assert rd.equal(found, rd.rand(1000, generator=rd.Generator(kind="philox").manual_seed(3)))


OF_COMPLEX = """
    abs exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh
""".split()
# On both sides of the cuts, near what cancels, and where a part alone would overflow
AWKWARD = [
    1.3 - 0.4j, -2.0 + 3e-9j, complex(-2, -0.0), complex(3, -0.0), 1 + 1e-9j, 0.6 + 0.8j, 1e-200 - 3e-180j, -5j, 0.25,
    709.9 + 1j, -3e200 + 1e200j, 20.5 - 7j, 11 + 0.3j, complex(math.inf, 2), complex(-math.inf, 2),
]  # fmt: skip


@pytest.mark.parametrize("name", OF_COMPLEX)
def test_a_function_of_complex_numbers_is_exact_to_some_ulp(own, name):  # 1 s each: compiled and run
    z, function = np.array(AWKWARD), getattr(np, re.sub("^a(?=sin|cos|tan)", "arc", name))
    with np.errstate(all="ignore"):
        wanted = rd.from_numpy(function(z))
    found = getattr(rd, name)(rd.from_numpy(z).cuda()).cpu()
    parts = (rd.view_as_real(one) if one.is_complex() else one for one in (found, wanted))
    assert_close(*parts, rtol=3e-14, atol=1e-16, equal_nan=True)


def test_powers_of_complex_numbers(own):
    z = rd.tensor([3 + 4j, -1 + 0.5j, 0j, 2 - 2j], dtype=rd.complex128)
    for w in (3 + 0j, -2 + 0j, 0.5 + 1j, 2.5 + 0j):
        exponent = rd.full((4,), w, dtype=rd.complex128)
        found, wanted = (z.cuda() ** exponent.cuda()).cpu(), z**exponent
        keep = slice(None) if w.real > 0 and w.imag == 0 else [0, 1, 3]
        assert_close(found[keep], wanted[keep], rtol=1e-14, atol=1e-15)


def rest_element(x, y):
    return np.fmod(x, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rests_are_exact(own, dtype):
    tiny, huge = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    ends = np.array([0.0, -0.0, 1, -1.5, 3, 0.1, 7e5, tiny, 5 * tiny, huge, -huge, np.inf, -np.inf, np.nan], dtype)
    x, y = (one.reshape(-1).copy() for one in np.meshgrid(ends, ends))
    loops = cuda.CUDAElementwise(Elementwise("rest", rest_element))
    held = [rd.from_numpy(one).cuda() for one in (x, y)]
    out = rd.zeros(len(x), dtype=held[0].dtype).cuda()
    loops.launch([operands.operand(out)], [operands.operand(one) for one in held], None)
    with np.errstate(invalid="ignore"):
        wanted = np.fmod(x, y)
    np.testing.assert_array_equal(out.cpu().numpy(), wanted)
    finite = ~np.isnan(wanted)
    assert (np.signbit(out.cpu().numpy()) == np.signbit(wanted))[finite].all()


@pytest.mark.parametrize(
    "name, vector", [("axpy", "v4.b32"), ("half", "v4.b32"), ("bytes", "v4.b32"), ("rows", "v4.b32")]
)
def test_dense_operands_are_read_and_written_sixteen_bytes_at_once(name, vector):
    source = sources()[name]
    text = nvptx.compiled(source.program(), source.signature, "sm_80")
    assert f"ld.global.{vector}" in text and f"st.global.{vector}" in text and "call" not in text


def test_sums_of_a_lane_are_registers_and_products_are_fused_with_them():
    source = tile()
    text = nvptx.compiled(source.program(), source.signature, "sm_80", fused=True)
    assert ".local" not in text and text.count("fma.rn.f32") >= 16
    assert "fma.rn.f32" not in nvptx.compiled(source.program(), source.signature, "sm_80")


def test_what_the_translator_does_not_know_is_not_implemented(own):
    def spelled(x):
        return x.spelled_backwards()

    source = elementwise.source(
        Elementwise("spelled", spelled), elementwise.Form(1, 0, "a", ("float32",), ("float32",), "float32")
    )
    with pytest.raises(
        NotImplementedError, match=r"spelled_contiguous has no CUDA kernel for .* \(Unknown: .*\.cpu\(\)"
    ):
        compiler.ptx(source)


WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("numba_cuda", "nvidia", "cuda"):
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Missing())
from redispatch.kernels.cuda import compiler
compiler.available = lambda: False
import redispatch as rd
x = rd.randn(9, 5)
w = rd.randn(5, 3).cuda().requires_grad_()
rd.nn.functional.cross_entropy(x.cuda() @ w, rd.arange(9, device="cuda") % 3).backward()
v = w.detach().cpu().requires_grad_()
rd.nn.functional.cross_entropy(x @ v, rd.arange(9) % 3).backward()
rd.testing.assert_close(w.grad.cpu(), v.grad)
assert "numba" not in sys.modules
"""


def test_the_simulator_needs_no_other_compiler():
    environment = {**os.environ, "REDISPATCH_CUDA": "sim"}
    subprocess.run([sys.executable, "-c", WITHOUT], env=environment, check=True)


PARTED = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry parted(.param .u64 out) {
    .reg .pred %p<2>; .reg .b32 %r<5>; .reg .b64 %d<3>;
    mov.u32 %r1, %tid.x;
    mov.b32 %r2, 0;
    bra $together;
$more:
    add.s32 %r2, %r2, 1;
    setp.lt.u32 %p1, %r2, %r1;
    @%p1 bra $more;
    bra $meet;
$together:
    setp.eq.u32 %p1, %r1, 0;
    @!%p1 bra $more;
    bra $meet;
$meet:
    shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1;
    ld.param.b64 %d1, [out];
    mul.wide.u32 %d2, %r1, 4;
    add.s64 %d1, %d1, %d2;
    st.global.b32 [%d1], %r3;
    ret;
}
"""


@pytest.mark.parametrize("early", [False, True])
def test_lanes_that_a_loop_has_parted_meet_at_a_shuffle(early):
    """Its instructions may stand in front of the loop's, where the lanes that leave come to them first."""
    text = PARTED
    if early:
        meet = text[text.index("$meet:") : text.rindex("}")]
        text = text.replace(meet, "").replace("$more:", f"{meet}$more:", 1)
    device = Device(1 << 16)
    address = device.allocate(128)
    device.launch(device.load(text), "parted", (1, 1, 1), (32, 1, 1), [address])
    assert device.read(address, 128).view(np.int32).tolist() == [k ^ 1 for k in range(32)]
