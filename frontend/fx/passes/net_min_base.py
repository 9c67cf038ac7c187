"""A minimizer: which nodes of a graph make a backend's results differ from the reference's.

    class Ours(_MinimizerBase):
        def run_a(self, mod, inputs, report_idx=-1): ...          # the reference
        def run_b(self, mod, inputs, report_idx=-1): ...          # what is suspected

    Ours(module, inputs, compare_fn, _MinimizerSettingBase(traverse_method="binary")).minimize()

compare_fn(a, b, names) returns (a measure, whether they agree). A part of the graph runs on what the reference computes
ahead of it; `sequential` tries node after node, `binary` halves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node, written_at
from .fuser_utils import fuse_as_graphmodule
from .tools_common import CALLABLE_NODE_OPS

__all__ = ["FxNetMinimizerBadModuleError", "FxNetMinimizerResultMismatchError", "FxNetMinimizerRunFuncError"]


class FxNetMinimizerBadModuleError(Exception):
    """Part of a graph cannot be taken out."""


class FxNetMinimizerRunFuncError(Exception):
    """Part of a graph does not run."""


class FxNetMinimizerResultMismatchError(Exception):
    """Part of a graph gives other results than the reference."""


@dataclass
class _MinimizerSettingBase:
    """traverse_method: "sequential" or "binary". find_all: whether to go on behind the first culprit. accumulate_error:
    whether a part runs on what `run_b` computed ahead of it."""

    accumulate_error: bool = False
    traverse_method: str = "sequential"
    find_all: bool = False


class _MinimizerBase:
    """See above. `reports` are the steps of the search, in words."""

    def __init__(
        self,
        module: GraphModule,
        sample_input: Sequence[Any],
        compare_fn: Callable[[Any, Any, Any], tuple[float, bool]],
        settings: _MinimizerSettingBase,
        module_exporter: Callable[[Sequence[Any], GraphModule, str], None] | None = None,
    ) -> None:
        self.module, self.sample_input, self.compare_fn, self.settings = module, sample_input, compare_fn, settings
        self.module_exporter = module_exporter
        self.values: dict[Node, Any] = {}  # of all nodes, by the reference; by run_b, where errors accumulate
        self.results: dict[Any, Any] = {}
        self.reports: list[str] = []
        run = Interpreter(module, garbage_collect_values=False)
        run.run(*sample_input)
        self.values.update(run.env)

    def run_a(self, mod: GraphModule, inputs: Any, report_idx: int = -1) -> Any:
        """Returns the reference's results."""
        raise RuntimeError("run_a() is not implemented.")

    def run_b(self, mod: GraphModule, inputs: Any, report_idx: int = -1) -> Any:
        """Returns the results of what is suspected."""
        raise RuntimeError("run_b() is not implemented.")

    def calls(self, start: str | None = None, end: str | None = None) -> list[Node]:
        """Returns the calls from one to another, by their names, both included."""
        found = [node for node in self.module.graph.nodes if node.op in CALLABLE_NODE_OPS]
        names = [node.name for node in found]
        first = 0 if start is None else names.index(start)
        return found[first : len(found) if end is None else names.index(end) + 1]

    def agree(self, nodes: list[Node]) -> bool:
        """Returns whether a part gives what the reference gives. FxNetMinimizerRunFuncError where it does not run."""
        try:
            part, taken, given = fuse_as_graphmodule(self.module, nodes, "Part")
        except AssertionError as problem:
            raise FxNetMinimizerBadModuleError(f"{nodes} cannot be taken out: {problem}") from problem
        inputs = tuple(self.values[node] for node in taken)
        if self.module_exporter is not None:
            self.module_exporter(inputs, part, "part")
        try:
            wanted, found = self.run_a(part, inputs), self.run_b(part, inputs)
        except Exception as problem:
            names = tuple(node.name for node in given)
            text = f"Exception raised when running {names}{written_at(nodes[-1])}"
            raise FxNetMinimizerRunFuncError(text) from problem
        names = tuple(node.name for node in given)
        pairs = zip(wanted, found, strict=True) if len(given) > 1 else [(wanted, found)]
        same = True
        for node, (a, b) in zip(given, pairs, strict=True):
            measure, passed = self.compare_fn(a, b, (node.name,))
            self.results[node.name] = measure
            same = same and passed
            if self.settings.accumulate_error:
                self.values[node] = b
        self.reports.append(f"{names}: {'agree' if same else 'differ'}, by {[self.results[name] for name in names]}")
        return same

    def minimize(
        self,
        start: str | None = None,
        end: str | None = None,
        skip_nodes: list[str] | None = None,
    ) -> set[Node]:
        """Returns the culprits: nodes whose results differ, of those between `start` and `end`."""
        ways = {"sequential": self.one_by_one, "binary": self.halved}
        method = self.settings.traverse_method
        if method not in ways:
            raise RuntimeError(f"Unknown traverse method {method!r}; expected one of {', '.join(ways)}")
        wanted = [node for node in self.calls(start, end) if node.name not in (skip_nodes or ())]
        return ways[method](wanted)

    def one_by_one(self, nodes: list[Node]) -> set[Node]:
        found: set[Node] = set()
        for node in nodes:
            if not self.agree([node]):
                found.add(node)
                if not self.settings.find_all:
                    break
        return found

    def halved(self, nodes: list[Node]) -> set[Node]:
        if not nodes or self.agree(nodes):
            return set()
        if len(nodes) == 1:
            return set(nodes)
        middle = len(nodes) // 2
        found = self.halved(nodes[:middle])
        if found and not self.settings.find_all:
            return found
        return found | self.halved(nodes[middle:])

    def run_nodes(self, start: str | None = None, end: str | None = None) -> None:
        """Runs a part. FxNetMinimizerResultMismatchError where it gives other results than the reference."""
        nodes = self.calls(start, end)
        if not self.agree(nodes):
            raise FxNetMinimizerResultMismatchError(f"Result mismatch for {tuple(node.name for node in nodes)}")

    def print_reports(self) -> None:
        """Prints the steps of the search."""
        print("\n".join(self.reports))
