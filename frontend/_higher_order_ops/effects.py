"""Effects: operators whose place in a program matters though no value depends on them, or which write their arguments.

    torch.ops.higher_order.print("loss: {}", loss)       # when the graph runs, not when it is traced
    token, _ = with_effects(token, torch.ops.aten._print.default, "here")

A graph is ordered by its values. `with_effects` makes an order of effects one of values: each takes a *token*, an empty
tensor, and returns the next one. `auto_functionalized_v2` calls an operator that writes, on copies of the memory that
its arguments show: what several of them share, they share in the copy.

Source: PyTorch's torch._higher_order_ops.effects, .print and .auto_functionalize. Read next: wrap.py.
"""

from __future__ import annotations

import builtins
from typing import Any

from redispatch.dispatch import OpOverload
from redispatch.dispatch.layers.functionalize import written_positions
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.ops.creation import empty

from .control_flow import BodyOperator, functionalize_functions
from .wrap import AutoFunctionalized


def print_formatted(format_str: str, /, *args: Any, **kwargs: Any) -> None:
    """Prints `format_str.format(*args, **kwargs)`."""
    builtins.print(format_str.format(*args, **kwargs))


def after(token: Tensor, op: Any, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """(the next token, and the results of the operator)."""
    result = op(*args, **kwargs)
    return (new_token_tensor(), *result) if isinstance(result, tuple) else (new_token_tensor(), result)


def new_token_tensor() -> Tensor:
    """Returns a token that nothing has happened before."""
    return empty(0)


print = BodyOperator("print", print_formatted)
with_effects = BodyOperator("with_effects", after)
for effect in (print, with_effects):
    functionalize_functions(effect)


# --- auto_functionalized_v2 -------------------------------------------------------------------------------------------
#
#     auto_functionalized_v2(op, _x_base_index=0, _x_size=(2,), _x_stride=(1,), _x_storage_offset=4, _all_bases=[base])
#
# For each argument that is written: the number of its base, and how the argument lies in that. None is an argument that
# is not given; a list has a length, and the same for each of its tensors.


def view_of_base(name: str, options: dict[str, Any], bases: list[Tensor]) -> Tensor | None:
    """Takes what is said of an argument out of the options, and returns the view of its base."""
    index = options.pop(f"_{name}_base_index")
    if index is None:
        return None
    base, about = bases[index], {key: options.pop(f"_{name}_{key}", None) for key in ("alias", *SLICED, *STRIDED)}
    if about["alias"]:
        return base
    if about["slice_dim"] is not None:
        return base.narrow(about["slice_dim"], about["slice_start"], about["slice_end"] - about["slice_start"])
    if about["size"] is None:
        return base
    return base.as_strided(about["size"], about["stride"], about["storage_offset"])


SLICED, STRIDED = ("slice_dim", "slice_start", "slice_end"), ("size", "stride", "storage_offset")


def on_copies_of_bases(op: OpOverload, /, *, _all_bases: list[Tensor], **options: Any) -> tuple[Any, ...]:
    """The results of `op`, None where it has none, and then the new value of each base."""
    copies: list[Tensor] = [base.clone() for base in _all_bases]
    for name in (op.schema.arguments[position].name for position in written_positions(op.schema)):
        length = options.pop(f"_{name}_length", None)
        if length is None:
            options[name] = view_of_base(name, options, copies)
        else:
            options[name] = [view_of_base(f"{name}_{i}", options, copies) for i in range(length)]
    result = op(**options)
    return (*(result if len(op.schema.returns) > 1 else (result,)), *copies)


auto_functionalized_v2 = AutoFunctionalized("auto_functionalized_v2", on_copies_of_bases)
