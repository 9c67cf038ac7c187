"""How a layer is put at its key: `@layer("Python")` makes a function the fallback of that key for every operator.

A layer is one boxed function, `layer(op, keyset, stack)`. It knows an operator through its schema and through the
rules in the table that the layer publishes; it does its work and continues with `run(op, keyset & BELOW, stack)`.
"""

from __future__ import annotations

from collections.abc import Callable

from ..core.key import DispatchKey
from ..core.registry import add_fallback
from ..core.table import Boxed, Kernel
from ..kernel_conventions import fallthrough
from ..places import place_of


def boxed_kernel(function: Boxed) -> Kernel:
    """`function(op, keyset, stack)` as a kernel to register."""
    return Kernel(function, function, "boxed", place_of(function))


def layer(*keys: str) -> Callable[[Boxed], Boxed]:
    """Puts the decorated boxed function at these keys, as what answers where an operator has no kernel of its own."""

    def put(function: Boxed) -> Boxed:
        for name in keys:
            add_fallback(getattr(DispatchKey, name), boxed_kernel(function))
        return function

    return put


def skipped(place: str, *keys: str) -> None:
    """Has calls pass these keys at no cost, but for the operators that register a kernel there."""
    for name in keys:
        add_fallback(getattr(DispatchKey, name), fallthrough(place))
