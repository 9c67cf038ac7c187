"""PreDispatchTorchFunctionMode: regions of a program that change what its operators do, kept in a graph of them.

    make_fx(f, pre_dispatch=True)(x)        # _set_grad_enabled(False); ...; _set_grad_enabled(True)

Below autograd and autocast a graph holds what they did. One that is entered above them holds operators for which they
still have to do it, when the graph runs; so it must say where gradients are off, and what autocast is on. Operators
cannot show that, since a region calls none. It is a call of a function that function modes see.

Read next: proxy_tensor.py.
"""

from __future__ import annotations

from typing import Any

from redispatch.amp.autocast_mode import _enter_autocast, _exit_autocast
from redispatch.dispatch import STATE
from redispatch.dispatch.autograd.grad_mode import _enter_inference_mode, _exit_inference_mode, _set_grad_enabled
from redispatch.overrides import TorchFunctionMode

from ..node import IMPURE, Node

LEFT_BY = {_exit_autocast: _enter_autocast, _exit_inference_mode: _enter_inference_mode}
IMPURE.update((_set_grad_enabled, *LEFT_BY, *LEFT_BY.values()))


class PreDispatchTorchFunctionMode(TorchFunctionMode):
    """The mode, beside a dispatch mode that enters operators by `tracer`."""

    sees_regions = True

    def __init__(self, tracer: Any, dispatch_mode: Any = None) -> None:
        self.tracer, self.dispatch_mode = tracer, dispatch_mode
        self.entered: list[Node] = []  # regions that are open, but for those of gradients

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in LEFT_BY and func not in LEFT_BY.values() and func is not _set_grad_enabled:
            return func(*args, **(kwargs or {}))
        if self.dispatch_mode in (None, *STATE.get().pre_dispatch_modes):  # else it is a region within an operator
            given = (self.entered.pop(),) if func in LEFT_BY else args
            node = self.tracer.create_node("call_function", func, given, kwargs or {})
            node.meta["val"] = None
            if func in LEFT_BY.values():
                self.entered.append(node)
        return None  # the region itself is entered by who asks
