"""Tensor subclasses, one idea per file, written as a user would: public names only.

Each is imported when it is asked for: `subclasses.MaskedTensor`, or `from redispatch.subclasses.masked import masked`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from redispatch.utils._late import late_names

if TYPE_CHECKING:
    from .batched_by_hand import BatchedTensor
    from .checked_tensor import CheckedTensor
    from .complex_as_two_reals import ComplexPair
    from .diag_tensor import DiagTensor
    from .jagged import JaggedTensor
    from .lazy_constant import LazyConstant, ZeroTensor
    from .logging_tensor import LoggingTensor
    from .masked import MaskedTensor
    from .quantity import Quantity
    from .quantized import Int4Weight, Int8Weight
    from .trainable import Trainable
    from .two_tensor import TwoTensor
    from .wrapper import WrapperTensor

PLACES = {
    "BatchedTensor": "batched_by_hand",
    "CheckedTensor": "checked_tensor",
    "ComplexPair": "complex_as_two_reals",
    "DiagTensor": "diag_tensor",
    "Int4Weight": "quantized",
    "Int8Weight": "quantized",
    "JaggedTensor": "jagged",
    "LazyConstant": "lazy_constant",
    "LoggingTensor": "logging_tensor",
    "MaskedTensor": "masked",
    "Quantity": "quantity",
    "Trainable": "trainable",
    "TwoTensor": "two_tensor",
    "WrapperTensor": "wrapper",
    "ZeroTensor": "lazy_constant",
}

__all__ = list(PLACES)

__getattr__, __dir__ = late_names(__name__, PLACES)
