"""PyTorch's private names for its transforms (`torch._C._functorch`), over the levels of dispatch/layers/transforms.py.

A level that is entered by `_vmap_increment_nesting` is left by `_vmap_decrement_nesting`, as by a `with` block.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from redispatch.dispatch import STATE, State
from redispatch.dispatch.autograd import GradLevel, JvpLevel
from redispatch.dispatch.autograd.function import SINGLE_LEVEL
from redispatch.dispatch.core.state import AT_WORK
from redispatch.dispatch.layers.transforms import Level, without_dead
from redispatch.dispatch.tensor import Tensor
from redispatch.dispatch.tensor.functional import functional, is_functional
from redispatch.dispatch.tensor.wrapped import is_wrapped, level_of, wrapped
from redispatch.dispatch.transforms.functionalize import FunctionalizeLevel
from redispatch.dispatch.transforms.vmap_level import VmapLevel
from redispatch.kernels.batching.fallback import FALLBACK

# Levels ---------------------------------------------------------------------------------------------------------------


def current_level() -> int:
    """The number of the innermost level, counted from 1. RuntimeError outside of all transforms."""
    return innermost().number


def maybe_current_level() -> int | None:
    """The number of the innermost level, or None."""
    return len(STATE.get().levels) or None


def innermost() -> Any:
    level = STATE.get().innermost
    if level is None:
        raise RuntimeError("DynamicLayerStack is empty: no transform is at work here")
    return level


def entered(level: Level) -> int:
    """Enters a level, which `left` leaves; returns its number."""
    return level.__enter__().number


def left(kind: type[Level]) -> int:
    """Leaves the innermost level and returns its number. RuntimeError where that is of another kind."""
    level = innermost()
    if not isinstance(level, kind):
        raise RuntimeError(f"the innermost transform is a {type(level).__name__}, not a {kind.__name__}")
    level.__exit__()
    return level.number


def at(number: int) -> Any:
    """The level of that number. RuntimeError where none is at work."""
    if not 1 <= number <= len(STATE.get().levels):
        raise RuntimeError(f"no transform is at work at level {number}")
    return AT_WORK.get()[number - 1]


class RandomnessType(Enum):
    """The behaviour under vmap of operators that draw numbers."""

    Error, Same, Different = range(3)


def _vmap_increment_nesting(batch_size: int, randomness: str) -> int:
    """Enters a vmap and returns its number."""
    return entered(VmapLevel(batch_size, randomness))


def _vmap_decrement_nesting() -> int:
    return left(VmapLevel)


def _grad_increment_nesting() -> int:
    """Enters a level that records, and returns its number."""
    return entered(GradLevel())


def _grad_decrement_nesting() -> int:
    return left(GradLevel)


def _jvp_increment_nesting() -> int:
    """Enters a level of forward mode, and returns its number."""
    return entered(JvpLevel())


def _jvp_decrement_nesting() -> int:
    return left(JvpLevel)


def _func_increment_nesting(reapply_views: bool) -> int:
    """Enters a level that functionalizes, and returns its number."""
    return entered(FunctionalizeLevel(reapply_views))


def _func_decrement_nesting() -> int:
    return left(FunctionalizeLevel)


def count_jvp_interpreters() -> int:
    """The number of levels of forward mode at work."""
    return sum(isinstance(level, JvpLevel) for level in levels())


def levels() -> tuple[Any, ...]:
    return AT_WORK.get()[: len(STATE.get().levels)]


# Tensors of levels ----------------------------------------------------------------------------------------------------


def _add_batch_dim(tensor: Tensor, batch_dim: int, level: int) -> Any:
    """One example of a batch, under the vmap of that number."""
    return at(level).wrap(tensor, batch_dim % max(tensor.dim(), 1))


def _remove_batch_dim(tensor: Tensor, level: int, batch_size: int, out_dim: int) -> Any:
    """The whole batch of an example, with its dimension at `out_dim`; repeated where it is the same for all."""
    own = at(level).dims_of(tensor)
    if own is None:
        value = tensor.expand((batch_size, *tensor.shape))
        return value.movedim(0, out_dim) if out_dim else value
    value = tensor._value
    return value if own == out_dim else value.movedim(own, out_dim)


def _unwrap_batched(tensor: Tensor, level: int) -> tuple[Any, int | None]:
    """(the batch, its dimension) of an example; the tensor and None where it is not batched there."""
    dim = at(level).dims_of(tensor)
    return (tensor, None) if dim is None else (tensor._value, dim)


def _wrap_for_grad(tensor: Tensor, level: int) -> Any:
    """The tensor as one of the level of that number."""
    return wrapped(tensor, at(level))


def _unwrap_for_grad(tensor: Tensor, level: int) -> Any:
    """The value in a wrapper of that level; other tensors as they are."""
    own = getattr(tensor, "_level", None)
    return tensor._value if own is not None and own.number == level else tensor


def _wrap_functional_tensor(tensor: Tensor, level: int) -> Any:
    """The tensor as one that the functionalizing level of that number wraps."""
    return functional(tensor, at(level))


def _unwrap_functional_tensor(tensor: Any, add_back_views: bool) -> Any:
    """The value of a functional tensor, with all that was written to it."""
    return tensor._level.unwrap(tensor)


def _assert_wrapped_functional(unwrapped: Any, wrapped: Any) -> None:
    """AssertionError unless the second is a functional tensor around the first."""
    assert is_functional(wrapped) and not is_functional(unwrapped)


def _propagate_functional_input_mutation(unwrapped: Tensor, wrapped: Any) -> None:
    """Writes to a tensor what was written to the functional tensor around it."""
    if wrapped._store.generation:
        unwrapped.copy_(wrapped.current())


def get_unwrapped(tensor: Tensor) -> Any:
    """The value in a wrapper. RuntimeError for other tensors."""
    if is_wrapped(tensor):
        return tensor._value
    if is_functional(tensor):
        return tensor.current()
    raise RuntimeError("No wrappers present!")


def unwrap_if_dead(tensor: Tensor) -> Any:
    """The value in a wrapper whose level is gone; other tensors as they are."""
    return without_dead(tensor)


def is_dead_tensor_wrapper(tensor: Tensor) -> bool:
    return is_wrapped(tensor) and level_of(tensor) is None


def is_batchedtensor(tensor: Any) -> bool:
    """Returns whether a tensor is an example of a batch."""
    return is_wrapped(tensor) and tensor._bdim is not None


def is_gradtrackingtensor(tensor: Any) -> bool:
    """Returns whether a tensor is a wrapper of `grad`, `vjp` or `jvp`."""
    return is_wrapped(tensor) and tensor._bdim is None


def is_functionaltensor(tensor: Any) -> bool:
    return is_functional(tensor)


def is_legacy_batchedtensor(tensor: Any) -> bool:
    """Returns False: of examples there is one kind."""
    return False


def is_functorch_wrapped_tensor(tensor: Any) -> bool:
    """Returns whether a tensor is a wrapper of some transform."""
    return is_wrapped(tensor) or is_functional(tensor)


def maybe_get_level(tensor: Any) -> int:
    """The number of the level whose wrapper a tensor is; -1 for plain tensors, -2 where the level is gone."""
    level = getattr(tensor, "_level", None)
    return -1 if level is None else level.number if level.alive else -2


def maybe_get_bdim(tensor: Any) -> int:
    """The dimension of the batch in an example's value; -1 where there is none."""
    return tensor._bdim if is_batchedtensor(tensor) else -1


