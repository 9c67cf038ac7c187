"""JvpLevel: what `jvp` is while it is at work.

A wrapper has a tangent beside its value. A call is made outside for the values, and the operator's forward rule says
what becomes of the tangents (forward.py).

Source: PyTorch's functorch (JvpInterpreterPtr). Read next: forward_ad.py, the same without wrappers.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import STATE, OpOverload, call, within
from redispatch.dispatch.layers.ad_inplace_or_view import tie_to_base
from redispatch.dispatch.layers.transforms import Level, each_tensor
from redispatch.dispatch.tensor.wrapped import is_wrapped, level_of, look_like_values, without_dead, wrapped

from .duals import put, tangent_of
from .forward import composite_kernel, is_outside_of_graphs, tangent_of_call
from .function import Function
from .function_levels import apply_with_tangents
from .grad_level import refuse_captured_writes


class JvpLevel(Level):
    """`jvp` at work."""

    def process(self, op: OpOverload, stack: list[Any]) -> Any:
        kernel = composite_kernel(op)
        if kernel is not None:
            return kernel.boxed(op, 0, stack)
        refuse_captured_writes(self, op, stack)
        stack = each_tensor(op.schema, stack, without_dead)
        values = each_tensor(op.schema, stack, self.unwrap)
        with within(STATE.get().outer()):
            tangents = [self.tangent_of(value) for value in stack]
            result, tangent = tangent_of_call(op, values, tangents, lambda: call(op, values))
            result = put(op.schema, stack, result, tangent, self.attach)
        for position in op.schema.mutable_positions:
            look_like_values(stack[position])
        if op.schema.is_view and not is_outside_of_graphs(op):
            tie_to_base(op, stack, result)
        return result

    def tangent_of(self, value: Any) -> Any:
        """The tangents of an argument, None for what this level does not watch."""
        if isinstance(value, list):
            return [self.tangent_of(item) for item in value]
        return tangent_of(value) if level_of(value) is self else None

    def apply_function(self, cls: type[Function], args: tuple[Any, ...]) -> Any:
        return apply_with_tangents(self, cls, args)

    def attach(self, tensor: Any, tangent: Any) -> Any:
        """A wrapper with this tangent: `tensor` itself, if it is one of this level."""
        if is_wrapped(tensor) and tensor._level is self:
            tensor._tangent = tangent
            return tensor
        return wrapped(tensor, self, tangent=tangent)

    def wrap(self, value: Any) -> Any:
        return wrapped(value, self)

    def unwrap(self, tensor: Any) -> Any:
        return tensor._value if getattr(tensor, "_level", None) is self else without_dead(tensor)
