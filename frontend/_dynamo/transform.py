"""Source transform: a function of a user's made one that shows all that it reads outside of itself.

    converted(f)(log)      # f, whose `self.layers[i](x)` is log.call(log.item(log.attr(self, "layers"), i), x)

Control flow, `try`, comprehensions and closures stay Python's own. Each name from outside, attribute, item, iteration,
truth value, operand and call passes the log, which may look at it and hands on the very value. Line numbers stay, so
that tracebacks and debuggers show the user's text. Read next: reads.py, which is the log.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any

LOG = "__log__"
FRAMES = {"locals", "globals", "vars", "eval", "exec", "dir", "breakpoint"}  # that look at the frame of their caller
REFUSED = {
    ast.ClassDef: "a class is defined",
    ast.Import: "a module is imported",
    ast.ImportFrom: "a module is imported",
    ast.Try: "`try` catches what operators raise",
    ast.TryStar: "`try` catches what operators raise",
    ast.Match: "`match` looks into objects",
    ast.Await: "`await` hands over to other tasks",
    ast.AsyncFor: "`async for` hands over to other tasks",
    ast.AsyncWith: "`async with` hands over to other tasks",
    ast.AsyncFunctionDef: "`async def` hands over to other tasks",
}
SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
}  # fmt: skip


class Unconvertible(Exception):
    """The function cannot be shown; the text says why."""


def converted(function: FunctionType) -> Callable[[Any], FunctionType]:
    """Returns a maker of the function with a log. Unconvertible where its text is not known, or cannot be shown."""
    make = maker(function.__code__)
    cells = function.__closure__ or ()

    def with_log(log: Any) -> FunctionType:
        made = make(log.of(function), *(cell_value(cell) for cell in cells))
        bound = FunctionType(
            made.__code__, function.__globals__, function.__name__, function.__defaults__, made.__closure__
        )
        bound.__kwdefaults__ = function.__kwdefaults__
        return bound

    return with_log


def cell_value(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        raise Unconvertible("a variable of the function around it has no value yet") from None


@functools.lru_cache(512)
def maker(code: CodeType) -> Callable[..., Any]:
    """Returns the function (log, free variables...) -> the converted function of a code."""
    node = definition(code)
    refuse(node)
    free = code.co_freevars
    shown = Shown(free).visit_outermost(node)
    if isinstance(shown, ast.Lambda):
        body: list[ast.stmt] = [ast.Return(shown)]
    else:
        body = [shown, ast.Return(ast.Name(shown.name, ast.Load()))]
    module = function_of("__make__", [LOG, *free], body)
    scope: dict[str, Any] = {}
    exec(compile(module, code.co_filename, "exec", dont_inherit=True), scope)
    return scope["__make__"]


def definition(code: CodeType) -> Any:
    """Returns a copy of the syntax tree of a code's function."""
    try:
        lines, _ = inspect.findsource(code)
    except (OSError, TypeError):
        raise Unconvertible("there is no source text of it") from None
    found = [node for node in functions_in("".join(lines)) if alike(node, code)]
    if len(found) != 1:
        raise Unconvertible("its source text is not the one that runs")
    return copy.deepcopy(found[0])


