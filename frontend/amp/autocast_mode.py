"""autocast: a region in which operators run in the dtype that suits them.

    with redispatch.autocast("cpu", dtype=redispatch.bfloat16):
        loss = model(x)

Entering un-excludes the device's Autocast key and sets its dtype; what is cast, and how, is the layer's business
(dispatch/layers/autocast.py). The casts of parameters are kept for the outermost region and dropped at its end.

The functions on the state of autocast, one thing at a time, stand here, too. Read next: grad_scaler.py.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, overload

import numpy as np

from redispatch.dispatch import STATE, OpOverload, OpOverloadPacket, Region, operator_named, ops
from redispatch.dispatch.autograd.grad_mode import tell_of_region
from redispatch.dispatch.layers import autocast as layer
from redispatch.dispatch.layers.autocast import KEY_OF_DEVICE, CastCache, OwnPolicies, autocast_key
from redispatch.dispatch.tensor import Tensor, dtypes
from redispatch.dispatch.tensor.devices import DEVICE_TYPES

# device type -> the dtypes that autocast can cast to there, the default one first; users' devices are added
SUPPORTED = {
    "cpu": (dtypes.bfloat16, dtypes.float16),
    "cuda": (dtypes.float16, dtypes.bfloat16),
}


def is_autocast_available(device_type: str) -> bool:
    """Returns whether there is autocast for this device type."""
    return device_type in KEY_OF_DEVICE


def autocast_decorator(autocast_instance: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function whose calls run in a region of autocast."""

    @functools.wraps(func)
    def decorate_autocast(*args: Any, **kwargs: Any) -> Any:
        with autocast_instance:
            return func(*args, **kwargs)

    return decorate_autocast


def key_of(device_type: str) -> int:
    """The keyset of a device type's Autocast key. RuntimeError for one without autocast, TypeError for no name."""
    if not isinstance(device_type, str):
        raise TypeError(f"argument 'device_type' (position 1) must be str, not {type(device_type).__name__}")
    if device_type not in KEY_OF_DEVICE:
        raise RuntimeError(
            f"unsupported device type for autocast: {device_type}; it is there for {', '.join(KEY_OF_DEVICE)}"
        )
    return autocast_key(device_type)


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Returns whether autocast is at work for this device: never on one that PyTorch knows and that is not here."""
    if device_type in DEVICE_TYPES and device_type not in KEY_OF_DEVICE:
        return False
    return not STATE.get().excluded & key_of(device_type)


@overload
def set_autocast_enabled(device_type: bool) -> None: ...
@overload
def set_autocast_enabled(device_type: str, enabled: bool) -> None: ...


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Turns autocast for this device on or off; given nothing but a bool, that for CUDA."""
    if enabled is None and isinstance(device_type, bool):
        set_autocast_enabled("cuda", device_type)
        return
    if not isinstance(device_type, str) or not isinstance(enabled, bool):
        raise TypeError(
            "set_autocast_enabled(): expected (str device_type, bool enabled) or (bool enabled), but got "
            f"({type(device_type).__name__}, {type(enabled).__name__})"
        )
    key, state = key_of(device_type), STATE.get()
    dtypes_ = {**state.autocast_dtypes, device_type: get_autocast_dtype(device_type)}
    excluded = state.excluded & ~key if enabled else state.excluded | key
    STATE.set(state.replace(excluded=excluded, autocast_dtypes=dtypes_))


def get_autocast_dtype(device_type: str) -> Any:
    """Returns the dtype to which autocast casts on this device in the present state."""
    key_of(device_type)
    return STATE.get().autocast_dtypes.get(device_type) or SUPPORTED[device_type][0]


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Sets what autocast casts to on this device. TypeError for what is no dtype."""
    if not isinstance(dtype, dtypes.dtype):
        raise TypeError(
            f"set_autocast_dtype(): argument 'dtype' (position 2) must be torch.dtype, not {type(dtype).__name__}"
        )
    key_of(device_type)
    state = STATE.get()
    STATE.set(state.replace(autocast_dtypes={**state.autocast_dtypes, device_type: dtype}))


def is_autocast_cache_enabled() -> bool:
    """Returns whether casts of parameters are kept."""
    return STATE.get().autocast_keeps


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Has casts of parameters kept, or not."""
    STATE.set(STATE.get().replace(autocast_keeps=bool(enabled)))


def clear_autocast_cache() -> None:
    """Forgets the casts that were kept."""
    cache = STATE.get().autocast_cache
    if cache is not None:
        cache.clear()


def autocast_increment_nesting() -> int:
    """Enters one more region, as far as the cache is concerned: how many there are now."""
    state = STATE.get()
    cache = CastCache() if state.autocast_cache is None else state.autocast_cache
    STATE.set(state.replace(autocast_nesting=state.autocast_nesting + 1, autocast_cache=cache))
    return state.autocast_nesting + 1


