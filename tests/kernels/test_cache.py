"""Compiled kernels: the instructions they consist of, the cache that keeps them, and how they get ready."""

import os
import platform
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redispatch.dispatch import disk as _disk
from redispatch.kernels import (
    SOFTMAX,
    SUM,
    Elementwise,
    Operand,
    busiest_loop,
    contiguous_strides,
    ready_addmm,
    ready_cat,
    ready_copy,
    ready_extreme,
    ready_fill,
    ready_matmul,
)
from redispatch.kernels.cpu.blas import FEW
from redispatch.kernels.engine import cache
from redispatch.kernels.engine import compile as compile_
from redispatch.kernels.engine.compile import is_vector, loops
from redispatch.kernels.engine.program import Program

from .layouts import dense, ends, filled, layouts, values


def shifted(x):
    return helper(x) + 1


def helper(x):
    return x * 2


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("REDISPATCH_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setattr(_disk, "_told", set())
    return tmp_path / "kernels"


def run_shifted():
    out = dense(np.zeros(3, np.float32))
    Elementwise("shifted", shifted).run(out, dense(np.array([1, 2, 3], np.float32)))
    return out.array.tolist()


def test_a_kernel_is_kept_with_its_source_beside_it_in_a_private_directory(folder):
    assert run_shifted() == [3, 5, 7]
    (kernel,), (source,) = folder.glob("*.kernel"), folder.glob("*.py")
    assert folder.stat().st_mode & 0o777 == 0o700
    text = source.read_text()
    assert "return x * float32(2)" in text and text.startswith("# shifted(int64, int64, float32[]")
    compile(text, str(source), "exec")
    before = kernel.stat().st_mtime_ns
    assert run_shifted() == [3, 5, 7]
    assert kernel.stat().st_mtime_ns == before


def test_a_kernel_says_what_it_cannot_take(folder):
    def scaled(lo, hi, out, x, by, bits):
        for i in range(lo, hi):
            out[i] = x[i] * by + bits

    entry = compile_.Kernel(scaled).entry("int64", "int64", "float32[]", "float32[]", "float32", "uint64")
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    for wrong, error, words in (
        ((0, 4, out, x, 2.0), TypeError, "a kernel of 6 arguments was called with 5"),
        ((0, 4, out, [1.0], 2.0, 0), TypeError, "argument 3 of a kernel is no array"),
        ((0, "4", out, x, 2.0, 0), TypeError, "'str' object"),
        ((0, 4, out, x, "2", 0), TypeError, "must be real number"),
        ((0, 1 << 64, out, x, 2.0, 0), OverflowError, "too big|too large"),
    ):
        with pytest.raises(error, match=words):
            entry(*wrong)
    assert out.tolist() == [0, 0, 0, 0]
    assert entry(np.int64(0), 4, out, np.asarray(x).view(np.recarray), np.float32(-1), -1 % 2**64) is None
    assert out[0] == np.float32(2**64 - 1) and entry(0, 4, out, x, -1, 0) is None and out.tolist() == [0, -1, -2, -3]
    assert entry(np.float32(1.9), 2.9, out, x, 5, 0) is None and out.tolist() == [0, 5, -2, -3]  # cut off
    del wrong
    holders = sys.getrefcount(None)
    for _ in range(1000):
        entry(0, 4, out, x, 1, 0)
    assert sys.getrefcount(x) == 2 and abs(sys.getrefcount(None) - holders) < 500


def test_kernels_are_compiled_and_linked_without_numba(folder):
    program = (
        "import sys, redispatch as rd; x = rd.arange(20.0); print((x * x).sum(), rd.exp(x)[1], 'numba' in sys.modules)"
    )
    first, second = (subprocess.run([sys.executable, "-c", program], capture_output=True, text=True) for _ in range(2))
    assert first.stdout == "tensor(2470.) tensor(2.7183) False\n", first.stderr
    assert second.stdout == "tensor(2470.) tensor(2.7183) False\n", second.stderr


def test_a_damaged_file_is_a_miss_of_which_one_warning_tells(folder, recwarn):
    run_shifted()
    (kernel,) = folder.glob("*.kernel")
    whole = kernel.read_bytes()
    damaged = [b"", whole[:10], whole[:-1], whole + b"x"]
    for place in range(0, len(whole), len(whole) // 10):
        damaged.append(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    for content in damaged:
        kernel.write_bytes(content)
        assert cache.load(kernel.stem) is None
    assert run_shifted() == [3, 5, 7]
    assert cache.load(kernel.stem) is not None
    (warning,) = recwarn
    assert "is damaged" in str(warning.message) and warning.category is RuntimeWarning


def test_a_file_under_another_kernels_name_is_a_miss(folder):
    run_shifted()
    (kernel,) = folder.glob("*.kernel")
    kernel.rename(folder / ("0" * 64 + ".kernel"))
    with pytest.warns(RuntimeWarning, match="was kept for something else"):
        assert cache.load("0" * 64) is None


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_an_interrupt_beside_the_rename_of_a_file_is_not_lost(tmp_path, monkeypatch, before):
    rename = os.replace

    def interrupted(*names):
        if not before:
            rename(*names)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _disk.write_whole(tmp_path / "kept", b"content")
    assert [path.name for path in tmp_path.iterdir()] == ([] if before else ["kept"])


def test_an_edit_in_a_helper_of_a_helper_changes_the_key():
    def program(body):
        made = Program("float32")
        made.add(shifted, {"helper": body})
        return made.digest()

    def other(x):
        return x * 3

    def renamed(x):
        return helper(x)

    assert len({program(helper), program(other), program(renamed)}) == 3
    assert program(helper) == program(helper)


def test_where_nothing_can_be_written_kernels_run_and_one_warning_says_so(folder):
    folder.write_text("a file where the directory should be")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert run_shifted() == [3, 5, 7]
        assert run_shifted() == [3, 5, 7]
    assert [str(w.message).split(" (")[0] for w in caught] == ["compiled kernels cannot be kept on disk"]


def test_a_directory_that_others_can_write_is_refused(folder):
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="can be written by other users"):
        assert cache.directory() is None


def test_a_directory_of_another_user_is_refused(folder, monkeypatch):
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    with pytest.warns(RuntimeWarning, match="owned by another user"):
        assert cache.directory() is None


def run_child(program, **environment):
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout


def test_importing_kernels_does_not_import_numba():
    assert run_child("import sys, redispatch.kernels; print('numba' in sys.modules)") == "False\n"


def test_a_kernel_loads_in_a_process_that_compiles_nothing(folder):
    program = (
        "import sys, numpy as np\n"
        "from redispatch.kernels import Operand, fill\n"
        "x = Operand(np.zeros(3, np.float32), 'float32', (3,), (1,))\n"
        "fill(x, 5)\n"
        "print(x.array.tolist(), 'numba.core.typing.arraydecl' in sys.modules)\n"
    )
    first, second = run_child(program), run_child(program)
    assert first.startswith("[5.0, 5.0, 5.0]") and second.startswith("[5.0, 5.0, 5.0]")
    assert len(list(folder.glob("*.kernel"))) == 1


def test_kernels_mean_the_same_as_plain_python(folder):
    program = (
        "import numpy as np\n"
        "from redispatch.kernels import Operand, SUM, copy\n"
        "x = Operand(np.arange(6, dtype=np.float32), 'float32', (2, 3), (1, 2))\n"
        "out = Operand(np.zeros(6, np.uint16), 'bfloat16', (2, 3), (3, 1))\n"
        "total = Operand(np.zeros(2, np.float32), 'float32', (2,), (1,))\n"
        "copy(out, x); SUM.run(total, out, (1,)); print(out.array.tolist(), total.array.tolist())\n"
    )
    assert run_child(program, NUMBA_DISABLE_JIT="1") == run_child(program)


def test_many_processes_that_compile_at_once_leave_whole_files_alone(folder):
    program = (
        "import numpy as np\n"
        "from redispatch.kernels import Elementwise, Operand\n"
        "from redispatch.kernels import cache\n"
        "out, x = (Operand(np.ones(4, np.float32), 'float32', (4,), (1,)) for _ in range(2))\n"
        "def raced(x): return x + 41\n"
    )
    file = folder / "raced.py"
    folder.mkdir(exist_ok=True, mode=0o700)
    file.write_text(program + "Elementwise('raced', raced).run(out, x)\nprint(out.array.tolist())\n")
    environment = {**os.environ, "REDISPATCH_CACHE_DIR": str(folder)}
    children = [
        subprocess.Popen([sys.executable, str(file)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    for child in children:
        out, err = child.communicate(timeout=120)
        assert (child.returncode, out.decode().strip()) == (0, str([42.0] * 4)), err.decode()
    assert len(cache.kept()) == 1 and not list(folder.glob("*.new"))
    assert cache.kept()[0].title.startswith("raced(int64, int64, float32[]")
    cache.clear()
    assert not cache.kept() and file.exists()  # what is not ours stays


def test_a_second_of_compiling_is_told_once(monkeypatch, capsys):
    monkeypatch.setattr(compile_, "_seconds", 0.0)
    monkeypatch.setattr(compile_, "_compiled", [])
    monkeypatch.setenv("REDISPATCH_QUIET", "0")
    for seconds in (0.6, 0.3, 0.3, 5.0):
        compile_._tell("shifted", seconds)
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert told.startswith("redispatch: compiled 3 kernels on first use, in 1.2 s (shifted, shifted, shifted)")
    monkeypatch.setattr(compile_, "_seconds", 0.0)
    monkeypatch.setenv("REDISPATCH_QUIET", "1")
    compile_._tell("shifted", 5.0)
    assert not capsys.readouterr().err


# Finding the loop that does the work, in made-up assembly and in what this machine's compiler writes ------------------

X86 = """
	.text
kernel:
	xorl	%eax, %eax
.LBB0_1:
	vmovups	(%rdi,%rax,4), %ymm0
.LBB0_2:
	vaddps	%ymm0, %ymm1, %ymm1
	decq	%rcx
	jne	.LBB0_2
	addq	$8, %rax
	jb	.LBB0_1
.LBB0_3:
	vaddss	(%rdi,%rax,4), %xmm0, %xmm0
	incq	%rax
	cmpq	%rax, %rdx
	jne	.LBB0_3
	jmp	.LBB0_4
.LBB0_4:
	retq
"""

ARM = """
kernel:
.LBB0_1:
	ldp	q0, q1, [x8, #-16]
	fadd	v0.4s, v0.4s, v2.4s
	subs	x9, x9, #8
	b.ne	.LBB0_1
.LBB0_2:
	fadd	s0, s0, s1
	cbnz	x9, .LBB0_2
	ret
"""


def double(x):
    return x + x


def test_the_innermost_loops_are_found():
    assert [lines[0] for lines in loops(X86)] == [".LBB0_2:", ".LBB0_3:"]
    assert busiest_loop(X86).splitlines()[1] == "	vaddps	%ymm0, %ymm1, %ymm1"
    assert busiest_loop(ARM).splitlines()[-1] == "	b.ne	.LBB0_1"
    assert busiest_loop("kernel:\n	ret\n") == ""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64", "arm64", "aarch64"), reason="an unknown processor")
def test_a_flat_loop_works_on_several_elements_at_once():
    loop = busiest_loop(Elementwise("double", double).assembly("flat", "a", ("float32",), ("float32",)))
    assert any(map(is_vector, loop.splitlines())), loop


# Kernels for callers that remember them -------------------------------------------------------------------------------

# What is made ready for some operands serves all that look alike.


def empty(shape, dtype):
    shape = tuple(shape)
    return Operand(np.full(max(int(np.prod(shape)), 1), 99, dtype), dtype, shape, contiguous_strides(shape))


@st.composite
def matrices(draw, batch, rows, columns):
    """A matrix, or a batch of them, that lies row by row, column by column, stepped or expanded."""
    shape = (*batch, rows, columns)
    return draw(layouts(shape))


@given(st.data(), st.sampled_from(["float32", "float64", "int64"]), st.integers(0, 99))
def test_products_of_matrices_follow_numpy_whatever_their_size_and_strides(data, dtype, seed):
    n, k, m = (data.draw(st.sampled_from([0, 1, 2, 3, 5, 8, 20])) for _ in range(3))
    batch = data.draw(st.sampled_from([(), (3,)]))
    rng = np.random.default_rng(seed)
    layout_a, layout_b = data.draw(matrices(batch, n, k)), data.draw(matrices(batch, k, m))
    a, b = filled(layout_a, dtype, rng), filled(layout_b, dtype, rng)
    out, bias = empty((*batch, n, m), dtype), filled(data.draw(matrices(batch, n, m)), dtype, rng)
    multiply, add = ready_matmul(out, a, b), ready_addmm(out, bias, a, b, alpha=2, beta=3)
    for x in (a, filled(layout_a, dtype, rng)):  # the second time with others that look alike
        product = np.matmul(values(x), values(b))
        multiply(*ends(out, x, b))
        np.testing.assert_array_equal(values(out), product)
        add(*ends(out, bias, x, b))
        np.testing.assert_array_equal(values(out), 2 * product + 3 * values(bias))


def test_a_bias_times_zero_is_not_read():
    a, bias = dense(np.ones((2, 2), np.float32)), dense(np.full((2, 2), np.nan, np.float32))
    out = empty((2, 2), "float32")
    ready_addmm(out, bias, a, a, beta=0)(*ends(out, bias, a, a))
    assert values(out).tolist() == [[2, 2], [2, 2]]


def test_a_small_product_and_a_large_one_agree_with_each_other():
    rng = np.random.default_rng(0)
    k = FEW // 8
    rows, columns = rng.random((2, k), dtype=np.float32), rng.random((k, 4), dtype=np.float32)
    small, large = empty((2, 4), "float32"), empty((40, 4), "float32")
    ready_matmul(small, dense(rows), dense(columns))(*ends(small, dense(rows), dense(columns)))
    many = dense(np.tile(rows, (20, 1)))
    ready_matmul(large, many, dense(columns))(*ends(large, many, dense(columns)))
    np.testing.assert_allclose(np.tile(values(small), (20, 1)), values(large), rtol=1e-5)


@given(st.data(), st.integers(0, 2), st.integers(0, 99), st.sampled_from([1, 3, 9]))
def test_parts_are_put_one_behind_the_other_as_numpy_does(data, axis, seed, count):
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(count):
        shape = [2, 3, 2]
        shape[axis] = data.draw(st.integers(0, 3))
        even = data.draw(st.booleans())
        layout = (tuple(shape), contiguous_strides(tuple(shape)), 1, 19) if even else data.draw(layouts(tuple(shape)))
        parts.append(filled(layout, "float32", rng))
    expected = np.concatenate([values(x) for x in parts], axis)
    out = empty(expected.shape, "float32")
    ready_cat(out, parts, axis)(*ends(out, *parts))
    np.testing.assert_array_equal(values(out), expected)


def test_parts_of_another_dtype_are_converted_and_empty_vectors_left_out():
    parts = [dense(np.ones((1, 2), np.int64)), dense(np.zeros(0, np.float32)), dense(np.full((2, 2), 0.5, np.float32))]
    out = empty((3, 2), "float32")
    ready_cat(out, parts, 0)(*ends(out, *parts))
    assert values(out).tolist() == [[1, 1], [0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "bool"])
def test_a_copy_that_was_made_ready_serves_any_offset(dtype):
    source = dense(np.arange(6) % 2, dtype)
    x, out = source._replace(shape=(2,), strides=(2,)), dense(np.zeros(2), dtype)
    move = ready_copy(out, x)
    for offset in (0, 1, 3):
        move(out.array, 0, x.array, offset)
        np.testing.assert_array_equal(values(out), values(source)[offset : offset + 3 : 2])


def test_a_fill_that_was_made_ready_serves_any_number():
    x = dense(np.zeros((2, 3), np.float32))._replace(shape=(2, 2), strides=(3, 1))
    fill = ready_fill(x, 0.0)
    for number in (1.5, -2.0):
        fill(x.array, 1, number)
        assert x.array.tolist() == [0, number, number, 0, number, number]


def test_reductions_over_one_dimension_take_the_same_sum_whatever_loop_runs():
    rng = np.random.default_rng(0)
    for shape in [(5, 7), (40, 60), (3000, 4)]:
        x = dense(rng.integers(-9, 9, shape).astype(np.float32))
        for axis in (0, 1):
            expected = values(x).sum(axis)
            out = empty(expected.shape, "float32")
            SUM.ready(out, x, (axis,))(*ends(out, x))
            np.testing.assert_array_equal(values(out), expected)


def test_softmax_of_few_elements_is_that_of_many():
    rng = np.random.default_rng(0)
    for shape in [(3, 4), (30, 40)]:
        x = dense(rng.random(shape, dtype=np.float32))
        for axis in (0, 1):
            out, grown = empty(shape, "float32"), np.exp(values(x))
            SOFTMAX.ready(out, x, axis)(*ends(out, x))
            np.testing.assert_allclose(values(out), grown / grown.sum(axis, keepdims=True), rtol=1e-5)


def test_places_are_found_without_anyone_asking_for_values():
    x = dense(np.array([[3, 1, 2], [0, 5, 5]], np.float32))
    out = empty((2,), "int64")
    find = ready_extreme(None, out, x, (1,), largest=True)
    find(*ends(out, x))
    assert values(out).tolist() == [0, 1]
