"""out= forms that no Python function ends in: backends and functionalization call `ops.aten.add.Scalar_out`.

Each calls the functional form and copies what it gives (out_forms.py), as those do that PyTorch generates. They are
declared when one is first looked for (`LATE`, dispatch/core/registry.py).

An operator has one if it computes tensors of its own, by kernels and not by other operators, and was declared without
an out= form; where that is not PyTorch's list, the declaration says so (`late_out`, ../declare/declare.py). The schema
follows from the functional form's. Several results are written into `out0`, `out1` and so on, unless they have names of
their own.
"""

from __future__ import annotations

from redispatch.dispatch import OPERATORS, DispatchKey, OpOverload, define
from redispatch.dispatch.layers import ad_inplace_or_view
from redispatch.dispatch.schema.text import SchemaText
from redispatch.kernels.declare.out_forms import register_copying

from ..declare.declare import declarations


def computes(op: OpOverload) -> bool:
    """Whether an operator gives tensors that it computes: it writes and shares none, and is not written in others."""
    schema = op.schema
    return (
        DispatchKey.CompositeImplicitAutograd not in op.registrations
        and not any(argument.alias_info for argument in schema.arguments)
        and {str(returned.type) for returned in schema.returns} == {"Tensor"}
    )


def declare(functional: OpOverload, overload: str, names: tuple[str, ...] = ()) -> None:
    """The out= form of an operator, which is called `overload`, unless it is there already."""
    if f"{functional.qualified_name.partition('.')[0]}.{overload}" in OPERATORS:
        return
    text = SchemaText(str(functional.schema))
    count = len(functional.schema.returns)
    if names and count > 1:
        text.returns = f"({', '.join(['Tensor'] * count)})"  # as PyTorch writes them here, without names
    if not names and count > 1 and not any(returned.name for returned in functional.schema.returns):
        names = tuple(f"out{i}" for i in range(count))
    tags = [
        "generated",
        "pt2_compliant_tag",
        *(tag.name for tag in functional.tags if tag.name == "nondeterministic_seeded"),
    ]
    form, _ = define(text.out(overload, names), dict.fromkeys((*tags, "out")), __file__)
    ad_inplace_or_view.track_aliases(form)
    register_copying(form, functional, text.names)


for _operator in [*declarations()]:
    _late, _functional = _operator.late_out, _operator.functional
    if _late or (_late is None and _operator.out is None and computes(_functional)):
        _overload = _functional.schema.overload_name
        _usual = (f"{_overload}_out" if _overload else "out",)
        _said = _late if isinstance(_late, tuple) else (_late, _late) if isinstance(_late, str) else _usual
        declare(_functional, _said[0], _said[1:])
