"""The operators that autograd needs and cannot name: the room `ops` fills these slots.

Everything else is asked of tensors themselves, through their methods; and so are these, as long as nobody fills them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch import Slot
from redispatch.dispatch.tensor import empty

# (tensor) -> ones of its shape, dtype and device: the gradient with which backward begins
ONES_LIKE: Slot[Callable[[Any], Any]] = Slot("ones like a tensor")
# (shape, dtype, device) -> zeros: what a Function's backward gets for an output without gradient
ZEROS: Slot[Callable[[Any, Any, Any], Any]] = Slot("zeros of a shape, dtype and device")

# (function of gradients, tuple of them) -> its results for a whole batch of gradients, batched along dimension 0
BATCHED: Slot[Callable[[Callable[..., Any], tuple[Any, ...]], Any]] = Slot("how a function is mapped over a batch")

ONES_LIKE.fill(lambda tensor: tensor.detach().new_ones(tensor._shape))
ZEROS.fill(lambda shape, dtype, device: empty(shape, dtype, device).zero_())
