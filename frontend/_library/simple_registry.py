"""What was registered for an operator beside its kernels, `torch._library.simple_registry`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from redispatch.dispatch import OPERATORS, DispatchKey, place_of
from redispatch.dispatch.layers.python import TORCH_DISPATCH
from redispatch.kernels.declare.custom_op import CustomOpDef

from .utils import Kernel

__all__ = ["SimpleLibraryRegistry", "SimpleOperatorEntry", "find_torch_dispatch_rule", "singleton"]


@dataclass
class FakeImplHolder:
    """The function that says what an operator's results look like, or None."""

    kernel: Kernel | None


@dataclass
class TorchDispatchRules:
    """The handlers of one operator for modes and subclasses."""

    qualname: str

    def find(self, torch_dispatch_class: type) -> Callable[..., Any] | None:
        op = OPERATORS.get(self.qualname)
        return None if op is None else TORCH_DISPATCH.get((op, torch_dispatch_class))


class SimpleOperatorEntry:
    """The registrations of one operator, by its name with the overload."""

    def __init__(self, qualname: str) -> None:
        self.qualname = qualname
        self.torch_dispatch_rules = TorchDispatchRules(qualname)

    @property
    def fake_impl(self) -> FakeImplHolder:
        op = OPERATORS.get(self.qualname)
        kernels = op.registrations.get(DispatchKey.Meta) if op is not None else None
        if not kernels:
            return FakeImplHolder(None)
        custom = getattr(kernels[-1].function, "__self__", None)  # a definition, which calls the function it was given
        if not isinstance(custom, CustomOpDef):
            return FakeImplHolder(Kernel(kernels[-1].function, kernels[-1].place))
        return FakeImplHolder(custom._fake and Kernel(custom._fake, place_of(custom._fake)))

    abstract_impl = fake_impl


class SimpleLibraryRegistry:
    """Finds the entry of an operator by its name."""

    def find(self, qualname: str) -> SimpleOperatorEntry:
        return SimpleOperatorEntry(qualname)


singleton = SimpleLibraryRegistry()


def find_torch_dispatch_rule(op: Any, torch_dispatch_class: type) -> Callable[..., Any] | None:
    """Returns an operator's own handler for a mode's or subclass's class, or None."""
    return TORCH_DISPATCH.get((op, torch_dispatch_class))
