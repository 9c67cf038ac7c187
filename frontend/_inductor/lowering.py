"""From the nodes of a graph to steps: nests of loops that compute several operators, and calls of the others.

Each pointwise operator, and each reduction of inner dimensions, joins the nest of one of its operands, or of a sibling
that reads the same, where all that it takes of the nest lies in the same place. A view is no step: who reads it walks
the memory below by its strides. Everything else is a call of an operator.

Note [Late operators]
An operator for loops waits until its value is wanted: by a call, a product or the caller. Then it joins a nest together
with all late ones of which it is computed: an old one, if they all have a place there; else a new one, over its own
shape, but for those that have no place there, which come first. So a chain of rows and their reductions is one nest,
however its operators stand in the graph.

Note [Order]
A step has behind it all that it waits for, directly or not. Operators may join a nest unless one of their operands
waits for that nest: the nest would wait for itself. What writes, or draws random numbers, waits for all before it, and
whatever follows waits for that.

Read next: operators.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import getitem
from typing import Any, NamedTuple, cast

from redispatch.dispatch import OpOverload, Tag, ops
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels import DTYPES, broadcast_strides
from redispatch.kernels.cpu.reduce import BLOCK, PIECE
from redispatch.kernels.engine.compile import is_translated
from redispatch.kernels.engine.convert import real_type
from redispatch.kernels.engine.pool import is_small
from redispatch.kernels.graphs import (
    Accumulate,
    Apply,
    Array,
    Nest,
    Product,
    Read,
    Recorded,
    Value,
)

from ..fx.node import Node

Strides = tuple[int, ...]
Constant = Callable[..., Value]  # (strides, offset) -> a value that is known without memory


class Step:
    """Something that runs as a whole; `behind`: the steps that run before it."""

    def __init__(self) -> None:
        self.behind: set[Step] = set()


class Call(Step):
    """A call of a node's operator."""

    def __init__(self, node: Node) -> None:
        super().__init__()
        self.node = node


class Nesting(Step):
    """Operators that are computed together, over elements of one shape. `columns`: its inner dimensions that they
    reduce; 0 as long as none does."""

    def __init__(self, shape: tuple[int, ...], columns: int = 0) -> None:
        super().__init__()
        self.shape, self.columns = shape, columns
        self.values: dict[Node, Value] = {}  # of its operators
        self.arrays: dict[Any, Read] = {}
        self.bases: dict[str, Node] = {}  # whose memory an array is, by the array's name
        self.outputs: list[Node] = []
        self.accumulates: dict[Node, Strides] = {}  # of outputs that are accumulators: how the nest walks them

    @property
    def work(self) -> int:
        """The cost of an element, in cheap operations."""
        return sum(value.cost if isinstance(value, Apply) else 1 for value in self.values.values())

    def rows(self) -> tuple[int, ...]:
        """The shape of what has one element for each row."""
        return self.shape[: len(self.shape) - self.columns]

    def walk(self, shape: Sequence[int], strides: Sequence[int], result: Sequence[int]) -> Strides | None:
        """The strides by which the nest walks a tensor that an operator with a result of this shape reads; None where
        the operator has no place in the nest."""
        result, columns = tuple(result), self.columns
        if result == self.shape:
            return tuple(broadcast_strides(tuple(shape), tuple(strides), result))
        if columns and result in (self.rows(), (*self.rows(), *[1] * columns)):
            found = broadcast_strides(tuple(shape), tuple(strides), result)
            return (*found[: len(self.shape) - columns], *[0] * columns)
        return None


class Multiplying(Step):
    """A product of matrices, or of several pairs."""

    def __init__(self, node: Node, a: Array, b: Array, sizes: tuple[int, int, int], count: int) -> None:
        super().__init__()
        n, _, m = sizes
        out = Array(node.name, a.dtype, (n * m, m, 1))
        self.node, self.product = node, Product(node.name, out, a, b, sizes, count)


