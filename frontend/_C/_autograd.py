"""PyTorch's private names for its engine (`torch._C._autograd`, and some of `torch._C`), over dispatch/autograd/."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

from redispatch.dispatch.autograd import SavedTensor, is_multithreading_enabled
from redispatch.dispatch.autograd.accumulate import AccumulateGrad
from redispatch.dispatch.autograd.engine import Task, current_task
from redispatch.dispatch.autograd.graph import saved_tensors_hooks
from redispatch.dispatch.autograd.node import Node
from redispatch.dispatch.autograd.saved import HOOKS_REFUSED, PACKING
from redispatch.dispatch.tensor import CreationMeta, Tensor

__all__ = ["CreationMeta", "DeviceType", "SavedTensor"]

DeviceType = IntEnum(
    "DeviceType",
    "CPU CUDA MKLDNN OPENGL OPENCL IDEEP HIP FPGA MAIA XLA Vulkan Metal XPU MPS Meta HPU VE Lazy IPU MTIA PrivateUse1",
    start=0,
)

# Hooks on saved tensors -----------------------------------------------------------------------------------------------


def _push_saved_tensors_default_hooks(pack_hook: Callable[..., Any], unpack_hook: Callable[..., Any]) -> None:
    """Has tensors that are saved from here on go through these hooks. RuntimeError where hooks are disabled."""
    saved_tensors_hooks(pack_hook, unpack_hook).__enter__()


def _pop_saved_tensors_default_hooks() -> None:
    """Takes the innermost hooks off."""
    PACKING.set(PACKING.get()[:-1])


def _top_saved_tensors_default_hooks(ignore_is_tracing: bool) -> tuple[Any, Any] | None:
    """The innermost hooks, or None."""
    hooks = PACKING.get()
    return hooks[-1] if hooks else None


def _saved_tensors_hooks_is_enabled() -> bool:
    return HOOKS_REFUSED.get() is None


def _saved_tensors_hooks_enable() -> None:
    HOOKS_REFUSED.set(None)


def _saved_tensors_hooks_disable(message: str, fail_if_non_empty: bool = True) -> None:
    """Has hooks refused with this message. RuntimeError with it where there are some."""
    if fail_if_non_empty and PACKING.get():
        raise RuntimeError(message)
    HOOKS_REFUSED.set(message)


def _saved_tensors_hooks_get_disabled_error_message() -> str | None:
    """The message with which hooks are refused, or None."""
    return HOOKS_REFUSED.get()


# Tensors --------------------------------------------------------------------------------------------------------------


def _unsafe_set_version_counter(tensors: Sequence[Any], versions: Sequence[int]) -> None:
    """Has tensors say that they were written so often."""
    if len(tensors) != len(versions):
        raise RuntimeError("tensors_size == versions.size() INTERNAL ASSERT FAILED: one version for each tensor")
    for tensor, version in zip(tensors, versions, strict=True):
        tensor._counter[0] = version


def _get_creation_meta(tensor: Any) -> Any:
    """Returns the origin of a view, for those who write it. RuntimeError for what is no view."""
    return view_of(tensor).creation


def _set_creation_meta(tensor: Any, meta: Any) -> None:
    view_of(tensor).creation = meta


def view_of(tensor: Any) -> Any:
    if tensor._view is None:
        raise RuntimeError("The tensor is not a view")
    return tensor._view


def _get_data_attr(tensor: Any) -> Any:
    """The tensor's `data`."""
    return tensor.data


class _WeakTensorRef:
    """A reference that does not keep its tensor alive."""

    def __init__(self, tensor: Tensor) -> None:
        self._reference = weakref.ref(tensor)

    def expired(self) -> bool:
        return self._reference() is None


# The backward pass that runs here -------------------------------------------------------------------------------------


def _current_graph_task_id() -> int:
    """The number of the pass, counted from the first of the process; -1 where none runs."""
    task = current_task()
    return -1 if task is None else task.number


def _get_current_graph_task_keep_graph() -> bool:
    """Returns whether the pass keeps the graph; True where none runs."""
    task = current_task()
    return task is None or task.retain_graph


def running(name: str) -> Task:
    task = current_task()
    if task is None:
        raise RuntimeError(f"{name} should only be called during the backward pass")
    return task


def _current_graph_task_execution_order() -> list[Any]:
    """The nodes of the pass in the order in which they run. RuntimeError where none runs, or with multithreading."""
    task = running("_current_graph_task_execution_order")
    if is_multithreading_enabled():
        raise RuntimeError(
            "_current_graph_task_execution_order expects the current backward to be executed with multithreading "
            "disabled, e.g. by running:\n\n>>> with torch.autograd.set_multithreading_enabled(False):\n...     "
            "torch.autograd.backward()\n"
        )
    return task.order()


def _will_engine_execute_node(node: Any) -> bool:
    """Returns whether the pass runs a node. RuntimeError for a leaf's node where gradients are returned."""
    if not isinstance(node, Node):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    task = running("_will_engine_execute_node")
    if isinstance(node, AccumulateGrad) and task.needed is not None and node not in task.needed:
        if node in task.captures:
            raise RuntimeError(
                "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). "
                "This is currently not supported."
            )
        return False
    return task.will_run(node)
