"""Functions of one element, as users write them: what they may contain, how they are compiled, what their slopes are.

    def smooth_relu(x, beta):                        def smooth_relu_slope_x(x, beta):
        t = beta * x                                     d_t = beta
        return math.log1p(math.exp(t)) / beta   ->       t = beta * x
                                                         return ... * d_t / beta

`compiled(f)` is the same function with the library's vector functions in the place of those of `math`. `slope(f, "x")`
is its partial derivative, a function of the same parameters, written by the rules of differentiation: before each
assignment to `t` stands one to `d_t`. Branches and loops stay as they are. A slope is a function of one element again,
so that it has slopes, too. Read next: from_scalar.py.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import math
import textwrap
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.kernels.maths import vecmath

from . import scalar_slopes

Function = Callable[..., Any]
STATEMENTS = (ast.Assign, ast.AugAssign, ast.If, ast.For, ast.While, ast.Return, ast.Pass, ast.Break, ast.Continue)
EXPRESSIONS = (
    ast.Constant, ast.Name, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Call, ast.Attribute,
    ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.expr_context,
)  # fmt: skip
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.FloorDiv, ast.Mod)
BUILTINS = ("abs", "min", "max", "range", "int", "float", "bool")
ONE = (  # functions of `math` that are compiled, by how many numbers they take
    "acos acosh asin asinh atan atanh ceil cos cosh degrees erf erfc exp exp2 expm1 fabs floor gamma isfinite isinf "
    "isnan lgamma log log10 log1p log2 radians sin sinh sqrt tan tanh trunc"
)
TWO = "atan2 copysign fmod gcd hypot ldexp nextafter pow"
COUNT = dict.fromkeys(ONE.split(), 1) | dict.fromkeys(TWO.split(), 2)
MODULES = (math, kernels)  # whose functions may be called, the second's by operators of the library
MAY = (
    "a scalar function may use numbers, arithmetic, comparisons, if, for, while, math.*, abs, min, max, other such defs"
)


class ScalarFunctionError(TypeError):
    """A function that cannot be a function of one element. Field: `place`, as "file:line"."""

    def __init__(self, what: str, place: str) -> None:
        super().__init__(f"{what} ({place})")
        self.place = place


class ScalarFunction:
    """A scalar function, read: its `tree`, its `parameters`, and what its free names mean (`scope`).

    Errors: ScalarFunctionError, with the line, for anything that is no function of one element.
    """

    def __init__(self, function: Function) -> None:
        if not isinstance(function, FunctionType):
            raise TypeError(f"a scalar function must be a plain `def`, got {function!r}")
        code = function.__code__
        self.function, self.name, self.file, self.first = function, code.co_name, code.co_filename, code.co_firstlineno
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        except (OSError, SyntaxError):
            tree = None
        if not isinstance(tree, ast.FunctionDef):
            raise self.error("a scalar function must be a `def` whose source can be read, and not a lambda", None)
        self.tree = tree = WithoutAnnotations().visit(tree)
        arguments = tree.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
            raise self.error("a scalar function has plain parameters, without *, ** or defaults", None)
        self.parameters = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
        if ast.get_docstring(tree) is not None:
            tree.body = tree.body[1:] or [ast.Pass()]
        self.scope = {**builtins_of(), **function.__globals__, **cells_of(function)}
        self.assigned = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.check(tree.body)

    def error(self, what: str, node: Any) -> ScalarFunctionError:
        line = self.first + getattr(node, "lineno", 1) - 1
        return ScalarFunctionError(f"{self.name}: {what}", f"{self.file}:{line}")

    def check(self, body: Sequence[ast.stmt]) -> None:
        """Raises for the first thing that a function of one element cannot have."""
        for node in body:
            if not isinstance(node, STATEMENTS):
                raise self.error(f"`{first_line(node)}` is not supported: {MAY}", node)
            if isinstance(node, ast.Return) and node.value is None:
                raise self.error("`return` without a value: a scalar function returns one number", node)
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if len(targets) > 1 or not isinstance(targets[0], ast.Name | None):
                raise self.error(f"`{first_line(node)}` is not supported: assign to one name at a time", node)
            if isinstance(node, ast.For) and not is_range(node.iter):
                raise self.error(f"`{first_line(node)}` is not supported: loop over range(...)", node)
            if isinstance(node, ast.For | ast.While) and node.orelse:
                raise self.error("`else` behind a loop is not supported", node)
            for field in ("value", "test", "iter"):
                if getattr(node, field, None) is not None:
                    self.check_expression(getattr(node, field))
            for field in ("body", "orelse"):
                self.check(getattr(node, field, ()))
        if body is self.tree.body and not any(isinstance(n, ast.Return) for n in ast.walk(self.tree)):
            raise self.error("it returns nothing: a scalar function returns one number", self.tree)

    def check_expression(self, expression: ast.expr) -> None:
        for node in ast.walk(expression):
            allowed = isinstance(node, EXPRESSIONS)
            if isinstance(node, ast.Constant):
                allowed = isinstance(node.value, bool | int | float)
            elif isinstance(node, ast.BinOp):
                allowed = isinstance(node.op, OPERATORS)
            elif isinstance(node, ast.keyword):
                raise self.error(f"`{ast.unparse(expression)}` names an argument: pass it by position", expression)
            elif isinstance(node, ast.Call):
                self.called(node)
            elif isinstance(node, ast.Attribute):
                module = self.meaning(node.value) if isinstance(node.value, ast.Name) else None
                allowed = module in MODULES and hasattr(module, node.attr)
            elif isinstance(node, ast.Name):
                value = self.meaning(node)
                allowed = (
                    value is None
                    or callable(value)
                    or isinstance(value, bool | int | float)
                    or any(value is m for m in MODULES)
                )
            if not allowed:
                raise self.error(f"`{ast.unparse(node)}` is not supported: {MAY}", node)

    def meaning(self, node: ast.Name) -> Any:
        """Returns what a free name stands for; None for a parameter or a variable."""
        if node.id in self.parameters or node.id in self.assigned:
            return None
        if node.id not in self.scope:
            known = hasattr(builtins, node.id)
            what = f"`{node.id}` is not supported: {MAY}" if known else f"the name {node.id!r} is not defined"
            raise self.error(what, node)
        return self.scope[node.id]

    def called(self, node: ast.Call) -> Any:
        """The function that a call calls: of math, a builtin or another `def`."""
        value: Any = None
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            module = self.meaning(node.func.value)
            value = getattr(module, node.func.attr, None) if module in MODULES else None
        elif isinstance(node.func, ast.Name):
            value = self.meaning(node.func)
        if value is self.function:
            raise self.error("a scalar function cannot call itself", node)
        known = isinstance(value, FunctionType) or getattr(value, "__module__", "") == "math"
        if not known and value not in [getattr(builtins, name) for name in BUILTINS]:
            raise self.error(f"`{ast.unparse(node.func)}(...)` is not supported: {MAY}", node)
        self.check_count(value, node)
        return value

    def check_count(self, function: Any, node: ast.Call) -> None:
        """Raises for another number of arguments than the function has, and for what of `math` is not here."""
        wanted = function.__code__.co_argcount if isinstance(function, FunctionType) else None
        if getattr(function, "__module__", "") == "math":
            wanted = COUNT.get(function.__name__)
            if wanted is None:
                raise self.error(
                    f"`{ast.unparse(node.func)}(...)` is not supported: of math there are {', '.join(sorted(COUNT))}",
                    node,
                )
        if wanted is not None and len(node.args) != wanted:
            raise self.error(
                f"`{ast.unparse(node)}` passes {len(node.args)} arguments; it takes {wanted}",
                node,
            )


class WithoutAnnotations(ast.NodeTransformer):
    """Makes `t: float = x * 2` an assignment like any other."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        plain = ast.Pass() if node.value is None else ast.Assign([node.target], node.value)
        return ast.copy_location(plain, node)


