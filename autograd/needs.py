"""What this room needs from the operators and cannot name: filled by the room `ops` when it is imported.

Everything else is asked of tensors themselves, through their methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch import Slot

# (tensor) -> ones of its shape, dtype and device: the gradient with which backward begins
ONES_LIKE: Slot[Callable[[Any], Any]] = Slot("ones like a tensor")
# (shape, dtype, device) -> zeros: what a Function's backward gets for an output without gradient
ZEROS: Slot[Callable[[Any, Any, Any], Any]] = Slot("zeros of a shape, dtype and device")
