"""Loops that compute several operators at once. Read `nest.py`; `frontend/_inductor/` makes them of graphs."""

from .nest import Apply, Array, Nest, Number, Read, Reduce, Value

__all__ = ["Apply", "Array", "Nest", "Number", "Read", "Reduce", "Value"]
