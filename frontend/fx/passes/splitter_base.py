"""A splitter: submodules of what a backend supports, by turns with submodules of the rest.

    split = _SplitterBase(module, inputs, support, _SplitterSettingBase())()
    split._run_on_acc_0, split._run_on_cpu_1                  # and so on, in the order in which they run

`CapabilityBasedPartitioner` (partitioner.py) makes fewer parts and leaves the rest where it is. This is the older way,
which PyTorch's programs for accelerators subclass.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from redispatch import nn

from ..graph_module import GraphModule
from ..node import Node, written_at
from .operator_support import OperatorSupportBase
from .shape_prop import ShapeProp
from .split_utils import split_by_tags
from .tools_common import CALLABLE_NODE_OPS, is_node_output_tensor

__all__ = [
    "FxNetAccNodesFinder",
    "FxNetSplitterInternalError",
    "SplitResult",
    "Subgraph",
    "generate_inputs_for_submodules",
]


@dataclass
class _SplitterSettingBase:
    """min_acc_module_size: a part with fewer nodes for the backend is left to the rest. max_acc_splits: so many parts
    for the backend at most, if it is positive. allow_non_tensor: whether numbers may go from one part to another."""

    min_acc_module_size: int = 1
    skip_fusion: bool = False
    allow_non_tensor: bool = False
    max_acc_splits: int = -1
    move_non_tensor_nodes_on_boundary: bool = False


class FxNetSplitterInternalError(Exception):
    """The nodes cannot be put in an order of parts."""


class FxNetAccNodesFinder:
    """Finds the nodes that a backend supports.

    allow_non_tensor: whether one that takes a number from the rest, or hands it a number, is among them.
    """

    def __init__(self, module: GraphModule, operator_support: OperatorSupportBase, allow_non_tensor: bool) -> None:
        self.module, self.operator_support, self.allow_non_tensor = module, operator_support, allow_non_tensor

    def __call__(self) -> set[Node]:
        """Returns them."""
        submodules = dict(self.module.named_modules())
        found = {
            node
            for node in self.module.graph.nodes
            if node.op in CALLABLE_NODE_OPS and self.operator_support.is_node_supported(submodules, node)
        }
        while not self.allow_non_tensor:
            wrong = {node for node in found if self.takes_or_hands_numbers(node, found)}
            if not wrong:
                break
            found -= wrong
        return found

    def takes_or_hands_numbers(self, node: Node, found: set[Node]) -> bool:
        """Returns whether a number crosses between a node and the rest."""
        read = (one for one in node.all_input_nodes if one.op in CALLABLE_NODE_OPS and one not in found)
        taken = any(not is_node_output_tensor(one) for one in read)
        return taken or not is_node_output_tensor(node) and any(user not in found for user in node.users)


class Subgraph(NamedTuple):
    """Nodes that run one after another, for the backend or not."""

    is_acc: bool
    nodes: list[Node]
    device_ordinal: int | None = None


class SplitResult(NamedTuple):
    """The module in parts, what each part is called with, and how the names of those for the rest begin."""

    split_module: GraphModule
    submodule_inputs: dict[str, Any]
    non_acc_submodule_prefix: str


def generate_inputs_for_submodules(
    model: nn.Module, inputs: Sequence[Any], target_submodules: Iterable[str], deepcopy: bool = False
) -> dict[str, Any]:
    """Returns what submodules are called with when a model is called with these inputs."""
    found: dict[str, Any] = {}

    def noting(name: str) -> Any:
        def hook(module: Any, given: Any) -> None:
            found[name] = copy.deepcopy(given) if deepcopy else given

        return hook

    wanted = set(target_submodules)
    handles = [
        module.register_forward_pre_hook(noting(name)) for name, module in model.named_modules() if name in wanted
    ]
    try:
        model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return found


class _SplitterBase:
    """See above. Override `_lower_model_to_backend` to make something of the parts for the backend.

    Of the parts, as many nodes run at once as can: the rest goes first, until nothing but the backend's is ready.
    """

    PCIe_BW = 100 * 2**30  # bytes a second, by PyTorch's estimate

    def __init__(
        self,
        module: GraphModule,
        sample_input: Sequence[Any],
        operator_support: OperatorSupportBase,
        settings: _SplitterSettingBase,
        non_acc_submodule_name: str = "_run_on_cpu_",
        return_tuple: bool = False,
    ) -> None:
        self.module, self.sample_input, self.settings = module, sample_input, settings
        self.operator_support, self.return_tuple = operator_support, return_tuple
        self.non_acc_submodule_name = non_acc_submodule_name
        ShapeProp(module).propagate(*sample_input)
        self.acc_nodes = FxNetAccNodesFinder(module, operator_support, settings.allow_non_tensor)()
        self.deps = self.find_deps()
        self.tags: list[str] = []

    def find_deps(self) -> dict[Node, set[Node]]:
        """Returns for each call the calls that it reads."""
        calls = [node for node in self.module.graph.nodes if node.op in CALLABLE_NODE_OPS]
        return {node: {one for one in node.all_input_nodes if one.op in CALLABLE_NODE_OPS} for node in calls}

    def put_nodes_into_subgraphs(self) -> list[Subgraph]:
        """Returns all calls, in parts by turns."""
        left, parts = dict.fromkeys(self.deps), list[Subgraph]()
        done: set[Node] = set()
        is_acc = not any(node not in self.acc_nodes and not self.deps[node] for node in left)
        while left:
            part: list[Node] = []
            for node in list(left):  # in their order, so what is ready in one round is taken in it
                if (node in self.acc_nodes) == is_acc and self.deps[node] <= done:
                    part.append(node)
                    done.add(node)
                    del left[node]
            if part:
                parts.append(Subgraph(is_acc, part))
            elif parts and parts[-1].is_acc != is_acc and not any(self.deps[node] <= done for node in left):
                stuck = next(iter(left))
                raise FxNetSplitterInternalError(f"Subgraph can't be empty: {stuck.format_node()}{written_at(stuck)}")
            is_acc = not is_acc
        return parts

    def remove_small_acc_subgraphs(self, subgraphs: list[Subgraph]) -> list[Subgraph]:
        """Returns the parts, of which those for the backend that are too small have gone to the rest."""
        kept: list[Subgraph] = []
        for part in subgraphs:
            is_acc = part.is_acc and len(part.nodes) >= self.settings.min_acc_module_size
            if kept and kept[-1].is_acc == is_acc:
                kept[-1].nodes.extend(part.nodes)
            else:
                kept.append(Subgraph(is_acc, list(part.nodes), part.device_ordinal))
        return kept

    def tag(self, subgraphs: list[Subgraph]) -> None:
        """Gives each node the name of its part."""
        self.tags = []
        for number, part in enumerate(subgraphs):
            name = f"_run_on_acc_{number}" if part.is_acc else f"{self.non_acc_submodule_name}{number}"
            self.tags.append(name)
            for node in part.nodes:
                node.tag = name  # type: ignore[attr-defined]  # as split_by_tags reads it

    def split(self, remove_tag: bool = False) -> GraphModule:
        """Returns the module of the parts. remove_tag: whether the nodes forget their part."""
        made: GraphModule = split_by_tags(self.module, self.tags, return_tuple=self.return_tuple)
        if remove_tag:
            for node in self.module.graph.nodes:
                vars(node).pop("tag", None)
        return made

    def __call__(self) -> GraphModule:
        """Returns the module of the parts. ValueError for more parts for the backend than are allowed."""
        parts = self.remove_small_acc_subgraphs(self.put_nodes_into_subgraphs())
        count, most = sum(part.is_acc for part in parts), self.settings.max_acc_splits
        if 0 < most < count:
            raise ValueError(
                f"Cannot fulfill max_acc_splits limit. This may cause split fragmentation and result in performance "
                f"issues: there are {count} parts for the backend, and at most {most} are allowed"
            )
        self.tag(parts)
        return self.split()

    def generate_split_results(self) -> SplitResult:
        """Returns the module of the parts, with what they are called with for the sample input."""
        made = self()
        names = [name for name, _ in made.named_children()]
        inputs = generate_inputs_for_submodules(made, self.sample_input, names)
        return SplitResult(made, inputs, self.non_acc_submodule_name)

    def get_node_submodule_map(self) -> dict[str, str]:
        """Returns for each call the name of its part, once they are tagged."""
        return {node.name: vars(node).get("tag", "") for node in self.deps}

    def node_support_preview(self, dump_graph: bool = False) -> str:
        """Returns, and prints, which targets the backend supports, and which not."""
        lines = []
        for title, wanted in (("Supported", True), ("Unsupported", False)):
            of = {str(node.target) for node in self.deps if (node in self.acc_nodes) == wanted}
            lines += [f"{title} node types in the model:", *(f"  {one}" for one in sorted(of)), ""]
        text = "\n".join(lines)
        print(text)
        return text

    def split_preview(self, dump_graph: bool = False) -> str:
        """Returns, and prints, the parts and how many nodes they have."""
        parts = self.remove_small_acc_subgraphs(self.put_nodes_into_subgraphs())
        count = sum(part.is_acc for part in parts)
        lines = [f"{len(parts)} subgraphs are created, {count} of them for acc"]
        for number, part in enumerate(parts):
            name = f"_run_on_acc_{number}" if part.is_acc else f"{self.non_acc_submodule_name}{number}"
            lines.append(f"{name}: {len(part.nodes)} node(s): {', '.join(node.name for node in part.nodes)}")
        text = "\n".join(lines)
        print(text)
        return text

    def _lower_model_to_backend(self, mod: GraphModule, inputs: Any) -> nn.Module:
        return mod
