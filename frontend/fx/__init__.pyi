"""Made by `python -m redispatch.stubs`."""

from . import operator_schemas as operator_schemas, experimental as experimental, passes as passes
from ._symbolic_trace import PH as PH, ProxyableClassMeta as ProxyableClassMeta, Tracer as Tracer, symbolic_trace as symbolic_trace, wrap as wrap
from .codegen import CodeGen as CodeGen
from .graph import Graph as Graph
from .graph_module import GraphModule as GraphModule
from .interpreter import Interpreter as Interpreter, Transformer as Transformer
from .node import Node as Node, has_side_effect as has_side_effect, map_aggregate as map_aggregate, map_arg as map_arg
from .proxy import Attribute as Attribute, Proxy as Proxy, TraceError as TraceError
from .subgraph_rewriter import replace_pattern as replace_pattern

