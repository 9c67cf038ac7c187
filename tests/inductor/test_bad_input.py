"""Compiled graphs with inputs, caches, threads and signals that are not as they should be."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import weakref

import llvmlite.binding as llvm
import pytest

import redispatch as rd
from redispatch._inductor import compile_fx_inner
from redispatch.dispatch import disk
from redispatch.fx import Interpreter
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.kernels.engine import compile as compiling
from redispatch.nn import functional as F
from tests.drawing import draw as drawn
from tests.guarded import isolated, placed
from tests.inductor.programs import Program, is_exact, same_bits


def compiled(function, *inputs):
    return compile_fx_inner(make_fx(function)(*inputs), inputs)


# Inputs that it is not made for ---------------------------------------------------------------------------------------


def weighted(x, w, b):
    return (x @ w + b).relu().sum(1)


@pytest.mark.parametrize(
    "inputs",
    [
        (rd.randn(3, 5), rd.randn(4, 2), rd.randn(2)),
        (rd.randn(3, 4), rd.randn(4, 2), rd.randn(3)),
        (rd.randn(3, 4), rd.randn(4, 2, dtype=rd.float64), rd.randn(2)),
        (rd.randn(3, 4), rd.randn(4, 2), rd.randn(2, 3, 5)),
        (rd.randn(3, 4), rd.empty(4, 2, device="meta"), rd.randn(2)),
        (rd.randn(3), rd.randn(4, 2), rd.randn(2)),
        (None, rd.randn(4, 2), rd.randn(2)),
        ("x", rd.randn(4, 2), rd.randn(2)),
    ],
)
def test_what_eager_refuses_is_refused_with_its_words(inputs):
    graph = compiled(weighted, rd.randn(3, 4), rd.randn(4, 2), rd.randn(2))
    graph(rd.randn(3, 4), rd.randn(4, 2), rd.randn(2))
    with pytest.raises(Exception) as expected:
        Interpreter(graph.module).run(*inputs)
    with pytest.raises(expected.type) as found:
        graph(*inputs)
    assert str(found.value) == str(expected.value)


def test_what_eager_takes_is_taken():
    graph = compiled(weighted, rd.randn(3, 4), rd.randn(4, 2), rd.randn(2))
    x, w, b = rd.randn(7, 4), rd.randn(2, 4).t(), rd.randn(2)
    rd.testing.assert_close(graph(x, w, b), weighted(x, w, b))


# An index beyond its array --------------------------------------------------------------------------------------------


def rows(table, index):
    return F.embedding(index, table * 2).exp()


def elements(table, index):
    return (table + 1).gather(1, index) * 3


FAR = [4, -1, 5, 2**31, 2**62, -(2**63), 2**63 - 1]


@pytest.mark.parametrize("program", [rows, elements])
@pytest.mark.parametrize("columns", [3, 3000])  # in a routine, and by itself
def test_an_index_beyond_its_array_names_node_and_line(program, columns):
    table, index = rd.randn(4, 4), rd.zeros(4, columns, dtype=rd.int64)
    if program is rows and columns > 3:
        table = rd.randn(4, 40)
    graph = compiled(program, table, index)
    rd.testing.assert_close(graph(table, index), program(table, index))
    for number in FAR:
        wrong = index.clone()
        wrong[-1, -1] = number
        with pytest.raises(IndexError, match=f"index {number} is out of bounds for dimension . with size 4") as error:
            graph(table, wrong)
        node = "embedding" if program is rows else "gather"
        line = "F.embedding(index, table * 2)" if program is rows else "(table + 1).gather(1, index)"
        assert f"{node} = aten.{node}.default" in str(error.value) and line in str(error.value)
        assert __file__ in str(error.value)
    rd.testing.assert_close(graph(table, index), program(table, index))


def test_nothing_beside_the_arrays_is_touched():
    """In memory between pages that nobody may touch; `isolated` tells of whoever does."""
    calls = [(program, number) for program in (rows, elements) for number in FAR]
    graphs = {}
    for program in (rows, elements):
        table, index = rd.randn(4, 4), rd.zeros(4, 3, dtype=rd.int64)
        graphs[program] = compiled(program, table, index)
        graphs[program](table, index)

    def work(number):
        program, wrong = calls[number]
        table, index = rd.randn(4, 4), rd.zeros(4, 3, dtype=rd.int64)
        index[1, 2] = wrong
        try:
            graphs[program](placed(table), placed(index))
        except IndexError:
            return None
        return "no error"

    assert list(isolated(work, len(calls), seconds=20)) == []


def test_programs_at_random_stay_in_their_memory():
    made = []
    for seed in drawn(range(2000), "guarded programs", count=12):
        program = Program(seed)
        module = make_fx(program.function)(*program.inputs)
        graph = compile_fx_inner(module, program.inputs)
        graph(*program.inputs)
        made.append((seed, graph, Interpreter(module).run(*program.inputs), program.inputs))

    def work(number):
        seed, graph, wanted, inputs = made[number]
        found = graph(*[placed(one) for one in inputs])
        if is_exact(graph):
            for one, other in zip(found, wanted, strict=True):
                same_bits(one, other)
        return None

    assert list(isolated(work, len(made), seconds=60)) == []


# What is on disk ------------------------------------------------------------------------------------------------------

PROGRAM = """
import os, signal, sys, warnings
import redispatch as rd
from redispatch._inductor import compile_fx_inner
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.kernels.engine import compile as compiling

