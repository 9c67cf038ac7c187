"""The facts that a handler reads off an operator's schema and tags, when one rule is to serve hundreds of operators.

    is_elementwise(aten.exp.default)                        # True: one line of a subclass answers all of these
    written_by(aten.add_.Tensor, (x, y), {})                # [x]

What it teaches: an operator describes itself. `func._schema` has a line for each argument and says which are written
and which results are views; `func.tags` says what kind of operator it is. A subclass that asks these has few rules, and
new operators fall under them. How serious it is: used by the subclasses of this room.

Read next: masked.py, whose tables begin where this ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import redispatch as rd
from redispatch.utils import _pytree as pytree


def overloads(names: str) -> list[Any]:
    """Operators of `aten` by name, with their overloads where that is not the default: "mm add.Tensor"."""
    return [
        getattr(getattr(rd.ops.aten, one), of or "default") for one, _, of in (n.partition(".") for n in names.split())
    ]


def is_elementwise(func: Any) -> bool:
    """Whether each element of its results comes from one element of each argument, after broadcasting.

    That is the tag `pointwise` without what has it and gives no tensors, such as `equal`.
    """
    return rd.Tag.pointwise in func.tags and all("Tensor" in str(one.type) for one in func._schema.returns)


def is_view(func: Any) -> bool:
    """Whether its results share the memory of an argument, and nothing is written."""
    return any(one.alias_info is not None and not one.alias_info.is_write for one in func._schema.returns)


def named(func: Any, args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name, those that were given."""
    names = [argument.name for argument in func._schema.arguments]
    return {**dict(zip(names, args, strict=False)), **kwargs}


def written_by(func: Any, args: Any, kwargs: dict[str, Any]) -> list[Any]:
    """The tensors that a call writes, those of `out=` and those in lists among them."""
    given = named(func, args, kwargs)
    return pytree.tree_leaves([given.get(argument.name) for argument in func._schema.arguments if argument.is_write])


METADATA = ("dtype", "layout", "device", "pin_memory")  # of a tensor to be made, which `out=` forms are not told


def functional_form(func: Any) -> Any:
    """The operator that returns what this one writes: `add.Tensor` for `add_.Tensor`, `mm` for `mm.out`; or None."""

    def look(op: Any) -> list[tuple[str, str]]:
        kept = (x for x in op._schema.arguments if not x.is_out and x.name not in METADATA)
        return [(argument.name, str(argument.type)) for argument in kept]

    name = func._schema.name.rpartition("::")[2]
    in_place = name.endswith("_") and not name.endswith("__")
    if not in_place and not any(argument.is_out for argument in func._schema.arguments):
        return None
    packet = getattr(getattr(rd.ops, func.namespace), name[:-1] if in_place else name, None)
    forms = [getattr(packet, overload) for overload in packet.overloads()] if packet is not None else []
    return next((one for one in forms if not one._schema.is_mutable and look(one) == look(func)), None)


def through_functional_form(func: Any, args: Any, kwargs: Any, assign: Callable[[Any, Any], None]) -> Any:
    """Answers a call that writes by the one that does not: `assign(target, result)` has to write what came of it.

    NotImplemented where there is no such form, where numbers are drawn, and where the tensor itself is turned.
    """
    form = functional_form(func)
    if form is None or {rd.Tag.nondeterministic_seeded, rd.Tag.inplace_view} & {*func.tags}:
        return NotImplemented
    targets = written_by(func, args, kwargs)
    names = {argument.name for argument in form._schema.arguments}
    results = form(*args, **{name: value for name, value in kwargs.items() if name in names})
    for target, result in zip(targets, pytree.tree_leaves(results), strict=True):
        if not rd.can_cast(result.dtype, target.dtype):
            raise RuntimeError(f"result type {result.dtype} can't be cast to the desired output type {target.dtype}")
        assign(target, result)
    if not func._schema.returns:
        return None
    return targets[0] if len(targets) == 1 else tuple(targets)
