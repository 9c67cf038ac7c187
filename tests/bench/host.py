"""What an operator on CUDA costs the host: `python tests/bench/host.py`, part of `make bench`.

Dispatch, plan, memory for the result and launch, on the null driver: everything but what a GPU's own driver takes to
queue a kernel. It needs no GPU and no compiler. The goal is 2.5 us for each kernel that is launched. Writes
`docs/host.json`.

    --all        a small call of each operator of the table that launches a kernel, and what training calls, the
                 slowest for a launch first; writes nothing
    --dry        writes nothing
    words        only calls whose names hold one of these
"""

from __future__ import annotations

import gc
import json
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns
from typing import Any

os.environ["REDISPATCH_CUDA"] = "null"

import redispatch as rd
from redispatch.kernels import cuda  # after the path is set

ROUNDS, LOOPS = 60, 1000
ROUNDS_OF_ALL, LOOPS_OF_ALL = 12, 100
GOAL = 2500  # ns for a launch

Calls = dict[str, Callable[[], Any]]


def rows() -> Calls:
    x, y, matrix = (rd.empty(shape, device="cuda") for shape in ((64,), (64,), (64, 64)))
    half, weight = rd.empty(64, dtype=rd.float16, device="cuda"), rd.empty(64, device="cuda")
    images, filters = rd.empty(1, 4, 8, 8, device="cuda"), rd.empty(4, 4, 3, 3, device="cuda")
    F = rd.nn.functional
    return {
        "add(x, y)": lambda: x + y,
        "add_(x, y)": lambda: x.add_(y),
        "mul(x, 2.0)": lambda: x * 2.0,
        "relu(x)": lambda: rd.relu(x),
        "add(matrix, x)": lambda: matrix + x,
        "add(x, half)": lambda: x + half,
        "sum(x)": lambda: x.sum(),
        "sum(matrix, 1)": lambda: matrix.sum(1),
        "mm(matrix, matrix)": lambda: matrix.mm(matrix),
        "softmax(matrix)": lambda: matrix.softmax(1),
        "layer_norm(matrix)": lambda: F.layer_norm(matrix, (64,), weight, weight),
        "conv2d(images)": lambda: F.conv2d(images, filters),
        "max_pool2d(images)": lambda: F.max_pool2d(images, 2),
        "fill_(x, 1.0)": lambda: x.fill_(1.0),
        "copy_(x, y)": lambda: x.copy_(y),
        "clone(x)": lambda: x.clone(),
        "half(x)": lambda: x.half(),
        "empty(64)": lambda: rd.empty(64, device="cuda"),
        "view(x, 8, 8)": lambda: x.view(8, 8),
    }


def training() -> Calls:
    """The calls of a step of training: forward that is recorded, backward, and one parameter of an optimizer's."""
    x, matrix = rd.empty(64, device="cuda"), rd.empty(64, 64, device="cuda")
    weight, bias = rd.empty(64, 64, device="cuda", requires_grad=True), rd.empty(64, device="cuda", requires_grad=True)
    images, filters = rd.empty(2, 4, 8, 8, device="cuda"), rd.empty(4, 4, 3, 3, device="cuda", requires_grad=True)
    classes, places = rd.zeros(64, dtype=rd.int64).cuda(), rd.zeros(64, 64, dtype=rd.int64).cuda()
    mask, heads = rd.zeros(64, 64).cuda() > 0, rd.empty(2, 4, 16, 8, device="cuda")
    channels, moved = rd.empty(4, device="cuda", requires_grad=True), [rd.zeros(4).cuda(), rd.ones(4).cuda()]
    F = rd.nn.functional

    def backward(function: Callable[[], Any]) -> Callable[[], Any]:
        result = function()
        grad = rd.empty(result.shape, device="cuda")
        leaves = [leaf for leaf in (weight, bias, filters, channels) if reaches(result, leaf)]
        return lambda: rd.autograd.grad(result, leaves, grad, retain_graph=True)

    def reaches(result: Any, leaf: Any) -> bool:
        grad = rd.empty(result.shape, device="cuda")
        return rd.autograd.grad(result, leaf, grad, retain_graph=True, allow_unused=True)[0] is not None

    def step(kind: Any, **options: Any) -> Callable[[], Any]:
        parameters = [rd.zeros(64, device="cuda", requires_grad=True) for _ in range(4)]
        for one in parameters:
            one.grad = rd.zeros(64, device="cuda")
        return kind(parameters, **options).step

    calls: Calls = {
        "linear": lambda: F.linear(matrix, weight, bias),
        "conv2d": lambda: F.conv2d(images, filters, channels, padding=1),
        "batch_norm": lambda: F.batch_norm(images, *moved, channels, channels, True),
        "layer_norm": lambda: F.layer_norm(matrix, (64,), bias, bias),
        "max_pool2d": lambda: F.max_pool2d(filters, 2),
        "avg_pool2d": lambda: F.avg_pool2d(filters, 2),
        "cross_entropy": lambda: F.cross_entropy(weight, classes),
        "mse_loss": lambda: F.mse_loss(weight, matrix),
        "gelu": lambda: F.gelu(weight),
        "softmax": lambda: weight.softmax(1),
        "dropout": lambda: F.dropout(weight, 0.5),
        "embedding": lambda: F.embedding(classes, weight),
        "index_select": lambda: weight.index_select(0, classes),
        "gather": lambda: weight.gather(1, places),
        "index": lambda: weight[classes],
        "cat": lambda: rd.cat([weight, weight]),
        "stack": lambda: rd.stack([weight, weight]),
        "where": lambda: rd.where(mask, weight, matrix),
        "masked_fill": lambda: weight.masked_fill(mask, 0.0),
        "sdpa": lambda: F.scaled_dot_product_attention(heads, heads, heads),
    }
    found: Calls = {}
    for name, call in calls.items():
        found[f"recorded {name}"] = call
        if call().requires_grad:
            found[f"backward of {name}"] = backward(call)
    optimizers = {"SGD": {"lr": 0.1, "momentum": 0.9}, "Adam": {}, "AdamW": {}, "RMSprop": {}}
    for name, options in optimizers.items():
        found[f"{name}, 4 parameters"] = step(getattr(rd.optim, name), **options)
    found["Adam fused, 4 parameters"] = step(rd.optim.Adam, fused=True)
    found["argmax"] = lambda: matrix.argmax(1)
    found["topk"] = lambda: matrix.topk(4)
    found["zeros(64)"] = lambda: rd.zeros(64, device="cuda")
    found["randn(64)"] = lambda: rd.randn(64, device="cuda")
    found["x[3:9]"] = lambda: x[3:9]
    return found


