"""PyTorch's private names for its dispatcher (`torch._C`), over `redispatch.dispatch`: one or two lines each.

Code that looks inside PyTorch (its own tests, tensor subclasses, teaching material) uses them. New code has the public
ones: `explain`, `trace`, `Library`, `State` and what else `redispatch.dispatch` exports.
"""

from __future__ import annotations

from typing import Any

from redispatch._names import late, take
from redispatch.backends import mkldnn
from redispatch.dispatch import (
    BACKEND_OF_DEVICE,
    FALLBACKS,
    OPERATORS,
    STATE,
    Argument,
    DispatchKey,
    DispatchKeySet,
    FunctionSchema,
    OpOverload,
    Setting,
    TensorMeta,
    TorchDispatchModeKey,
    _disabled_torch_function_impl,
    as_keyset,
    backends,
    backends_of_autograd,
    below,
    bind,
    dump_registrations,
    dump_table,
    exclude,
    force,
    has,
    include,
    key_named,
    keyset,
    layers,
    members,
    mode_in_slot,
    operators,
    overridden,
    parse_schema,
    pop_mode,
    push_mode,
    runtime_table_keys,
    shared,
    unset_mode,
    without,
    without_overrides,
    without_subclasses,
)
from redispatch.dispatch.autograd.fallback import FALLBACK as AUTOGRAD_FALLBACK
from redispatch.dispatch.autograd.fallback import MODES
from redispatch.dispatch.core.registry import OVERLOADS, load_late
from redispatch.dispatch.core.table import Registrations, resolve
from redispatch.dispatch.library import dangling, registrations
from redispatch.dispatch.tensor import TYPE_NAMED, StorageBase
from redispatch.kernels.batching.fallback import FALLBACK

from .._absent import COMPILER, names_of
from . import _acc, _autograd, _functions, _functorch, _profiler
from ._dispatch_module import _dispatch_key_parse, _DispatchModule
from ._function_modules import _fft, _linalg, _special, _VariableFunctions
from ._guards import (
    ExcludeDispatchKeyGuard,
    _AutoDispatchBelowADInplaceOrView,
    _AutoDispatchBelowAutograd,
    _DisableAutocast,
    _DisableFuncTorch,
    _DisablePythonDispatcher,
    _DisableTorchDispatch,
    _EnablePreDispatch,
    _EnablePythonDispatcher,
    _EnableTorchFunction,
    _ForceDispatchKeyGuard,
    _IncludeDispatchKeyGuard,
    _InferenceMode,
    _is_python_dispatcher_enabled,
    _PreserveDispatchKeyGuard,
    _SetExcludeDispatchKeyGuard,
)

__all__ = [
    "ExcludeDispatchKeyGuard",
    "_AutoDispatchBelowADInplaceOrView",
    "_AutoDispatchBelowAutograd",
    "_DisableAutocast",
    "_DisableFuncTorch",
    "_DisablePythonDispatcher",
    "_DisableTorchDispatch",
    "_DispatchModule",
    "_EnablePreDispatch",
    "_EnablePythonDispatcher",
    "_EnableTorchFunction",
    "_ForceDispatchKeyGuard",
    "_IncludeDispatchKeyGuard",
    "_InferenceMode",
    "_PreserveDispatchKeyGuard",
    "_SetExcludeDispatchKeyGuard",
    "_VariableFunctions",
    "_is_python_dispatcher_enabled",
    "_acc",
    "_dispatch_key_parse",
    "_fft",
    "_linalg",
    "_profiler",
    "_special",
    "_autograd",
    "_functions",
    "_functorch",
    "Argument",
    "DispatchKey",
    "DispatchKeySet",
    "FunctionSchema",
    "StorageBase",
    "_TensorMeta",
    "_TorchDispatchModeKey",
    "_disabled_torch_dispatch_impl",
    "_disabled_torch_function_impl",
    "parse_schema",
]

