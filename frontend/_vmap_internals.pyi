"""Made by `python -m redispatch.stubs`."""

from redispatch._functorch.api import *
from redispatch._functorch.api import _vmap as _vmap