class Late(NamedTuple):
    """An operator that is in no step yet. `columns`: the inner dimensions that it reduces; `make`: `Lowering.join`."""

    operands: Sequence[Node]
    shape: tuple[int, ...]
    columns: int
    make: Callable[[Nesting], Value | None]


class Recording(Step):
    """The calls that an operator's own kernel makes. results: the nodes that are its results, by their numbers."""

    def __init__(self, node: Node, recorded: Recorded, results: dict[int, Node], reads: list[Node]) -> None:
        super().__init__()
        self.node, self.recorded, self.results, self.reads = node, recorded, results, reads


class Memory:
    """An array of which the graph knows nothing; to be used as a node is. `val`: a tensor of its metadata."""

    def __init__(self, name: str, val: Tensor) -> None:
        self.name, self.meta = name, {"val": val}


Rule = Callable[["Lowering", Node], bool]  # False where the operator is to be called after all
AT_ONCE = 1 << 29  # cheap operations that may be done without a chance for Ctrl-C, about 40 ms


class Lowering:
    """The steps of a graph whose nodes know their values' metadata (`meta["val"]`).

    rule_of: how an operator joins the steps (operators.py); None for one that is called.
    native: how its own kernel does, where there is no rule.
    alone: whether there is one thread, which does all that takes long, too.
    """

    device = "cpu"  # in whose memory is what loops read and write
    longest = 2 * PIECE  # elements of a reduction to one number, which is not cut into several
    precise = BLOCK  # elements that accumulators of float32 add up

    def __init__(
        self, nodes: Sequence[Node], rule_of: Callable[[OpOverload], Rule | None], native: Rule, alone: bool
    ) -> None:
        self.nodes, self.rule_of, self.native, self.alone = nodes, rule_of, native, alone
        self.steps: list[Step] = []
        self.step_of: dict[Node, Step] = {}  # by node, beside inputs and views
        self.base: dict[Node, Node] = {}  # a view -> the node in whose memory it is
        self.stands_for: dict[Node, Node] = {}  # a view -> a node that a call may be given in its place
        self.returns: dict[Node, Node] = {}  # a view -> the node whose tensor, shown by nothing else, is returned
        self.constants: dict[Node, Constant] = {}  # a value that no memory is needed for
        self.late: dict[Node, Late] = {}  # operators that are in no step yet
        self.picks: list[tuple[Node, int, int]] = []  # by the number of a `Pick`: dimension and size of what is read
        self.through_python: dict[Node, str] = {}  # operators that are called, and why
        self.floor: Step | None = None  # what all that follows waits for
        for node in nodes:
            self.add(node)
        self.finish()

    def add(self, node: Node) -> None:
        """Takes a node into the steps."""
        if node.op in ("placeholder", "get_attr"):
            return
        if node.op == "output":
            bases = [self.base.get(one, one) for one in node.all_input_nodes]
            for one, base in zip(node.all_input_nodes, bases, strict=True):
                own = base.op == "call_function" and bases.count(base) == 1
                if own and alike(base.meta["val"], one.meta["val"]):
                    self.returns[one] = one = base
                self.tensor(one)
            return
        target = node.target
        if isinstance(target, OpOverload) and target.namespace == "aten":
            if is_alias(node, self.device):
                source = cast(Node, node.args[0])
                self.base[node] = self.base.get(source, source)
                return
            lowered = self.rule_of(target)
            if lowered is not None and is_plain(node, self.device) and lowered(self, node):
                return
            if self.native(self, node):
                return
        elif target is getitem and isinstance(self.step_of.get(cast(Node, node.args[0])), Recording):
            return
        self.call(node)

    def call(self, node: Node) -> Call:
        """Makes a node a call of its operator."""
        step = Call(node)
        for one in node.all_input_nodes:
            self.argument(one)
        if writes(node):
            for late in list(self.late):
                self.settle(late)
        waits = self.waits(node.all_input_nodes)
        if in_order(node):
            waits |= set(self.steps)
            self.floor = step
            for one in node.all_input_nodes:  # which it may have written
                self.constants.pop(self.base.get(one, one), None)
        self.place(step, waits)
        self.step_of[node] = step
        return step

    def argument(self, node: Node) -> None:
        """Has a node be there for a call: as a tensor, or as the one that it shows whole."""
        base = self.base.get(node)
        if base is not None and alike(base.meta["val"], node.meta["val"]):
            self.stands_for[node] = node = base
        self.tensor(node)

    def tensor(self, node: Node) -> None:
        """Has a node be there as a tensor: an output of its nest, or a call of a view's operator."""
        self.settle(node)
        step = self.step_of.get(node)
        if isinstance(step, Nesting):
            if node not in step.outputs:
                step.outputs.append(node)
        elif step is None and node in self.base:
            self.call(node)
        elif step is None and node in self.constants:
            val = node.meta["val"]
            self.join(node, [], tuple(val.shape), 0, lambda nest: self.constants[node](nest.walk(*laid(val))))
            self.tensor(node)

    def picked(self, node: Node, dim: int, size: int) -> int:
        """The number of an index that a node's kernel reads."""
        self.picks.append((node, dim, size))
        return len(self.picks)

    def unused(self, name: str) -> str:
        """A name that no node has; `name`, if it is free."""
        names = {node.name for node in self.nodes}
        while name in names:
            name += "_"
        return name

    # Order: see the note ----------------------------------------------------------------------------------------------

    def waits(self, nodes: Sequence[Node]) -> set[Step]:
        """The steps for which one that takes these nodes must wait."""
        made = [self.step_of.get(node) or self.step_of.get(self.base.get(node, node)) for node in nodes]
        found = {step for step in (*made, self.floor) if step is not None}
        return found.union(*(step.behind for step in found))

    def place(self, step: Step, waits: set[Step]) -> None:
        """Has a step, new or old, wait for these; so do those that wait for it."""
        if step not in self.steps:
            self.steps.append(step)
        for other in self.steps:
            if other is step or step in other.behind:
                other.behind |= waits - {other}

    def finish(self) -> None:
        """Puts the steps in order; those that are quick stand together, as far as they may."""
        behind = {step: len(step.behind) for step in self.steps}
        pending, order, quick = [step for step in self.steps if not behind[step]], [], True
        while pending:
            step = next((one for one in pending if self.is_quick(one) == quick), pending[0])
            quick = self.is_quick(step)
            pending.remove(step)
            order.append(step)
            for other in self.steps:
                if step in other.behind:
                    behind[other] -= 1
                    if not behind[other]:
                        pending.append(other)
        self.steps = order

    def is_quick(self, step: Step) -> bool:
        """Whether a step is done by the calling thread, without a chance for Ctrl-C."""
        if isinstance(step, Multiplying | Recording) or (self.alone and isinstance(step, Nesting)):
            return True
        return isinstance(step, Nesting) and is_small(math.prod(step.shape), step.work)

    def work(self, step: Step) -> int:
        """The cost of a step that a routine can do, in cheap operations."""
        if isinstance(step, Nesting):
            return math.prod(step.shape) * step.work
        return step.product.work if isinstance(step, Multiplying) else cast(Recording, step).recorded.work

    # Nests: see the note on late operators ----------------------------------------------------------------------------

    def join(
        self,
        node: Node,
        operands: Sequence[Node],
        shape: tuple[int, ...],
        columns: int,
        make: Callable[[Nesting], Value | None],
    ) -> bool:
        """Has a node's operator be computed in a nest over `shape`, as soon as somebody wants to have its value;
        `make(nest)` gives it there."""
        self.late[node] = Late(operands, shape, columns, make)
        return True

    def settle(self, node: Node) -> bool:
        """Takes a late operator into a nest, with those of which it is computed; False where it is for none."""
        while node in self.late:
            group, late = self.group(node), self.late[node]
            if any(self.takes(step, group) is None for step in reversed(self.steps) if isinstance(step, Nesting)):
                break
            reduced = next(
                (one for one in group if self.late[one].columns and self.late[one].shape != late.shape), node
            )
            if reduced is not node:
                self.settle(reduced)
                continue
            columns = max(self.late[one].columns for one in group)
            refused = self.takes(Nesting(late.shape, columns), group)
            if refused is None:
                break
            apart = [base for base in map(self.memory, self.late[refused].operands) if base in self.late]
            if refused is node and not apart:
                del self.late[node]
                return False
            for one in apart or [refused]:
                self.settle(one)
        return True

    def memory(self, node: Node) -> Node:
        """The node in whose memory one is."""
        return self.base.get(node, node)

    def group(self, node: Node) -> list[Node]:
        """A late operator and all late ones of which it is computed, in order."""
        found, pending = {node}, [node]
        while pending:
            for base in map(self.memory, self.late[pending.pop()].operands):
                if base in self.late and base not in found:
                    found.add(base)
                    pending.append(base)
        return [one for one in self.late if one in found]

    def takes(self, nest: Nesting, group: list[Node]) -> Node | None:
        """Takes late operators into a nest, all or none: returns the one that has no place there, if one has none."""
        lates = {one: self.late[one] for one in group}
        bases = {self.memory(one) for late in lates.values() for one in late.operands} - lates.keys()
        waits = self.waits(list(bases))
        if nest in self.steps:
            reads = any(base in nest.values for base in bases) or any(base in bases for base in nest.bases.values())
            if not reads or any(nest in other.behind for other in waits):
                return group[-1]
            if self.floor and self.floor not in nest.behind:
                return group[-1]
        before = nest.columns
        for one, late in lates.items():
            if late.columns:
                if late.shape != nest.shape or nest.columns not in (0, late.columns) or not self.shares(nest):
                    return self.leave(nest, group, before, one)
                self.divide(nest, late.columns)
            value = late.make(nest)
            if value is None:
                return self.leave(nest, group, before, one)
            nest.values[one] = value
        for one in group:
            self.step_of[one] = nest
            del self.late[one]
        self.place(nest, waits - {nest})
        return None

    def knows(self, body: Callable, compute: str, takes: Sequence[str]) -> bool:
        """Whether loops have a scalar function. The bits of a complex one may be those that numba gives it alone."""
        types = tuple(DTYPES[one].compute for one in takes)
        return not any("complex" in one for one in types) or is_translated(body, real_type(compute), types)

    def shares(self, nest: Nesting, steps: Strides = ()) -> bool:
        """Whether a nest takes one more reduction: of its rows, or to accumulators that it walks by `steps`."""
        return True

    def leave(self, nest: Nesting, group: list[Node], columns: int, refused: Node) -> Node:
        """Takes late operators out of a nest again, in which one has no place."""
        for one in group:
            nest.values.pop(one, None)
        self.divide(nest, columns)
        return refused

    def divide(self, nest: Nesting, columns: int) -> None:
        """Says of how many dimensions a nest's rows consist, to what it reads, too, which is asked each time."""
        if columns != nest.columns:
            nest.columns = columns
            for read in nest.arrays.values():
                object.__setattr__(read, "columns", columns)

    def read(self, nest: Nesting, node: Node, result: Sequence[int]) -> Value | None:
        """The value of a node, for an operator in a nest with a result of this shape; None where it has none there."""
        val = node.meta["val"]
        return self.read_as(nest, node, val.shape, val.stride(), result)

    def read_as(
        self, nest: Nesting, node: Node, shape: Sequence[int], strides: Sequence[int], result: Sequence[int]
    ) -> Value | None:
        """The value of a node whose memory is seen with another shape and strides."""
        base = self.base.get(node, node)
        val, below = node.meta["val"], base.meta["val"]
        steps = nest.walk(shape, strides, result)
        if steps is None:
            return None
        offset = val.storage_offset() - below.storage_offset()
        if base in self.constants:
            return self.constants[base](steps, offset)
        if isinstance(nest.values.get(base), Accumulate):
            return None
        if base in nest.values:
            own = nest.walk(below.shape, below.stride(), below.shape)
            same = own is not None and all(a == b for a, b, n in zip(own, steps, nest.shape, strict=True) if n > 1)
            return nest.values[base] if same and val.storage_offset() == below.storage_offset() else None
        key = (base, steps, offset)
        found = nest.arrays.get(key)
        if found is None:
            found = nest.arrays[key] = Read(word(val), self.array(nest, base, word(val), steps, offset), nest.columns)
        return found

    def array(self, nest: Nesting, base: Node, dtype: str, steps: Strides, offset: int) -> Array:
        """The memory of a node as a nest walks it, where it is there for others."""
        nest.bases[base.name] = base
        self.tensor(base)
        return Array(base.name, dtype, steps, offset)

    def nest(self, step: Nesting, number: int) -> Nest:
        """The loops of a step."""
        outputs = []
        for node in step.outputs:
            val, value = node.meta["val"], step.values[node]
            steps = step.accumulates.get(node) or step.walk(*laid(val))
            assert steps is not None
            outputs.append((Array(node.name, word(val), steps), value))
        names = dict.fromkeys(name_of(node) for node in step.values if isinstance(node, Node))
        return self.made("_".join(["fused", *list(names)[:6], str(number)]), step.shape, step.columns, outputs)

    made = Nest  # what makes loops of values


