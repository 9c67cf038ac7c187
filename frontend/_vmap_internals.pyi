"""Made by `python -m redispatch.stubs`."""

from redispatch._functorch.api import *
from redispatch._functorch.api import _vmap as _vmap, _maybe_remove_batch_dim as _maybe_remove_batch_dim
