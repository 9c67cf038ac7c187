"""`init()` makes the device "lazy" usable."""

from redispatch._C._lazy_ts_backend import _init as init

__all__ = ["init"]
