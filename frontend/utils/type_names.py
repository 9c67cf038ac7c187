"""`redispatch.types`: names for annotations, as PyTorch has them. Nothing is computed here.

    from redispatch.types import Device, Number

The file has another name than the module, since `types.py` in the root would hide Python's own module of that name from
programs that are started there.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, TypeAlias, Union

from redispatch.dispatch import DispatchKey
from redispatch.dispatch.tensor import Size, Tensor, UntypedStorage
from redispatch.dispatch.tensor import device as _device

from .symbolic import SymBool, SymFloat, SymInt

__all__ = ["Device", "FileLike", "Number", "Storage"]

Number: TypeAlias = int | float | bool
Device: TypeAlias = _device | str | int | None
FileLike: TypeAlias = Union[str, os.PathLike[str], IO[bytes]]  # noqa: UP007  # `|` makes no union with a generic class
Storage: TypeAlias = UntypedStorage

_Number = (int, float, bool)  # for isinstance
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None]
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_symsize: TypeAlias = Size | Sequence[int | SymInt]
_dispatchkey: TypeAlias = str | DispatchKey
IntLikeType: TypeAlias = int | SymInt
FloatLikeType: TypeAlias = float | SymFloat
BoolLikeType: TypeAlias = bool | SymBool
PySymType: TypeAlias = SymInt | SymFloat | SymBool
py_sym_types = (SymInt, SymFloat, SymBool)
