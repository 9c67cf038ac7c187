"""Made by `python -m redispatch.stubs`."""

from redispatch.dispatch.autograd.grad_mode import *
from redispatch.dispatch.autograd.grad_mode import _Recording as _Recording, _Switch as _Switch, _unsafe_preserve_version_counter as _unsafe_preserve_version_counter, _enter_inference_mode as _enter_inference_mode, _exit_inference_mode as _exit_inference_mode
