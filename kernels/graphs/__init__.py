"""Loops that compute several operators at once, and what runs them. Read `nest.py`, then `routine.py`.

`frontend/_inductor/` makes them of graphs.
"""

from .launch import Launch
from .nest import Accumulate, Apply, Nest, Number, Pick, Position, Read, Reduce, Value
from .product import Product, is_matrix
from .recorded import ON_PAPER, Recorded, Recorder, Refused
from .routine import Place, Routine, placed
from .walk import Array

__all__ = [
    "ON_PAPER", "Accumulate", "Apply", "Array", "Launch", "Nest", "Number", "Pick", "Place", "Position", "Product",
    "Read", "Recorded", "Recorder", "Reduce", "Refused", "Routine", "Value", "is_matrix", "placed",
]  # fmt: skip
