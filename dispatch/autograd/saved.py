"""SavedTensor: a tensor that a node keeps for backward, and that must not have changed until then.

It remembers the version at which the tensor was saved; `unpack` compares. What it holds depends on what was saved:

- an input is held as it is;
- a result of the node itself is held without history, since it points to the node: the two would keep each other
  alive. `unpack` gives it its history back;
- under `saved_tensors_hooks`, what the user's `pack` returned is held in its place, and no version is compared.

Note [Kept tensors]
A node keeps most tensors as they are, each followed by its version: (tensor, version, tensor, version). That costs a
tenth of a SavedTensor. `kept_value` compares the version. Two versions are none: None follows what is no tensor (a
number in a tensor's place, None, UNSAVED), and WRAPPED a SavedTensor or a list of them. A SavedTensor is made where
hooks or users ask for one.

Note [Results are taken apart]
A node must not hold its own result, which holds it. It holds what the result is made of, and puts another tensor
together when it runs: a tensor object made beforehand, with the storage that the two would share, would cost as much as
all else that is recorded. So for a moment two tensors may show one array without having a storage in common. It does no
harm: a formula writes nothing that it is given, and who wants to overwrite a gradient counts the references to its
array (accumulate.py, Note [Gradients that nobody else holds]).

Read next: derivative.py.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from redispatch.dispatch import STATE, wants_gradient, within
from redispatch.dispatch.inspection.origins import telling_origin
from redispatch.dispatch.layers.autograd import AUTOGRAD
from redispatch.dispatch.specialiser.annotations import inline
from redispatch.dispatch.tensor import CURRENT_GRAD_FN, AutogradRecord, Tensor, metadata_of
from redispatch.dispatch.tensor.metadata import EPOCH
from redispatch.dispatch.tensor.wrapped import is_wrapped

from .accumulate import accumulator
from .anomaly_mode import watch_writes, write_after
from .hooks import WATCH, type_name

new = object.__new__
Pack = Callable[[Any], Any]
Unpack = Callable[[Any], Any]

# The hooks in force, the innermost pair last; and, where none may be set, the message that says so
PACKING: ContextVar[tuple[tuple[Pack, Unpack], ...]] = ContextVar("saved tensor hooks", default=())
HOOKS_REFUSED: ContextVar[str | None] = ContextVar("why saved tensor hooks are refused", default=None)


class _Unsaved:
    """Stands where nothing was kept, because the gradient that it would serve is not wanted."""

    def __repr__(self) -> str:
        return "UNSAVED"


UNSAVED = _Unsaved()
WRAPPED = -1  # in the place of a version: Note [Kept tensors]

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)


class SavedTensor:
    """A tensor kept for backward. `unpack(node)` gives it back to the node that saved it."""

    __slots__ = ("_tensor", "_version", "_output_nr", "_history", "_unpack", "_packed")
    _tensor: Any  # None once it was let go or packed
    _version: int
    _output_nr: int | None  # None for an input
    _history: Any  # of a written view: a weak reference to its node; of a packed input: its record
    _unpack: Unpack | None
    _packed: Any

    def __init__(self, tensor: Any = None, output_nr: int | None = None, written_view: bool = False) -> None:
        """Saves `tensor`: an input, or with `output_nr` that result of the node itself.

        `written_view`: the result is a view that the node's call wrote; its history is not this node but one that
        holds this node, and so is remembered weakly.
        """
        if tensor is None:
            raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")
        if WATCH.on:
            watch_writes(tensor)
        self._version = version_of(tensor)
        self._output_nr = output_nr
        self._history = None
        self._unpack = None
        if written_view:
            self._history = weakref.ref(CURRENT_GRAD_FN()(tensor))
        hooks = PACKING.get()
        if hooks:
            self._pack(tensor, *hooks[-1])
        else:
            self._tensor = tensor if output_nr is None else without_history(tensor)

    def unpack(self, node: Any) -> Any:
        """The tensor, with its history.

        Errors: RuntimeError where it was written since, or was let go after a backward pass.
        """
        if self._unpack is not None:
            return self._unpacked(node)
        tensor = self._tensor
        if tensor is None:
            raise RuntimeError(FREED)
        if tensor._counter[0] != self._version:
            refuse_changed(tensor, self._version, self._output_nr, node)
        return tensor if self._output_nr is None else self._with_history(tensor, node)

    def release(self) -> None:
        """Lets the tensor go."""
        self._tensor = self._unpack = self._packed = None

    # A result, whose history is the node itself -------------------------------------------------------------------

    def _with_history(self, tensor: Any, node: Any) -> Any:
        if self._history is not None:
            node = self._history()
        return copy_of(tensor) if node is None else as_output(tensor, node, self._output_nr or 0)

    # Hooks --------------------------------------------------------------------------------------------------------

    def register_hooks(self, *hooks: Any) -> None:
        """Packs what is held now by the first function, which the second undoes. RuntimeError where it was let go, or
        has hooks already."""
        if len(hooks) != 2 or not all(map(callable, hooks)):
            raise TypeError(
                "register_hooks(): incompatible function arguments. The following argument types are supported:\n    "
                "1. (self: torch._C._autograd.SavedTensor, arg0: collections.abc.Callable, arg1: "
                f"collections.abc.Callable) -> None\n\nInvoked with: {', '.join(map(repr, (self, *hooks)))}"
            )
        if self._unpack is not None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of "
                "hooks is allowed at a time."
            )
        if self._tensor is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the "
                "graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need "
                "to backward through the graph a second time or if you need to access saved variables after calling "
                "backward."
            )
        tensor = self._tensor
        if self._output_nr is None and tensor._autograd is not None:
            self._history = history_of(tensor)
        self._pack(copy_of(tensor), *hooks)

    def _pack(self, tensor: Any, pack: Pack, unpack: Unpack) -> None:
        if self._output_nr is None and tensor._autograd is not None and wants_gradient(tensor):
            self._history = history_of(tensor)
        version = tensor._counter[0]
        with within(STATE.get().with_grad(False)):
            self._packed = pack(tensor)
        if tensor._counter[0] != version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook "
                "cannot be modified by in-place operations as this can lead to unexpected side-effects. Please open "
                "an issue if you need to perform in-place operations on the input to a pack hook."
            )
        self._unpack = unpack
        self._tensor = None

    def _unpacked(self, node: Any) -> Any:
        with within(STATE.get().with_grad(False)):
            tensor = self._unpack(self._packed)  # type: ignore[misc]  # the caller has seen that there is one
        if not isinstance(tensor, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                + type(tensor).__name__
            )
        if self._output_nr is not None:
            return self._with_history(tensor, node)
        if self._history is None:
            return tensor
        result = without_history(tensor)
        result._autograd = self._history
        return result


class SavedNone(SavedTensor):
    """Shows None in the place of a tensor that is saved."""

    __slots__ = ()

    def __init__(self) -> None:
        self.release()

    def unpack(self, node: Any) -> None:
        """Returns None."""

    def register_hooks(self, *hooks: Any) -> None:
        raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")


# What stands in the place of a saved tensor that was let go
RELEASED = object.__new__(SavedTensor)
RELEASED.release()


# What nodes keep without a SavedTensor: Note [Kept tensors] ----------------------------------------------------------


@inline
def version_of(tensor: Any) -> int:
    """The version of a tensor that is being saved. RuntimeError for an inference tensor, which has none."""
    return tensor._counter[0] if tensor._counter is not None else refuse_inference_tensor(tensor)


def refuse_inference_tensor(tensor: Any) -> int:
    text = (
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
        "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it "
        "in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
    )
    raise telling_origin(RuntimeError(text), tensor=tensor)


class SavedForSeveral(SavedTensor):
    """A tensor that several formulas of one node read. Hooks unpack it once for all of them: they may count."""

    __slots__ = ("readers", "_left", "_found")

    def __init__(self, tensor: Any, readers: int) -> None:
        super().__init__(tensor)
        self.readers, self._left, self._found = readers, 0, None

    def unpack(self, node: Any) -> Any:
        if not self._left:
            self._found, self._left = super().unpack(node), self.readers
        self._left -= 1
        found = self._found
        if not self._left:
            self._found = None
        return found


@inline
def kept_value(node: Any, value: Any, version: int | None) -> Any:
    """Returns the saved value of an argument, for the node's formulas. Errors: as `SavedTensor.unpack`."""
    as_it_is = version is None or (version >= 0 and value._counter[0] == version)
    return value if as_it_is else other_kept_value(node, value, version)


