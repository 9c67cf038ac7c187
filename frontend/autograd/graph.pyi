"""Made by `python -m redispatch.stubs`."""

from redispatch.dispatch.autograd.graph import *
from redispatch.dispatch.autograd.graph import _Handles as _Handles
