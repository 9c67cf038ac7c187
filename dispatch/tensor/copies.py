"""Copies of whole tensors: `copy.deepcopy` and pickling, with storages shared in the copy as in the original.

A storage is copied once however many tensors view it: `copy` and `pickle` remember the storage object. A wrapper
subclass that can be taken apart is copied part by part (`__tensor_flatten__`). Graphs are never followed: a tensor that
has a history is refused by deepcopy, as in PyTorch.
"""

from __future__ import annotations

import copy
import copyreg
import weakref
from sys import getrefcount
from typing import Any

import numpy as np

from redispatch.dispatch import (
    DEFAULT,
    LAZY_BITS,
    STATE,
    TorchDispatchModeKey,
    asks,
    handle_torch_function,
    keyset,
    mode_in_slot,
    overridden,
    runtime_keys,
    shared,
    within,
)

from .devices import META, device, device_keyset
from .dtypes import dtype
from .factory import tensor_over
from .metadata import CURRENT_GRAD_FN, SET_REQUIRES_GRAD, AutogradRecord, Size
from .storage import ALONE, UntypedStorage
from .subclass import shell
from .tensor import Tensor, overridable_in_python


def deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    """A copy with memory of its own, its gradient and attributes too. RuntimeError for a tensor that is no leaf."""
    if overridden((self,), {}):
        return handle_torch_function(deepcopy, (self,), self, memo)
    if CURRENT_GRAD_FN()(self) is not None:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  "
            "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, "
            "see https://github.com/pytorch/pytorch/pull/103001"
        )
    if id(self) in memo:
        return memo[id(self)]
    with within(STATE.get().replace(grad_enabled=False)):
        result = _copied(self, memo)
    memo[id(self)] = result
    if self._autograd is not None:
        if self._autograd.requires_grad and not result._requires_grad():
            SET_REQUIRES_GRAD()(result, True)
        if self._autograd.grad is not None:
            result.grad = copy.deepcopy(self._autograd.grad, memo)
    result.__dict__.update(copy.deepcopy(self.__dict__, memo))
    for name, value in values_in_slots(self).items():
        setattr(result, name, copy.deepcopy(value, memo))
    return result


def values_in_slots(tensor: Any) -> dict[str, Any]:
    """Returns what a tensor has in slots that its class adds to those of Tensor."""
    names = slots_of(type(tensor)) - slots_of(Tensor)
    return {name: getattr(tensor, name) for name in sorted(names) if hasattr(tensor, name)}


def _copied(self: Any, memo: dict[int, Any]) -> Any:
    if not self._storage.has_data and self._device.type == "cpu":
        result = self.clone()  # a wrapper: its handler knows what there is to copy
        return of_the_same_class(result, self, "wrapper", "clone()", "cloning")
    if type(self) is not Tensor:
        of_the_same_class(self.new_empty([]), self, "non-wrapper", "new_empty()", "that function")
    if self._keyset & LAZY_BITS:
        return self.clone()
    return over_storage(type(self), copy.deepcopy(self._storage, memo), *_geometry(self))


def of_the_same_class(made: Any, source: Any, sort: str, method: str, which: str) -> Any:
    """Returns `made`, which a method of the subclass made to be the copy. RuntimeError where it is of another class."""
    if type(made) is not type(source):
        raise RuntimeError(
            f"The default implementation of __deepcopy__() for {sort} subclasses only works for subclass types that "
            f"implement {method} and for which {which} returns another instance of the same subclass. You should "
            f"either properly implement {method} for your subclass or override __deepcopy__() if it is intended "
            f"behavior for {method} to return an instance of a different type."
        )
    return made


def _geometry(self: Any) -> tuple[Any, ...]:
    bits = tuple(key.name for key in runtime_keys(self._keyset & LAZY_BITS))
    return self._dtype, self._device, tuple(self._shape), self._stride, self._offset, bits


def over_storage(
    kind: type,
    storage: UntypedStorage,
    element: dtype,
    on: device,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    bits: tuple[str, ...] = (),
) -> Any:
    """A tensor of class `kind` over a storage, with the lazy bits of these names."""
    plain = tensor_over(storage, storage.typed(element), Size(shape), stride, offset, element, on)
    if bits:
        plain._keyset = shared(plain._keyset | keyset(*bits))
    return plain if kind is Tensor else shell(kind, plain)


def rebuild(kind: type, storage: UntypedStorage, element: dtype, on: device, *geometry: Any) -> Any:
    """`over_storage` for what was pickled: under a mode of fake tensors, a fake on the meta device.

    Such a mode takes no bytes in; PyTorch says meta, too.
    """
    fakes = mode_in_slot(TorchDispatchModeKey.FAKE)
    if fakes is not None:
        return fakes.from_tensor(
            over_storage(Tensor, UntypedStorage.without_data(storage.nbytes(), META), element, META, *geometry)
        )
    return over_storage(kind, storage, element, on, *geometry)


