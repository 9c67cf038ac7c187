"""Operators that run another operator or a function in a way of their own: in a region, in a dtype, on copies.

Read next: control_flow.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from redispatch.amp import autocast
from redispatch.autograd import set_grad_enabled
from redispatch.dispatch import OpOverload
from redispatch.dispatch.layers.functionalize import WRITE_COPIES, written_positions
from redispatch.dispatch.pytree import tree_map_only
from redispatch.dispatch.schema.schema import TENSOR
from redispatch.dispatch.tensor import Tensor, dtype, promote_types
from redispatch.utils.checkpoint import checkpoint

from .control_flow import BodyOperator, functionalize_functions

# --- Regions as operators: a function called as it is, with gradients off, under autocast, or checkpointed ------------
#
# A mode that takes higher-order operators sees the region and its function, and may do with it as it likes.


def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


def call_with_grad(enable_grad: bool, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with set_grad_enabled(enable_grad):
        return function(*args, **kwargs)


def call_with_autocast(
    device_type: str,
    dtype: Any,
    enabled: bool,
    cache_enabled: bool | None,
    function: Callable[..., Any],
    *args: Any,
    **kwargs: Any,
) -> Any:
    with autocast(device_type, dtype, enabled, cache_enabled):
        return function(*args, **kwargs)


def call_checkpointed(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The function without keeping what it computes on the way: backward computes it again."""
    return checkpoint(function, *args, use_reentrant=False, **kwargs)


wrap = BodyOperator("wrap", call)
wrap_with_set_grad_enabled = BodyOperator("wrap_with_set_grad_enabled", call_with_grad)
wrap_with_autocast = BodyOperator("wrap_with_autocast", call_with_autocast)
tag_activation_checkpoint = BodyOperator("tag_activation_checkpoint", call_checkpointed)
wrap_activation_checkpoint = BodyOperator("wrap_activation_checkpoint", call_checkpointed)


# --- out_dtype: an operator whose result has a dtype of one's choice, computed without loss on the way ----------------
#
# out_dtype(torch.ops.aten.mm.default, torch.int32, a8, b8)       the products of int8 matrices, in int32


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


# --- auto_functionalized: an operator that writes its arguments, as one that returns their new values -----------------
#
#     auto_functionalized(torch.ops.mylib.add_one.default, x=x)        # (None, the new x)
#
# Under functionalization nothing may be written. Our own operators have forms that write nothing; a custom operator
# with `mutates_args` mostly has none. So it is run on copies of what it writes, inside of this operator, which itself
# is functional: a graph may hold it, and a compiler may put the write back where nobody needs the former value.
#
# Source: PyTorch's torch._higher_order_ops.auto_functionalize.


def on_copies(op: OpOverload, **kwargs: Any) -> tuple[Any, ...]:
    """The results of `op`, None where it has none, and then the new value of each argument that it writes."""
    written = [op.schema.arguments[position].name for position in written_positions(op.schema)]
    copies = {name: tree_map_only(Tensor, clone, kwargs.get(name)) for name in written}
    result = op(**{**kwargs, **copies})
    results = result if len(op.schema.returns) > 1 else (result,)
    return (*results, *copies.values())


def clone(tensor: Tensor) -> Tensor:
    return tensor.clone()


class AutoFunctionalized(BodyOperator):
    """The operator; it looks at what it is given first."""

    def __call__(self, op: Any, /, **kwargs: Any) -> Any:
        if not isinstance(op, OpOverload) or not op.schema.is_mutable:
            raise self.refused(op)
        return super().__call__(op, **kwargs)

    @staticmethod
    def refused(op: Any) -> AssertionError:
        why = f"{op.schema} writes nothing" if isinstance(op, OpOverload) else f"it is of type {type(op).__name__}"
        return AssertionError(f"auto_functionalized: expected an operator overload that writes an argument; {why}")

    def gen_schema(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError("auto_functionalized is functional; its operator's schema says what it is made of")


auto_functionalized = AutoFunctionalized("auto_functionalized", on_copies)


def write_copies(op: OpOverload, stack: list[Any]) -> tuple[list[Any], list[Any]]:
    """(results, new values of the written arguments) of an operator on a stack of values."""
    names = [argument.name for argument in op.schema.arguments]
    found = auto_functionalized(op, **dict(zip(names, stack, strict=True)))
    count = len(found) - len(written_positions(op.schema))
    return list(found[:count]) if op.schema.returns else [], list(found[count:])


WRITE_COPIES.fill(write_copies)
