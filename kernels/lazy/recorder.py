"""Recorder: says what an operator gives before it is run, and has it run when somebody wants the values.

A recorded call is a `Node`: the operator with its constants, and the nodes of its tensors. What is known of its results
is their metadata, which follows from the operator, the constants and the metadata of its tensors: calls of which all
that is equal share one `Call`, and only the first of them asks the operator's meta kernel. Nodes are made once, too: a
call with the same tensors is the same node, as long as it has not run. Nothing that is recorded writes, so both hold.

`flush` runs all that living tensors need, as one program (program.py). What cannot be recorded (results that depend on
values, operators without a meta kernel, programs' own operators) runs at once on the CPU, and is counted under its name
with namespace; what draws random numbers runs at once, too, so that the numbers are those which the CPU's program gets.

Note [Numbers that change]
A learning rate, or the correction of a step, is another number each time. So the numbers of a few operators are no part
of a call, as tensors are not: `Recorder.results` puts them beside the node's inputs. A program is compiled for its
numbers as long as they stay the same (program.py).

Note [Errors of values]
An error that follows from metadata is raised by the call. One that follows from values, such as an index out of range,
is raised when they are computed: to whoever asks for a tensor that needs the failed node, at each time.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import count
from typing import Any

from redispatch.dispatch import (
    DEFAULT,
    LAZY_BITS,
    OpOverload,
    _disabled_torch_function_impl,
    call,
    keyset,
    shared,
    within,
)
from redispatch.dispatch.core.registry import OVERLOADS
from redispatch.dispatch.core.state import State
from redispatch.dispatch.layers.functionalize import composite_kernel, functional_form
from redispatch.dispatch.pytree import tree_flatten, tree_map_only, tree_unflatten
from redispatch.dispatch.schema.schema import Tag
from redispatch.dispatch.tensor import (
    CPU,
    META,
    Size,
    Tensor,
    device,
    device_keyset,
    dtype,
    empty_from,
    get_default_dtype,
    layout,
    memory_format,
    output_spec,
    set_default_dtype,
    view_over,
)
from redispatch.dispatch.tensor.functional import FunctionalTensorWrapper
from redispatch.dispatch.tensor.geometry import last_element
from redispatch.dispatch.tensor.metadata import interned

LIMIT_CALLS = 1 << 15  # calls that are known; then the table starts afresh
LIMIT_NODES = 5_000  # recorded and not yet run; then they are run without being asked for
LIMIT_BYTES = 1 << 28  # of values that came from outside, as long as nodes may hold them
PLAIN = {int, str, type(None), dtype, layout, memory_format, device}
MARKED = {bool, float, complex}  # which may be equal to an int
FUNCTIONALIZE = keyset("Functionalize")
LAZY_KEYS = keyset("Lazy")
CLEAN: State = DEFAULT.with_grad(False)  # in which calls are worked out: nobody looks, and nothing is differentiated
LINEAR = frozenset({"add", "mul", "div", "addcmul", "addcdiv"})  # whose numbers are beside the inputs
MIXING = frozenset({"copy", "_to_copy", "index", "index_put", "_index_put_impl"})  # which take the CPU's tensors, too


class Output:
    """The metadata of a result. `place`: which one it is of its node's. `key`: what a call's key says of it."""

    __slots__ = ("shape", "stride", "offset", "dtype", "bits", "interned", "keys", "place", "key")

    def __init__(self, x: Tensor, on: device, place: int = 0) -> None:
        self.shape, self.stride, self.dtype = x._shape, x._stride, x._dtype
        self.offset, self.bits = x._offset, x._keyset & LAZY_BITS
        self.interned = interned(self.dtype, self.shape, self.stride, on, self.bits)
        self.keys = shared(device_keyset(on.type) | FUNCTIONALIZE | self.bits)  # of a wrapper
        self.place = place
        self.key: Any = (self.interned, place, self.offset) if place or self.offset else self.interned

    def meta(self) -> Tensor:
        """A tensor of this metadata without data."""
        if not self.offset and not self.bits:
            return empty_from(output_spec(self.shape, self.dtype, META, self.stride))
        room = max(0, last_element(self.shape, self.stride, self.offset)) + 1
        flat = empty_from(output_spec(Size((room,)), self.dtype, META))
        made = view_over(flat, self.shape, self.stride, self.offset)
        made._keyset |= self.bits
        made._interned = None
        return made


class Call:
    """An operator, its constants, the metadata of its tensors; and so the metadata of its results.

    template: the stack, a `Slot` in the place of each tensor. outputs: of each tensor among the results. spec: how the
    results stand in what the operator returns; None where that is one tensor. Made once for equal calls.
    """

    __slots__ = ("op", "template", "outputs", "spec", "places", "name", "shared", "times", "past")

    def __init__(self, op: OpOverload, template: list[Any], outputs: list[Output], spec: Any, places: Any) -> None:
        self.op, self.template, self.outputs, self.spec, self.places = op, template, outputs, spec, places
        self.name = f"lazy::{op._opname}"
        self.past: set[float] = set()  # its numbers in programs that were compiled
        self.times = 0  # it has been recorded since this was last added up
        self.shared = op._opname != "clone"  # a custom operator may write a copy that was made for it


AT_ONCE: Any = object()  # in the place of a call that cannot wait


class Slot:
    """A tensor's place in a template: the number of the tensor."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class NumberSlot(Slot):
    """A number's place in a template: Note [Numbers that change]."""

    __slots__ = ()


