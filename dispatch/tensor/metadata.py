"""Metadata: the facts that a kernel's choice depends on, as one object: dtype, shape, strides, device and lazy bits.

Operators cache their decisions by the metadata of arguments. Four facts for each argument make a slow key; one object
of identity hash makes a fast one (62 against 300 ns for two tensors). So metadata is interned: tensors of equal
metadata hold one object, found when it is first asked for. The identity is a key, and says nothing else: the table is
bounded, so two objects may be equal in all they say.

Where the metadata of an existing tensor changes, in place, it goes through `lay_out` or `show_same`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

from redispatch.dispatch import LAZY_BITS, Slot
from redispatch.dispatch.pytree import register_sequence
from redispatch.dispatch.specialiser.annotations import leaf
from redispatch.dispatch.symbolic import SymInt, as_index

from .devices import device
from .dtypes import dtype

# Size: a tensor's shape, a tuple of ints that knows the number of elements and stays a Size when sliced ---------------


class Size(tuple):
    """`Size([2, 3])`. TypeError where an item is not an integer."""

    __module__ = "redispatch"  # where users find it

    __slots__ = ()

    def __new__(cls, items: Iterable[Any] = ()) -> Size:
        values = tuple(items)
        for position, item in enumerate(values):
            if type(item) is not int:
                try:
                    values = tuple(map(as_index, values))
                except TypeError:
                    kind = type(item).__name__
                    raise TypeError(f"torch.Size() takes an iterable of 'int' (item {position} is '{kind}')") from None
                if any(type(one) is SymInt for one in values):
                    return tuple.__new__(SizeOfSymbols, values)
                break
        return tuple.__new__(cls, values)

    @staticmethod
    def of(items: Iterable[Any]) -> Size:
        """`Size(items)` in half the time, where all items are plain ints already."""
        made = tuple.__new__(Size, items)
        for item in made:
            if type(item) is not int:
                return Size(made)
        return made

    def numel(self) -> int:
        """The product of the sizes; 1 for no dimensions."""
        return math.prod(self)

    def __getitem__(self, index: Any) -> Any:
        try:
            item = tuple.__getitem__(self, index)
        except IndexError:
            raise no_dimension(index, len(self)) from None
        return tuple.__new__(Size, item) if isinstance(index, slice) else item

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, tuple):
            return NotImplemented
        return tuple.__new__(Size, tuple(self) + tuple(other))

    def __radd__(self, other: Any) -> Any:
        if not isinstance(other, tuple):
            return NotImplemented
        return tuple.__new__(Size, tuple(other) + tuple(self))

    def __mul__(self, times: Any) -> Any:
        return tuple.__new__(Size, tuple(self) * times)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(repr, self))}])"

    def __reduce__(self) -> tuple[Any, ...]:
        return Size, (tuple(self),)


class SizeOfSymbols(Size):
    """A Size in which a number is symbolic. Where dimensions are compared, the number of them is compared first.

    A tuple compares its first items before its length, and so a guard would be left by a question that needs none.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple) and len(self) == len(other) and tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = Size.__hash__


register_sequence(Size)
register_sequence(SizeOfSymbols)


def no_dimension(dim: int, ndim: int) -> IndexError:
    """Returns the error for a dimension that there is not."""
    if not ndim:
        return IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")


LIMIT = 1 << 15  # interned metadata; then the table starts afresh

_INTERNED: dict[tuple[Any, ...], Metadata] = {}


class Metadata:
    """The metadata of a tensor; its memory, offset and class aside. Immutable."""

    __slots__ = ("dtype", "shape", "stride", "device", "bits", "alone")

    def __init__(self, element: dtype, shape: Size, stride: tuple[int, ...], on: device, bits: int) -> None:
        self.dtype, self.shape, self.stride, self.device = element, shape, stride, on
        self.bits = bits  # those in LAZY_BITS: whether the elements are the conjugates of what lies in memory, ...
        self.alone = (self,)  # `outputs` of the node of a call with this one result

    def __repr__(self) -> str:
        return f"Metadata({self.dtype}, {tuple(self.shape)}, {self.stride}, {self.device})"


@leaf
def metadata_of(tensor: Any) -> Metadata:
    """Returns the metadata of a tensor. Hot code asks `tensor._interned or metadata_of(tensor)`."""
    metadata = tensor._interned
    if metadata is None:
        bits = tensor._keyset & LAZY_BITS
        metadata = tensor._interned = interned(tensor._dtype, tensor._shape, tensor._stride, tensor._device, bits)
    return metadata


