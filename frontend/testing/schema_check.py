"""Compares the effects of an operator's call on its arguments with its schema.

A schema promises: what has no `(a!)` is not written, and what shares no letter shares no memory. Layers above the
kernel believe it; where it is not true, gradients and functional traces are wrong without a word. So the arguments are
copied, the call is made, and arguments, copies and results are compared.

Read next: modes/schema_check.py, for every call of a region; op_check.py, for one operator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from redispatch._C._schema_info import RUNNING, WRITE_RUNNING
from redispatch.dispatch import FunctionSchema, OpOverload, bind
from redispatch.dispatch.tensor import Tensor
from redispatch.utils._pytree import tree_leaves

UNSAFE = (
    "aten::_unsafe_view",
    "aten::unsafe_split",
    "aten::unsafe_split_with_sizes",
)  # their schemas are wrong on purpose
MAY_RETURN_INPUT = ("aten::lift", "aten::lift_fresh")


@dataclass
class Observation:
    """The result of a call, and which arguments it changed, left alone though it might have written them, and shows."""

    result: Any
    mutated: list[str] = field(default_factory=list)
    unmutated: list[str] = field(default_factory=list)
    aliasing: list[tuple[str, str]] = field(default_factory=list)  # (argument, output)


def observed(op: OpOverload, args: Any, kwargs: Any) -> Observation:
    """Returns the effects of a call of `op`.

    Errors: RuntimeError where the call broke a promise of the schema.
    """
    schema = op.schema
    stack = bind(schema, args, kwargs)
    before = [[Snapshot(tensor) for tensor in plain_tensors(value)] for value in stack]
    together = [[overlap(value, other) for other in stack] for value in stack]  # as they came: views of one memory
    seen = Observation(op(*args, **kwargs))
    outputs = list(seen.result) if isinstance(seen.result, tuple) else [seen.result]
    for position, value in enumerate(stack):
        name = name_of(schema, position)
        for number, output in enumerate(outputs):
            if schema.name not in UNSAFE and overlap(output, value):
                by_way = (p for p, shared in enumerate(together[position]) if shared)
                if not may_alias(schema, number, position) and not any(may_alias(schema, number, p) for p in by_way):
                    raise RuntimeError(f"Argument {name} is not defined to alias output but was aliasing")
                seen.aliasing.append((name, f"output_{number}"))
            returned = output is value and isinstance(value, Tensor)
            if returned and not schema.arguments[position].is_write and schema.name not in MAY_RETURN_INPUT:
                raise RuntimeError(
                    "Dispatcher operators below autograd are not allowed to directly return inputs.\n"
                    f"However, we found that `outputs[{number}] is {name}"
                )
        changed = any(snapshot.changed() for snapshot in before[position])
        if changed and not may_write(schema, position):
            raise RuntimeError(f"Argument {name} is not defined as mutable but was mutated")
        if schema.arguments[position].is_write and before[position]:
            (seen.mutated if changed else seen.unmutated).append(name)
    check_outputs(schema, outputs)
    return seen


def check_outputs(schema: FunctionSchema, outputs: list[Any]) -> None:
    """RuntimeError where two results share memory, and no letter in the schema."""
    for first in range(len(outputs)):
        for second in range(first + 1, len(outputs)):
            together = set(schema.return_aliases[first]) & set(schema.return_aliases[second])
            if overlap(outputs[first], outputs[second]) and not together:
                raise RuntimeError(f"Outputs {first} and {second} alias unexpectedly")


class Snapshot:
    """A tensor before the call: its elements, its strides, its storage."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor, self.stride, self.storage = tensor, tensor.stride(), tensor._storage
        self.copy = tensor.detach().clone()

    def changed(self) -> bool:
        now = self.tensor
        if now.shape != self.copy.shape or now.stride() != self.stride or now._storage is not self.storage:
            return True
        return not now.is_meta and not same_elements(self.copy, now.detach())


def same_elements(a: Tensor, b: Tensor) -> bool:
    """Whether all elements are equal, a NaN being equal to a NaN."""
    return bool(((a == b) | ((a != a) & (b != b))).all())


def plain_tensors(value: Any) -> Iterator[Tensor]:
    """The tensors in a value that hold elements: for a wrapper, those inside it."""
    for leaf in tree_leaves(value):
        if isinstance(leaf, Tensor) and hasattr(leaf, "__tensor_flatten__"):
            for name in leaf.__tensor_flatten__()[0]:
                yield from plain_tensors(getattr(leaf, name))
        elif isinstance(leaf, Tensor):
            yield leaf


def overlap(a: Any, b: Any) -> bool:
    """Whether two values share memory."""
    storages = {id(tensor._storage) for tensor in plain_tensors(a)}
    return any(id(tensor._storage) in storages for tensor in plain_tensors(b))


def may_write(schema: FunctionSchema, position: int) -> bool:
    argument = schema.arguments[position]
    return argument.is_write or (schema.name in WRITE_RUNNING and argument.name in RUNNING)


def may_alias(schema: FunctionSchema, output: int, position: int) -> bool:
    return output < len(schema.return_aliases) and position in schema.return_aliases[output]


def name_of(schema: FunctionSchema, position: int) -> str:
    """An argument's name; what operators call `self`, users call the input."""
    name = schema.arguments[position].name
    return "input" if name == "self" else name
