"""fx: programs as graphs of calls, which can be looked at, changed and run.

Read in this order: node, graph, codegen, graph_module, proxy, _symbolic_trace, interpreter; then
subgraph_rewriter, and experimental/proxy_tensor.py, which traces the operators that run.
"""

from redispatch import _moved, _names

__all__ = _names.take(
    globals(),
    {
        ".": "operator_schemas",
        "._symbolic_trace": "PH ProxyableClassMeta Tracer symbolic_trace wrap",
        ".codegen": "CodeGen",
        ".graph": "Graph",
        ".graph_module": "GraphModule",
        ".interpreter": "Interpreter Transformer",
        ".node": "Node has_side_effect map_aggregate map_arg",
        ".proxy": "Attribute Proxy TraceError",
        ".subgraph_rewriter": "replace_pattern",
    },
)

PLACES, __getattr__, __dir__ = _names.late(globals(), {".": "experimental passes"})

_moved.join(__name__)
