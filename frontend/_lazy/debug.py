"""What lazy tensors are to be computed of, as text."""

from __future__ import annotations

from typing import Any

from redispatch._C._lazy import _get_tensors_backend, _get_tensors_text
from redispatch._C._lazy import _get_tensors_dot as render_ir_graph

__all__ = ["dump_ir", "render_ir_graph"]


def dump_ir(tensors: Any, ir_format: str) -> str:
    """The nodes, as "text"; or as the graph that is compiled, "backend". RuntimeError for other formats."""
    if ir_format == "text":
        return _get_tensors_text(tensors)
    if ir_format == "backend":
        return _get_tensors_backend(tensors)
    raise RuntimeError(f"Unrecognized IR format: {ir_format}")
