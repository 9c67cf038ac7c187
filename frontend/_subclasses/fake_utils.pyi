"""Made by `python -m redispatch.stubs`."""

from redispatch.modes.fake.cross_ref import *