class Node:
    """A call of an operator on other nodes; or, without a call, a value that came from outside.

    inputs: of each tensor, in order, whose result it is. numbers: see the note. results: the tensors on the CPU, once
    they are there. held, others: the first result, and the others by place, while somebody holds them. error: why there
    are none. number: that of a value from outside, once somebody has asked for it.
    """

    __slots__ = ("call", "inputs", "numbers", "results", "held", "others", "error", "number")
    next_number = count(1)
    number: int

    def __init__(self, call: Call | None, inputs: tuple[Node, ...], numbers: Any = ()) -> None:
        self.call, self.inputs, self.numbers = call, inputs, numbers
        self.results: list[Any] | None = None
        self.held: Any = None
        self.others: Any = None
        self.error: BaseException | None = None

    def living(self) -> list[Result]:
        """The results that somebody holds."""
        refs = (self.held,) if self.others is None else (self.held, *self.others.values())
        return [found for ref in refs if ref is not None and (found := ref()) is not None]

    def hold(self, seen: Output) -> Result:
        """The result of this metadata, to be held: one for all."""
        place = seen.place
        ref = self.held if not place else self.others and self.others.get(place)
        found = ref and ref()
        if found is None:
            found = Result(self, seen)
            if not place:
                self.held = weakref.ref(found)
            else:
                self.others = self.others or {}
                self.others[place] = weakref.ref(found)
        return found


class Result:
    """One of the results of a node, as long as somebody holds it. `seen`: its metadata, and which one it is."""

    __slots__ = ("node", "seen", "__weakref__")

    def __init__(self, node: Node, seen: Output) -> None:
        self.node, self.seen = node, seen

    @property
    def result(self) -> Result:
        return self

    def is_there(self) -> bool:
        """Whether it has been computed."""
        results = self.node.results
        return results is not None and results[self.seen.place] is not None


class LazyTensor(Tensor):
    """A tensor without memory, which nobody writes: a result."""

    __torch_function__ = staticmethod(_disabled_torch_function_impl)
    result: Result
    wrapper: type[FunctionalTensorWrapper] = FunctionalTensorWrapper


HOLDERS: set[type] = {Result, LazyTensor}  # whose `result`, or `current_result()`, is what a call takes


def lazy_tensor(result: Result, on: device) -> LazyTensor:
    """The tensor that shows a result."""
    seen = result.seen
    t: Any = object.__new__(LazyTensor)
    t._keyset = LAZY_KEYS | seen.bits
    t._counter = [0]
    t._autograd = t._store = t._array = t._view = None
    t._shape, t._stride, t._offset = seen.shape, seen.stride, seen.offset
    t._dtype, t._device, t._interned = seen.dtype, on, seen.interned
    t.result = result
    return t


