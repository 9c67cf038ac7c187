"""`redispatch.utils._python_dispatch`: what writers of dispatch modes and wrapper subclasses need.

The modes themselves are in the dispatcher (dispatch/mode_stack.py, dispatch/layers/python.py). Here are the helpers
around them; `return_and_correct_aliasing` is the one that nearly every wrapper ends with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from redispatch.dispatch import (
    STATE,
    OpOverload,
    TorchDispatchMode,
    exclude,
    keyset,
    pop_mode,
    push_mode,
    with_modes,
    within,
)
from redispatch.tensor import META, Tensor, UntypedStorage, lay_out, tensor_over

from ._pytree import tree_leaves

__all__ = [
    "BaseTorchDispatchMode",
    "TorchDispatchMode",
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
    return bool(STATE.get().modes)


_pop_mode = pop_mode
_push_mode = push_mode


@contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    """A region without the innermost mode, which it hands out."""
    mode = pop_mode()
    try:
        yield mode
    finally:
        push_mode(mode)


@contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """A region without any dispatch mode; hands out those that were active."""
    state = STATE.get()
    with within(with_modes(state, ())):
        yield list(state.modes)


def no_dispatch() -> Any:
    """A region in which no operator stops at the key Python: neither modes nor subclasses see it."""
    return exclude(keyset("Python", "PythonTLSSnapshot", "PreDispatch"))


# Wrapper subclasses -----------------------------------------------------------------------------------------------


def is_traceable_wrapper_subclass(value: Any) -> bool:
    """Whether `value` is a tensor that can be taken apart (`__tensor_flatten__`) and put together again."""
    return (
        isinstance(value, Tensor)
        and type(value) is not Tensor
        and hasattr(value, "__tensor_flatten__")
        and hasattr(value, "__tensor_unflatten__")
    )


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


def _arguments(func: OpOverload, args: Any, kwargs: dict[str, Any]) -> dict[int, Any]:
    """The arguments that were passed, by position in the schema."""
    positions = {argument.name: i for i, argument in enumerate(func.schema.arguments)}
    return dict(enumerate(args)) | {positions[name]: value for name, value in kwargs.items()}


def _follow_metadata(func: OpOverload, args: Any, kwargs: dict[str, Any], wrapper: Any) -> None:
    """Does to the wrapper's own shape what `func` does to that of its inner tensors."""
    meta = wrapper_on_meta(wrapper)
    with no_dispatch():
        func(*[meta if value is wrapper else value for value in args], **kwargs)
    lay_out(wrapper, meta._shape, meta._stride, meta._offset)


def wrapper_on_meta(wrapper: Any) -> Tensor:
    """A tensor without data that looks like the wrapper."""
    storage = UntypedStorage.without_data(wrapper._storage.nbytes(), META)
    return tensor_over(storage, None, wrapper._shape, wrapper._stride, wrapper._offset, wrapper._dtype, META)