def autocast_decrement_nesting() -> int:
    """Leaves one; with the last, what was kept is gone: how many there are now."""
    state = STATE.get()
    left = state.autocast_nesting - 1
    STATE.set(state.replace(autocast_nesting=left, autocast_cache=state.autocast_cache if left else None))
    return left


# The names by which a region may give an operator a policy. `fp32_append_dtype` and `banned` are not among them: they
# mean something for a few operators only.
NAMED = {
    "lower_precision_fp": layer.lower_precision_fp,
    "fp32": layer.fp32,
    "fp32_set_opt_dtype": layer.fp32_set_opt_dtype,
    "promote": layer.promote,
}


# The fields of the state that a region sets, besides the excluded keys
FIELDS = ("autocast_dtypes", "autocast_cache", "autocast_keeps", "autocast_nesting", "autocast_policies")
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
        self._policy = policy
        self._own = () if policy is None else (OwnPolicies(device_type, policies_from(policy)),)
        self._former: list[tuple[int, dict[str, Any]]] = []

    def __enter__(self) -> autocast:
        state = STATE.get()
        if state.function_modes:
            own = {} if self._policy is None else {"policy": by_name(self._policy)}
            tell_of_region(_enter_autocast, self.device, self.fast_dtype, self._enabled, self._cache_enabled, **own)
        key = autocast_key(self.device)
        self._former.append((state.excluded & key, {name: getattr(state, name) for name in FIELDS}))
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
        if state.function_modes:
            tell_of_region(_exit_autocast)
        excluded, former = self._former.pop()
        STATE.set(state.replace(excluded=state.excluded & ~autocast_key(self.device) | excluded, **former))

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
        other._own, other._policy = self._own, self._policy
        return other


# Policies for single operators ----------------------------------------------------------------------------------------


def policies_from(given: Mapping[Any, Any]) -> dict[OpOverload, layer.Policy]:
    """The policy of each operator that a user's mapping names."""
    return {op: policy_from(value) for key, value in given.items() for op in operators_from(key)}


def by_name(given: Mapping[Any, Any]) -> dict[str, Any]:
    """A user's mapping with operators by their names, as it can be written down."""
    return {f"{op.name()}": value for key, value in given.items() for op in operators_from(key)}


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


def _enter_autocast(*arguments: Any, **options: Any) -> autocast:
    """A region that is entered by one call and left by another, as traced programs have it."""
    region = autocast(*arguments, **options)
    region.__enter__()
    return region


def _exit_autocast(region: autocast) -> None:
    region.__exit__(None, None, None)


# --- Autocast in an `autograd.Function` of one's own: what dtype its forward gets, and that its backward runs alike
#
# class Product(Function):
#     @staticmethod
#     @custom_fwd(device_type="cpu", cast_inputs=float32)
#     def forward(ctx, a, b): ...
#
#     @staticmethod
#     @custom_bwd(device_type="cpu")
#     def backward(ctx, grad): ...

Method = Callable[..., Any]


def custom_fwd(fwd: Method | None = None, *, device_type: str, cast_inputs: Any = None) -> Any:
    """A decorator for `forward`: in a region, it is given its floating-point tensors in `cast_inputs` and runs without
    autocast. Without `cast_inputs` it runs as the region has it, and outside of regions nothing is changed.

    Errors: ValueError for a device type that is no string.
    """
    check_device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(*args: Any, **kwargs: Any) -> Any:
        ctx, inside = args[0], is_autocast_enabled(device_type)
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = inside and cast_inputs is None
        if cast_inputs is None or not inside:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*cast(args, device_type, cast_inputs), **cast(kwargs, device_type, cast_inputs))

    return forward


def custom_bwd(bwd: Method | None = None, *, device_type: str) -> Any:
    """A decorator for `backward`: it runs with autocast as `forward` did, wherever the backward pass is started."""
    check_device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(*args, **kwargs)

    return backward


def check_device_type(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def cast(value: Any, device_type: str, dtype: Any) -> Any:
    """The value with the floating-point tensors of a device in `dtype`, float64 excepted; inside containers, too."""
    if isinstance(value, Tensor):
        eligible = value.is_floating_point() and value.device.type == device_type and value.dtype is not dtypes.float64
        return value.to(dtype) if eligible else value
    if isinstance(value, str | bytes | np.ndarray):
        return value
    if isinstance(value, Mapping):
        return {cast(key, device_type, dtype): cast(item, device_type, dtype) for key, item in value.items()}
    if isinstance(value, Iterable):
        items = (cast(item, device_type, dtype) for item in value)
        return type(value)(items) if isinstance(value, list | tuple) else items
    return value


_cast = cast  # its name in PyTorch, where it is private
