"""replace_pattern: wherever a graph computes what one function says, it computes what another one says instead.

    replace_pattern(module, lambda a, b: rd.relu(a + b), lambda a, b: rd.sigmoid(a * b))

Both functions are traced. Their parameters stand for anything; all other steps of the pattern must be there, with the
same arguments, those of sums and products in either order, and none but the last may be used elsewhere.
Read next: graph.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from redispatch import nn
from redispatch.dispatch import ops

from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, written_at

Found = dict[Any, Any]  # a step of the pattern -> that of the graph; a parameter -> any value


@dataclass
class ReplacedPatterns:
    """One place that was replaced: the last step there, which step stood for which of the pattern, and the new ones.

    placeholder_nodes: what stood for the pattern's parameters; returning_nodes: for what it returns.
    """

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node] = field(default_factory=list)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Any] = field(default_factory=list)

    @property
    def anchors(self) -> list[Node]:
        return [self.anchor]


Match = ReplacedPatterns


Filter = Callable[[Match, Graph, Graph], bool]  # of a match, the graph and the pattern's


@dataclass(frozen=True)
class Rules:
    """Conditions for a step to be as one of the pattern. ignore_literals: any number or string stands for any other."""

    same: Callable[[Node, Node], bool]
    ignore_literals: bool = False


def same_step(wanted: Node, given: Node) -> bool:
    return wanted.op == given.op and wanted.target == given.target


STRICT = Rules(same_step)


def replace_pattern(
    gm: GraphModule, pattern: Callable[..., Any] | GraphModule, replacement: Callable[..., Any] | GraphModule
) -> list[Match]:
    """Replaces each place where `gm` computes `pattern`, in place; places that share steps are replaced once.

    Errors: ValueError for a pattern that returns a parameter, and for a replacement with other parameters.
    """
    wanted, instead = checked(pattern, replacement)
    return replace_places(gm, wanted, instead, replacement, [])


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Callable[..., Any] | GraphModule,
    replacement: Callable[..., Any] | GraphModule | None = None,
    match_filters: Sequence[Filter] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[Match, Graph, Graph], Graph] | None = None,
) -> list[Match]:
    """`replace_pattern` for the places of which all `match_filters(match, graph, pattern graph)` say yes.

    ignore_literals: whether numbers and strings in the pattern stand for any. replacement_callback: is called as a
    filter is, and gives the graph that takes this place, instead of `replacement`.
    """
    wanted, instead = checked(pattern, pattern if replacement is None else replacement)
    if replacement is None and replacement_callback is None:
        raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
    rules = Rules(same_step, ignore_literals)
    return replace_places(
        gm, wanted, instead, replacement, match_filters or (), rules=rules, callback=replacement_callback
    )


def replace_places(
    gm: GraphModule,
    wanted: Graph,
    instead: Graph,
    replacement: Any,
    filters: Sequence[Filter],
    refused: list[str] | None = None,
    rules: Rules = STRICT,
    callback: Callable[[Match, Graph, Graph], Graph] | None = None,
) -> list[Match]:
    """Replaces each place of which all filters say yes, and says where that was. refused: as of `places`. callback:
    gives the graph for a place, in the stead of `instead`."""
    results = returned(wanted)
    done: list[Match] = []
    now: dict[Node, Any] = {}  # a step that was replaced -> what gives its value since
    for found in list(places(gm.graph, wanted, refused, rules)):
        if any(found[one]._erased for one in found if one.op != "placeholder"):
            continue  # it shares a step with a place before it
        found = {one: now.get(value, value) if isinstance(value, Node) else value for one, value in found.items()}
        inputs = [found[one] for one in parameters_of(wanted) if one in found]
        match = Match(found[results[0]], dict(found), [], inputs, [found[one] for one in results])
        if not all(says_yes(match, gm.graph, wanted) for says_yes in filters):
            continue
        done.append(match)
        before = set(gm.graph.nodes)
        now |= put(gm.graph, found, wanted, instead if callback is None else callback(match, gm.graph, wanted))
        match.replacements = [node for node in gm.graph.nodes if node not in before]
        if isinstance(replacement, nn.Module):
            take_over(gm, replacement, instead)
    gm.recompile()
    return done


def checked(pattern: Any, replacement: Any) -> tuple[Graph, Graph]:
    """The graphs of a pattern and its replacement. ValueError where they do not belong together."""
    wanted, instead = graph_of(pattern), graph_of(replacement)
    results = returned(wanted)
    if not results or any(not isinstance(one, Node) or one.op == "placeholder" for one in results):
        raise ValueError("replace_pattern: the pattern must return what it computes, not a parameter or a number")
    parameters, theirs = parameters_of(wanted), parameters_of(instead)
    if len(parameters) != len(theirs):
        raise ValueError(
            f"replace_pattern: the pattern has {len(parameters)} parameters and the replacement {len(theirs)}; each "
            "parameter of one must stand for the one in the same place of the other"
        )
    if len(results) != len(returned(instead)):
        raise ValueError(
            f"replace_pattern: the pattern returns {len(results)} values and the replacement {len(returned(instead))}; "
            "each value that a place hands on needs one that stands for it"
        )
    return wanted, instead


def graph_of(function: Any) -> Graph:
    return function.graph if isinstance(function, GraphModule) else symbolic_trace(function).graph


def parameters_of(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op == "placeholder"]


def returned(graph: Graph) -> list[Any]:
    """Returns the results of a graph as a list."""
    value = graph.output_node().args[0]
    return list(value) if isinstance(value, tuple | list) else [value]


# --- finding ----------------------------------------------------------------------------------------------------------


def places(graph: Graph, pattern: Graph, refused: list[str] | None = None, rules: Rules = STRICT) -> Iterator[Found]:
    """Returns where the graph computes the pattern, in the graph's order. refused: gets the reasons against others."""
    results = returned(pattern)
    for node in graph.nodes:
        why = ""
        for found in extended({}, results, [node], graph, rules):
            why = read_elsewhere(found, results)
            if not why:
                yield found
                break
        if why and refused is not None:
            refused.append(why)