has_lapack = has_spectral = True
has_mkl = has_openmp = False
_TensorMeta = TensorMeta
_TorchDispatchModeKey = TorchDispatchModeKey
_disabled_torch_dispatch_impl = layers.python._disabled_torch_dispatch_impl
DisableTorchFunctionSubclass, DisableTorchFunction = without_subclasses, without_overrides
_push_on_torch_dispatch_stack = _set_dispatch_mode = _push_on_torch_function_stack = push_mode


def _set_lazy_bit(tensor: Any, key: str, on: bool) -> None:
    """Has a tensor's elements be read as something to be done to what lies in memory, or not."""
    bit = keyset(key)
    tensor._keyset = shared(tensor._keyset | bit if on else tensor._keyset & ~bit)
    tensor._interned = None


def _set_conj(tensor: Any, conj: bool) -> None:
    """Sets whether a tensor's elements are the conjugates of what lies in memory."""
    _set_lazy_bit(tensor, "Conjugate", conj)


def _set_neg(tensor: Any, neg: bool) -> None:
    """Sets whether a tensor's elements are the negatives of what lies in memory."""
    _set_lazy_bit(tensor, "Negative", neg)


def _get_mkldnn_enabled() -> bool:
    """Returns the switch of oneDNN, which nothing depends on."""
    return mkldnn.enabled


def _set_mkldnn_enabled(enabled: bool) -> None:
    mkldnn.set_flags(enabled)


# Keys and keysets -----------------------------------------------------------------------------------------------------

_after_autograd_keyset = DispatchKeySet(below("AutogradOther"))
_after_ADInplaceOrView_keyset = DispatchKeySet(below("ADInplaceOrView"))
_dispatch_autogradother_backends = DispatchKeySet(backends_of_autograd(DispatchKey.AutogradOther))


def _dispatch_keys(tensor: Any) -> DispatchKeySet:
    """The keys that a tensor brings to a call."""
    return as_keyset(tensor)


def _dispatch_key_set(tensor: Any) -> str:
    """Returns the keyset of a tensor as text."""
    return str(as_keyset(tensor))


def _dispatch_key_name(key: DispatchKey | str) -> str:
    return key_named(key).name


def _parse_dispatch_key(name: str) -> DispatchKey | None:
    """The key of that name, or None."""
    return DispatchKey.__members__.get(name)


def _get_privateuse1_backend_name() -> str:
    """Returns the name of PrivateUse1's device type."""
    return TYPE_NAMED["privateuseone"]


def _dispatch_key_for_device(device_type: str) -> str:
    return BACKEND_OF_DEVICE[device_type]


def _dispatch_num_backends() -> int:
    return len(backends())


def _dispatch_keyset_full() -> DispatchKeySet:
    """The set of all keys."""
    return DispatchKeySet(runtime_table_keys())


def _dispatch_keyset_full_after(key: DispatchKey | str) -> DispatchKeySet:
    """The set of all keys below `key`."""
    return _dispatch_keyset_full() & below(key_named(key))


def _dispatch_keyset_to_string(keys: DispatchKeySet) -> str:
    return str(keys)


def _dispatch_is_alias_key(key: DispatchKey | str) -> bool:
    return key_named(key).is_alias


def _dispatch_is_included_in_alias(key: DispatchKey | str, alias: DispatchKey | str) -> bool:
    alias = key_named(alias)
    return alias.is_alias and key_named(key) in members(alias)


def _dispatch_get_backend_keyset_from_autograd(key: DispatchKey | str) -> DispatchKeySet:
    """The backend keys that lie under an autograd key."""
    return DispatchKeySet(backends_of_autograd(key_named(key)))


def _dispatch_isTensorSubclassLike(tensor: Any) -> bool:
    """Returns whether a tensor's class takes calls at the key Python."""
    return layers.python.has_handler(type(tensor))


# Operators and their tables -------------------------------------------------------------------------------------------


def _kernels(name: str) -> Registrations:
    """The kernels of an operator, which need not be defined. RuntimeError where nobody has heard of it."""
    known = registrations(name)
    if known is None:
        raise RuntimeError(f"operator {name} does not exist")
    return known


