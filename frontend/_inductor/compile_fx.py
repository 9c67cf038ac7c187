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
from collections.abc import Callable, Sequence
from typing import Any

from redispatch.dispatch import DEFAULT, STATE, ops
from redispatch.dispatch.tensor import Size, Tensor, empty_from, metadata_of, output_spec

from ..fx.graph_module import GraphModule
from ..fx.interpreter import Interpreter
from ..fx.node import Node, map_arg
from ..fx.passes.shape_prop import FakeTensorProp
from .lowering import Call, Lowering, Nesting

__all__ = ["CompiledFxGraph", "compile_fx_inner"]

LAZY = {ops.aten._neg_view.default, ops.aten._conj.default}  # whose tensors show other numbers than their memory has
PLAIN = {DEFAULT.keys.added, DEFAULT.with_grad(False).keys.added}


class CompiledFxGraph:
    """A graph's function, for inputs of the metadata of its examples.

    steps: what it does, in order: `Nesting`s and `Call`s. nests: the loops.
    """

    def __init__(self, module: GraphModule, examples: Sequence[Any]) -> None:
        self.module, self.interpreter = module, Interpreter(module)
        nodes = list(module.graph.nodes)
        if any("val" not in node.meta for node in nodes if node.op != "output"):
            FakeTensorProp(module).propagate(*examples)
        self.lowering = Lowering(nodes)
        self.steps = self.lowering.steps
        nestings = [step for step in self.steps if isinstance(step, Nesting) and step.outputs]
        self.nests = {step: self.lowering.nest(step, k) for k, step in enumerate(nestings)}
        self.metadata = [metadata_of(x) if isinstance(x, Tensor) else None for x in examples]
        tensors = [x for x in examples if isinstance(x, Tensor)]
        self.plain = not any(x.is_conj() or x.is_neg() for x in tensors) and LAZY.isdisjoint(n.target for n in nodes)
        self.known: dict[str, Any] = {"empty_from": empty_from}
        self.text = self.written()
        self.run: Callable[..., Any] | None = None

    def __call__(self, *args: Any) -> Any:
        """Returns what the graph does of these inputs."""
        if len(args) != len(self.metadata) or not self.fits(args):
            return self.interpreter.run(*args)
        if self.run is None:
            self.run = self.made()
        return self.run(*args)

    def fits(self, args: Sequence[Any]) -> bool:
        """Whether the inputs are those that the function was made for, and nobody looks."""
        state = STATE.get()
        keys = state.keys
        if not self.plain or keys.added not in PLAIN or keys.by_mode:
            return False
        recorded = keys.added == DEFAULT.keys.added
        for x, known in zip(args, self.metadata, strict=True):
            if known is None:
                continue
            if type(x) is not Tensor or (x._interned or metadata_of(x)) is not known or x._array is None:
                return False
            if recorded and x.requires_grad:
                return False
        return True

    # The text ---------------------------------------------------------------------------------------------------------

    def written(self) -> str:
        """The function's text: one line for each step, and for each tensor that is made."""
        inputs = [node.name for node in self.module.graph.nodes if node.op == "placeholder"]
        lines = [f"def run({', '.join(inputs)}):"]
        for node in self.module.graph.nodes:
            if node.op == "get_attr":
                self.known[node.name] = self.attribute(node)
        last = self.last_uses()
        for step in self.steps:
            if isinstance(step, Call):
                lines.append(f"    {step.node.name} = {self.called(step.node)}")
            elif step in self.nests:
                lines += self.nest_lines(step)
            gone = [name for name, user in last.items() if user is step]
            if gone:
                lines.append(f"    del {', '.join(gone)}")
        output = self.module.graph.output_node().args[0]
        return "\n".join([*lines, f"    return {self.value(output)}"]) + "\n"

    def last_uses(self) -> dict[str, Any]:
        """The step behind which a tensor that the function makes is no longer needed, by the tensor's name."""
        made: set[str] = set()
        found: dict[str, Any] = {}
        for step in self.steps:
            used: list[str] = []
            if isinstance(step, Call):
                made.add(step.node.name)
                used = [self.given(node).name for node in step.node.all_input_nodes]
            elif step in self.nests:
                made |= {array.name for array, _ in self.nests[step].outputs}
                used = [array.name for array in self.nests[step].inputs]
            found.update((name, step) for name in used if name in made)
        kept = {node.name for node in self.module.graph.output_node().all_input_nodes}
        return {name: step for name, step in found.items() if name not in kept}

    def attribute(self, node: Node) -> Any:
        """The tensor of the module that a node is."""
        found: Any = self.module
        for word in str(node.target).split("."):
            found = getattr(found, word)
        return found

    def nest_lines(self, step: Nesting) -> list[str]:
        """Makes the outputs of a nest, and runs it."""
        nest, lines = self.nests[step], []
        for node in step.outputs:
            val = node.meta["val"]
            spec = f"spec_{node.name}"
            self.known[spec] = output_spec(Size(val.shape), val._dtype, val._device, tuple(val.stride()))
            lines.append(f"    {node.name} = empty_from({spec})")
        given = ", ".join(f"{array.name}._array, {array.name}._offset" for array in nest.arrays)
        return [*lines, f"    {nest.name}({given})"]

    def called(self, node: Node) -> str:
        """The call of a node's operator."""
        name = f"call_{node.name}"
        self.known[name] = node.target if node.op == "call_function" else self.attribute(node)
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

    def made(self) -> Callable[..., Any]:
        """The function; its loops are compiled here, or loaded from disk."""
        namespace = self.known | {nest.name: nest.ready() for nest in self.nests.values()}
        name = f"<redispatch graph {id(self):x}>"
        linecache.cache[name] = (len(self.text), None, self.text.splitlines(True), name)
        exec(compile(self.text, name, "exec"), namespace)
        return namespace["run"]

    # Seen -------------------------------------------------------------------------------------------------------------

    def source(self) -> str:
        """The steps, and the loops of each nest, as text."""
        return "\n\n".join([self.text, *(nest.text for nest in self.nests.values())])

    def assembly(self) -> str:
        """The machine code of each nest, as this machine's assembler spells it."""
        return "\n".join(nest.kernel().assembly(*nest.signature()) for nest in self.nests.values())


def compile_fx_inner(module: GraphModule, example_inputs: Sequence[Any]) -> CompiledFxGraph:
    """Compiles a graph of operators that make no views of each other's results for its caller to write to.

    example_inputs: tensors, of which the metadata counts.
    """
    return CompiledFxGraph(module, example_inputs)
