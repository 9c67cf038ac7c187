"""Forward mode for users: `redispatch.autograd.forward_ad`, by custom called fwAD.

    with fwAD.dual_level():
        x = fwAD.make_dual(primal, tangent)
        y, moved = fwAD.unpack_dual(f(x))       # f(primal), and how it moves where x moves along `tangent`

A dual tensor is a view of its primal with a tangent beside it. While a level is entered, every call stops at a key of
its own, ForwardAD, which `define_key` puts above all others that compute: so tangents are computed by calls that are
recorded (forward over reverse), that transforms map and differentiate (a batch of tangents under vmap), and that modes
and subclasses see. Outside of a level nothing is asked.

Read next: forward.py, what the tangent of a result is.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from redispatch.dispatch import STATE, OpOverload, Setting, below, define_key, keyset, run, within
from redispatch.dispatch.layers.layer import layer
from redispatch.dispatch.tensor.wrapped import level_of

from .forward import composite_kernel, is_given, parts_kernel, tangent_of_call
from .function import DUAL_CALL, Function
from .function_levels import asked_for_tangents, check_size, paired, tangents_by_user
from .jvp_level import JvpLevel, put, tangent_of
from .saving import kept_twin

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

define_key("ForwardAD", above="FuncTorchDynamicLayerFrontMode")
FORWARD_AD = keyset("ForwardAD")
BELOW_FORWARD_AD = below("ForwardAD")


class DualLevel:
    """The level that is entered: it knows the tensors to which it gave a tangent, and takes it back."""

    def __init__(self) -> None:
        self._duals: list[weakref.ref[Any]] = []

    def attach(self, tensor: Any, tangent: Any) -> Any:
        if tangent is not None:
            for one in (tensor, kept_twin(tensor)):
                if one is not None:
                    one._tangent = tangent
                    self._duals.append(weakref.ref(one))
        return tensor

    def clear(self) -> None:
        for one in self._duals:
            tensor = one()
            if tensor is not None:
                tensor._tangent = None
        self._duals.clear()


@layer("ForwardAD")
def forward_ad(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Runs the operator below, and works out the tangent of its result."""
    state = STATE.get()
    kernel = composite_kernel(op)
    if kernel is not None:
        return kernel.boxed(op, keyset, stack)
    tangents = given_tangents(stack)
    if tangents is None:  # under a transform there may be some further out
        return run(op, keyset & BELOW_FORWARD_AD, stack)
    if (parts := parts_kernel(op)) is not None:
        return parts.boxed(op, keyset, stack)
    with within(state.excluding(FORWARD_AD)):
        return with_tangent(op, keyset & BELOW_FORWARD_AD, stack, tangents, state.dual_level)


def given_tangents(stack: list[Any]) -> list[Any] | None:
    """The tangents of all arguments; None where none has any."""
    tangents = [dual_tangent(value) for value in stack]
    return tangents if any(map(is_given, tangents)) else None


def dual_tangent(value: Any) -> Any:
    """The tangent of an argument, None for zero. What a `jvp` at work has put beside its wrappers is none."""
    if isinstance(value, list):
        return [dual_tangent(item) for item in value]
    return None if isinstance(level_of(value), JvpLevel) else tangent_of(value)


def with_tangent(op: OpOverload, keyset: int, stack: list[Any], tangents: list[Any], level: DualLevel) -> Any:
    if op.schema.is_out:
        raise NotImplementedError(
            f"Trying to use forward AD with {op._opname}_{op._overloadname} that does not support it because it is an "
            "out= function"
        )
    result, tangent = tangent_of_call(op, stack, tangents, lambda: run(op, keyset, stack))
    return put(op.schema, stack, result, tangent, level.attach)


