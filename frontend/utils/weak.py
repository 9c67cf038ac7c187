"""Weak references and dictionaries for tensors, which are told apart by what they are and not by their values.

    notes = WeakTensorKeyDictionary()
    notes[x] = "made by the loader"     # gone as soon as nobody else holds x

`weakref.WeakKeyDictionary` compares keys by `==`, which for tensors is an operator with one answer per element. Here
two keys are the same if they are the same object. Modes keep what they know about tensors in such dictionaries.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any

from redispatch.dispatch.tensor import Tensor

__all__ = ["TensorWeakRef", "WeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


WeakRef = weakref.ref


class WeakIdRef(weakref.ref):
    """A weak reference that is equal to others of the same living object, whatever that object's `==` says."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Callable[[Any], Any] | None = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]  # typeshed knows no __init__ here
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine, its = self(), other() if isinstance(other, weakref.ref) else None
        if mine is not None and its is not None:
            return mine is its
        return self is other

    def __ne__(self, other: object) -> bool:
        return not self == other  # weakref's own would compare the values


class TensorWeakRef:
    """A weak reference to a tensor. Not equal to another one: ask whether `ref() is x`."""

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected Tensor, got {type(tensor).__name__}")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dict whose entries go when their keys do, and whose keys are compared by `is`.

    TypeError for keys to which there can be no weak reference, such as numbers and strings.
    """

    def __init__(self, dict: Mapping[Any, Any] | Iterable[Any] | None = None, ref_type: Any = WeakIdRef) -> None:
        self.ref_type = ref_type
        self.data: Any = {}
        data = self.data

        def forget(reference: Any) -> None:
            data.pop(reference, None)  # one step of the interpreter: no iteration of ours is under way, see `alive`

        self._forget = forget
        if dict is not None:
            self.update(dict)

    def alive(self) -> list[tuple[Any, Any]]:
        """(key, value) of the entries, each held while it is looked at: an entry may go at any time."""
        found = [(reference(), value) for reference, value in list(self.data.items())]
        return [(key, value) for key, value in found if key is not None]

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._forget)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # no key at all
            return False

    def __iter__(self) -> Iterator[Any]:
        return iter([key for key, _ in self.alive()])

    def __len__(self) -> int:
        return len(self.data)

    def keyrefs(self) -> list[Any]:
        """The references themselves, which do not keep the keys alive."""
        return list(self.data)

    def copy(self) -> WeakIdKeyDictionary:
        return type(self)(self.alive(), ref_type=self.ref_type)

    def __copy__(self) -> WeakIdKeyDictionary:
        return self.copy()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} with {len(self)} entries>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        mine, its = self.alive(), list(other.items())
        values = {id(key): value for key, value in its}
        return len(mine) == len(its) and all(id(key) in values and values[id(key)] == value for key, value in mine)

    __hash__ = None  # type: ignore[assignment]  # it changes


WeakTensorKeyDictionary = WeakIdKeyDictionary
