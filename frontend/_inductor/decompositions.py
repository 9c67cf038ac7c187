"""Operators that a compiled graph computes by a formula of others, which its loops can then be made of.

    graph = expanded(graph)     # a new one: `addmm` is `mm` and `add`, `_log_softmax` two reductions and more

What a formula does not cover (other dtypes, weights, ...) stays a call of the operator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import zip_longest
from typing import Any, cast

from redispatch import _decomp
from redispatch.dispatch import OpOverload, ops
from redispatch.dispatch.core.boxing import bind
from redispatch.dispatch.pytree import tree_leaves, tree_map
from redispatch.dispatch.tensor import Tensor, contiguous_format
from redispatch.modes.fake_tensor import FakeTensor

from ..fx.experimental.proxy_tensor import make_fx
from ..fx.graph import Graph
from ..fx.node import Node, map_arg

aten = ops.aten
HALVES = ("float16", "bfloat16")
TABLE: dict[OpOverload, Callable[..., Any]] = {}


def formula(*operators: OpOverload) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that registers the formula of operators; it may return NotImplemented for some arguments."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        TABLE.update(dict.fromkeys(operators, function))
        return function

    return register


def wide(x: Any) -> Any:
    """A tensor as its operators compute: 16-bit floats in float32."""
    return x.float() if x.dtype.name in HALVES else x


@formula(aten.addmm.default)
def addmm(bias: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    if alpha != 1 or beta != 1 or a.dtype.name not in ("float32", "float64"):
        return NotImplemented
    return a.mm(b) + bias


@formula(aten._softmax.default)
def softmax(x: Any, dim: int, half_to_float: bool) -> Any:
    if half_to_float or not x.numel():
        return NotImplemented
    e = wide(x)
    e = (e - e.amax(dim, keepdim=True)).exp()
    return (e / e.sum(dim, keepdim=True)).to(x.dtype)


@formula(aten._log_softmax.default)
def log_softmax(x: Any, dim: int, half_to_float: bool) -> Any:
    if half_to_float or not x.numel():
        return NotImplemented
    shifted = wide(x)
    shifted = shifted - shifted.amax(dim, keepdim=True)
    return (shifted - shifted.exp().sum(dim, keepdim=True).log()).to(x.dtype)


@formula(aten.logsumexp.default)
def logsumexp(x: Any, dims: Sequence[int], keepdim: bool) -> Any:
    if not x.numel() or not x.is_floating_point() or x.dtype.name in HALVES:
        return NotImplemented
    largest = x.amax(dims, keepdim=True)  # as in softmax: a graph with both has one
    found = (x - largest).exp().sum(dims, keepdim=True).log() + largest
    found = largest.where(largest.abs() == math.inf, found)
    return found if keepdim else found.squeeze(list(dims))


@formula(aten._softmax_backward_data.default)
def softmax_backward(grad: Any, output: Any, dim: int, dtype: Any) -> Any:
    if grad.dtype != dtype:
        return NotImplemented
    product = wide(grad) * wide(output)
    return (product - wide(output) * product.sum(dim, keepdim=True)).to(grad.dtype)


@formula(aten._log_softmax_backward_data.default)
def log_softmax_backward(grad: Any, output: Any, dim: int, dtype: Any) -> Any:
    if grad.dtype != dtype:
        return NotImplemented
    own = wide(grad)
    return (own - wide(output).exp() * own.sum(dim, keepdim=True)).to(grad.dtype)


MEAN, SUM = 1, 2


@formula(aten.nll_loss_forward.default)
def nll_loss(x: Any, target: Any, weight: Any, reduction: int, ignored: int) -> Any:
    if weight is not None or x.dim() != 2 or reduction == 0 or not x.numel() or x.dtype.name in HALVES:
        return NotImplemented
    counts = target != ignored
    found = x.gather(1, target.masked_fill(~counts, 0).unsqueeze(1)).squeeze(1)
    lost = (-found).masked_fill(~counts, 0).sum()
    total = counts.sum().to(x.dtype)
    return (lost / total if reduction == MEAN else lost), total


@formula(aten.nll_loss_backward.default)
def nll_loss_backward(
    grad: Any, x: Any, target: Any, weight: Any, reduction: int, ignored: int, total_weight: Any
) -> Any:
    if weight is not None or x.dim() != 2 or reduction == 0 or x.dtype.name in HALVES:
        return NotImplemented
    each = grad / total_weight if reduction == MEAN else grad
    target = target.unsqueeze(1)
    hit = (aten.arange.default(x.shape[1], device=x.device) == target) & (target != ignored)
    return (-each).where(hit, aten.scalar_tensor.default(0, dtype=x.dtype, device=x.device))


@formula(aten.native_layer_norm.default)
def layer_norm(x: Any, shape: Sequence[int], weight: Any, bias: Any, eps: float) -> Any:
    dims = list(range(x.dim() - len(shape), x.dim()))
    if not x.numel() or x.dtype.name in HALVES:
        return NotImplemented
    mean = x.mean(dims, keepdim=True)
    apart = x - mean
    rstd = ((apart * apart).mean(dims, keepdim=True) + eps).rsqrt()
    result = apart * rstd
    if weight is not None:
        result = result * weight
    if bias is not None:
        result = result + bias
    return result, mean, rstd


@formula(aten.native_layer_norm_backward.default)
def layer_norm_backward(
    grad: Any, x: Any, shape: Sequence[int], mean: Any, rstd: Any, weight: Any, bias: Any, wanted: Sequence[bool]
) -> Any:
    rows = x.dim() - len(shape)
    inner, outer = list(range(rows, x.dim())), list(range(rows))
    if not x.numel() or x.dtype.name in HALVES or not rows:
        return NotImplemented
    normal, count = (x - mean) * rstd, math.prod(shape)
    scaled = grad if weight is None else grad * weight
    first, second = scaled.sum(inner, keepdim=True), (scaled * normal).sum(inner, keepdim=True)
    results = (
        lambda: (scaled - (first + normal * second) / count) * rstd,
        lambda: (grad * normal).sum(outer),
        lambda: grad.sum(outer),
    )
    return tuple(result() if want else None for result, want in zip(results, wanted, strict=True))


def like(number: Any) -> Callable[..., Any]:
    """The formula of an operator that fills a tensor like another one, of which nothing is read."""

    def filled(x: Any, *given: Any) -> Any:
        value, dtype = (given[0], given[1]) if number is None else (number, given[0])
        if not x.is_contiguous():
            return NotImplemented
        return aten.full.default(list(x.shape), value, dtype=dtype or x.dtype, device=x.device)

    return filled


@formula(aten.masked_fill.Scalar)
def masked_fill(x: Any, mask: Any, value: Any) -> Any:
    if x.dim() < mask.dim():
        return NotImplemented
    return aten.where.self(mask, aten.scalar_tensor.default(value, dtype=x.dtype, device=x.device), x)


@formula(aten.select_backward.default)
def select_backward(grad: Any, sizes: Sequence[int], dim: int, index: int) -> Any:
    dim %= len(sizes)
    numbers = aten.arange.default(sizes[dim], device=grad.device).view([-1, *[1] * (len(sizes) - dim - 1)])
    here = numbers == index % sizes[dim]
    nothing = aten.scalar_tensor.default(0, dtype=grad.dtype, device=grad.device)
    return aten.where.self(here, grad.unsqueeze(dim), nothing)


TABLE |= {aten.ones_like.default: like(1), aten.zeros_like.default: like(0), aten.full_like.default: like(None)}


def called_by(op: OpOverload, function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a formula of all arguments in order, from one that takes some by name."""
    by_name = [argument.name for argument in op.schema.arguments if argument.kwarg_only]
    count = len(op.schema.arguments) - len(by_name)
    return lambda *args: function(*args[:count], **dict(zip(by_name, args[count:], strict=True)))


