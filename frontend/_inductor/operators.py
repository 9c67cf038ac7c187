"""How operators join the steps of a graph: as values of a nest, as products, or as what is known without memory.

Each rule takes an operator's node into the steps (`Lowering`), or returns False, where it is not one for loops: of a
dtype, a layout or a size that another way is made for. Then it is called. Read next: decompositions.py, for operators
that are formulas of these.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from operator import getitem
from typing import Any, cast

import numpy as np

from redispatch.dispatch import OpOverload, ops
from redispatch.dispatch.core.boxing import bind
from redispatch.dispatch.tensor import Size, Tensor, UntypedStorage, dtypes, tensor_over
from redispatch.dispatch.tensor.geometry import contiguous_strides
from redispatch.dispatch.tensor.operand import on_target
from redispatch.kernels import DTYPES
from redispatch.kernels.declare.declare import DECLARED
from redispatch.kernels.declare.planned import without_plan
from redispatch.kernels.declare.pointwise import Pointwise
from redispatch.kernels.engine.convert import as_is
from redispatch.kernels.engine.pool import SMALL
from redispatch.kernels.graphs import (
    ON_PAPER,
    Accumulate,
    Apply,
    Array,
    Number,
    Pick,
    Position,
    Product,
    Recorder,
    Reduce,
    Refused,
    Value,
    is_matrix,
)
from redispatch.kernels.ops.creation import empty_strided
from redispatch.kernels.ops.reductions import Reduced

from ..fx.node import Node, map_arg
from .lowering import (
    AT_ONCE,
    Lowering,
    Memory,
    Multiplying,
    Nesting,
    Recording,
    Rule,
    extent,
    in_order,
    is_memory,
    word,
)


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

    body, owns = loops.body_for(plan.compute), [nodes[position] for position in variant.positions]
    takes = [
        loops.computing_dtype(place, word(own.meta["val"]) if own else None, plan.compute)
        for place, own in enumerate(owns)
    ]
    if not lowering.knows(body, plan.compute, takes):
        return False

    def value(nest: Nesting) -> Value | None:
        given: list[Value] = []
        for position, own, kind in zip(variant.positions, owns, takes, strict=True):
            if own:
                read = lowering.read(nest, own, shape)
                if read is None:
                    return None
                given.append(read)
            else:
                number = plan.fit(stack[position]) if plan.fit else stack[position]
                given.append(Number(kind, fitted(number, kind)))
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
    if not lowering.knows(recipe.finish, dtype, (start, "int64")):
        return False
    numbers = empty_strided(
        val.shape, contiguous_strides(tuple(val.shape)), dtype=getattr(dtypes, accumulator), device="meta"
    )
    memory: Any = Memory(lowering.unused(f"{node.name}_sums"), numbers)
    steps = tuple(0 if d in dims else math.prod(kept[d + 1 :]) for d in range(len(shape)))

    def value(nest: Nesting) -> Value | None:
        fits = nest.shape == shape and lowering.shares(nest, steps)
        of = element(nest) if fits else None
        return None if of is None else Accumulate(accumulator, reduction, of, math.prod(kept))

    def finished(nest: Nesting) -> Value | None:
        read = lowering.read(nest, memory, tuple(val.shape))
        count = Number("int64", np.int64(total))
        return read and Apply(word(val), recipe.finish, (read, count), (start, "int64"), dtype)

    lowering.join(memory, [source], shape, 0, value)
    lowering.settle(memory)
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
    many = count * math.prod(sizes) > MOST_MULTIPLICATIONS and not lowering.alone
    if not Product.known(word(val)) or 0 in (*sizes, count) or many:
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
    number = fitted(number, word(val))
    lowering.constants[node] = lambda steps, offset=0: Number(word(val), number)
    return True


def fitted(number: Any, dtype: str) -> Any:
    """A Python number as a kernel takes it: an integer wraps."""
    compute = np.dtype(DTYPES[dtype].compute)
    if compute.kind in "iu":
        return np.uint64(int(number) % 2**64).astype(compute)
    return compute.type(number)


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
        lowering.picks.append((node, dim, x.shape[dim]))
        return Pick(word(x), array, 0, which, x.stride()[dim], x.shape[dim], len(lowering.picks))

    return lowering.join(node, [source, index], shape, 0, value) and lowering.settle(node)


def native(lowering: Lowering, node: Node) -> bool:
    """Makes an operator's own kernel a step, by the calls that it makes. False, with the reason noted, where it makes
    others than of loops and products."""
    try:
        step = recording(lowering, node)
    except Exception as problem:
        lowering.through_python[node] = f"{type(problem).__name__}: {problem}"
        return False
    for one in step.reads:
        lowering.tensor(one)
    lowering.place(step, lowering.waits(step.reads))
    lowering.step_of |= dict.fromkeys([node, *step.results.values()], step)
    return True


def recording(lowering: Lowering, node: Node) -> Recording:
    """The step of an operator's own kernel. Raises Refused where there is none, or whatever the kernel raises."""
    target = cast(OpOverload, node.target)
    if lowering.device != "cpu":
        raise Refused("Python launches it")
    kernel = next((found[-1].function for key, found in target.registrations.items() if key.name == "CPU"), None)
    users = [one for one in node.users if one.op != "output"]
    val = node.meta.get("val")
    several = not isinstance(val, Tensor)
    if kernel is None or in_order(node) or isinstance(DECLARED.get(target), Pointwise):
        raise Refused("there is no kernel that could be one")
    if several and (len(users) != len(node.users) or any(one.target is not getitem for one in users)):
        raise Refused("results that are taken together")
    recorder = Recorder(node.name, partial(lowering.picked, node))
    bases: dict[Node, Any] = {}

    def tensor(one: Node) -> Tensor:
        base, own = lowering.base.get(one, one), one.meta["val"]
        below = base.meta["val"]
        if not is_memory(own, "cpu") or not is_memory(below, "cpu"):
            raise Refused("a tensor that is not plain memory")
        if base not in bases:
            array = recorder.block(base.name, extent(below), DTYPES[word(below)].storage)
            bases[base] = UntypedStorage.of_array(array), array
        offset = own.storage_offset() - below.storage_offset()
        if offset < 0 or offset + extent(own) > extent(below):
            raise Refused("a view that shows more than there is")
        storage, array = bases[base]
        return tensor_over(storage, array, Size(own.shape), tuple(own.stride()), offset, own._dtype, ON_PAPER)

    args, kwargs = map_arg((node.args, node.kwargs), tensor)
    stack = bind(target.schema, args, kwargs)
    with warnings.catch_warnings(), on_target(recorder):
        warnings.simplefilter("error")
        found = without_plan(kernel)(*stack)
    results = {int(one.args[1]): one for one in users} if several else {0: node}
    parts = found if several else (found,)
    arrays = {one.name: array_of(parts[k], one.meta["val"]) for k, one in results.items()}
    step = recorder.step(arrays)
    if step.work > (AT_ONCE if lowering.alone else SMALL):
        raise Refused("it takes long, and threads share it, or Ctrl-C is answered meanwhile")
    return Recording(node, step, results, list(bases))


def array_of(made: Any, val: Tensor) -> Any:
    """The array of a result. Raises Refused where it does not look as the graph says."""
    looks = (tuple(made._shape), tuple(made._stride), made._offset, made._dtype)
    if looks != (tuple(val.shape), tuple(val.stride()), 0, val._dtype):
        raise Refused("a result that does not lie as it is known to")
    return made._array


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
