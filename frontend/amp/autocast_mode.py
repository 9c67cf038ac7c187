"""autocast: a region in which operators run in the dtype that suits them.

    with redispatch.autocast("cpu", dtype=redispatch.bfloat16):
        loss = model(x)

Entering un-excludes the device's Autocast key and sets its dtype; what is cast, and how, is the layer's business
(dispatch/layers/autocast.py). The casts of parameters are kept for the outermost region and dropped at its end.

Read next: functions.py (a region's parts one by one), custom.py (autocast in a Function of one's own), grad_scaler.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from redispatch.dispatch import STATE, OpOverload, OpOverloadPacket, Region, operator_named, ops
from redispatch.dispatch.layers import autocast as layer
from redispatch.dispatch.layers.autocast import KEY_OF_DEVICE, CastCache, OwnPolicies, autocast_key
from redispatch.dispatch.tensor import dtypes

from .functions import SUPPORTED, get_autocast_dtype, is_autocast_cache_enabled

# The names by which a region may give an operator a policy. `fp32_append_dtype` and `banned` are not among them: they
# mean something for a few operators only.
NAMED = {
    "lower_precision_fp": layer.lower_precision_fp,
    "fp32": layer.fp32,
    "fp32_set_opt_dtype": layer.fp32_set_opt_dtype,
    "promote": layer.promote,
}


CUDA = f"{__name__.partition('.')[0]}.cuda"  # imported by those who ask for it


class autocast(Region):
    """`autocast(device_type, dtype=None, enabled=True, cache_enabled=None)`, a context manager and a decorator.

    policy: how single operators run in this region and those inside it, whatever the device's lists say. Its keys are
    operators (`ops.aten.softmax.int`; a packet or a public function for all overloads; or a name, "aten::softmax"), its
    values a dtype to cast to, None to cast nothing, or one of "lower_precision_fp", "fp32", "fp32_set_opt_dtype",
    "promote". An operator is met as the program calls it: `linear`, and not the `addmm` of which it is made.

    A dtype that the device does not support warns and disables the region, as in PyTorch.
    Errors: RuntimeError for a device type without autocast; ValueError for a policy that there is not.

    >>> import redispatch as rd
    >>> with rd.autocast("cpu"):
    ...     y = rd.ones(2, 2) @ rd.ones(2, 2)
    >>> y.dtype
    torch.bfloat16
    """

    def __init__(
        self,
        device_type: str,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
        *,
        policy: Mapping[Any, Any] | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if device_type not in KEY_OF_DEVICE:
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        if enabled and device_type == "cuda" and not import_module(CUDA).is_available():
            warnings.warn(
                "CUDA is not available or torch_xla is imported. Disabling autocast.", UserWarning, stacklevel=2
            )
            enabled = False
        self._enabled = enabled
        if enabled and self.fast_dtype not in SUPPORTED[device_type]:
            supported = ", ".join(map(str, SUPPORTED[device_type]))
            warnings.warn(
                f"In {device_type.upper()} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{device_type.upper()} Autocast only supports dtypes of {supported} currently.",
                UserWarning,
                stacklevel=2,
            )
            self._enabled = False
        self._own = () if policy is None else (OwnPolicies(device_type, policies_from(policy)),)
        self._former: list[tuple[Any, ...]] = []

    def __enter__(self) -> autocast:
        state = STATE.get()
        key = autocast_key(self.device)
        self._former.append(
            (
                state.excluded & key,
                state.autocast_dtypes,
                state.autocast_cache,
                state.autocast_keeps,
                state.autocast_nesting,
                state.autocast_policies,
            )
        )
        STATE.set(
            state.replace(
                excluded=state.excluded & ~key if self._enabled else state.excluded | key,
                autocast_dtypes={**state.autocast_dtypes, self.device: self.fast_dtype},
                autocast_cache=CastCache() if state.autocast_cache is None else state.autocast_cache,
                autocast_keeps=self._cache_enabled,
                autocast_nesting=state.autocast_nesting + 1,
                autocast_policies=(*state.autocast_policies, *self._own),
            )
        )
        return self

    def __exit__(self, *error: Any) -> None:
        state = STATE.get()
        excluded, dtypes_, cache, keeps, nesting, policies = self._former.pop()
        STATE.set(
            state.replace(
                excluded=state.excluded & ~autocast_key(self.device) | excluded,
                autocast_dtypes=dtypes_,
                autocast_cache=cache,
                autocast_keeps=keeps,
                autocast_nesting=nesting,
                autocast_policies=policies,
            )
        )

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(function):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(function).__name__}. Did you mean to use "
                "autocast as a context manager? For example:\n    with torch.autocast(device_type=...):\n"
                "        output = model(input)"
            )
        return super().__call__(function)

    def clone(self) -> autocast:
        other = autocast(self.device, self.fast_dtype, self._enabled, self._cache_enabled)
        other._own = self._own
        return other


# Policies for single operators ----------------------------------------------------------------------------------------


def policies_from(given: Mapping[Any, Any]) -> dict[OpOverload, layer.Policy]:
    """The policy of each operator that a user's mapping names."""
    return {op: policy_from(value) for key, value in given.items() for op in operators_from(key)}


def policy_from(value: Any) -> layer.Policy:
    """The policy that a user's value stands for. ValueError where there is none such."""
    if value is None:
        return layer.untouched
    if isinstance(value, str) and value in NAMED:
        return NAMED[value]
    if isinstance(value, dtypes.dtype) and value.is_floating_point:
        return layer.to_dtype(value)
    raise ValueError(
        f"autocast(policy={{operator: {value!r}}}): expected a floating-point dtype, None (cast nothing), or one of "
        f"{', '.join(map(repr, NAMED))}"
    )


def operators_from(key: Any) -> list[OpOverload]:
    """The operators that a user's key stands for. ValueError where it stands for none."""
    if isinstance(key, OpOverload):
        return [key]
    if isinstance(key, OpOverloadPacket):
        return [getattr(key, overload) for overload in key.overloads()]
    if isinstance(key, str) and "::" in key:
        name, _, overload = key.partition(".")
        namespace, _, name = name.partition("::")
        packet = getattr(getattr(ops, namespace), name)
        return [operator_named(key)] if overload else operators_from(packet)
    found = list(getattr(key, "operators", ()))
    if not found:
        raise ValueError(
            f"autocast(policy={{{key!r}: ...}}): expected an operator (ops.aten.softmax.int), all overloads of one "
            "(ops.aten.softmax), a public function over operators (redispatch.softmax), or a name ('aten::softmax')"
        )
    return found


def _enter_autocast(*arguments: Any) -> autocast:
    """A region that is entered by one call and left by another, as traced programs have it."""
    region = autocast(*arguments)
    region.__enter__()
    return region


def _exit_autocast(region: autocast) -> None:
    region.__exit__(None, None, None)