def interned(element: dtype, shape: Size, stride: tuple[int, ...], on: device, bits: int = 0) -> Metadata:
    """Returns the one object for this metadata, as long as the table holds it."""
    key = (element, shape, stride, on, bits)
    try:
        found = _INTERNED.get(key)
    except TypeError:  # a program's sizes that are symbols have no hash
        return Metadata(*key)
    if found is None:
        if len(_INTERNED) >= LIMIT:
            _INTERNED.clear()
        found = _INTERNED.setdefault(key, Metadata(*key))
    return found


def lay_out(tensor: Any, shape: Size, stride: tuple[int, ...], offset: int) -> None:
    """Has an existing tensor show other elements of its storage."""
    tensor._shape, tensor._stride, tensor._offset = shape, stride, offset
    tensor._interned = None


def show_same(tensor: Any, other: Any) -> None:
    """Has a tensor, a new or an existing one, show the memory that another tensor shows; its lazy bits are its own."""
    tensor._storage, tensor._array = other._storage, other._array
    tensor._shape, tensor._stride, tensor._offset = other._shape, other._stride, other._offset
    tensor._dtype, tensor._device = other._dtype, other._device
    tensor._interned = None


# A tensor's records besides its data: what autograd keeps of it, and its base, if it is a view ------------------------
#
# Most tensors have neither; each record is made when there is something to put into it.


class AutogradRecord:
    """The record of a tensor that autograd keeps.

    `requires_grad` holds for leaves that were asked to and for every result that was recorded. A leaf has no
    `grad_fn`; its node is the accumulator, which holds the tensor weakly.
    """

    __slots__ = (
        "requires_grad",
        "grad_fn",
        "output_nr",
        "grad",
        "accumulator",
        "hooks",
        "post_accumulate_hooks",
        "retains_grad",
    )

    def __init__(self, requires_grad: bool = False, grad_fn: Any = None, output_nr: int = 0) -> None:
        self.requires_grad = requires_grad
        self.grad_fn = grad_fn
        self.output_nr = output_nr
        self.grad: Any = None
        self.accumulator: Any = None
        self.hooks: dict[int, Callable[..., Any]] | None = None
        self.post_accumulate_hooks: dict[int, Callable[..., Any]] | None = None
        self.retains_grad: Any = None  # the handle of the hook that keeps a non-leaf's gradient


EPOCH = 1 << 40  # greater than the versions that a tensor comes to


class VersionOfDetached(list[int]):
    """The version counter of a tensor that `detach_` took out of its graph: the old one's version, an epoch later.

    So nodes that saved the tensor before, as their argument, see that it is another, and nothing has to be compared
    that is not compared anyway. What shares the memory counts on with the old counter.
    """

    def __init__(self, shared: list[int]) -> None:
        super().__init__([0])
        self.shared = shared

    def __getitem__(self, index: Any) -> Any:
        return self.shared[0] + EPOCH

    def __setitem__(self, index: Any, version: Any) -> None:
        self.shared[0] = version % EPOCH


class CreationMeta(Enum):
    """Under which circumstances a view was made: it decides whether the view may be written in place later."""

    DEFAULT = "default"
    IN_CUSTOM_FUNCTION = "in a custom function"
    MULTI_OUTPUT_NODE = "as one of several outputs"
    NO_GRAD_MODE = "in no_grad mode"
    INFERENCE_MODE = "in inference mode"


class ViewRecord:
    """The base of a view: always one that is no view itself, however long the chain that led here.

    `replay` makes the view from the base again. `version` is the counter's value when `grad_fn` was last right: a
    write through the base or another view since then makes it stale.
    """

    __slots__ = ("base", "replay", "creation", "version")

    def __init__(self, base: Any, replay: Callable[[Any], Any] | None, creation: CreationMeta, version: int) -> None:
        self.base = base
        self.replay = replay
        self.creation = creation
        self.version = version


# (tensor) -> its grad_fn, made anew where the tensor is a view that was written through another name
CURRENT_GRAD_FN: Slot[Callable[[Any], Any]] = Slot("the node of a view after its base was written")
# (tensor, requires_grad) -> checks and sets
SET_REQUIRES_GRAD: Slot[Callable[..., None]] = Slot("how requires_grad is set")
