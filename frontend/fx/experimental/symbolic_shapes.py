"""PyTorch's names for sizes that are symbols: what programs ask of them, and how they say which sizes change.

The symbols, their expressions and the ShapeEnv are in dispatch/symbolic.py. Here is what asks about a number, of Python
or symbolic, without telling the two apart, and what says beforehand how a tensor's sizes are to be treated.
"""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass, field
from enum import Enum
from itertools import accumulate
from typing import Any

from redispatch._checks import _check_is_size, sym_constrain_range_for_size
from redispatch.dispatch.symbolic import (
    GuardOnDataDependentSymNode,
    ShapeEnv,
    Symbolic,
    SymBool,
    SymInt,
    SymNode,
    symbols_of,
)
from redispatch.dispatch.tensor import Tensor
from redispatch.utils import _pytree as pytree

from . import sym_node as sym_node  # attaches the methods of SymNode

__all__ = ["DimDynamic", "GuardOnDataDependentSymNode", "ShapeEnv", "StatelessSymbolicContext", "SymNode"]


class DimDynamic(Enum):
    """Treatment of a size: a symbol of its own, one that equal sizes share, a number."""

    DYNAMIC = 0
    DUCK = 1
    STATIC = 2
    SIZE_LIKE_UNBACKED = 3
    INFER_STRIDE = 4
    OBLIVIOUS_SIZE = 5
    UNBACKED = 6


@dataclass(frozen=True)
class StatelessSymbolicContext:
    """Treatment of the sizes of one tensor, each by a DimDynamic; strides follow from them."""

    dynamic_sizes: list[DimDynamic | None]
    dynamic_strides: list[DimDynamic] = field(default_factory=list)
    constraint_sizes: list[Any] = field(default_factory=list)
    constraint_strides: list[Any] = field(default_factory=list)
    view_base_context: Any = None


SymbolicContext = StatelessSymbolicContext


