"""Made by `python -m redispatch.stubs`."""

from .batched_by_hand import BatchedTensor as BatchedTensor
from .checked_tensor import CheckedTensor as CheckedTensor
from .complex_as_two_reals import ComplexPair as ComplexPair
from .diag_tensor import DiagTensor as DiagTensor
from .jagged import JaggedTensor as JaggedTensor
from .lazy_constant import LazyConstant as LazyConstant, ZeroTensor as ZeroTensor
from .logging_tensor import LoggingTensor as LoggingTensor
from .masked import MaskedTensor as MaskedTensor
from .quantity import Quantity as Quantity
from .quantized import Int4Weight as Int4Weight, Int8Weight as Int8Weight
from .trainable import Trainable as Trainable
from .two_tensor import TwoTensor as TwoTensor
from .wrapper import WrapperTensor as WrapperTensor

