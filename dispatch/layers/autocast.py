"""Autocast: runs an operator in the dtype that suits it, by casting its arguments on the way down.

`autocast(device_type)` un-excludes one Autocast key and sets a dtype in the state. Each operator on a device's list has
a policy; operators that are on no list pass at no cost. The layer casts, then calls the operator from the top again,
with its own key excluded: the casts are recorded by autograd, so that gradients come back in the parameter's dtype.

Note [What is cast]
Eligible are floating-point tensors on the region's device, float64 excepted. Only casts of leaves that require grad
are worth keeping: they are the parameters, used again and again. A kept cast is keyed by the parameter's version and
by whether gradients are recorded, so that a write inside the region is seen (PyTorch 2.13 keeps on using the stale
cast).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ..base import TensorBase
from ..interpreter import call
from ..key import DispatchKey
from ..keyset import keyset as keys
from ..marks import inline, leaf, pure
from ..operator import OpOverload
from ..registry import place_of
from ..rules import RuleTable, Slot
from ..state import AUTOCAST_KEYS, STATE, within
from .layer import boxed_kernel, skipped

# (tensor, dtype) -> the tensor in that dtype, through the dispatcher; and facts about dtypes that this room lacks
CAST: Slot[Callable[[Any, Any], Any]] = Slot("the operator that autocast casts by")
FLOAT32: Slot[Any] = Slot("the dtype float32")
WIDER: Slot[Callable[[Any, Any], Any]] = Slot("the dtype to which two dtypes promote")

# device type -> its Autocast key; the room that knows of users' devices adds theirs
KEY_OF_DEVICE = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA"}


class CastCache:
    """The casts of parameters made within one outermost autocast region."""

    def __init__(self) -> None:
        self._casts: dict[tuple[int, Any, bool], tuple[weakref.ref[Any], int, Any]] = {}

    def cast(self, tensor: Any, dtype: Any) -> Any:
        """`tensor` in `dtype`, from the cache where the parameter has not been written since."""
        key = id(tensor), dtype, STATE.get().grad_enabled
        version = tensor._counter[0]
        found = self._casts.get(key)
        if found is not None and found[0]() is tensor and found[1] == version:
            return found[2]
        result = CAST()(tensor, dtype)
        self._casts[key] = weakref.ref(tensor), version, result
        return result


def kept_cast(cache: CastCache, tensor: Any, dtype: Any) -> TensorBase:
    """A parameter in another dtype, from the region's cache."""
    return cache.cast(tensor, dtype)


# Policies: (operator, stack, device type) -> the stack with casts -----------------------------------------------------

Policy = Callable[[OpOverload, list[Any], str], list[Any]]


@inline
def lower_precision_fp(op: OpOverload, stack: list[Any], device: str) -> list[Any]:
    """Every eligible argument in the region's dtype: matrix products, where the hardware gains."""
    return cast_all(stack, device, region_dtype(device))


@inline
def fp32(op: OpOverload, stack: list[Any], device: str) -> list[Any]:
    """Every eligible argument in float32: losses and the like, where few bits hurt."""
    return cast_all(stack, device, FLOAT32())


@inline
def fp32_set_opt_dtype(op: OpOverload, stack: list[Any], device: str) -> list[Any]:
    """`dtype=float32` where the user gave none: reductions, which then accumulate and return float32."""
    position = next(i for i, argument in enumerate(op.schema.arguments) if argument.name == "dtype")
    if stack[position] is None and eligible(stack[0], device):
        return [*stack[:position], FLOAT32(), *stack[position + 1 :]]
    return stack


@inline
def promote(op: OpOverload, stack: list[Any], device: str) -> list[Any]:
    """Every eligible argument in the widest dtype among them: `cat` and `stack`, which want one dtype.

    Errors: RuntimeError for a 16-bit type other than the region's, which is no wider and no narrower.
    """
    widest = widest_dtype(stack, device, region_dtype(device))
    return stack if widest is None else cast_all(stack, device, widest)


@leaf
def widest_dtype(stack: list[Any], device: str, region: Any) -> Any:
    """The dtype to which the floating-point tensors of a device promote, those inside lists too; None without any."""
    widest = None
    for value in flat(stack):
        if isinstance(value, TensorBase) and value._dtype.is_floating_point and value._device.type == device:
            if value._dtype.itemsize < 4 and value._dtype is not region:
                raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
            widest = value._dtype if widest is None else WIDER()(widest, value._dtype)
    return widest


POLICIES: RuleTable[Policy] = RuleTable("autocast policy")  # by (operator, device type)


def autocast(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Casts the arguments by the operator's policy and calls it from the top again, this layer excluded."""
    device = device_of(keyset)
    with within(STATE.get().excluding(keys(KEY_OF_DEVICE[device]))):
        policy = POLICIES.get((op, device))
        return call(op, policy(op, stack, device) if policy else stack)


@pure
def device_of(keyset: int) -> str:
    """The device type whose Autocast key is the highest in the keyset."""
    top = keyset & AUTOCAST_KEYS
    return next(device for device, name in KEY_OF_DEVICE.items() if keys(name).bit_length() == top.bit_length())


@inline
def region_dtype(device: str) -> Any:
    """The dtype that autocast casts to on this device, in this thread's state."""
    return dict(STATE.get().autocast_dtypes)[device]


@inline
def eligible(value: Any, device: str) -> bool:
    """Note [What is cast]."""
    return (
        isinstance(value, TensorBase)
        and value._dtype.is_floating_point
        and value._device.type == device
        and value._dtype.itemsize < 8
    )


@inline
def cast_all(stack: list[Any], device: str, dtype: Any) -> list[Any]:
    """The stack with every eligible tensor in `dtype`, those inside lists too."""

    def cast(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [cast(item) for item in value]
        if not eligible(value, device) or value._dtype is dtype:
            return value
        cache = STATE.get().autocast_cache
        autograd = value._autograd
        is_parameter = autograd is not None and autograd.requires_grad and autograd.grad_fn is None
        if cache is not None and is_parameter and value._dtype is FLOAT32() and value._view is None:
            return kept_cast(cache, value, dtype)
        return CAST()(value, dtype)

    return [cast(value) for value in stack]


@inline
def flat(stack: list[Any]) -> list[Any]:
    """The values of a stack, those inside lists too."""
    return [item for value in stack for item in (value if isinstance(value, list | tuple) else (value,))]


def register_policy(op: OpOverload, device: str, policy: Policy) -> Callable[[], None]:
    """Puts `op` on a device's list; returns what takes it off again."""
    undo_rule = POLICIES.add((op, device), policy, place_of(policy))
    undo_kernel = op.register(KEY_OF_DEVICE[device], boxed_kernel(autocast))

    def undo() -> None:
        undo_rule(), undo_kernel()

    return undo


skipped(place_of(register_policy), *(name for name in DispatchKey.__members__ if name.startswith("Autocast")))