@dataclass(frozen=True)
class StatefulSymbolicContext(StatelessSymbolicContext):
    """Context with the source of the tensor, and the symbols that its sizes had in a ShapeEnv."""

    tensor_source: Any = None
    shape_env_to_source_to_symbol_cache: dict[int, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class SubclassSymbolicContext(StatefulSymbolicContext):
    """Context with the treatment of the tensors within a subclass."""

    inner_contexts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Constraint:
    """A condition on a size; one that is only wished for has `warn_only`."""

    warn_only: bool


@dataclass(frozen=True)
class StrictMinMaxConstraint(Constraint):
    """A size lies between `vr.lower` and `vr.upper`, and the graph must hold for all of these."""

    vr: Any

    def render(self, source: Any) -> str:
        return f"{self.vr.lower} <= {getattr(source, 'name', source)} <= {self.vr.upper}"


@dataclass(frozen=True)
class RelaxedUnspecConstraint(Constraint):
    """A size may not become a number."""

    def render(self, source: Any) -> str:
        return f"RelaxedUnspecConstraint({getattr(source, 'name', source)})"


class ConstraintViolationError(RuntimeError):
    """A guard contradicts a constraint."""


@dataclass(frozen=True)
class ShapeEnvSettings:
    """The facts about a ShapeEnv that decide what an operator gives."""

    allow_scalar_outputs: bool
    allow_dynamic_output_shape_ops: bool
    assume_static_by_default: bool
    specialize_zero_one: bool
    duck_shape: bool


def is_concrete_int(value: Any) -> bool:
    """Whether a number is known for certain."""
    return type(value) is int or isinstance(value, SymInt) and value.node.maybe_as_int() is not None


def is_concrete_float(value: Any) -> bool:
    return type(value) is float


def is_concrete_bool(value: Any) -> bool:
    return type(value) is bool


def is_symbolic(value: Any) -> bool:
    return isinstance(value, Symbolic)


def has_hint(value: Any) -> bool:
    return not isinstance(value, Symbolic) or value.node.has_hint()


def has_free_symbols(value: Any) -> bool:
    return bool(free_symbols(value))


def free_symbols(value: Any) -> set[Any]:
    """The symbols in a number, or in the sizes, strides and offsets of tensors, lists of them included."""
    found: set[Any] = set()
    for one in pytree.tree_leaves(value):
        if isinstance(one, Tensor):
            found |= free_symbols([*one.shape, *one.stride(), one.storage_offset()])
        else:
            found |= symbols_of(one.node.expr if isinstance(one, Symbolic) else one)
    return found


def free_unbacked_symbols(value: Any) -> set[Any]:
    """Those whose values depend on elements."""
    return {one for one in free_symbols(value) if one[0] in "uz"}


def numbers_of(value: Any) -> list[Any]:
    """Returns the numbers in a value, those of tensors in the order of sizes, strides, offset."""
    found: list[Any] = []
    for one in pytree.tree_leaves(value):
        found += [*one.shape, *one.stride(), one.storage_offset()] if isinstance(one, Tensor) else [one]
    return found


def rebind_unbacked(shape_env: ShapeEnv | None, node: Any, result: Any) -> None:
    """Says of the numbers of a node's new value that they are those of its former one, `node.meta["val"]`.

    A graph that is run again on fakes has new symbols for what depends on elements; the elements are the same.
    """
    former = node.meta.get("val")
    if shape_env is None or former is None:
        return
    for old, new in zip(numbers_of(former), numbers_of(result), strict=False):
        if isinstance(old, Symbolic) and isinstance(new, SymInt) and old.node.expr != new.node.expr:
            for symbol in free_unbacked_symbols(new):
                if new.node.expr == symbol:
                    shape_env.replacements[symbol] = old.node.expr


@dataclass(frozen=True)
class CallMethodKey:
    """A step on the way from a value to a symbol in it: a call of a method."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}()"

    def get(self, value: Any) -> Any:
        return getattr(value, self.name)()


def compute_unbacked_bindings(
    shape_env: ShapeEnv | None, example_value: Any, old_example_value: Any = None, peek: bool = False
) -> dict[Any, tuple[Any, ...]] | None:
    """Returns for each new unbacked symbol in a value the way to it, `(CallMethodKey("size"), SequenceKey(0))`.

    They are no longer new then, unless `peek`.
    """
    if shape_env is None or not shape_env.pending_fresh_unbacked_symbols:
        return None
    fresh = set(shape_env.pending_fresh_unbacked_symbols)
    found: dict[Any, tuple[Any, ...]] = {}
    for way, one in pytree.tree_flatten_with_path(example_value)[0]:
        parts: list[Any] = [((), one)]
        if isinstance(one, Tensor):
            methods = ("size", one.shape), ("stride", one.stride())
            parts = [
                ((CallMethodKey(name), pytree.SequenceKey(i)), part)
                for name, numbers in methods
                for i, part in enumerate(numbers)
            ]
            parts.append(((CallMethodKey("storage_offset"),), one.storage_offset()))
        for further, number in parts:
            for symbol in fresh & free_symbols(number):
                found.setdefault(symbol, (*way, *further))
    if not peek:
        shape_env.pending_fresh_unbacked_symbols[:] = [one for one in fresh if one not in found]
    return found


def has_free_unbacked_symbols(value: Any) -> bool:
    return bool(free_unbacked_symbols(value))


def has_static_value(value: Any) -> bool:
    """Whether a number is known for certain, where one knows its range."""
    if not isinstance(value, SymInt):
        return not isinstance(value, Symbolic)
    low, high = value.node.shape_env.bound(value.node.expr)
    return low == high


def is_nested_int(value: Any) -> bool:
    """Whether a number stands for a ragged dimension: there is none such here."""
    return False


def is_symbol_binding_fx_node(node: Any) -> Any:
    """Returns the symbol that a placeholder of a graph brings, or None."""
    value = node.meta.get("val")
    if node.op != "placeholder" or not isinstance(value, SymInt):
        return None
    symbols = symbols_of(value.node.expr)
    return next((one for one in symbols if value.node.expr == one), None)


def find_symbol_binding_fx_nodes(graph: Any) -> dict[Any, Any]:
    """Returns the placeholders of a graph that are symbols, by the symbol."""
    found = ((is_symbol_binding_fx_node(node), node) for node in graph.nodes)
    return {symbol: node for symbol, node in found if symbol is not None}


def fx_placeholder_vals(gm: Any) -> list[Any]:
    """Returns the fakes of a graph's placeholders."""
    return [node.meta["val"] for node in gm.graph.nodes if node.op == "placeholder"]


def fx_placeholder_targets(gm: Any) -> list[str]:
    """Returns the names of a graph's placeholders."""
    return [node.target for node in gm.graph.nodes if node.op == "placeholder"]


def bind_symbols(gm: Any, *args: Any) -> dict[Any, Any]:
    """Returns the numbers that the symbols of a graph stand for with these arguments."""
    found: dict[Any, Any] = gm.shape_env.bind_symbols(fx_placeholder_vals(gm), args)
    return found


def eval_guards(gm: Any, *args: Any, ignore_static: bool = True) -> bool:
    """Whether what was traced holds for these arguments."""
    holds: bool = gm.shape_env.evaluate_guards_for_args(fx_placeholder_vals(gm), args, ignore_static=ignore_static)
    return holds


def guard_bool(value: Any) -> bool:
    return value.node.guard_bool() if isinstance(value, SymBool) else bool(value)


def guard_int(value: Any) -> int:
    return value.node.guard_int() if isinstance(value, SymInt) else int(value)


guard_scalar = guard_int


def guard_float(value: Any) -> float:
    return value.node.guard_float() if isinstance(value, Symbolic) else float(value)


def guard_size_oblivious(value: Any) -> bool:
    """The answer for sizes of two and more, where elements decide."""
    return value.node.guard_size_oblivious() if isinstance(value, SymBool) else value


def statically_known_true(value: Any) -> bool:
    """Whether a condition is known to hold; nothing is guarded."""
    if not isinstance(value, SymBool):
        return bool(value)
    return value.node.shape_env.known(value.node.expr) is True


def guard_or_true(value: Any) -> bool:
    """The answer where hints or facts give one, else True."""
    return guard_bool(value) if has_hint(value) or statically_known_true(value) else known_or(value, True)


def guard_or_false(value: Any) -> bool:
    """The answer where hints or facts give one, else False."""
    return guard_bool(value) if has_hint(value) or statically_known_true(value) else known_or(value, False)


def known_or(value: Any, otherwise: bool) -> bool:
    answer = value.node.shape_env.known(value.node.expr)
    return otherwise if answer is None else answer


def definitely_true(value: Any) -> bool:
    return guard_or_false(value)


def hint_int(value: Any, fallback: int | None = None) -> int:
    """The value of now. GuardOnDataDependentSymNode where elements decide and no fallback is given."""
    if not isinstance(value, SymInt):
        return int(value)
    return fallback if fallback is not None and not value.node.has_hint() else value.node.require_hint()


def optimization_hint(value: Any, fallback: int | None = None) -> int:
    """The value of now, for decisions that are right for any; `fallback` where elements decide."""
    return hint_int(value, fallback)


def has_guarding_hint(value: Any) -> bool:
    return has_hint(value)


def _advise_is_size(value: Any) -> None:
    """Says that a number is one that a size may have."""
    _check_is_size(value)


def _constrain_range_for_size(value: Any, min: int | None = None, max: int | None = None) -> None:
    """Says between which numbers a size lies."""
    sym_constrain_range_for_size(value, min=min, max=max)


def constrain_range(value: Any, *, min: int | None, max: int | None = None) -> None:
    """Says between which numbers a number lies. ValueError for a plain one that does not."""
    if isinstance(value, SymInt):
        (symbol,) = value.node.expr.free_symbols
        value.node.shape_env.constrain_range(symbol, min, max)
    elif (min is not None and value < min) or (max is not None and value > max):
        raise ValueError(f"Invalid value {value} for range [{min}:{max}]")


def sym_eq(one: Any, other: Any) -> Any:
    """Whether two numbers, or all those in two sequences, are equal: a condition that nothing has asked yet."""
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        if len(one) != len(other):
            return False
        whole: Any = True
        for a, b in zip(one, other, strict=True):
            equal = sym_eq(a, b)
            whole = equal if whole is True else False if equal is False else whole if equal is True else whole & equal
        return whole
    return one == other


def sym_and(*conditions: Any) -> Any:
    """Whether all hold: a condition that nothing has asked yet."""
    return functools.reduce(lambda one, other: one & other, conditions, True)


def sym_or(*conditions: Any) -> Any:
    """Whether one of them holds: a condition that nothing has asked yet."""
    return functools.reduce(lambda one, other: one | other, conditions, False)


def statically_known_false(value: Any) -> bool:
    return not value if not isinstance(value, SymBool) else value.node.shape_env.known(value.node.expr) is False


def expect_true(value: Any, skip: int = 0) -> bool:
    """Has a condition hold from now on, as `torch._check` does."""
    return value.node.expect_true() if isinstance(value, SymBool) else bool(value)


def guarding_hint_or_throw(value: Any) -> Any:
    return value.node.require_hint() if isinstance(value, Symbolic) else value


def create_contiguous(shape: Any) -> list[Any]:
    """Returns the strides of a tensor of this shape that has no gaps, the last dimension running first."""
    return [*accumulate(reversed([*shape][1:]), operator.mul, initial=1)][::-1] if len(shape) else []


def check_consistent(new: Any, old: Any) -> None:
    """Has two numbers, or the sizes of two tensors, be the same. RuntimeError where they cannot be."""
    if isinstance(new, Tensor):
        if new.dim() != old.dim():
            raise RuntimeError(f"{tuple(old.shape)} != {tuple(new.shape)} (old != new)")
        new, old = tuple(new.shape), tuple(old.shape)
    if not expect_true(sym_eq(new, old)):
        raise RuntimeError(f"{old} != {new} (old != new)")


def has_symbolic_sizes_strides(value: Any) -> bool:
    return any(isinstance(one, Symbolic) for one in (*value.shape, *value.stride(), value.storage_offset()))
