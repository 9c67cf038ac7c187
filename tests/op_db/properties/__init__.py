"""What must be true of every operator: a file for each kind of property, a function for each. See table.py."""

from . import dtypes, errors, forms, forward, functionalized, gradients, layers, layouts, leaves, values, vmap
from .table import PROPERTIES, Property, findings

__all__ = ["PROPERTIES", "Property", "findings"]
