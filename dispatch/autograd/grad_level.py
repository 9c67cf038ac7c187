"""GradLevel: what `grad` and `vjp` are while they are at work.

Every tensor is a wrapper with a history of its own. A call passes through the layers of autograd as any call does, but
only through these; then, at BackMode, it goes on with the wrappers' values, outside. So what is recorded here is a
graph of wrappers, and its backward is a computation like any other, which levels outside may watch.

Source: PyTorch's functorch (GradInterpreterPtr). Read next: forward.py, jvp_level.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redispatch.dispatch import STATE, LevelKind, OpOverload, State, TensorBase, call, wants_gradient, within
from redispatch.dispatch.layers.transforms import Level, each_tensor
from redispatch.dispatch.specialiser.annotations import inline
from redispatch.dispatch.tensor import SET_REQUIRES_GRAD, Tensor
from redispatch.dispatch.tensor.wrapped import Wrapped, level_of, look_like_values, watched, without_dead, wrapped

from .engine import run_backward
from .function import Function
from .function_levels import apply_recorded
from .history import gradient_edge


class GradLevel(Level):
    """`grad` or `vjp` at work."""

    def entered(self, state: State) -> State:
        return state.under(LevelKind(self.flag, state.grad_enabled)).with_grad(True)

    @inline
    def process(self, op: OpOverload, stack: list[Any]) -> Any:
        refuse_captured_writes(self, op, stack)
        lifted = each_tensor(op.schema, stack, self.lift)
        with within(STATE.get().differentiating()):
            return call(op, lifted)

    @inline
    def lift(self, tensor: Any) -> Any:
        """A tensor as one of this level, which is at work. What comes from outside is a constant here."""
        return tensor if type(tensor) is Wrapped and tensor._level is self else watched(tensor, self)

    @inline
    def wrap(self, value: Any) -> Any:
        return watched(value, self) if isinstance(value, Tensor) else value

    @inline
    def unwrap(self, tensor: Any) -> Any:
        return tensor._value if type(tensor) is Wrapped and tensor._level is self else tensor

    def apply_function(self, cls: type[Function], args: tuple[Any, ...]) -> Any:
        return apply_recorded(self, cls, args)

    def refresh(self, written: Any) -> None:
        look_like_values(written)

    def leaf(self, value: Any) -> Any:
        """A tensor of the level outside as one of this level, of which gradients are wanted."""
        tensor = wrapped(self.unwrap(without_dead(value)), self)
        SET_REQUIRES_GRAD()(tensor, True, "only Tensors of floating point dtype")
        return tensor

    def gradients(
        self, outputs: Sequence[Any], leaves: Sequence[Any], seeds: Sequence[Any], retain_graph: bool = False
    ) -> list[Any]:
        """The gradients of `outputs`, which have the gradients `seeds`, with respect to `leaves`: values of the level
        outside, None where nothing depends on a leaf.

        As long as this level is at work, it need not record its own backward; levels outside do if they want to. Later,
        the backward pass is a computation like any other.
        """
        roots = [(gradient_edge(out), seed) for out, seed in zip(outputs, seeds, strict=True) if wants_gradient(out)]
        roots = [(edge, seed) for edge, seed in roots if edge is not None and seed is not None]
        if not roots:
            return [None] * len(leaves)
        targets: Any = [gradient_edge(leaf) for leaf in leaves]
        edges: Any = [edge for edge, _ in roots]
        given = [seed for _, seed in roots]
        state = STATE.get()
        if self.alive:
            with within(state.passing_back()):
                found = run_backward(edges, given, retain_graph=retain_graph, targets=targets)
        else:
            found = run_backward(
                edges, given, retain_graph=retain_graph, create_graph=state.grad_enabled, targets=targets
            )
        return [None if gradient is None else self.unwrap(gradient) for gradient in found]


@inline
def refuse_captured_writes(level: Level, op: OpOverload, stack: list[Any]) -> None:
    """Raises RuntimeError where a call would write a tensor from outside: nobody would see the gradient of that."""
    for position in op.schema.mutable_positions:
        refuse_captured(level, op, stack[position])


def refuse_captured(level: Level, op: OpOverload, written: Any) -> None:
    for one in written if isinstance(written, list | tuple) else (written,):
        if isinstance(one, Tensor) and level_of(one) is not level:
            raise RuntimeError(
                "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place "
                f"operation ({op.qualified_name}) that would mutate a captured Tensor. This is not supported; please "
                "rewrite the function being transformed to explicitly accept the mutated Tensor(s) as inputs."
            )


# Derivatives of a function that is written in operators: run once more, recorded, and sent back -----------------------
#
# An operator's kernel cannot be differentiated, but what it computes can often be written as mathematics, too. Then the
# derivative need not be worked out by hand: it follows from the mathematics, and so do all further derivatives.


def pulled_back(
    function: Callable[..., Any], inputs: Sequence[Any], gradients: Sequence[Any], needs: Sequence[bool] | None = None
) -> list[Any]:
    """The gradients of `inputs`, of which some may be None, where those of the results of `function` are `gradients`.

    A result that is None has no gradient among these. None stands for zero, and for the gradient of an input that
    `needs` leaves out.
    """
    wanted = [isinstance(x, TensorBase) and need for x, need in zip(inputs, needs or [True] * len(inputs), strict=True)]
    with GradLevel() as level:
        given = [level.leaf(x) if want else x for x, want in zip(inputs, wanted, strict=True)]
        results = [y for y in function(*given) if y is not None]
        pairs = [(y, g) for y, g in zip(results, gradients, strict=True) if g is not None]
        leaves = [x for x, want in zip(given, wanted, strict=True) if want]
        found = iter(level.gradients([y for y, _ in pairs], leaves, [g for _, g in pairs]))
        return [next(found) if want else None for want in wanted]
