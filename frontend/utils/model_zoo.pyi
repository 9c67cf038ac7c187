"""Made by `python -m redispatch.stubs`."""

from redispatch.hub import *
from redispatch.hub import _get_torch_home as _get_torch_home