def extended(
    found: Found, results: list[Any], candidates: list[Node], graph: Graph, rules: Rules = STRICT
) -> Iterator[Found]:
    """The ways in which each result of the pattern is computed, the first of them by one of `candidates`."""
    if not results:
        yield found
        return
    for node in candidates:
        for attempt in fits(results[0], node, found, rules):
            yield from extended(attempt, results[1:], list(graph.nodes), graph, rules)


def fits(wanted: Any, given: Any, found: Found, rules: Rules = STRICT) -> Iterator[Found]:
    """The ways in which a value is computed as one of the pattern is: `found`, and what stands for what beside it."""
    if isinstance(wanted, Node):
        if wanted in found:
            yield from [found] if found[wanted] is given else []
        elif wanted.op == "placeholder":
            yield {**found, wanted: given}
        elif isinstance(given, Node) and given not in found.values() and rules.same(wanted, given):
            for args in orders(given):
                yield from fits([wanted.args, wanted.kwargs], [args, given.kwargs], {**found, wanted: given}, rules)
    elif isinstance(wanted, tuple | list):
        if isinstance(given, tuple | list) and len(wanted) == len(given):
            yield from all_fit(list(zip(wanted, given, strict=True)), found, rules)
    elif isinstance(wanted, dict):
        if isinstance(given, dict) and wanted.keys() == given.keys():
            yield from all_fit([(value, given[name]) for name, value in wanted.items()], found, rules)
    elif type(wanted) is type(given) and wanted == given or rules.ignore_literals and not isinstance(given, Node):
        yield found


def all_fit(pairs: list[tuple[Any, Any]], found: Found, rules: Rules) -> Iterator[Found]:
    """The ways in which all pairs of values fit."""
    if not pairs:
        yield found
        return
    for attempt in fits(*pairs[0], found, rules):
        yield from all_fit(pairs[1:], attempt, rules)


COMMUTATIVE = {ops.aten.add.Tensor, ops.aten.mul.Tensor, ops.aten.maximum.default, ops.aten.minimum.default}


def orders(node: Node) -> list[tuple[Any, ...]]:
    """The arguments of a step in all orders in which they give the same: with `alpha`, a sum has but one."""
    args: tuple[Any, ...] = tuple(node.args)
    swapped = (args[1], args[0]) if node.target in COMMUTATIVE and not node.kwargs and len(args) == 2 else args
    return [args] if swapped == args else [args, swapped]


def read_elsewhere(found: Found, results: list[Any]) -> str:
    """Returns which value that is computed on the way is read elsewhere, so that it must stay; "" if none is."""
    inside = {node for wanted, node in found.items() if wanted.op != "placeholder"}
    ends = {found[one] for one in results}
    for node in inside - ends:
        for user in node.users:
            if user not in inside:
                line = written_at(node if user.op == "output" else user)
                return f"{node.format_node()} is read elsewhere: {user.format_node()}{line}"
    return ""


# --- replacing --------------------------------------------------------------------------------------------------------


def put(graph: Graph, found: Found, pattern: Graph, instead: Graph) -> dict[Node, Any]:
    """Computes `instead` in the place of the steps in `found`; what gives the value of each of their results since."""
    order = {node: number for number, node in enumerate(graph.nodes)}
    inside = sorted((found[one] for one in found if one.op != "placeholder"), key=order.__getitem__)
    ends = [found[one] for one in returned(pattern)]
    pairs = zip(parameters_of(instead), parameters_of(pattern), strict=True)
    values = {own: found[other] for own, other in pairs if other in found}
    users = [user for end in ends for user in end.users if user not in inside]
    with graph.inserting_before(min([inside[-1], *users], key=order.__getitem__)):
        result = graph.graph_copy(instead, values)
    made = list(result) if isinstance(result, tuple | list) else [result]
    for end, value in zip(ends, made, strict=True):
        end.replace_all_uses_with(value)
    for node in reversed(inside):
        graph.erase_node(node)
    return dict(zip(ends, made, strict=True))


def take_over(gm: GraphModule, source: Any, graph: Graph) -> None:
    """Gives `gm` the modules, parameters and buffers of a replacement that its steps read."""
    for node in graph.nodes:
        if node.op in ("call_module", "get_attr"):
            path, _, name = str(node.target).rpartition(".")
            owner = source.get_submodule(path) if path else source
            if not path and not hasattr(gm, name):
                setattr(gm, name, getattr(owner, name))
            elif path and node.op == "call_module":
                gm.add_submodule(str(node.target), getattr(owner, name))


__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]