PYTORCHS = (  # whose formulas the library has anyway
    aten.mse_loss.default, aten.mse_loss_backward.default, aten.smooth_l1_loss.default,
    aten.smooth_l1_loss_backward.default, aten.huber_loss.default, aten.huber_loss_backward.default,
    aten.binary_cross_entropy.default, aten.binary_cross_entropy_backward.default,
    aten.baddbmm.default,
)  # fmt: skip


for name in ("add", "sub", "mul", "div", "copysign"):
    op = getattr(aten, name)
    TABLE[op.Scalar] = called_by(op.Tensor, op.Tensor)  # which takes numbers, too


def formula_of(target: Any) -> Callable[..., Any] | None:
    """The formula of an operator, if there is one."""
    if not TABLE.keys() & PYTORCHS:
        TABLE.update((op, called_by(op, function)) for op, function in _decomp.get_decompositions(PYTORCHS).items())
    return TABLE.get(target)


def expanded(graph: Graph) -> Graph:
    """Returns a graph that computes the same, in which operators with a formula are computed by it.

    The nodes know their values' metadata (`meta["val"]`), those of the new graph, too.
    """
    made = Graph()
    stands: dict[Node, Any] = {}
    for node in graph.nodes:
        function = formula_of(node.target) if node.op == "call_function" else None
        inside = None if function is None else traced(function, node)
        if inside is not None:
            names = iter(node.all_input_nodes)
            places = {one: stands[next(names)] for one in inside.nodes if one.op == "placeholder"}
            before = len(made.nodes)
            stands[node] = made.graph_copy(inside, places)
            for new in list(made.nodes)[before:]:
                new.meta.setdefault("stack_trace", node.meta.get("stack_trace"))
        elif node.op == "output":
            made.output(map_arg(node.args[0], lambda one: stands[one]))
        elif is_item(node) and not isinstance(stands[node.args[0]], Node):
            stands[node] = stands[node.args[0]][node.args[1]]
        else:
            stands[node] = made.node_copy(node, lambda one: stands[one])
    made.eliminate_dead_code()
    return made


