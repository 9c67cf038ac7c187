"""From a graph to a function: what a graph of operators computes, in few loops.

    compiled = compile_fx_inner(module, [x, y])     # a GraphModule without writes, and examples of its inputs
    compiled(x, y)
    print(compiled.source())                        # the steps, and the loops of each
    print(compiled.assembly())

The function is made for the metadata of its examples; for other inputs, and wherever somebody looks (modes, subclasses,
gradients that are recorded), the graph runs as it stands, by its interpreter.
"""

from __future__ import annotations

import linecache
import re
import threading
import weakref
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from redispatch.dispatch import DEFAULT, STATE, OpOverload, ops
from redispatch.dispatch.specialiser.specialise import CHANGES
from redispatch.dispatch.tensor import Size, Tensor, device, empty_from, metadata_of, output_spec
from redispatch.dispatch.tensor.operand import scratch
from redispatch.kernels import get_num_threads
from redispatch.kernels.cpu.blas import allow_threads
from redispatch.kernels.graphs import Nest, Product, Routine, placed

from ..fx.graph_module import GraphModule
from ..fx.interpreter import Interpreter
from ..fx.node import Node, map_arg
from ..fx.passes.post_grad import eliminate_common_subexpressions
from ..fx.passes.shape_prop import FakeTensorProp
from . import kept
from .by_size import BySize, is_symbolic
from .decompositions import expanded
from .lowering import AT_ONCE, Call, Lowering, Multiplying, Nesting, Recording, extent
from .operators import native, rule_of

__all__ = ["CompiledFxGraph", "compile_fx_inner"]

LAZY = {ops.aten._neg_view.default, ops.aten._conj.default}  # whose tensors show other numbers than their memory has
WATCHED: list[list[CompiledFxGraph]] = []  # lists that want to know of each graph that is compiled
CPU = device("cpu")
_MAKING = threading.RLock()  # of threads that call a graph first, one makes its function
# Names that the texts, those of loops, routines and a device's kernels, too, have for other things than nodes
RESERVED = re.compile(
    r"empty_from|scratch|allow_threads|zeros|refuse|status|lo|hi|i|strange|block|pair|count|start|row\w*|run\d*|[vr]\d+|u?int\d+"
    r"|bool_?|(b?float|complex)\d+|(acc|part|kept|at|number)_*\d*(_before)?|(spec|call|given|routine|memory|fused|to)_\w*"
    r"|\w*_(at|row\d*|run\d*)"
    r"|located|stream_for|error\w*|cuda|j|warp|i_\d+|v\d+_\d+|at\d*_\d+|(operator|dim|all)\d+|(parts|pick)_\w*|acc\d+_parts"
)
HELPERS: dict[str, Any] = {
    "empty_from": empty_from, "scratch": scratch, "allow_threads": allow_threads, "zeros": np.zeros,
}  # fmt: skip
# What a graph that is taken from disk knows as soon as somebody asks
LOWERED = {"graph", "lowering", "steps", "through_python", "nests", "groups", "routines", "known", "text"}
PLAIN = {DEFAULT.keys.added, DEFAULT.with_grad(False).keys.added}


