"""Autocast: runs an operator in the dtype that suits it, by casting its arguments on the way down.

`autocast(device_type)` un-excludes one Autocast key and sets a dtype in the state. Each operator on a device's list has
a policy; operators that are on no list pass at no cost. The layer casts, then calls the operator from the top again,
with its own key excluded: the casts are recorded by autograd, so that gradients come back in the parameter's dtype.

Note [What is cast]
Eligible are floating-point tensors on the region's device, float64 excepted. Only casts of leaves that require grad
are worth keeping: they are the parameters, used again and again. A kept cast is keyed by the parameter's version and
by whether gradients are recorded, so that a write inside the region is seen (PyTorch 2.13 keeps on using the stale
cast).

A region may have policies of its own for single operators, `autocast("cpu", policy={"aten::softmax": float32})`. Then
the state says so by a flag, and only code made for such regions asks for them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

from ..core.base import TensorBase
from ..core.interpreter import call
from ..core.key import DispatchKey
from ..core.keyset import keyset as keys
from ..core.operator import OpOverload
from ..core.registry import Undo
from ..core.state import AUTOCAST_KEYS, STATE, State, within
from ..rules import RuleTable, Slot, place_of
from ..specialiser.annotations import inline, leaf, pure
from .layer import boxed_kernel, skipped

# (tensor, dtype) -> the tensor in that dtype, through the dispatcher; and facts about dtypes that this room lacks
CAST: Slot[Callable[[Any, Any], Any]] = Slot("the operator that autocast casts by")
FLOAT32: Slot[Any] = Slot("the dtype float32")
WIDER: Slot[Callable[[Any, Any], Any]] = Slot("the dtype to which two dtypes promote")

# device type -> its Autocast key; the room that knows of users' devices adds theirs
KEY_OF_DEVICE = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA"}


class CastCache:
    """The casts of parameters made within one outermost autocast region. It keeps no parameter alive."""

    def __init__(self) -> None:
        self._casts: dict[tuple[int, Any, bool], tuple[weakref.ref[Any], int, Any]] = {}

    def cast(self, tensor: Any, dtype: Any) -> Any:
        """`tensor` in `dtype`, from the cache where the parameter has not been written since."""
        if tensor._counter is None:  # an inference tensor has no version
            return CAST()(tensor, dtype)
        key = id(tensor), dtype, STATE.get().grad_enabled
        version = tensor._counter[0]
        found = self._casts.get(key)
        if found is not None and found[0]() is tensor and found[1] == version:
            return found[2]
        result = CAST()(tensor, dtype)
        casts = self._casts
        casts[key] = weakref.ref(tensor, lambda _: casts.pop(key, None)), version, result
        return result

    def clear(self) -> None:
        """Forgets all casts."""
        self._casts.clear()

    def __len__(self) -> int:
        return len(self._casts)


def kept_cast(cache: CastCache, tensor: Any, dtype: Any) -> TensorBase:
    """A parameter in another dtype, from the region's cache."""
    return cache.cast(tensor, dtype)


# Policies: (operator, stack, device type) -> the result. They are asked with the layer's own key excluded. ------------

Policy = Callable[[OpOverload, list[Any], str], Any]


@inline
def lower_precision_fp(op: OpOverload, stack: list[Any], device: str) -> Any:
    """Every eligible argument in the region's dtype: matrix products, where the hardware gains."""
    return call(op, cast_all(stack, device, STATE.get().autocast_dtypes[device]))


@inline
def fp32(op: OpOverload, stack: list[Any], device: str) -> Any:
    """Every eligible argument in float32: losses and the like, where few bits hurt."""
    return call(op, cast_all(stack, device, FLOAT32()))


@inline
def fp32_set_opt_dtype(op: OpOverload, stack: list[Any], device: str) -> Any:
    """`dtype=float32` where the user gave none: reductions, which then accumulate and return float32."""
    position = next(i for i, argument in enumerate(op.schema.arguments) if argument.name == "dtype")
    if stack[position] is None and eligible(stack[0], device):
        return call(op, [*stack[:position], FLOAT32(), *stack[position + 1 :]])
    return call(op, stack)


