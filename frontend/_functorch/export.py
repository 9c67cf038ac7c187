"""aot_export_module: the graph of a module as a value of its own, and a signature that says what goes in and out.

    graph, signature = aot_export_module(module, [x], trace_joint=False)
    graph(*parameters, *buffers, x)          # returns new values of written buffers and inputs, then the results

Nothing is wrapped around the graph, as `aot_function` does: whoever runs it has the effects that the signature names.

Source: PyTorch's torch._functorch.aot_autograd. Read next: aot_autograd.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from redispatch.autograd import enable_grad, grad, no_grad
from redispatch.dispatch import OpOverload
from redispatch.dispatch.pytree import tree_flatten, tree_unflatten
from redispatch.dispatch.tensor import Tensor
from redispatch.func import functional_call
from redispatch.fx import GraphModule
from redispatch.fx.codegen import PyTreeCodeGen
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.fx.node import written_at
from redispatch.modes.fake_tensor import FakeTensor
from redispatch.modes.functional_tensor import FunctionalTensor, FunctionalTensorMode

from .aot_autograd import Compiled, nop, shown, tidy
from .effects import changes, memory

__all__ = ["BackwardSignature", "GraphSignature", "aot_export_joint_simple", "aot_export_module"]


@dataclass
class BackwardSignature:
    """The outputs of a graph that are gradients, and of which output they are."""

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


@dataclass
class GraphSignature:
    """Roles of a graph's inputs and outputs: by the names of nodes, those of parameters and buffers."""

    parameters: list[str]
    buffers: list[str]
    user_inputs: list[str]
    user_outputs: list[str]
    inputs_to_parameters: dict[str, str]
    inputs_to_buffers: dict[str, str]
    buffers_to_mutate: dict[str, str]
    parameters_to_mutate: dict[str, str]
    user_inputs_to_mutate: dict[str, str]
    in_spec: Any
    out_spec: Any
    backward_signature: BackwardSignature | None
    input_tokens: list[str] = field(default_factory=list)
    output_tokens: list[str] = field(default_factory=list)


def aot_export_module(
    mod: Any,
    args: Sequence[Any],
    *,
    decompositions: Any = None,
    trace_joint: bool,
    output_loss_index: int | None = None,
    pre_dispatch: bool = False,
    dynamic_shapes: bool | None = None,
    kwargs: dict[str, Any] | None = None,
) -> tuple[GraphModule, GraphSignature]:
    """Returns (the graph of a module without writes, its signature). Inputs: parameters, buffers, then arguments.

    trace_joint: whether the graph returns gradients, too, of the output `output_loss_index`, a scalar.
    pre_dispatch: keeps operators as they are called. dynamic_shapes: sizes are symbols.
    Errors: RuntimeError where there is no such loss; NotImplementedError for writes that are to be kept as called.
    """
    names = [name for name, _ in (*mod.named_parameters(), *mod.named_buffers())]
    state = [one for _, one in (*mod.named_parameters(), *mod.named_buffers())]
    count = len(list(mod.parameters()))
    flat, in_spec = tree_flatten((tuple([*state, *args]), kwargs or {}))
    wanted = [trace_joint and isinstance(one, Tensor) and one.requires_grad for one in flat]
    run = Exported(mod, names, in_spec, wanted, checked(trace_joint, output_loss_index), not pre_dispatch)
    symbolic = dynamic_shapes or any(isinstance(one, FakeTensor) and one.fake_mode.shape_env for one in flat)
    given = [one.detach() if isinstance(one, Tensor) else one for one in flat]
    with no_grad():
        mode = "symbolic" if symbolic else "fake"
        graph = make_fx(run, decompositions, mode, pre_dispatch=pre_dispatch)(*given)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    written = [one for one in graph.graph.nodes if isinstance(one.target, OpOverload) and one.target._schema.is_mutable]
    if written:
        raise NotImplementedError(
            f"aot_export_module(pre_dispatch=True): {written[0].target} writes its argument, and operators as they are "
            f"called are not made functional here; use pre_dispatch=False{written_at(written[0])}"
        )
    return graph, signature_of(graph, run, names, count, in_spec)


def checked(trace_joint: bool, output_loss_index: int | None) -> int | None:
    """Returns the number of the output that is the loss, or None."""
    if trace_joint and output_loss_index is None:
        raise RuntimeError(
            "If trace_joint=True it is required that one of your forward outputs must be a scalar loss. You must "
            "specify the which (index) output is the loss with output_loss_index."
        )
    if not trace_joint and output_loss_index is not None:
        raise RuntimeError("output_loss_index is the output that gradients are of; pass it with trace_joint=True")
    return output_loss_index


