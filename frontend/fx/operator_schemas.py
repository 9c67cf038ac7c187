"""Arguments of calls by name: which parameter of an operator, function or module each argument of a node is.

    normalize_function(rd.ops.aten.add.Tensor, (x, y))       # kwargs {"input": x, "other": y, "alpha": 1}

An operator has its schemas; any other function its Python signature. Where several overloads take the arguments, their
types decide. Read next: node.py, `Node.normalized_arguments`.
"""

from __future__ import annotations

import inspect
import numbers
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import redispatch
from redispatch import nn
from redispatch.dispatch import OpOverload, OpOverloadPacket, ops
from redispatch.dispatch.tensor import Tensor

from .node import Node, qualified_name

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "create_type_hint",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
    "type_matches",
]

PREFIXES = {  # module of a public function -> what the name of its operator begins with
    "torch": "",
    "torch._C._nn": "",
    "torch._C._linalg": "linalg_",
    "torch._C._special": "special_",
    "torch._C._fft": "fft_",
}
TYPES = {  # of a schema -> of Python
    "Tensor": Tensor,
    "int": int,
    "float": float,
    "bool": bool,
    "complex": complex,
    "str": str,
    "number": numbers.Number,
    "Device": redispatch.device,
    "Generator": redispatch.Generator,
    "Any": Any,
}
SEVERAL = {"List": list, "Optional": typing.Optional}


class ArgsKwargsPair(NamedTuple):
    """The arguments of a call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


# Signatures -----------------------------------------------------------------------------------------------------------


def python_type(text: str) -> Any:
    """Returns the Python type for one of a schema, as it writes itself: `List[Optional[Tensor]]`."""
    outer, _, inner = text.partition("[")
    if not inner:
        return TYPES.get(text, Any)
    return SEVERAL[outer][python_type(inner[:-1])] if outer in SEVERAL else Any  # type: ignore[index]  # generic types


def signature_of(schema: Any) -> inspect.Signature:
    """Returns a schema as a signature. `self` is called `input`, as public functions have it, and `from` `from_`."""
    parameters: list[inspect.Parameter] = []
    for argument in schema.arguments:
        kind: Any = inspect.Parameter.KEYWORD_ONLY if argument.kwarg_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        default = argument.default_value if argument.has_default_value() else inspect.Parameter.empty
        name = {"self": "input", "from": "from_"}.get(argument.name, argument.name)
        if name == "from_":  # a keyword of Python, so it is given by its place, and so are those before it
            kind = inspect.Parameter.POSITIONAL_ONLY
            parameters = [one.replace(kind=kind) for one in parameters]
        if default is inspect.Parameter.empty and any(one.default is not one.empty for one in parameters):
            kind = inspect.Parameter.KEYWORD_ONLY  # Python wants defaults last
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=python_type(str(argument.type))))
    parameters.sort(key=lambda one: one.kind)
    returns = [python_type(str(one.type)) for one in schema.returns]
    annotation = returns[0] if len(returns) == 1 else tuple(returns) if returns else None
    return inspect.Signature(parameters, return_annotation=annotation)


def schemas_of(op: Any) -> list[Any]:
    """Returns the schemas of an operator, of all its overloads, or of the operator that a public function calls."""
    if isinstance(op, OpOverload):
        return [op._schema]
    if not isinstance(op, OpOverloadPacket):
        prefix = PREFIXES.get(getattr(op, "__module__", None) or "")
        name = getattr(op, "__name__", "")
        if prefix is None or not name or getattr(op, "__qualname__", "").startswith("Tensor."):
            return []
        found = [f"{prefix}{name}", name] if not name.startswith(prefix) else [name]
        op = next((getattr(ops.aten, one) for one in found if hasattr(ops.aten, one)), None)
    names = [] if op is None else sorted(op.overloads(), key=lambda name: name != "default")
    return [getattr(op, name)._schema for name in names]


def get_signature_for_torch_op(op: Any, return_schemas: bool = False) -> Any:
    """Returns the signatures of an operator or public function, one for each overload; None for any other.

    return_schemas: whether to return a pair, of these and of the schemas.
    """
    schemas = schemas_of(op)
    signatures = [signature_of(one) for one in schemas]
    if return_schemas:
        return (signatures, schemas) if schemas else (None, None)
    return signatures or None


# Types ----------------------------------------------------------------------------------------------------------------


def create_type_hint(x: Any) -> Any:
    """Returns the type of a list or tuple of types, `list[int]` for `[int, int]`; anything else as it is."""
    if not isinstance(x, list | tuple):
        return x
    made: Any = (lambda item: list[item]) if isinstance(x, list) else (lambda item: tuple[item, ...])  # type: ignore[valid-type]  # computed
    if not x:
        return made(Any)
    first = x[0]
    general = next((one for one in x if all(issubclass(other, one) for other in x)), None) if is_types(x) else first
    return made(Any if general is None or any(one is not first for one in x) and not is_types(x) else general)


def is_types(values: Sequence[Any]) -> bool:
    return all(isinstance(one, type) and not hasattr(one, "__args__") for one in values)


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Returns whether an argument of some type can be one that a signature asks for."""
    origin = typing.get_origin(signature_type)
    if signature_type is argument_type or signature_type is Any:
        return True
    if origin is typing.Union or origin is types.UnionType:
        return any(type_matches(one, argument_type) for one in typing.get_args(signature_type))
    if origin is list and argument_type is int:  # one number stands for many
        return type_matches(typing.get_args(signature_type)[0], int)
    if origin is list and typing.get_origin(argument_type) in (list, tuple):
        item = typing.get_args(signature_type)[0]
        return all(one is Ellipsis or type_matches(item, one) for one in typing.get_args(argument_type))
    if signature_type is int and argument_type in (redispatch.dtype, redispatch.layout, redispatch.memory_format):
        return True  # the schemas have numbers for these
    if signature_type is numbers.Number and argument_type in (int, float, complex, bool):
        return True
    return (
        isinstance(signature_type, type)
        and origin is None
        and isinstance(argument_type, type)
        and typing.get_origin(argument_type) is None
        and issubclass(argument_type, signature_type)
    )


