"""`aot_function`: a function whose forward and backward are traced ahead, and handed to compilers as graphs.

    f = aot_function(model, fw_compiler=show, bw_compiler=show)      # show(graph_module, example_inputs) -> a callable

The graphs have operators that write nothing, but for the inputs at their end. The backward keeps the inputs and works
out again what it needs of the forward: there is no partition of a joint graph, and a partitioner is never called.
Read next: ../fx/experimental/proxy_tensor.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn

from redispatch.autograd import Function, enable_grad, grad, no_grad
from redispatch.dispatch.pytree import tree_flatten, tree_unflatten
from redispatch.dispatch.tensor import Tensor
from redispatch.func import functional_call, functionalize
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.nn import Module

__all__ = [
    "aot_function",
    "aot_module",
    "compiled_function",
    "default_partition",
    "make_boxed_func",
    "min_cut_rematerialization_partition",
    "nop",
]


def nop(fx_g: Any, inputs: Any) -> Any:
    """A compiler that changes nothing."""
    return fx_g


def make_boxed_func(f: Callable[..., Any]) -> Any:
    """A function that takes its arguments as one list."""

    def boxed(args: Any) -> Any:
        return f(*args)

    boxed._boxed_call = True  # type: ignore[attr-defined]  # by which `run` knows it
    return boxed


def run(compiled: Any, inputs: list[Any]) -> Any:
    return compiled(inputs) if getattr(compiled, "_boxed_call", False) else compiled(*inputs)


def default_partition(joint_module: Any, inputs: Any, *, num_fwd_outputs: int) -> NoReturn:
    """NotImplementedError: the two graphs are traced apart, so there is nothing to part."""
    raise NotImplementedError("aot_function: forward and backward are traced apart; there is no joint graph to part")


min_cut_rematerialization_partition = default_partition


def aot_function(
    fn: Callable[..., Any],
    fw_compiler: Callable[..., Any],
    bw_compiler: Callable[..., Any] | None = None,
    partition_fn: Any = default_partition,
    decompositions: Any = None,
    *,
    disable_functionalization: bool = False,
    **options: Any,
) -> Callable[..., Any]:
    """Returns `fn`, which is traced at its first call with tensors that look as they do, and compiled then."""
    made: dict[Any, Graphs] = {}

    @wraps(fn)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree_flatten((args, kwargs))
        key = tuple(map(look, leaves)), str(structure)
        if key not in made:
            made[key] = Graphs(fn, leaves, structure, disable_functionalization, decompositions)
            made[key].compile(fw_compiler, bw_compiler or fw_compiler)
        return made[key].run(leaves)

    return compiled


compiled_function = aot_function


def aot_module(mod: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns a module that runs as `aot_function` has it, with the parameters and buffers of `mod`."""

    def functional(state: dict[str, Any], args: Any, kwargs: Any) -> Any:
        return functional_call(mod, state, args, kwargs)

    compiled = aot_function(functional, *args, **kwargs)

    class AOTModule(Module):
        def __init__(self) -> None:
            super().__init__()
            self.orig_module = mod

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return compiled({**dict(mod.named_parameters()), **dict(mod.named_buffers())}, args, kwargs)

    return AOTModule()


def look(leaf: Any) -> Any:
    """Returns what a graph depends on: how a tensor looks, or the value itself."""
    if not isinstance(leaf, Tensor):
        return leaf if isinstance(leaf, int | float | str | bool | None) else id(leaf)
    return tuple(leaf.shape), leaf.stride(), leaf.dtype, str(leaf.device), leaf.requires_grad


