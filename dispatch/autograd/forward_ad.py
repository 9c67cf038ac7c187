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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from redispatch.dispatch import LAZY_BITS, STATE, OpOverload, Region, below, define_key, keyset, run, within
from redispatch.dispatch.layers.layer import layer
from redispatch.dispatch.tensor.wrapped import is_wrapped, level_of

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
        versions = [0 if tangent is None else tangent._version for tangent in tangents]
        if cls.setup_context is Function.setup_context:  # not under a transform: `apply` splits it there
            output, ctx = cls._applied(args, kwargs)
            moved = asked_for_tangents(cls, ctx, args, tangents, output)
        else:
            output = cls.apply(*args, **kwargs)
            moved = tangents_by_user(cls, args, tangents, output)
    check_tangents_of_written(args, tangents, versions, output, moved)
    return paired(output, moved, state.dual_level.attach)


def check_tangents_of_written(args: Any, tangents: list[Any], versions: list[int], output: Any, moved: Any) -> None:
    """RuntimeError where forward wrote an argument, and jvp did not write its tangent: others that share it would not
    see."""
    outputs, found = (one if isinstance(one, tuple) else (one,) for one in (output, moved))
    for value, tangent, version in zip(args, tangents, versions, strict=True):
        for one, new in zip(outputs, found, strict=True):
            if tangent is not None and one is value and (new is not tangent or tangent._version == version):
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
    with within(state.excluding(FORWARD_AD)):
        if not lies_alike(tensor, tangent):  # views of the dual are to be views of the tangent, too
            tangent = laid_out_like(tensor, tangent)
        return state.dual_level.attach(tensor.alias(), tangent)


def lies_alike(tensor: Any, tangent: Any) -> bool:
    """Whether any view of a tensor is one of its tangent: memory, strides and lazy bits are the same. Wrappers of
    transforms have strides alone."""
    if tangent._stride != tensor._stride and tensor.numel():
        return False
    if is_wrapped(tensor) or is_wrapped(tangent) or not (tensor._storage.has_data and tangent._storage.has_data):
        return True
    return tensor._keyset & LAZY_BITS == tangent._keyset & LAZY_BITS and (
        not tensor.numel() or (count_behind(tensor), tensor._offset) == (count_behind(tangent), tangent._offset)
    )


def count_behind(tensor: Any) -> int:
    """The number of elements in a tensor's memory."""
    return tensor._storage.nbytes() // tensor._dtype.itemsize


def laid_out_like(tensor: Any, tangent: Any) -> Any:
    """A copy of a tangent in memory that is as large as a tensor's, and lies there as that does."""
    if is_wrapped(tensor) or not tensor._storage.has_data:
        return tangent.new_empty_strided(tensor._shape, tensor._stride).copy_(tangent)
    memory = tangent.new_zeros((count_behind(tensor),))
    made = memory.as_strided(tensor._shape, tensor._stride, tensor._offset)
    made = made.conj() if tensor.is_conj() else made
    return (made._neg_view() if tensor.is_neg() else made).copy_(tangent)


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """The tensor without its tangent, a view, and the tangent; outside of a level, the tensor itself and None."""
    state = STATE.get()
    if state.dual_level is None or (level is not None and level < 0):
        return UnpackedDualTensor(tensor, None)
    with within(state.excluding(FORWARD_AD)):
        return UnpackedDualTensor(tensor.alias(), dual_tangent(tensor))


def __getattr__(name: str) -> int:
    """Gives `_current_level`: the number of the level that is entered, -1 where none is."""
    if name != "_current_level":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return -1 if STATE.get().dual_level is None else 0


class _set_fwd_grad_enabled(Region):
    """Has tangents computed, or not, from here on; as a context manager or decorator, for a block or a function."""

    def __init__(self, mode: bool) -> None:
        self.prev, self.mode = _is_fwd_grad_enabled(), mode
        exclude_forward_ad(not mode)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        exclude_forward_ad(not self.prev)
        return super().__call__(function)

    def __enter__(self) -> None:
        exclude_forward_ad(not self.mode)

    def __exit__(self, *error: Any) -> None:
        exclude_forward_ad(not self.prev)

    def clone(self) -> _set_fwd_grad_enabled:
        return _set_fwd_grad_enabled(self.mode)


def exclude_forward_ad(excluded: bool) -> None:
    state = STATE.get()
    STATE.set(state.replace(excluded=state.excluded | FORWARD_AD if excluded else state.excluded & ~FORWARD_AD))


def _is_fwd_grad_enabled() -> bool:
    return not STATE.get().excluded & FORWARD_AD