def reshape_dim_into(src: int, dst: int, x: Tensor) -> Any:
    """The dimension `src` as the outer part of the dimension that is `dst` without it."""
    src, dst = src % x.dim(), dst % (x.dim() - 1)
    shape = [size for dim, size in enumerate(x.shape) if dim != src]
    shape[dst] *= x.shape[src]
    return x.movedim(src, dst).reshape(shape)


def reshape_dim_outof(src: int, size1: int, x: Tensor) -> Any:
    """The dimension `src` as two, the outer of `size1`. RuntimeError where its size is no multiple of that."""
    src %= x.dim()
    if size1 and x.shape[src] % size1:
        raise RuntimeError(f"dimension {src} of size {x.shape[src]} cannot be split in {size1} parts")
    inner = x.shape[src] // size1 if size1 else 0
    return x.reshape((*x.shape[:src], size1, inner, *x.shape[src + 1 :]))


# The stack of levels, as PyTorch's Python code walks it --------------------------------------------------------------


class TransformType(Enum):
    """The kinds of levels."""

    Torch, Vmap, Grad, Jvp, Functionalize = range(5)


KINDS = {
    VmapLevel: TransformType.Vmap,
    GradLevel: TransformType.Grad,
    JvpLevel: TransformType.Jvp,
    FunctionalizeLevel: TransformType.Functionalize,
}


