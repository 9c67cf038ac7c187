"""allow_mutation_on_saved_tensors: in this region a tensor may be written after it was saved for backward.

Hooks hand out a `Kept` for each saved tensor; a dispatch mode sees each write coming, and gives those that were saved
from the memory in question a copy of what stands there. So copies are made only of what is really written.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from redispatch.dispatch import TorchDispatchMode
from redispatch.dispatch.layers.ad_inplace_or_view import tensors_in

from .saved import copy_of
from .saved_hooks import saved_tensors_hooks


class Kept:
    """The saved stand-in of a tensor: the tensor itself, and later perhaps a copy."""

    __slots__ = ("tensor", "context", "__weakref__")

    def __init__(self, tensor: Any, context: MutationContext) -> None:
        self.tensor, self.context = tensor, context


class MutationContext:
    """The saved tensors of one region, by the memory that they show. `clear()` forgets them."""

    def __init__(self) -> None:
        # Weak, since a graph may go inside the region; what has its copy is no longer here.
        self.kept: weakref.WeakKeyDictionary[Any, weakref.WeakSet[Kept]] = weakref.WeakKeyDictionary()
        self.active = True

    def clear(self) -> None:
        self.kept.clear()

    def pack(self, tensor: Any) -> Kept:
        kept = Kept(copy_of(tensor), self)  # a result would hold itself
        self.kept.setdefault(tensor._storage, weakref.WeakSet()).add(kept)
        return kept

    def unpack(self, kept: Kept) -> Any:
        if not self.active:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
                "originally recorded."
            )
        return kept.tensor

    def before_write(self, tensor: Any) -> None:
        """Copies what was saved of the memory of a tensor that is about to be written."""
        copies: dict[Any, Any] = {}
        for kept in list(self.kept.pop(tensor._storage, ())):
            saved = kept.tensor
            same = (saved._dtype, saved._shape, saved._stride, saved._offset, saved._keyset)
            if same not in copies:
                copies[same] = saved.clone()
            kept.tensor = copies[same]


class CopyBeforeWrite(TorchDispatchMode):
    """Tells the context of each argument that an operator is about to write."""

    def __init__(self, context: MutationContext) -> None:
        self.context = context

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        for position in func.schema.mutable_positions:
            name = func.schema.arguments[position].name
            for tensor in tensors_in(args[position] if position < len(args) else kwargs.get(name)):
                self.context.before_write(tensor)
        return func(*args, **kwargs)


_ACTIVE: ContextVar[bool] = ContextVar("inside allow_mutation_on_saved_tensors", default=False)


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[MutationContext]:
    """A region in which tensors may be written after they were saved for backward; the gradients stay right.

    Backward has to run in the region, too. Errors: RuntimeError where it is entered inside such a region.
    """
    if _ACTIVE.get():
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = MutationContext()
    token = _ACTIVE.set(True)
    try:
        with saved_tensors_hooks(context.pack, context.unpack), CopyBeforeWrite(context):
            yield context
    finally:
        _ACTIVE.reset(token)
        context.clear()
        context.active = False
