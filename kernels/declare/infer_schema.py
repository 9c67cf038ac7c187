"""From a function's annotations to a schema: `f(x: Tensor, n: int = 3) -> Tensor` is `(Tensor x, SymInt n=3) ->
Tensor`.

Each annotation stands for one schema type; Optional, List, Sequence and `|` combine them. Read next: custom_op.py.
"""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any

from redispatch.dispatch import Tag
from redispatch.dispatch.tensor import Tensor, device, dtype

BASE = {
    Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    dtype: "ScalarType",
    device: "Device",
    object: "Any",
    Any: "Any",
}
# The annotation of a parameter that takes a tree of containers with tensors in it: tuples, dicts, dataclasses, ...
PyTree = typing.NewType("PyTree", object)
TREE_SUFFIX = "_tree"  # of the argument that carries the structure

NUMBERS = ({int, float, bool}, {int, float}, {int, float, complex, bool}, {int, float, complex})


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
    tags: Any = (),
) -> str:
    """The schema of an operator whose kernels look like this function.

    mutates_args: the names of the arguments that it writes, or "unknown": every tensor. tags: with `Tag.inplace` it
    returns its first argument, with `Tag.out` those that it writes, which are passed by name.
    Errors: ValueError for a parameter without annotation or with one that stands for no schema type, for `*args`,
    and for a name in `mutates_args` that is no parameter.
    """
    signature = inspect.signature(prototype_function)
    written = mutates_args if isinstance(mutates_args, str) else set(mutates_args)

    def fail(problem: str) -> typing.NoReturn:
        raise ValueError(f"infer_schema(func): {problem} Got func with signature {signature})")

    if isinstance(written, str) and written != "unknown":
        raise ValueError(
            "mutates_args must either be a sequence of the names of the arguments that are mutated or the string "
            "'unknown'. "
        )
    hints = _hints(prototype_function, fail)
    parts, aliases = _parameters(signature, hints, written, fail)
    if not isinstance(written, str) and written - set(signature.parameters):
        fail(
            f"{written - set(signature.parameters)} in mutates_args were not found in the custom op's signature. "
            "mutates_args should contain the names of all args that the custom op mutates, or just the string "
            "'unknown' if you don't know."
        )
    if signature.return_annotation is signature.empty:
        fail("No return type annotation was provided. Please add one.")
    returns = returned_types(hints.get("return"))
    if returns is None:
        fail(f"Return has unsupported type {hints.get('return')}. {VALID}.")
    given = [tags] if isinstance(tags, str) else list(tags or ())
    if Tag.inplace in given:
        returns = returned_first(signature, hints, aliases, written, returns, fail)
    elif Tag.out in given:
        returns = returned_outs(signature, aliases, parts, returns, fail)
    return f"{op_name or ''}({', '.join(parts)}) -> {returns}"


