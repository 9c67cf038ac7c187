"""Marks of classes that PyTorch's exporter reads. Nothing here traces a constructor, so they change nothing."""

from redispatch.compiler import unchanged as mark_subclass_constructor_exportable_experimental

__all__ = ["mark_subclass_constructor_exportable_experimental"]
