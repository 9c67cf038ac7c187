"""freeze: a module's parameters and attributes become constants of its graph, since nothing will change them.

Read next: archive.py.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.schema.schema import TENSOR, Argument

from .builtins import Builtin
from .classes import Compiler
from .code import is_constant
from .function import ScriptFunction, inlined
from .graph import Block, Graph, Node, Value, removed_dead
from .module import RecursiveScriptModule, ScriptModule, dressed
from .types import NUMBERS, STR, ObjectType


def freeze(mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> Any:
    """Returns a module in evaluation mode whose methods hold its parameters, buffers and attributes as constants.

    preserved_attrs: further methods, and attributes that are kept as such. Errors: RuntimeError for a module that is in
    training mode, or was not compiled.
    """
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to "
            "script your 'nn.Module'."
        )
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module "
            "before freezing."
        )
    kept = preserved_attrs or []
    old = mod._script_type
    kind = ObjectType(old.name, None, is_module=True)
    names = {"training", *(one for one in kept if one in old.attributes)}
    for name in ["forward", *kept]:
        if name not in old.methods:
            if name not in old.attributes:
                raise RuntimeError(f"Preserved attribute '{name}' was not found in the module")
            continue
        function = old.methods[name]
        graph = inlined(function.graph)
        graph.params[0].type = kind
        folded(graph, mod, set(kept))
        names |= {
            node.attributes["name"]
            for node in graph.all_nodes()
            if node.input_values[:1] == graph.params[:1] and "name" in node.attributes
        }
        arguments = [Argument("self", kind), *function.schema.arguments[1:]]
        kind.methods[name] = ScriptFunction(name, graph, arguments, function.schema.returns[0].type)
    kind.attributes = {name: one for name, one in old.attributes.items() if name in names}
    parts = [
        {name: one for name, one in part.items() if name in names}
        for part in (mod._parameters, mod._buffers, mod._modules, mod._plain())
    ]
    return dressed(RecursiveScriptModule, kind, Compiler(), *parts)


def folded(graph: Graph, mod: Any, kept: set[str]) -> None:
    """Replaces attributes of a module by their values, and branches that are decided by the side that is taken."""
    objects: dict[Value, Any] = {graph.params[0]: mod}
    changed = {(node.input_values[0], node.attributes["name"]) for node in graph.findAllNodes("prim::SetAttr")}
    names = {name for _, name in changed} | kept
    replaced: dict[Value, Value] = {}

    def visit(block: Block) -> None:
        for node in list(block.nodes_):
            node.input_values = [replaced.get(one, one) for one in node.input_values]
            if (
                node._kind == "prim::GetAttr"
                and node.input_values[0] in objects
                and node.attributes["name"] not in names
            ):
                value = getattr(objects[node.input_values[0]], node.attributes["name"])
                if isinstance(node.output().type, ObjectType):
                    objects[node.output()] = value
                else:
                    replaced[node.output()] = graph.constant(
                        value.detach() if node.output().type == TENSOR else value, node.output().type
                    )
            for inner in node.blocks:
                visit(inner)
            replaced.update(decided(graph, block, node))
        block.results = [replaced.get(one, one) for one in block.results]

    visit(graph)
    removed_dead(graph)


def decided(graph: Graph, block: Block, node: Node) -> dict[Value, Value]:
    """Returns what results of a node are that constants decide: a number, or those of the branch that is taken."""
    known = [one.node.attributes.get("value") for one in node.input_values if is_constant(one)]  # type: ignore[union-attr]  # not None
    if len(known) < len(node.input_values) or not known:
        return {}
    if node._kind == "prim::If":
        taken = node.blocks[0 if known[0] else 1]
        place = block.nodes_.index(node)
        block.nodes_[place : place + 1] = taken.nodes_
        return dict(zip(node.output_values, taken.results, strict=True))
    if isinstance(node.op, Builtin) and len(node.output_values) == 1 and node.output().type in (*NUMBERS, STR):
        return {node.output(): graph.constant(node.op.function(*known), node.output().type)}
    return {}


def run_frozen_optimizations(
    mod: Any, optimize_numerics: bool = True, preserved_methods: list[str] | None = None
) -> None:
    """Does nothing: what is constant was folded, and kernels are chosen by the dispatcher when they run."""


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> Any:
    """Returns a module frozen, if it is not yet."""
    return freeze(mod.eval(), other_methods) if mod._parameters or mod._modules else mod
