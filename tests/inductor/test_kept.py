"""Compiled graphs that an earlier process has kept on disk, and what is not taken from there."""

import math
import os
import subprocess
import sys
import warnings

import pytest

import redispatch as rd
from redispatch._inductor import compile_fx_inner, decompositions, kept
from redispatch._inductor.compile_fx import CompiledFxGraph
from redispatch.dispatch import disk
from redispatch.fx import Interpreter
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.kernels.engine import cache
from redispatch.kernels.engine import compile as compiling
from redispatch.library import Library
from redispatch.nn import functional as F
from tests.drawing import draw as drawn
from tests.inductor.programs import Program, is_exact, same_bits


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A directory of its own for what is kept."""
    path = tmp_path / "kept"
    path.mkdir(mode=0o700)
    monkeypatch.setenv("REDISPATCH_CACHE_DIR", str(path))
    monkeypatch.setattr(disk, "_told", set())
    return path


def compiled(function, *inputs):
    graph = compile_fx_inner(make_fx(function)(*inputs), inputs)
    graph(*inputs)
    return graph


def taken(function, *inputs):
    """The graph that is taken from disk: an error where anything of it is lowered."""
    compiled(function, *inputs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CompiledFxGraph, "lower", lambda graph: pytest.fail("lowered again"))
        return compiled(function, *inputs)


@pytest.mark.parametrize("seed", drawn(range(2000), "kept programs", count=15))
def test_programs_at_random_are_taken_from_disk_with_all_their_bits(seed):
    program = Program(seed)
    if not program.steps:
        pytest.skip("nothing was possible with these inputs")
    module = make_fx(program.function)(*program.inputs)
    first, again = (compile_fx_inner(module, program.inputs) for _ in range(2))
    assert first.key is not None and first.record is None
    wanted = first(*program.inputs)
    again = compile_fx_inner(module, program.inputs)
    assert again.record is not None and again.record.text == first.text
    for inputs in (program.inputs, program.fresh()):
        wanted = first(*inputs) if is_exact(first) else Interpreter(module).run(*inputs)
        for a, b in zip(again(*inputs), wanted, strict=True):
            same_bits(a, b) if is_exact(first) else rd.testing.assert_close(a, b, equal_nan=True)
    assert "graph" in vars(first) and again.source() == first.source()


def layers(x, w, labels):
    """A program with all kinds of steps: nests, routines, products, kernels by their calls, Python, constants."""
    h = F.max_pool2d(F.conv2d(x, w).relu(), 2).flatten(1)
    order = h.sort(-1, descending=True)[0] + rd.arange(h.shape[1]) * 0.5
    loss = F.cross_entropy((h @ h.t()).tanh(), labels, label_smoothing=0.1)
    return order, loss, rd.linalg.qr(h)[1] * 2, h.to(rd.float64).sum(0), h.softmax(-1) * math.pi


def test_all_kinds_of_steps_are_taken():
    inputs = rd.randn(3, 1, 8, 8), rd.randn(2, 1, 3, 3), rd.tensor([0, 2, 1])
    for one, other in zip(taken(layers, *inputs)(*inputs), layers(*inputs), strict=True):
        rd.testing.assert_close(one, other)


def test_tensors_of_the_module_are_those_of_this_process():
    for number in (1.0, 2.0):
        table = rd.full((3, 4), number)
        graph = compiled(lambda x, table=table: (x + table, rd.linalg.qr(table)[1]), rd.ones(3, 4))
        assert graph(rd.ones(3, 4))[0].eq(number + 1).all()
    assert graph.record is not None


def test_another_number_of_threads_is_another_graph():
    x, threads, records = rd.randn(300, 300), rd.get_num_threads(), []
    try:
        for count in (1, 2, 1, 2):
            rd.set_num_threads(count)
            graph = compiled(lambda x: (x @ x).tanh().exp() + 1, x)
            records.append(graph.record and graph.record.text)
            for other in (1, 2):
                rd.set_num_threads(other)
                rd.testing.assert_close(graph(x), (x @ x).tanh().exp() + 1)
            assert graph.other.key != graph.key  # which was taken, or kept, too
    finally:
        rd.set_num_threads(threads)
    assert records[0] is None and None not in records[1:] and records[1] == records[3] != records[2]


# Keys -----------------------------------------------------------------------------------------------------------------


def key(function, *inputs):
    graph = object.__new__(CompiledFxGraph)
    graph.module, graph.examples, graph.alone = make_fx(function)(*inputs), inputs, True
    return kept.key_of(graph)


def usual():
    return key(lambda x: x * 2 + 1, rd.ones(4, 6))


OTHERS = {
    "operator": lambda: key(lambda x: x * 2 - 1, rd.ones(4, 6)),
    "number": lambda: key(lambda x: x * 3 + 1, rd.ones(4, 6)),
    "type of number": lambda: key(lambda x: x * 2.0 + 1, rd.ones(4, 6)),
    "truth": lambda: key(lambda x: x * 2 + True, rd.ones(4, 6)),
    "dtype": lambda: key(lambda x: x * 2 + 1, rd.ones(4, 6, dtype=rd.float64)),
    "shape": lambda: key(lambda x: x * 2 + 1, rd.ones(6, 4)),
    "strides": lambda: key(lambda x: x * 2 + 1, rd.ones(6, 4).t()),
    "offset": lambda: key(lambda x: x * 2 + 1, rd.ones(5, 6)[1:]),
    "device": lambda: key(lambda x: x * 2 + 1, rd.ones(4, 6, device="meta")),
    "result": lambda: key(lambda x: (x * 2 + 1, x), rd.ones(4, 6)),
    "input": lambda: key(lambda x, y: x * 2 + 1, rd.ones(4, 6), rd.ones(1)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_key_has_the_graph(name):
    found = OTHERS[name]()
    assert usual() == usual() and found is not None and found != usual()


@pytest.mark.parametrize("pair", [(0.0, -0.0), (math.inf, -math.inf), (0.1, 0.1 + 1e-17 * 2), (1, 1.0), (1, True)])
def test_the_key_has_all_bits_of_numbers(pair):
    one, other = (key(lambda x, n=number: x + n, rd.ones(3)) for number in pair)
    assert (one == other) is (repr(pair[0]) == repr(pair[1]))


def test_the_key_says_whether_elements_are_conjugates():
    x = rd.ones(3, dtype=rd.complex64)
    assert key(lambda x: x * 2, x) != key(lambda x: x * 2, x.conj())


def with_default_dtype():
    rd.set_default_dtype(rd.float64)
    try:
        return usual()
    finally:
        rd.set_default_dtype(rd.float32)


def with_determinism():
    rd.use_deterministic_algorithms(True)
    try:
        return usual()
    finally:
        rd.use_deterministic_algorithms(False)


def under(region):
    module = make_fx(lambda x: x * 2 + 1)(rd.ones(4, 6))
    graph = object.__new__(CompiledFxGraph)
    graph.module, graph.examples, graph.alone = module, [rd.ones(4, 6)], True
    with region:
        return kept.key_of(graph)


@pytest.mark.parametrize(
    "found",
    [with_default_dtype, with_determinism, lambda: under(rd.autocast("cpu")), lambda: under(rd.inference_mode())],
)
def test_the_key_has_the_state(found):
    assert found() not in (None, usual())


@pytest.mark.parametrize("what", ["machine", "sources"])
def test_the_key_has_the_machine_and_the_sources(monkeypatch, what):
    before, machine, sources = usual(), cache._machine(), list(kept.sources())
    if what == "machine":
        monkeypatch.setattr(cache, "_machine", lambda: machine.replace("+sse2", "-sse2") + "-avx")
    else:
        monkeypatch.setattr(kept, "sources", lambda: iter(sources[1:]))
    kept.library.cache_clear()
    try:
        assert usual() not in (None, before)
    finally:
        monkeypatch.undo()
        kept.library.cache_clear()
    assert usual() == before


def test_sources_that_are_newer_than_the_process_are_not_what_runs(monkeypatch):
    monkeypatch.setattr(kept, "STARTED", 0.0)
    kept.library.cache_clear()
    try:
        assert usual() is None
    finally:
        kept.library.cache_clear()


# What a program has changed -------------------------------------------------------------------------------------------


def program(x):
    return F.mse_loss(x * 2, x.exp()) + F.layer_norm(x, (6,)).sum()


def library_impl(patch):
    mine = Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine.impl("mean.dim", lambda x, *args, **kwargs: x.sum() * 0, "CPU")  # of a formula alone
    return mine._destroy


def python_kernel(patch):
    op = rd.ops.aten.mul.Tensor
    op.py_impl(rd._C.DispatchKey.CPU)(lambda x, y: x)

    def undo():
        op.py_kernels.clear()
        op.forget_entries()  # they hold the stop that chooses a Python kernel

    return undo


def registered(patch):
    from redispatch.dispatch.library import impl

    return impl(rd.ops.aten.exp.default, "CPU", lambda x: x, convention="positional", place=__file__ + ":1")


def formula(patch):
    patch.setitem(decompositions.TABLE, rd.ops.aten.exp.default, lambda x: x.exp2())
    return lambda: None


def decomposition(patch):
    mine = decompositions.called_by(rd.ops.aten.mse_loss.default, lambda x, y, reduction: (x - y).abs().mean())
    patch.setitem(decompositions.TABLE, rd.ops.aten.mse_loss.default, mine)  # as `register_decomposition` has it there
    return lambda: None


@pytest.mark.parametrize("change", [library_impl, python_kernel, registered, formula, decomposition])
def test_nothing_is_taken_or_kept_where_a_program_has_changed_operators(monkeypatch, change, folder):
    x = rd.randn(4, 6)
    module = make_fx(program)(x)
    wanted = compile_fx_inner(module, [x])(x)
    assert compile_fx_inner(module, [x]).record is not None
    undo = change(monkeypatch)
    try:
        changed = compile_fx_inner(module, [x])
        assert changed.record is None
        there = sorted(folder.glob("*.graph"))
        changed(x)
        assert sorted(folder.glob("*.graph")) == there
    finally:
        undo()
        monkeypatch.undo()
        os.environ["REDISPATCH_CACHE_DIR"] = str(folder)
    again = compile_fx_inner(module, [x])
    assert again.record is not None and rd.equal(again(x), wanted)


def test_nothing_is_kept_under_a_mode_or_of_what_another_process_does_not_have():
    from redispatch.overrides import TorchFunctionMode

    class Seen(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    assert under(Seen()) is None
    graph = rd.fx.symbolic_trace(lambda x: rd.sin(x))  # no operators' graph
    assert compile_fx_inner(graph, [rd.ones(3)]).key is None


def test_operators_of_programs_are_told_by_their_schema():
    keys = []
    for schema in ("twice(Tensor x) -> Tensor", "twice(Tensor x, int n=2) -> Tensor"):
        mine = Library("kept_test", "FRAGMENT")
        mine.define(schema)
        mine.impl("twice", lambda x, n=2: x * 2, "CompositeExplicitAutograd")
        keys.append(key(lambda x: rd.ops.kept_test.twice.default(x) + 1, rd.ones(3)))
        mine._destroy()
    assert None not in keys and keys[0] != keys[1]


# Files ----------------------------------------------------------------------------------------------------------------


def squared(x):
    return (x * x).tanh() + 0.125


def test_a_damaged_or_foreign_record_is_made_anew_with_one_warning(folder):
    x = rd.randn(5)
    compiled(squared, x)
    compiled(lambda x: x * 3, x)
    (one, other) = folder.glob("*.graph")
    contents = one.read_bytes(), other.read_bytes()
    for number, content in enumerate([contents[0][:-5], contents[1], b"", contents[0].replace(b"def run", b"def fun")]):
        disk._told.clear()
        one.write_bytes(content)
        with pytest.warns(RuntimeWarning, match="is damaged, or was kept for something else") as told:
            for function in (squared, lambda x: x * 3):
                graph = compiled(function, x)
                rd.testing.assert_close(graph(x), function(x))
        assert len(told) == 1 and one.read_bytes() == contents[0], number


def test_a_kernel_that_is_gone_is_compiled_again(folder):
    x = rd.randn(5)
    wanted = compiled(squared, x)(x)
    for one in folder.glob("*.kernel"):
        one.unlink()
    compiling._LINKED.clear()
    graph = compile_fx_inner(make_fx(squared)(x), [x])
    assert graph.record is not None and rd.equal(graph(x), wanted) and list(folder.glob("*.kernel"))


def test_cleared_with_the_kernels(folder):
    compiled(squared, rd.randn(5))
    assert list(folder.glob("*.graph"))
    cache.clear()
    assert not list(folder.glob("*.graph"))


def test_an_index_beyond_its_array_names_the_line_of_this_process():
    table, index = rd.randn(4, 4), rd.zeros(4, 3, dtype=rd.int64)
    graph = taken(lambda table, index: F.embedding(index, table * 2).exp(), table, index)
    with pytest.raises(IndexError, match="index 9 is out of bounds") as error:
        graph(table, index + 9)
    assert __file__ in str(error.value) and "embedding" in str(error.value)


SECOND = """
import redispatch as rd
from redispatch._inductor import compile_fx_inner
from redispatch._inductor.compile_fx import CompiledFxGraph
from redispatch.fx.experimental.proxy_tensor import make_fx
import sys
if sys.argv[1] == "second":
    def refused(*args):
        raise SystemExit("lowered again")
    CompiledFxGraph.lower = refused
x = rd.arange(12.0).view(3, 4)
graph = compile_fx_inner(make_fx(lambda x: (x / 7).softmax(-1) @ x.t())(x), [x])
print(graph(x).tolist())
"""


def test_a_second_process_takes_what_the_first_has_kept():
    first, second = (
        subprocess.run([sys.executable, "-c", SECOND, word], capture_output=True, text=True, check=True).stdout
        for word in ("first", "second")
    )
    assert first == second and first.startswith("[[")
