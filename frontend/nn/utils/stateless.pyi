"""Made by `python -m redispatch.stubs`."""

from redispatch.func.stateless import *
from redispatch.func.stateless import _reparametrize_module as _reparametrize_module
