"""`redispatch.compile`: functions of users' as recorded programs, by the names of PyTorch's `torch._dynamo`.

A chapter is docs/compile.md. Read next: eval_frame.py.
"""

from .. import _names

_, __getattr__, __dir__ = _names.late(
    globals(),
    {
        ".": "backends config eval_frame exc source utils",
        ".eval_frame": "OptimizedModule explain list_backends reset",
        ".decorators": "graph_break mark_dynamic mark_static mark_static_address mark_unbacked maybe_mark_dynamic",
        "redispatch.compiler": """
            allow_in_graph assume_constant_result disable is_compiling is_dynamo_compiling nested_compile_region
            set_stance substitute_in_graph
        """,
    },
)
