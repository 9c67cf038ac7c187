"""Made by `python -m redispatch.stubs`."""

from redispatch._autograd_profiler import *
from redispatch._autograd_profiler import _profiler_enabled as _profiler_enabled
