"""Graph trees: functions that are recorded as graphs when they are called, all in one piece of memory.

    tree = rd.cuda.GraphTree()
    encode, decode = tree.wrap(encode), tree.wrap(decode)
    for batch in batches:
        tree.new_step()
        decode(encode(batch))

The first call of a function runs it, the second one records it, later ones replay. Where each graph had memory of its
own, a program of many graphs would need much more than it does eagerly; here, what no tensor holds any longer may be
written over by the graph that is recorded next. That makes a recording depend on the calls before it:

- its inputs may be what an earlier graph left; these addresses stand in it;
- it may write wherever nothing was held when it was recorded.

So a recording may be replayed if its inputs in the tree's memory are where they were, and if nothing is held now that
was not held then. Otherwise the program has taken another path, and the function is recorded again, as a branch. From
a result that is held to the next call, paths grow; `new_step` begins at the root. Inputs from elsewhere are copied to
where the recording has them, in memory that is free again after the call. What the function finds outside of its
arguments (weights, say) is read where it lay while it was recorded.

Note [What replays leave has an owner]
When a graph is recorded, its results are tensors, whose blocks are taken from the pool. When it is replayed, no Python
runs, and nobody takes anything. So the replay claims the blocks of its results itself (`CachingAllocator.claim`), and
what is free in the pool is at all times what a recording would have found: the allocator's state is that of the path.

Source: the idea is that of PyTorch's CUDA graph trees. Read graphs.py before.
"""

from __future__ import annotations

import itertools
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from redispatch.dispatch import STATE
from redispatch.dispatch import pytree as pytree
from redispatch.dispatch.tensor import Tensor, UntypedStorage, empty_from, output_spec, tensor_over
from redispatch.kernels import is_dense

from .copies import copy_on_device
from .devices import start
from .graphs import CUDAGraph, graph, graph_pool_handle, memory_of, side_stream
from .memory import Block, PrivatePools

RECORDINGS = 128  # of one function for arguments that look alike; then it runs as it is


class Overwritten:
    """Stands for the memory of a result whose step is over."""

    nbytes = device = 0

    @property
    def address(self) -> int:
        raise RuntimeError(
            "this tensor was made by a CUDA graph in a step that is over, and what comes next is written over it: "
            "clone() what is to outlive `new_step()`"
        )


@dataclass(slots=True)
class Result:
    """A result as a recording left it: where, and how it looks; or a tensor that lies elsewhere."""

    address: int
    nbytes: int
    like: Any  # (shape, stride, offset, dtype, device)
    outside: Tensor | None = None


@dataclass(eq=False)
class Node:
    """A recording, and those that were made behind it."""

    name: str
    graph: CUDAGraph
    inside: dict[int, int]  # number of an argument in the tree's memory -> its address
    statics: dict[int, Result]  # number of another tensor argument -> where it is copied
    held: frozenset[int]  # what was held when it was recorded
    results: list[Result]
    spec: Any
    children: list[Node] = field(default_factory=list)
    replays: int = 0

    def fits(self, leaves: Sequence[Any], held: frozenset[int]) -> bool:
        """Whether it may be replayed now."""
        return held <= self.held and all(place(leaves[i]) == address for i, address in self.inside.items())


