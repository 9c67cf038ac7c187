"""The former place of `func.functional_call`, `nn.utils.stateless`: a call by that name warns."""

from __future__ import annotations

from typing import Any

from redispatch import _names

from .modules import functional_call as _functional_call

__all__ = ["functional_call"]

functional_call: Any = _names.former(
    _functional_call,
    "functional_call",
    "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future "
    "version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
)
