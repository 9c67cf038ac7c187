"""PyTorch's module `torch._subclasses.schema_check_mode`; see modes/schema_check.py."""

from redispatch.modes.schema_check import Aliasing, Mutation, SchemaCheckMode

__all__ = ["Aliasing", "Mutation", "SchemaCheckMode"]