class Written:
    """A function that is being written: its tree, and the values that its free names will have."""

    def __init__(self, of: ScalarFunction) -> None:
        self.of, self.namespace = of, {}  # type: ignore[var-annotated]  # filled below
        self.taken = of.assigned | set(of.parameters)  # all other names are replaced

    def bound(self, word: str, value: Any) -> ast.expr:
        """A name for a value."""
        for name, other in self.namespace.items():
            if other is value:
                return ast.Name(name, ast.Load())
        name, number = word, 2
        while name in self.taken or name in self.namespace:
            name, number = f"{word}_{number}", number + 1
        self.namespace[name] = value
        return ast.Name(name, ast.Load())

    def function(self, name: str, body: list[ast.stmt]) -> Function:
        of = self.of
        tree: Any = ast.parse(f"def {name}({', '.join(of.parameters)}): pass").body[0]
        tree.body = body
        text = ast.unparse(ast.fix_missing_locations(ast.Module([tree], [])))
        return function_of(name, text, self.namespace, f"{of.name} {of.file}:{of.first}")

    # The same expression, for the compiler --------------------------------------------------------------------------

    def same(self, node: ast.expr) -> ast.expr:
        """An expression with the library's functions in it."""
        return Rewritten(self).visit(ast.parse(ast.unparse(node), mode="eval").body)