def _parameters(
    signature: inspect.Signature, hints: Any, written: Any, fail: Callable[[str], typing.NoReturn]
) -> tuple[list[str], dict[str, str]]:
    """The arguments of the schema; and the letter of each that is written, by name."""
    parts: list[str] = []
    aliases: dict[str, str] = {}  # of what is written: its name -> its letter
    keywords = False
    for position, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            fail("We do not support positional-only args, varargs, or varkwargs.")
        if parameter.kind is parameter.KEYWORD_ONLY and not keywords:
            parts.append("*")
            keywords = True
        if parameter.annotation is parameter.empty:
            fail(f"Parameter {name} must have a type annotation.")
        text = "Tensor[]" if is_tree(hints[name]) else schema_type(hints[name])
        if text is None:
            fail(f"Parameter {name} has unsupported type {hints[name]}. {tuple_advice(hints[name])}{VALID}.")
        if text.startswith("Tensor") if written == "unknown" else name in written:
            if not text.startswith("Tensor"):
                fail(f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated")
            text = text.replace("Tensor", f"Tensor(a{position}!)", 1)
            aliases[name] = f"a{position}"
        if is_tree(hints[name]) and parameter.default is not parameter.empty:
            fail(f"Parameter {name} is a pytree, which cannot have a default value.")
        parts.append(f"{text} {name}{_default(name, parameter, fail)}")
        if is_tree(hints[name]):
            parts.append(f"Any {name}{TREE_SUFFIX}")
    return parts, aliases


VALID = (
    "The valid types are: Tensor, int, float, bool, str, torch.dtype, torch.device, numbers (Union[int, float, bool]), "
    "and Optional, Sequence and List of them; object for any Python object; PyTree and dict for what holds tensors"
)


def returned_first(
    signature: inspect.Signature,
    hints: dict[str, Any],
    aliases: dict[str, str],
    written: Any,
    returns: str,
    fail: Callable[[str], typing.NoReturn],
) -> str:
    """The results of an operator that returns the first argument, which is all that it writes."""
    parameters = signature.parameters.values()
    first = next((p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD), None)
    if first is None:
        fail("torch.Tag.inplace requires a positional Tensor argument.")
    if schema_type(hints[first]) != "Tensor":
        fail("torch.Tag.inplace requires the first positional argument to be a Tensor.")
    if isinstance(written, str) or set(written) != {first}:
        fail(
            "torch.Tag.inplace requires mutates_args to contain exactly the first positional argument, got "
            f"{written if isinstance(written, str) else tuple(written)}."
        )
    if returns != "Tensor":
        fail("torch.Tag.inplace requires the return annotation to be torch.Tensor.")
    return f"Tensor({aliases[first]}!)"


def returned_outs(
    signature: inspect.Signature,
    aliases: dict[str, str],
    parts: list[str],
    returns: str,
    fail: Callable[[str], typing.NoReturn],
) -> str:
    """The results of an operator that returns what it writes, all of it tensors passed by name."""
    if not aliases:
        fail("torch.Tag.out requires at least one mutable keyword-only Tensor argument.")
    for name, letter in aliases.items():
        if signature.parameters[name].kind is not inspect.Parameter.KEYWORD_ONLY:
            fail("torch.Tag.out requires mutable arguments to be keyword-only.")
        if f"Tensor({letter}!) {name}" not in parts:
            fail("torch.Tag.out only supports mutable keyword-only Tensor arguments.")
    if returns != ("Tensor" if len(aliases) == 1 else f"({', '.join(['Tensor'] * len(aliases))})"):
        fail(
            "torch.Tag.out requires the return annotation to match the mutable keyword-only Tensor arguments "
            f"{tuple(aliases)}."
        )
    outs = [f"Tensor({letter}!)" for letter in aliases.values()]
    return outs[0] if len(outs) == 1 else f"({', '.join(outs)})"


def is_tree(annotation: Any) -> bool:
    """Whether a parameter takes a pytree, which travels as two arguments: its tensors, and everything else."""
    return annotation is PyTree or annotation is dict or typing.get_origin(annotation) is dict


def tree_parameters(function: Callable[..., Any]) -> frozenset[str]:
    """The names of a function's parameters that are pytrees."""
    hints = typing.get_type_hints(function)
    return frozenset(name for name, hint in hints.items() if name != "return" and is_tree(hint))


def tuple_advice(annotation: Any) -> str:
    """Returns advice about a tuple, whose length a schema cannot say."""
    if typing.get_origin(annotation) is not tuple:
        return ""
    elements = {element for element in typing.get_args(annotation) if element is not ...}
    instead = f"For example, typing.List[{_name(elements.pop())}]. " if len(elements) == 1 else ""
    return (
        "We do not support Tuple inputs in schema. As a workaround, please try to use List instead, or annotate it as "
        f"redispatch.library.PyTree. {instead}"
    )


def _name(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _hints(function: Callable[..., Any], fail: Callable[[str], typing.NoReturn]) -> dict[str, Any]:
    """The annotations as objects; those written as strings are looked up where the function was defined."""
    try:
        return typing.get_type_hints(function)
    except NameError as problem:
        fail(f"An annotation could not be resolved: {problem}.")


def _default(name: str, parameter: inspect.Parameter, fail: Callable[[str], typing.NoReturn]) -> str:
    value = parameter.default
    if value is parameter.empty:
        return ""
    if value is None or isinstance(value, int | float | bool):
        return f"={value}"
    if isinstance(value, str):
        return f'="{value}"'
    if isinstance(value, device):
        return f'="{value}"'
    if isinstance(value, dtype):
        return f"={value.name}"
    fail(f"Parameter {name} has an unsupported default value type {type(value)}.")


def schema_type(annotation: Any) -> str | None:
    """The schema type that an annotation stands for, None where there is none."""
    if annotation in BASE:
        return BASE[annotation]
    if isinstance(annotation, type) and issubclass(annotation, Tensor):
        return "Tensor"
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        rest = [arg for arg in args if arg is not type(None)]
        inner = "Scalar" if set(rest) in NUMBERS else schema_type(rest[0]) if len(rest) == 1 else None
        return None if inner is None else inner + "?" * (len(rest) < len(args))
    if origin in (list, collections.abc.Sequence) and len(args) == 1:
        inner = schema_type(args[0])
        return None if inner is None else f"{inner}[]"
    return None


def returned_types(annotation: Any) -> str | None:
    """The results of a schema: `Tensor`, `(Tensor, Tensor)`, `()` for None."""
    if annotation is None or annotation is type(None):
        return "()"
    if typing.get_origin(annotation) is tuple:
        inner = [schema_type(arg) for arg in typing.get_args(annotation)]
        return None if None in inner else f"({', '.join(map(str, inner))})"
    return schema_type(annotation)
