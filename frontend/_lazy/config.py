"""Settings of lazy tensors: an operator that is to run at once, for tests; whether equal calls are one node."""

from redispatch._C._lazy import _get_force_fallback as get_force_fallback
from redispatch._C._lazy import _set_force_fallback as set_force_fallback
from redispatch._C._lazy import _set_reuse_ir as set_reuse_ir

__all__ = ["get_force_fallback", "set_force_fallback", "set_reuse_ir"]