class Rewritten(ast.NodeTransformer):
    """Puts names of the written function in the place of what the user's function calls and reads."""

    def __init__(self, written: Written) -> None:
        self.written, self.of = written, written.of

    def visit_Call(self, node: ast.Call) -> ast.expr:
        function = self.of.called(node)
        arguments = [self.visit(one) for one in node.args]
        return ast.Call(self.written.bound(function.__name__, for_compiler(function)), arguments, [])

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return self.written.bound(node.attr, getattr(math, node.attr))

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self.of.meaning(node)
        return node if value is None else self.written.bound(node.id, value)


def common_divisor(self, other):
    """Euclid's: the larger is replaced by what is left of it, until nothing is."""
    a, b = abs(self), abs(other)
    while b != 0:
        a, b = b, a % b
    return a


# What stands for functions of `math` that compilers do not know, on the CPU or on a GPU.
STANDS_FOR: dict[Function, Function] = {math.fmod: np.fmod, math.gcd: common_divisor}


def for_compiler(function: Function) -> Function:
    """A function that scalar functions call, as it is compiled: the vector function, where there is one."""
    if function in STANDS_FOR:
        return STANDS_FOR[function]
    if isinstance(function, FunctionType):
        return function if is_ours(function) else compiled(function)
    if getattr(function, "__module__", "") == "math" and function is not math.pow:
        found = getattr(vecmath, function.__name__, None)
        return found if isinstance(found, FunctionType) else function
    return function


ROOMS = tuple(f"redispatch.kernels.{room}." for room in ("engine", "cpu", "maths", "cuda"))


def is_ours(function: Function) -> bool:
    """Whether it is a function of the kernels' own rooms, which is compiled as it stands."""
    return function.__module__.startswith(ROOMS)


def compiled(function: Function) -> Function:
    """The function as it is compiled: with vector functions in the place of those of `math`.

    Errors: ScalarFunctionError, which names the line, for what is no function of one element.
    """
    read = ScalarFunction(function)
    written = Written(read)

    def rewritten(body: Sequence[ast.stmt]) -> list[ast.stmt]:
        return [statement_with(written, node, rewritten) for node in body]

    return written.function(read.name, rewritten(read.tree.body))


def statement_with(written: Written, node: Any, rewritten: Callable[[Sequence[ast.stmt]], list[ast.stmt]]) -> Any:
    """Returns the statement with the library's functions in its expressions, and `rewritten` blocks."""
    made = type(node)(**{field: getattr(node, field) for field in node._fields if hasattr(node, field)})
    for field in ("value", "test", "iter"):
        if getattr(node, field, None) is not None:
            setattr(made, field, written.same(getattr(node, field)))
    for field in ("body", "orelse"):
        if hasattr(node, field):
            setattr(made, field, rewritten(getattr(node, field)))
    return made


# --- cost -------------------------------------------------------------------------------------------------------------

CHEAP = frozenset("abs min max int float bool fabs floor ceil trunc copysign isfinite isinf isnan".split())
TIMES = 8  # that a loop is taken to go round


def cost_of(function: Function) -> int:
    """Returns what one element costs, about, in the unit of the library's own declarations: 1 for x + y, 8 for exp(x).

    It decides from which size on several threads are worth it, and nothing else. Counted in the function's text, with a
    quarter for what the processor does while it waits for memory.
    """
    if is_ours(function):
        return 8
    read = ScalarFunction(function)
    return max(1, math.ceil(sum(cost_in(read, node) for node in read.tree.body)))


def cost_in(read: ScalarFunction, node: ast.AST) -> float:
    """Returns the cost of a part of the function."""
    own = 0.0
    if isinstance(node, ast.Call):
        called = read.called(node)
        if isinstance(called, FunctionType):
            own = cost_of(called)
        elif called is not range:
            own = 0.25 if called.__name__ in CHEAP else 2 if called is math.sqrt else 7
    elif isinstance(node, ast.BinOp):
        own = {ast.Div: 1.0, ast.FloorDiv: 2.0, ast.Mod: 2.0, ast.Pow: 7.0}.get(type(node.op), 0.25)
        if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant) and node.right.value == 2:
            own = 0.25
    elif isinstance(node, ast.Compare | ast.IfExp | ast.AugAssign):
        own = 0.25
    inside = sum(cost_in(read, child) for child in ast.iter_child_nodes(node))
    return own + inside * (TIMES if isinstance(node, ast.For | ast.While) else 1)


# --- slopes -----------------------------------------------------------------------------------------------------------


