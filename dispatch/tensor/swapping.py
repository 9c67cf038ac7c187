"""`utils.swap_tensors`: two tensors change places, so that whoever holds the one has the other, and its class, too.

What a tensor is stands in its class, its slots and its `__dict__`; the object is but the place where they lie. A
module whose parameters are wrapper subclasses is converted so: optimizers go on holding the same objects.
"""

from __future__ import annotations

import copyreg
import weakref
from typing import Any

from .record import AutogradRecord
from .tensor import Tensor

POISONED = (
    "Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can happen when you try to run "
    "backward on a tensor that was swapped. For a module m with "
    "`torch.__future__.set_swap_module_params_on_conversion(True)` you should not change the device or dtype of the "
    "module (e.g. `m.cpu()` or `m.half()`) between running forward and backward. To resolve this, please only change "
    "the device/dtype before running forward (or after both forward and backward)."
)


def swap_tensors(t1: Any, t2: Any) -> None:
    """Puts each tensor into the other's place: class, data, gradient, history and attributes.

    What was computed from either before, and has not been run backward, no longer can be.
    Errors: TypeError for what is no tensor; RuntimeError where there are weak references to one, which would then be to
    another tensor, or where their classes have different slots.
    """
    for name, tensor in (("t1", t1), ("t2", t2)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"swap_tensors(): expected {name} to be a Tensor, but got {type(tensor).__name__}")
        if [one for one in weakref.getweakrefs(tensor) if one is not of_accumulator(tensor)]:
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    slots = slots_of(type(t1))
    if slots != slots_of(type(t2)):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    for tensor in (t1, t2):
        part_from_graph(tensor)
    t1.__class__, t2.__class__ = type(t2), type(t1)
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for slot in slots:
        ours, theirs = getattr(t1, slot), getattr(t2, slot)
        setattr(t1, slot, theirs)
        setattr(t2, slot, ours)


def slots_of(kind: type) -> set[str]:
    """The names of all slots that instances have, those that the interpreter fills itself left out."""
    names: list[str] = copyreg._slotnames(kind)  # type: ignore[attr-defined]  # as pickle finds them
    return set(names)


def of_accumulator(tensor: Any) -> Any:
    """The weak reference by which the tensor's own accumulator holds it, if it has one."""
    record: AutogradRecord | None = tensor._autograd
    return record.accumulator.leaf if record is not None and record.accumulator is not None else None


def part_from_graph(tensor: Any) -> None:
    """Lets no graph that was recorded before take the tensor for what it was: backward raises, and is not wrong."""
    record: AutogradRecord | None = tensor._autograd
    if record is not None and record.accumulator is not None:
        record.accumulator.register_prehook(poison)
        record.accumulator = None
    if tensor._counter is not None:
        tensor._counter[0] += 1  # nodes that saved it see that it is another one


def poison(grad_outputs: Any) -> None:
    raise RuntimeError(POISONED)
