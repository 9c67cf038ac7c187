"""auto_functionalized: an operator that writes its arguments, as one that returns their new values.

    auto_functionalized(torch.ops.mylib.add_one.default, x=x)        # (None, the new x)

Under functionalization nothing may be written. Our own operators have forms that write nothing; a custom operator with
`mutates_args` mostly has none. So it is run on copies of what it writes, inside of this operator, which itself is
functional: a graph may hold it, and a compiler may put the write back where nobody needs the former value.

Source: PyTorch's torch._higher_order_ops.auto_functionalize.
"""

from __future__ import annotations

from typing import Any, NoReturn

from redispatch.dispatch import OpOverload
from redispatch.dispatch.layers.functionalize import WRITE_COPIES, written_positions
from redispatch.dispatch.tensor import Tensor
from redispatch.utils._pytree import tree_map_only

from .body import BodyOperator


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
