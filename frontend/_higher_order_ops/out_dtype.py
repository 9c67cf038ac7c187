"""out_dtype: an operator whose result has a dtype of one's choice, computed without loss on the way.

out_dtype(torch.ops.aten.mm.default, torch.int32, a8, b8)       the products of int8 matrices, in int32
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import OpOverload
from redispatch.dispatch.schema.schema import TENSOR
from redispatch.dispatch.tensor import Tensor, dtype, promote_types
from redispatch.utils._pytree import tree_map_only

from .body import BodyOperator, functionalize_functions


def computed_in(op: OpOverload, output_dtype: dtype, *args: Any) -> Any:
    """The result of `op` on arguments promoted together with the dtype wanted."""

    def promoted(x: Tensor) -> Tensor:
        return x.to(promote_types(x.dtype, output_dtype))

    return op(*tree_map_only(Tensor, promoted, args)).to(output_dtype)


class OutDtypeOperator(BodyOperator):
    """The operator; it looks at its arguments first."""

    def __call__(self, op: Any, output_dtype: Any, /, *args: Any) -> Any:
        if not isinstance(op, OpOverload):
            raise ValueError("out_dtype's first argument must be an OpOverload")
        if not isinstance(output_dtype, dtype):
            raise TypeError(f"out_dtype's second argument must be a torch.dtype, not {type(output_dtype).__name__}")
        if op.schema.is_mutable:
            raise ValueError("out_dtype's first argument needs to be a functional operator")
        if len(op.schema.returns) != 1 or op.schema.returns[0].type != TENSOR:
            raise ValueError(
                "out_dtype's can only apply to ops that return a single tensor"
                f"Instead got {[returned.type for returned in op.schema.returns]}"
            )
        return super().__call__(op, output_dtype, *args)


out_dtype = OutDtypeOperator("out_dtype", computed_in)
functionalize_functions(out_dtype)
