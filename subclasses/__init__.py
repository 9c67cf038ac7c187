"""Tensor subclasses, one idea per file, written as a user would: public names only.

Each is imported when it is asked for: `subclasses.MaskedTensor`, or `from redispatch.subclasses.masked import masked`.
"""

from redispatch import _names

PLACES, __getattr__, __dir__ = _names.late(
    globals(),
    {
        ".batched_by_hand": "BatchedTensor",
        ".checked_tensor": "CheckedTensor",
        ".complex_as_two_reals": "ComplexPair",
        ".diag_tensor": "DiagTensor",
        ".jagged": "JaggedTensor",
        ".lazy_constant": "LazyConstant ZeroTensor",
        ".logging_tensor": "LoggingTensor",
        ".masked": "MaskedTensor",
        ".quantity": "Quantity",
        ".quantized": "Int4Weight Int8Weight",
        ".trainable": "Trainable",
        ".two_tensor": "TwoTensor",
        ".wrapper": "WrapperTensor",
    },
)
__all__ = sorted(PLACES)
