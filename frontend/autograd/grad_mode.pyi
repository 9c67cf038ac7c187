"""Made by `python -m redispatch.stubs`."""

from redispatch.dispatch.autograd.grad_mode import *
from redispatch.dispatch.autograd.grad_mode import _Recording as _Recording, _set_grad_enabled as _set_grad_enabled, _Switch as _Switch, _unsafe_preserve_version_counter as _unsafe_preserve_version_counter
