"""Made by `python -m redispatch.stubs`."""

from redispatch.modes.fake.context import *
