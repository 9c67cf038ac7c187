"""Counters of what lazy tensors did: `lazy::add` was recorded, `aten::nonzero` ran at once on the CPU.

`UncachedCompile` counts programs that were new, `CachedCompile` those that were known.
"""

from redispatch._C._lazy import _counter_names as counter_names
from redispatch._C._lazy import _counter_value as counter_value
from redispatch._C._lazy import _metrics_report as metrics_report
from redispatch._C._lazy import _reset_metrics as reset

__all__ = ["counter_names", "counter_value", "metrics_report", "reset"]
