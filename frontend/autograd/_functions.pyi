"""Made by `python -m redispatch.stubs`."""

from redispatch._C._functions import *
