"""Made by `python -m redispatch.stubs`."""

from redispatch.func.stateless import *
