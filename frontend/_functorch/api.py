"""The names of PyTorch's `torch._functorch.{apis, vmap, eager_transforms, pyfunctorch, utils, ...}`, in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from redispatch._C import _functorch as levels
from redispatch._C._functorch import CInterpreter
from redispatch._names import take
from redispatch.dispatch import STATE
from redispatch.dispatch.autograd import forward_ad
from redispatch.dispatch.autograd.function import SINGLE_LEVEL
from redispatch.dispatch.layers.transforms import without_dead
from redispatch.dispatch.pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten
from redispatch.dispatch.tensor import Tensor
from redispatch.dispatch.transforms.vmap import batched_inputs, name_of, vmap

__all__ = take(
    globals(),
    {
        "redispatch.func": """
            debug_unwrap functional_call functionalize grad grad_and_value hessian jacfwd jacrev jvp linearize
            replace_all_batch_norm_modules_ stack_module_state vjp vmap
        """,
        "redispatch.dispatch.transforms.vmap_level": "VmapInfo",
        "redispatch._C._functorch": """
            RandomnessType TransformType _add_batch_dim _jvp_decrement_nesting _jvp_increment_nesting
            _remove_batch_dim _unwrap_for_grad _vmap_decrement_nesting _vmap_increment_nesting
        """,
    },
)

_get_name = name_of
argnums_t = int | tuple[int, ...]
_enter_dual_level, _exit_dual_level = forward_ad.enter_dual_level, forward_ad.exit_dual_level

# vmap in parts, and paused in the middle ------------------------------------------------------------------------------


def chunk_vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2
) -> Callable[..., Any]:
    """`vmap` that computes a batch in so many parts."""
    if chunks is not None and chunks <= 0:
        raise ValueError(f"vmap: chunks should be None or greater than 0. (got {chunks})")

    def in_parts(*args: Any, **kwargs: Any) -> Any:
        size = batched_inputs(in_dims, args, name_of(func))[0]
        chunk_size = max(-(-size // (chunks or 1)), 1)
        return vmap(func, in_dims, out_dims, randomness, chunk_size=chunk_size)(*args, **kwargs)

    return in_parts


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable[..., Any]:
    """`vmap`, under the name of its first version; None among the outputs may stay None."""
    return (mapped_or_none if allow_none_pass_through else vmap)(func, in_dims, out_dims)


def mapped_or_none(func: Callable[..., Any], in_dims: Any, out_dims: Any) -> Callable[..., Any]:
    """`vmap` of a function of which outputs may be None."""

    def passing(*args: Any) -> Any:
        size = batched_inputs(in_dims, args, name_of(func))[0]
        with vmap_increment_nesting(size, "error") as level:
            found = func(*wrap_batched(args, in_dims, level))
            outputs = found if isinstance(found, tuple) else (found,)
            dims = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(outputs)
            whole = tuple(
                None if one is None else levels._remove_batch_dim(one, level, size, dim)
                for one, dim in zip(outputs, dims, strict=True)
            )
        return whole if isinstance(found, tuple) else whole[0]

    return passing


def _maybe_remove_batch_dim(name: str, batched_output: Any, vmap_level: int, batch_size: int, out_dim: Any) -> Any:
    """Returns an output with the batch at `out_dim`. ValueError for what is no tensor, and for a batch without a place.

    Without `out_dim`, the output of a function that is the same for all examples may be anything.
    """
    if out_dim is None:
        if isinstance(batched_output, Tensor) and levels.is_batchedtensor(batched_output):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return batched_output
    if not isinstance(batched_output, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(batched_output)}. Did you mean to "
            "set out_dims= to None for output?"
        )
    return levels._remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)


def get_chunk_sizes(total_elems: int, chunk_size: int) -> list[int]:
    """The sizes of the parts of a batch: all of `chunk_size` but perhaps the last."""
    return [min(chunk_size, total_elems - start) for start in range(0, total_elems, chunk_size)]


def restore_vmap(func: Callable[..., Any], in_dims: Any, batch_size: int, randomness: str) -> Callable[..., Any]:
    """`vmap` whose function gives (outputs, where the batch stands in each, None for what is the same for all).

    Nothing need be batched, and outputs may be anything.
    """

    def restored(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        with vmap_increment_nesting(batch_size, randomness) as level:
            return unwrap_batched(func(*wrap_batched(args, in_dims, level), **kwargs), level)

    return restored


def wrap_batched(args: tuple[Any, ...], bdims: Any, level: int) -> Any:
    """The arguments as examples under the vmap of that number; `bdims` fits them as `in_dims` does."""
    flat, spec = tree_flatten(args)
    dims: Any = _broadcast_to_and_flatten(bdims, spec)
    wrap = levels._add_batch_dim
    return tree_unflatten(
        [one if dim is None else wrap(one, dim, level) for one, dim in zip(flat, dims, strict=True)], spec
    )


def unwrap_batched(args: Any, level: int) -> tuple[Any, Any]:
    """(the batches of a pytree, where the batch stands in each)."""
    flat, spec = tree_flatten(args)
    if not flat:
        return args, ()
    pairs = [levels._unwrap_batched(one, level) if isinstance(one, Tensor) else (one, None) for one in flat]
    return tree_unflatten([one for one, _ in pairs], spec), tree_unflatten([dim for _, dim in pairs], spec)


def nesting(enter: Callable[..., int], leave: Callable[[], int]) -> Callable[..., Any]:
    """Returns a region in which a transform is at work; it gives the number of its level."""

    @contextmanager
    def region(*args: Any) -> Iterator[int]:
        level = enter(*args)
        try:
            yield level
        finally:
            leave()

    return region


vmap_increment_nesting = nesting(levels._vmap_increment_nesting, levels._vmap_decrement_nesting)
grad_increment_nesting = nesting(levels._grad_increment_nesting, levels._grad_decrement_nesting)
jvp_increment_nesting = nesting(levels._jvp_increment_nesting, levels._jvp_decrement_nesting)

# The stack of levels --------------------------------------------------------------------------------------------------

FuncTorchInterpreter = VmapInterpreter = GradInterpreter = JvpInterpreter = FunctionalizeInterpreter = CInterpreter
coerce_cinterpreter = CInterpreter
retrieve_current_functorch_interpreter = levels.peek_interpreter_stack


def retrieve_all_functorch_interpreters() -> list[Any]:
    """The levels at work, the outermost first."""
    return levels.get_interpreter_stack() or []


@contextmanager
def temporarily_pop_interpreter_stack() -> Iterator[Any]:
    """A region in which the innermost level is off the stack."""
    taken = levels.pop_dynamic_layer_stack()
    try:
        yield taken
    finally:
        levels.push_dynamic_layer_stack(taken)


@contextmanager
def temporarily_clear_interpreter_stack() -> Iterator[list[Any]]:
    """A region in which all levels are off the stack; it gives them, the innermost first."""
    taken: list[Any] = []
    try:
        while STATE.get().levels:
            taken.append(levels.pop_dynamic_layer_stack())
        yield taken
    finally:
        for layer in reversed(taken):
            levels.push_dynamic_layer_stack(layer)


@contextmanager
def temporarily_restore_interpreter_stack(stack: list[Any]) -> Iterator[None]:
    """A region in which levels that `temporarily_clear_interpreter_stack` took are at work again."""
    former = STATE.get()
    try:
        for layer in reversed(stack):
            levels.push_dynamic_layer_stack(layer)
        yield
    finally:
        STATE.set(former)


# Settings -------------------------------------------------------------------------------------------------------------


@contextmanager
def enable_single_level_autograd_function() -> Iterator[None]:
    """A region in which a Function is applied to the wrappers of the innermost transform, as to any tensors."""
    token = SINGLE_LEVEL.set(True)
    try:
        yield
    finally:
        SINGLE_LEVEL.reset(token)


@contextmanager
def enable_inplace_requires_grad(enabled: bool) -> Iterator[None]:
    """A region in which the function under the innermost transform may call `requires_grad_`."""
    former = levels.get_inplace_requires_grad_allowed()
    levels.set_inplace_requires_grad_allowed(enabled)
    try:
        yield
    finally:
        levels.set_inplace_requires_grad_allowed(former)


def unwrap_dead_wrappers(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments without wrappers whose level is gone."""
    return tuple(without_dead(one) for one in args)
