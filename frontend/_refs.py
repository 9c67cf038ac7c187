"""`redispatch._refs`: PyTorch's path of its reference implementations in Python. Here an operator is Python: itself."""

import sys

from redispatch import _names

_LIBRARY = sys.modules[__name__.rpartition(".")[0]]
PLACES, __getattr__, __dir__ = _names.late(globals(), {}, lambda name: getattr(_LIBRARY, name, None))
