"""How fast a device is, beside torch on the same one.

Rows that memory bounds are told as a part of the bandwidth that a copy within the device reaches, which is measured
first. A time is the median of rounds between two events; for small operators that of the host, until all is done.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import redispatch as rd

sys.path.append(str(Path(__file__).parents[1] / "bench"))
import compiled  # whose folder is no package

LARGE, SMALL = 64 << 20, 1 << 12  # bytes of an operand
ROUNDS = 21


def between_events(t: Any, call: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Seconds that a device takes for a call, as the median of rounds."""
    for _ in range(3):
        call()
    times = []
    for _ in range(rounds):
        start, end = t.cuda.Event(enable_timing=True), t.cuda.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        t.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1000)
    return statistics.median(times)


def until_done(t: Any, call: Callable[[], Any], loops: int = 1000, rounds: int = 7) -> float:
    """Seconds of a call among many that follow each other, in the best round."""
    call()
    best = float("inf")
    for _ in range(rounds):
        t.cuda.synchronize()
        start = perf_counter()
        for _ in range(loops):
            call()
        t.cuda.synchronize()
        best = min(best, (perf_counter() - start) / loops)
    return best


# --- rows that memory bounds: (bytes moved, call) ---------------------------------------------------------------------


def bound_by_memory(t: Any, nbytes: int) -> dict[str, Callable[[], tuple[int, Callable[[], Any]]]]:
    """Name -> what makes the operands, and says how many bytes a call reads and writes."""
    n = nbytes // 4
    rows = max(n // 4096, 1)
    columns = n // rows

    def vector(dtype: Any = None) -> Any:
        return t.ones(n, device="cuda", dtype=dtype or t.float32)

    def matrix(dtype: Any = None) -> Any:
        return t.ones(rows, columns, device="cuda", dtype=dtype or t.float32)

    def unary(call: Callable[[Any], Any], dtype: Any = None, back: int | None = None) -> Any:
        x = vector(dtype)
        size = x.element_size()
        return n * (size + (size if back is None else back)), lambda: call(x)

    def with_matrix(call: Callable[[Any], Any], moved: Callable[[], int]) -> Any:
        x = matrix()
        return moved(), lambda: call(x)

    def two(call: Callable[[Any, Any], Any], moved: int, other: Callable[[], Any]) -> Any:
        x, y = matrix(), other()
        return moved, lambda: call(x, y)

    whole = 4 * rows * columns
    functional = t.nn.functional
    return {
        "copy": lambda: unary(lambda x: x.clone()),
        "add": lambda: two(lambda x, y: x + y, 3 * whole, matrix),
        "add to itself, float16": lambda: unary(lambda x: x + x, t.float16),
        "gelu": lambda: unary(functional.gelu),
        "gelu bfloat16": lambda: unary(functional.gelu, t.bfloat16),
        "cast to bfloat16": lambda: unary(lambda x: x.to(t.bfloat16), None, 2),
        "cast from bfloat16": lambda: unary(lambda x: x.to(t.float32), t.bfloat16, 4),
        "add a row": lambda: two(lambda x, y: x + y, 2 * whole, lambda: t.ones(columns, device="cuda")),
        "add a column": lambda: two(lambda x, y: x + y, 2 * whole, lambda: t.ones(rows, 1, device="cuda")),
        "row sums": lambda: with_matrix(lambda x: x.sum(1), lambda: whole),
        "column sums": lambda: with_matrix(lambda x: x.sum(0), lambda: whole),
        "sum": lambda: unary(lambda x: x.sum(), None, 0),
        "softmax": lambda: with_matrix(lambda x: functional.softmax(x, -1), lambda: 2 * whole),
        "layer norm": lambda: with_matrix(lambda x: functional.layer_norm(x, (columns,)), lambda: 2 * whole),
    }


def matrix_products(t: Any, small: bool) -> dict[str, Callable[[], Callable[[], Any]]]:
    def product(size: int, dtype: Any) -> Callable[[], Any]:
        x, y = (t.ones(size, size, device="cuda", dtype=dtype) for _ in range(2))
        return lambda: x @ y

    sizes = (8,) if small else (512, 2048, 8192)
    kinds = {"float32": t.float32, "float16": t.float16, "bfloat16": t.bfloat16}
    return {f"matmul {n} {name}": lambda n=n, d=d: product(n, d) for n in sizes for name, d in kinds.items()}


def small_operators(t: Any) -> dict[str, Callable[[], Callable[[], Any]]]:
    def on(call: Callable[..., Any], *shapes: Any) -> Callable[[], Callable[[], Any]]:
        def made() -> Callable[[], Any]:
            given = [t.ones(*shape, device="cuda") for shape in shapes]
            return lambda: call(*given)

        return made

    return {
        "add(64)": on(lambda x, y: x + y, (64,), (64,)),
        "add_(64)": on(lambda x, y: x.add_(y), (64,), (64,)),
        "mul(64, 2.0)": on(lambda x: x * 2.0, (64,)),
        "relu(64)": on(t.relu, (64,)),
        "sum(64)": on(lambda x: x.sum(), (64,)),
        "sum(64x64, 1)": on(lambda x: x.sum(1), (64, 64)),
        "empty(64)": lambda: lambda: t.empty(64, device="cuda"),
    }


def graph_of_a_chain(t: Any, length: int) -> Callable[[], Any]:
    """The replay of a graph of so many small operators."""
    x = t.ones(64, device="cuda")

    def chain() -> Any:
        y = x
        for _ in range(length // 2):
            y = (y + 1) * 0.5
        return y

    stream = t.cuda.Stream()
    stream.wait_stream(t.cuda.current_stream())
    with t.cuda.stream(stream):
        chain()
    t.cuda.current_stream().wait_stream(stream)
    graph = t.cuda.CUDAGraph()
    with t.cuda.graph(graph):
        held = chain()
    return lambda: (graph.replay(), held)


def churn(t: Any) -> Callable[[], Any]:
    """Tensors of changing sizes, some of which stay for a while."""
    sizes = [(7919 * k * k) % 65536 + 1 for k in range(64)]
    held: dict[int, Any] = {}

    def go() -> None:
        for k, size in enumerate(sizes):
            held[k % 16] = t.empty(size, device="cuda")

    return go


def program(t: Any, row: Callable[[Any], Callable[[], Any]], recorded: bool) -> Callable[[], Any]:
    """A program of `make bench GROUP=compiled`, on the device; a step of its own each time, where it is recorded."""
    compiled.RECORDED = recorded
    try:
        with t.device("cuda"):
            call = row(t)
    finally:
        compiled.RECORDED = False
    if not recorded:
        return call

    def step() -> Any:
        t.compiler.cudagraph_mark_step_begin()
        return call()

    return step


# --- all of it --------------------------------------------------------------------------------------------------------


def bench(torch: Any, only: str, small: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """(row, seconds, ours and torch's, and what follows from them), as they are found; a row that fails says how."""
    nbytes, rounds, loops = (SMALL, 2, 3) if small else (LARGE, ROUNDS, 1000)
    sides = {"ours": rd, **({} if torch is None else {"torch": torch})}
    bandwidth = device_copy(nbytes, rounds)
    print(f"    {'device copy':<24}{bandwidth / 1e9:.1f} GB/s read and written", flush=True)
    yield "device copy", {"bytes per second": bandwidth}

    def streamed(t: Any, name: str) -> dict[str, float]:
        moved, call = bound_by_memory(t, nbytes)[name]()
        seconds = between_events(t, call, rounds)
        return {"seconds": seconds, "of the copy": moved / seconds / bandwidth}

    rows: dict[str, Callable[[Any], dict[str, float]]] = {
        **{name: partial(streamed, name=name) for name in bound_by_memory(rd, nbytes)},
        **{
            name: lambda t, name=name: {"seconds": between_events(t, matrix_products(t, small)[name](), rounds)}
            for name in matrix_products(rd, small)
        },
        **{
            name: lambda t, name=name: {"seconds": until_done(t, small_operators(t)[name](), loops)}
            for name in small_operators(rd)
        },
        **{
            f"compiled{', recorded' * recorded}: {name}": lambda t, row=row, recorded=recorded: {
                "seconds": between_events(t, program(t, row.build, recorded), rounds)
            }
            for name, row in programs(small).items()
            for recorded in (False, True)
        },
        "graph of 100": lambda t: {"seconds": until_done(t, graph_of_a_chain(t, 4 if small else 100), loops)},
        "allocator churn": lambda t: {"seconds": until_done(t, churn(t), max(loops // 10, 1))},
    }
    for name, measure in rows.items():
        if only in name:
            yield name, on_both(sides, name, measure)


def programs(small: bool) -> dict[str, Any]:
    """The programs that are compiled; a small one alone, where a simulator runs them."""
    found = {row.name: row for row in compiled.GROUP}
    return {name: row for name, row in found.items() if name.startswith("MLP 32")} if small else found


def on_both(sides: dict[str, Any], name: str, measure: Callable[[Any], dict[str, float]]) -> dict[str, Any]:
    """A row, printed too."""
    one: dict[str, Any] = {}
    for side, t in sides.items():
        try:
            one |= {f"{side} {what}": value for what, value in measure(t).items()}
        except Exception as problem:  # any failure is a result
            one[f"{side} error"] = f"{type(problem).__name__}: {str(problem)[:200]}"
    if "ours seconds" in one and "torch seconds" in one:
        one["ratio"] = one["ours seconds"] / one["torch seconds"]
    shown = (f"{what} {value:.4g}" if type(value) is float else f"{what}: {value}" for what, value in one.items())
    print(f"    {name:<24}{'  '.join(shown)}", flush=True)
    return one


def device_copy(nbytes: int, rounds: int) -> float:
    """Bytes per second, read and written, of the driver's own copy within the device."""
    from redispatch.kernels.cuda.runtime.devices import start

    running = start()
    x, y = (rd.zeros(nbytes, dtype=rd.uint8, device="cuda") for _ in range(2))
    seconds = between_events(rd, lambda: running.driver.copy(y.data_ptr(), x.data_ptr(), nbytes), rounds)
    return 2 * nbytes / max(seconds, 1e-9)
