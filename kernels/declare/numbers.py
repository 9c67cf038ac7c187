"""Python numbers as elements: which ones fit into a dtype, and what they become there.

A number that is written into a tensor, or that meets one in an operator, must have a place in the tensor's dtype: 300
has none in uint8, nor has 1.5j in a float. Read next: kernels/ops/copying.py, kernels/ops/creation.py.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.tensor import dtype, dtypes
from redispatch.dispatch.tensor.operand import DTYPES as COMPUTED

# As C++ calls them, which is how the message does.
C_NAMES = {
    "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t", "float32": "float",
    "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
    **{name: f"{name}_t" for name in ("uint16", "uint32", "uint64")},
    **{each.name: f"c10::{each.tensor_name}" for each in dtypes.FLOAT8},
}  # fmt: skip
LARGEST = {
    "float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38, "float8_e4m3fn": 448.0,
    "float8_e5m2": 57344.0, "float8_e4m3fnuz": 240.0, "float8_e5m2fnuz": 57344.0,
    "float8_e8m0fnu": 2.0**127,
}  # fmt: skip
INFINITE = (float("inf"), float("-inf"))


def storable(value: Any, to: dtype) -> Any:
    """A Python number as one of the dtype's kind. RuntimeError where it does not fit.

    A negative int wraps in uint8, as long as its absolute value fits; a negative float does not. Infinities and NaN
    fit into every floating dtype.
    """
    if to.is_complex:
        return complex(value)
    if to.name not in COMPUTED:
        raise NotImplementedError(f"\"fill_cpu\" not implemented for '{to.tensor_name}'")
    if to is dtypes.bool:
        return bool(value)
    overflow = f"value cannot be converted to type {C_NAMES[to.name]} without overflow"
    if isinstance(value, complex):
        if value.imag:
            raise RuntimeError(overflow)
        value = value.real
    if to.is_floating_point:
        value = float(value)
        if abs(value) > LARGEST.get(to.name, float("inf")) and value not in INFINITE:
            raise RuntimeError(overflow)
        return value
    bits, wraps = 8 * to.itemsize, not to.is_signed and not isinstance(value, float)
    high = 2 ** (bits - 1) - 1 if to.is_signed else 2**bits - 1
    low = -high - 1 if to.is_signed else -high if wraps else 0
    if not low <= value <= high:  # NaN, too
        raise RuntimeError(overflow)
    return int(value) % 2**bits if wraps else int(value)