def table() -> Calls:
    """A call of each operator of the table, on the sample that launches something with the fewest elements."""
    from redispatch.testing.op_db import op_db

    found: Calls = {}
    for info in op_db:
        dtype = rd.float32 if rd.float32 in info.dtypes else info.dtypes[0]
        call = first_that_launches(info, dtype)
        if call is not None:
            found[str(info)] = call
    return found


def first_that_launches(info: Any, dtype: Any) -> Callable[[], Any] | None:
    device = {"device": rd.device("cuda")} if any(a.name == "device" for a in info.op.schema.arguments) else {}
    launched = cuda.driver().launched
    for sample in info.sample_inputs(dtype, thorough=False):
        there = sample.map(lambda x: x.detach().to("cuda"))

        def call(args: Any = there.arguments, kwargs: Any = {**there.kwargs, **device}) -> Any:  # noqa: B006
            return info.op(*args, **kwargs)

        try:
            call()
            launched.clear()
            call()
            call()
        except Exception:  # it has no kernel, or no numbers to read on a device that computes none
            continue
        if launched:
            return call
    return None


def measure(calls: Calls, rounds: int = ROUNDS, loops: int = LOOPS) -> dict[str, float]:
    """Call -> nanoseconds of the host's, in the best round. Each round takes all calls in turn."""
    driver = cuda.driver()
    assert isinstance(driver, cuda.NullDriver)
    for call in calls.values():
        for _ in range(20):
            call()
    best = dict.fromkeys(calls, float("inf"))
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, call in calls.items():
                driver.launched.clear()
                start = perf_counter_ns()
                for _ in range(loops):
                    call()
                best[name] = min(best[name], (perf_counter_ns() - start) / loops)
    finally:
        gc.enable()
    return best


def launches(call: Callable[[], Any]) -> int:
    launched = cuda.driver().launched
    launched.clear()
    call()
    return len(launched)


def show_all(words: list[str]) -> None:
    """Prints what everything costs, the slowest for a launch first."""
    warnings.simplefilter("ignore")
    calls = {**table(), **training()}
    calls = {name: call for name, call in calls.items() if not words or any(word in name for word in words)}
    best = measure(calls, ROUNDS_OF_ALL, LOOPS_OF_ALL)
    lines = []
    for name, nanoseconds in best.items():
        count = launches(calls[name])
        lines.append((nanoseconds / max(count, 1), nanoseconds, count, name))
    for each, nanoseconds, count, name in sorted(lines, reverse=True):
        print(f"{each:9.0f} ns a launch {nanoseconds:9.0f} ns {count:4d}  {name}")
    above = sum(each > GOAL for each, *_ in lines)
    print(f"{above} of {len(lines)} calls take more than {GOAL} ns a launch")


def main() -> None:
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    if "--all" in sys.argv:
        show_all(words)
        return
    best = measure({name: call for name, call in rows().items() if not words or any(word in name for word in words)})
    for name, nanoseconds in best.items():
        print(f"  {name:<20}{nanoseconds:8.0f} ns of the host's")
    if "--dry" not in sys.argv and not words:
        path = Path(__file__).resolve().parents[2] / "docs" / "host.json"
        path.write_text(json.dumps({name: round(value) for name, value in best.items()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
