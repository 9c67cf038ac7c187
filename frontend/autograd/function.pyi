"""Made by `python -m redispatch.stubs`."""

from redispatch.dispatch.autograd.function import *