class CompiledFxGraph:
    """A graph's function, for inputs of the metadata of its examples.

    steps: what it does, in order: `Nesting`s, `Multiplying`s, `Recording`s and `Call`s. nests: the loops.
    through_python: the calls, by the node's name, and why each is none of the others.
    """

    steps_of = Lowering
    device = CPU

    def __init__(self, module: GraphModule, examples: Sequence[Any]) -> None:
        self.module, self.interpreter = module, Interpreter(module)
        nodes = list(module.graph.nodes)
        if any("val" not in node.meta for node in nodes if node.op != "output"):
            FakeTensorProp(module).propagate(*examples)
        self.metadata = [metadata_of(x) if isinstance(x, Tensor) else None for x in examples]
        tensors = [x for x in examples if isinstance(x, Tensor)]
        self.plain = not any(x.is_conj() or x.is_neg() for x in tensors) and LAZY.isdisjoint(n.target for n in nodes)
        self.other: CompiledFxGraph | None = None  # for another number of threads
        self.operators = {node.target for node in nodes if isinstance(node.target, OpOverload)}
        self.changes = -1  # of kernels, when it was last seen that those of the operators are the library's
        self.examples = examples
        self.begin()

    def begin(self) -> None:
        """Takes the function from disk, or makes one, for one thread or for several."""
        for name in LOWERED & vars(self).keys():
            delattr(self, name)
        self.alone = get_num_threads() == 1
        self.run: Callable[..., Any] | None = None
        self.key = kept.key_of(self)
        self.record = kept.load(self.key)
        if self.record is None:
            self.lower()

    def __getattr__(self, name: str) -> Any:
        if name not in LOWERED:
            raise AttributeError(name)
        self.lower()  # somebody wants to see what is not on disk
        return vars(self)[name]

    def lower(self) -> None:
        """Decides on the steps, and writes the function."""
        self.graph = expanded(self.module.graph)
        eliminate_common_subexpressions(self.graph)
        for node in self.graph.nodes:
            if RESERVED.fullmatch(node.name):
                node.name = self.graph._namespace.create_name(f"n_{node.name}_")
        self.lowering = self.steps_of(list(self.graph.nodes), rule_of, native, self.alone)
        self.steps = self.lowering.steps
        self.through_python = {
            step.node.name: self.lowering.through_python.get(step.node, "it has no kernel")
            for step in self.steps
            if isinstance(step, Call)
        }
        nestings = [step for step in self.steps if isinstance(step, Nesting) and step.outputs]
        self.nests = {step: self.lowering.nest(step, k) for k, step in enumerate(nestings)}
        self.groups = self.grouped()
        self.routines: dict[str, Routine] = {}
        self.known: dict[str, Any] = {}
        self.text = self.written()

    def __call__(self, *args: Any) -> Any:
        """Returns what the graph does of these inputs."""
        if len(args) != len(self.metadata) or not self.fits(args):
            return self.interpreter.run(*args)
        if (get_num_threads() == 1) is not self.alone:
            return self.otherwise()(*args)
        if self.run is None:
            with _MAKING:
                self.run = self.run or self.made()
        return self.run(*args)

    def otherwise(self) -> CompiledFxGraph:
        """The function for one thread, where this is that for several, or the other way round."""
        if self.other is None:
            other = copy(self)
            other.other = self
            other.begin()
            self.other = other
        return self.other

    def fits(self, args: Sequence[Any]) -> bool:
        """Whether the inputs are those that the function was made for, and nobody looks."""
        state = STATE.get()
        keys = state.keys
        if not self.plain or keys.added not in PLAIN or keys.by_mode:
            return False
        if self.changes != CHANGES[0] and not self.holds():
            return False
        recorded = keys.added == DEFAULT.keys.added
        for x, known in zip(args, self.metadata, strict=True):
            if known is None:
                continue
            if type(x) is not Tensor or (x._interned or metadata_of(x)) is not known or not self.has_memory(x):
                return False
            if recorded and x.requires_grad:
                return False
        return True

    def holds(self) -> bool:
        """Whether the operators do what they did: where a program has replaced a kernel, the graph is interpreted."""
        changes = CHANGES[0]
        if any(map(kept.is_replaced, self.operators)):
            return False
        self.changes = changes
        return True

    def has_memory(self, x: Tensor) -> bool:
        return x._array is not None

    # The steps --------------------------------------------------------------------------------------------------------

    def grouped(self) -> list[list[Any]]:
        """The steps, those together that one routine does."""
        groups: list[list[Any]] = []
        joins, work = False, 0
        for step in self.steps:
            if isinstance(step, Nesting) and step not in self.nests:
                continue  # nobody wants it
            quick = self.lowering.is_quick(step)
            more = self.lowering.work(step) if quick else 0
            if quick and joins and work + more <= AT_ONCE:
                groups[-1].append(step)
                work += more
            else:
                groups.append([step])
                work = more
            joins = quick
        return groups

    def reads(self, step: Any) -> list[str]:
        """The names of the arrays and values that a step takes."""
        if isinstance(step, Call):
            return [self.given(node).name for node in step.node.all_input_nodes]
        if isinstance(step, Multiplying):
            return [step.product.a.name, step.product.b.name]
        if isinstance(step, Recording):
            return [node.name for node in step.reads]
        return [array.name for array in self.nests[step].inputs]

    def makes(self, step: Any) -> dict[str, Any]:
        """The nodes and the memory that a step makes, by name."""
        if isinstance(step, Nesting):
            return {node.name: node for node in step.outputs}
        if isinstance(step, Recording):
            return {node.name: node for node in step.results.values()}
        return {step.node.name: step.node}

    def last_uses(self) -> dict[str, int]:
        """By name of what is made: the number of the last group that takes it, or -1 for one that is returned."""
        found: dict[str, int] = {}
        for number, group in enumerate(self.groups):
            for step in group:
                found |= dict.fromkeys(self.makes(step), number)
                found.update((name, number) for name in self.reads(step) if name in found)
        return found | {self.returned(node).name: -1 for node in self.graph.output_node().all_input_nodes}

    def returned(self, node: Node) -> Node:
        """The node that is returned in the place of one."""
        return self.lowering.returns.get(node, node)

    # The text ---------------------------------------------------------------------------------------------------------

    def written(self) -> str:
        """The function's text: one line for each group of steps, and for each tensor that is made."""
        inputs = [node.name for node in self.graph.nodes if node.op == "placeholder"]
        lines = [f"def run({', '.join(inputs)}):"]
        for node in self.graph.nodes:
            if node.op == "get_attr":
                self.known[node.name] = self.of_module(str(node.target))
        last, there = self.last_uses(), set[str]()
        for number, group in enumerate(self.groups):
            made = {name: node for step in group for name, node in self.makes(step).items()}
            if isinstance(group[0], Call):
                lines.append(f"    {group[0].node.name} = {self.called(group[0].node)}")
                there |= made.keys()
            else:
                own = {name for name in made if last[name] == number} if self.is_routine(group) else set()
                for name, node in made.items():
                    if name not in own:
                        lines.append(f"    {name} = {self.new(node)}")
                there |= made.keys() - own
                lines += self.routine_lines(number, group, own) if self.is_routine(group) else self.nest_lines(group[0])
            gone = [name for name, user in last.items() if user == number and name in there]
            if gone:
                lines.append(f"    del {', '.join(gone)}")
        output = map_arg(self.graph.output_node().args[0], self.returned)
        return "\n".join([*lines, f"    return {self.value(output)}"]) + "\n"

    def is_routine(self, group: list[Any]) -> bool:
        """Whether several steps are one function, or one that only such a function can do."""
        return len(group) > 1 or isinstance(group[0], Multiplying | Recording)

    def new(self, node: Any) -> str:
        """The call that makes a tensor, for a step to write."""
        val = node.meta["val"]
        spec = f"spec_{node.name}"
        self.known[spec] = output_spec(Size(val.shape), val._dtype, self.device, tuple(val.stride()))
        return f"empty_from({spec})"

    def routine_lines(self, number: int, group: list[Any], own: set[str]) -> list[str]:
        """Runs steps as one function, with memory for what they alone take."""
        wanted: dict[str, tuple[str, int, int, int]] = {}
        steps = [self.part(step) for step in group]
        for at, step in enumerate(group):
            if isinstance(step, Recording):
                wanted |= {name: (*memory, at, at) for name, memory in step.recorded.memories.items()}
            for name, node in self.makes(step).items():
                if name in own:
                    val = node.meta["val"]
                    wanted[name] = (val._dtype.name, extent(val), at, at)
            for name in self.reads(step):
                if name in wanted:
                    wanted[name] = (*wanted[name][:3], at)
        places, memories = placed(wanted)
        routine = self.routines[f"routine_{number}"] = Routine(f"routine_{number}", steps, places)
        given = [f"{array.name}._array, {array.name}._offset" for array in routine.arrays]
        given += [f"scratch({memories[word][1]}, {memories[word][0]!r})" for word in routine.memories]
        given += ["status"][: routine.has_status]
        given += [f"scratch({size}, {dtype!r})" for dtype, size in routine.scratch.items()]
        for dtype, array in routine.constants().items():
            given.append(f"{routine.name}_constants_{dtype}")
            self.known[given[-1]] = array
        multiplies = any(isinstance(step, Product) or getattr(step, "has_products", False) for step in steps)
        lines = ["    allow_threads(1)"] if multiplies else []
        return [*lines, *self.checked(routine.has_status, f"{routine.name}({', '.join(given)})")]

    def part(self, step: Any) -> Any:
        """A step as a routine has it."""
        if isinstance(step, Multiplying):
            return step.product
        return step.recorded if isinstance(step, Recording) else self.nests[step]

    def nest_lines(self, step: Nesting) -> list[str]:
        """Runs a nest."""
        nest = self.nests[step]
        given = [f"{array.name}._array, {array.name}._offset" for array in nest.arrays]
        return self.checked(bool(nest.picks), f"{nest.name}({', '.join([*given, *['status'][: len(nest.picks)]])})")

    def checked(self, has_status: bool, call: str) -> list[str]:
        """A call, and a look at whether an index was beyond its array."""
        if not has_status:
            return [f"    {call}"]
        return ["    status = zeros(2, 'int64')", f"    {call}", "    if status[0]:", "        refuse(status)"]

    def refuse(self, status: Any) -> None:
        """Raises IndexError for an index that is none of an array."""
        number, index = map(int, status)
        node, dim, size = self.lowering.picks[number - 1]
        where = (node.meta.get("stack_trace") or "").strip()
        raise IndexError(
            f"index {index} is out of bounds for dimension {dim} with size {size}\n"
            f"  {node.name} = {node.target}" + (f"\n{where}" if where else "")
        )

    def of_module(self, path: str) -> Any:
        """An attribute of the module."""
        found: Any = self.module
        for word in path.split("."):
            found = getattr(found, word)
        return found

    def called(self, node: Node) -> str:
        """The call of a node's operator."""
        name = f"call_{node.name}"
        self.known[name] = node.target if node.op == "call_function" else self.of_module(str(node.target))
        args, kwargs = map_arg((node.args, node.kwargs), self.given)
        given = [*map(self.value, args), *(f"{key}={self.value(one)}" for key, one in kwargs.items())]
        return f"{name}({', '.join(given)})"

    def given(self, node: Node) -> Node:
        """The node that a call is given in the place of one."""
        return self.lowering.stands_for.get(node, node)

    def value(self, value: Any) -> str:
        """An argument, or a result, as it is written."""
        if isinstance(value, Node):
            return value.name
        if isinstance(value, tuple | list):
            inside = ", ".join(map(self.value, value))
            return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(value) == 1)})"
        if isinstance(value, str | int | bool) or value is None:
            return repr(value)
        name = f"given_{len(self.known)}"
        self.known[name] = value
        return name

    def kernels(self) -> list[Nest | Routine]:
        """The compiled parts: nests that run alone, and routines."""
        alone = [self.nests[group[0]] for group in self.groups if group[0] in self.nests and not self.is_routine(group)]
        return [*alone, *self.routines.values()]

    def made(self) -> Callable[..., Any]:
        """The function; its loops are compiled here, or loaded from disk."""
        namespace = None if self.record is None else self.record.names(self)
        text = self.record.text if self.record is not None and namespace is not None else self.text
        if namespace is None:
            entries = {one.name: one.entry() for one in self.kernels()}
            kept.store(self.key, self, entries)
            launched = {
                nest.name: nest.launch.of(entries[nest.name]) for nest in self.kernels() if isinstance(nest, Nest)
            }
            namespace = self.known | entries | launched
        name = f"<redispatch graph {id(self):x}>"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        weakref.finalize(self, linecache.cache.pop, name, None).atexit = False
        namespace |= HELPERS | {"refuse": self.refuse}
        exec(compile(text, name, "exec"), namespace)
        return namespace["run"]

    # Seen -------------------------------------------------------------------------------------------------------------

    def source(self) -> str:
        """The steps, and the loops of each nest, as text."""
        routines = [routine.text for routine in self.routines.values()]
        return "\n\n".join([self.text, *routines, *(nest.text for nest in self.nests.values())])

    def machine_code(self, nest: Nest) -> tuple[str, str]:
        """A nest as it is written for LLVM, and what LLVM makes of it."""
        kernel, signature = nest.kernel(), nest.signature()
        return kernel.ir(*signature), kernel.assembly(*signature)

    def assembly(self) -> str:
        """The machine code of each nest, as this machine's assembler spells it."""
        return "\n".join(one.kernel().assembly(*one.signature()) for one in self.kernels())


def compile_fx_inner(
    module: GraphModule, example_inputs: Sequence[Any], *, cudagraphs: bool = False
) -> CompiledFxGraph | BySize:
    """Compiles a graph of operators that make no views of each other's results for its caller to write to.

    example_inputs: tensors, of which the metadata counts. Where a size is a symbol, loops are made for sizes that come
    often.
    cudagraphs: whether a function on a CUDA device is recorded (`mode="reduce-overhead"`); on the CPU it is as it is.
    """
    if is_symbolic(module):
        return BySize(module, partial(compile_fx_inner, cudagraphs=cudagraphs))
    if any(isinstance(x, Tensor) and x.is_cuda for x in example_inputs):
        made = import_module(f"{__package__}.cuda").CompiledForCUDA  # here, because few have a device
        graph = made(module, example_inputs, cudagraphs)
    else:
        graph = CompiledFxGraph(module, example_inputs)
    for seen in WATCHED:
        seen.append(graph)
    return graph
