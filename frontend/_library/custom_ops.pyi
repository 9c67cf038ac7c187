"""Made by `python -m redispatch.stubs`."""

from redispatch.kernels.declare.custom_op import *
from redispatch.kernels.declare.custom_op import _Restored as _Restored, _forget as _forget
