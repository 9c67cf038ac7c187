"""Made by `python -m redispatch.stubs`."""

from redispatch.kernels.declare.custom_op import *
from redispatch.kernels.declare.custom_op import _forget as _forget