class Recorder:
    """See above. on: the device that its tensors name. programs: those that it ran (program.py)."""

    def __init__(self, on: device) -> None:
        self.on, self.lock = on, threading.RLock()
        self.calls: dict[Any, Any] = {}
        self.pending: dict[Any, Node] = {}
        self.bytes = 0  # of values from outside since the last flush
        self.counts: Counter[str] = Counter()
        self.default = get_default_dtype()
        self.programs: Any = None
        self.force_fallback = ""  # the operator that runs at once for a test, with or without its namespace
        self.reuse = True  # whether equal calls are one node
        self.sizes: Counter[int] = Counter()  # how often programs of so many calls ran

    # Recording --------------------------------------------------------------------------------------------------------

    def record(self, op: OpOverload, stack: list[Any]) -> Any:
        """Returns what the operator gives: lazy tensors; or whatever it is, where it runs at once."""
        return tree_map_only(Result, lambda one: lazy_tensor(one, self.on), self.results(op, stack))

    def results(self, op: OpOverload, stack: list[Any]) -> Any:
        """Returns what the operator gives: `Result`s in the place of tensors, in the arguments, too."""
        if get_default_dtype() is not self.default:
            self.flush()  # what was recorded means the former one
            self.forget_calls()
            self.default = get_default_dtype()
        key: list[Any] = [op]
        nodes: list[Node] = []
        numbers: Any = ()
        for one in stack:
            kind = type(one)
            if kind in HOLDERS:
                x = one.result or one.current_result()
                nodes.append(x.node)
                key.append(x.seen.key)
            elif kind in PLAIN:
                key.append(one)
            elif kind is float and is_free(op, one):
                key.append(Slot)
                numbers += (one,)
            else:
                key[1:], nodes[:], numbers = [], [], ()
                if not self.add(key, nodes, stack):
                    return self.at_once(op, stack)
                break
        known = self.calls.get(tuple(key))
        if known is None:
            known = self.new_call(op, stack, tuple(key), bool(numbers))
        if known is AT_ONCE:
            return self.at_once(op, stack)
        known.times += 1
        identity = (known, *nodes, *numbers) if known.shared and self.reuse else object()
        node = self.pending.get(identity)
        if node is None:
            if len(self.pending) >= LIMIT_NODES:
                self.flush()
            node = self.pending[identity] = Node(known, tuple(nodes), numbers)
            if known.spec is None:
                found = Result(node, known.outputs[0])
                node.held = weakref.ref(found)
                return found
        if known.spec is None:
            return node.hold(known.outputs[0])
        return tree_unflatten([node.hold(seen) for seen in known.outputs], known.spec)

    def add(self, key: list[Any], nodes: list[Node], values: list[Any] | tuple[Any, ...]) -> bool:
        """Adds arguments to a key; False where one of them cannot be recorded."""
        for at, one in enumerate(values):
            kind = type(one)
            if kind in HOLDERS:
                x = one.result or one.current_result()
                nodes.append(x.node)
                key.append(x.seen.key)
            elif kind in PLAIN:
                key.append(one)
            elif kind in MARKED:
                key.append(kind)
                key.append(one or str(one))  # 0.0 is equal to -0.0
            elif kind is list or kind is tuple or kind is Size:
                key.append(list)
                if not self.add(key, nodes, one):
                    return False
                key.append(list)
            elif isinstance(one, Tensor):
                if one._shape and key[0]._opname not in MIXING:
                    raise RuntimeError(f"Input tensor is not a lazy tensor: {one.type()}")
                assert type(values) is list
                values[at] = leaf = self.leaf(one.detach().clone())
                nodes.append(leaf.node)
                key.append(leaf.seen.key)
            else:
                return False
        return True

    def leaf(self, value: Tensor) -> Result:
        """The result that is a value which is there, and which nobody writes from now on."""
        node = Node(None, ())
        node.results = [value]
        self.bytes += value.nbytes
        if self.bytes > LIMIT_BYTES:
            self.flush()
        return node.hold(Output(value, self.on))

    def new_call(self, op: OpOverload, stack: list[Any], key: Any, free: bool) -> Any:
        """Asks the meta kernel what an operator gives; AT_ONCE where it has to run for that."""
        if self.runs_at_once(op):
            return AT_ONCE
        tensors: list[Result] = []
        numbers = [one for one in stack if free and type(one) is float and is_free(op, one)]
        places = iter(range(len(numbers)))
        taken = [NumberSlot(next(places)) if free and type(one) is float and is_free(op, one) else one for one in stack]
        template = self.template(taken, tensors)
        with within(CLEAN):
            given = filled(template, [x.seen.meta() for x in tensors], META, numbers)
        try:
            with within(CLEAN):
                shown = call(op, given)
        except Exception:
            return AT_ONCE  # where that raises, too, it is the error of this call
        flat, spec = tree_flatten(shown)
        if not all(isinstance(one, Tensor) for one in flat):
            return AT_ONCE
        outputs = [Output(one, self.on, place) for place, one in enumerate(flat)]
        found = Call(
            op, template, outputs, None if isinstance(shown, Tensor) else spec, [x.seen.place for x in tensors]
        )
        if len(self.calls) >= LIMIT_CALLS:
            self.forget_calls()
        return self.calls.setdefault(key, found)

    def template(self, value: Any, tensors: list[Result]) -> Any:
        """The arguments with a slot in the place of each tensor."""
        if isinstance(value, list | tuple):
            return [self.template(one, tensors) for one in value]
        if type(value) in HOLDERS:
            tensors.append(result_of(value))
            return Slot(len(tensors) - 1)
        return value

    def add_up(self) -> None:
        """Adds to the counters how often calls have been recorded."""
        for one in self.calls.values():
            if type(one) is Call and one.times:
                self.counts[one.name] += one.times
                self.counts["CreateLtcTensor"] += one.times * len(one.outputs)
                one.times = 0

    def forget_calls(self) -> None:
        """Drops what is known of calls."""
        self.add_up()
        self.calls.clear()

    # At once ----------------------------------------------------------------------------------------------------------

    def runs_at_once(self, op: OpOverload) -> bool:
        """Whether an operator cannot wait: its result's shape depends on values, or it may do more than compute."""
        tags = op.tags
        return (
            op.namespace not in ("aten", "prims")
            or Tag.data_dependent_output in tags
            or (Tag.dynamic_output_shape in tags and op._opname != "index")
            or Tag.nondeterministic_seeded in tags
            or self.force_fallback in (op.packet_name, op._opname, op.qualified_name)
        )

    def at_once(self, op: OpOverload, stack: list[Any]) -> Any:
        """Runs an operator on the CPU. A tensor that it writes stands for the written value from then on."""
        schema = op.schema
        fills = only_fills(op)
        take = (lambda one: empty_like(result_of(one))) if fills else self.value
        there = [tree_map_only(tuple(HOLDERS), take, one) for one in stack]
        there = [CPU if isinstance(one, device) and one.type == self.on.type else one for one in there]
        for position in schema.mutable_positions:
            there[position] = tree_map_only(Tensor, lambda x: x.clone(), there[position])
        with within(CLEAN):
            result = call(op, there)
        written = {}
        for position in schema.mutable_positions:
            for lazy, now in zip(tree_flatten(stack[position])[0], tree_flatten(there[position])[0], strict=True):
                if type(lazy) is LazyTensor:
                    lazy.result = written[id(now)] = self.leaf(now)
        plain = fills or (Tag.nondeterministic_seeded in op.tags and not schema.tensor_positions)
        self.counts[f"lazy::{op._opname}" if plain else f"{op.namespace}::{op._opname}"] += 1
        return tree_map_only(Tensor, lambda x: written.get(id(x)) or self.leaf(x), result)

    # Values -----------------------------------------------------------------------------------------------------------

    def value(self, lazy: LazyTensor | Result) -> Tensor:
        """The tensor on the CPU that a lazy one stands for; nobody may write it. Runs all that is needed."""
        x = result_of(lazy)
        node = x.node
        if not x.is_there():
            if node.error is None:
                self.flush([x])
            if node.error is not None:
                raise node.error
        assert node.results is not None
        return node.results[x.seen.place]

    def flush(self, also: Iterable[Result] = ()) -> BaseException | None:
        """Runs what living tensors need, and forgets the rest of what was recorded; returns the first error of those
        that cannot be computed."""
        with self.lock:
            pending, self.pending, self.bytes = self.pending, {}, 0
            wanted = [*also, *(x for node in pending.values() if node.error is None for x in node.living())]
            roots = list(dict.fromkeys((x.node, x.seen.place) for x in wanted if not x.is_there()))
            del wanted
            if roots:
                self.run(roots)
            return next((node.error for node, _ in roots if node.error is not None), None)

    def run(self, roots: list[tuple[Node, int]]) -> None:
        """Computes results of nodes, as a program that may be known."""
        former = get_default_dtype()
        if former is not self.default:
            set_default_dtype(self.default)
        try:
            with within(CLEAN):
                self.programs.run(self, roots)
        finally:
            if former is not self.default:
                set_default_dtype(former)