class Exported:
    """Runs a module as its graph will: on the tensors that are its inputs, without writes to them.

    After a run: `written`, the numbers of the inputs that it writes; `out_spec`; `given`, whose gradients it returns.
    """

    def __init__(
        self, mod: Any, names: list[str], in_spec: Any, wanted: list[bool], loss: int | None, functional: bool
    ) -> None:
        self.mod, self.names, self.in_spec, self.wanted, self.loss = mod, names, in_spec, wanted, loss
        self.functional = functional

    def __call__(self, *leaves: Any) -> Any:
        enter: Any = FunctionalTensor.to_functional if self.functional else Tensor.detach
        mode = FunctionalTensorMode() if self.functional else nullcontext()
        with mode, nullcontext() if self.loss is None else enable_grad():
            roots = [
                enter(one).requires_grad_(want) if isinstance(one, Tensor) else one
                for one, want in zip(leaves, self.wanted, strict=True)
            ]
            args, kwargs = tree_unflatten(roots, self.in_spec)
            state = dict(zip(self.names, args, strict=False))
            results = functional_call(self.mod, state, args[len(self.names) :], kwargs)
            results, self.out_spec = tree_flatten(results)
            gradients = self.gradients(roots, results)
            tensors = [(i, one) for i, one in enumerate(roots) if isinstance(one, Tensor)]
            self.written = [i for i, one in tensors if self.functional and any(changes(one))]
            values = [*(roots[i] for i in self.written), *results, *gradients]
        return tuple(shown(one) if isinstance(one, Tensor) else one for one in values)

    def gradients(self, roots: list[Any], results: list[Any]) -> list[Any]:
        """Returns the gradients of the loss."""
        self.given: list[int] = []
        if self.loss is None:
            return []
        loss = results[self.loss]
        if loss.numel() != 1 or not loss.requires_grad:
            raise RuntimeError(
                f"We require the output marked as the loss (at index {self.loss}) to be a scalar tensor that requires "
                f"a gradient, but it has shape {tuple(loss.shape)} and requires_grad={loss.requires_grad}"
            )
        asked = [i for i, want in enumerate(self.wanted) if want]
        found = grad(loss, [roots[i] for i in asked], allow_unused=True)
        self.given = [i for i, one in zip(asked, found, strict=True) if one is not None]
        results[:] = [one.detach() if isinstance(one, Tensor) and one.requires_grad else one for one in results]
        return [one for one in found if one is not None]


def signature_of(graph: GraphModule, run: Exported, names: list[str], count: int, in_spec: Any) -> GraphSignature:
    """Returns the roles of a graph's inputs and outputs. count: of parameters, which are the first of `names`."""
    inputs = [node.name for node in graph.graph.find_nodes(op="placeholder")]
    outputs = [str(one) for one in graph.graph.output_node().args[0]]
    mutated = dict(zip(outputs, run.written, strict=False))
    results = outputs[len(run.written) : len(outputs) - len(run.given)]
    gradients = dict(zip(outputs[len(outputs) - len(run.given) :], run.given, strict=True))
    owners = dict(zip(inputs, names, strict=False))
    parameters = range(count)
    buffers, arguments = range(count, len(names)), range(len(names), len(inputs))

    def called(numbers: dict[str, int], among: range) -> dict[str, str]:
        return {output: owners.get(inputs[i], inputs[i]) for output, i in numbers.items() if i in among}

    backward = None
    if run.loss is not None:
        backward = BackwardSignature(called(gradients, parameters), called(gradients, arguments), results[run.loss])
    return GraphSignature(
        names[:count],
        names[count:],
        inputs[len(names) :],
        results,
        {inputs[i]: names[i] for i in parameters},
        {inputs[i]: names[i] for i in buffers},
        called(mutated, buffers),
        called(mutated, parameters),
        called(mutated, arguments),
        in_spec,
        run.out_spec,
        backward,
    )


def aot_export_joint_simple(
    func: Callable[..., Any],
    args: Sequence[Any],
    *,
    trace_joint: bool,
    num_params_buffers: int = 0,
    decompositions: Any = None,
) -> GraphModule:
    """Returns the graph of a function of tensors and its gradients: `graph([*primals], [*tangents])`.

    The outputs are its results and the gradient of each argument, None where it has none. Without `trace_joint`, the
    graph of the function alone. num_params_buffers: taken, as all sizes are numbers.
    Errors: RuntimeError where the function writes an argument, or returns a view of one.
    """
    leaves, structure = tree_flatten((tuple(args), {}))
    compiled = Compiled(func, leaves, structure, decompositions, True, [() for _ in leaves])
    effects = compiled.effects
    if effects.written:
        raise RuntimeError(f"aot_export_joint_simple does not support input mutations. {effects.written}")
    if any(one.input is not None or one.layout is not None for one in effects.results):
        raise RuntimeError("aot_export_joint_simple does not support outputs that alias inputs or each other.")
    if len({memory(one) for one in leaves if isinstance(one, Tensor)}) != len(leaves):
        raise RuntimeError("aot_export_joint_simple does not support inputs that share memory.")
    found: list[GraphModule] = []

    def kept(joint: GraphModule, *_: Any, **__: Any) -> tuple[GraphModule, GraphModule]:
        found.append(joint)
        return joint, joint

    compiled.compile(nop, nop, nop, kept)
    graph = found[0] if found else compiled.forward
    output = graph.graph.output_node()
    values = list(output.args[0])
    if found:
        gradients = iter(values[compiled.count :])
        given = iter(None if pair is None else next(gradients) for pair in compiled.gradients)
        parts = values[: compiled.count], [next(given) if want else None for want in compiled.asked]
        values, out_spec = [*parts[0], *parts[1]], tree_flatten(parts)[1]
        codegen: Any = graph.graph._codegen
        graph.graph.set_codegen(PyTreeCodeGen(codegen.names, codegen.in_spec, out_spec))
    output.args = (values if found else tuple(values),)
    tidy(graph)
    return graph
