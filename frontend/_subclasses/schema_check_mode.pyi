"""Made by `python -m redispatch.stubs`."""

from redispatch.modes.schema_check import *
