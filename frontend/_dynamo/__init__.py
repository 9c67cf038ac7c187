"""PyTorch's tracer of Python, `torch._dynamo`: nothing traces programs here, so its marks leave functions as they are.

Its questions have the answer that nothing is compiling. Read next: ../compiler.py.
"""

from .._names import take

__all__ = take(
    globals(),
    {
        ".": "utils",
        "redispatch.compiler": """
            allow_in_graph assume_constant_result disable is_compiling is_dynamo_compiling nested_compile_region reset
            set_stance substitute_in_graph
        """,
    },
)
