"""fx: programs as graphs of calls, which can be looked at, changed and run.

Read in this order: node, graph, codegen, graph_module, proxy, _symbolic_trace, interpreter; then
experimental/proxy_tensor.py, which traces the operators that run.
"""

from . import _pytree
from ._symbolic_trace import Tracer, symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_aggregate, map_arg
from .proxy import Attribute, Proxy, TraceError

__all__ = [
    "Attribute",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "TraceError",
    "Tracer",
    "Transformer",
    "_pytree",
    "has_side_effect",
    "map_aggregate",
    "map_arg",
    "symbolic_trace",
]
