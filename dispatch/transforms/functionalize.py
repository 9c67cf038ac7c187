"""functionalize: a function that computes the same without writing to anything, but for its inputs at the end.

    def f(x):
        y = x.clone()
        y[0].add_(1)
        return y

    functionalize(f)        # calls clone, select, add and select_scatter: no add_

Its tensors are wrappers, of which the layer Functionalize (dispatch/layers/functionalize.py) knows what was written
where. It composes with the other transforms: inside of `vmap` or `grad` they see no writes, outside of them it
functionalizes the calls that they make.

Source: PyTorch's torch.func.functionalize. Read next: dispatch/tensor/functional.py; kernels/ops/functionalization.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from redispatch.dispatch import STATE, OpOverload, call, within
from redispatch.dispatch.autograd import Function
from redispatch.dispatch.higher_order import FUNCTIONALIZE_API
from redispatch.dispatch.layers.functionalize import FUNCTIONALIZE, below_functionalize
from redispatch.dispatch.layers.transforms import Level, each_tensor
from redispatch.dispatch.pytree import tree_map_only
from redispatch.dispatch.tensor import Tensor
from redispatch.dispatch.tensor.functional import FunctionalStorage, FunctionalTensorWrapper, functional, is_functional
from redispatch.dispatch.tensor.wrapped import level_of, without_dead

MUTATIONS, VIEWS_TOO = "mutations", "mutations_and_views"


class FunctionalizeLevel(Level):
    """`functionalize` at work. reapply_views: whether views of values stay views."""

    def __init__(self, reapply_views: bool = True) -> None:
        self.reapply_views = reapply_views

    def process(self, op: OpOverload, stack: list[Any]) -> Any:
        alive = each_tensor(op.schema, stack, without_dead)
        with within(STATE.get().functionalizing(self.reapply_views)):
            return call(op, alive)

    def wrap(self, value: Any) -> Any:
        return value  # the layer Functionalize has wrapped what is to be

    def unwrap(self, tensor: Any) -> Any:
        """The value in a wrapper of this level; calls operators where it was written since."""
        if not (isinstance(tensor, FunctionalTensorWrapper) and tensor._level is self):
            return tensor
        with self.outside():
            return tensor.current()

    def refresh(self, written: Any) -> None:
        """Values that a call has written are not in wrappers."""

    def outside(self) -> within:
        """A region in which calls are made on values, outside of this level if it is at work."""
        state = STATE.get()
        state = state.outer() if self.alive and state.innermost is self else state
        return within(state.replace(reapply_views=self.reapply_views))

    def apply_function(self, cls: type[Function], args: tuple[Any, ...]) -> Any:
        raise RuntimeError(
            f"functionalize: {cls.__name__}.apply was called under it, and what a custom Function writes in its "
            "forward or backward cannot be taken out of it. Functionalize a function that calls operators, or apply "
            "the Function outside."
        )


class Inputs:
    """The inputs of a functionalized function: what they were, and what they are under the level."""

    def __init__(self, level: FunctionalizeLevel) -> None:
        self.level = level
        self.pairs: list[tuple[Tensor, Any, FunctionalStorage]] = []  # (input, its wrapper, the memory it then showed)

    def wrap(self, tensor: Tensor) -> Any:
        """The wrapper of an input; the same one where it is passed twice."""
        for given, wrapper, _ in self.pairs:
            if given is tensor:
                return wrapper
        wrapper = functional(tensor, self.level)
        self.pairs.append((tensor, wrapper, wrapper._store))
        return wrapper

    def write(self) -> None:
        """Writes to the inputs what the function wrote to their wrappers."""
        for tensor, _, storage in self.pairs:
            if storage.generation:
                tensor.copy_(storage.current())
                if self.level.reapply_views:
                    storage.put(tensor)  # so that results which show this memory are views of the input, as they were

    def turn(self) -> None:
        """Has the inputs look as their wrappers do, after operators such as `t_`."""
        for tensor, wrapper, storage in self.pairs:
            if wrapper._store is not storage:
                self.show_other_memory(tensor, wrapper, storage)
            elif (tensor._shape, tensor._stride) != (wrapper._shape, wrapper._stride):
                tensor.as_strided_(wrapper._shape, wrapper._stride, wrapper._offset)

    def show_other_memory(self, tensor: Tensor, wrapper: Any, storage: FunctionalStorage) -> None:
        """Updates an input that was resized beyond its memory, or made to show that of another tensor."""
        value = wrapper.current()
        if storage.larger is not None and wrapper._store is storage.larger:
            tensor.resize_(value._shape).copy_(value)
            storage.larger.put(tensor)
        else:
            tensor.set_(value)


def functionalize(func: Callable[..., Any], *, remove: str = MUTATIONS) -> Callable[..., Any]:
    """`func`, calling no operator that writes a tensor, but at the end the ones that write what `func` wrote to its
    inputs.

    remove: "mutations", or "mutations_and_views" to have copies in the place of views, by the operators `*_copy`.
    The arguments and results are pytrees of tensors and anything else.
    Errors: RuntimeError for another `remove`, for custom operators that write and have no functional form, and for a
    tensor from outside that is not passed as an argument and written.

    >>> import redispatch as rd
    >>> def bump(x):
    ...     y = x.clone()
    ...     y.add_(1)
    ...     return y
    >>> rd.func.functionalize(bump)(rd.zeros(2))
    tensor([1., 1.])
    """
    if remove not in (MUTATIONS, VIEWS_TOO):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are:\n"
            f"     remove='{MUTATIONS}': all inplace and out= operators will be removed from the program, and replaced "
            "with their out-of-place equivalents.\n"
            f"     remove='{VIEWS_TOO}': In addition to the above, all aliasing operators (e.g. aten::view) will be "
            "replaced with their copying equivalents (e.g. aten::view_copy)."
        )

    @functools.wraps(func)
    def functionalized(*args: Any, **kwargs: Any) -> Any:
        with FunctionalizeLevel(remove == MUTATIONS) as level:
            inputs = Inputs(level)
            args, kwargs = tree_map_only(Tensor, inputs.wrap, (args, kwargs))
            results = func(*args, **kwargs)
            with level.outside():
                inputs.write()
                results = tree_map_only(Tensor, lambda one: handed_out(one, inputs), results)
                inputs.turn()
        return results

    return functionalized


def handed_out(result: Any, inputs: Inputs) -> Any:
    """A result as a tensor of the level outside: an input itself, where it is that."""
    if level_of(result) is not inputs.level:
        return result
    for tensor, wrapper, _ in inputs.pairs:
        if wrapper is result:
            return tensor
    return result.current()


# FunctionalizeAPI: what the functionalization rule of a higher-order operator works with ------------------------------
#
#     @twice.py_functionalize_impl
#     def twice_functional(ctx, f, x):
#         value = ctx.unwrap_tensors(x)
#         with ctx.redispatch_to_next():
#             return ctx.wrap_tensors(twice(ctx.functionalize(f), value))
#
# A rule is given wrappers, which a program may write; what it calls below must not be written. It is the same under the
# transform, at the key Functionalize and under FunctionalTensorMode, which tell it by `ctx` what their wrappers are.
#
# Source: PyTorch's BaseFunctionalizeAPI and its three kinds.


class FunctionalizeAPI:
    """The wrappers of a transform, or of the key Functionalize where `level` is None. Arguments are pytrees."""

    def __init__(self, level: Any = None) -> None:
        self.level = level

    def wrap_tensors(self, args: Any) -> Any:
        """The tensors in wrappers, each with memory of its own."""
        return tree_map_only(Tensor, self._wrapped, args)

    def unwrap_tensors(self, args: Any) -> Any:
        """The values that the wrappers show now. Calls operators where they were written since."""
        return tree_map_only(Tensor, self._value, args)

    def functionalize(self, inner_f: Callable[..., Any]) -> Callable[..., Any]:
        """A function of values that computes the same, and writes nothing but its inputs."""
        reapply_views = STATE.get().reapply_views if self.level is None else self.level.reapply_views
        return functionalize(inner_f, remove=MUTATIONS if reapply_views else VIEWS_TOO)

    def redispatch_to_next(self) -> AbstractContextManager[Any]:
        """A region in which calls are made on values."""
        return below_functionalize() if self.level is None else self.level.outside()

    def replace(self, input_tensor: Any, output_tensor: Any) -> None:
        """Has a wrapper, and all that share its memory, show another value. ValueError for what is no wrapper."""
        if not is_functional(input_tensor):
            raise ValueError(f"expected a wrapper of functionalization, got {type(input_tensor).__name__}")
        input_tensor._store.enter(output_tensor, input_tensor._steps)

    def commit_update(self, tensor: Any) -> None:
        """Nothing is left to do: `replace` has entered the value already."""

    def sync(self, tensor: Any) -> None:
        """Has a wrapper take on what was written to its memory."""
        self._value(tensor)

    def mark_mutation_hidden_from_autograd(self, tensor: Any) -> None:
        """Nothing is to be marked: autograd stands above, and has seen the write."""

    def _wrapped(self, value: Tensor) -> Any:
        return functional(value, self.level)

    def _value(self, tensor: Tensor) -> Any:
        if self.level is not None:
            return self.level.unwrap(tensor)
        if not is_functional(tensor):
            return tensor
        with below_functionalize():
            return tensor.current()


FUNCTIONALIZE_API.fill(FunctionalizeAPI)


# PyTorch's private names for functionalization without a transform: `torch._to_functional_tensor` and its kin ---------
#
# For those who write modes (modes/functional_tensor.py) and tests; a function is functionalized by `functionalize`.


def _to_functional_tensor(t: Tensor) -> Any:
    """A wrapper around a tensor, with memory of its own. RuntimeError for what is one already."""
    if is_functional(t):
        raise RuntimeError("_to_functional_tensor: expected a tensor that is not functional yet")
    return functional(t)


def _is_functional_tensor(t: Any) -> bool:
    """Whether a tensor is such a wrapper."""
    return is_functional(t)


def _sync(t: Any) -> None:
    """Has a wrapper take on what was written to its memory since it was last read."""
    _from_functional_tensor(t)


def _from_functional_tensor(t: Any) -> Any:
    """The value that a wrapper shows now. RuntimeError for another tensor."""
    with below_functionalize():
        return checked(t).current()


def checked(t: Any) -> Any:
    if not is_functional(t):
        raise RuntimeError(f"expected a functional tensor, got {type(t).__name__}: make one by _to_functional_tensor")
    return t


# What a compiler asks of a wrapper, and does to it --------------------------------------------------------------------


def _functionalize_sync(t: Any) -> None:
    """`_sync`."""
    _sync(t)


def _functionalize_replace(self_: Any, other: Tensor) -> None:
    """Has a wrapper show another value, of which those that share its memory hear by `_functionalize_commit_update`."""
    checked(self_)._value = other


def _functionalize_commit_update(t: Any) -> None:
    """Enters the value that a wrapper shows into its memory, so that all that share it show it, too."""
    checked(t)._store.enter(t._value, t._steps)


def _functionalize_mutation_counter(t: Any) -> int:
    """Counts the writes to the memory of a wrapper."""
    return checked(t)._store.generation


def _functionalize_has_data_mutation(t: Any) -> bool:
    """Whether the memory of a wrapper was written."""
    return _functionalize_mutation_counter(t) > 0


def _functionalize_has_metadata_mutation(t: Any) -> bool:
    """Whether an operator such as `t_` changed how a wrapper lies in memory."""
    return checked(t)._turned


def _is_functional_tensor_base(t: Any) -> bool:
    """Whether a wrapper shows its whole memory, and is no view of another."""
    return not checked(t)._steps


# Regions --------------------------------------------------------------------------------------------------------------


def _enable_functionalization(*, reapply_views: bool = False) -> None:
    """Has the layer Functionalize take every call from now on, in this thread or task; new tensors are wrapped."""
    state = STATE.get()
    if state.included & FUNCTIONALIZE:
        raise RuntimeError(
            "multiple layers of mode-style functionalization nesting is not currently supported, outside of the "
            "functionalize() transform"
        )
    STATE.set(
        state.replace(
            included=state.included | FUNCTIONALIZE,
            excluded=state.excluded & ~FUNCTIONALIZE,
            reapply_views=reapply_views,
        )
    )


def _disable_functionalization() -> None:
    """Ends what `_enable_functionalization` began."""
    state = STATE.get()
    STATE.set(state.replace(included=state.included & ~FUNCTIONALIZE, reapply_views=True))
