"""The former place of `func.functional_call`, `nn.utils.stateless`: a call by that name warns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from redispatch import _names

from .modules import functional_call as _functional_call
from .modules import swapped

__all__ = ["functional_call"]

functional_call: Any = _names.former(
    _functional_call,
    "functional_call",
    "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future "
    "version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
)


@contextmanager
def _reparametrize_module(
    module: Any,
    parameters_and_buffers: dict[str, Any],
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> Iterator[None]:
    """A region in which a module has these parameters and buffers.

    stack_weights: which of two equal names is put back first; the order here is always the reverse of the first.
    """
    with swapped(module, parameters_and_buffers, tie_weights, strict):
        yield
