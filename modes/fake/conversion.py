"""From real tensors to fakes: the table of those that were made, and copies of whole modules.

Read next: ../fake_tensor.py, whose `from_tensor` fills the table.
"""

from __future__ import annotations

import weakref
from typing import Any

import redispatch as rd
from redispatch.dispatch import LAZY_BITS, shared
from redispatch.dispatch.symbolic import SymInt
from redispatch.dispatch.tensor import UntypedStorage, lay_out
from redispatch.overrides import TorchFunctionMode
from redispatch.utils._python_dispatch import _disable_current_modes, is_traceable_wrapper_subclass

from .tensor import META, FakeTensor

FakeTensorMode = Any  # the class in ../fake_tensor.py, which imports this file


def is_fake(value: Any) -> bool:
    """Returns whether a tensor is fake, or a wrapper of nothing but fakes."""
    if is_traceable_wrapper_subclass(value):
        names = value.__tensor_flatten__()[0]
        return all(is_fake(getattr(value, name)) for name in names)
    return isinstance(value, FakeTensor)


class TensorMemo(dict[int, tuple[Any, Any]]):
    """Tensor -> its fake, as long as both live."""

    def remember(self, tensor: rd.Tensor, fake: FakeTensor) -> None:
        key, mine = id(tensor), weakref.ref(self)

        def gone(_: Any) -> None:
            memo = mine()
            if memo is not None:
                memo.pop(key, None)

        self[key] = weakref.ref(tensor, gone), weakref.ref(fake, gone)

    def get(self, tensor: Any, default: Any = None) -> Any:
        known = super().get(id(tensor))
        return known[1]() if known is not None and known[0]() is tensor else default

    def __contains__(self, tensor: object) -> bool:
        return self.get(tensor) is not None


class FakeTensorConverter:
    """Table of the fakes that were made of tensors, and the memory on the meta device that stands for a storage."""

    def __init__(self, **ignored: Any) -> None:
        self.tensor_memo = TensorMemo()
        self.storage_memo: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self.meta_converter = self

    def meta_like(self, tensor: rd.Tensor, face: Any) -> rd.Tensor:
        """The tensor on the meta device that stands for one. face: its sizes, strides and offset, where others."""
        size, stride, offset = face or (tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
        elem = rd.empty_strided(size, stride, dtype=tensor.dtype, device=META)
        elem._keyset = shared(elem._keyset | tensor._keyset & LAZY_BITS)
        elem._interned = None
        if tensor.layout is rd.strided and not is_traceable_wrapper_subclass(tensor):
            elem._storage = self.storage_like(tensor, elem)
            lay_out(elem, elem.shape, elem.stride(), offset)
        return elem

    def storage_like(self, tensor: rd.Tensor, elem: rd.Tensor) -> Any:
        """The storage that stands for a tensor's: the same for all that share it."""
        found = self.storage_memo.get(tensor._storage)
        if found is None:
            real = tensor._storage
            made = (
                elem._storage if isinstance(elem.numel(), SymInt) else UntypedStorage.without_data(real.nbytes(), META)
            )
            found = self.storage_memo[real] = made
        return found

    def from_real_tensor(self, fake_mode: FakeTensorMode, t: rd.Tensor, **options: Any) -> FakeTensor:
        former, fake_mode.fake_tensor_converter = fake_mode.fake_tensor_converter, self
        try:
            return fake_mode.from_tensor(t, **options)
        finally:
            fake_mode.fake_tensor_converter = former

    def from_meta_and_device(self, fake_mode: FakeTensorMode, t: rd.Tensor, device: Any, **ignored: Any) -> FakeTensor:
        fake = self.tensor_memo.get(t)
        if fake is None:
            fake = FakeTensor(fake_mode, t, device)
            self.tensor_memo.remember(t, fake)
        return fake


class FakeCopyMode(TorchFunctionMode):
    """A region in which `copy.deepcopy` of a tensor, or of what holds some, gives fakes of a mode."""

    def __init__(self, fake_mode: FakeTensorMode) -> None:
        self.fake_mode = fake_mode

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is rd.Tensor.clone:
            return func(self.fake_mode.from_tensor(args[0]), **(kwargs or {}))
        if func is not rd.Tensor.__deepcopy__:
            with rd._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        tensor, memo = args
        if id(tensor) not in memo:
            memo[id(tensor)] = self.fake_mode.from_tensor(tensor)
        return memo[id(tensor)]


def try_convert_fake_to_real(ten_list: list[Any]) -> list[Any]:
    """Returns real tensors in the places of fakes of which the converter has seen the memory; others as they are.

    Sizes that are symbols take their values of now. Without such a value, a fake stays.
    """
    return [real_of(one) if isinstance(one, FakeTensor) else one for one in ten_list]


def real_of(fake: FakeTensor) -> Any:
    memo = fake.fake_mode.fake_tensor_converter.storage_memo
    storage = next((real for real, made in memo.items() if made is fake._storage), None)
    face = [*fake.shape, *fake.stride(), fake.storage_offset()]
    numbers = [one.node.hint if isinstance(one, SymInt) else one for one in face]
    if storage is None or None in numbers:
        return fake
    with _disable_current_modes():
        empty = rd.empty(0, dtype=fake.dtype, device=storage.device)
        return empty.set_(storage, numbers[-1], numbers[: fake.dim()], numbers[fake.dim() : -1])
