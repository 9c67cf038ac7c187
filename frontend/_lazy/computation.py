"""The program of lazy tensors: its hash, its inputs, and how to run it on others."""

from redispatch._C._lazy import _get_graph_hash as get_graph_hash
from redispatch._C._lazy_ts_backend import _get_tensors_ts_device_data_node as get_tensors_ts_device_data_node
from redispatch._C._lazy_ts_backend import _run_cached_graph as run_cached_graph

__all__ = ["get_graph_hash", "get_tensors_ts_device_data_node", "run_cached_graph"]