function = lambda x: ((x * 2).tanh() + x.exp()).sum(-1)
x = rd.randn(5, 7)
module = make_fx(function)(x)
wanted = function(x)
x * 3  # the library's own code is on disk now
built = compiling._compile
def counted(*args):
    print("compiled")
    return built(*args)
compiling._compile = counted
{before}
graph = compile_fx_inner(module, [x])
assert rd.allclose(graph(x), wanted)
print("right")
"""

KILLED = """
def killed(*names):
    os.kill(os.getpid(), signal.SIGKILL)
os.replace = killed
"""


def run(folder, before="", **environment):
    """Runs the program in a process of its own: what it printed, its warnings, and its exit status."""
    environment = {**os.environ, "REDISPATCH_CACHE_DIR": str(folder), **environment}
    environment = {name: value for name, value in environment.items() if value}
    script = PROGRAM.format(before=textwrap.dedent(before))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    return done.stdout.split(), done.stderr, done.returncode


def test_the_cache_may_be_damaged_and_a_process_may_be_killed_while_it_stores(tmp_path):
    folder = tmp_path / "kernels"
    folder.mkdir(mode=0o700)
    run(folder)
    (source,) = [one for one in folder.glob("fused_*.py") if "exp" in one.name]
    (kernel,) = folder.glob(f"{source.stem[-12:]}*.kernel")
    whole = kernel.read_bytes()

    kernel.write_bytes(whole[: len(whole) // 2])
    said, warned, status = run(folder)
    assert (said, status) == (["compiled", "right"], 0)
    assert warned.count("RuntimeWarning") == 1 and "is damaged" in warned
    assert kernel.read_bytes() == whole

    kernel.unlink()
    said, _, status = run(folder, KILLED)
    assert (said, status) == (["compiled"], -signal.SIGKILL) and not kernel.exists()
    assert run(folder) == (["compiled", "right"], "", 0) and kernel.read_bytes() == whole


def test_a_home_that_cannot_be_written_is_one_warning(tmp_path):
    (tmp_path / "home").write_text("a file")
    said, warned, status = run("", HOME=str(tmp_path / "home"), XDG_CACHE_HOME="", REDISPATCH_CACHE_DIR="")
    assert (said[-1], status) == ("right", 0)
    assert warned.count("RuntimeWarning") == 1 and "cannot be kept on disk" in warned


# Threads, signals, memory ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [True, False])
def test_eight_threads_at_the_first_call_compile_once(tmp_path, monkeypatch, kept):
    monkeypatch.setenv("REDISPATCH_CACHE_DIR", str(tmp_path) if kept else "/dev/null/none")
    monkeypatch.setattr(disk, "_told", {"kept"})
    graph = compiled(lambda x: (x * (1.25 + kept)).tanh() + x.exp(), rd.randn(2000))
    compile_once, count = compiling._compile, []

    def counted(*args):
        count.append(args)
        return compile_once(*args)

    monkeypatch.setattr(compiling, "_compile", counted)
    x, found, gate = rd.randn(2000), [], threading.Barrier(8)

    def call():
        gate.wait()
        found.append(graph(x))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    wanted = (x * (1.25 + kept)).tanh() + x.exp()
    assert len(count) == 1 and len(found) == 8 and all(rd.equal(one, wanted) for one in found)


def test_ctrl_c_between_steps_leaves_all_as_it_was():
    """Interrupted at many places, among them in the middle of large loops; the next call is right each time."""

    def program(x, w):
        h = ((x @ w).tanh() * 2).softmax(-1)
        return (h @ w.t()).exp().sum(0), h.amax(1)

    x, w = rd.randn(600, 300), rd.randn(300, 400) / 20
    graph = compiled(program, x, w)
    wanted = graph(x, w)
    before, interrupted = (x.clone(), w.clone()), 0
    former = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for number in range(60):
            signal.setitimer(signal.ITIMER_REAL, 0.0002 + number * 0.0001)
            try:
                for _ in range(50):
                    graph(x, w)
            except KeyboardInterrupt:
                interrupted += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert all(map(rd.equal, graph(x, w), wanted))
    finally:
        signal.signal(signal.SIGALRM, former)
    assert interrupted > 30 and rd.equal(x, before[0]) and rd.equal(w, before[1])


def test_engines_go_with_their_graph(monkeypatch):
    make, engines = llvm.create_mcjit_compiler, []

    def made(*args):
        engine = make(*args)
        engines.append(weakref.ref(engine))
        return engine

    x = rd.randn(300, 20)
    graph = compiled(lambda x: ((x * 3).tanh() + x.exp()).sum(-1), x)
    monkeypatch.setattr(llvm, "create_mcjit_compiler", made)
    graph(x)
    assert len(engines) == 1
    run = graph.run
    del graph
    gc.collect()
    assert engines[0]() is not None
    rd.testing.assert_close(run(x), ((x * 3).tanh() + x.exp()).sum(-1))
    del run
    gc.collect()
    assert engines[0]() is None
