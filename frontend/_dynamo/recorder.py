"""The recorder: calls of the library's functions become nodes of a graph, up to a break, where the next graph begins.

A *break* is a call that cannot be part of a graph: it gives a value that depends on what tensors hold (`bool(x)`,
`x.item()`), it has an effect that others see, or sizes of its result depend on values. It is a step of its own
(segments.py), done as it stands. Read next: segments.py, feeding.py.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any, NamedTuple

from redispatch.autograd import is_grad_enabled
from redispatch.dispatch import STATE, Tag, TorchFunctionMode, within
from redispatch.dispatch.autograd.grad_mode import _set_grad_enabled as set_grad
from redispatch.dispatch.pytree import tree_flatten, tree_map
from redispatch.dispatch.tensor import Size, Tensor
from redispatch.fx.graph import Graph
from redispatch.fx.node import Node
from redispatch.overrides import get_overridable_functions

from .effects import Undo
from .guards import Facts, Guards
from .instances import packed
from .known import FACTS, PRIMITIVES, TENSORS
from .paths import Path
from .reads import Log
from .segments import At, Call, Reach, Returned, Segment, Standing, Step, containers, is_told, key_of

METADATA = set(
    "dim ndim ndimension dtype device layout element_size itemsize is_floating_point is_complex is_signed get_device "
    "requires_grad is_leaf is_sparse is_cuda is_cpu is_quantized is_meta is_mkldnn is_nested is_conj is_neg is_xpu "
    "is_mps is_inference shape size stride numel nelement nbytes storage_offset is_contiguous __len__ "
    "is_same_size".split()
)
DIMENSIONS = {"dim", "ndim", "ndimension", "get_device", "element_size", "itemsize"}  # integers that are no sizes
REFUSED = set(
    "grad grad_fn data backward register_hook register_post_accumulate_grad_hook retain_grad requires_grad_ set_ "
    "_backward_hooks volatile output_nr _version names retains_grad share_memory_ resize_ __deepcopy__ __reduce_ex__ "
    "detach_ _base untyped_storage storage data_ptr apply_ map_ map2_ grad_dtype".split()
)
MASKS = {"torch.bool", "torch.uint8"}
FROM_VALUES = {"tensor", "as_tensor", "asarray", "scalar_tensor"}  # copy numbers out of tensors that they are given
INSTEAD = {
    "__bool__": "write `torch.where(condition, a, b)`, or `torch.cond` for a branch",
    "item": "keep the tensor of one element: operators take it in the place of a number",
    "print": "print what the function returns",
}


@cache
def recorded_functions() -> set[int]:
    """Returns the ids of the library's functions that ask function modes."""
    return {id(one) for group in get_overridable_functions().values() for one in group}


def is_leaf(function: Any) -> bool:
    """Whether a call of a function is recorded as one call."""
    if getattr(function.__globals__.get("entry_point"), "function", None) is function:
        return True
    return id(function) in recorded_functions() or hasattr(function, "__overridable__")


