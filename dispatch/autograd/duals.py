"""Tangents of tensors: where they are kept, and how views share them.

A tensor's tangent is beside the tensor, in `_tangent`. A view shows a part of its base's tangent, as it shows a part of
its base; so a write through either is seen by both. The tangent of a view is made when somebody asks for it.

Read next: jvp_level.py, forward_ad.py.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import FunctionSchema, TensorBase

from .transposition import zeros_like
from .views import strided_step


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
        attach(view.base, zeros_like(getattr(view.base, "_value", view.base)))
        former = tangent_of(tensor)
    if former is None or former._shape != tangent._shape or former.is_leaf and former.requires_grad:
        attach(tensor, tangent)
    else:
        former.copy_(tangent)
