"""`redispatch.return_types`: the classes of operators' results with names, `x.max(0).values`.

There is one for each operator whose schema names several results, made when it is first asked for.
"""

from __future__ import annotations

from collections import namedtuple
from functools import cache
from typing import Any

from redispatch.dispatch import OPERATORS, FunctionSchema, ListType
from redispatch.dispatch.pytree import register_pytree_node


def has_names(schema: FunctionSchema) -> bool:
    """Whether an operator has several results, with names."""
    returns = schema.returns
    return len(returns) > 1 and bool(returns[0].name) and not isinstance(returns[0].type, ListType)


def name_of(schema: FunctionSchema) -> str:
    """Returns the name of the class of an operator's results; that of results in given tensors is another."""
    return f"{schema.base_name}_out" if schema.is_out else schema.base_name


@cache
def return_type(name: str, fields: tuple[str, ...]) -> type:
    """The class of an operator's results: a tuple with these fields, made of a sequence of them; or, as what maps over
    namedtuples makes it, of one by one.

    Errors: TypeError for more or fewer.
    """

    def new(cls: Any, *values: Any) -> Any:
        given = tuple(values[0]) if len(values) == 1 else values
        if len(given) != len(fields):
            raise TypeError(f"torch.return_types.{name}() takes a {len(fields)}-sequence ({len(given)}-sequence given)")
        return tuple.__new__(cls, given)

    def describe(self: Any) -> str:
        lines = ",\n".join(f"{field}={value!r}" for field, value in zip(fields, self, strict=True))
        return f"torch.return_types.{name}(\n{lines})"

    made: Any = namedtuple(name, fields)  # type: ignore[misc]  # its name and fields are known at run time only
    methods = {"__new__": new, "__repr__": describe, "__reduce__": lambda self: (rebuilt, (name, fields, tuple(self)))}
    for method, function in methods.items():
        setattr(made, method, function)
    made.__module__ = "torch.return_types"  # as the text of its instances says
    return made


def rebuilt(name: str, fields: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    """Results that were pickled."""
    return return_type(name, fields)(values)


def pytree_register_structseq(cls: type) -> None:
    """Has `pytree` see through a class of results, which it does of all in this module."""
    register_pytree_node(cls, lambda results: (list(results), None), lambda values, _: cls(values))


def __getattr__(name: str) -> Any:
    if name == "all_return_types":
        return [
            __getattr__(one)
            for one in sorted({name_of(op.schema) for op in OPERATORS.values() if has_names(op.schema)})
        ]
    for op in tuple(OPERATORS.values()):
        if has_names(op.schema) and name == name_of(op.schema):
            return return_type(name, tuple(str(one.name) for one in op.schema.returns))
    raise AttributeError(
        f"module 'redispatch.return_types' has no attribute '{name}': no operator of that name has named results"
    )
