"""Looking at the graph, and changing what it saves: `redispatch.autograd.graph`."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from redispatch.dispatch import TorchDispatchMode
from redispatch.dispatch.layers.ad_inplace_or_view import bump_version, tensors_in
from redispatch.dispatch.tensor import Tensor, metadata_of

from .api import GradientEdge
from .engine import current_task
from .history import gradient_edge
from .hooks import WATCH
from .node import Node
from .saved import HOOKS_REFUSED, PACKING, SavedTensor, copy_of

# Hooks on saved tensors: regions in which what is saved for backward goes through the user's functions ----------------
#
# What becomes of a tensor between the two, `saved.py` says.


class saved_tensors_hooks:
    """A region in which what is saved for backward goes through `pack_hook`, and later through `unpack_hook`."""

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        refused = HOOKS_REFUSED.get()
        if refused is not None:
            raise RuntimeError(refused)
        WATCH.on = True
        PACKING.set((*PACKING.get(), (self.pack_hook, self.unpack_hook)))

    def __exit__(self, *error: object) -> None:
        PACKING.set(PACKING.get()[:-1])


class save_on_cpu(saved_tensors_hooks):
    """A region in which saved tensors are moved to the CPU, and back for backward."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Any) -> Any:
            return tensor.device, tensor.cpu()

        def unpack(packed: Any) -> Any:
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """A region in which entering `saved_tensors_hooks` raises RuntimeError with this message.

    So does entering this region inside of such hooks.
    """
    if PACKING.get():
        raise RuntimeError(error_message)
    token = HOOKS_REFUSED.set(error_message)
    try:
        yield
    finally:
        HOOKS_REFUSED.reset(token)


# allow_mutation_on_saved_tensors: in this region a tensor may be written after it was saved for backward --------------
#
# Hooks hand out a `Kept` for each saved tensor; a dispatch mode sees each write coming, and gives those that were saved
# from the memory in question a copy of what stands there. So copies are made only of what is really written.


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
        self.cloned: weakref.WeakKeyDictionary[Kept, Any] = weakref.WeakKeyDictionary()  # the copies that were made
        # PyTorch's name: what is saved once more in the same version has one stand-in
        self.tid_to_weakhandle: weakref.WeakValueDictionary[Any, Kept] = weakref.WeakValueDictionary()
        self.active = True

    def clear(self) -> None:
        self.kept.clear()
        self.cloned.clear()
        self.tid_to_weakhandle.clear()

    def pack(self, tensor: Any) -> Kept:
        identity = (id(tensor._counter), tensor._version, tensor._interned or metadata_of(tensor), tensor._offset)
        kept = self.tid_to_weakhandle.get(identity)
        if kept is None or type(kept.tensor) is not type(tensor):
            kept = self.tid_to_weakhandle[identity] = Kept(copy_of(tensor), self)  # a result would hold itself
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
            kept.tensor = self.cloned[kept] = copies[same]


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


__all__ = [
    "GradientEdge",
    "Node",
    "SavedTensor",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """The place in the graph where the tensor's gradient arrives. RuntimeError where none is wanted."""
    edge = gradient_edge(tensor)
    if edge is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(edge[0], edge[1])


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Counts a write of each tensor, as for one that was made behind the library's back."""
    for one in (tensor,) if isinstance(tensor, Tensor) else tensor:
        bump_version(one)


class _Handles:
    """Removes several hooks at once."""

    def __init__(self, handles: Sequence[Any]) -> None:
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Sequence[Any], fn: Callable[..., Any], *, mode: str = "all") -> _Handles:
    """Calls `fn` once per backward pass, with the list of all gradients when the last is there (None: not computed).

    With `mode="any"`: with the first gradient alone. Tensors that the pass does not reach are not waited for.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    arrived: dict[int, dict[int, Any]] = {}  # by pass: the gradients that are there, by place

    def hook_at(place: int) -> Callable[[Any], None]:
        def hook(gradient: Any) -> None:
            task = current_task()
            if task is None:
                raise RuntimeError("this hook can only be called inside a backward pass")
            with lock:
                known = arrived.get(id(task))
                if known is None:
                    known = arrived[id(task)] = {}
                    task.at_end.append(lambda: arrived.pop(id(task), None))
                known[place] = gradient
                awaited = sum(task.will_run(edge[0]) for edge in edges)
                complete = len(known) == (1 if mode == "any" else awaited)
            if complete:
                fn(gradient if mode == "any" else [known.get(i) for i in range(len(edges))])

        return hook

    edges = [edge for edge in map(gradient_edge, tensors) if edge is not None]
    return _Handles([tensor.register_hook(hook_at(place)) for place, tensor in enumerate(tensors)])
