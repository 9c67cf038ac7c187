"""The nodes that have been recorded and not yet run: written down, or run and forgotten."""

from redispatch._C._lazy import _clear_ir_cache as reset
from redispatch._C._lazy import _dump_ir_cache as dump

__all__ = ["dump", "reset"]