def dual_call(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`cls.apply` where arguments may have tangents: forward runs without, the user's jvp says the rest."""
    state = STATE.get()
    tangents = [dual_tangent(value) for value in args]
    with within(state.excluding(FORWARD_AD).replace(dual_level=None)):
        if all(tangent is None for tangent in tangents):
            return cls.apply(*args, **kwargs)
        if cls.setup_context is Function.setup_context and not state.levels:
            output, ctx = cls._applied(args, kwargs)
            moved = asked_for_tangents(cls, ctx, args, tangents, output)
        else:
            output = cls.apply(*args, **kwargs)
            moved = tangents_by_user(cls, args, tangents, output)
    check_tangents_of_written(args, tangents, output, moved)
    return paired(output, moved, state.dual_level.attach)


def check_tangents_of_written(args: Any, tangents: list[Any], output: Any, moved: Any) -> None:
    """RuntimeError where forward wrote an argument, and jvp made a new tangent: others that share it would not see."""
    outputs, found = (one if isinstance(one, tuple) else (one,) for one in (output, moved))
    for value, tangent in zip(args, tangents, strict=True):
        for one, new in zip(outputs, found, strict=True):
            if tangent is not None and one is value and new is not tangent:
                raise RuntimeError(
                    "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is "
                    "modifying an input inplace, then the jvp function must modify the corresponding gradient inplace."
                )


DUAL_CALL.fill(dual_call)

# For users -----------------------------------------------------------------------------------------------------------


class UnpackedDualTensor(NamedTuple):
    """A tensor without its tangent, and the tangent, None for zero."""

    primal: Any
    tangent: Any


def enter_dual_level() -> int:
    """Enters the level in which dual tensors may be made, and returns its number, 0: there is one at a time."""
    state = STATE.get()
    if state.dual_level is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    STATE.set(state.replace(dual_level=DualLevel(), included=state.included | FORWARD_AD))
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Leaves the level: all tangents are gone."""
    state = STATE.get()
    if level not in (None, 0):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    if state.dual_level is None:
        raise RuntimeError("Dual level must be a positive number.")
    state.dual_level.clear()
    STATE.set(state.replace(dual_level=None, included=state.included & ~FORWARD_AD))


@contextmanager
def dual_level() -> Iterator[int]:
    """A region in which dual tensors may be made; tangents do not outlive it."""
    level = enter_dual_level()
    try:
        yield level
    finally:
        exit_dual_level(level=level)


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """A view of `tensor` with `tangent` beside it.

    Errors: RuntimeError where no level is entered, the shapes differ, or `tensor` is dual already; ValueError for
    tensors that are neither floating point nor complex.
    """
    state = STATE.get()
    if state.dual_level is None or (level is not None and level < 0):
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, one in (("primal", tensor), ("tangent", tangent)):
        if not (one.is_floating_point() or one.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {one.dtype}")
    check_size(tensor, tangent)
    if isinstance(level_of(tensor), JvpLevel):
        raise NotImplementedError(
            "make_dual: this tensor belongs to a func.jvp that is at work, which keeps a tangent of its own beside it. "
            "Use func.jvp for both."
        )
    if dual_tangent(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not "
            "supported."
        )
    if dual_tangent(tangent) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level0 is not supported."
        )
    if tangent._stride != tensor._stride:  # views of the dual are to be views of the tangent, too
        tangent = tangent.new_empty_strided(tensor._shape, tensor._stride).copy_(tangent)
    with within(state.excluding(FORWARD_AD)):
        return state.dual_level.attach(tensor.alias(), tangent)


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """The tensor without its tangent, a view, and the tangent; outside of a level, the tensor itself and None."""
    state = STATE.get()
    if state.dual_level is None or (level is not None and level < 0):
        return UnpackedDualTensor(tensor, None)
    with within(state.excluding(FORWARD_AD)):
        return UnpackedDualTensor(tensor.alias(), dual_tangent(tensor))


class _set_fwd_grad_enabled(Setting):
    """A region in which tangents are computed, or not."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        super().__init__(excluded=lambda state: state.excluded & ~FORWARD_AD if mode else state.excluded | FORWARD_AD)

    def clone(self) -> _set_fwd_grad_enabled:
        return _set_fwd_grad_enabled(self.mode)


def _is_fwd_grad_enabled() -> bool:
    return not STATE.get().excluded & FORWARD_AD
