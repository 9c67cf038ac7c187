"""Tensor.grad_dtype: the dtype in which a leaf's gradient is kept, where it is not the leaf's own.

    w.grad_dtype = float32          # of a bfloat16 parameter: gradients are cast as they come, and added up in float32
    w.grad_dtype = None             # as they come

Nearly no leaf has one, so it has its place in a record of its own kind, and the others pay nothing. The node of the
leaf asks for it at the start of each pass (accumulate.py).
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.tensor import AutogradRecord, Metadata, Tensor, dtype, metadata_of, overridable_property


class WithGradDtype(AutogradRecord):
    """The autograd record of such a leaf. grad_dtype: None for any."""

    __slots__ = ("grad_dtype",)
    grad_dtype: dtype | None

    def __init__(self, record: AutogradRecord | None, grad_dtype: dtype | None) -> None:
        super().__init__()
        for name in AutogradRecord.__slots__ if record is not None else ():
            setattr(self, name, getattr(record, name))
        self.grad_dtype = grad_dtype


def get_grad_dtype(tensor: Tensor) -> dtype | None:
    """The dtype that gradients of a leaf have; None for any. RuntimeError for what is no leaf."""
    if not tensor.is_leaf:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    record = tensor._autograd
    return record.grad_dtype if isinstance(record, WithGradDtype) else tensor._dtype


def set_grad_dtype(tensor: Tensor, value: Any) -> None:
    """RuntimeError for anything but a dtype or None, for what is no leaf, and where there is a gradient of another."""
    if not (value is None or isinstance(value, dtype)):
        raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {type(value).__name__}")
    if not tensor.is_leaf:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    record = tensor._autograd
    gradient = record.grad if record is not None else None
    if value is not None and gradient is not None and gradient._dtype is not value:
        raise RuntimeError(
            f"Cannot set grad_dtype to '{value.tensor_name}' because there is already a gradient with dtype "
            f"'{gradient._dtype.tensor_name.lower()}'. Please clear the gradient (.grad = None) before changing "
            "grad_dtype, or ensure the new grad_dtype matches the existing gradient's dtype."
        )
    tensor._autograd = WithGradDtype(record, value)


def metadata_of_gradient(tensor: Any) -> Metadata:
    """How a gradient has to look that is added to a leaf's."""
    metadata, record = tensor._interned or metadata_of(tensor), tensor._autograd
    if type(record) is WithGradDtype:
        wanted: Any = record.grad_dtype  # where None stands for any, as `fit` knows
        return Metadata(wanted, metadata.shape, metadata.stride, metadata.device, metadata.bits)
    return metadata


Tensor.grad_dtype = overridable_property(get_grad_dtype, set_grad_dtype)  # type: ignore[attr-defined]  # attached here
