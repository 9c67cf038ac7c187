"""The CUDA kernels, compiled and run by the simulator, against the CPU's; and what their PTX must and must not hold."""

import os
import re
import subprocess
import sys

import numpy
import pytest

import redispatch as rd
from redispatch import kernels
from redispatch.kernels import cuda
from redispatch.kernels.cpu.copy import elementwise_for
from redispatch.kernels.cuda import compiler, elementwise, reduce
from redispatch.kernels.cuda.runtime import operands
from redispatch.kernels.declare.pointwise import DECLARED
from redispatch.testing import assert_close

from .helpers import compare
from .texts import sources, text

pytestmark = pytest.mark.usefixtures("simulator")

DTYPES = [getattr(rd, name) for name in kernels.DTYPES]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_is_converted_to_every_other(dtype):
    x = rd.tensor([0.0, 1.0, 2.5, 100.0, 0.0, 3.0]).to(dtype)
    here = x.cuda()
    for other in DTYPES[:: 1 if dtype is rd.float32 else 5]:
        compare(here.to(other), x.to(other))


@pytest.mark.parametrize("dtype", [rd.float16, rd.bfloat16, rd.float64, rd.int64, rd.uint8, rd.complex64], ids=str)
def test_arithmetic_and_sums_in_every_kind_of_dtype(dtype):
    x = (rd.arange(60.0) % 7).reshape(4, 15).to(dtype)
    y = (rd.arange(15.0) % 5 + 1).to(dtype)
    a, b = x.cuda(), y.cuda()
    compare(a * b + 2, x * y + 2)
    compare(a.t() - b[:4], x.t() - y[:4])
    compare([a.sum(), a.sum(0), a.sum(1)], [x.sum(), x.sum(0), x.sum(1)])


def layouts(x):
    yield x
    yield x.t()
    yield x[::2, 1:]
    yield x[:1].expand(5, -1)
    yield x.flatten()[1:]
    yield x[0, 0]


def test_layouts_in_place_and_out():
    for seen, here in zip(layouts(rd.randn(6, 9)), layouts(rd.randn(6, 9).cuda()), strict=True):
        if 0 in here.stride():
            seen = here.cpu().as_strided(here.shape, here.stride())
        else:
            here.copy_(seen)
        compare(here.contiguous(), seen.contiguous())
        compare((here * 2).contiguous(), (seen * 2).contiguous())
    x = rd.randn(4, 6)
    a = x.cuda()
    a.t().mul_(2).add_(a.t(), alpha=0.5)
    assert_close(a.cpu(), x * 3)
    out = rd.empty(0, device="cuda")
    compare(rd.add(a, 1, out=out), a.cpu() + 1)
    a[:, 1:].copy_(a[:, :-1].clone())
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        a.view(-1)[1:].add_(a.view(-1)[:-1])
    assert a[0, 0].item() == a.cpu()[0, 0].item() and rd.equal(a, a.clone())


def launched(simulator, function):
    """Returns the result of a call, and the names of the kernels that were launched for it."""
    device, names = simulator.device, []
    launch = device.launch
    try:
        device.launch = lambda module, name, *given: names.append(name) or launch(module, name, *given)
        return function(), names
    finally:
        del device.launch


ROWS = {  # by what is computed of a matrix, a vector, a column, an image
    "a vector beside a matrix": lambda x, v, c, z: x + v,
    "a column": lambda x, v, c, z: x * c,
    "both, and a number": lambda x, v, c, z: rd.addcmul(c, x, v, value=0.5),
    "slices": lambda x, v, c, z: x[::2, 4:] - x[::2, :8],
    "slices that begin at 8 bytes": lambda x, v, c, z: x[:, 2:] - v[2:],
    "into fewer bytes": lambda x, v, c, z: x[:, :8].to(rd.float16),
    "a number for each channel": lambda x, v, c, z: z + z[0, :, :1, :1],
    "complex numbers": lambda x, v, c, z: rd.complex(x, x) * rd.complex(v, v),
    "truths": lambda x, v, c, z: rd.where(x > v, x, c),
}


@pytest.mark.parametrize("what", ROWS)
def test_rows_are_computed_in_vectors(simulator, what):
    given = rd.randn(6, 12), rd.randn(12), rd.randn(6, 1), rd.randn(2, 3, 2, 4)
    there = [x.cuda() for x in given]
    found, names = launched(simulator, lambda: ROWS[what](*there))
    compare(found, ROWS[what](*given))
    assert any(name.endswith("_in_rows") for name in names) and not any(name.endswith("_strided") for name in names)


