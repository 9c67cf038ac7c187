"""PyTorch's private names for the backend of lazy tensors (`torch._C._lazy_ts_backend`)."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import DEFAULT, within
from redispatch.kernels.lazy import recorder, start

from ._lazy import number_of, trace_of


def _init() -> None:
    start()


def _get_tensors_ts_device_data_node(tensors: Any) -> tuple[list[int], list[Any]]:
    trace = trace_of(tensors)
    return [number_of(node) for node, _ in trace.inputs], trace.values()


def _run_cached_graph(hash_str: bytes, graph_inputs: Any) -> list[Any]:
    program = recorder.programs.by_hash.get(hash_str)
    if program is None:
        raise RuntimeError(f"Failed running cached Lazy graph: there is none of the hash {hash_str!r}")
    with within(DEFAULT.with_grad(False)):
        return program.run(list(graph_inputs), program.numbers)
