"""make_graphed_callables: functions and modules whose forward and backward passes are CUDA graphs.

Each is run a few times, recorded once, forward in the given order and backward in the reverse one, all in one pool; and
becomes a `Function` that copies its arguments to where they were recorded, and replays. Read graphs.py before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from redispatch.amp.autocast_mode import is_autocast_cache_enabled, is_autocast_enabled
from redispatch.dispatch import pytree
from redispatch.dispatch.autograd import Function, grad
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.cuda.runtime.graphs import CUDAGraph, Handle, graph, graph_pool_handle, warming_up
from redispatch.kernels.ops.creation import empty_like_op, zeros_like_op
from redispatch.nn import Module


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: Handle | None = None,
) -> Any:
    """Callables that do the same by replaying graphs: one for one, a tuple for a tuple. A module is changed.

    sample_args: the arguments of each, as tensors that look like those of later calls, `requires_grad` included. A
        module uses its graphs in the mode (training or not) in which it was recorded, and runs as before in the other.
    allow_unused_input: whether gradients may not depend on some of the arguments.

    Errors: RuntimeError while autocast caches its casts, and for modules with hooks, or with buffers that require
    gradients; ValueError for arguments that are no tensors.
    """
    if is_autocast_enabled("cuda") and is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables does not support the autocast caching. Please set `cache_enabled=False`."
        )
    one = not isinstance(callables, tuple)
    given = (callables,) if one else callables
    samples: tuple[tuple[Any, ...], ...] = (sample_args,) if one else sample_args
    for each in given:
        if isinstance(each, Module):
            check_module(each)
    handle = pool or graph_pool_handle()
    passes = [Passes(each, args, allow_unused_input, handle) for each, args in zip(given, samples, strict=True)]
    with warming_up():
        for each in passes:
            for _ in range(num_warmup_iters):
                each.run()
    for each in passes:
        each.record_forward()
    for each in reversed(passes):
        each.record_backward()
    made = tuple(graphed(each, function) for each, function in zip(passes, given, strict=True))
    return made[0] if one else made


def check_module(module: Module) -> None:
    if module._backward_hooks or module._forward_hooks or module._forward_pre_hooks:
        raise RuntimeError(
            "Modules must not have hooks registered at the time they are passed. However, registering hooks on modules "
            "after passing them through make_graphed_callables is allowed."
        )
    if any(b.requires_grad for b in module.buffers()):
        raise RuntimeError(
            "In any :class:`~torch.nn.Module` passed to :func:`~make_graphed_callables`, only parameters may be "
            "trainable. All buffers must have ``requires_grad=False``."
        )


@dataclass(eq=False)
class Passes:
    """A function with the tensors at whose addresses it is recorded, and its two graphs."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    unused: bool
    pool: Handle

    def __post_init__(self) -> None:
        self.leaves, self.spec = pytree.tree_flatten(self.args)
        if not all(isinstance(x, Tensor) for x in self.leaves):
            raise ValueError(
                "In the beta API, sample_args for each callable must contain only Tensors. Other types are not allowed."
            )
        weights = tuple(self.function.parameters()) if isinstance(self.function, Module) else ()
        self.inputs: tuple[Tensor, ...] = (*self.leaves, *weights)
        self.forward, self.backward = CUDAGraph(), CUDAGraph()
        self.gradients: tuple[Tensor | None, ...] = (None,) * len(self.inputs)

    def run(self) -> None:
        """Once through both passes."""
        outputs = pytree.tree_leaves(self.function(*self.args))
        self.differentiate(outputs, [zeros_like_op.functional(y) for y in outputs if y.requires_grad])

    def differentiate(self, outputs: Sequence[Tensor], by: Sequence[Tensor]) -> tuple[Tensor | None, ...]:
        """The gradients of all inputs, None for those that need none."""
        wanted = [x for x in self.inputs if x.requires_grad]
        ends = [y for y in outputs if y.requires_grad]
        if not wanted or not ends:
            return (None,) * len(self.inputs)
        found = iter(grad(ends, wanted, list(by), allow_unused=self.unused))
        return tuple(next(found) if x.requires_grad else None for x in self.inputs)

    def record_forward(self) -> None:
        with graph(self.forward, pool=self.pool):
            result = self.function(*self.args)
        self.outputs, self.out_spec = pytree.tree_flatten(result)

    def record_backward(self) -> None:
        self.arriving = [empty_like_op.functional(y) if y.requires_grad else None for y in self.outputs]
        if any(y is not None for y in self.arriving) and any(x.requires_grad for x in self.inputs):
            with graph(self.backward, pool=self.pool):
                self.gradients = self.differentiate(self.outputs, [y for y in self.arriving if y is not None])


def graphed(passes: Passes, function: Callable[..., Any]) -> Any:
    """Returns a function that replays the passes; a module with that in the place of its `forward`."""

    class Graphed(Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Tensor) -> tuple[Tensor, ...]:
            for recorded, x in zip(passes.leaves, inputs, strict=False):
                if recorded.data_ptr() != x.data_ptr():
                    recorded.detach().copy_(x)
            passes.forward.replay()
            return tuple(y.detach() for y in passes.outputs)

        @staticmethod
        def backward(ctx: Any, *arrived: Tensor) -> tuple[Tensor | None, ...]:
            for recorded, y in zip(passes.arriving, arrived, strict=True):
                if recorded is not None and recorded.data_ptr() != y.data_ptr():
                    recorded.copy_(y)
            passes.backward.replay()
            return tuple(None if x is None else x.detach() for x in passes.gradients)

    weights = passes.inputs[len(passes.leaves) :]

    def replayed(*args: Any) -> Any:
        leaves, spec = pytree.tree_flatten(args)
        if spec != passes.spec:
            raise TypeError(f"recorded for arguments like {passes.spec}, and called with {spec}")
        return pytree.tree_unflatten(list(Graphed.apply(*leaves, *weights)), passes.out_spec)

    if not isinstance(function, Module):
        return replayed
    module, eager, mode = function, function.forward, function.training

    def forward(*args: Any, **kwargs: Any) -> Any:
        return replayed(*args) if module.training == mode and not kwargs else eager(*args, **kwargs)

    module.forward = forward
    return module
