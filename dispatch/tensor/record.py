"""A tensor's records besides its data: what autograd keeps of it, and its base, if it is a view.

Most tensors have neither; each record is made when there is something to put into it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from redispatch.dispatch import Slot


class AutogradRecord:
    """The record of a tensor that autograd keeps.

    `requires_grad` holds for leaves that were asked to and for every result that was recorded. A leaf has no
    `grad_fn`; its node is the accumulator, which holds the tensor weakly.
    """

    __slots__ = (
        "requires_grad",
        "grad_fn",
        "output_nr",
        "grad",
        "accumulator",
        "hooks",
        "post_accumulate_hooks",
        "retains_grad",
    )

    def __init__(self, requires_grad: bool = False, grad_fn: Any = None, output_nr: int = 0) -> None:
        self.requires_grad = requires_grad
        self.grad_fn = grad_fn
        self.output_nr = output_nr
        self.grad: Any = None
        self.accumulator: Any = None
        self.hooks: dict[int, Callable[..., Any]] | None = None
        self.post_accumulate_hooks: dict[int, Callable[..., Any]] | None = None
        self.retains_grad: Any = None  # the handle of the hook that keeps a non-leaf's gradient


class CreationMeta(Enum):
    """Under which circumstances a view was made: it decides whether the view may be written in place later."""

    DEFAULT = "default"
    IN_CUSTOM_FUNCTION = "in a custom function"
    MULTI_OUTPUT_NODE = "as one of several outputs"
    NO_GRAD_MODE = "in no_grad mode"
    INFERENCE_MODE = "in inference mode"


class ViewRecord:
    """The base of a view: always one that is no view itself, however long the chain that led here.

    `replay` makes the view from the base again. `version` is the counter's value when `grad_fn` was last right: a
    write through the base or another view since then makes it stale.
    """

    __slots__ = ("base", "replay", "creation", "version")

    def __init__(self, base: Any, replay: Callable[[Any], Any] | None, creation: CreationMeta, version: int) -> None:
        self.base = base
        self.replay = replay
        self.creation = creation
        self.version = version


# (tensor) -> its grad_fn, made anew where the tensor is a view that was written through another name
CURRENT_GRAD_FN: Slot[Callable[[Any], Any]] = Slot("the node of a view after its base was written")
# (tensor, requires_grad) -> checks and sets
SET_REQUIRES_GRAD: Slot[Callable[..., None]] = Slot("how requires_grad is set")