class GraphTree:
    """Functions that share one piece of memory for their graphs; see the beginning of this file."""

    def __init__(self) -> None:
        self.handle = graph_pool_handle()
        self.root = Node("root", CUDAGraph(), {}, {}, frozenset(), [], None)
        self.here = self.root  # the recording that was made or replayed last
        self.known: dict[Any, list[Node]] = {}  # what was recorded, by function and metadata of its arguments
        self.storages: weakref.WeakSet[UntypedStorage] = weakref.WeakSet()  # of results
        self._numbers = itertools.count()

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function as a part of the tree. Arguments are tensors of one device, numbers, and containers of them.

        Errors, when it is called: RuntimeError where gradients are to be recorded (`make_graphed_callables` is for
        that), where it writes to an argument that is copied, and for what may not happen while a graph is recorded.
        """
        number = next(self._numbers)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return self._call(number, function, args, kwargs)

        return call

    def new_step(self) -> None:
        """Begins at the root. What earlier calls gave is lost: to use it is an error."""
        for storage in list(self.storages):
            storage.block = Overwritten()
        self.storages.clear()
        self.here = self.root

    def paths(self) -> list[str]:
        """Lists the paths of recordings, a line each: "encode > decode"."""

        def below(node: Node, before: tuple[str, ...]) -> list[str]:
            found = []
            for child in node.children:
                line = (*before, child.name)
                found += [" > ".join(line), *below(child, line)]
            return found

        return below(self.root, ())

    # A call ---------------------------------------------------------------------------------------------------------

    def _call(self, number: int, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if STATE.get().grad_enabled and any(isinstance(x, Tensor) and x.requires_grad for x in leaves):
            raise RuntimeError(
                f"{name_of(function)}: a graph tree records no gradients. Call it under no_grad(), or make both passes "
                "graphs by make_graphed_callables"
            )
        key = number, spec, tuple(metadata(x) for x in leaves)
        recorded = self.known.get(key)
        if recorded is None:
            self.known[key] = []
            return function(*args, **kwargs)
        pools, held = self._memory()
        if not held:
            self.here = self.root
        for node in (*(one for one in self.here.children if one in recorded), *recorded):
            if node.fits(leaves, held):
                return self._replay(node, pools, leaves)
        if len(recorded) >= RECORDINGS:
            warnings.warn(
                f"{name_of(function)} was recorded {RECORDINGS} times for arguments that look alike, because other "
                "tensors were held at each call; it runs as it is from here on",
                stacklevel=3,
            )
            return function(*args, **kwargs)
        node = self._record(function, pools, held, leaves, spec)
        recorded.append(node)
        self.here.children.append(node)
        return self._replay(node, memory_of(self.handle), leaves)

    def _memory(self) -> tuple[PrivatePools | None, frozenset[int]]:
        """The tree's memory, once there is some, and what of it is held."""
        allocator = start().allocator
        pools = allocator.private.get(self.handle)
        return pools, frozenset() if pools is None else allocator.held(pools)

    def _record(
        self,
        function: Callable[..., Any],
        pools: PrivatePools | None,
        held: frozenset[int],
        leaves: list[Any],
        spec: Any,
    ) -> Node:
        tensors = {i: x for i, x in enumerate(leaves) if isinstance(x, Tensor) and x.is_cuda}
        inside = {i: place(x) for i, x in tensors.items() if self._owns(x, pools)}
        made, placed = CUDAGraph(), list(leaves)
        allocator, stream = start().allocator, side_stream()
        reserved = allocator.join(self.handle)  # until the graph holds on to it
        try:
            allocator.redirect(stream.device_index, stream.number, reserved)
            with stream:
                for i, x in tensors.items():
                    if i not in inside:
                        placed[i] = fresh_as(x)
            allocator.restore(reserved)
            versions = {i: placed[i]._version for i in tensors if i not in inside}
            statics = {i: result_of(placed[i]) for i in versions}
            args, kwargs = pytree.tree_unflatten(placed, spec)
            with graph(made, pool=self.handle):
                result = function(*args, **kwargs)
        finally:
            allocator.restore(reserved)
            allocator.leave(self.handle)
        if any(placed[i]._version != version for i, version in versions.items()):
            made.reset()
            raise RuntimeError(
                f"{name_of(function)} writes to an argument that is copied for its graph, and the caller would not see "
                "it: return the new value"
            )
        outputs, out_spec = pytree.tree_flatten(result)
        pools = memory_of(self.handle)
        results = [self._told(x, pools) for x in outputs]
        return Node(name_of(function), made, inside, statics, held, results, out_spec)

    def _told(self, x: Any, pools: PrivatePools) -> Result:
        if isinstance(x, Tensor) and x.requires_grad:
            raise RuntimeError("a graph tree records no gradients: call its functions under no_grad()")
        if isinstance(x, Tensor) and self._owns(x, pools):
            return result_of(x)
        return Result(0, 0, None, x)

    def _owns(self, x: Tensor, pools: PrivatePools | None) -> bool:
        block = x._storage.block
        return pools is not None and isinstance(block, Block) and block.pool.owner is pools

    def _replay(self, node: Node, pools: PrivatePools | None, leaves: Sequence[Any]) -> Any:
        assert pools is not None
        allocator = start().allocator
        storages: dict[int, UntypedStorage] = {}  # by address
        for i in node.inside:
            storages[leaves[i]._storage.block.address] = leaves[i]._storage

        def at(one: Result) -> Tensor:
            storage = storages.get(one.address)
            if storage is None:
                storage = storages[one.address] = UntypedStorage.without_data(one.nbytes, one.like[-1])
                storage.block = allocator.claim(pools, one.address, one.nbytes)
            shape, stride, offset, dtype, on = one.like
            return tensor_over(storage, None, shape, stride, offset, dtype, on)

        outputs = [one.outside if one.like is None else at(one) for one in node.results]
        for i, one in node.statics.items():
            copy_on_device(at(one), leaves[i])
        node.graph.replay()
        node.replays += 1
        for x, one in zip(outputs, node.results, strict=True):
            if one.like is not None and isinstance(x, Tensor):
                self.storages.add(x._storage)
        self.here = node
        return pytree.tree_unflatten(outputs, node.spec)


def metadata(x: Any) -> Any:
    """Returns the metadata of an argument, or the argument, for which a recording is made."""
    return (x._shape, x._stride, x._dtype, x._device) if isinstance(x, Tensor) else (type(x), x)


def place(x: Tensor) -> int:
    """The address of a tensor's first element."""
    return x.data_ptr()


def fresh_as(x: Tensor) -> Tensor:
    """Memory for a copy of a tensor, in the order of its strides where it is dense."""
    strides = x._stride if is_dense(x._shape, x._stride) else None
    return empty_from(output_spec(x._shape, x._dtype, x._device, strides))


def result_of(x: Tensor) -> Result:
    block = x._storage.block
    return Result(block.address, x._storage.nbytes(), (x._shape, x._stride, x._offset, x._dtype, x._device))


def name_of(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)
