"""What each layer costs while the interpreter runs boxed: `python tests/bench/layers.py`, part of `make bench`.

One operator on float32[16] is started ever higher up the key stack; what a line adds to the one below it is the price
of that hop: what the specialiser starts from. Writes `docs/layers.json`, from which the table in the docs is
made; quotes nanoseconds, minimum of several rounds, and so is about one machine only.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import redispatch as rd
from redispatch.dispatch import TorchDispatchMode, TorchFunctionMode, bind, call, keyset, run

ROUNDS, LOOPS = 7, 2000


class HandOn(TorchDispatchMode):
    """A dispatch mode that does nothing."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class HandOnFunction(TorchFunctionMode):
    """A function mode that does nothing."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def nanoseconds(work: Callable[[], Any], context: Any = None) -> float:
    """The best round's mean time of one call."""
    best = float("inf")
    with context or nullcontext():
        work()
        for _ in range(ROUNDS):
            start = time.perf_counter_ns()
            for _ in range(LOOPS):
                work()
            best = min(best, (time.perf_counter_ns() - start) / LOOPS)
    return best


def rows() -> list[tuple[str, float]]:
    """(what is started where, nanoseconds), from the kernel up."""
    rd.set_num_threads(1)
    rd.config.specialize = False  # the layers themselves; what is made of them is in the table against torch
    a, b = rd.ones(16), rd.ones(16)
    grad = rd.ones(16, requires_grad=True)
    small = rd.ones(8, 8)
    add, mm = rd.ops.aten.add.Tensor, rd.ops.aten.mm.default
    stack, recorded = [a, b, 1], [grad, b, 1]
    kernel = add.entry(keyset("CPU")).kernel.function
    python = keyset("CPU", "Python", "PythonTLSSnapshot")
    return [
        ("the CPU kernel of add, called by hand", nanoseconds(lambda: kernel(a, b, 1))),
        ("run at CPU: one hop", nanoseconds(lambda: run(add, keyset("CPU"), stack))),
        ("run at AutogradCPU, nothing to record", nanoseconds(lambda: run(add, a._keyset, stack))),
        ("run at AutogradCPU, recorded", nanoseconds(lambda: run(add, a._keyset, recorded))),
        ("call: keyset of the arguments, then AutogradCPU", nanoseconds(lambda: call(add, stack))),
        ("ops.aten.add.Tensor(a, b): arguments bound to the schema", nanoseconds(lambda: add(a, b))),
        ("bind alone", nanoseconds(lambda: bind(add.schema, (a, b), {}))),
        ("redispatch.add(a, b): the public face", nanoseconds(lambda: rd.add(a, b))),
        ("a + b", nanoseconds(lambda: a + b)),
        ("run at Python with a mode that hands on", nanoseconds(lambda: run(add, python, stack), HandOn())),
        ("redispatch.add under one dispatch mode", nanoseconds(lambda: rd.add(a, b), HandOn())),
        ("redispatch.add under one function mode", nanoseconds(lambda: rd.add(a, b), HandOnFunction())),
        ("add_ : autograd, then ADInplaceOrView", nanoseconds(lambda: a.add_(b))),
        ("view: autograd, then ADInplaceOrView", nanoseconds(lambda: a.view(4, 4))),
        ("mm 8x8", nanoseconds(lambda: rd.mm(small, small))),
        (
            "mm 8x8 under autocast: two casts, mm in bfloat16",
            nanoseconds(lambda: rd.mm(small, small), rd.autocast("cpu")),
        ),
        ("mm, boxed, from the top", nanoseconds(lambda: call(mm, [small, small]))),
    ]


def main() -> None:
    measured = rows()
    width = max(len(name) for name, _ in measured)
    for name, value in measured:
        print(f"  {name:<{width}} {value:10.0f} ns")
    if "--dry" not in sys.argv:
        path = Path(__file__).resolve().parents[2] / "docs" / "layers.json"
        path.write_text(json.dumps([{"what": name, "ns": round(value)} for name, value in measured], indent=1) + "\n")


if __name__ == "__main__":
    main()
