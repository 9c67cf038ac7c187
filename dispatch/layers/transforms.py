"""Transforms: vmap, grad and jvp take the calls that are made under them, the innermost first.

A transform at work is a *level*. The tensors that it watches are wrappers, each of which holds a value of the level
outside: a plain tensor, or a wrapper of another level. A call goes

    FuncTorchDynamicLayerFrontMode   to the innermost level, which works out what it means for the values in its
    ...                              wrappers, by calls of its own
    FuncTorchDynamicLayerBackMode    and these go on to the level outside of it, and in the end to plain tensors.

So each level knows nothing of the others, and they compose in any order. What a level does is its own affair
(dispatch/autograd/grad_level.py, dispatch/autograd/jvp_level.py, dispatch/transforms/vmap_level.py); here is only how
calls come to it and leave it.

A wrapper can outlive its level: a function returned it by a side door, or kept it. Outside, a level that only watched
its values is gone without a trace (FuncTorchGradWrapper); what was batched has no meaning any more (FuncTorchBatched).

Source: PyTorch's functorch, whose interpreter stack this is. Read next: dispatch/tensor/wrapped.py,
dispatch/autograd/grad_level.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, cast

from ..core.base import TensorBase
from ..core.interpreter import call
from ..core.operator import OpOverload
from ..core.state import AT_WORK, LEVEL_FLAGS, LEVELS, STATE, LevelKind, State, within
from ..records import dataclass
from ..rules import RuleTable
from ..schema.schema import TENSOR, FunctionSchema
from ..specialiser.annotations import inline, pure
from .layer import layer


class Level:
    """A transform at work. A subclass says what a call means (`process`), and knows its wrappers.

    Specialised code is made for a class of levels, not for one level: which class the innermost one is of stands among
    the flags of the state, so that `process` is worked out in its place if it is `@inline`.
    """

    flag = 0  # of the class, in the state; 0 where there are no more
    number: int  # from 1, counted from the outermost
    alive = True  # until the transform is left
    allows_requires_grad = False  # whether the function under it may call `requires_grad_`

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.flag = next((flag for flag in LEVEL_FLAGS if flag not in LEVELS), 0)
        if cls.flag:
            LEVELS[cls.flag] = cls

    def process(self, op: OpOverload, stack: list[Any]) -> Any:
        """The result of a call that is made under this level."""
        raise NotImplementedError

    def wrap(self, value: Any) -> Any:
        """A tensor of the level outside as one of this level."""
        raise NotImplementedError

    def unwrap(self, tensor: Any) -> Any:
        """The value in a wrapper of this level; anything else as it is."""
        raise NotImplementedError

    def refresh(self, written: Any) -> None:
        """Has wrappers that a call wrote look like their values: an operator such as `t_` changes a shape."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        state = STATE.get()
        outside = len(state.levels)
        self.number = outside + 1
        self._at_work = AT_WORK.set((*AT_WORK.get()[:outside], self))
        self._token = STATE.set(self.entered(state))
        return self

    def entered(self, state: State) -> State:
        """The state in which the transformed function runs."""
        return state.under(LevelKind(self.flag))

    def __exit__(self, *error: object) -> None:
        self.alive = False
        STATE.reset(self._token)
        AT_WORK.reset(self._at_work)