def test_rows_that_no_vector_divides_are_computed_one_by_one(simulator):
    x, v = rd.randn(6, 12), rd.randn(9)
    a, b = x.cuda(), v.cuda()
    for function in (lambda x, v: x[:, :9] + v, lambda x, v: x[:, 1:9] + v[1:], lambda x, v: x[:, :6] + x.t()[:6]):
        found, names = launched(simulator, lambda function=function: function(a, b))
        compare(found, function(x, v))
        assert names and all(name.endswith("_strided") for name in names)
    y, z = x.clone(), x.cuda()
    z[:, 4:8].mul_(b[:4])
    y[:, 4:8].mul_(v[:4])
    assert_close(z.cpu(), y)


TURNED = {
    "a copy": ((50, 70), lambda x, y: x.t().contiguous()),
    "beside one that is not": ((33, 40), lambda x, y: x.t() - y.t().contiguous()),
    "beside a column": ((33, 40), lambda x, y: rd.addcmul(y.t().contiguous(), x.t(), y[0].unsqueeze(1))),
    "matrices": ((2, 40, 17), lambda x, y: x.transpose(1, 2).contiguous()),
    "channels first": ((2, 5, 6, 20), lambda x, y: x.permute(0, 3, 1, 2).contiguous()),
    "halves": ((33, 40), lambda x, y: x.half().t().contiguous()),
    "complex numbers": ((17, 40), lambda x, y: rd.complex(x, y).t().contiguous()),
}


@pytest.mark.parametrize("what", TURNED)
def test_transposed_operands_go_through_squares_in_shared_memory(simulator, what):
    shape, function = TURNED[what]
    given = rd.randn(shape), rd.randn(shape)
    there = [x.cuda() for x in given]
    found, names = launched(simulator, lambda: function(*there))
    compare(found, function(*given))
    assert any(name.endswith("_turned") for name in names)


def test_a_square_is_read_and_written_in_order():
    form = elementwise.Form(1, 2, "t", ("float32",), ("float32",), None)
    code = compiler.ptx(elementwise.source(elementwise_for(*[kernels.Operand(None, "float32", (), ())] * 2), form))
    assert not re.search(r"\.f64|\.local|\bcall\b", code) and len(re.findall(r"bar(rier)?\.sync", code)) == 1


@pytest.mark.parametrize("shape", [(70000,), (300, 250), (3, 33), (33, 3), (2, 5, 8), (0, 4), (4, 0)])
def test_reductions_of_many_shapes(shape):
    x = (rd.arange(float(rd.Size(shape).numel())) % 13).reshape(shape)
    a = x.cuda()
    compare(a.sum(), x.sum())
    for dim in range(len(shape)):
        compare(a.sum(dim), x.sum(dim))
        compare(a.transpose(0, dim).mean(0, True), x.transpose(0, dim).mean(0, True))
    if x.numel():
        compare([a.max(), a.amin(0)], [x.max(), x.amin(0)])


@pytest.mark.parametrize("shape,dim", [((3, 33000), 1), ((11000, 3), 0), ((2, 1100, 35), 1), ((17000, 2), (0, 1))])
def test_few_large_results_are_cut_among_blocks(simulator, shape, dim):
    x = (rd.arange(float(rd.Size(shape).numel())) % 13).reshape(shape)
    for function in (rd.mean, rd.amax):
        found, names = launched(simulator, lambda function=function: function(x.cuda(), dim))
        compare(found, function(x, dim))
        assert [name.rpartition("_")[2] for name in names[-2:]] == ["pieces", "total"]


def test_gradients_follow_from_the_operators():
    x, w = rd.randn(5, 3, requires_grad=True), rd.randn(3, requires_grad=True)
    a, v = x.detach().cuda().requires_grad_(), w.detach().cuda().requires_grad_()
    for given, by in ((x, w), (a, v)):
        chosen = rd.where(given > 0, given, by.clamp(min=0)).relu()
        (rd.tanh(given * by).exp().mean(0) - by.sigmoid() + chosen.amax(0)).square().sum().backward()
    compare([a.grad, v.grad], [x.grad, w.grad])
    assert a.grad.is_cuda and type((a * v).grad_fn).__name__ == "MulBackward0"


def test_a_tensor_is_printed_saved_and_moved(tmp_path):
    x = rd.tensor([1.5, -2.0], device="cuda")
    assert repr(x) == "tensor([ 1.5000, -2.0000], device='cuda:0')" and x.tolist() == [1.5, -2.0]
    rd.save(x, tmp_path / "x.pt")
    assert rd.load(tmp_path / "x.pt").is_cuda and rd.load(tmp_path / "x.pt", map_location="cpu").tolist() == [1.5, -2.0]
    assert x._version == 0 and x.cuda() is x and x.to("cuda:0") is x and x.cpu().is_cpu and x[1].item() == -2.0


def test_a_mistake_of_a_kernel_is_an_error_and_the_device_lives_on():
    x = rd.empty(5, device="cuda")
    with pytest.raises(RuntimeError, match="never written\n  address .* a tensor's memory of 20 bytes"):
        x + 1
    assert (rd.ones(3, device="cuda") + 1).tolist() == [2, 2, 2]


