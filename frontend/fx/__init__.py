"""fx: programs as graphs of calls, which can be looked at, changed and run.

Read in this order: node, graph, codegen, graph_module, proxy, wrapping, _symbolic_trace, interpreter; then
subgraph_rewriter, and experimental/proxy_tensor.py, which traces the operators that run.
"""

from redispatch import _moved

from . import _pytree
from ._symbolic_trace import Tracer, symbolic_trace, wrap
from .graph import Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_aggregate, map_arg
from .proxy import Attribute, Proxy, TraceError
from .subgraph_rewriter import replace_pattern

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
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]

_moved.join(__name__)