@inline
def fp32_append_dtype(op: OpOverload, stack: list[Any], device: str) -> Any:
    """The overload that takes a dtype, given float32: for reductions whose schema has no place for one."""
    if eligible(stack[0], device):
        return call(WITH_DTYPE.get(op) or op, [*stack, FLOAT32()])
    return call(op, stack)


@inline
def promote(op: OpOverload, stack: list[Any], device: str) -> Any:
    """Every eligible argument in the widest dtype among them: `cat` and `stack`, which want one dtype.

    Errors: RuntimeError for a 16-bit type other than the region's, which is no wider and no narrower.
    """
    widest = widest_dtype(stack, device, STATE.get().autocast_dtypes[device])
    if widest is None:
        return call(op, stack)
    return call(op, cast_all(stack, device, widest))


def banned(op: OpOverload, stack: list[Any], device: str) -> Any:
    """RuntimeError: the operator's float16 results or gradients would be of no use, and another one does the same."""
    raise RuntimeError(
        "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
        "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
        "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
        "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
        "safe to autocast."
    )


@inline
def untouched(op: OpOverload, stack: list[Any], device: str) -> Any:
    """Every argument as it is: for an operator that a region of the user's takes off the lists."""
    return call(op, stack)


def to_dtype(dtype: Any) -> Policy:
    """The policy of casting every eligible argument to this dtype."""

    def cast_to(op: OpOverload, stack: list[Any], device: str) -> Any:
        return call(op, cast_all(stack, device, dtype))

    return cast_to


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
WITH_DTYPE: RuleTable[OpOverload] = RuleTable("autocast overload with a dtype")


def autocast(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Casts the arguments by the operator's policy and calls it from the top again, this layer excluded."""
    device = device_of(keyset)
    state = STATE.get()
    with within(state.excluding(autocast_key(device))):
        policy = policy_in(state, op, device) if state.own_policies else POLICIES.get((op, device))
        return policy(op, stack, device) if policy else call(op, stack)


@pure
def device_of(keyset: int) -> str:
    """The device type whose Autocast key is the highest in the keyset."""
    top = keyset & AUTOCAST_KEYS
    return next(device for device, name in KEY_OF_DEVICE.items() if keys(name).bit_length() == top.bit_length())


@pure
def autocast_key(device: str) -> int:
    """The keyset of this device type's Autocast key."""
    return keys(KEY_OF_DEVICE[device])


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
        autograd = value._autograd
        if autograd is not None and autograd.requires_grad and autograd.grad_fn is None:
            state = STATE.get()
            cache = state.autocast_cache
            if cache is not None and state.autocast_keeps and value._dtype is FLOAT32() and value._view is None:
                return kept_cast(cache, value, dtype)
        return CAST()(value, dtype)

    return [cast(value) for value in reversed(stack)][::-1]  # from the last on, as compilers of C++ read arguments


@inline
def flat(stack: list[Any]) -> list[Any]:
    """The values of a stack, those inside lists too."""
    return [item for value in stack for item in (value if isinstance(value, list | tuple) else (value,))]


def register_policy(op: OpOverload, device: str, policy: Policy) -> Undo:
    """Puts `op` on a device's list; returns what takes it off again."""
    undo_rule = POLICIES.override((op, device), policy, place_of(policy))
    undo_kernel = stopping(op, device)

    def undo() -> None:
        undo_rule(), undo_kernel()

    return undo


def stopping(op: OpOverload, device: str) -> Undo:
    """Has calls of `op` stop at the device's Autocast key."""
    return op.register(KEY_OF_DEVICE[device], boxed_kernel(autocast))


# Policies of a region -------------------------------------------------------------------------------------------------


class OwnPolicies:
    """The user's policies for single operators in one region. While it is there, these stop at the layer."""

    def __init__(self, device: str, policies: Mapping[OpOverload, Policy]) -> None:
        self.device, self.policies = device, dict(policies)
        undo = [stopping(op, device) for op in self.policies if (op, device) not in POLICIES]
        weakref.finalize(self, lambda: [one() for one in undo])


def policy_in(state: State, op: OpOverload, device: str) -> Policy | None:
    """The policy of the innermost region that names the operator; else that of the device's lists."""
    for own in reversed(state.autocast_policies):
        if own.device == device and op in own.policies:
            return own.policies[op]
    return POLICIES.get((op, device))


skipped(place_of(register_policy), *(name for name in DispatchKey.__members__ if name.startswith("Autocast")))
