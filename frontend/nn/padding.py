"""Padding layers: images with a number, their own mirror, edge or other side around them."""

from __future__ import annotations

from typing import Any, ClassVar

from . import functional
from .module import Module


class _Pad(Module):
    """`padding` is one width for all sides, or two for each dimension, the last one first."""

    dims: int
    mode: ClassVar[str]

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self.dims) if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Any) -> Any:
        return functional.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        return functional.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """A number before and behind a length."""

    dims = 1


class ConstantPad2d(_ConstantPad):
    """A number around an image."""

    dims = 2


class ConstantPad3d(_ConstantPad):
    """A number around a volume."""

    dims = 3


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Zeros before and behind a length."""


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Zeros around an image."""


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Zeros around a volume."""


class ReflectionPad1d(_Pad):
    """A length mirrored at its ends."""

    dims, mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """An image mirrored at its edges."""

    dims, mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """A volume mirrored at its sides."""

    dims, mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """The ends of a length, again and again."""

    dims, mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """The edges of an image, again and again."""

    dims, mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """The sides of a volume, again and again."""

    dims, mode = 3, "replicate"


class _CircularPad(_Pad):
    mode = "circular"

    def forward(self, input: Any) -> Any:
        least = self.dims + 1
        if input.dim() not in (least, least + 1):
            raise ValueError(f"expected {least}D or {least + 1}D input (got {input.dim()}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPad):
    """A length that goes on from its other end."""

    dims = 1


class CircularPad2d(_CircularPad):
    """An image that goes on from its other side."""

    dims = 2


class CircularPad3d(_CircularPad):
    """A volume that goes on from its other side."""

    dims = 3
