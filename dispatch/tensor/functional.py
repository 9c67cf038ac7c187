"""FunctionalTensorWrapper: a tensor that may be written, around values that are not.

The layer Functionalize (dispatch/layers/functionalize.py) has programs compute with such wrappers. To the program a
wrapper is an ordinary tensor: it has a shape, strides and a storage, views of it share that storage, and a write
through any of them is seen by all. Below, nobody writes and nothing needs to be shared:

    storage    the value of the whole memory, and the writes that have not been put into it yet
    wrapper    the view operators that lead from that value to what the wrapper shows, its *steps*

A write adds (new value, steps) to the list of the storage, and is put into it when somebody next reads: the new value
goes back up the steps, by the inverse of each, and the result is the new value of the storage. Wrappers that were made
of the former one notice by the storage's *generation*, and take their steps again.

Note [Wrappers lie as their tensors would]
A wrapper has the shape, strides and offset which the tensor would have that it stands for; so whatever a program asks
about them, and whatever depends on the answer, is as it would be without the layer. The value of a storage has the
strides that its first one had (`as_before`), but a value that a view shows may have others where views are copies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch import Slot, _disabled_torch_function_impl, keyset
from redispatch.dispatch.layers.functionalize import below_functionalize
from redispatch.dispatch.specialiser.annotations import leaf

from ..records import dataclass
from .devices import device
from .metadata import lay_out
from .storage import UntypedStorage
from .tensor import Tensor
from .wrapped import keys_of_wrapper

FUNCTIONALIZE = keyset("Functionalize")

# (former value, new value) -> the new one in the strides of the former one; through the dispatcher
AS_BEFORE: Slot[Callable[[Any, Any], Any]] = Slot("what lays a value out as another one")


@dataclass(frozen=True, slots=True)
class Step:
    """One view operator, as a function of values.

    `shown(base)` is what the view shows; `put_back(base, value)` is `base` where the view would show `value`.
    repeats: whether the view shows places of its base more than once, as `expand` does.
    """

    shown: Callable[[Any], Any]
    put_back: Callable[[Any, Any], Any]
    repeats: bool = False


Steps = tuple[Step, ...]


class FunctionalStorage(UntypedStorage):
    """The memory that wrappers share: its value, and the writes to come. It has a size, and no bytes.

    offset: where the first value began, in elements; what strided views say of places counts from there.
    """

    __slots__ = ("value", "updates", "generation", "offset", "larger", "frozen")
    frozen: bool  # whether a write to it is an error
    value: Any
    updates: list[tuple[Any, Steps]]
    generation: int  # how often it has been written
    offset: int
    larger: FunctionalStorage | None  # which has taken its place, since a tensor needed more room

    def __init__(self, value: Any, nbytes: int, on: device) -> None:
        self._begin(nbytes, on)
        self._resizable = False
        self.value, self.updates, self.generation = value, [], 0
        self.offset, self.larger, self.frozen = value._offset, None, False

    def enter(self, value: Any, steps: Steps) -> None:
        """Enters that what the steps lead to shows `value` from now on."""
        self.updates.append((value, steps))
        self.generation += 1

    def put(self, value: Any) -> None:
        """Has another tensor with the same elements be the value from now on."""
        self.value = value
        self.updates.clear()
        self.generation += 1

    def replaces(self, smaller: FunctionalStorage) -> None:
        smaller.larger = self

    def current(self) -> Any:
        """The value of the whole memory, with all that was written put into it. Calls operators."""
        while self.updates:
            value, steps = self.updates[0]
            self.value = AS_BEFORE()(self.value, put_back(self.value, steps, value))
            del self.updates[0]
        return self.value


def put_back(base: Any, steps: Steps, value: Any) -> Any:
    """`base` where the view by these steps would show `value`."""
    bases = []
    for step in steps:
        bases.append(base)
        base = step.shown(base) if step is not steps[-1] else base
    for step, around in zip(reversed(steps), reversed(bases), strict=True):
        value = step.put_back(around, value)
    return value


class FunctionalTensorWrapper(Tensor):
    """See above. `_level`: the functionalize that it belongs to, None for one that no transform made."""

    __torch_function__ = staticmethod(_disabled_torch_function_impl)
    _store: FunctionalStorage
    _steps: Steps
    _value: Any
    _generation: int  # that of the storage of which `_value` was made
    _level: Any
    _turned = False  # whether an operator such as `t_` has changed how it lies
    _bdim = None  # it stands for one tensor, and not for the examples of a batch

    def current(self) -> Any:
        """The value that the wrapper shows now. Calls operators where it was written since it was last asked."""
        store = self._store
        if self._generation != store.generation:
            value = store.current()
            for step in self._steps:
                value = step.shown(value)
            self._value, self._generation = value, store.generation
        return self._value

    def show(self, storage: FunctionalStorage, steps: Steps, value: Any, like: Tensor) -> None:
        """Has the wrapper show another place: the one to which the steps lead, in the metadata of a tensor."""
        self._store, self._steps = storage, steps
        self._value, self._generation = value, storage.generation
        self._dtype, self._device = like._dtype, like._device
        self._keyset = keys_of_wrapper(like, FUNCTIONALIZE)
        lay_out(self, like._shape, like._stride, like._offset)

    @property
    def is_stale(self) -> bool:
        """Whether it was written since its value was last asked for."""
        return self._generation != self._store.generation

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError("a tensor under functionalization cannot be pickled: it is part of a computation")

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        with below_functionalize():
            return f"FunctionalTensor({self.current()!r})"


@leaf
def functional(value: Tensor, level: Any = None) -> Any:
    """A wrapper around a value: memory of its own, which nobody has written yet."""
    nbytes = value._storage.nbytes()
    return functional_view(FunctionalStorage(value, nbytes, value._device), (), value, value, level)


@leaf
def functional_view(storage: FunctionalStorage, steps: Steps, value: Any, like: Tensor, level: Any) -> Any:
    """A wrapper that shows the place of a storage to which the steps lead, in the metadata of `like`."""
    t: Any = object.__new__(getattr(value, "wrapper", FunctionalTensorWrapper))
    t._counter = [0]
    t._autograd = None
    t._array = None
    t._view = None
    t._level = level
    t.show(storage, steps, value, like)
    return t


def is_functional(value: Any) -> bool:
    """Whether it is such a wrapper, of whatever level."""
    return isinstance(value, FunctionalTensorWrapper)


__all__ = [
    "AS_BEFORE",
    "FUNCTIONALIZE",
    "FunctionalStorage",
    "FunctionalTensorWrapper",
    "Step",
    "functional",
    "functional_view",
    "is_functional",
    "put_back",
]