def reduce_ex(self: Any, protocol: Any) -> tuple[Any, ...]:
    """Returns pickle's form of a tensor: its storage, how to view it, whether it requires grad, its attributes."""
    if overridden((self,), {}):
        return handle_torch_function(reduce_ex, (self,), self, protocol)
    state = self._requires_grad(), {**self.__dict__, **values_in_slots(self)} or None
    if hasattr(self, "__tensor_flatten__"):
        names, context = self.__tensor_flatten__()
        inner = {name: getattr(self, name) for name in names}
        return _rebuilt_wrapper, (type(self), inner, context, tuple(self._shape), self._stride), state
    if not self._storage.has_data and self._device.type == "cpu":
        face = tuple(self._shape), self._stride, self._offset, None, self._dtype, self._layout, self._device
        return _rebuilt_face, (type(self), *face), state  # a wrapper: what is inside is among its attributes
    return rebuild, (type(self), self._storage, *_geometry(self)), state


def set_state(self: Any, state: tuple[bool, dict[str, Any] | None]) -> None:
    """Takes what pickle kept beside the storage."""
    requires_grad, attributes = state
    if requires_grad:
        self._autograd = AutogradRecord(requires_grad=True)
    slots = slots_of(type(self))
    for name, value in (attributes or {}).items():
        if name in slots:
            setattr(self, name, value)
        else:
            self.__dict__[name] = value


def _rebuilt_wrapper(kind: Any, inner: dict[str, Any], context: Any, shape: Any, stride: Any) -> Any:
    return kind.__tensor_unflatten__(inner, context, Size(shape), stride)


def _rebuilt_face(kind: Any, *face: Any) -> Any:
    return Tensor._make_wrapper_subclass(kind, *face)


def copy_storage(self: UntypedStorage, memo: dict[int, Any]) -> UntypedStorage:
    """A storage with the same bytes; once per deepcopy."""
    if id(self) not in memo:
        memo[id(self)] = self.clone() if self.has_data else UntypedStorage.without_data(self.nbytes(), self.device)
    return memo[id(self)]


def reduce_storage(self: UntypedStorage) -> tuple[Any, ...]:
    """Returns pickle's form of a storage: its bytes; its size alone where it has none."""
    data = self.read().tobytes() if self.has_data else None
    return _rebuilt_storage, (data, self.nbytes(), self.device)


def _rebuilt_storage(data: bytes | None, nbytes: int, on: device) -> UntypedStorage:
    if data is None:
        return UntypedStorage.without_data(nbytes, on)
    storage = UntypedStorage(nbytes, on)
    storage.write(np.frombuffer(data, np.uint8))
    return storage


for _name, _function in (("__deepcopy__", deepcopy), ("__reduce_ex__", reduce_ex), ("__setstate__", set_state)):
    _function.__name__ = _name
Tensor.__deepcopy__ = asks(deepcopy)  # type: ignore[attr-defined]  # attached here
Tensor.__reduce_ex__ = asks(reduce_ex)  # type: ignore[method-assign]  # attached here
Tensor.__setstate__ = overridable_in_python(set_state)  # type: ignore[attr-defined]  # attached here
UntypedStorage.__deepcopy__ = copy_storage  # type: ignore[attr-defined]  # attached here
UntypedStorage.__reduce__ = reduce_storage  # type: ignore[method-assign, assignment]  # attached here


# Inference tensors that come back -------------------------------------------------------------------------------------


def to_normal_(self: Any) -> Any:
    """Makes a normal tensor of an inference tensor, and returns it; the same object, its class and attributes kept.

    Memory that no other tensor sees is kept; else the tensor gets a copy, as writes through other inference tensors
    would not be counted. The parts of a wrapper become normal, too. The tensor is a leaf of version 0.
    """
    if self._counter is not None:
        return self
    if self._store is not None or self._array is not None:
        with within(DEFAULT):
            if getrefcount(self._store if self._store is not None else self._array) > ALONE:
                own = Tensor.clone(shell(Tensor, self))
                self._store, self._array, self._interned = None, own._array, None
                self._stride, self._offset = own._stride, own._offset
    for name in self.__tensor_flatten__()[0] if hasattr(self, "__tensor_flatten__") else ():
        getattr(self, name).to_normal_()
    self._keyset, self._counter = shared(self._keyset | device_keyset(self._device.type)), [0]
    return self


Tensor.to_normal_ = overridable_in_python(to_normal_)  # type: ignore[attr-defined]  # attached here


# `utils.swap_tensors`: two tensors change places, so that whoever holds the one has the other, and its class, too -----
#
# What a tensor is stands in its class, its slots and its `__dict__`; the object is but the place where they lie. A
# module whose parameters are wrapper subclasses is converted so: optimizers go on holding the same objects.

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
