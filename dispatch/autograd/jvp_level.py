"""JvpLevel: what `jvp` is while it is at work.

A wrapper has a tangent beside its value. A call is made outside for the values, and the operator's forward rule says
what becomes of the tangents (forward.py).

Source: PyTorch's functorch (JvpInterpreterPtr). Read next: forward_ad.py, the same without wrappers.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import STATE, FunctionSchema, OpOverload, TensorBase, call, within
from redispatch.dispatch.layers.ad_inplace_or_view import tie_to_base
from redispatch.dispatch.layers.transforms import Level, each_tensor
from redispatch.dispatch.tensor.wrapped import is_wrapped, level_of, look_like_values, without_dead, wrapped

from .forward import is_outside_of_graphs, parts_kernel, tangent_of_call, zeros_like
from .function import Function
from .function_levels import apply_with_tangents
from .grad_level import refuse_captured_writes
from .views import strided_step

# Tangents of tensors: where they are kept, and how views share them ---------------------------------------------------
#
# A tensor's tangent is beside the tensor, in `_tangent`. A view shows a part of its base's tangent, as it shows a part
# of its base; so a write through either is seen by both. The tangent of a view is made when somebody asks for it.


def tangent_of(value: Any) -> Any:
    """The tangent of an argument: of each item, if it is a list; None for zero."""
    if isinstance(value, list):
        return [tangent_of(item) for item in value]
    if not isinstance(value, TensorBase):
        return None
    tangent = value._tangent  # type: ignore[attr-defined]  # of a Tensor
    view = value._view
    if tangent is None and view is not None and view.base._tangent is not None:
        tangent = value._tangent = part_of(value, view.base._tangent)  # type: ignore[attr-defined]  # of Tensor, which this room knows as TensorBase
    return tangent


def part_of(view: Any, tangent: Any) -> Any:
    """The part of the base's tangent that belongs to `view`."""
    return (view._view.replay or strided_step(view, view._view.base))(tangent)


def put(schema: FunctionSchema, stack: list[Any], result: Any, tangent: Any, attach: Any) -> Any:
    """The result with its tangents: new tensors by `attach(tensor, tangent)`, written arguments in place."""
    several = len(schema.returns) > 1
    if not isinstance(result, tuple | list):
        return put_one(schema, stack, 0, result, tangent, attach)
    parts = tangent if tangent is not None else [None] * len(result)
    return type(result)(
        put_one(schema, stack, index if several else 0, one, part, attach)
        for index, (one, part) in enumerate(zip(result, parts, strict=True))
    )


def put_one(schema: FunctionSchema, stack: list[Any], index: int, result: Any, tangent: Any, attach: Any) -> Any:
    if isinstance(result, list):
        parts = tangent if tangent is not None else [None] * len(result)
        return [put_one(schema, stack, index, one, part, attach) for one, part in zip(result, parts, strict=True)]
    if not isinstance(result, TensorBase):
        return result
    aliased = schema.return_aliases[index]
    if aliased and schema.returns[index].is_write and stack[aliased[0]] is not None:
        written = stack[aliased[0]]
        overwrite(written, tangent, attach)
        return written
    return attach(result, tangent)


def overwrite(tensor: Any, tangent: Any, attach: Any) -> None:
    """Gives a tensor that was written its new tangent, None for zero: those that share its memory see it, too."""
    former = tangent_of(tensor)
    if former is None and tangent is None:
        return
    if tangent is None:
        tangent = zeros_like(former)
    view = tensor._view
    if former is None and view is not None:
        base = view.base
        if (tensor._shape, tensor._stride, tensor._offset) == (base._shape, base._stride, base._offset):
            attach(base, tangent)  # a view of the whole has its base's tangent
        else:  # zeros that are batched where the tangent is
            attach(base, tangent.new_zeros(getattr(base, "_value", base)._shape))
            former = tangent_of(tensor)
    if former is None or former._shape != tangent._shape or former.is_leaf and former.requires_grad:
        attach(tensor, tangent)
    else:
        former.copy_(tangent)


class JvpLevel(Level):
    """`jvp` at work."""

    def process(self, op: OpOverload, stack: list[Any]) -> Any:
        kernel = parts_kernel(op)
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
