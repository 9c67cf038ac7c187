"""The annotations of which schemas are made, as tables: `torch._library.infer_schema`."""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from functools import partial
from operator import getitem
from typing import Any

from redispatch.kernels.declare.infer_schema import BASE, infer_schema, schema_type

__all__ = ["SUPPORTED_PARAM_TYPES", "SUPPORTED_RETURN_TYPES", "infer_schema", "tuple_to_list"]

NUMBER = int | float | bool
KINDS = (*(kind for kind in BASE if kind not in (object, Any)), NUMBER)
GENERIC: tuple[Any, ...] = (typing.Optional, Sequence, typing.List, list)  # noqa: UP006  # the objects that users write
FORMS: tuple[Callable[[Any], Any], ...] = (lambda kind: kind, *(partial(getitem, generic) for generic in GENERIC))
OF_ONE = ("str", "ScalarType", "Device")  # of which there are no lists


def _supported() -> dict[Any, str]:
    found = {form(kind): schema_type(form(kind)) for kind in KINDS for form in FORMS}
    kept = {kind: text for kind, text in found.items() if text is not None}
    return {kind: text for kind, text in kept.items() if text.removesuffix("[]") == text or text[:-2] not in OF_ONE}


SUPPORTED_PARAM_TYPES = _supported()
RETURNED = ("Tensor", "Tensor[]", "SymInt", "float", "bool", "Scalar")
SUPPORTED_RETURN_TYPES = {
    kind: text
    for kind, text in SUPPORTED_PARAM_TYPES.items()
    if text in RETURNED and typing.get_origin(kind) is not Sequence
}


def tuple_to_list(tuple_type: Any) -> Any:
    """Returns the list that a schema has in the place of a tuple: `Tuple[int, int]` is `List[int]`."""
    kinds = [kind for kind in dict.fromkeys(typing.get_args(tuple_type)) if kind is not ...]
    if not kinds:
        return typing.List  # noqa: UP006  # the very object that PyTorch returns
    return typing.List[typing.Union[tuple(kinds)]]  # type: ignore[misc]  # noqa: UP006, UP007  # the same, made of values