@functools.lru_cache(64)
def functions_in(text: str) -> list[Any]:
    """Returns the definitions of functions in a file."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        raise Unconvertible("its source text is not Python's") from None
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda)]


def alike(node: Any, code: CodeType) -> bool:
    """Whether a definition compiles to this code, but for places in the text."""
    names = names_of(node)
    if names != code.co_varnames[: len(names)] or node.lineno > code.co_firstlineno + 50:
        return False
    if isinstance(node, ast.FunctionDef):
        lines = [node.lineno, *(one.lineno for one in node.decorator_list)]
        return node.name == code.co_name and code.co_firstlineno in lines
    if code.co_name != "<lambda>" or node.lineno != code.co_firstlineno:
        return False
    around = function_of("f", code.co_freevars, [ast.Return(copy.deepcopy(node))])
    outer = compile(around, "<lambda>", "exec", dont_inherit=True).co_consts[0]
    return any(isinstance(one, CodeType) and same_code(one, code) for one in outer.co_consts)


def function_of(name: str, parameters: Sequence[str], body: list[Any]) -> ast.Module:
    """Returns the tree of a module with one function."""
    given = ast.arguments([], [ast.arg(one) for one in parameters], None, [], [], None, [])
    types: dict[str, Any] = {"type_params": []} if sys.version_info >= (3, 12) else {}
    return ast.fix_missing_locations(ast.Module([ast.FunctionDef(name, given, body, [], **types)], []))


def same_code(a: CodeType, b: CodeType) -> bool:
    """Whether two codes do the same."""
    return a.co_code == b.co_code and a.co_names == b.co_names and same_constants(a.co_consts, b.co_consts)


def same_constants(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    if len(a) != len(b):
        return False
    return all(
        same_code(x, y)
        if isinstance(x, CodeType) and isinstance(y, CodeType)
        else (type(x), repr(x)) == (type(y), repr(y))
        for x, y in zip(a, b, strict=True)
    )


def names_of(node: Any) -> tuple[str, ...]:
    args = node.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, *filter(None, (args.vararg, args.kwarg))]
    return tuple(one.arg for one in every)


def refuse(tree: Any) -> None:
    """Raises Unconvertible for a function with a statement that cannot be shown."""
    for node in ast.walk(tree):
        if type(node) in REFUSED:
            raise Unconvertible(f"line {getattr(node, 'lineno', '?')}: {REFUSED[type(node)]}")
        name = getattr(node, "attr", None) or getattr(node, "id", None) or getattr(node, "arg", None)
        if isinstance(name, str) and name.startswith("__") and not name.endswith("__"):
            raise Unconvertible(f"the name {name} is private to its class")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FRAMES:
            raise Unconvertible(f"line {node.lineno}: {node.func.id}() looks at the frame")
        if isinstance(node, ast.FunctionDef) and node is not tree and node.decorator_list:
            raise Unconvertible(f"line {node.lineno}: a decorator is called")


class Shown(ast.NodeTransformer):
    """Has every read pass the log. `scopes`: the names that each function around the place binds."""

    def __init__(self, free: tuple[str, ...]) -> None:
        self.free = free
        self.scopes: list[set[str]] = []
        self.globals: list[set[str]] = []

    def visit(self, node: Any) -> Any:
        shown = super().visit(node)
        for one in listed(shown):
            if isinstance(one, ast.expr | ast.stmt) and not hasattr(one, "lineno"):
                ast.copy_location(one, node)
        return shown

    def log(self, method: str, *args: Any) -> ast.Call:
        return ast.Call(ast.Attribute(ast.Name(LOG, ast.Load()), method, ast.Load()), list(args), [])

    def visit_outermost(self, node: Any) -> Any:
        if isinstance(node, ast.FunctionDef):
            node.decorator_list, node.args.defaults, node.args.kw_defaults = [], [], [None] * len(node.args.kwonlyargs)
        else:
            node.args.defaults, node.args.kw_defaults = [], [None] * len(node.args.kwonlyargs)
        return self.function(node)

    def function(self, node: Any) -> Any:
        own = set(names_of(node))
        parts = node.body if isinstance(node.body, list) else [node.body]
        outer: set[str] = set()
        world: set[str] = set()
        for part in parts:
            own |= bound(part, outer, world)
        if outer and not all(any(name in scope for scope in self.scopes) for name in outer):
            raise Unconvertible("`nonlocal` writes a variable of the function around it")
        node.args.defaults = [self.visit(one) for one in node.args.defaults]
        node.args.kw_defaults = [one and self.visit(one) for one in node.args.kw_defaults]
        for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg):
            if one is not None:
                one.annotation = None
        self.scopes.append(own - outer - world)
        self.globals.append(world)
        if isinstance(node.body, list):
            node.returns = None
            node.body = [new for part in node.body for new in listed(self.visit(part))]
        else:
            node.body = self.visit(node.body)
        self.scopes.pop()
        self.globals.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return self.function(node)

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return self.function(node)

    def comprehension(self, node: Any) -> Any:
        first, *rest = node.generators
        first.iter = self.log("each", self.visit(first.iter))
        self.scopes.append({name for one in node.generators for name in bound(one.target, set(), set())})
        for one in rest:
            one.iter = self.log("each", self.visit(one.iter))
        for one in node.generators:
            one.ifs = [self.log("test", self.visit(test)) for test in one.ifs]
        for name in ("elt", "key", "value"):
            if hasattr(node, name):
                setattr(node, name, self.visit(getattr(node, name)))
        self.scopes.pop()
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehension

    def visit_Name(self, node: ast.Name) -> Any:
        if isinstance(node.ctx, ast.Store) and any(node.id in names for names in self.globals):
            return ast.Subscript(self.log("store", self.log("world")), ast.Constant(node.id), node.ctx)
        if not isinstance(node.ctx, ast.Load) or node.id in (LOG, "__class__"):
            return node
        if any(node.id in scope for scope in self.scopes):
            return node
        if node.id in self.free:
            return self.log("free", node, ast.Constant(node.id))
        return self.log("name", node, ast.Constant(node.id))

    def visit_Global(self, node: ast.Global) -> Any:
        return ast.Pass()

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        node.value = self.visit(node.value)
        if isinstance(node.ctx, ast.Load):
            return self.log("attr", node.value, ast.Constant(node.attr))
        node.value = self.log("store", node.value)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        value, at = self.visit(node.value), self.index(node.slice)
        if isinstance(node.ctx, ast.Load):
            return self.log("item", value, at)
        return ast.Subscript(self.log("store", value), at, node.ctx)

    def index(self, node: Any) -> Any:
        if isinstance(node, ast.Slice):
            parts = [part and self.visit(part) or ast.Constant(None) for part in (node.lower, node.upper, node.step)]
            return self.log("slice", *parts)
        if isinstance(node, ast.Tuple):
            return ast.Tuple([self.index(one) for one in node.elts], ast.Load())
        return self.visit(node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        if any(isinstance(target, ast.Tuple | ast.List) for target in node.targets):
            node.value = self.log("each", node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        how = "shown" if isinstance(node.op, ast.Mod) else "safe"
        value, target = self.log(how, self.visit(node.value)), node.target
        if isinstance(target, ast.Name) and not any(target.id in names for names in self.globals):
            check = ast.Expr(self.log("augmented", ast.Name(target.id, ast.Load())))
            return [check, ast.AugAssign(target, node.op, value)]
        if isinstance(target, ast.Name):
            where = self.log("world"), ast.Constant(target.id), ast.Constant("item")
        elif isinstance(target, ast.Attribute):
            where = self.visit(target.value), ast.Constant(target.attr), ast.Constant("attribute")
        else:
            where = self.visit(target.value), self.index(target.slice), ast.Constant("item")
        return ast.Expr(self.log("augment", *where, ast.Constant(SIGNS[type(node.op)]), value))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return ast.Pass()
        return self.visit_Assign(ast.Assign([node.target], node.value))

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        right = "shown" if isinstance(node.op, ast.Mod) else "safe"  # by % numbers become text
        return ast.BinOp(self.log("safe", self.visit(node.left)), node.op, self.log(right, self.visit(node.right)))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        how = "test" if isinstance(node.op, ast.Not) else "safe"
        return ast.UnaryOp(node.op, self.log(how, self.visit(node.operand)))

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        return ast.BoolOp(node.op, [self.log("test", self.visit(one)) for one in node.values])

    def visit_Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.Is | ast.IsNot):
            same = self.log("same", self.visit(node.left), self.visit(node.comparators[0]))
            return same if isinstance(node.ops[0], ast.Is) else ast.UnaryOp(ast.Not(), same)
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn):
            there = self.log("contains", self.visit(node.left), self.visit(node.comparators[0]))
            return there if isinstance(node.ops[0], ast.In) else ast.UnaryOp(ast.Not(), there)
        sides: list[ast.expr] = [self.log("safe", self.visit(one)) for one in (node.left, *node.comparators)]
        return ast.Compare(sides[0], node.ops, sides[1:])

    def visit_If(self, node: Any) -> Any:
        self.generic_visit(node)
        node.test = self.log("test", node.test)
        return node

    visit_While = visit_IfExp = visit_Assert = visit_If

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        node.iter = self.log("each", node.iter)
        return node

    def visit_Starred(self, node: ast.Starred) -> Any:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = self.log("each", node.value)
        return node

    def visit_Dict(self, node: ast.Dict) -> Any:
        self.generic_visit(node)
        node.values = [self.log("mapping", v) if k is None else v for k, v in zip(node.keys, node.values, strict=True)]
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> Any:
        self.generic_visit(node)
        node.value = self.log("shown", node.value)
        return node

    def visit_With(self, node: ast.With) -> Any:
        self.generic_visit(node)
        for item in node.items:
            item.context_expr = self.log("entered", item.context_expr)
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            return node
        self.generic_visit(node)
        for one in node.keywords:
            if one.arg is None:
                one.value = self.log("mapping", one.value)
        call = self.log("call", node.func, *node.args)
        call.keywords = node.keywords
        return call


def bound(tree: Any, outer: set[str], world: set[str]) -> set[str]:
    """The names that a statement binds in its own scope; `outer` gets those declared nonlocal, `world` those global."""
    found: set[str] = set()
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            found |= {one.target.id for one in ast.walk(node) if isinstance(one, ast.NamedExpr)}
            continue
        if isinstance(node, ast.Nonlocal):
            outer |= set(node.names)
        if isinstance(node, ast.Global):
            world |= set(node.names)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        if isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
        pending += ast.iter_child_nodes(node)
    return found


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