class Watch:
    """Notes whether an operator runs whose sizes or numbers depend on elements. It is a tracer: it changes nothing."""

    varies = False

    def hop(self, op: Any, entry: Any, keyset: int, stack: list[Any]) -> Any:
        if Tag.dynamic_output_shape in op.tags or Tag.data_dependent_output in op.tags:
            by_index = op.schema.name == "aten::index"
            self.varies |= not by_index or any(x is not None and str(x.dtype) in MASKS for x in stack[1])
        return entry.kernel.boxed(op, keyset, stack)

    def asked(self, who: str, method: str, code: Any, function: Any, arguments: Any, answer: Any) -> Any:
        return answer()

    def called(self, op: Any, entry: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return entry.kernel.function(*args, **kwargs)


class Source(NamedTuple):
    """Origin of an input of a graph: a path from outside, or its number among what is carried along."""

    place: Path | int
    facts: Facts | None


class Recorder(TorchFunctionMode):
    """Records the calls of the library's functions in graphs, a segment each.

    carried: the tensors that the segments before have taken from outside or given, in order. segments: those that are
    done. asleep: whether calls are let through, as after an escape; busy: while the recorder itself calls.
    """

    def __init__(self, log: Log, backend: Callable[..., Any], feeder: Any = None) -> None:
        super().__init__()
        self.log, self.backend, self.feeder = log, backend, feeder
        self.busy = self.asleep = False
        self.carried: list[Tensor] = []
        self.number: dict[int, int] = {}
        self.segments: list[Segment] = []
        log.ended, log.effect, log.hold = self.stand, self.effect, self.hold
        self.begin()

    def begin(self) -> None:
        """Begins a segment."""
        self.graph, self.exact = Graph(), False
        self.calls: list[Call] = []
        self.nodes: dict[int, tuple[weakref.ref[Any], Node]] = {}
        self.sources: list[Source] = []
        self.new: list[Tensor] = []
        self.grad, self.unrecorded = is_grad_enabled(), False
        self.before = [Facts.of(one) for one in self.carried]

    kind: type = Tensor  # of results of calls
    result: type[Returned] = Returned
    dynamic: Any = None  # which sizes are symbols in graphs
    sizes: Any = None  # guards of sizes that are symbols

    # Calls ------------------------------------------------------------------------------------------------------------

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.busy or self.asleep:
            return func(*args, **kwargs)
        if self.feeder is not None:
            return self.feeder.answer(self, func, args, kwargs)
        if self.log.reason:
            return func(*args, **kwargs)
        name = name_of(func)
        if name in REFUSED:
            self.log.escape(f"a tensor's {name} is read or written")
        inside = None if self.log.reason else self.written(args, kwargs)
        if self.log.reason:
            return func(*args, **kwargs)
        asks = any(map(is_node, tree_flatten(inside)[0]))
        watch = Watch()
        try:
            with within(STATE.get().replace(tracer=watch)) if asks else nullcontext():
                result = func(*args, **kwargs)
        except Exception:
            self.log.escape(f"{name} raises an error")
            raise
        self.record(func, name, inside, result, watch.varies or (asks and name in FROM_VALUES))
        return result

    def record(self, func: Any, name: str, inside: Any, result: Any, varies: bool) -> None:
        """Makes a call a node, or a break; one that asks for metadata has them guarded."""
        leaves, _ = tree_flatten(result)
        tensors = [one for one in leaves if isinstance(one, Tensor)]
        if not tensors and result is not None or name == "__get__":
            if name in METADATA:  # what a result of operators is may depend on sizes, too
                read = tree_flatten((func, inside))[0]
                sized = isinstance(result, int | tuple) and not isinstance(result, bool) and name not in DIMENSIONS
                self.exact |= (
                    sized
                    or name in ("is_contiguous", "is_same_size")
                    or not all(node.op == "placeholder" for node in read if isinstance(node, Node))
                )
                self.calls.append(Call(func, result, False))
            elif is_told(result):
                self.stop(func, inside, result, f"{name} gives what depends on a tensor's values", INSTEAD.get(name))
            else:
                self.log.escape(f"{name} gives what depends on a tensor's values")
        elif any(type(one) is not self.kind and self.find(one) is None for one in tensors):
            self.log.escape(f"{name} gives a subclass of Tensor")
        elif any(one is not None and not isinstance(one, Tensor) for one in leaves):
            self.log.escape(f"{name} gives more than tensors")
        elif result is None and func is not set_grad and not any(map(is_node, tree_flatten(inside)[0])):
            self.log.escape(f"{name} gives nothing, and may have an effect")
        elif varies:
            self.stop(func, inside, result, f"sizes or numbers in {name} depend on a tensor's values", None)
        else:
            self.call(func, name, inside, result)

    def call(self, func: Any, name: str, inside: Any, result: Any) -> None:
        """Makes a call a node."""
        args, kwargs = inside
        if not isinstance(result, Tensor | list | tuple | None):
            self.log.escape(f"{name} gives a {type(result).__name__}")
            return
        if isinstance(result, list | tuple) and any(isinstance(one, list | tuple) for one in result):
            self.log.escape(f"{name} gives tensors in a tree")
            return
        node = self.graph.call_function(func, args, kwargs)
        if isinstance(result, Tensor):
            # `contiguous` gives its input, where it lies so: for others it may not
            known = self.find(result)
            self.exact |= known is not None and not name.endswith("_")
            if known is None:
                self.note(result, node)
        elif result is not None:
            self.exact |= not hasattr(result, "_fields")  # how many there are may depend on sizes
            for i, one in enumerate(result):
                if isinstance(one, Tensor):
                    self.note(one, self.graph.call_function(item, (node, i)))
        self.calls.append(Call(func, tree_map(self.find_or_same, result), func is set_grad))

    def note(self, tensor: Tensor, node: Node) -> None:
        """Keeps the node of a tensor for as long as that lives."""
        self.unrecorded |= node.op != "placeholder" and tensor.requires_grad and not is_grad_enabled()
        self.nodes[id(tensor)] = weakref.ref(tensor), node

    def find(self, tensor: Any) -> Node | None:
        """The node of a tensor, None where it has none; one that is carried gets one."""
        found = self.nodes.get(id(tensor))
        if found is not None and found[0]() is tensor:
            return found[1]
        number = self.number.get(id(tensor))
        return None if number is None else self.placeholder(tensor, Source(number, None))

    def find_or_same(self, value: Any) -> Any:
        return self.find(value) if isinstance(value, Tensor) else value

    def written(self, args: Any, kwargs: Any) -> Any:
        """The arguments with nodes in the place of tensors."""
        return tree_map(self.node, (tuple(args), dict(kwargs)))

    def reached(self, args: Any, kwargs: Any) -> Any:
        """The arguments of an effect: nodes for tensors, ways for the objects from outside."""
        owner = [args[0]] if args and id(args[0]) in self.log.path_of and not isinstance(args[0], Tensor) else []
        ways = [Reach(self.log.path_of[id(one)], self.log.constants) for one in owner]
        given, named = self.written(args[len(owner) :], kwargs)
        return (*ways, *given), named

    def node(self, value: Any) -> Any:
        """The node of a tensor; other values stay."""
        if not isinstance(value, Tensor):
            if type(value) not in PRIMITIVES | FACTS:
                self.log.escape(f"a {type(value).__name__} is given to an operator")
            return value
        found = self.find(value)
        if found is not None:
            return found
        path = self.log.path_of.get(id(value))
        if path is None or type(value) not in TENSORS:
            self.log.escape("a tensor comes from code that is not shown" if path is None else "a subclass of Tensor")
            return value
        self.new.append(value)
        return self.placeholder(value, Source(path, Facts.of(value)))

    def hold(self, tensor: Tensor) -> None:
        """Makes a tensor from outside an input, though no call takes it yet."""
        if self.feeder is None and not self.asleep and not self.log.reason:
            with self.calling():
                self.node(tensor)

    def placeholder(self, tensor: Tensor, source: Source) -> Node:
        node = self.graph.placeholder(f"input_{len(self.sources)}")
        self.sources.append(source)
        self.note(tensor, node)
        return node

    # Ends of segments -------------------------------------------------------------------------------------------------

    def stop(self, func: Any, inside: Any, result: Any, reason: str, instead: str | None, effect: bool = False) -> None:
        """Ends the segment by a break: a call that is done as it stands, and its result."""
        where = self.log.break_at(reason, instead, not isinstance(result, Undo))
        if len(self.segments) >= self.log.most:
            self.log.escape("there are too many breaks")
            return
        self.close(lambda place: Step(func, tree_map(place, inside), reason + where, effect))
        end = self.segments[-1].end
        assert isinstance(end, Step)
        self.carry(end.tensors(result))
        end.children[key_of(result)] = []
        if effect:  # what was read before may be another now
            self.log.forget()
        self.begin()

    def effect(self, func: Any, args: Any, kwargs: Any, reason: str) -> Any:
        """Does what others see, as a break. An escape, where what it is given cannot be found by a later call."""
        if self.feeder is not None and not self.asleep:
            with self.calling():
                return self.feeder.answer(self, func, args, kwargs)
        inside = None if self.asleep or self.log.reason else self.reached(args, kwargs)
        with self.calling():
            result = func(*args, **kwargs)
            if inside is not None and not self.log.reason:
                instead = INSTEAD.get(getattr(func, "__name__", ""))
                self.stop(func, inside, result, reason, instead, True)
        return result

    def stand(self, reason: str) -> None:
        """Ends the segment where Python is to go on by itself."""
        if self.feeder is None and not self.asleep:
            with self.calling():
                self.close(lambda place: Standing(reason))

    @contextmanager
    def calling(self) -> Iterator[None]:
        """A region in which calls are the recorder's own."""
        before, self.busy = self.busy, True
        try:
            yield
        finally:
            self.busy = before

    def returns(self, result: Any) -> None:
        """Ends the last segment: the function returns."""
        shown: list[int] = []
        leaves, structure = tree_flatten(packed(self.log, result, shown), is_leaf=is_size)
        for one in leaves:
            if not isinstance(one, Tensor) and type(one) not in PRIMITIVES | FACTS:
                self.log.escape(f"a {type(one).__name__} is returned")
        seen: list[int] = []
        containers(result, seen)
        seen += shown
        if len(set(seen)) != len(seen) or any(one in self.log.path_of for one in seen):
            self.log.escape("a container is returned that others see")
        if self.log.reason:
            return
        nodes = [self.node(one) if isinstance(one, Tensor) else one for one in leaves]
        if not self.log.reason:
            self.close(lambda place: self.result(list(map(place, nodes)), structure), {n for n in nodes if is_node(n)})

    def close(self, make_end: Any, only: set[Node] | None = None) -> None:
        """Makes a segment of what was recorded. only: the nodes that are given; by default, those of living tensors."""
        base = len(self.carried)
        fresh = [one for one in self.sources if one.facts is not None]
        takes: list[Any] = [base + fresh.index(one) if one.facts is not None else one.place for one in self.sources]
        living = [(ref(), node) for ref, node in self.nodes.values() if node.op != "placeholder"]
        gives = {node: one for one, node in living if one is not None and (only is None or node in only)}
        self.carry([*self.new, *gives.values()])
        placeholders = [node for node in self.graph.nodes if node.op == "placeholder"]
        number = dict(zip(placeholders, takes, strict=True))
        number.update({node: base + len(fresh) + i for i, node in enumerate(gives)})
        order(self.graph)
        if any(node.target is set_grad for node in self.graph.nodes):  # gradients are asked for where recording is on
            first = next(node for node in self.graph.nodes if node.op != "placeholder")
            with self.graph.inserting_before(first):
                self.graph.call_function(set_grad, (self.grad,))
            self.graph.call_function(set_grad, (True,))
            self.grad = True
        self.graph.output(tuple(gives))
        end = make_end(lambda leaf: At(number[leaf]) if isinstance(leaf, Node) else leaf)
        self.segments.append(Segment(self, self.guards(fresh), takes, number, end))

    def guards(self, fresh: list[Source]) -> Guards:
        """The guards of what was read in the segment."""
        inputs = [(one.place, one.facts) for one in fresh]
        self.read, self.log.guards = self.log.guards, []
        return Guards(self.read, inputs, self.log.constants, self.exact, self.before)

    def carry(self, tensors: list[Tensor]) -> None:
        for one in tensors:
            self.number.setdefault(id(one), len(self.carried))
            self.carried.append(one)


def is_size(value: Any) -> bool:
    return isinstance(value, Size)


def is_node(value: Any) -> bool:
    return isinstance(value, Node)


def name_of(func: Any) -> str:
    """The name of a function, or of the attribute that a getter reads."""
    name = getattr(func, "__name__", "")
    if name in ("__get__", "__set__", "__delete__"):
        owner = func.__self__
        name = getattr(getattr(owner, "fget", None), "__name__", name)
    return name


def item(values: Any, index: int) -> Any:
    """One of several results."""
    return values[index]


def order(graph: Graph) -> None:
    """Puts placeholders first."""
    first = next((node for node in graph.nodes if node.op != "placeholder"), None)
    for node in list(graph.nodes):
        if node.op == "placeholder" and first is not None:
            first.prepend(node)