def _dispatch_has_kernel(name: str) -> bool:
    """Returns whether there is an operator of that name, or a kernel for one."""
    return registrations(name) is not None


def _dispatch_find_schema_or_throw(name: str, overload_name: str) -> OpOverload:
    """The operator, which plays the part of PyTorch's handle of one."""
    full = f"{name}.{overload_name}" if overload_name else name
    known = _dispatch_has_kernel(full)
    if full not in OPERATORS:
        hint = " but we found an implementation; did you forget to def() the operator?"
        raise RuntimeError(f"Could not find schema for {name}.{overload_name}{hint if known else ''}")
    return OPERATORS[full]


def _dispatch_call_boxed(handle: OpOverload, *args: Any, **kwargs: Any) -> Any:
    return handle(*args, **kwargs)


def _dispatch_get_all_op_names() -> list[str]:
    return [op.name() for op in operators()] + dangling()


_dispatch_dump_table, _dispatch_dump, _dispatch_library = dump_table, dump_registrations, _DispatchModule


def _dispatch_has_kernel_for_dispatch_key(name: str, key: DispatchKey | str) -> bool:
    """Returns whether a kernel is registered for exactly this key, runtime or alias."""
    return bool(_kernels(name).get(key_named(key)))


def _dispatch_has_kernel_for_any_dispatch_key(name: str, keys: DispatchKeySet) -> bool:
    return any(key in _kernels(name) for key in keys)


def _dispatch_has_computed_kernel_for_dispatch_key(name: str, key: DispatchKey | str) -> bool:
    """Returns whether anything answers at this runtime key."""
    return resolve(_kernels(name), FALLBACKS, key_named(key)) is not None


def _dispatch_kernel_for_dispatch_key_is_fallthrough(name: str, key: DispatchKey | str) -> bool:
    entry = resolve(_kernels(name), FALLBACKS, key_named(key))
    return entry is not None and entry.kernel.is_fallthrough


def _dispatch_has_backend_fallback(key: DispatchKey | str) -> bool:
    return bool(FALLBACKS.get(key_named(key)))


def _dispatch_get_registrations_for_dispatch_key(dispatch_key: str = "") -> list[str]:
    """The operators with a kernel of their own at a key; all operators where no key is given."""
    key = _dispatch_key_parse(dispatch_key) if dispatch_key else None
    return [name for name in _dispatch_get_all_op_names() if key is None or key in _kernels(name)]


def _dispatch_print_registrations_for_dispatch_key(dispatch_key: str = "") -> None:
    """Prints them, one a line."""
    for name in _dispatch_get_registrations_for_dispatch_key(dispatch_key):
        print(name)


def _jit_get_schemas_for_operator(name: str) -> list[FunctionSchema]:
    """The schemas of all overloads of "aten::add"."""
    load_late(name)
    return [op.schema for op in OVERLOADS.get(name, {}).values()]


def _get_schema(name: str, overload: str) -> FunctionSchema:
    """The schema of an overload of "aten::add". RuntimeError where there is none."""
    for schema in _jit_get_schemas_for_operator(name):
        if schema.overload_name == overload:
            return schema
    raise RuntimeError("Found no matching schema")


def _get_operation_overload(name: str, overload: str) -> tuple[Any, Any, list[Any]] | None:
    """Returns an overload of "aten::add", how it is called with a keyset, and its tags; None where there is none."""
    load_late(name)
    op = OVERLOADS.get(name, {}).get(overload or "default")
    return None if op is None else (op, op.redispatch, op.tags)


def _jit_get_operation(name: str) -> tuple[Any, list[str] | None]:
    """Returns what "aten::add" calls, and its overloads by name; (None, None) where there is none."""
    load_late(name)
    found = list(OVERLOADS.get(name, {}).values())
    return (found[0].overloadpacket, [op.schema.overload_name for op in found]) if found else (None, None)


