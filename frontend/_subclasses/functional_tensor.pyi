"""Made by `python -m redispatch.stubs`."""

from redispatch.modes.functional_tensor import *
