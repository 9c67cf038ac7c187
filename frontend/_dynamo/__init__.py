"""PyTorch's tracer of Python, `torch._dynamo`: nothing traces programs here, and its marks hand functions on.

Its questions have the answer that nothing is compiling. Read next: ../compiler.py.
"""

from .._absent import TRACING, names_of
from .._names import take

__all__ = take(
    globals(),
    {
        ".": "config eval_frame utils",
        ".decorators": "mark_dynamic mark_static mark_static_address mark_unbacked maybe_mark_dynamic",
        "redispatch.compiler": """
            allow_in_graph assume_constant_result disable is_compiling is_dynamo_compiling nested_compile_region reset
            set_stance substitute_in_graph
        """,
    },
)
globals().update(names_of(__name__, TRACING))
