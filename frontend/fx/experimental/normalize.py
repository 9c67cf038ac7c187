"""Graphs whose calls are written alike: arguments by name (`NormalizeArgs`), operators of Python for those of Tensor
(`NormalizeOperators`), and types of values noted (`AnnotateTypesWithSchema`).

    module = NormalizeArgs(fx.symbolic_trace(model)).transform()
"""

from __future__ import annotations

import inspect
import operator
from typing import Any

import redispatch
from redispatch import nn

from ..interpreter import Transformer
from ..node import Node, Target, map_aggregate
from ..operator_schemas import get_signature_for_torch_op, normalize_function, normalize_module
from ..proxy import Proxy

__all__ = ["AnnotateTypesWithSchema", "NormalizeArgs", "NormalizeOperators"]


class NormalizeArgs(Transformer):
    """Gives each call of a function or of a module of the library all its arguments, by their names.

    normalize_to_only_use_kwargs: whether also those that were given by their place get their names. Types that
    `ShapeProp` has noted decide among overloads.
    """

    def __init__(self, module: Any, normalize_to_only_use_kwargs: bool = True) -> None:
        super().__init__(module)
        self.node_map: dict[Proxy, Node] = {}
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs

    def run_node(self, n: Node) -> Any:
        self._types = tuple(map_aggregate(value, noted_type) for value in (n.args, n.kwargs))
        made = super().run_node(n)
        if n.op != "output":
            self.node_map[made] = n
            made.node.meta, made.node.type = n.meta, n.type
        return made

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given, named = self._types
        found = normalize_function(target, args, kwargs, given, named, self.normalize_to_only_use_kwargs)
        return super().call_function(target, *(found or (args, kwargs)))

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        found = normalize_module(self.module, str(target), args, kwargs, self.normalize_to_only_use_kwargs)
        return super().call_module(target, *(found or (args, kwargs)))


def noted_type(leaf: Any) -> Any:
    return leaf.meta.get("type") if isinstance(leaf, Node) else type(leaf)


class AnnotateTypesWithSchema(Transformer):
    """Notes at each node the type of its value, where a schema or an annotation has it.

    annotate_functionals, annotate_modules, annotate_get_attrs: of which kinds of nodes.
    """

    def __init__(
        self,
        module: Any,
        annotate_functionals: bool = True,
        annotate_modules: bool = True,
        annotate_get_attrs: bool = True,
    ) -> None:
        super().__init__(module)
        self.annotate_functionals, self.annotate_modules = annotate_functionals, annotate_modules
        self.annotate_get_attrs = annotate_get_attrs

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        types: Any = ()
        if self.annotate_functionals and target.__module__ == "torch.nn.functional":
            types = {signature(target).return_annotation}
        elif self.annotate_functionals and target in METHODS_OF_OPERATORS:
            types = {redispatch.Tensor}
        elif self.annotate_functionals:
            types = {one.return_annotation for one in get_signature_for_torch_op(target) or ()}
        return typed(super().call_function(target, args, kwargs), types)

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        submodule = self.fetch_attr(str(target))
        library = getattr(nn, type(submodule).__name__, None) is type(submodule)
        wanted = self.annotate_modules and library
        types = {signature(submodule.forward).return_annotation} if wanted else ()
        return typed(super().call_module(target, args, kwargs), types)

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        value = self.fetch_attr(str(target)) if self.annotate_get_attrs else None
        types = {redispatch.Tensor} if isinstance(value, redispatch.Tensor) else ()
        return typed(super().get_attr(target, args, kwargs), types)


def signature(function: Any) -> inspect.Signature:
    return inspect.signature(function, eval_str=False)


def typed(proxy: Any, types: Any) -> Any:
    """Returns a proxy, whose node gets a type where there is exactly one to choose."""
    known = [one for one in types if one not in (inspect.Signature.empty, Any, "Any")]
    if len(known) == 1 and proxy.node.type is None:
        only = known[0]
        proxy.node.type = redispatch.Tensor if only == "Tensor" else only
    return proxy


OPERATORS = {
    redispatch.add: operator.add,
    redispatch.mul: operator.mul,
    redispatch.sub: operator.sub,
    redispatch.div: operator.truediv,
    redispatch.floor_divide: operator.floordiv,
    redispatch.remainder: operator.mod,
    redispatch.eq: operator.eq,
    redispatch.ne: operator.ne,
    redispatch.lt: operator.lt,
    redispatch.le: operator.le,
    redispatch.gt: operator.gt,
    redispatch.ge: operator.ge,
}
METHODS_OF_OPERATORS = frozenset(OPERATORS.values())


class NormalizeOperators(AnnotateTypesWithSchema):
    """Has operators of Python stand for functions that do the same: `x + y` for `torch.add(x, y)`."""

    binary_magic_method_remap = OPERATORS

    def __init__(self, module: Any) -> None:
        super().__init__(module, False, False, False)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        other = self.binary_magic_method_remap.get(target)
        if other is None or len(args) != 2 or kwargs:
            return super().call_function(target, args, kwargs)
        return super().call_function(other, args, {})