class Graphs:
    """The two graphs of one function for arguments that look alike."""

    def __init__(self, fn: Any, leaves: list[Any], structure: Any, writes: bool, decompositions: Any) -> None:
        self.fn, self.leaves, self.structure, self.decompositions = fn, list(leaves), structure, decompositions
        self.places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        self.wanted = [leaves[i].requires_grad for i in self.places]
        self.pure = self.flat if writes else functionalize(self.flat)
        self.results: list[Any] = []  # the leaves of the result, of which the tensors come from the graph
        self.differentiable: list[bool] = []
        self.written: list[bool] = []  # which of the inputs the function writes

    def flat(self, *tensors: Any) -> list[Any]:
        """The function of its tensors alone, which returns those of the result."""
        leaves = list(self.leaves)
        for i, tensor in zip(self.places, tensors, strict=True):
            leaves[i] = tensor
        args, kwargs = tree_unflatten(leaves, self.structure)
        self.results, self.returned = tree_flatten(self.fn(*args, **kwargs))
        return [one for one in self.results if isinstance(one, Tensor)]

    def gradients(self, *tensors: Any) -> Any:
        """The gradients of the inputs that want one, for the inputs and the gradients of the results."""
        count = len(self.places)
        with enable_grad():
            inputs = [one.detach().requires_grad_(want) for one, want in zip(tensors[:count], self.wanted, strict=True)]
            outputs = self.flat(*map(self.handed, inputs, self.written))
            self.differentiable = [one.requires_grad for one in outputs]
            used = [(one, tangent) for one, tangent in zip(outputs, tensors[count:], strict=True) if one.requires_grad]
            asked = [one for one in inputs if one.requires_grad]
            if not used:
                return [None for _ in asked]
            return list(grad([one for one, _ in used], asked, [tangent for _, tangent in used], allow_unused=True))

    def handed(self, tensor: Tensor, written: bool) -> Tensor:
        """Returns what the function gets for an input: a copy, where it writes it and may do so once more."""
        return tensor.clone() if written else tensor.alias() if tensor.requires_grad else tensor

    def compile(self, fw_compiler: Any, bw_compiler: Any) -> None:
        examples = [self.leaves[i].detach().clone() for i in self.places]
        with no_grad():
            traced = make_fx(self.pure, self.decompositions)(*(one.clone() for one in examples))
            copies = [one.clone() for one in examples]
            outputs = [one.detach() for one in self.flat(*copies)]
            # By the values: batch_norm counts no version where it writes its statistics.
            self.written = [
                one._version > 0 or not one.equal(first) for one, first in zip(copies, examples, strict=True)
            ]
        self.forward = fw_compiler(traced, examples)
        self.backward = None
        if any(self.wanted):
            inputs = [*examples, *(one.clone() for one in outputs)]
            traced = make_fx(self.gradients, self.decompositions)(*inputs)
            if any(self.differentiable):
                self.backward = bw_compiler(traced, inputs)
        self.leaves = [None if isinstance(leaf, Tensor) else leaf for leaf in self.leaves]

    def run(self, leaves: list[Any]) -> Any:
        tensors = [leaves[i] for i in self.places]
        found = Ahead.apply(self, *tensors) if self.backward is not None else run(self.forward, tensors)
        found = iter(found if isinstance(found, list | tuple) else [found])
        results = [next(found) if isinstance(one, Tensor) else one for one in self.results]
        return tree_unflatten(results, self.returned)


class Ahead(Function):
    """Runs the one graph, and in backward the other."""

    @staticmethod
    def forward(ctx: Any, graphs: Graphs, *tensors: Any) -> Any:
        kept = [one.clone() if written else one for one, written in zip(tensors, graphs.written, strict=True)]
        results = run(graphs.forward, list(tensors))
        ctx.graphs = graphs
        ctx.save_for_backward(*kept)
        ctx.mark_non_differentiable(*(one for one, d in zip(results, graphs.differentiable, strict=True) if not d))
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *tangents: Any) -> Any:
        found = iter(run(ctx.graphs.backward, [*(one.detach() for one in ctx.saved_tensors), *tangents]))
        return None, *(next(found) if wanted else None for wanted in ctx.graphs.wanted)
