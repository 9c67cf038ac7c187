"""RewritingTracer: traces programs whose `assert` statements become steps of the graph.

    graph = RewritingTracer().trace(module)          # `assert x == 0, "zero"` is torch._assert(x == 0, "zero")

Assertions are rewritten in the source of the function, or of the `forward` of a module and all its submodules that are
not steps themselves; so the source must be there. Read next: ../_symbolic_trace.py.
"""

from __future__ import annotations

import ast
import copy
import inspect
import linecache
import textwrap
from types import FunctionType
from typing import Any

import redispatch
from redispatch import nn

from .._symbolic_trace import Tracer

__all__ = ["AST_Rewriter", "RewritingTracer"]


class AST_Rewriter(ast.NodeTransformer):  # PyTorch's name
    """Rewrites assertions, and takes out annotations of local names."""

    def rewrite(self, fn: FunctionType) -> Any:
        """Returns a function that does the same. OSError where its source is not at hand."""
        lines, start = inspect.getsourcelines(fn)
        tree = ast.parse(textwrap.dedent("".join(lines)))
        definition: Any = tree.body[0]
        definition.decorator_list = []
        tree = ast.increment_lineno(ast.fix_missing_locations(self.visit(tree)), start - 1)
        inside: Any = ast.Module([factory(definition, fn.__code__.co_freevars)], [])
        scope: dict[str, Any] = {}
        filename = fn.__code__.co_filename
        linecache.checkcache(filename)
        exec(compile(ast.fix_missing_locations(inside), filename, "exec"), scope)
        code = scope["factory"](*fn.__code__.co_freevars).__code__
        places = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        closure = tuple(places[name] for name in code.co_freevars)
        names = {**fn.__globals__, "_redispatch_assert": redispatch._assert}
        made = FunctionType(code, names, fn.__name__, fn.__defaults__, closure)
        made.__kwdefaults__, made.__annotations__ = fn.__kwdefaults__, fn.__annotations__
        return made

    def visit_Assert(self, node: ast.Assert) -> Any:  # as ast has it
        call = ast.Call(ast.Name("_redispatch_assert", ast.Load()), [node.test, node.msg or ast.Constant("")], [])
        return ast.copy_location(ast.Expr(call), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:  # as ast has it
        return node if node.value is None else ast.copy_location(ast.Assign([node.target], node.value), node)


def factory(definition: ast.FunctionDef, free: tuple[str, ...]) -> ast.stmt:
    """Returns the definition of a function that returns the one defined, whose free names are its parameters."""
    (made,) = ast.parse(f"def factory({', '.join(free)}):\n    return {definition.name}").body
    made.body.insert(0, definition)  # type: ignore[attr-defined]  # a function
    return made


class RewritingTracer(Tracer):
    """A tracer in whose graphs assertions are steps."""

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Any:
        return super().trace(self.rewritten(root), concrete_args)

    def rewritten(self, root: Any) -> Any:
        """Returns a function, or a copy of a module with its submodules, that asserts by calls."""
        if not isinstance(root, nn.Module):
            return AST_Rewriter().rewrite(root)
        made = copy.copy(root)
        forward = AST_Rewriter().rewrite(inspect.unwrap(type(root).forward))
        made.__class__ = type(type(root).__name__, (type(root),), {"forward": forward})
        vars(made)["_modules"] = {
            name: one if one is None or self.is_leaf_module(one, name) else self.rewritten(one)
            for name, one in root._modules.items()
        }
        return made
