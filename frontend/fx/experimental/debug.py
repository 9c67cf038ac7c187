"""set_trace: a breakpoint at the beginning of a graph module's code."""

from ..graph_module import GraphModule

__all__ = ["set_trace"]


def set_trace(gm: GraphModule) -> GraphModule:
    """Returns the module, whose code stops in pdb when it is called."""
    gm.graph.on_generate_code(lambda now: lambda body: ["import pdb; pdb.set_trace()\n", *(now(body) if now else body)])
    gm.recompile()
    return gm
