"""SavedTensor: a tensor that a node keeps for backward, and that must not have changed until then.

It remembers the version at which the tensor was saved; `unpack` compares. What it holds depends on what was saved:

- an input is held as it is;
- a result of the node itself is held without history, since it points to the node: the two would keep each other
  alive. `unpack` gives it its history back;
- under `saved_tensors_hooks`, what the user's `pack` returned is held in its place, and no version is compared.

Read next: derivative.py.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from redispatch.dispatch import STATE, within
from redispatch.dispatch.layers.autograd import AUTOGRAD
from redispatch.tensor import CURRENT_GRAD_FN, AutogradRecord, Tensor

from .hooks import type_name

Pack = Callable[[Any], Any]
Unpack = Callable[[Any], Any]

# The hooks in force, the innermost pair last; and, where none may be set, the message that says so
PACKING: ContextVar[tuple[tuple[Pack, Unpack], ...]] = ContextVar("saved tensor hooks", default=())
HOOKS_REFUSED: ContextVar[str | None] = ContextVar("why saved tensor hooks are refused", default=None)

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

    def __init__(self, tensor: Any, output_nr: int | None = None, written_view: bool = False) -> None:
        """Saves `tensor`: an input, or with `output_nr` that result of the node itself.

        `written_view`: the result is a view that the node's call wrote; its history is not this node but one that
        holds this node, and so is remembered weakly.
        """
        if tensor._counter is None:
            raise RuntimeError(
                "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference "
                "mode in computation tracked by autograd. To work around this, you can make a clone to get a normal "
                "tensor and use it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
            )
        self._version = tensor._counter[0]
        self._output_nr = output_nr
        self._history = None
        self._unpack = None
        self._tensor = tensor if output_nr is None else without_history(tensor)
        if written_view:
            self._history = weakref.ref(CURRENT_GRAD_FN()(tensor))
        hooks = PACKING.get()
        if hooks:
            self._pack(tensor, *hooks[-1])

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
            raise RuntimeError(self._modified(node))
        return tensor if self._output_nr is None else self._with_history(tensor, node)

    def release(self) -> None:
        """Lets the tensor go."""
        self._tensor = self._unpack = self._packed = None

    # A result, whose history is the node itself -------------------------------------------------------------------

    def _with_history(self, tensor: Any, node: Any) -> Any:
        result = copy_of(tensor)
        if self._history is not None:
            node = self._history()
        if node is not None:
            result._autograd = AutogradRecord(True, node, self._output_nr or 0)
        return result

    def _modified(self, node: Any) -> str:
        tensor = self._tensor
        if self._output_nr is not None:
            maker, number = node, self._output_nr
        else:
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
        return (
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[{type_name(tensor)} {list(tensor._shape)}]{output} is at version {tensor._counter[0]}; expected version "
            f"{self._version} instead. Hint: {hint}"
        )

    # Hooks --------------------------------------------------------------------------------------------------------

    def register_hooks(self, pack: Pack, unpack: Unpack) -> None:
        """Packs what is held now. RuntimeError where it was let go, or has hooks already."""
        if self._unpack is not None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set is not allowed."
            )
        if self._tensor is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the "
                "graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need "
                "to backward through the graph a second time or if you need to access saved variables after calling "
                "backward."
            )
        self._pack(self._tensor, pack, unpack)

    def _pack(self, tensor: Any, pack: Pack, unpack: Unpack) -> None:
        if self._output_nr is None and tensor._autograd is not None:
            self._history = history_of(tensor)
        bare = without_history(tensor)
        version = bare._counter[0]
        with within(STATE.get().replace(grad_enabled=False)):
            self._packed = pack(bare)
        if bare._counter[0] != version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook "
                "cannot be modified by in-place operations as this can lead to unexpected side-effects. Please open "
                "an issue if you need to perform in-place operations on the input to a pack hook."
            )
        self._unpack = unpack
        self._tensor = None

    def _unpacked(self, node: Any) -> Any:
        with within(STATE.get().replace(grad_enabled=False)):
            tensor = self._unpack(self._packed)  # type: ignore[misc]  # the caller has seen that there is one
        if not isinstance(tensor, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type " + str(type(tensor))
            )
        if self._output_nr is not None:
            return self._with_history(tensor, node)
        if self._history is None:
            return tensor
        result = copy_of(tensor)
        result._autograd = self._history
        return result


# What stands in the place of a saved tensor that was let go
RELEASED = object.__new__(SavedTensor)
RELEASED.release()


def history_of(tensor: Any) -> AutogradRecord:
    """The record of an input, to be given to what is unpacked for it. That of a leaf is shared: gradients go there."""
    node = CURRENT_GRAD_FN()(tensor)
    record = tensor._autograd
    return record if node is None else AutogradRecord(True, node, record.output_nr)


def without_history(tensor: Any) -> Any:
    """The tensor over the same memory and version counter, as if nothing had been recorded."""
    state = STATE.get()
    if type(tensor) is Tensor and not state.modes:
        return copy_of(tensor)
    # A class or mode that handles operators decides for itself what this means.
    with within(state.excluding(AUTOGRAD)):
        return tensor.detach()


def copy_of(tensor: Any) -> Any:
    """Another tensor object with all that the tensor has but history: for a subclass, its attributes, too."""
    kind = type(tensor)
    copy = object.__new__(kind)
    for slot in ("_keyset", "_counter", "_storage", "_array", "_shape", "_stride", "_offset", "_dtype", "_device"):
        setattr(copy, slot, getattr(tensor, slot))
    copy._autograd = None
    copy._view = None
    if kind is not Tensor:
        copy.__dict__.update(tensor.__dict__)
    return copy


def short_name(node: Any) -> str:
    """A node's name as messages show it: `Mul` for MulBackward0."""
    name = node.name().rpartition("::")[2].rstrip("0123456789")
    return name.removesuffix("Backward")