# --- the texts --------------------------------------------------------------------------------------------------------

LINTED = "abs add mul exp tanh sigmoid where neg sqrt lt".split()


def contiguous_ptx(name, dtype, target):
    op = next(
        op for op in DECLARED if op.base_name == name and op.functional._overloadname in ("default", "Tensor", "self")
    )
    variant = op.variants[-1]
    layout = "".join("a" if position in op.tensors else "n" for position in variant.positions)
    ins = tuple(
        ("bool" if name == "where" and k == 0 else dtype) if how == "a" else None for k, how in enumerate(layout)
    )
    out = "bool" if name == "lt" else dtype
    width = 16 // kernels.DTYPES[dtype].storage.itemsize
    form = elementwise.Form(width, 0, layout, (out,), ins, dtype)
    return compiler.ptx(elementwise.source(variant.loops, form), target)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", LINTED)
def test_a_contiguous_kernel_is_wide_single_and_without_calls(name, dtype):
    for target in ("sm_80", "sm_90"):
        code = contiguous_ptx(name, dtype, target)
        assert f".target {target}" in code
        assert re.search(r"ld\.global\.v4\.[fu]32", code)  # 16 bytes
        if name != "lt":
            assert re.search(r"st\.global\.v4\.[fu]32", code)
        assert not re.search(r"\.f64|\.local|\bcall\b", code), "double precision, memory of the lane's own, or a call"
        assert ".extern" not in code  # no symbol is left open
        registers = sum(int(n) for n in re.findall(r"\.reg \.(?:f32|b32)\s+%\w+<(\d+)>", code))
        assert registers < 700  # of the virtual machine; the least that a lane computes is in the hundreds


@pytest.mark.parametrize("kind", ["rows", "row_pieces", "row_total", "columns", "column_pieces"])
def test_reductions_of_floats_use_no_double_precision(kind):
    width = 4 if kind in ("rows", "row_pieces") else 1
    source = reduce.source(kernels.MEAN, reduce.Form(kind, width, 1, 1, "float32", "float32"))
    code = compiler.ptx(source, "sm_80")
    assert not re.search(r"\.f64|\.local|\bcall\b", code)
    assert ("shfl.sync" in code) == kind.startswith("row") and re.search(r"bar(rier)?\.sync", code)
    assert ("ld.global.v4.f32" in code) == (width == 4)


def test_machine_code_is_made_without_a_gpu():
    source = sources()["sum_rows"]
    assert compiler.cubin(source, "sm_90")[:4] == b"\x7fELF" == compiler.cubin(source, "sm_90")[:4]


def test_the_kept_texts_are_those_of_the_kernels():
    for name, source in sources().items():
        pattern = re.compile(r"\.entry (\w+)\(|\.param \.(\w+)")
        assert pattern.findall(text(name)) == pattern.findall(compiler.ptx(source)), "run tests/cuda/texts.py again"


def test_a_cache_is_read_without_the_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("REDISPATCH_CACHE_DIR", str(tmp_path))
    source = sources()["axpy"]
    code = compiler.ptx(source, "sm_90")
    monkeypatch.setattr(compiler, "available", lambda: False)
    monkeypatch.setattr(compiler, "versions", lambda own=False: "own 1.0" if own else "")
    assert compiler.ptx(source, "sm_90") == code
    (file,) = tmp_path.glob("*.ptx")
    file.write_text(file.read_text().replace("st.global", "ld.global"))
    other = compiler.ptx(source, "sm_90")  # damaged: as if it were not there, and the own translator makes another
    assert (
        other != code
        and "ld.global.v4.b32" in other
        and "by: own 1.0" in max(tmp_path.glob("*.ptx"), key=lambda one: one.stat().st_mtime_ns).read_text()
    )


def test_another_compilers_text_is_made_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("REDISPATCH_CACHE_DIR", str(tmp_path))
    source = sources()["axpy"]
    compiler.ptx(source)
    (file,) = tmp_path.glob("*.ptx")
    file.write_text(re.sub("by: .*?   seal", "by: another 1.0   seal", file.read_text()))
    compiler.ptx(source)
    assert f"by: {compiler.versions()}" in file.read_text()


def test_what_cannot_be_compiled_is_not_implemented(simulator):
    def spelled(x):
        return x.spelled_backwards()

    loops = cuda.CUDAElementwise(kernels.Elementwise("spelled", spelled))
    block = operands.operand(rd.ones(3, device="cuda"))
    with pytest.raises(NotImplementedError, match=r"spelled_contiguous has no CUDA .* \(TypingError: .*\.cpu\(\)"):
        loops.launch([block], [block], None)


