"""`redispatch.utils._python_dispatch`: what writers of dispatch modes and wrapper subclasses need.

The modes themselves are in the dispatcher (dispatch/protocols/mode_stack.py, dispatch/layers/python.py). Here are the
helpers around them; `return_and_correct_aliasing` is the one that nearly every wrapper ends with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from redispatch.dispatch import (
    BACKEND_OF_DEVICE,
    STATE,
    DispatchKey,
    OpOverload,
    Setting,
    State,
    TorchDispatchMode,
    TorchDispatchModeKey,
    exclude,
    keyset,
    mode_in_slot,
    pop_mode,
    push_mode,
    stack_of,
    unset_mode,
    with_modes,
    with_pre_dispatch_modes,
    within,
)
from redispatch.dispatch.pytree import tree_leaves, tree_map_only
from redispatch.dispatch.tensor import META, Tensor, UntypedStorage, lay_out, tensor_over

__all__ = [
    "AliasInfo",
    "SchemaInfo",
    "TensorWithFlatten",
    "any_torch_dispatch_mode_on_stack",
    "autograd_would_have_decomposed",
    "get_alias_info",
    "is_traceable_wrapper_subclass_type",
    "BaseTorchDispatchMode",
    "TorchDispatchMode",
    "_detect_infra_mode",
    "_disable_infra_mode",
    "_unset_infra_mode",
    "_disable_current_modes",
    "_get_current_dispatch_mode",
    "_get_current_dispatch_mode_stack",
    "_len_torch_dispatch_stack",
    "_pop_mode",
    "_pop_mode_temporarily",
    "_push_mode",
    "is_in_torch_dispatch_mode",
    "is_traceable_wrapper_subclass",
    "return_and_correct_aliasing",
    "transform_subclass",
    "with_current_modes",
]


class BaseTorchDispatchMode(TorchDispatchMode):
    """A dispatch mode that hands every operator on."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


# The stack of modes -----------------------------------------------------------------------------------------------


def _get_current_dispatch_mode_stack() -> list[Any]:
    """The active dispatch modes, the innermost last."""
    return list(STATE.get().modes)


def _get_current_dispatch_mode() -> Any:
    modes = STATE.get().modes
    return modes[-1] if modes else None


def _len_torch_dispatch_stack() -> int:
    return len(STATE.get().modes)


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Returns whether a dispatch mode is active; or whether one of users is."""
    state = STATE.get()
    modes = state.modes + state.pre_dispatch_modes
    return any(include_infra_modes or not is_infra(mode) for mode in modes)


def is_infra(mode: Any) -> bool:
    """Returns whether a mode is no user's: it has a slot, or its class says so."""
    return getattr(mode, "_mode_key", None) is not None or type(mode).is_infra_mode()


def any_torch_dispatch_mode_on_stack() -> bool:
    """Returns whether a mode of users is active at the key Python."""
    return not all(map(is_infra, STATE.get().modes))


_push_mode = push_mode


def _pop_mode(key: DispatchKey | TorchDispatchModeKey | None = None) -> Any:
    """Takes a dispatch mode off its stack and returns it: the innermost; or, of the key PreDispatch, the innermost
    there; or the infra mode of a slot. RuntimeError where there is none."""
    if key is None:
        return pop_mode()
    if isinstance(key, DispatchKey):
        return pop_mode("pre_dispatch_modes")
    mode = unset_mode(key)
    if mode is None:
        raise RuntimeError("trying to pop from empty mode stack")
    return mode


@contextmanager
def _pop_mode_temporarily(key: DispatchKey | TorchDispatchModeKey | None = None) -> Iterator[Any]:
    """A region without one mode, which it hands out."""
    mode = _pop_mode(key)
    try:
        yield mode
    finally:
        push_mode(mode)