@layer("FuncTorchDynamicLayerFrontMode")
def front(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Hands the call to the innermost level."""
    return STATE.get().innermost.process(op, stack)


@layer("FuncTorchDynamicLayerBackMode")
def back(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Makes the call outside of the innermost level, on the values in its wrappers; wraps what comes back."""
    return made_outside(op, stack)


@inline
def made_outside(op: OpOverload, stack: list[Any]) -> Any:
    state = STATE.get()
    level = state.innermost
    values = each_tensor(op.schema, stack, level.unwrap)
    with within(state.outside):  # type: ignore[arg-type]  # this key is included in such states alone
        result = call(op, values)
    for position in op.schema.mutable_positions:
        level.refresh(stack[position])
    if not gives_one_new_tensor(op.schema):
        return handed_back(op.schema, level, stack, values, result)
    for value, tensor in zip(values, stack, strict=True):
        if isinstance(value, TensorBase) and result is value:
            return tensor
    return level.wrap(result)


@pure
def gives_one_new_tensor(schema: FunctionSchema) -> bool:
    """Whether a schema returns a tensor, and writes none."""
    return len(schema.returns) == 1 and schema.returns[0].type == TENSOR and not schema.is_mutable


def handed_back(schema: FunctionSchema, level: Level, stack: list[Any], values: list[Any], result: Any) -> Any:
    """Any result in wrappers of the level; what is one of the arguments is the wrapper that was given."""
    given = {id(value): tensor for value, tensor in zip(values, stack, strict=True) if isinstance(value, TensorBase)}
    return each_result(schema, stack, result, lambda one: given[id(one)] if id(one) in given else level.wrap(one))


@inline
def each_tensor(schema: FunctionSchema, stack: list[Any], change: Callable[[Any], Any]) -> list[Any]:
    """The stack with each tensor changed, those in lists included."""
    changed = list(stack)
    for position in schema.tensor_positions:
        if isinstance(stack[position], TensorBase):
            changed[position] = cast(TensorBase, change(stack[position]))
    for position in schema.tensor_list_positions:
        if stack[position]:
            changed[position] = [
                cast(TensorBase, change(item)) if isinstance(item, TensorBase) else item for item in stack[position]
            ]
    return changed


def each_result(schema: FunctionSchema, stack: list[Any], result: Any, change: Callable[[Any], Any]) -> Any:
    """The result with each tensor changed; what was written is the very argument that was passed."""
    if isinstance(result, tuple):
        returns = schema.returns
        return tuple(
            result_of(schema, stack, index, one, change) if len(returns) > 1 else each_item(one, change)
            for index, one in enumerate(result)
        )
    return result_of(schema, stack, 0, result, change)


def result_of(schema: FunctionSchema, stack: list[Any], index: int, result: Any, change: Callable[[Any], Any]) -> Any:
    aliased = schema.return_aliases[index] if index < len(schema.return_aliases) else ()
    if aliased and schema.returns[index].is_write and stack[aliased[0]] is not None:
        return stack[aliased[0]]
    return each_item(result, change)


def each_item(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, TensorBase):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(each_item(item, change) for item in value)
    return value


# Wrappers that have outlived their level ------------------------------------------------------------------------------


@layer("FuncTorchGradWrapper")
def grad_wrapper(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Calls the operator on what levels that are gone had watched."""
    return call(op, each_tensor(op.schema, stack, outside_of_levels))


def outside_of_levels(tensor: Any) -> Any:
    """Returns a wrapper's value. RuntimeError where its level is at work, but not here: in another thread, say."""
    bare = without_dead(tensor)
    if getattr(bare, "_level", None) is not None:
        raise RuntimeError(
            "a tensor of a grad, vjp or jvp that is at work elsewhere was used where that transform is not: in another "
            "thread, or in a hook that runs outside of it"
        )
    return bare


def without_dead(tensor: Any) -> Any:
    """Returns the value of a wrapper whose level is gone; other tensors as they are."""
    while (level := getattr(tensor, "_level", None)) is not None and not level.alive:
        tensor = level.unwrap(tensor)
    return tensor


@layer("FuncTorchBatched")
def batched(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Refuses a batched tensor outside of its vmap."""
    raise RuntimeError(
        "Either your tensor may have escaped from inside a function being vmapped and this is a user error (see "
        f"https://pytorch.org/functorch/stable/ux_limitations.html). {op} was called where that vmap is not at work: "
        "return the tensor from the function, so that vmap hands out the whole batch."
    )


# vmap: what an operator does to batches ------------------------------------------------------------------------------

# By operator: a function of (op, values, dims, size), called outside of the level. `values` is the stack with the
# batched tensors in it, `dims` says along which dimension each is batched (None: not at all; for lists, a list), `size`
# is that of the batch. It gives (result, dims of the result).
BATCHING: RuleTable[Any] = RuleTable("batching rule")


@dataclass(frozen=True)
class ByUser:
    """A batching rule in that table which a user wrote: `function(info, in_dims, *args, **kwargs)`.

    `info` says the size of the batch and what random operators do; in_dims are those of `args` alone.
    """

    function: Callable[..., Any]
