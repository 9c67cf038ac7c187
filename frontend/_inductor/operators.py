"""How operators join the steps of a graph: as values of a nest, as products, or as what is known without memory.

Each rule takes an operator's node into the steps (`Lowering`), or returns False, where it is not one for loops: of a
dtype, a layout or a size that another way is made for. Then it is called. Read next: decompositions.py, for operators
that are formulas of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from redispatch.dispatch import OpOverload, ops
from redispatch.dispatch.core.boxing import bind
from redispatch.dispatch.tensor import Tensor, dtypes
from redispatch.dispatch.tensor.geometry import contiguous_strides
from redispatch.kernels import DTYPES
from redispatch.kernels.declare.declare import DECLARED
from redispatch.kernels.declare.pointwise import Pointwise
from redispatch.kernels.engine.convert import as_is
from redispatch.kernels.graphs import (
    Accumulate,
    Apply,
    Array,
    Number,
    Pick,
    Position,
    Product,
    Reduce,
    Value,
    is_matrix,
)
from redispatch.kernels.ops.creation import empty_strided
from redispatch.kernels.ops.reductions import Reduced

from ..fx.node import Node, map_arg
from .lowering import Lowering, Memory, Multiplying, Nesting, Rule, word


def stack_of(node: Node) -> tuple[list[Any], list[Node | None]]:
    """The arguments of a node's operator, tensors without memory in the place of nodes; and these nodes, at the places
    of tensors."""
    nodes: dict[int, Node] = {}

    def metadata(one: Node) -> Tensor:
        val = one.meta["val"]
        found = empty_strided(val.shape, val.stride(), dtype=val.dtype, device="meta")
        nodes[id(found)] = one
        return found

    args, kwargs = map_arg((node.args, node.kwargs), metadata)
    stack = bind(cast(OpOverload, node.target).schema, args, kwargs)
    return stack, [nodes.get(id(one)) for one in stack]


def pointwise(lowering: Lowering, node: Node) -> bool:
    """Has a pointwise operator join a nest. False where that is not how it is computed."""
    declared: Any = DECLARED[cast(OpOverload, node.target)]
    if declared.functional is not node.target:
        return False
    stack, nodes = stack_of(node)
    variant = declared.variant(stack)
    plan = declared.plan(variant, stack)
    loops, dtype, shape = variant.loops, plan.meta.dtype.name, tuple(node.meta["val"].shape)
    if dtype != word(node.meta["val"]):
        return False

    def value(nest: Nesting) -> Value | None:
        given, takes = [], []
        for place, position in enumerate(variant.positions):
            own = nodes[position]
            kept = word(own.meta["val"]) if own else None
            takes.append(loops.computing_dtype(place, kept, plan.compute))
            if own:
                read = lowering.read(nest, own, shape)
                if read is None:
                    return None
                given.append(read)
            else:
                number = plan.fit(stack[position]) if plan.fit else stack[position]
                given.append(Number(takes[-1], np.dtype(DTYPES[takes[-1]].compute).type(number)))
        body = loops.body_for(plan.compute)
        return Apply(dtype, body, tuple(given), tuple(takes), plan.compute, loops.cost)

    return lowering.join(node, node.all_input_nodes, shape, 0, value)


def reduced(lowering: Lowering, node: Node) -> bool:
    """Has a reduction join a nest: of the innermost dimensions as a value of its rows, of others as accumulators."""
    declared: Any = DECLARED[cast(OpOverload, node.target)]
    stack, (source, *_) = stack_of(node)
    if declared.functional is not node.target or source is None:
        return False
    x, dims, kind, _ = declared.decided(stack)
    shape, columns = tuple(x.shape), len(dims)
    if columns == 0 or 0 in shape:
        return False
    exact = kind.name == "int64" and DTYPES[word(x)].kind in ("int", "uint", "bool")

    def element(nest: Nesting) -> Value | None:
        read = lowering.read(nest, source, shape)
        if read is not None and not exact and kind.name != read.dtype:
            return Apply(kind.name, as_is, (read,), (kind.name,))
        return read

    if sorted(dims) != list(range(len(shape) - columns, len(shape))):
        return accumulated(lowering, node, dims, word(x) if exact else kind.name, element)
    if columns == len(shape) and math.prod(shape) > lowering.longest:  # which threads share among them
        return False

    def value(nest: Nesting) -> Value | None:
        read = element(nest)
        return None if read is None else Reduce(word(node.meta["val"]), declared.reduction, read)

    return lowering.join(node, [source], shape, columns, value)


def accumulated(
    lowering: Lowering, node: Node, dims: Sequence[int], dtype: str, element: Callable[[Nesting], Value | None]
) -> bool:
    """Has a nest accumulate elements of a dtype along its outer dimensions, and one behind it finish the results."""
    source, val = cast(Node, node.args[0]), node.meta["val"]
    x, reduction = source.meta["val"], cast(Any, DECLARED[cast(Any, node.target)]).reduction
    shape, total = tuple(x.shape), math.prod(x.shape[d] for d in dims)
    apart = [step for d, step in enumerate(x.stride()) if d not in dims and shape[d] > 1]
    if DTYPES[dtype].kind not in ("float", "int") or not apart:
        return False
    if min([x.stride()[d] for d in dims if shape[d] > 1], default=0) < max(apart):
        return False  # the innermost loop would wait for each sum
    recipe, kept = reduction.recipe(dtype), [1 if d in dims else size for d, size in enumerate(shape)]
    start = recipe.start.dtype.name
    accumulator = recipe.block if recipe.block and total <= lowering.precise else start
    numbers = empty_strided(
        val.shape, contiguous_strides(tuple(val.shape)), dtype=getattr(dtypes, accumulator), device="meta"
    )
    memory: Any = Memory(lowering.unused(f"{node.name}_sums"), numbers)
    steps = tuple(0 if d in dims else math.prod(kept[d + 1 :]) for d in range(len(shape)))

    def value(nest: Nesting) -> Value | None:
        fits = nest.shape == shape and lowering.shares(nest, 0, steps)
        of = element(nest) if fits else None
        return None if of is None else Accumulate(accumulator, reduction, of, math.prod(kept))

    def finished(nest: Nesting) -> Value | None:
        read = lowering.read(nest, memory, tuple(val.shape))
        count = Number("int64", np.int64(total))
        return read and Apply(word(val), recipe.finish, (read, count), (start, "int64"), dtype)

    lowering.join(memory, [source], shape, 0, value)
    nest = cast(Nesting, lowering.step_of[memory])
    nest.accumulates[memory] = steps
    nest.outputs.append(memory)
    return lowering.join(node, [memory], tuple(val.shape), 0, finished)


def copied(lowering: Lowering, node: Node) -> bool:
    """Has a copy, perhaps of another dtype, join a nest."""
    source, val = cast(Node, node.args[0]), node.meta["val"]
    shape = tuple(val.shape)

    def value(nest: Nesting) -> Value | None:
        read = lowering.read(nest, source, shape)
        return None if read is None else Apply(word(val), as_is, (read,), (word(val),))

    return lowering.join(node, [source], shape, 0, value)


def multiplied(lowering: Lowering, node: Node) -> bool:
    """Makes a product of matrices a step. False for one that BLAS does not do, or takes long for."""
    if lowering.device != "cpu":
        return False
    a, b = (cast(Node, one) for one in node.args)
    x, y, val = a.meta["val"], b.meta["val"], node.meta["val"]
    (n, k), m, count = x.shape[-2:], y.shape[-1], math.prod(x.shape[:-2])
    sizes = (n, k, m)
    if not Product.known(word(val)) or 0 in (*sizes, count) or count * math.prod(sizes) > MOST_MULTIPLICATIONS:
        return False
    if not all(is_matrix(one.shape[-2:], one.stride()[-2:]) for one in (x, y)) or not val.is_contiguous():
        return False
    arrays = []
    for one in (a, b):
        base, own = lowering.base.get(one, one), one.meta["val"]
        lowering.tensor(base)
        offset = own.storage_offset() - base.meta["val"].storage_offset()
        arrays.append(Array(base.name, word(own), (0, *own.stride())[-3:], offset))
    step = Multiplying(node, arrays[0], arrays[1], sizes, count)
    lowering.place(step, lowering.waits([a, b]))
    lowering.step_of[node] = step
    return True


def filled(lowering: Lowering, node: Node) -> bool:
    """Has a node's value, one number, be known without memory."""
    stack, _ = stack_of(node)
    val, schema = node.meta["val"], cast(OpOverload, node.target).schema
    of = {argument.name: value for argument, value in zip(schema.arguments, stack, strict=True)}
    number = of.get("fill_value", of.get("s", 1 if "ones" in schema.name else 0))
    number = np.dtype(DTYPES[word(val)].compute).type(number)
    lowering.constants[node] = lambda steps, offset=0: Number(word(val), number)
    return True