# Arguments ------------------------------------------------------------------------------------------------------------


def normalize_function(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: Mapping[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Returns the arguments of a call of a function, all of them, defaults too, by their parameters.

    Those that were given by their place stay so, unless `normalize_to_only_use_kwargs`. None where no signature takes
    them. arg_types, kwarg_types: their types, which decide among overloads.
    Errors: RuntimeError where several overloads take them, and no types were given.
    """
    kwargs = dict(kwargs or {})
    signatures = get_signature_for_torch_op(target)
    if signatures is None:
        if isinstance(target, types.BuiltinFunctionType):
            return None
        return normalized(inspect.signature(inspect.unwrap(target)), args, kwargs, normalize_to_only_use_kwargs)
    fitting = [one for one in signatures if binds(one, args, kwargs)]
    if len(fitting) > 1 and (arg_types is not None or kwarg_types is not None):
        given, named = arg_types or (), dict(kwarg_types or {})
        fitting = [one for one in fitting if binds(one, given, named) and all_match(one, given, named)][:1]
    if len(fitting) > 1:
        known = "\n".join(map(str, fitting))
        raise RuntimeError(
            f"Tried to normalize arguments to {qualified_name(target)} but the schema match was ambiguous! Please "
            f"provide argument types to the normalize_arguments() call. Available schemas:\n{known}"
        )
    return normalized(fitting[0], args, kwargs, normalize_to_only_use_kwargs) if fitting else None


def normalize_module(
    root: nn.Module,
    target: str,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Returns the arguments of a call of a submodule of the library, by the parameters of its forward; None for others.

    Errors: RuntimeError where there is no such submodule.
    """
    try:
        submodule = root.get_submodule(target)
    except AttributeError as problem:
        raise RuntimeError(
            f"Tried to normalize node with target {target} but root did not have that target!"
        ) from problem
    if getattr(nn, type(submodule).__name__, None) is not type(submodule):
        return None
    signature = inspect.signature(submodule.forward)
    return normalized(signature, args, dict(kwargs or {}), normalize_to_only_use_kwargs)


def binds(signature: inspect.Signature, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def all_match(signature: inspect.Signature, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Returns whether arguments of these types suit a signature."""
    bound = signature.bind(*args, **kwargs).arguments
    return all(type_matches(signature.parameters[name].annotation, one) for name, one in bound.items())


def normalized(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], by_name: bool
) -> ArgsKwargsPair | None:
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if any(one.kind not in plain for one in signature.parameters.values()):
        if list(signature.parameters) != ["input", "from_", "to", "generator"]:
            return None
    if not binds(signature, args, kwargs):
        return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    names = list(signature.parameters)
    placed = 0 if by_name else len(args)
    values = {name: bound.arguments[name] for name in names}
    return ArgsKwargsPair(
        tuple(values[name] for name in names[:placed]), {name: values[name] for name in names[placed:]}
    )


def check_for_mutable_operation(target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Does nothing for a call that writes no argument. NotImplementedError for one that does."""
    signatures, schemas = get_signature_for_torch_op(target, return_schemas=True)
    fitting = [schema for one, schema in zip(signatures or (), schemas or (), strict=True) if binds(one, args, kwargs)]
    if fitting and fitting[0].is_mutable:
        raise NotImplementedError(
            f"Tried to trace mutable operation {fitting[0]}. FX only supports functional code, so operations that "
            "mutate operands in-place (e.g. via `out` arguments) are not supported"
        )


def normalized_arguments(
    node: Node,
    root: nn.Module,
    arg_types: Any = None,
    kwarg_types: Any = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Returns the arguments of a node by their parameters, or None. See `normalize_function`."""
    by_name = normalize_to_only_use_kwargs
    if node.op == "call_function":
        function: Any = node.target
        return normalize_function(function, node.args, node.kwargs, arg_types, kwarg_types, by_name)
    return (
        normalize_module(root, str(node.target), node.args, node.kwargs, by_name) if node.op == "call_module" else None
    )


Node.normalized_arguments = normalized_arguments  # type: ignore[attr-defined]  # of PyTorch's Node; its module is below
