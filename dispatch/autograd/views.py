"""Views in autograd: how a tensor becomes a view of another, and what happens when one of them is written.

A view's gradient goes to its base. If the view is written in place, it is the base that gets a new history, and the
node of every other view of that base is out of date: it is made again, from the base as it is now, when somebody asks
for it (`current_grad_fn`). So a view must know how it came from its base: for strided memory its shape, strides and
offset say it all; otherwise `Replay` calls the view operators again.

Some views cannot be written so. Those made under `no_grad` have no node to rebuild; those of an operator with several
results share one node; those returned from a custom Function would lose its backward. The view remembers under which
circumstances it was made (`CreationMeta`), and writing it is refused.

Read next: history.py, history.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch import DEFAULT, LAZY_BITS, STATE, OpOverload, State, call, wants_gradient, within
from redispatch.dispatch.inspection.origins import telling_origin
from redispatch.dispatch.layers.ad_inplace_or_view import AS_VIEW, base_position, returns_one_tensor
from redispatch.dispatch.layers.python import has_handler
from redispatch.dispatch.specialiser.annotations import inline, leaf
from redispatch.dispatch.tensor import CURRENT_GRAD_FN, CreationMeta, Tensor, dtypes

from .saved import short_name

# Read for each view; a member of an Enum is not a plain attribute, and takes longer to get than to use.
DEFAULT_CREATION = CreationMeta.DEFAULT


@leaf
class ViewHistory:
    """Both records of a view in one: what it is a view of (ViewRecord), and what autograd keeps of it (AutogradRecord).

    Note [A view's record starts empty]
    Making views is what small programs do most. So a new view's record has no slots and no `__init__`: it is filled
    where it is made, with what differs from the values here, in half the time.
    """

    # As AutogradRecord has them. A view requires grad as soon as its base does, even if that comes about later.
    asked = False  # whether it was itself asked to require grad
    grad_fn: Any = None
    output_nr = 0
    grad: Any = None
    accumulator: Any = None
    hooks: Any = None
    post_accumulate_hooks: Any = None
    retains_grad: Any = None

    # As ViewRecord has them
    base: Any
    replay: Callable[[Any], Any] | None = None
    creation = DEFAULT_CREATION
    version: int

    @property
    def requires_grad(self) -> bool:
        if self.asked or self.grad_fn is not None:
            return True
        record = self.base._autograd
        return record is not None and record.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.asked = value


class Replay:
    """Makes a view from its base again, by calling the operators that made it: one step, and those before it."""

    __slots__ = ("step", "before")

    def __init__(self, step: Callable[[Any], Any], before: Replay | None = None) -> None:
        self.step = step
        self.before = before

    def __call__(self, base: Any) -> Any:
        steps = []
        replay: Replay | None = self
        while replay is not None:  # no recursion: chains of views can be long
            steps.append(replay.step)
            replay = replay.before
        for step in reversed(steps):
            base = step(base)
        return base


def operator_step(op: OpOverload, stack: list[Any], index: int) -> Callable[[Any], Any]:
    """The call of a view operator, as a function of its base."""
    position = base_position(op.schema)
    arguments = [None if i == position else value for i, value in enumerate(stack)]

    def step(base: Any) -> Any:
        result = call(op, [base if i == position else value for i, value in enumerate(arguments)])
        return result[index] if isinstance(result, tuple | list) else result

    return step


def strided_step(like: Any, root: Any) -> Callable[[Any], Any]:
    """`like`, a view of `root`, as a function of tensors like `root`, which may begin elsewhere in their storage."""
    shape, stride, offset = like._shape, like._stride, like._offset - root._offset
    return lambda base: base.as_strided(shape, stride, base._offset + offset)


@inline
def as_view(view: Any, base: Any, op: OpOverload, stack: list[Any], index: int) -> None:
    """Makes `view`, the result number `index` of a view operator, a view of `base`.

    Not so a view of an inference tensor, which is one, too; nor integers that lie in the memory of floats, which no
    gradient passes; nor where a handler returned a tensor with a history, as every view has one.
    """
    if base._counter is not None and view is not base and view._autograd is None:
        view._counter = base._counter
        if view._dtype.category >= dtypes.FLOATING or base._dtype.category < dtypes.FLOATING:
            creation = creation_now(not returns_one_tensor(op.schema))
            former = base._view
            if view._dtype is not base._dtype or view._keyset is not base._keyset or type(view) is not Tensor:
                enter_other_view(view, base, op, stack, index, creation)
            elif former is None:
                enter_view(view, base, None, creation)
            elif former.replay is None:
                enter_view(view, former.base, None, former.creation if creation is DEFAULT_CREATION else creation)
            else:
                enter_other_view(view, base, op, stack, index, creation)


@inline
def enter_view(view: Any, base: Any, replay: Callable[[Any], Any] | None, creation: CreationMeta) -> None:
    """Gives `view` its record; `base` is no view itself."""
    history = ViewHistory()  # Note [A view's record starts empty]
    history.base = base
    if replay is not None:
        history.replay = replay
    if creation is not DEFAULT_CREATION:
        history.creation = creation
    history.version = view._counter[0]
    view._view = view._autograd = history


@leaf
def enter_other_view(
    view: Any, base: Any, op: OpOverload, stack: list[Any], index: int, creation: CreationMeta
) -> None:
    """Enters a view in the slow cases: of another dtype, with a lazy bit, of a class that handles operators, or of a
    view that takes a replay."""
    step = operator_step(op, stack, index) if needs_replay(view, base) else None
    make_view(view, base, step, creation)


def needs_replay(view: Any, base: Any) -> bool:
    """Whether it takes more than shape, strides and offset to make `view` from the base of `base` again."""
    replayed = base._view is not None and base._view.replay is not None
    turned_over = (view._keyset ^ base._keyset) & LAZY_BITS != 0
    return replayed or turned_over or view._dtype is not base._dtype or has_handler(type(view))


def make_view(view: Any, base: Any, step: Callable[[Any], Any] | None, creation: CreationMeta) -> None:
    """Enters that `view` shows memory of `base`, a view itself or not, from which `step` makes it."""
    replay = None
    former = base._view
    if former is not None:
        replay = former.replay
        if creation is DEFAULT_CREATION:
            creation = former.creation
    if needs_replay(view, base):
        if former is not None and replay is None:
            replay = Replay(strided_step(base, former.base))
        replay = Replay(step or strided_step(view, base), replay)
    enter_view(view, base if former is None else former.base, replay, creation)


@inline
def creation_now(several: bool) -> CreationMeta:
    """Under which circumstances a view made now is made."""
    state = STATE.get()
    if state.inference:
        return CreationMeta.INFERENCE_MODE
    if not state.grad_enabled:
        return CreationMeta.NO_GRAD_MODE
    return CreationMeta.MULTI_OUTPUT_NODE if several else DEFAULT_CREATION


def current_grad_fn(tensor: Any) -> Any:
    """The node whose output `tensor` is, None for a leaf; made anew for a view whose memory was written elsewhere.

    Errors: RuntimeError for a view that cannot be made anew.
    """
    record, view = tensor._autograd, tensor._view
    if record is None:
        return None
    if view is None or view.version == tensor._counter[0]:
        return record.grad_fn
    if record.grad_fn is None and not wants_gradient(view.base):
        return None
    refuse_restricted(tensor, "its base or another view of its base has been")
    remake = view.replay or strided_step(tensor, view.base)
    with within(bookkeeping(STATE.get())):
        fresh = remake(view.base)
    record.grad_fn = None if fresh._autograd is None else fresh._autograd.grad_fn
    record.output_nr = 0
    view.version = tensor._counter[0]
    if record.hooks is not None or record.retains_grad is not None:
        leave_hooks(record)
    return record.grad_fn


def leave_hooks(record: Any) -> None:
    """Has a tensor's hooks stay with its former value; `retain_grad` is about the tensor, whatever it holds."""
    record.hooks = None
    if record.retains_grad is not None and record.grad_fn is not None:
        record.grad_fn._hooks().retaining[record.output_nr] = record.retains_grad


def bookkeeping(state: State) -> State:
    """The state in which a view is made anew: the user's modes have seen it being made. Transforms are to see it."""
    return state.replace(modes=(), function_modes=(), grad_enabled=True) if state.levels else DEFAULT


def check_write(tensor: Any) -> None:
    """Raises RuntimeError where `tensor` must not be written while gradients are recorded."""
    view = tensor._view
    if view is not None:
        refuse_restricted(tensor, "is being")
        if wants_gradient(tensor) and current_grad_fn(view.base) is None:
            text = "a view of a leaf Variable that requires grad is being used in an in-place operation."
            raise telling_origin(RuntimeError(text), view=tensor, leaf=view.base)
    if wants_gradient(tensor) and current_grad_fn(tensor) is None:
        text = "a leaf Variable that requires grad is being used in an in-place operation."
        raise telling_origin(RuntimeError(text), leaf=tensor)


ADVICE = {
    CreationMeta.MULTI_OUTPUT_NODE: (
        " This view is the output of a function that returns multiple views. Such functions do not allow the output "
        "views to be modified inplace. You should replace the inplace operation by an out-of-place one."
    ),
    CreationMeta.IN_CUSTOM_FUNCTION: (
        " This view was created inside a custom Function (or because an input was returned as-is) and the autograd "
        "logic to handle view+inplace would override the custom backward associated with the custom Function, "
        "leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the "
        "custom Function."
    ),
} | {
    meta: (
        " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving "
        f"both the view and the inplace either both inside the {mode} block (if you don't want the inplace to be "
        "tracked) or both outside (if you want the inplace to be tracked)."
    )
    for meta, mode in ((CreationMeta.NO_GRAD_MODE, "no_grad"), (CreationMeta.INFERENCE_MODE, "inference_mode"))
}


def refuse_restricted(tensor: Any, what: str) -> None:
    """Raises RuntimeError where a view was made in a way that does not allow it, or its base, to be written."""
    creation = tensor._view.creation
    if creation is DEFAULT_CREATION:
        return
    node, number = tensor._autograd.grad_fn, tensor._autograd.output_nr
    source = "A view was created in" if node is None else f"Output {number} of {short_name(node)} is a view"
    if creation is CreationMeta.INFERENCE_MODE or creation is CreationMeta.NO_GRAD_MODE or node is None:
        if node is not None:
            source += " of a view which was created in"
        if creation is CreationMeta.INFERENCE_MODE:
            text = f"{source} inference mode and {what} modified inplace in normal mode."
        else:
            text = f"{source} no_grad mode and {what} modified inplace with grad mode enabled."
    else:
        text = f"{source} and {what} modified inplace."
    raise telling_origin(RuntimeError(text + ADVICE[creation]), view=tensor, base=tensor._view.base)


AS_VIEW.fill(as_view)
CURRENT_GRAD_FN.fill(current_grad_fn)