def counted(lowering: Lowering, node: Node) -> bool:
    """Has the numbers 0, 1, 2, ... be known without memory."""
    stack, _ = stack_of(node)
    val, schema = node.meta["val"], cast(OpOverload, node.target).schema
    of = {argument.name: value for argument, value in zip(schema.arguments, stack, strict=True)}
    if of.get("start", 0) != 0 or of.get("step", 1) != 1 or word(val) != "int64":
        return False
    lowering.constants[node] = lambda steps, offset=0: Position("int64", Array("", "int64", steps, offset), 0)
    return True


def picked(lowering: Lowering, node: Node) -> bool:
    """Has elements that an index tells be read in a nest."""
    stack, nodes = stack_of(node)
    if node.target is ops.aten.gather.default:
        source, index, dim = nodes[0], nodes[2], stack[1]
    else:
        source, index, dim = nodes[0], nodes[1], 0  # embedding: rows
    assert source is not None and index is not None
    x, val, at = source.meta["val"], node.meta["val"], index.meta["val"]
    if word(at) != "int64" or not x.dim() or 0 in x.shape:
        return False
    shape, dim = tuple(val.shape), dim % x.dim()
    rows = node.target is not ops.aten.gather.default
    base = lowering.base.get(source, source)

    def value(nest: Nesting) -> Value | None:
        if base in nest.values:
            return None
        steps = [0 if d == dim else step for d, step in enumerate(x.stride())]
        walked = nest.walk(shape, [0] * at.dim() + steps[1:] if rows else steps, shape)
        which = lowering.read_as(nest, index, (*at.shape, *[1] * rows), (*at.stride(), *[0] * rows), shape)
        if walked is None or which is None:
            return None
        offset = x.storage_offset() - base.meta["val"].storage_offset()
        array = lowering.array(nest, base, word(x), walked, offset)
        lowering.picks.append(node)
        return Pick(word(x), array, 0, which, x.stride()[dim], x.shape[dim], len(lowering.picks))

    return lowering.join(node, [source, index], shape, 0, value)


MOST_MULTIPLICATIONS = 1 << 22  # of a product that is done without a chance for Ctrl-C: about 100 us

LOWERED: dict[OpOverload, Rule] = {
    ops.aten.mm.default: multiplied,
    ops.aten.bmm.default: multiplied,
    **dict.fromkeys(
        (
            ops.aten.full.default,
            ops.aten.full_like.default,
            ops.aten.ones.default,
            ops.aten.ones_like.default,
            ops.aten.zeros.default,
            ops.aten.zeros_like.default,
            ops.aten.scalar_tensor.default,
        ),
        filled,
    ),
    ops.aten.arange.default: counted,
    ops.aten.arange.start: counted,
    ops.aten.gather.default: picked,
    ops.aten.embedding.default: picked,
    ops.aten.clone.default: copied,
    ops.aten._to_copy.default: copied,
}


def rule_of(target: OpOverload) -> Rule | None:
    """The rule of an operator, by its name or by how it was declared."""
    declared = DECLARED.get(target)
    if isinstance(declared, Pointwise) and declared.values_function is None:
        return LOWERED.get(target, pointwise)
    return LOWERED.get(target, reduced if isinstance(declared, Reduced) else None)
