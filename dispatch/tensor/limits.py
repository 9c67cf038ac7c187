"""finfo and iinfo: what numbers a dtype can hold. numpy's, with PyTorch's names; bfloat16's are those of ml_dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .dtypes import dtype as dtype_class
from .dtypes import get_default_dtype


class Limits:
    """The common base of finfo and iinfo: a dtype, by whose name they are equal."""

    __slots__ = ("_kind",)
    _kind: dtype_class
    _shown: tuple[str, ...]

    @property
    def bits(self) -> int:
        return self._kind.to_real().itemsize * 8

    @property
    def dtype(self) -> str:
        return self._kind.to_real().name

    def __eq__(self, other: Any) -> bool:
        return type(other) is type(self) and other._kind.to_real() is self._kind.to_real()

    def __hash__(self) -> int:
        return hash((type(self), self.dtype))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name):g}" for name in self._shown)
        return f"{type(self).__name__}({fields}, dtype={self.dtype})"


class finfo(Limits):
    """The limits of a floating dtype, by default the default one; of a complex dtype those of its parts."""

    __module__ = "redispatch"
    __slots__ = ("min", "max", "eps", "tiny", "smallest_normal", "resolution")
    _shown = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")

    def __init__(self, type: dtype_class | None = None) -> None:
        self._kind = kind = get_default_dtype() if type is None else type
        if not (kind.is_floating_point or kind.is_complex):
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        numbers = limits(kind.to_real())
        self.min, self.max, self.eps = float(numbers.min), float(numbers.max), float(numbers.eps)
        self.tiny = self.smallest_normal = float(numbers.tiny)
        self.resolution = 10.0**-numbers.precision  # numpy rounds it to the dtype


def limits(kind: dtype_class) -> Any:
    if kind.name != "bfloat16":
        return np.finfo(kind.numpy)
    import ml_dtypes  # here: most programs do not need it, and it takes long to import

    return ml_dtypes.finfo(kind.numpy)


class iinfo(Limits):
    """The limits of an integer dtype."""

    __module__ = "redispatch"
    __slots__ = ("min", "max")
    _shown = ("min", "max")

    def __init__(self, type: dtype_class) -> None:
        self._kind = type
        if type.is_floating_point or type.is_complex:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        if type.name == "bool":
            raise TypeError("torch.bool is not supported by torch.iinfo")
        numbers = np.iinfo(type.numpy)
        self.min, self.max = int(numbers.min), int(numbers.max)
