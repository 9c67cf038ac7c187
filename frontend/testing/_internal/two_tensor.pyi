"""Made by `python -m redispatch.stubs`."""

from redispatch.subclasses.two_tensor import *