PLACED = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry placed(.param .u64 out, .param .f64 value) {
    .reg .b64 %a; .reg .f64 %x;
    ld.param.u64 %a, [out];
    ld.param.f64 %x, [value];
    st.global.f64 [%a], %x;
    ret;
}
"""


def test_an_argument_of_another_kind_is_refused_as_a_card_would_misread_it(simulator):
    kernel, x = (simulator.device.load(PLACED), "placed"), rd.zeros(1, dtype=rd.float64, device="cuda")
    simulator.launch(kernel, (1, 1, 1), (1, 1, 1), [x.data_ptr(), 2.5])
    assert x.item() == 2.5
    for wrong in ([x.data_ptr(), 2], [x.data_ptr(), True], [float(x.data_ptr()), 2.5]):
        with pytest.raises(TypeError, match=r"placed: .* and the kernel takes a [fu]64"):
            simulator.launch(kernel, (1, 1, 1), (1, 1, 1), wrong)


def python(folder, *arguments, **environment):
    """Returns what a new process prints, with compiled kernels in `folder`."""
    known = {**os.environ, "REDISPATCH_CACHE_DIR": str(folder), **environment}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=known, check=True).stdout


def test_a_cache_is_filled_for_a_card_that_is_not_there(tmp_path):  # 4 s: a process that imports two compilers
    told = python(tmp_path, *"-m redispatch.cache warm --cuda sm_90 --operators neg --dtypes float32".split())
    assert re.search(r"\d+ kernels more", told) and list(tmp_path.glob("*.cubin"))
    listed = python(tmp_path, "-m", "redispatch.cache", "list")
    assert "neg_contiguous(int64, float32*, float32*) for sm_90" in listed
    assert "removed" in python(tmp_path, "-m", "redispatch.cache", "clear") and not list(tmp_path.glob("*.cubin"))


def test_a_cache_is_filled_with_what_a_program_needs(tmp_path):  # 6 s: as above
    program = tmp_path / "train.py"
    program.write_text(
        "import sys, helper, redispatch as rd\n"
        "x = rd.ones(3, device='cuda', requires_grad=True)\n"
        "x.tanh().sum().backward()\n"
        "print(__name__, sys.argv[1:], x.grad.sum().item())\n"
    )
    (tmp_path / "helper.py").write_text("")  # it imports what lies beside it
    told = python(tmp_path, "-m", "redispatch.cache", *f"warm --cuda sm_90 --program {program} --steps 1".split())
    assert "__main__ ['--steps', '1'] 0.0" in told and re.search(r"\d+ kernels more", told)
    listed = python(tmp_path, "-m", "redispatch.cache", "list")
    assert all(f"{name}_contiguous(" in listed for name in ("tanh", "tanh_backward"))


def test_what_was_compiled_is_told_when_a_program_fails(tmp_path):  # 4 s: as above
    program = tmp_path / "train.py"
    program.write_text("import redispatch as rd; rd.ones(3, device='cuda').neg(); 1 / 0")
    words = ["-m", "redispatch.cache", *f"warm --cuda sm_90 --program {program}".split()]
    with pytest.raises(subprocess.CalledProcessError) as failed:
        python(tmp_path, *words)
    assert re.search(r"\d+ kernels more", failed.value.stdout) and "ZeroDivisionError" in failed.value.stderr


def test_a_program_runs_on_the_simulator_by_a_word_in_the_environment(tmp_path):  # 4 s: as above
    program = (
        "import redispatch as rd; x = rd.arange(4.0).cuda(); print((x * 2).sum().item(), rd.cuda.get_device_name())"
    )
    assert python(tmp_path, "-c", program, REDISPATCH_CUDA="sim") == "12.0 simulator\n"


def test_names_that_numba_cuda_misses_in_numpy_are_lent_to_it(monkeypatch):
    monkeypatch.delattr("numpy.row_stack", raising=False)  # as in numpy 2.5, where every compilation failed
    with compiler.compiling_for((8, 0)):
        assert numpy.row_stack is numpy.vstack
    assert not hasattr(numpy, "row_stack")


def test_a_copy_on_a_device_broadcasts_converts_and_keeps_apart(simulator):
    x, row = rd.zeros(3, 4, device="cuda"), rd.arange(4)
    assert x.copy_(row.cuda()) is x and x.tolist() == [[0, 1, 2, 3]] * 3
    x[1:].copy_(x[:1] + 1)
    assert x[2].tolist() == [1, 2, 3, 4]
    z = rd.tensor([1 + 2j, 3j]).cuda()
    assert rd.empty(2, dtype=rd.complex64, device="cuda").copy_(z.conj()).tolist() == [1 - 2j, -3j]
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        x[:1].expand(3, 4).copy_(x)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x[0].copy_(x)
    assert x.clone().tolist() == x.tolist() and x.t().clone().stride() == (1, 4) and x.half().dtype is rd.float16
