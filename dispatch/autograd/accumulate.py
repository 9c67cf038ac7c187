"""AccumulateGrad: the node at which a leaf's gradient arrives and is added to `.grad`.

A leaf has no call that made it, so its node is made when something first uses the leaf.

Note [Leaves keep their nodes]
Parameters are used in every step of training, so the leaf's record holds the node from then on; made anew for each
graph, it would cost as much as all else that is recorded. The node holds the leaf weakly, or neither would ever go. But
a graph holds its leaves, whoever else forgets them: each edge to the node of a leaf carries the leaf itself.

Note [Gradients that nobody else holds]
A gradient may become `.grad` itself, or be added to in place, only where no one could notice: no other name for the
tensor, and nothing else over its memory. Python's reference counts tell. Where they are higher than expected, for
whatever reason, a copy is made; so an error here can cost time, never a wrong value. Many gradients are views: of
weights turned for `addmm`, of biases summed up. Where nobody else holds what one is a view of, it stands for that.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from contextvars import ContextVar
from sys import getrefcount
from typing import Any

from redispatch.dispatch import STATE
from redispatch.dispatch.tensor import (
    AutogradRecord,
    CreationMeta,
    Metadata,
    Tensor,
    ViewRecord,
    contiguous_format,
    dtype,
    metadata_of,
    overridable_property,
)
from redispatch.dispatch.tensor.geometry import is_dense

from .formulas import resolved
from .hooks import HookDict, NodeHooks
from .node import Node

# Tensor.grad_dtype: the dtype in which a leaf's gradient is kept, where it is not the leaf's own ----------------------
#
#     w.grad_dtype = float32          # of a bfloat16 parameter: gradients are cast, and added up in float32
#     w.grad_dtype = None             # as they come
#
# Nearly no leaf has one, so it has its place in a record of its own kind, and the others pay nothing. The node of the
# leaf asks for it at the start of each pass.


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
    """The metadata that a gradient must have to be added to a leaf's."""
    metadata, record = tensor._interned or metadata_of(tensor), tensor._autograd
    if type(record) is WithGradDtype:
        wanted: Any = record.grad_dtype  # where None stands for any, as `fit` knows
        return Metadata(wanted, metadata.shape, metadata.stride, metadata.device, metadata.bits)
    return metadata


Tensor.grad_dtype = overridable_property(get_grad_dtype, set_grad_dtype)  # type: ignore[attr-defined]  # attached here


_CREATING = threading.Lock()
# Whether a first gradient must lie in memory as its leaf does, which optimizers walk together; grad_mode.py sets it
GRADIENTS_LIE_LIKE_LEAVES: ContextVar[bool] = ContextVar("gradients lie like their leaves", default=True)
_FIRST = 2**64 - 1


class AccumulateGrad(Node):
    """Adds the gradient that arrives to `variable.grad`."""

    __slots__ = ("leaf", "lock")

    def __init__(self, variable: Any) -> None:
        super().__init__()
        self.sequence = _FIRST  # runs as soon as it is ready: the gradient is complete, and its buffer free sooner
        self.leaf = weakref.ref(variable)
        self.lock = threading.Lock()
        self.add_output(variable)
        if variable._autograd.hooks is not None:
            self._hooks().of_tensors[0] = variable._autograd.hooks

    @property
    def variable(self) -> Any:
        return self.leaf()

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def look_again(self) -> None:
        """Notes what the leaf looks like now: it may have been given other data since the last pass."""
        variable = self.leaf()
        if variable is not None:
            self.outputs = metadata_of_gradient(variable).alone

    def apply(self, gradients: list[Any], wanted: Sequence[bool] | None = None) -> Sequence[Any]:
        variable = self.leaf()
        if gradients[0] is None or variable is None:
            return ()
        if gradients[0]._dtype.is_complex:
            gradients[0] = resolved(gradients[0])
        record = variable._autograd
        if not record.requires_grad:  # it does no more
            return ()
        self.lock.acquire()  # backward may run in several threads
        try:
            if record.grad is None:
                record.grad = own_gradient(gradients, variable)
            elif STATE.get().grad_enabled:
                record.grad = record.grad + gradients[0]
            else:
                record.grad += gradients[0]
        finally:
            self.lock.release()
        if record.post_accumulate_hooks is not None:
            call_post_accumulate_hooks(record.post_accumulate_hooks, variable)
        return ()


def call_post_accumulate_hooks(hooks: HookDict, variable: Any) -> None:
    for hook in list(hooks.values()):
        result = hook(variable)
        if result is not None:
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")


