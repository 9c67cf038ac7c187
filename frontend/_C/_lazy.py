"""PyTorch's private names for lazy tensors (`torch._C._lazy`), over `redispatch.kernels.lazy`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from redispatch.kernels.lazy import LazyWrapper, Node, Result, Trace, recorder
from redispatch.kernels.lazy.program import Program
from redispatch.kernels.lazy.text import dot, report, text


def results_of(tensors: Iterable[Any]) -> list[Result]:
    """Returns the results that lazy tensors show. RuntimeError for other tensors."""
    found = []
    for one in tensors:
        if type(one) is not LazyWrapper:
            raise RuntimeError(f"Input tensor is not a lazy tensor: {one.type()}")
        found.append(one.current_result())
    return found


def trace_of(tensors: Iterable[Any]) -> Trace:
    """Returns the trace of all that is to run for tensors."""
    return Trace([(one.node, one.seen.place) for one in results_of(tensors)])


def number_of(node: Node) -> int:
    """The number by which a value from outside is known."""
    if not hasattr(node, "number"):
        node.number = next(Node.next_number)
    return node.number


def _mark_step(device: str = "", devices: Any = (), wait: bool = True) -> None:
    error = recorder.flush()
    if error is not None:
        raise error


def _sync_multi(tensors: Any, devices: Any = (), wait: bool = True, sync_ltc_data: bool = True) -> None:
    error = recorder.flush(results_of(tensors))
    if error is not None:
        raise error


def _wait_device_ops(devices: Any = ()) -> None:
    """Nothing is to be waited for: what runs has run when the call returns."""


def _reset_metrics() -> None:
    _counters()
    recorder.counts.clear()
    recorder.sizes.clear()


def _counters() -> dict[str, int]:
    recorder.add_up()
    return {name: value for name, value in recorder.counts.items() if value}


def _counter_names() -> list[str]:
    return sorted(_counters())


def _counter_value(name: str) -> int | None:
    return _counters().get(name)


def _metrics_report() -> str:
    return report(_counters(), recorder.sizes)


def _get_tensor_id(tensor: Any) -> int:
    return number_of(results_of([tensor])[0].node)


def _get_tensors_text(tensors: Any) -> str:
    return text(trace_of(tensors))


def _get_tensors_dot(tensors: Any) -> str:
    return dot(trace_of(tensors))


def _get_tensors_backend(tensors: Any) -> str:
    return recorder.programs.show(Program(trace_of(tensors)))


def _get_graph_hash(tensors: Any) -> bytes:
    trace = trace_of(tensors)
    found = trace.hash()
    recorder.programs.by_hash[found] = recorder.programs.find(trace, recorder.counts)
    return found


def _get_force_fallback() -> str:
    return recorder.force_fallback


def _set_force_fallback(newval: str) -> None:
    recorder.forget_calls()  # those who were recorded might be meant
    recorder.force_fallback = newval


def _set_reuse_ir(val: bool) -> None:
    recorder.reuse = bool(val)


def _clear_ir_cache() -> None:
    recorder.flush()
    recorder.forget_calls()


def _dump_ir_cache(filename: str) -> None:
    roots = [(node, 0) for node in recorder.pending.values()]
    with open(filename, "w") as file:
        file.write(dot(Trace(roots)))


def _get_default_device_type() -> str:
    return recorder.on.type