@cache
def only_fills(op: OpOverload) -> bool:
    """Whether a random operator takes of its tensor only where the numbers go: as `uniform_` does, and `rand_like`."""
    if Tag.nondeterministic_seeded not in op.tags or composite_kernel(op) or op.schema.tensor_positions != (0,):
        return False
    writing = (one for name in (f"{op._opname}_", f"{op._opname.removesuffix('_functional')}_") for one in
               OVERLOADS.get(f"{op.namespace}::{name}", {}).values())  # fmt: skip
    forms = [functional_form(one) for one in writing if one.schema.is_mutable]
    return op._opname.endswith("_like") or any(form is not None and form.op is op for form in forms)


def is_free(op: OpOverload, number: float) -> bool:
    """Whether an operator's number stands beside its inputs; 0 and 1 may mean other loops."""
    return op._opname in LINEAR and number not in (0.0, 1.0) and op.namespace == "aten"


def filled(template: Any, tensors: Sequence[Any], on: device, numbers: Sequence[Any] = ()) -> Any:
    """The arguments that a template stands for: tensors and numbers in its slots, their device where one is named."""
    kind = type(template)
    if kind is Slot:
        return tensors[template.number]
    if kind is NumberSlot:
        return numbers[template.number]
    if kind is list:
        return [filled(one, tensors, on, numbers) for one in template]
    return on if kind is device and template.type not in ("cpu", "meta") else template


def result_of(holder: Any) -> Result:
    """The result that one of HOLDERS shows."""
    return holder.result or holder.current_result()


def empty_like(x: Result) -> Tensor:
    """A tensor on the CPU of the metadata of a result."""
    return empty_from(output_spec(x.seen.shape, x.seen.dtype, CPU, x.seen.stride))
