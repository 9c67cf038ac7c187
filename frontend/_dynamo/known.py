"""Knowledge of Python's own types and functions: which depend on their arguments alone, which walk, read or write them.

Read next: reads.py, which asks.
"""

from __future__ import annotations

import enum
import functools
import math
import operator
from collections import OrderedDict
from types import (
    BuiltinFunctionType,
    BuiltinMethodType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodWrapperType,
    WrapperDescriptorType,
)
from typing import Any, NamedTuple

from redispatch import is_tensor
from redispatch.autograd import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from redispatch.autograd.grad_mode import is_inference_mode_enabled
from redispatch.compiler import is_compiling, is_dynamo_compiling, is_exporting
from redispatch.dispatch import OpOverload, OpOverloadPacket
from redispatch.dispatch.symbolic import SymBool, SymFloat, SymInt
from redispatch.dispatch.tensor import Size, Tensor, device, dtype, get_default_dtype, layout, memory_format
from redispatch.dispatch.tensor.metadata import SizeOfSymbols
from redispatch.nn import Parameter

PRIMITIVES = {int, float, bool, str, complex, bytes, type(None), type(Ellipsis), type(NotImplemented), slice}
PRIMITIVES |= {SymInt, SymFloat, SymBool}  # numbers of rehearsals (symbols.py)
FACTS = {dtype, device, layout, memory_format, Size, SizeOfSymbols}
CONTAINERS = {list, tuple, dict, set, frozenset, OrderedDict, range}
EMPTY: tuple[Any, ...] = ([], (), {}, OrderedDict(), range(0), set(), "", b"")
MAPPINGS: tuple[Any, ...] = ({}, OrderedDict())
VIEWS = {
    *(type(view()) for one in MAPPINGS for view in (one.keys, one.values, one.items)),
    *(type(iter(one)) for one in (*EMPTY, {}.values(), {}.items())),
    *(type(reversed(one)) for one in EMPTY[:5]),
    *(enumerate, zip, map, filter),
}
FIXED = (
    *(FunctionType, BuiltinFunctionType, BuiltinMethodType, MethodDescriptorType, WrapperDescriptorType),
    *(MethodWrapperType, OpOverload, OpOverloadPacket, enum.Enum),
)
TENSORS = {Tensor, Parameter}
PURE = {
    *(abs, all, any, bool, callable, complex, dict, divmod, enumerate, float, frozenset, int, isinstance, issubclass),
    *(len, list, max, min, pow, range, reversed, round, set, slice, str, sum, tuple, type, zip, repr, chr, ord),
    *(filter, map, sorted, next, iter, functools.partial, OrderedDict, Size, device),
    *(one for one in vars(math).values() if callable(one)),
    *(
        one
        for name, one in vars(operator).items()
        if callable(one) and not name.startswith(("i", "set", "del", "attr"))
    ),
}
STRUCTURAL = {
    *(len, list, tuple, zip, enumerate, reversed, iter, next, range, dict, slice, filter, map, OrderedDict),
    *(functools.partial, isinstance, issubclass, callable, type, bool),
}
WALKING = {list, tuple, set, frozenset, enumerate, zip, iter, sum, any, all, max, min, sorted, map, filter}
QUESTIONS = {
    is_grad_enabled,
    is_inference_mode_enabled,
    get_default_dtype,
    is_tensor,
    is_compiling,
    is_dynamo_compiling,
    is_exporting,
}  # about the state, which is guarded
REGIONS = (no_grad, enable_grad, set_grad_enabled)
MUTATORS = set(
    "append extend insert remove pop clear sort reverse update setdefault popitem add discard move_to_end "
    "difference_update intersection_update symmetric_difference_update __setitem__ __delitem__".split()
)
READERS = set(
    "get keys values items index count copy union intersection difference issubset issuperset isdisjoint join split "
    "format startswith endswith replace strip lower upper title rstrip lstrip partition rpartition rsplit encode "
    "decode symmetric_difference __getitem__ __contains__ __len__ __eq__ bit_length is_integer isdigit splitlines "
    "zfill".split()
)
DEFAULT = object()
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
TABLES = ("_parameters", "_buffers", "_modules")
NAMED = type(NamedTuple("Field", [("one", int)]).one)  # type: ignore[attr-defined]  # the class of fields of tuples


def class_attribute(kind: type, name: str) -> Any:
    """Returns an attribute of a class as it stands there, None where there is none."""
    for one in kind.__mro__:
        if name in one.__dict__:
            return one.__dict__[name]
    return None


def method_behind(kind: type, own: type, name: str) -> Any:
    """Returns the function that `super(kind, own)` finds."""
    found = getattr(super(kind, own), name)
    return getattr(found, "__func__", found)


def plain_attribute(found: Any) -> bool:
    """Whether reading a class's attribute in an instance runs no code but Python's own."""
    simple = (FunctionType, staticmethod, classmethod, MemberDescriptorType, GetSetDescriptorType, NAMED)
    return isinstance(found, (*simple, *FIXED)) or not hasattr(type(found), "__get__")


def is_simple(value: Any) -> bool:
    """Whether operators of a value are Python's own, or the library's."""
    if type(value) in (set, frozenset):
        return all(type(one) in PRIMITIVES for one in value)
    known = PRIMITIVES | FACTS | VIEWS | {range}
    return (
        isinstance(value, Tensor | type | FunctionType) or type(value) in known or type(value).__name__ == "generator"
    )


def hashable(value: Any) -> bool:
    return type(value).__hash__ is object.__hash__ or isinstance(value, FIXED + (type,))


def described(function: Any) -> str:
    return (
        getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or repr(type(function).__name__)
    )
