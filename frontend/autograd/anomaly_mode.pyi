"""Made by `python -m redispatch.stubs`."""

from redispatch.dispatch.autograd.anomaly_mode import *