def laid(found: Any, wanted: Any) -> Any:
    """Returns a formula's result, laid as that of its operator; NotImplemented where it lies otherwise yet."""
    if not isinstance(found, Tensor) or found.stride() == wanted.stride():
        return found
    return found.clone(memory_format=contiguous_format) if wanted.is_contiguous() else NotImplemented


def is_item(node: Node) -> bool:
    """Whether a node is a result of several."""
    return node.op == "call_function" and getattr(node.target, "__name__", "") == "getitem"


def traced(function: Callable[..., Any], node: Node) -> Graph | None:
    """The graph of a node's formula, of one input for each of its nodes; None where there is none for its arguments."""
    nodes, target = node.all_input_nodes, cast(OpOverload, node.target)
    vals = [one.meta.get("val") for one in nodes]
    if not all(isinstance(val, Tensor) and val.device.type in ("cpu", "cuda") for val in vals):
        return None
    refused = False

    def call(*given: Any) -> Any:
        nonlocal refused
        of = dict(zip(nodes, given, strict=True))
        args, kwargs = map_arg((node.args, node.kwargs), of.__getitem__)
        found = function(*bind(target.schema, args, kwargs))
        if found is not NotImplemented:
            found = tree_map(laid, found, node.meta["val"])
        refused = any(one is NotImplemented for one in tree_leaves(found))
        return given[0] if refused else found

    mode = next((val.fake_mode for val in vals if isinstance(val, FakeTensor)), None)
    with mode or nullcontext():
        module = make_fx(call)(*vals)
    if refused or not alike(vals_of(module.graph.output_node().args[0]), node.meta["val"]):
        return None
    return expanded(module.graph)  # formulas may be in terms of others


def vals_of(results: Any) -> Any:
    """The metadata of what a graph returns, in the place of nodes."""
    return map_arg(results, lambda one: one.meta["val"])


def alike(made: Any, wanted: Any) -> bool:
    """Whether the results of a formula have the shapes, strides and dtypes that the operator's have."""
    pairs = list(zip_longest(tree_leaves(made), tree_leaves(wanted)))
    return all(isinstance(one, Tensor) and isinstance(other, Tensor) for one, other in pairs) and all(
        (a.shape, a.stride(), a.dtype) == (b.shape, b.stride(), b.dtype) for a, b in pairs
    )
