"""Size: a tensor's shape, a tuple of ints that knows the number of elements and stays a Size when sliced."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any


class Size(tuple):
    """`Size([2, 3])`. TypeError where an item is not an integer."""

    __module__ = "redispatch"  # where users find it

    __slots__ = ()

    def __new__(cls, items: Iterable[Any] = ()) -> Size:
        values = tuple(items)
        for position, item in enumerate(values):
            if type(item) is not int:
                try:
                    values = tuple(int(operator.index(v)) for v in values)  # int(): a bool is its own index
                except TypeError:
                    kind = type(item).__name__
                    raise TypeError(f"torch.Size() takes an iterable of 'int' (item {position} is '{kind}')") from None
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
        item = tuple.__getitem__(self, index)
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
