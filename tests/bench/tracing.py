"""What graphs cost to make: `python tests/bench/tracing.py`, part of `make bench`.

CPU seconds of the joint trace of a two-layer GPT, with numbers and with symbols for sizes; of a minimum cut through
5,000 nodes; and the time of one `add` of fake tensors beside torch's. Writes `docs/tracing.json`, from which the table
in the docs is made. A measure is the least of several runs, and runs that are compared take turns.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

WIDTH, WORDS, LENGTH = 32, 50, 16


def least(*calls: Callable[[], Any], rounds: int = 7, clock: Callable[[], float] = process_time) -> list[float]:
    """The least seconds of each call, which take turns."""
    found = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            gc.collect()
            gc.disable()
            start = clock()
            call()
            found[i] = min(found[i], clock() - start)
            gc.enable()
    return found


def gpt(t: Any) -> Any:
    """A GPT of two layers, which gives its loss."""
    nn = t.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.attention, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            q, k, v = self.attention(self.first(x)).split(WIDTH, -1)
            x = x + self.out((q @ k.transpose(-1, -2) * WIDTH**-0.5).softmax(-1) @ v)
            return x + self.narrow(nn.functional.gelu(self.wide(self.second(x))))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Parameter(t.zeros(LENGTH, WIDTH))
            self.blocks, self.last = nn.Sequential(Block(), Block()), nn.LayerNorm(WIDTH)
            self.head = nn.Linear(WIDTH, WORDS)

        def forward(self, x: Any, y: Any) -> Any:
            scores = self.head(self.last(self.blocks(self.words(x) + self.places)))
            return nn.functional.cross_entropy(scores.flatten(0, 1), y.flatten())

    return GPT()


def traces(t: Any) -> dict[str, float]:
    """CPU seconds of the joint trace of a GPT, and bytes that its partitions save."""
    ahead = importlib.import_module(f"{t.__name__}._functorch.aot_autograd")
    parts = importlib.import_module(f"{t.__name__}._functorch.partitioners")
    model, inputs = gpt(t), [t.randint(WORDS, (4, LENGTH)) for _ in range(2)]
    saved: dict[str, int] = {}

    def trace(dynamic: bool = False, partition: Any = parts.default_partition) -> None:
        def noted(joint: Any, given: Any, num_fwd_outputs: int) -> Any:
            forward, backward = partition(joint, given, num_fwd_outputs=num_fwd_outputs)
            saved[partition.__name__] = parts.saved_bytes(forward, num_fwd_outputs)
            return forward, backward

        ahead.aot_module(model, ahead.nop, partition_fn=noted, dynamic=dynamic)(*inputs)

    trace()
    trace(True)
    static, symbolic = least(trace, lambda: trace(True))
    trace(False, parts.min_cut_rematerialization_partition)
    return {
        "joint trace, s": static,
        "symbolic joint trace, ratio": symbolic / static,
        "saved by min-cut, ratio": saved["min_cut_rematerialization_partition"] / saved["default_partition"],
    }


def cut(t: Any, count: int = 5_000) -> float:
    """CPU seconds of a minimum cut through a joint graph of so many nodes."""
    fx = importlib.import_module(f"{t.__name__}.fx")
    parts = importlib.import_module(f"{t.__name__}._functorch.partitioners")
    graph, aten = fx.Graph(), t.ops.aten
    value = t.empty(64, device="meta")

    def node(make: Any, *args: Any) -> Any:
        made = make(*args)
        made.meta["val"] = value
        return made

    values = [node(graph.placeholder, f"primals_{i}") for i in range(8)]
    for i in range(count // 2):
        operator = aten.mm.default if i % 10 == 0 else aten.add.Tensor
        values.append(node(graph.call_function, operator, (values[-1], values[-1 - i % 7])))
    gradient = node(graph.placeholder, "tangents_1")
    for one in reversed(values[8:]):
        gradient = node(graph.call_function, aten.mul.Tensor, (gradient, one))
    graph.output((values[-1], gradient))
    joint = parts.Joint(fx.GraphModule(t.nn.Module(), graph), 1)
    return least(lambda: parts.cheapest(joint, lambda one: parts.may_recompute(one, None)), rounds=3)[0]


def fake_add(ours: Any, torch: Any) -> float:
    """The time of an `add` of fake tensors, by torch's."""

    def call(t: Any) -> Callable[[], None]:
        mode = importlib.import_module(f"{t.__name__}._subclasses.fake_tensor").FakeTensorMode()
        x, y = (mode.from_tensor(t.ones(16, 16)) for _ in range(2))

        def many() -> None:
            with mode:
                for _ in range(200):
                    t.add(x, y)

        many()
        return many

    mine, theirs = least(call(ours), call(torch), rounds=15, clock=perf_counter)
    return mine / theirs


TARGETS = {
    "joint trace, s": 0.3,
    "symbolic joint trace, ratio": 2.0,
    "saved by min-cut, ratio": 1.0,
    "cut of 5,000 nodes, s": 0.5,
    "fake add, by torch's": 0.2,
}


def main(arguments: list[str]) -> None:
    ours = importlib.import_module("redispatch")
    measured = {**traces(ours), "cut of 5,000 nodes, s": cut(ours)}
    measured["fake add, by torch's"] = fake_add(ours, importlib.import_module("torch"))
    for name, found in measured.items():
        print(f"  {name:30} {found:6.3f}, at most {TARGETS[name]}{'' if found <= TARGETS[name] else '  MISSED'}")
    if "--dry" not in arguments:
        path = Path(__file__).resolve().parents[2] / "docs" / "tracing.json"
        rows = {name: {"found": round(found, 3), "at most": TARGETS[name]} for name, found in measured.items()}
        path.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
