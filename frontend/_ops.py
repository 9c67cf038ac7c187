"""PyTorch's module `torch._ops`: operators, their packets, and the rule by which a key finds its kernel."""

from __future__ import annotations

from redispatch.dispatch import DispatchKey, OpOverload, OpOverloadPacket, ops
from redispatch.dispatch.higher_order import HIGHER_ORDER as _higher_order_ops
from redispatch.dispatch.higher_order import HigherOrderOperator, TransformType

__all__ = [
    "DispatchKey",
    "HigherOrderOperator",
    "OpOverload",
    "OpOverloadPacket",
    "TransformType",
    "_higher_order_ops",
    "ops",
    "resolve_key",
]


def resolve_key(op: OpOverload, key: DispatchKey) -> DispatchKey:
    """The key at which the kernel that answers at `key` was registered: an alias, or `key` itself, also for a fallback.

    The rule itself stands in `redispatch.dispatch.table.resolve`. Errors: NotImplementedError where nothing answers,
    RuntimeError at an ambiguous AutogradOther.
    """
    entry = op.entry_at(key)
    if entry.rule == "missing":
        raise NotImplementedError(f"could not find kernel for {op} at dispatch key {key}")
    if entry.rule == "ambiguous autogradother":
        raise RuntimeError("ambiguous autogradother kernel")
    return next((known for known, kernels in op.registrations.items() if kernels[-1] is entry.kernel), key)


ops.loaded_libraries = set()  # type: ignore[attr-defined]  # of C++, of which there are none; attached here

# what PyTorch's operators say of themselves in other words
OpOverload._overloadpacket = property(lambda op: op.overloadpacket)  # type: ignore[attr-defined]  # attached here
OpOverload._name = property(OpOverload.name)  # type: ignore[attr-defined]  # attached here
OpOverload.is_view = property(lambda op: op.schema.is_view)  # type: ignore[attr-defined]  # the same
OpOverload._defined_in_python = property(lambda op: op.namespace != "aten")  # type: ignore[attr-defined]  # the same
OpOverloadPacket.op = property(lambda packet: packet)  # type: ignore[attr-defined]  # PyTorch's is the callable in C++