def own_gradient(gradients: list[Any], variable: Any) -> Any:
    """The only item of `gradients` as a first `.grad`: itself if nobody else holds it, or else a copy."""
    state = STATE.get()
    if state.grad_enabled or (not lies_like(gradients[0], variable) and GRADIENTS_LIE_LIKE_LEAVES.get()):
        return copy_lying_like(gradients[0], variable)
    if held_by_list_alone(gradients, 0) or stands_for_base(gradients, 0):
        return gradients[0]
    # A mode or a subclass is to see what becomes of the gradient: PyTorch's `detach`, where nobody else has the tensor.
    seen = state.modes or type(gradients[0]) is not Tensor
    if seen and _references(gradients, 0)[0] == _ALONE:
        return gradients[0].detach()
    gradient, gradients[0] = gradients[0], None  # so that who is given it, too, may have it alone
    return gradient.clone()


def lies_like(gradient: Any, variable: Any) -> bool:
    """Whether the elements of both lie in memory in the same order."""
    if gradient._stride == variable._stride:
        return True
    theirs = zip(gradient._shape, gradient._stride, variable._stride, strict=True)
    return all(size <= 1 or step == wanted for size, step, wanted in theirs)


def copy_lying_like(gradient: Any, variable: Any) -> Any:
    """A copy with the strides of `variable`, so that optimizers walk both in one order; row by row if it has gaps."""
    if is_dense(variable._shape, variable._stride):
        how = {"dtype": gradient._dtype, "layout": gradient.layout, "device": gradient._device}
        return gradient.new_empty_strided(variable._shape, variable._stride, **how).copy_(gradient)
    return gradient.clone(memory_format=contiguous_format)


def _references(tensors: list[Any], index: int) -> tuple[int, int, int]:
    tensor = tensors[index]
    store, array = tensor._store, tensor._array
    return getrefcount(tensor), getrefcount(store), getrefcount(array)


class _Probe:
    def __init__(self) -> None:
        self._store, self._array = object(), object()


# The counts for an object that only a list holds. Measured, since what a call itself adds depends on the interpreter.
_ALONE, _UNSHARED, _UNSHARED_ARRAY = _references([_Probe()], 0)


def held_by_list_alone(tensors: list[Any], index: int) -> bool:
    """Whether an item of a list may be overwritten: see Note [Gradients that nobody else holds]."""
    tensor = tensors[index]
    store, array = tensor._store, tensor._array  # as many names as where the counts were measured
    return (
        type(tensor) is Tensor
        and tensor._autograd is None
        and getrefcount(tensor) == _ALONE
        and (store is None or getrefcount(store) == _UNSHARED)
        and (array is None or getrefcount(array) == _UNSHARED_ARRAY + (store is not None))  # a storage holds it, too
        and tensor._counter is not None
        and not STATE.get().modes
    )


def _references_of_view(tensors: list[Any], index: int) -> tuple[int, int, int, int]:
    tensor = tensors[index]
    base, store, array = tensor._view.base, tensor._store, tensor._array
    return getrefcount(tensor), getrefcount(base), getrefcount(store), getrefcount(array)


class _ProbeOfView(_Probe):
    def __init__(self) -> None:
        base = _Probe()
        self._store, self._array = base._store, base._array
        self._view = ViewRecord(base, None, CreationMeta.DEFAULT, 0)


_VIEW_ALONE = _references_of_view([_ProbeOfView()], 0)


def stands_for_base(tensors: list[Any], index: int) -> bool:
    """Whether an item of a list is a view of a whole base and nobody else holds either; if so, it is a view no more."""
    tensor = tensors[index]
    if type(tensor) is not Tensor or tensor._view is None or tensor._store is None or STATE.get().modes:
        return False
    alone, base_alone, unshared, unshared_array = _VIEW_ALONE
    record: Any = tensor._autograd
    view: Any = tensor._view
    base, store, array = view.base, tensor._store, tensor._array
    if not (
        getrefcount(tensor) == alone
        and getrefcount(base) == base_alone
        and getrefcount(store) == unshared
        and getrefcount(array) == unshared_array + 1  # the storage holds it, too
        and type(base) is Tensor
        and base._autograd is None
        and (record is None or (record is view and record.grad_fn is record.hooks is record.retains_grad is None))
        and tensor._counter is not None
        and tensor._dtype is base._dtype
        and tensor._keyset == base._keyset
        and tensor._shape.numel() == base._shape.numel()
        and is_dense(tensor._shape, tensor._stride)
    ):
        return False
    tensor._view = tensor._autograd = None
    return True


def accumulator(tensor: Any) -> AccumulateGrad:
    """The node that accumulates into a leaf."""
    record = tensor._autograd
    if record.accumulator is None:
        with _CREATING:  # two threads that use a leaf at once must find one node
            if record.accumulator is None:
                record.accumulator = AccumulateGrad(tensor)
    return record.accumulator


def hooks_of_leaf(tensor: Any) -> NodeHooks | None:
    """The hooks of a leaf's node, where it has one."""
    node = tensor._autograd.accumulator
    return node._hooks() if node is not None else None