def with_current_modes(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, such that it runs in the modes of both kinds that are active here, in whatever thread it is called.

    A new thread begins without modes. One mode may be asked by several threads at a time then.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> import redispatch as rd
    >>> from redispatch.utils._python_dispatch import with_current_modes
    >>> with ThreadPoolExecutor() as pool, rd.device("meta"):
    ...     print([pool.submit(each, 2).result().device.type for each in (rd.ones, with_current_modes(rd.ones))])
    ['cpu', 'meta']
    """
    here = STATE.get()
    stacks = {name: getattr(here, name) for name in ("modes", "pre_dispatch_modes", "function_modes", "displaced")}

    def included(state: State) -> int:
        return with_pre_dispatch_modes(with_modes(state, here.modes), here.pre_dispatch_modes).included

    return Setting(**stacks, included=included)(function)


@contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """A region without any dispatch mode; hands out those that were active, the innermost first.

    Errors: AssertionError where an infra mode is active before dispatch and at the key Python, too.
    """
    state = STATE.get()
    slots = [mode._mode_key for mode in state.modes + state.pre_dispatch_modes if mode._mode_key is not None]
    if len(slots) != len(set(slots)):
        raise AssertionError(f"Can't have infra modes available both in PreDispatch and Python Key: {slots}")
    with within(with_pre_dispatch_modes(with_modes(state, ()), ())):
        yield [*reversed(state.pre_dispatch_modes), *reversed(state.modes)]


# Infra modes: Note [Infra modes have slots] in dispatch/protocols/mode_stack.py


def _detect_infra_mode(key: TorchDispatchModeKey) -> Any:
    """The active infra mode of a slot, before dispatch or at the key Python; or None."""
    before, at_python = mode_in_slot(key, "pre_dispatch_modes"), mode_in_slot(key)
    if before is not None and at_python is not None:
        raise AssertionError("At most one of pre_dispatch_mode and post_dispatch_mode may be active")
    return at_python if before is None else before


def _unset_infra_mode(key: TorchDispatchModeKey) -> Any:
    """Takes it out and returns it."""
    mode = _detect_infra_mode(key)
    return None if mode is None else unset_mode(key, stack_of(mode))


@contextmanager
def _disable_infra_mode(key: TorchDispatchModeKey) -> Iterator[Any]:
    """A region without the infra mode of a slot, which it hands out."""
    mode = _unset_infra_mode(key)
    try:
        yield mode
    finally:
        if mode is not None:
            push_mode(mode)


def no_dispatch() -> Any:
    """A region in which no operator stops at the key Python: neither modes nor subclasses see it."""
    return exclude(keyset("Python", "PythonTLSSnapshot", "PreDispatch"))


# Wrapper subclasses -----------------------------------------------------------------------------------------------


def is_traceable_wrapper_subclass(value: Any) -> bool:
    """Returns whether `value` is a tensor that can be taken apart (`__tensor_flatten__`) and put together again."""
    return is_traceable_wrapper_subclass_type(type(value))


def is_traceable_wrapper_subclass_type(kind: type) -> bool:
    """Returns whether tensors of this class can be taken apart and put together again."""
    return (
        issubclass(kind, Tensor)
        and kind is not Tensor
        and hasattr(kind, "__tensor_flatten__")
        and hasattr(kind, "__tensor_unflatten__")
    )


def autograd_would_have_decomposed(func: OpOverload, flat_args: Sequence[Any]) -> bool:
    """Returns whether an operator is made of others for these arguments: the device of the first tensor has no kernel
    of its own for it."""
    device = next((one.device.type for one in flat_args if isinstance(one, Tensor)), None)
    return device is None or not func.has_kernel_for_dispatch_key(BACKEND_OF_DEVICE[device])


def _is_tensor_constructor(func: OpOverload) -> bool:
    """Returns whether an operator makes one tensor of no other."""
    schema = func.schema
    takes_none = not schema.tensor_positions and not schema.tensor_list_positions
    return takes_none and [str(one.type) for one in schema.returns] == ["Tensor"]


@runtime_checkable
class TensorWithFlatten(Protocol):
    """The protocol of a tensor class that can be taken apart: for annotations."""

    def __tensor_flatten__(self) -> tuple[Sequence[str], object]: ...

    @staticmethod
    def __tensor_unflatten__(inner_tensors: Any, flatten_spec: Any, outer_size: Any, outer_stride: Any) -> Any: ...


def transform_subclass(
    wrapper: Any, callback: Callable[[str, Any], Any], outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """A wrapper of the same class with `callback(name, inner)` in the place of each inner tensor."""
    names, context = wrapper.__tensor_flatten__()
    inner = {name: callback(name, getattr(wrapper, name)) for name in names}
    size = wrapper.size() if outer_size is None else outer_size
    stride = wrapper.stride() if outer_stride is None else outer_stride
    return type(wrapper).__tensor_unflatten__(inner, context, size, stride)


def return_and_correct_aliasing(func: OpOverload, args: Any, kwargs: Any, out: Any) -> Any:
    """`out`, made to alias `func`'s arguments as the schema says. The last line of a wrapper's `__torch_dispatch__`.

    A view shares the storage of the argument that it is a view of; an operator that changes an argument's shape
    (`t_`, `transpose_`) changes the wrapper's own, too; what the schema says is the argument itself is the argument.
    Errors: RuntimeError for a schema that mixes aliased and fresh results.
    """
    schema = func.schema
    aliased = [positions for positions in schema.return_aliases if positions]
    if not aliased:
        return out
    if len(aliased) != len(schema.returns):
        raise RuntimeError(f"return_and_correct_aliasing: {func} returns aliased and fresh tensors together: {schema}")
    values = _arguments(func, args, kwargs or {})
    if schema.is_view:
        for result in tree_leaves(out):
            if isinstance(result, Tensor):
                result._storage = values[aliased[0][0]]._storage
        return out
    if "inplace_view" in func.tags:
        _follow_metadata(func, args, kwargs or {}, values[aliased[0][0]])
    written = tuple(values[positions[0]] for positions in schema.return_aliases)
    return written[0] if len(written) == 1 else written


# What a schema says of memory --------------------------------------------------------------------------------------


@dataclass
class AliasInfo:
    """The aliasing of one argument or result: its alias sets, whether it is written, and its name."""

    alias_set: set[str]
    is_write: bool
    name: str | None


@dataclass
class SchemaInfo:
    """The facts of a schema that `return_and_correct_aliasing` needs.

    outs_write_aliases: for each result the alias set of the argument that was written and is returned; None where no
    result is one. read_only_alias_match_indexes: (argument, result) for each result that is a view of an argument.
    """

    args: list[AliasInfo]
    outs: list[AliasInfo]
    is_inplace_view_op: bool
    outs_write_aliases: list[str] | None
    read_only_alias_match_indexes: list[tuple[int, int]]


def get_alias_info(func: OpOverload) -> SchemaInfo:
    """Returns the aliasing of an operator's schema. RuntimeError where some results are written arguments and some are
    not."""
    args, outs = ([alias_info(one) for one in several] for several in (func.schema.arguments, func.schema.returns))
    written = [next(iter(one.alias_set)) for one in outs if one.is_write]
    if written and len(written) != len(outs):
        raise RuntimeError(f"Unsupported schema: {func.schema}")
    viewed = [
        (i, j)
        for i, given in enumerate(args)
        for j, result in enumerate(outs)
        if given.alias_set & result.alias_set and not given.is_write
    ]
    return SchemaInfo(args, outs, "inplace_view" in func.tags, written or None, viewed)


def alias_info(one: Any) -> AliasInfo:
    """Returns the aliasing of an argument or result of a schema."""
    alias = one.alias_info
    return AliasInfo(
        set() if alias is None else set(alias.names), alias is not None and alias.is_write, one.name or None
    )


def _arguments(func: OpOverload, args: Any, kwargs: dict[str, Any]) -> dict[int, Any]:
    """The arguments that were passed, by position in the schema."""
    positions = {argument.name: i for i, argument in enumerate(func.schema.arguments)}
    return dict(enumerate(args)) | {positions[name]: value for name, value in kwargs.items()}


def _follow_metadata(func: OpOverload, args: Any, kwargs: dict[str, Any], wrapper: Any) -> None:
    """Does to the wrapper's own shape what `func` does to that of its inner tensors."""
    meta = wrapper_on_meta(wrapper)
    on_meta = tree_map_only(Tensor, lambda one: meta if one is wrapper else wrapper_on_meta(one), (args, kwargs))
    with no_dispatch():
        func(*on_meta[0], **on_meta[1])
    lay_out(wrapper, meta._shape, meta._stride, meta._offset)


def wrapper_on_meta(wrapper: Any) -> Tensor:
    """A tensor without data that looks like the wrapper."""
    storage = UntypedStorage.without_data(wrapper._storage.nbytes(), META)
    return tensor_over(storage, None, wrapper._shape, wrapper._stride, wrapper._offset, wrapper._dtype, META)
