"""PyTorch's package of its dispatcher in Python, `torch._dispatch`. Here all of the dispatcher is: see python.py."""

from . import python as python
