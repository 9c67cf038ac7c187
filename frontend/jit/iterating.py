"""Reads what loops go over: ranges, lists, dicts, strings, tensors, modules; enumerate, zip and reversed of these.

Read next: calls.py.
"""

from __future__ import annotations

import ast
import enum
from typing import Any

from redispatch.dispatch.schema.schema import INT, TENSOR, DictType, ListType, TupleType

from .graph import Value
from .overloads import Emitter
from .source import fail
from .sugared import Iteration, Py, Several
from .types import STR, ObjectType, spoken, union


class Iterations(Emitter):
    """Reads what loops go over."""

    # Iteration ------------------------------------------------------------------------------------------------

    def ranged(self, bounds: list[Value], node: Any) -> Iteration:
        place = self.place(node)
        bounds = [self.call("aten::Int", [one], {}, place) if one.type != INT else one for one in bounds]
        if len(bounds) == 1:
            return Iteration(bounds[0], lambda turn: turn)
        start, stop, step = [*bounds, self.constant(1)][:3]
        length = self.call("aten::__range_length", [start, stop, step], {}, place)
        return Iteration(length, lambda turn: self.call("aten::__derive_index", [turn, start, step], {}, place))

    def container(self, function: Any, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> Any:
        """Reads enumerate, zip, reversed, and list, dict, tuple of something."""
        place = self.place(node)
        if function is enumerate:
            start = args[1] if len(args) > 1 else kwargs.get("start")
            inner = self.iterated(args[0], node)
            if inner.items is not None:
                return Several([Several([self.constant(i), one]) for i, one in enumerate(inner.items)])

            def item(turn: Value) -> Several:
                shifted: Any = turn if start is None else self.binary("add", turn, self.as_value(start, node), place)
                return Several([shifted, inner.item(turn)])

            return Iteration(inner.length, item)
        if function is zip:
            parts = [self.iterated(one, node) for one in args]
            if any(one.items is not None for one in parts):
                count = min(len(one.items) for one in parts if one.items is not None)
                rows = [
                    [one.items[i] if one.items is not None else one.item(self.constant(i)) for one in parts]
                    for i in range(count)
                ]
                return Several([Several(row) for row in rows])
            length: Any = parts[0].length
            for one in parts[1:]:
                assert one.length is not None
                length = self.call("prim::min", [length, one.length], {}, place)
            return Iteration(length, lambda turn: Several([one.item(turn) for one in parts]))
        if isinstance(args[0], Several | Iteration):
            found = self.iterated(args[0], node)
            if found.items is None:
                made = self.node("prim::ListConstruct", [], [ListType(INT)], place).output()

                def add() -> None:
                    value = self.as_value(self.env[" item"], node)
                    made.type = ListType(value.type)
                    self.call("aten::append", [made, value], {}, place)

                self.plain_loop(found, ast.Name(" item", ast.Store()), add)
                return made
            items = found.items[::-1] if function is reversed else found.items
            return Several(items)
        value = self.as_value(args[0], node)
        if isinstance(value.type, TupleType):
            items = self.unpacked(value, node)
            if function is list:
                return self.node(
                    "prim::ListConstruct", items, [ListType(union(one.type for one in items))], place
                ).output()
            return self.tuple_of(items[::-1] if function is reversed else items, node)
        if function is reversed:
            last = self.binary("sub", self.call("aten::len", [value], {}, place), self.constant(1), place)
            inner = self.iterated(value, node)
            return Iteration(inner.length, lambda turn: inner.item(self.binary("sub", last, turn, place)))
        if function is tuple:
            fail(place, "a tuple of a list has no length that is known; only tuples can be made into tuples")
        return self.call(f"aten::{function.__name__}", [value], {}, place)

    def iterated(self, found: Any, node: Any) -> Iteration:
        """Returns how to go over something."""
        if isinstance(found, Iteration):
            return found
        if isinstance(found, Several):
            return Iteration(None, None, found.items)
        if isinstance(found, Py) and isinstance(found.object, enum.EnumMeta):
            return Iteration(None, None, list(map(Py, found.object)))
        value, place = self.as_value(found, node), self.place(node)
        kind = value.type
        if isinstance(kind, ObjectType) and kind.is_module:
            return self.module_iteration(value, self.unit.iterates(kind), node)
        if isinstance(kind, TupleType):
            return Iteration(None, None, self.unpacked(value, node))
        if isinstance(kind, DictType):
            value = self.call("aten::keys", [value], {}, place)
        elif not (isinstance(kind, ListType) or kind in (TENSOR, STR)):
            fail(place, f"'{spoken(kind)}' object is not iterable")
        length = self.call("aten::len", [value], {}, place)
        if kind == TENSOR:
            return Iteration(length, lambda turn: self.call("aten::select", [value, self.constant(0), turn], {}, place))
        return Iteration(length, lambda turn: self.call("aten::__getitem__", [value, turn], {}, place))

    def module_iteration(self, owner: Value, what: str, node: Any) -> Iteration:
        """Goes over the modules of a list, or names and modules of a dict: a loop that is unrolled."""
        items: list[Any] = []
        for name in self.unit.children(owner.type):
            key = self.constant(name)
            child = None if what == "keys" else self.attribute(owner, name, self.place(node))
            items.append(
                key if what == "keys" else Several([key, child]) if what in ("items", "named_children") else child
            )
        return Iteration(None, None, items)
