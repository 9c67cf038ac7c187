"""Operations on symbolic numbers by the names that they have as methods of a SymNode, the inside of such a number.

    x.shape[0].node.add(y.shape[0].node).guard_int("", 0)
    method_to_operator("add") is operator.add

A SymNode computes as its number does; what comes out as a plain number is a ConstantNode. Read next:
dispatch/symbolic.py.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from typing import Any

import redispatch
from redispatch.dispatch.symbolic import SYMBOLIC_CLASSES, ConstantNode, Symbolic, SymNode

__all__ = ["SymNode", "method_to_operator", "to_node"]

MATHS = {f"sym_{name}" for name in "sqrt cos cosh sin sinh tan tanh asin acos atan log2".split()}
unary_magic_methods = MATHS | set("abs sym_float sym_int ceil floor neg pos trunc sym_not".split())
unary_nonmagic_methods = {"is_integer"}
unary_methods = unary_magic_methods | unary_nonmagic_methods
only_bool_magic_methods, also_bool_magic_methods = {"and", "or", "sym_not", "sym_ite"}, {"eq"}
bool_magic_methods = only_bool_magic_methods | also_bool_magic_methods
bool_becomes_int_magic_methods = {"add", "sub", "mul"}
magic_methods_on_operator_with_trailing_underscore = {"and", "or"}
bitwise_ops = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"}
always_bool_magic_methods = set("and or eq ne gt lt le ge is_integer sym_not is_non_overlapping_and_dense".split())
always_int_magic_methods = {"ceil", "floor", "trunc", "pow_by_natural"}
always_float_magic_methods = MATHS | {"int_truediv", "float_truediv", "sym_float", "float_pow"}
only_float_magic_methods = {"is_integer", "round", "sym_int", "sym_log2"}
BINARY = (
    "add sub mul mod and or bitwise_and bitwise_or bitwise_xor lshift rshift eq ne gt lt le ge int_truediv "
    "float_truediv int_floordiv pow_by_natural float_pow sym_min sym_max"
).split()
reflectable_magic_methods = set("add sub mul mod pow_by_natural float_pow and or lshift rshift".split()) | {
    *"int_truediv float_truediv int_floordiv bitwise_and bitwise_or bitwise_xor".split()
}

SPECIAL: dict[str, Callable[..., Any]] = {
    "pow_by_natural": operator.pow,
    "float_pow": operator.pow,
    "int_truediv": operator.truediv,
    "float_truediv": operator.truediv,
    "int_floordiv": operator.floordiv,
    "and": operator.and_,
    "or": operator.or_,
    "not": operator.not_,
    "is_integer": lambda number: number.is_integer(),
}


def method_to_operator(method: str) -> Callable[..., Any]:
    """Returns the function that does what a method of a SymNode does, by its name: `operator.add` for "add"."""
    name = method.removeprefix("bitwise_") if method.startswith("bitwise_") else method
    found: Any = SPECIAL.get(name)
    if found is not None:
        return found
    for place, candidate in (
        (redispatch, method),
        (redispatch, f"_{method}"),
        (math, method),
        (operator, name),
        (builtins, method),
    ):
        if hasattr(place, candidate) and (place is not redispatch or method.startswith("sym_")):
            found = getattr(place, candidate)
            return found
    raise ValueError(f"no function does what {method!r} says; expected a method of SymNode, such as add or sym_float")


magic_methods = {
    name: method_to_operator(name)
    for name in (*BINARY, *unary_magic_methods - {"sym_int"}, *"is_integer round sym_ite".split())
}
METHOD_TO_OPERATOR = {
    name: method_to_operator(name) for name in (*magic_methods, "sym_int", "floordiv", "truediv", "pow")
}


def to_node(self: SymNode, num: Any) -> Any:
    """Returns the inside of a number: its own where it is symbolic; NotImplemented for what is no number."""
    if isinstance(num, Symbolic):
        return num.node
    return ConstantNode(num, self.shape_env) if type(num) in SYMBOLIC_CLASSES else NotImplemented


def number(node: Any) -> Any:
    """Returns the number that a node is the inside of; a plain one as it is."""
    if isinstance(node, ConstantNode):
        return node.value
    return SYMBOLIC_CLASSES[node.pytype](node) if isinstance(node, SymNode) else node


def method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns what does to the insides of numbers what a function does to the numbers."""

    def computed(self: SymNode, *others: Any) -> Any:
        return to_node(self, function(number(self), *map(number, others)))

    return computed


# Attached here, as numbers compute without them: by them PyTorch's C++ asks, and programs that know it.
for _name, _function in METHOD_TO_OPERATOR.items():
    setattr(SymNode, _name, method(_function))
for _name in ("wrap_int", "wrap_float", "wrap_bool"):
    setattr(SymNode, _name, to_node)
MORE: dict[str, Any] = {
    "clone": lambda self: self,
    "str": str,
    "int_": lambda self: self.guard_int(),
    "bool_": lambda self: self.guard_bool(),
    "sym_sum": lambda self, args: to_node(self, redispatch.sym_sum([number(one) for one in args])),
    "maybe_as_float": lambda self: self.value if isinstance(self, ConstantNode) and self.is_float() else None,
    "maybe_as_bool": lambda self: self.value if isinstance(self, ConstantNode) and self.is_bool() else None,
    "statically_known_true": lambda self, file="", line=0: self.shape_env.known(self.expr) is True,
    "nested_int": lambda self: None,
}
for _name, _function in MORE.items():
    setattr(SymNode, _name, _function)