# What a node is -------------------------------------------------------------------------------------------------------


def word(val: Tensor) -> str:
    """The dtype's name, as kernels say it."""
    return val._dtype.name


def name_of(node: Node) -> str:
    """The operator's name."""
    return getattr(node.target, "name", lambda: str(node.target))().partition("::")[2].partition(".")[0].strip("_")


def is_plain(node: Node, device: str) -> bool:
    """Whether a node's value, and all that it reads, are tensors in the device's memory that show what is there."""
    vals = [node.meta.get("val"), *(one.meta.get("val") for one in node.all_input_nodes)]
    return all(isinstance(val, Tensor) and is_memory(val, device) for val in vals)


def is_memory(val: Tensor, device: str) -> bool:
    known = all(type(size) is int for size in (*val.shape, *val.stride()))
    lazy = val.is_conj() or val.is_neg() or val._is_zerotensor()
    return known and val.device.type == device and not lazy and word(val) in DTYPES


def extent(val: Tensor) -> int:
    """The number of elements from the first to the last of a tensor."""
    if not val.numel():
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(val.shape, val.stride(), strict=True))


def laid(val: Tensor) -> tuple[Any, Any, Any]:
    """The arguments of `Nesting.walk` for a result, as it lies."""
    return val.shape, val.stride(), val.shape


def alike(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors that show the same memory show the same elements, in the same order."""
    return a.shape == b.shape and a.stride() == b.stride() and a.storage_offset() == b.storage_offset()


def is_alias(node: Node, device: str) -> bool:
    """Whether a node is a view of its first argument, whose elements it shows as they are."""
    target = cast(OpOverload, node.target)
    if not (target.schema.is_view or target is ops.aten._unsafe_view.default) or not is_plain(node, device):
        return False
    source = node.args[0]
    return isinstance(source, Node) and word(source.meta["val"]) == word(node.meta["val"])


def in_order(node: Node) -> bool:
    """Whether a node writes, or draws random numbers: these happen in the order of the program."""
    return writes(node) or Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


def writes(node: Node) -> bool:
    """Whether a node may change what others read."""
    if not isinstance(node.target, OpOverload):
        return node.op != "call_function" or getattr(node.target, "__module__", "") != "_operator"
    return node.target.schema.is_mutable