def _jit_get_all_schemas() -> list[FunctionSchema]:
    """The schemas of all operators."""
    return [op.schema for op in operators()]


def _jit_resolve_packet(name: str, *args: Any, **kwargs: Any) -> str:
    """Returns the overload that a call of a packet would run. RuntimeError where the arguments fit none."""
    problems = []
    for op in OVERLOADS.get(name, {}).values():
        try:
            bind(op.schema, args, kwargs)
        except RuntimeError as problem:
            problems.append(str(problem))
        else:
            return op._overloadname
    listed = "\n\n".join(problems)
    raise RuntimeError(f"Overloaded torch operator invoked from Python failed to match any schema:\n{listed}")


def _dispatch_find_dangling_impls() -> list[str]:
    """The dumps of operators that do not exist, for which there are kernels."""
    return [dump_registrations(name) for name in dangling()]


def _dispatch_check_invariants(name: str) -> None:
    """RuntimeError where an operator remembers another answer than its table gives now."""
    op = OPERATORS.get(name)
    if op is None:
        return
    for keys, entry in op._entries.items():
        if op._highest_entry(keys).kernel is not entry.kernel:
            raise RuntimeError(f"{name} remembers a kernel of {entry.kernel.place} for {DispatchKeySet(keys)}")


def _dispatch_check_all_invariants() -> None:
    for name, op in list(OPERATORS.items()):
        if op._entries:  # else it has remembered nothing yet; programs check after each of thousands of steps
            _dispatch_check_invariants(name)


# The state of a thread ------------------------------------------------------------------------------------------------


def _dispatch_tls_local_include_set() -> DispatchKeySet:
    return DispatchKeySet(STATE.get().included)


def _dispatch_tls_local_exclude_set() -> DispatchKeySet:
    return DispatchKeySet(STATE.get().excluded)


def _dispatch_tls_is_dispatch_key_included(key: DispatchKey | str) -> bool:
    return has(STATE.get().included, key_named(key))


def _dispatch_tls_is_dispatch_key_excluded(key: DispatchKey | str) -> bool:
    """Returns whether no call stops at the functionality of `key`, on whatever backend."""
    bits = key_named(key).bits
    return without(bits, STATE.get().excluded) != bits


def _dispatch_tls_set_dispatch_key_included(key: DispatchKey | str, included: bool) -> None:
    state, bits = STATE.get(), key_named(key).bits
    STATE.set(state.replace(included=state.included | bits if included else without(state.included, bits)))


def _dispatch_tls_set_dispatch_key_excluded(key: DispatchKey | str, excluded: bool) -> None:
    state, bits = STATE.get(), key_named(key).bits
    STATE.set(state.excluding(bits) if excluded else state.replace(excluded=without(state.excluded, bits)))


_ExcludeDispatchKeyGuard = ExcludeDispatchKeyGuard


def _are_functorch_transforms_active() -> bool:
    return bool(STATE.get().levels)


def _is_alias_of(tensor: Any, other: Any) -> bool:
    """Returns whether two tensors share memory."""
    return tensor.untyped_storage()._cdata == other.untyped_storage()._cdata


def _storage_id(tensor: Any) -> int:
    """Returns a number that tensors share that share memory, and no others."""
    return id(tensor.untyped_storage())


def _get_autograd_fallback_mode() -> str:
    """Returns what autograd does with an operator of a user that has no derivative: "warn", "nothing" or "error"."""
    return AUTOGRAD_FALLBACK.mode


def _set_autograd_fallback_mode(mode: str) -> None:
    """Sets it; RuntimeError for another word."""
    if mode not in MODES:
        raise RuntimeError(f"Unsupported AutogradFallbackMode: {mode}")
    AUTOGRAD_FALLBACK.mode = mode


# Overrides and modes --------------------------------------------------------------------------------------------------


def _has_torch_function(args: tuple[Any, ...]) -> bool:
    """Returns whether a mode or one of these arguments overrides functions."""
    return overridden(args, {})


