"""Hooks on saved tensors: regions in which what is saved for backward goes through the user's functions.

What becomes of a tensor between the two, `saved.py` says. Read next: mutation.py, which is made of such hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .saved import HOOKS_REFUSED, PACKING
from .watch import WATCH


class saved_tensors_hooks:
    """A region in which what is saved for backward goes through `pack_hook`, and later through `unpack_hook`."""

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook
        self._tokens: list[Any] = []

    def __enter__(self) -> None:
        refused = HOOKS_REFUSED.get()
        if refused is not None:
            raise RuntimeError(refused)
        WATCH.on = True
        self._tokens.append(PACKING.set((*PACKING.get(), (self.pack_hook, self.unpack_hook))))

    def __exit__(self, *error: object) -> None:
        PACKING.reset(self._tokens.pop())


class save_on_cpu(saved_tensors_hooks):
    """A region in which saved tensors are moved to the CPU, and back for backward."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Any) -> Any:
            return tensor.device, tensor.cpu()

        def unpack(packed: Any) -> Any:
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """A region in which entering `saved_tensors_hooks` raises RuntimeError with this message.

    So does entering this region inside of such hooks.
    """
    if PACKING.get():
        raise RuntimeError(error_message)
    token = HOOKS_REFUSED.set(error_message)
    try:
        yield
    finally:
        HOOKS_REFUSED.reset(token)
