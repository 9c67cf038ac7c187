"""Questions about operators and their schemas: `torch._library.utils`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from redispatch.dispatch import Argument, FunctionSchema, OpOverload, ops, parse_schema

__all__ = [
    "Kernel",
    "RegistrationHandle",
    "fill_defaults",
    "has_kwarg_only_args",
    "has_kwarg_only_tensors",
    "has_tensor_arg",
    "is_builtin",
    "is_functional_schema",
    "is_tensor_like_type",
    "is_tensorlist_like_type",
    "lookup_op",
    "mutated_args_kwargs",
    "mutates_and_returns_first_arg",
    "parse_namespace",
    "zip_schema",
]


@dataclass
class Kernel:
    """A function and where it was written."""

    func: Callable[..., Any]
    source: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.func(*args, **kwargs)


class RegistrationHandle:
    """A registration that can be taken back."""

    def __init__(self, on_destroy: Callable[[], Any]) -> None:
        self._on_destroy = on_destroy

    def destroy(self) -> None:
        self._on_destroy()


def parse_namespace(qualname: str) -> tuple[str, str]:
    """Returns the namespace and the name. ValueError where there is not one of each."""
    parts = qualname.split("::")
    if len(parts) != 2:
        raise ValueError(
            f'Expected `qualname` to be of the form "namespace::name", but got {qualname}. The qualname passed to the '
            "torch.library APIs must consist of a namespace and a name, e.g. aten::sin"
        )
    return parts[0], parts[1]


def lookup_op(qualname: str) -> OpOverload:
    """Returns the operator of a name such as "aten::add.Tensor". AttributeError where there is none."""
    namespace, name = parse_namespace(qualname)
    name, _, overload = name.partition(".")
    return getattr(getattr(getattr(ops, namespace), name), overload or "default")


def is_builtin(op: OpOverload) -> bool:
    """Returns whether an operator is the library's own."""
    return op.namespace in ("aten", "prim", "prims")


def is_functional_schema(schema: Any, *, allow_valid_view: bool = False) -> bool:
    """Returns whether an operator writes nothing and returns something that is new; or a view of its one tensor."""
    known = schema if isinstance(schema, FunctionSchema) else parse_schema(str(schema))
    if any(one.alias_info is not None and not one.alias_info.is_write for one in known.returns):
        alone = [sum(str(one.type) == "Tensor" for one in several) for several in (known.arguments, known.returns)]
        return allow_valid_view and not known.is_mutable and alone == [1, 1]
    return bool(known.returns) and not known.is_mutable


def is_tensor_like_type(kind: Any) -> bool:
    return str(kind) in ("Tensor", "Optional[Tensor]")


def is_tensorlist_like_type(kind: Any) -> bool:
    inner = str(kind).removeprefix("Optional[")  # the brackets that are left over are at the end
    return inner.rstrip("]") in ("List[Tensor", "List[Optional[Tensor")


def has_kwarg_only_args(schema: FunctionSchema) -> bool:
    return any(argument.kwarg_only for argument in schema.arguments)


def has_kwarg_only_tensors(schema: FunctionSchema) -> bool:
    return any(argument.kwarg_only and _of_tensors(argument) for argument in schema.arguments)


def has_tensor_arg(schema: FunctionSchema) -> bool:
    return any(map(_of_tensors, schema.arguments))


def _of_tensors(argument: Argument) -> bool:
    return is_tensor_like_type(argument.type) or is_tensorlist_like_type(argument.type)


def mutates_and_returns_first_arg(op: OpOverload) -> bool:
    """Returns whether an operator of the library writes its first argument, no other, and returns it."""
    schema = op.schema
    written = [i for i, argument in enumerate(schema.arguments) if argument.alias_info is not None]
    return op.namespace == "aten" and written == [0] and schema.is_mutable and list(schema.return_aliases) == [(0,)]


def mutated_args_kwargs(schema: FunctionSchema) -> tuple[list[int], list[str]]:
    """Returns the positions of the written arguments, and the names of those that are passed by name."""
    written = [(i, one) for i, one in enumerate(schema.arguments) if one.alias_info is not None and one.is_write]
    return [i for i, one in written if not one.kwarg_only], [one.name for _, one in written if one.kwarg_only]


def fill_defaults(schema: FunctionSchema, args: Any, kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns the arguments of a call with what it leaves out."""
    positional = [one for one in schema.arguments if not one.kwarg_only]
    keywords = [one for one in schema.arguments if one.kwarg_only]
    filled = (*args, *(one.default_value for one in positional[len(args) :]))
    return filled, {one.name: kwargs.get(one.name, one.default_value) for one in keywords}


def zip_schema(schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[Argument, Any]]:
    """Yields each argument of the schema that a call gives, with its value."""
    for i, argument in enumerate(schema.arguments):
        if not argument.kwarg_only and i < len(args):
            yield argument, args[i]
        elif argument.name in kwargs:
            yield argument, kwargs[argument.name]
