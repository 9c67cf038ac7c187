"""register_replacement: a pass that computes what one function says where a graph computes what another one says.

    register_replacement(lambda a, b, c: a @ b + c, lambda a, b, c: rd.addmm(c, a, b), [x, x, x],
                         extra_check=lambda match: match.values["c"].dim() == 2)

Unlike `replace_pattern` it traces both functions to operators, and it asks `extra_check`, which sees metadata.
Read next: ../subgraph_rewriter.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from redispatch.dispatch.pytree import tree_leaves
from redispatch.dispatch.tensor import Tensor
from redispatch.modes.fake_tensor import FakeTensor

from ..experimental.proxy_tensor import make_fx
from ..graph import Graph
from ..node import Node, map_arg
from ..subgraph_rewriter import ReplacedPatterns, checked, parameters_of, replace_places
from .post_grad import GraphPass, register_pass

__all__ = ["Match", "register_replacement"]


@dataclass
class Match:
    """A place where a graph computes a pattern. kwargs: the node, or number, that each parameter stands for."""

    nodes: list[Node]
    kwargs: dict[str, Any]

    @property
    def values(self) -> dict[str, Any]:
        """Returns for each parameter a tensor without data, with shape, strides and dtype, or a number."""
        return {name: one.meta.get("val") if isinstance(one, Node) else one for name, one in self.kwargs.items()}


def register_replacement(
    search_fn: Callable[..., Any],
    replace_fn: Callable[..., Any],
    example_inputs: Sequence[Any],
    extra_check: Callable[[Match], Any] = lambda match: True,
    *,
    after: str | None = None,
    before: str | None = "eliminate_dead_code",
    name: str | None = None,
    strict: bool = False,
) -> GraphPass:
    """Registers, and returns, the pass that has a graph compute `replace_fn` where it computes `search_fn`.

    example_inputs: what both are traced with; sizes that operators are given as numbers must be the same in a graph.
    extra_check: whether a place is to be replaced. after, before: as of `register_pass`. name: of the pass, in errors;
    that of `replace_fn` by default.
    The pass has a list `refused`: why it left places alone in the last graph, where a value on the way is read
    elsewhere, with the user's line where tracing noted it. strict: has it raise this as a RuntimeError.
    Errors: ValueError where `search_fn` returns an argument, or the functions take or return other numbers of values.
    """
    examples = [one.clone() if isinstance(one, Tensor) else one for one in example_inputs]  # each an input of its own
    search, replace = (make_fx(f, tracing_mode="fake")(*examples) for f in (search_fn, replace_fn))
    # The nodes of parameters, `a_1`, are in the order of the arguments
    names = [str(node.target).rpartition("_")[0] for node in parameters_of(search.graph)]
    wanted, instead = checked(search, replace)

    def says_yes(found: ReplacedPatterns, graph: Graph, pattern: Graph) -> bool:
        stands = {own: value for own, value in found.nodes_map.items() if own.op != "placeholder"}
        kwargs = {name: found.nodes_map.get(one) for name, one in zip(names, parameters_of(pattern), strict=True)}
        return bool(extra_check(Match(list(stands.values()), kwargs)))

    refused: list[str] = []

    def replaced(graph: Graph) -> None:
        refused.clear()
        for one in replace_places(graph.owning_module, wanted, instead, replace, [says_yes], refused):
            for node in one.replacements:
                valued(node)
        if strict and refused:
            raise RuntimeError(f"the pass {replaced.__name__!r} leaves a place as it is: {refused[0]}")

    replaced.__name__ = name or replace_fn.__name__
    replaced.refused = refused  # type: ignore[attr-defined]  # of this function
    return register_pass(after=after, before=before)(replaced)


def valued(node: Node) -> None:
    """Notes what a new node's value is, for the passes behind, where its arguments have theirs."""
    args, kwargs = map_arg((node.args, node.kwargs), lambda one: one.meta.get("val"))
    fakes = [one.meta.get("val") for one in node.all_input_nodes]
    mode = next((leaf.fake_mode for leaf in tree_leaves(fakes) if isinstance(leaf, FakeTensor)), None)
    if mode is not None and None not in fakes and node.op == "call_function":
        with mode:
            node.meta["val"] = node.target(*args, **kwargs)  # type: ignore[operator]  # a function
