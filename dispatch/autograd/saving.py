"""The values of a call that a node saves for its formulas; how users see them, and how they are freed.

    kept      arguments that are tensors, each with its version: saved.py, Note [Kept tensors]
    facts     everything else about the arguments
    results   the call's own results, with their versions and without their history

Each is a slot of the node, if its class needs it. Read next: derivative.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from redispatch.dispatch import TensorBase, wants_gradient
from redispatch.dispatch.schema.schema import Argument, OptionalType
from redispatch.dispatch.specialiser.annotations import inline
from redispatch.dispatch.tensor import metadata_of
from redispatch.dispatch.tensor.metadata import Metadata

from ..records import dataclass
from .anomaly_mode import ANOMALY, remember, watch_writes
from .formulas import KeptArgument, KeptResult, Rule
from .hooks import WATCH
from .node import Edge
from .operator_node import OperatorNode, spans_of
from .saved import (
    FREED,
    PACKING,
    RELEASED,
    UNSAVED,
    WRAPPED,
    SavedForSeveral,
    SavedNone,
    SavedTensor,
    kept_result,
    kept_value,
    packs,
    put_together,
    saved_tensor,
    version_of,
)


@inline
def kept_arguments(rule: Rule, stack: list[Any], edges: Sequence[Sequence[Edge]]) -> tuple[Any, ...]:
    """Returns what a node saves of the arguments: saved.py, Note [Kept tensors]. `edges`: of each differentiable
    argument."""
    kept: list[Any] = []
    for one in rule.kept:
        value: Any = stack[one.argument]
        if one.is_list:
            kept += [saved_list(value, one.is_written) if serves(one, edges) else UNSAVED]
            kept += [WRAPPED if serves(one, edges) else None]
        elif not isinstance(value, TensorBase):
            kept += [value, None]
        else:
            if one.is_written:
                value = copied(value) if serves(one, edges) else value
            kept += [value if serves(one, edges) else UNSAVED, version_of(value) if serves(one, edges) else None]
    return tuple(kept)


@inline
def serves(one: KeptArgument | KeptResult, edges: Sequence[Sequence[Edge]]) -> bool:
    """Whether something has to be kept."""
    return not one.users or any(edge is not None for user in one.users for edge in edges[user])


def copied(tensor: Any) -> Any:
    return tensor.clone()


def saved_list(values: Sequence[Any] | None, is_written: bool) -> list[Any]:
    """A list of tensors as a node keeps it."""
    kept = map(copied, values or ()) if is_written else values or ()
    return [SavedTensor(value) if isinstance(value, TensorBase) else value for value in kept]


def look_on(rule: Rule, node: OperatorNode) -> None:
    """Hands what was kept to the hooks on saved tensors; remembers the call stack in anomaly mode."""
    if rule.kept and PACKING.get():
        kept = list(node.kept)
        for index in range(0, len(kept), 2):
            if kept[index + 1] is not None and kept[index + 1] != WRAPPED:
                many = readers(rule, node, index // 2)
                kept[index] = SavedForSeveral(kept[index], many) if many > 1 else SavedTensor(kept[index])
                kept[index + 1] = WRAPPED
        node.kept = tuple(kept)
    if ANOMALY.get()[0]:
        remember(node)
        if rule.kept:
            for value in node.kept[::2]:
                if isinstance(value, TensorBase):
                    watch_writes(value)


def readers(rule: Rule, node: OperatorNode, index: int) -> int:
    """Returns how many formulas read what was kept of an argument, for gradients that somebody wants."""
    wanted = [any(edge is not None for edge in edges) for edges in edges_of(rule, node)]
    return sum(
        any(wanted[number] for number in formula.inputs)
        and any(need.source == "kept" and need.index == index for need in formula.needs)
        for formula in rule.formulas
    )


def kept_outputs(rule: Rule, node: OperatorNode, outputs: Sequence[Any], stack: Sequence[Any] = ()) -> Any:
    """Returns what a node saves of the outputs. `stack`: the arguments, if the call has written some of them."""
    kept: list[Any] = []
    for one in rule.results:
        if one.users and not serves(one, edges_of(rule, node)):
            kept += UNSAVED, None
        else:
            kept += kept_output(node, outputs[one.output], one.output, stack)
    return tuple(kept)


def edges_of(rule: Rule, node: OperatorNode) -> list[Sequence[Edge]]:
    """The edges of each differentiable argument."""
    return [[node.next_edges[place] for place in span] for span in spans_of(rule, node)]


def kept_output(node: OperatorNode, output: Any, number: int, stack: Sequence[Any]) -> Sequence[Any]:
    """One output as a node keeps it, and what stands in the place of its version."""
    if stack or (WATCH.on and packs(output)):
        own = wants_gradient(output)
        written_view = own and output._view is not None and any(output is value for value in stack)
        return SavedTensor(output, number if own else None, written_view), WRAPPED
    return (output, version_of(output)) if node.outputs[number] is None else kept_result(output, number)


def kept_twin(output: Any) -> Any:
    """Returns the node's own tensor object of a saved `output`; None where it saves nothing.

    In forward mode the tangent of a result is known only when the call has been recorded; it belongs to both.
    """
    record = output._autograd
    node = None if record is None else record.grad_fn
    if not isinstance(node, OperatorNode) or not node.rule.results or node.results is None:
        return None
    for index, one in enumerate(node.rule.results):
        value, version = node.results[2 * index : 2 * index + 2]
        if one.output != record.output_nr or version is None:
            continue
        if version == WRAPPED:
            return value._tensor if isinstance(value, SavedTensor) else None
        twin = put_together(value) if type(value) is tuple else value
        node.results = (*node.results[: 2 * index], twin, *node.results[2 * index + 1 :])
        return twin
    return None


# What users see, and letting go ---------------------------------------------------------------------------------------


def saved_value(slot: str, index: int, number: int | None) -> property:
    """`node._saved_other`: what was saved of the argument `other`, or of an output."""

    def get(node: Any) -> Any:
        value, version = held(node, slot, index)
        if isinstance(value, list):
            return kept_value(node, value, version)
        saved = saved_tensor(value, version, None if number is None or node.outputs[number] is None else number)
        return saved.unpack(node) if isinstance(saved, SavedTensor) else saved

    return property(get)


def saved_object(slot: str, index: int, number: int | None) -> property:
    """`node._raw_saved_other`: the SavedTensor, made now and kept in the place of what it stands for."""

    def get(node: Any) -> Any:
        if getattr(node, slot) is None:
            return RELEASED
        value, version = held(node, slot, index)
        if value is None:
            return SavedNone()
        if isinstance(value, list):
            return tuple(SavedNone() if one is None else one for one in value)
        saved = saved_tensor(value, version, None if number is None or node.outputs[number] is None else number)
        kept = getattr(node, slot)
        version = None if version is None else WRAPPED
        setattr(node, slot, (*kept[: 2 * index], saved, version, *kept[2 * index + 2 :]))
        return saved

    return property(get)


def saved_fact(index: int) -> property:
    """`node._saved_dim`: an argument that is no tensor, or a fact about one. Lists are shown as tuples."""

    def get(node: Any) -> Any:
        value = node.facts[index]
        return tuple(value) if isinstance(value, list | tuple) else value

    return property(get)


# parameter of a formula: how it ends -> how the attribute that shows it ends in PyTorch
_ENDINGS = {"_shape": "_sym_sizes", "_stride": "_sym_strides", "_dtype": "_scalar_type"}


def shown_name(parameter: str, arguments: Mapping[str, Argument]) -> str:
    """The name under which users find what a parameter stands for: `self_shape` as `_saved_self_sym_sizes`."""
    for ending, shown in _ENDINGS.items():
        if parameter.endswith(ending) and (argument := arguments.get(parameter.removesuffix(ending))):
            return f"_saved_{argument.name}{shown}{'_opt' * isinstance(argument.type, OptionalType)}"
    return f"_saved_{parameter}"


@dataclass(frozen=True, slots=True)
class SavedThing:
    """The facts of one saved tensor, known without unpacking it. `metadata` None: a hook has packed it."""

    name: str
    metadata: Metadata | None
    memory: int | None  # the same for all that share the memory; None without data
    memory_bytes: int


def saved_things(node: Any) -> list[SavedThing]:
    """The tensors that a node holds for backward; none once they were let go."""
    if not isinstance(node, OperatorNode):
        found = getattr(node, "saved", None) or ()
        return [thing for index in range(0, len(found), 2) for thing in things_in(f"tensor {index // 2}", found[index])]
    rule, things = node.rule, []
    both: tuple[tuple[Any, Sequence[Any]], ...] = (
        (node.kept if rule.kept else None, rule.kept),
        (node.results if rule.results else None, rule.results),
    )
    for kept, declared in both:
        for index, one in enumerate(declared if kept is not None else ()):
            things += things_in(one.parameter, kept[2 * index])
    return things


def things_in(name: str, value: Any) -> list[SavedThing]:
    """Returns the parts of one saved value: see saved.py, Note [Kept tensors]."""
    if isinstance(value, list):
        return [thing for index, item in enumerate(value) for thing in things_in(f"{name}[{index}]", item)]
    if isinstance(value, SavedTensor):
        if value._tensor is None:
            return [SavedThing(name, None, None, 0)] if value._unpack is not None else []
        value = value._tensor
    if type(value) is tuple:
        array, metadata = value[3], value[5]
    elif isinstance(value, TensorBase):
        array, metadata = value._array, metadata_of(value)  # type: ignore[attr-defined]  # of Tensor, which this room knows as TensorBase
    else:
        return []
    return [SavedThing(name, metadata, None if array is None else id(array), 0 if array is None else array.nbytes)]


def held(node: Any, slot: str, index: int) -> tuple[Any, Any]:
    """(value, version) of one thing that a node keeps."""
    kept = getattr(node, slot)
    if kept is None:
        raise RuntimeError(FREED)
    value, version = kept[2 * index : 2 * index + 2]
    return (None, None) if value is UNSAVED else (value, version)  # no gradient that needs it is wanted


def release_kept(node: Any) -> None:
    node.kept = None


def release_results(node: Any) -> None:
    node.results = None


def release_both(node: Any) -> None:
    node.kept = node.results = None


RELEASES = {("kept",): release_kept, ("results",): release_results, ("kept", "results"): release_both}