def slope(function: Function, parameter: str) -> Function:
    """The partial derivative of a scalar function by one of its parameters, as a scalar function of all of them.

    Errors: ScalarFunctionError, which names the line, where a call has no known derivative.
    """
    read = ScalarFunction(function)
    if parameter not in read.parameters:
        raise TypeError(f"{read.name} has no parameter {parameter!r}; it has {', '.join(read.parameters)}")
    made = Slope(read, parameter)
    return made.function(f"{read.name}_slope_{parameter}", made.block(read.tree.body))


class Slope(Written):
    """The derivative of a function by a parameter, as it is being written: forward differentiation of its text.

    `None` stands for a derivative that is zero whatever the arguments are.
    """

    def __init__(self, of: ScalarFunction, parameter: str) -> None:
        super().__init__(of)
        self.parameter, self.prefix = parameter, "d_"
        while any(word.startswith(self.prefix) for word in self.taken):
            self.prefix = "d" + self.prefix
        self.active = {parameter}  # the names whose values depend on it
        found = -1
        while found < len(self.active):
            found = len(self.active)
            for node in ast.walk(of.tree):
                if isinstance(node, ast.Assign | ast.AugAssign) and not self.active.isdisjoint(names_in(node.value)):
                    self.active |= names_in(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        self.taken |= {self.prefix + word for word in self.active}

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        if body is self.of.tree.body and self.parameter in self.of.assigned:
            made.append(assign(self.prefix + self.parameter, number(1.0)))
        for node in body:
            if isinstance(node, ast.AugAssign):
                assert isinstance(node.target, ast.Name)
                value: ast.expr = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
                node = ast.copy_location(ast.Assign([node.target], value), node)
            if isinstance(node, ast.Return) and node.value is not None:
                made.append(ast.Return(self.of_expression(node.value) or number(0.0)))
                continue
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                if node.targets[0].id in self.active:
                    tangent = self.of_expression(node.value) or number(0.0)
                    made.append(assign(self.prefix + node.targets[0].id, tangent))
            made.append(statement_with(self, node, self.block))
        return made

    def of_expression(self, node: ast.expr) -> ast.expr | None:
        """The derivative of an expression."""
        if isinstance(node, ast.Name) and node.id in self.active:
            at_first = node.id == self.parameter and node.id not in self.of.assigned
            return number(1.0) if at_first else ast.Name(self.prefix + node.id, ast.Load())
        if isinstance(node, ast.BinOp):
            return self.of_operation(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return negative(self.of_expression(node.operand))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd):
            return self.of_expression(node.operand)
        if isinstance(node, ast.IfExp):
            return self.chosen(self.same(node.test), self.of_expression(node.body), self.of_expression(node.orelse))
        if isinstance(node, ast.Call):
            return self.of_call(node)
        return None  # numbers, other names, truth

    def of_operation(self, node: ast.BinOp) -> ast.expr | None:
        dx, dy = self.of_expression(node.left), self.of_expression(node.right)
        if dx is None and dy is None:
            return None
        x, y, op = self.same(node.left), self.same(node.right), node.op
        if isinstance(op, ast.Add):
            return plus(dx, dy)
        if isinstance(op, ast.Sub):
            return plus(dx, negative(dy))
        if isinstance(op, ast.Mult):
            return plus(times(dx, y), times(x, dy))
        if isinstance(op, ast.Div):  # dx / y - x / y / y dy, in which no square overflows
            quotient = ast.BinOp(x, ast.Div(), y)
            first = None if dx is None else ast.BinOp(dx, ast.Div(), y)
            second = None if dy is None else times(ast.BinOp(quotient, ast.Div(), y), dy)
            return plus(first, negative(second))
        if isinstance(op, ast.Mod):
            return plus(dx, negative(times(ast.BinOp(x, ast.FloorDiv(), y), dy)))
        if isinstance(op, ast.Pow):
            return self.of_power(node.right, x, y, dx, dy)
        return None  # of whole numbers, which x // y gives

    def of_power(
        self, exponent: ast.expr, x: ast.expr, y: ast.expr, dx: ast.expr | None, dy: ast.expr | None
    ) -> ast.expr | None:
        minus = isinstance(exponent, ast.UnaryOp) and isinstance(exponent.op, ast.USub)
        literal = exponent.operand if isinstance(exponent, ast.UnaryOp) and minus else exponent
        n: Any = literal.value if isinstance(literal, ast.Constant) else None
        if isinstance(n, int | float):
            n = -n if minus else n
            if n == 0 or n == 1:
                return dx if n else None
            less = x if n == 2 else ast.BinOp(x, ast.Pow(), ast.Constant(n - 1))
            return times(ast.BinOp(ast.Constant(float(n)), ast.Mult(), less), dx)
        by_base, by_exponent = slopes_of_math("pow") or ()
        first = times(ast.Call(self.bound(by_base.__name__, compiled(by_base)), [x, y], []), dx)
        second = dy and times(ast.Call(self.bound(by_exponent.__name__, compiled(by_exponent)), [x, y], []), dy)
        return plus(first, second)

    def of_call(self, node: ast.Call) -> ast.expr | None:
        function, tangents = self.of.called(node), [self.of_expression(one) for one in node.args]
        if all(one is None for one in tangents):
            return None
        arguments = [self.same(one) for one in node.args]
        if function in (min, max):
            if len(arguments) != 2:
                raise self.of.error(f"`{ast.unparse(node)}` has no derivative here: {function.__name__} of two", node)
            order: ast.cmpop = ast.LtE() if function is min else ast.GtE()
            return self.chosen(ast.Compare(arguments[0], [order], [arguments[1]]), *tangents)
        if function is float:
            return tangents[0]
        if function in (int, bool):
            return None
        slopes = self.slopes_of(function, node)
        total: ast.expr | None = None
        for number_, tangent in enumerate(tangents):
            if tangent is not None:
                by = slopes(number_)
                if by is not None:
                    total = plus(total, times(ast.Call(self.bound(by.__name__, by), arguments, []), tangent))
        return total

    def slopes_of(self, function: Any, node: ast.Call) -> Callable[[int], Function | None]:
        """Returns the derivative of a called function by its n-th parameter, to be compiled; None for zero."""
        if isinstance(function, FunctionType) and not is_ours(function):
            parameters = ScalarFunction(function).parameters
            return lambda n: slope(function, parameters[n])
        known = slopes_of_math(function.__name__)
        if known is None:
            raise self.of.error(
                f"the derivative of `{ast.unparse(node.func)}` is not known here: pass derivative=, a scalar function "
                "or a formula of `grad`; or derivative=False",
                node,
            )
        return lambda n: compiled(known[n]) if known else None

    def chosen(self, test: ast.expr, yes: ast.expr | None, no: ast.expr | None) -> ast.expr | None:
        if yes is None and no is None:
            return None
        return ast.IfExp(test, yes or number(0.0), no or number(0.0))


@cache
def slopes_of_math(name: str) -> tuple[Function, ...] | None:
    """The slope by each parameter of a function of `math`, () where it is 0 nearly everywhere; None for an unknown."""
    head = scalar_slopes.HEADS.get(name)
    if head is None:
        return None
    texts, parameters = scalar_slopes.TEXTS[head], head.removeprefix(name)
    names = [f"{name}_slope{f'_{one}' if len(texts) > 1 else ''}" for one in parameters.strip("()").split(", ")]
    known = {"math": math, "square": scalar_slopes.square}
    return tuple(
        function_of(slope_name, f"def {slope_name}{parameters}:\n    return {text}", known, "scalar_slopes.py")
        for slope_name, text in zip(names, texts, strict=False)
    )


# --- small pieces of text ---------------------------------------------------------------------------------------------


def function_of(name: str, text: str, namespace: Mapping[str, Any], title: str) -> Function:
    """The function that a text defines. Its source can be read, as that of any other: a kernel is made from it."""
    filename = f"<{name} from {title}, {zlib.crc32(text.encode()):08x}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    scope: dict[str, Any] = {**namespace, "__name__": __name__}
    exec(compile(text + "\n", filename, "exec"), scope)
    return scope[name]


def number(value: float) -> ast.expr:
    return ast.Constant(value)


def is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1.0


def plus(x: ast.expr | None, y: ast.expr | None) -> ast.expr | None:
    return ast.BinOp(x, ast.Add(), y) if x is not None and y is not None else x if y is None else y


def times(x: ast.expr | None, y: ast.expr | None) -> ast.expr | None:
    if x is None or y is None:
        return None
    return y if is_one(x) else x if is_one(y) else ast.BinOp(x, ast.Mult(), y)


def negative(x: ast.expr | None) -> ast.expr | None:
    return None if x is None else ast.UnaryOp(ast.USub(), x)


def assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def names_in(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"


def first_line(node: ast.AST) -> str:
    return ast.unparse(node).splitlines()[0]


def cells_of(function: FunctionType) -> dict[str, Any]:
    """Returns what the variables of enclosing functions hold, as far as they have been assigned."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return found


def builtins_of() -> Mapping[str, Any]:
    return {name: getattr(builtins, name) for name in BUILTINS}