def _is_torch_function_enabled() -> bool:
    """Returns whether classes override functions."""
    return STATE.get().overrides == "all"


def _is_torch_function_all_disabled() -> bool:
    return STATE.get().overrides == "none"


def _is_torch_function_mode_enabled() -> bool:
    return STATE.get().overrides != "none" and bool(STATE.get().function_modes)


def _len_torch_dispatch_stack() -> int:
    return len(STATE.get().modes)


def _get_dispatch_stack_at(index: int) -> Any:
    """The dispatch mode at a place of the stack, the outermost being 0."""
    return _at(STATE.get().modes, index)


def _pop_torch_dispatch_stack(mode_key: TorchDispatchModeKey | None = None) -> Any:
    """Takes the innermost mode, or the infra mode of a slot, off the stack; RuntimeError where there is none."""
    if mode_key is None:
        return pop_mode()
    mode = unset_mode(mode_key)
    if mode is None:
        raise RuntimeError(f"the slot {mode_key.name} has no active mode")
    return mode


def _get_dispatch_mode(mode_key: TorchDispatchModeKey) -> Any:
    """The active infra mode of a slot, or None."""
    return mode_in_slot(mode_key)


def _unset_dispatch_mode(mode_key: TorchDispatchModeKey) -> Any:
    """Takes the infra mode out of a slot and returns it, or None."""
    return unset_mode(mode_key)


def _len_torch_function_stack() -> int:
    return len(STATE.get().function_modes)


def _get_function_stack_at(index: int) -> Any:
    """The function mode at a place of the stack, the outermost being 0."""
    return _at(STATE.get().function_modes, index)


def _pop_torch_function_stack() -> Any:
    """Takes the innermost function mode off the stack; RuntimeError where there is none."""
    return pop_mode("function_modes")


def _at(stack: tuple[Any, ...], index: int) -> Any:
    if not 0 <= index < len(stack):
        raise RuntimeError("Tried to get stack at idx that's too big")
    return stack[index]


# vmap -----------------------------------------------------------------------------------------------------------------


def _debug_only_are_vmap_fallback_warnings_enabled() -> bool:
    """Returns whether an operator that vmap calls once for each example is warned of."""
    return FALLBACK.warns


def _debug_only_display_vmap_fallback_warnings(enabled: bool) -> None:
    FALLBACK.warns = enabled


# Autograd -------------------------------------------------------------------------------------------------------------

__all__ += take(
    globals(),
    {
        "._autograd": """
            _WeakTensorRef _current_graph_task_execution_order _current_graph_task_id _will_engine_execute_node
        """,
        "._schema_types": """
            AnyType BoolType ComplexType DeviceObjType DictType FloatType IntType ListType NoneType NumberType
            OptionalType StreamObjType StringType TensorType TupleType Type
        """,
        "redispatch.dispatch": "TensorBase",
        "redispatch.dispatch.autograd": "is_anomaly_check_nan_enabled is_anomaly_enabled is_grad_enabled",
        "redispatch.dispatch.autograd.forward_ad": "_is_fwd_grad_enabled _set_fwd_grad_enabled",
        "redispatch.dispatch.autograd.grad_mode": "_set_grad_enabled",
    },
)

# Those that ask for layers and tools, which few programs have loaded when they first ask for a name of this module
_PLACES, __getattr__, __dir__ = late(
    globals(),
    {
        ".": "_nn",
        "._nn": "_ConvBackend _select_conv_backend",
        "redispatch.jit.function": "ScriptFunction",
        "redispatch.jit.module": "ScriptMethod ScriptModule",
        "._schema_info": "_SchemaArgType _SchemaArgument _SchemaInfo",
        "redispatch.utils.deterministic": """
            _get_deterministic_fill_uninitialized_memory _set_deterministic_fill_uninitialized_memory
        """,
        "redispatch.utils.settings": "_set_deterministic_algorithms",
        "redispatch.accelerator": "_get_accelerator",
    },
)

globals().update(names_of(__name__, COMPILER))