def other_kept_value(node: Any, value: Any, version: int | None) -> Any:
    if version is not None and version != WRAPPED:
        refuse_changed(value, version, None, node)
        return value
    if isinstance(value, list):
        return [item.unpack(node) if isinstance(item, SavedTensor) else item for item in value]
    return value.unpack(node)


@inline
def kept_result(tensor: Any, number: int = 0) -> tuple[Any, int]:
    """Returns the form in which a node saves its output `number`, and its version: Note [Results are taken apart]."""
    if WATCH.on and packs(tensor):
        return SavedTensor(tensor, number), WRAPPED
    version = version_of(tensor)
    if type(tensor) is Tensor and not STATE.get().modes:
        metadata = tensor._interned or metadata_of(tensor)
        return (tensor._keyset, tensor._counter, tensor._store, tensor._array, tensor._offset, metadata), version
    return without_history(tensor), version


def packs(tensor: Any) -> bool:
    """Whether there are hooks for a tensor that is being saved; in anomaly mode, its writes are watched from now on."""
    watch_writes(tensor)
    return bool(PACKING.get())


def put_together(parts: tuple[Any, ...]) -> Any:
    """The tensor that `kept_result` took apart, without its history."""
    tensor = new(Tensor)
    tensor._keyset, tensor._counter, tensor._store, tensor._array, tensor._offset, metadata = parts
    tensor._shape = metadata.shape
    tensor._stride = metadata.stride
    tensor._dtype = metadata.dtype
    tensor._device = metadata.device
    tensor._interned = metadata
    tensor._autograd = None
    tensor._view = None
    return tensor


