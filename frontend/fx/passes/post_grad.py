"""Passes over graphs of operators without writes, such as those of `aot_function`, and who runs them in order.

    @register_pass(after="remove_noop_ops")
    def my_pass(graph): ...                     # changes the graph of a GraphModule in place

    run_passes(module)                          # all that are registered; each graph is checked
    run_passes(module, watch=Stages().add)      # each stage is kept: frontend/_functorch/stages.py

No pass changes a bit of a result. So `x - 0` and `x * 1` are no operations, but `x + 0` is one: it makes 0.0 of -0.0.
Nodes need the `meta["val"]` that tracing gives them, or that `FakeTensorProp` does. Registered passes see graphs
without writes; when they are done, `reinplace.py` brings writes in, as autograd, which is behind them, needs none.

Source: PyTorch's torch._inductor.fx_passes.post_grad. Read next: reinplace.py, infra.py.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Iterable
from heapq import heappop, heappush
from typing import Any

import redispatch
from redispatch._higher_order_ops.wrap import auto_functionalized
from redispatch.dispatch import OpOverload, ops
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.cpu.blas import FEW

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from . import config
from .reinplace import decompose_auto_functionalized, reinplace_inplaceable_ops

__all__ = [
    "constant_fold",
    "decompose_auto_functionalized",
    "eliminate_common_subexpressions",
    "eliminate_dead_code",
    "fuse_addmm",
    "register_pass",
    "reinplace_inplaceable_ops",
    "remove_noop_ops",
    "reorder_for_locality",
    "run_passes",
    "stable_topological_sort",
]

__path__: list[str] = []  # PyTorch's `fx_passes` is a package, of which this file is the module `post_grad`: _moved.py

GraphPass = Callable[[Graph], Any]
PASSES: list[GraphPass] = []  # in the order in which they run


def register_pass(after: str | None = None, before: str | None = None) -> Callable[[GraphPass], GraphPass]:
    """Registers a function of a graph as a pass; behind or ahead of the named one, else as the last.

    Errors: ValueError for a name that no pass has.
    """

    names = [other.__name__ for other in PASSES]
    for name in (after, before):
        if name is not None and name not in names:
            raise ValueError(f"register_pass: there is no pass {name!r}; expected one of {', '.join(names)}")
    place = names.index(after) + 1 if after else names.index(before) if before else len(names)

    def register(one: GraphPass) -> GraphPass:
        PASSES.insert(place, one)
        return one

    return register


def run_passes(
    module: GraphModule,
    passes: Iterable[GraphPass] | None = None,
    *,
    watch: Callable[[str, GraphModule], Any] | None = None,
) -> GraphModule:
    """Runs passes on the graph of a module, which it changes and returns.

    passes: by default those of config.py, all that are registered, and at last those that bring writes in. watch: is
    called with the name of a pass and the module, at first with "before", and behind each pass.
    Errors: RuntimeError that names the pass which failed, or behind which the graph is no program, with the node and
    the user's line where tracing noted it.
    """
    if watch is not None:
        watch("before", module)
    for one in in_order() if passes is None else passes:
        name = getattr(one, "__name__", type(one).__name__)
        try:
            one(module.graph)
            module.graph.lint()
        except Exception as problem:
            raise RuntimeError(f"the pass {name!r} broke the graph: {problem}") from problem
        if watch is not None:
            watch(name, module)
    module.recompile()
    return module


def in_order() -> list[GraphPass]:
    """Returns all passes, as PyTorch orders them: what writes comes last."""
    custom = config.post_grad_custom_pre_pass, config.post_grad_custom_post_pass
    every = custom[0], *PASSES, custom[1], decompose_auto_functionalized, reinplace_inplaceable_ops
    return [one for one in every if one is not None]


# What computes nothing, or the same again -----------------------------------------------------------------------------

aten = ops.aten
COPIES = {aten.clone, aten._to_copy, aten.lift_fresh_copy, aten.repeat, aten.constant_pad_nd, aten.contiguous}
NEUTRAL = {aten.sub: 0, aten.mul: 1, aten.div: 1, aten.pow: 1}  # on the right side


@register_pass()
def remove_noop_ops(graph: Graph) -> None:
    """Removes nodes whose value is their argument: views that change nothing, neutral numbers, copies.

    What a graph returns stays in memory apart from its inputs and what else it returns, and copies stay where there are
    writes.
    """
    writes = any(isinstance(node.target, OpOverload) and node.target.schema.is_mutable for node in graph.nodes)
    for node in graph.nodes:
        if not isinstance(node.target, OpOverload) or not node.args or not isinstance(node.args[0], Node):
            continue
        source = node.args[0]
        if is_noop(node, source) and (is_view(node) or not writes and may_share(graph, node, source)):
            node.replace_all_uses_with(source)
            graph.erase_node(node)


def is_view(node: Node) -> bool:
    return isinstance(node.target, OpOverload) and node.target.schema.is_view


def base(node: Node) -> Node:
    """Returns the node in whose memory a value lies, or may, where it is one of several."""
    while is_view(node) or node.target is operator.getitem:
        node = node.all_input_nodes[0]
    return node


def returned(graph: Graph) -> set[Node]:
    """Returns the nodes whose memory a caller gets, and may write."""
    return set(map(base, graph.output_node().all_input_nodes))


def may_share(graph: Graph, node: Node, other: Node) -> bool:
    """Returns whether two values may lie in one memory: none that both a caller and somebody else has."""
    seen, own = returned(graph), base(other)
    return base(node) not in seen or (own.op == "call_function" and own not in seen)


def is_noop(node: Node, source: Node) -> bool:
    """Returns whether the value of a node is that of its first argument, bit for bit, and lies in memory alike."""
    value, given, packet = node.meta.get("val"), source.meta.get("val"), node.target.overloadpacket  # type: ignore[union-attr]  # an operator
    if not isinstance(value, Tensor) or not isinstance(given, Tensor) or place_of(value) != place_of(given):
        return False
    if packet in NEUTRAL:  # a complex infinity times 1 is not itself
        return (
            not value.is_complex()
            and len(node.args) == 2
            and not node.kwargs
            and is_number(node.args[1], NEUTRAL[packet])
        )
    return node.target.schema.is_view or packet in COPIES  # type: ignore[union-attr]  # an operator


def is_number(value: Any, wanted: int) -> bool:
    return isinstance(value, int | float) and value == wanted


def place_of(value: Tensor) -> tuple[Any, ...]:
    return value.shape, value.dtype, value.device, value.stride(), value.storage_offset(), value.is_conj()


@register_pass()
def eliminate_common_subexpressions(graph: Graph) -> None:
    """Has nodes that compute the same of the same be one. What draws random numbers or writes is left alone."""
    merge_equals(graph)


def merge_equals(graph: Graph, banned: Collection[Any] = ()) -> None:
    """Has nodes that compute the same of the same be one. banned: operators to leave alone, as those with effects."""
    if any(isinstance(node.target, OpOverload) and node.target.schema.is_mutable for node in graph.nodes):
        return
    first: dict[Any, Node] = {}
    for node in graph.nodes:
        if node.op not in ("call_function", "get_attr") or node.is_impure():
            continue
        if node.target in banned or getattr(node.target, "overloadpacket", None) in banned:
            continue
        other = first.setdefault((node.op, node.target, written(node.args), written(node.kwargs)), node)
        if other is not node and (is_view(node) or may_share(graph, node, other)):
            node.replace_all_uses_with(other)
            graph.erase_node(node)


def written(value: Any) -> Any:
    """Returns arguments as something that can be compared: 1, 1.0 and True are different, as is 0.0 from -0.0."""
    if isinstance(value, tuple | list):
        return (type(value).__name__, *map(written, value))
    if isinstance(value, dict):
        return tuple((key, written(one)) for key, one in sorted(value.items()))
    return value if isinstance(value, Node) else (type(value), repr(value))


@register_pass()
def constant_fold(graph: Graph) -> None:
    """Computes at once what depends on constants of the module alone: tensors that are no parameters.

    What a graph returns is computed at each call, as a caller may write it.
    """
    module, results = graph.owning_module, returned(graph)
    constants: dict[Node, Tensor] = {}
    for node in [] if module is None else graph.nodes:
        if node.op == "get_attr":
            value = operator.attrgetter(str(node.target))(module)
            if isinstance(value, Tensor) and not value.requires_grad:
                constants[node] = value
            continue
        inputs = node.all_input_nodes
        if not isinstance(node.target, OpOverload) or not inputs or node.is_impure() or set(inputs) - set(constants):
            continue
        if base(node) in results:
            continue
        value = node.target(*map_arg(node.args, constants.__getitem__), **map_arg(node.kwargs, constants.__getitem__))
        if not isinstance(value, Tensor):
            continue
        number = 0
        while hasattr(module, f"_folded_{number}"):
            number += 1
        setattr(module, f"_folded_{number}", value.clone() if node.target.schema.is_view else value)
        with graph.inserting_before(node):
            folded = graph.get_attr(f"_folded_{number}")
        folded.meta = dict(node.meta)
        constants[folded] = value
        node.replace_all_uses_with(folded)
        graph.erase_node(node)


EXACT = {redispatch.float32, redispatch.float64}  # float16 and bfloat16 round a product before the sum, addmm after it


@register_pass()
def fuse_addmm(graph: Graph) -> None:
    """Has a product and the sum with it be one operator: `mm(a, b) + c` is `addmm(c, a, b)`.

    Also where `c` is a product itself: then what follows may write over it. Small products stay, since their own loop
    rounds otherwise than that of `addmm`.
    """
    for node in graph.find_nodes(op="call_function", target=aten.add.Tensor):
        if len(node.args) != 2 or node.kwargs:
            continue
        for product, other in (node.args, node.args[::-1]):
            if is_product(product, node) and fits_into(other, product):
                with graph.inserting_before(node):
                    fused = graph.call_function(aten.addmm.default, (other, *product.args))
                fused.meta = dict(node.meta)
                node.replace_all_uses_with(fused)
                graph.erase_node(node)
                graph.erase_node(product)
                break


def is_product(product: Any, user: Node) -> bool:
    """Returns whether a node is a product of matrices that only `user` reads, and large enough for BLAS."""
    if not isinstance(product, Node) or product.target is not aten.mm.default or list(product.users) != [user]:
        return False
    values = [one.meta.get("val") if isinstance(one, Node) else None for one in (product, *product.args)]
    if not all(isinstance(one, Tensor) and one.device.type == "cpu" and one.dtype in EXACT for one in values):
        return False
    sizes = (*values[0].shape, values[1].shape[1])  # type: ignore[union-attr]  # tensors, as was seen
    return all(type(size) is int for size in sizes) and math.prod(sizes) > FEW


def fits_into(other: Any, product: Node) -> bool:
    """Returns whether a value is a tensor that expands to the shape of a product, and has its dtype and device."""
    value, result = other.meta.get("val") if isinstance(other, Node) else None, product.meta["val"]
    if not isinstance(value, Tensor) or other is product or value.dim() > 2:
        return False
    pairs = zip(value.shape[::-1], result.shape[::-1], strict=False)
    alike = (value.dtype, value.device) == (result.dtype, result.device)
    return alike and all(type(size) is int and size in (1, wanted) for size, wanted in pairs)


@register_pass()
def eliminate_dead_code(graph: Graph) -> None:
    """Removes nodes that nobody reads."""
    graph.eliminate_dead_code()


# The order of nodes ---------------------------------------------------------------------------------------------------


def stable_topological_sort(graph: Graph) -> None:
    """Puts each node behind those that it reads, and otherwise leaves the order as it is.

    Errors: RuntimeError where nodes read each other in a circle.
    """
    nodes = list(graph.nodes)
    place = {node: i for i, node in enumerate(nodes)}
    missing = {node: len(node.all_input_nodes) for node in nodes}
    ready = [place[node] for node in nodes if not missing[node]]
    ordered: list[Node] = []
    while ready:
        node = nodes[heappop(ready)]
        ordered.append(node)
        for user in node.users:
            missing[user] -= 1
            if not missing[user]:
                heappush(ready, place[user])
    if len(ordered) < len(nodes):
        circle = next(node for node in nodes if missing[node])
        raise RuntimeError(f"the graph has a circle: {circle.format_node()} depends on itself")
    for node in ordered:
        graph._root.prepend(node)


@register_pass()
def reorder_for_locality(graph: Graph) -> None:
    """Moves each node to just ahead of its first reader, so that its value is still in the cache then."""
    steps = [node for node in graph.nodes if node.op == "call_function"]
    if any(node.is_impure() or node.target is auto_functionalized for node in steps):
        return  # numbers are drawn, and tensors written, in the order of the program, or else more is copied
    seen: set[Node] = set()
    for node in reversed(graph.nodes):
        seen.add(node)
        for one in node.all_input_nodes:
            if one.op == "call_function" and seen.issuperset(one.users):
                node.prepend(one)
