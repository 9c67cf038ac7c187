"""Made by `python -m redispatch.stubs`."""

from redispatch.dispatch.autograd.forward_ad import *
from redispatch.dispatch.autograd.forward_ad import _set_fwd_grad_enabled as _set_fwd_grad_enabled, _is_fwd_grad_enabled as _is_fwd_grad_enabled