def kept_result_value(node: Any, value: Any, version: int | None, number: int) -> Any:
    """Returns the saved output of this number, for the node's formulas. Errors: as `SavedTensor.unpack`.

    Where nothing is recorded, nobody sees whether it has a history, and it goes without.
    """
    if version is None:
        return value
    if version == WRAPPED:
        return value.unpack(node)
    tensor = put_together(value) if type(value) is tuple else value
    if tensor._counter[0] != version:
        raise modified(tensor, version, number, node)
    state = STATE.get()
    if type(value) is tuple and not (state.grad_enabled or state.modes or state.function_modes):
        return tensor
    return tensor if node.outputs[number] is None else as_output(tensor, node, number)  # None: saved as it is


def saved_tensor(value: Any, version: int | None, number: int | None) -> Any:
    """A SavedTensor in the place of a kept tensor. (That of a result without history: it is there already.)"""
    if version is None or version == WRAPPED:
        return value
    made = new(SavedTensor)
    made._tensor = put_together(value) if type(value) is tuple else value
    made._version, made._output_nr = version, number
    made._history = made._unpack = made._packed = None
    return made


def as_output(tensor: Any, node: Any, number: int) -> Any:
    """A tensor like `tensor`, which has no history, as output of `node`. Modes and subclasses see a `detach`."""
    result = without_history(tensor)
    result._autograd = AutogradRecord(True, node, number)
    if tensor._tangent is not None:
        result._tangent = tensor._tangent
    return result


def refuse_changed(tensor: Any, version: int, number: int | None, node: Any) -> None:
    """RuntimeError for a saved tensor of another version; a Function is not told that one only lost its history."""
    if (tensor._counter[0] - version) % EPOCH:
        raise modified(tensor, version, number, node)
    if not hasattr(node, "saved"):
        raise RuntimeError(
            "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_().This is not "
            "supported, please use out-of-place `.detach()` instead"
        )


def modified(tensor: Any, version: int, number: int | None, node: Any) -> RuntimeError:
    """The error for a saved tensor that was written since; `number` says which result of `node` it is, if it is one."""
    maker: Any = node
    if number is None:
        maker = None if tensor._autograd is None else tensor._autograd.grad_fn
        number = 0 if maker is None else tensor._autograd.output_nr
    output = "" if maker is None else f", which is output {number} of {short_name(maker)},"
    if node is not None and node.stack_trace is not None:
        hint = (
            "the backtrace further above shows the operation that failed to compute its gradient. The variable in "
            "question was changed in there or anywhere later. Good luck!"
        )
    else:
        hint = (
            "enable anomaly detection to find the operation that failed to compute its gradient, with "
            "torch.autograd.set_detect_anomaly(True, check_nan=False)."
        )
    error = RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{type_name(tensor)} {list(tensor._shape)}]{output} is at version {tensor._counter[0] % EPOCH}; expected "
        f"version {version % EPOCH} instead. Hint: {hint}"
    )
    if note := write_after(tensor, version):
        error.add_note(note)
    return error


# Tensors without history ---------------------------------------------------------------------------------------------


def history_of(tensor: Any) -> AutogradRecord:
    """The record of an input, to be given to what is unpacked for it. That of a leaf is shared: gradients go there."""
    node = CURRENT_GRAD_FN()(tensor)
    record = tensor._autograd
    if node is not None:
        return AutogradRecord(True, node, record.output_nr)
    accumulator(tensor)  # made for the leaf itself: what shares its record does not live as long
    return record


@inline
def without_history(tensor: Any) -> Any:
    """The tensor over the same memory and version counter, as if nothing had been recorded.

    A wrapper of a transform loses the history that it has there; what its value has outside is not its affair.
    """
    if is_wrapped(tensor) or (type(tensor) is Tensor and not STATE.get().modes):
        return copy_of(tensor)
    return detached(tensor)


def detached(tensor: Any) -> Any:
    """Detaches a tensor whose class or mode handles operators and decides for itself how."""
    with within(STATE.get().excluding(AUTOGRAD)):
        return tensor.detach()


def copy_of(tensor: Any) -> Any:
    """Another tensor object with all that the tensor has but history: for a subclass, its attributes, too."""
    kind = type(tensor)
    copy = new(kind)
    copy._keyset = tensor._keyset
    copy._counter = tensor._counter
    copy._store = tensor._storage if tensor._store is None else tensor._store  # it is needed, since the two share it
    copy._array = tensor._array
    copy._shape = tensor._shape
    copy._stride = tensor._stride
    copy._offset = tensor._offset
    copy._dtype = tensor._dtype
    copy._device = tensor._device
    copy._interned = tensor._interned
    copy._autograd = None
    copy._view = None
    if kind is not Tensor:
        copy.__dict__.update(tensor.__dict__)
    return copy


def short_name(node: Any) -> str:
    """A node's name as messages show it: `Mul` for MulBackward0, `T1` for TBackward1."""
    stem, _, number = node.name().rpartition("Backward")
    return str(stem) + ("" if number == "0" else number)
