"""How a layer is put at its key: `@layer("Python")` makes a function the fallback of that key for every operator.

A layer is one boxed function, `layer(op, keyset, stack)`. It knows an operator through its schema and through the
rules in the table that the layer publishes; it does its work and continues with `run(op, keyset & BELOW, stack)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.key import DispatchKey
from ..core.operator import OpOverload
from ..core.registry import add_fallback
from ..core.table import Boxed, Kernel
from ..errors import MissingKernelError
from ..inspection.missing import facts_of_call
from ..kernel_conventions import fallthrough
from ..rules import body, is_own, place_of
from ..specialiser.annotations import leaf


def boxed_kernel(function: Boxed) -> Kernel:
    """`function(op, keyset, stack)` as a kernel to register."""
    return Kernel(function, function, "boxed", place_of(function))


def layer(*keys: str) -> Callable[[Boxed], Boxed]:
    """Puts the decorated boxed function at these keys, as what answers where an operator has no kernel of its own."""

    def put(function: Boxed) -> Boxed:
        mine = [] if is_own(place_of(function)) else body(*(f"fallback at {name}" for name in keys))
        mine += [add_fallback(getattr(DispatchKey, name), boxed_kernel(function)) for name in keys]
        return function

    return put


def skipped(place: str, *keys: str) -> None:
    """Has calls pass these keys at no cost, but for the operators that register a kernel there."""
    for name in keys:
        add_fallback(getattr(DispatchKey, name), fallthrough(place))


# Keys of the reference's order at which no layer of this library does anything yet: calls pass them at no cost --------
#
# Nothing sets their bits today. A layer that comes to be takes its key out of this list.


def _pass() -> None:
    """Stands for the fallthroughs of this file: `explain` shows its place."""


skipped(
    place_of(_pass),
    "PythonDispatcher",
    "FuncTorchVmapMode",
    "BatchedNestedTensor",
    "VmapMode",
    "Batched",
)


# Meta: tensors without data. An operator answers here by its meta function; where it has none, this says so -----------


@layer("Meta")
def meta(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Raises NotImplementedError: nothing says what shape and dtype the result would have."""
    raise no_fake(op, keyset, stack)


@leaf
def no_fake(op: OpOverload, keyset: int, stack: list[Any]) -> MissingKernelError:
    text = (
        f"{op.name()}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel "
        "registered. You may have run into this message while using an operator with PT2 compilation APIs "
        "(torch.compile/torch.export); in order to use this operator with those APIs you'll need to add a fake impl."
    )
    fix = f"register one: library.register_fake('{op.qualified_name}')(function)"
    return MissingKernelError(text + facts_of_call(op, keyset, stack, fix), op, DispatchKey.Meta, keyset)