class CInterpreter:
    """A level, as the stack of PyTorch shows it."""

    _level: Any

    def __init__(self, of: Any) -> None:
        """of: a level, or another interpreter of it."""
        self._level = of._level if isinstance(of, CInterpreter) else of

    def key(self) -> TransformType:
        return KINDS[type(self._level)]

    def level(self) -> int:
        return self._level.number

    def lift(self, tensor: Tensor) -> Any:
        """The tensor as one of this level."""
        return self._level.lift(tensor) if isinstance(self._level, GradLevel) else self._level.wrap(tensor)

    def batchSize(self) -> int:
        return self._level.size

    def randomness(self) -> RandomnessType:
        return RandomnessType[self._level.randomness.capitalize()]

    def prevGradMode(self) -> bool:
        """Returns whether calls were recorded where the level was entered."""
        return STATE.get().levels[self._level.number - 1].records_outside

    def prevFwdGradMode(self) -> bool:
        """Returns True: forward mode is never off outside of a level."""
        return True

    def functionalizeAddBackViews(self) -> bool:
        return self._level.reapply_views


CGradInterpreterPtr = CJvpInterpreterPtr = CVmapInterpreterPtr = CFunctionalizeInterpreterPtr = CInterpreter


class DynamicLayer(CInterpreter):
    """A level that was taken off the stack, with the state to which `push_dynamic_layer_stack` goes back."""

    _state: State


def get_interpreter_stack() -> list[CInterpreter] | None:
    """The levels at work, the outermost first, or None."""
    return [CInterpreter(level) for level in levels()] or None


def peek_interpreter_stack() -> CInterpreter:
    """The innermost level. RuntimeError outside of all transforms."""
    return CInterpreter(innermost())


def get_dynamic_layer_stack_depth() -> int:
    return len(STATE.get().levels)


def pop_dynamic_layer_stack() -> DynamicLayer:
    """Takes the innermost level off the stack, without leaving it. RuntimeError where there is none."""
    taken = DynamicLayer(innermost())
    taken._state = STATE.get()
    STATE.set(taken._state.outer())
    return taken


def push_dynamic_layer_stack(layer: DynamicLayer) -> int:
    """Puts back a level that `pop_dynamic_layer_stack` took, and returns its number."""
    STATE.set(layer._state)
    return layer.level()


def pop_dynamic_layer_stack_and_undo_to_depth(depth: int) -> None:
    """Leaves all levels but the `depth` outermost."""
    while len(STATE.get().levels) > depth:
        innermost().__exit__()


# Settings -------------------------------------------------------------------------------------------------------------


def _is_vmap_fallback_enabled() -> bool:
    """Returns whether operators without a batching rule may be called once for each example."""
    return FALLBACK.enabled


def _set_vmap_fallback_enabled(enabled: bool) -> None:
    FALLBACK.enabled = enabled


def _set_vmap_fallback_warning_enabled(enabled: bool) -> None:
    FALLBACK.warns = enabled


def get_single_level_autograd_function_allowed() -> bool:
    """Returns whether a Function without `setup_context` may be applied under a transform."""
    return SINGLE_LEVEL.get()


def set_single_level_autograd_function_allowed(allowed: bool) -> None:
    SINGLE_LEVEL.set(allowed)


def get_inplace_requires_grad_allowed() -> bool:
    """Returns whether the innermost level lets a function call `requires_grad_`."""
    return bool(STATE.get().levels) and getattr(innermost(), "allows_requires_grad", False)


def set_inplace_requires_grad_allowed(allowed: bool) -> None:
    innermost().allows_requires_grad = allowed
