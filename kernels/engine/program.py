"""A kernel's whole source as one text: the loop, and every scalar function that it reaches.

Why it exists: a scalar function is written once, in plain Python (`def half(x): return 0.5 * x`), and serves every
dtype and device. To numba `0.5` is a float64, which would pull a float32 loop into double precision; so a function is
rewritten for the real type that the kernel computes in: literals become `float32(0.5)`. The complete text also is
the honest cache key (an edit in any helper changes it) and what a person opens to see what ran.

Functions marked `@primitive` are not rewritten: they are machine-near, and `primitives.py` says what they are in LLVM's
language. Read next: `translate/`, which translates the text, and `compile.py`, which compiles it.
"""

import ast
import builtins
import inspect
import linecache
import os
import textwrap
import time
from collections.abc import Callable, Mapping
from functools import cache as once
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from redispatch.dispatch.disk import digest

REALS = ("float32", "float64")
STARTED = time.time()


def primitive(func: Callable) -> Callable:
    """Mark a function that programs call as it stands; `primitives.py` gives its compiled meaning."""
    func.is_primitive = True  # type: ignore[attr-defined]  # a mark on a function object
    return func


def integral(func: Callable) -> Callable:
    """Mark a function that computes with indices: its literals stay integers in every program."""
    func.is_integral = True  # type: ignore[attr-defined]  # a mark on a function object
    return func


def polynomial(x, coefficients):
    """c_0 + c_1 x + c_2 x^2 + ..., by Horner's rule. In a program both are names, the second of a global tuple."""
    total = type(x)(coefficients[-1])
    for c in coefficients[-2::-1]:
        total = type(x)(c) + x * total
    return total


def steps(start, end, step):
    """The numbers from `start` up to `end`: in a program `for j in steps(...)` is a `while`. To count how often the
    loop of a `range` runs, numba would divide by its step."""
    return range(start, end, step)


class AsWhile(ast.NodeTransformer):
    """Writes each loop over `steps` as a `while`."""

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        if not (isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func) == "steps"):
            return node
        at: Any = node.target
        start, end, step = node.iter.args
        last = ast.AugAssign(at, ast.Add(), step)
        return [
            ast.Assign([at], start, lineno=0),
            ast.While(ast.Compare(at, [ast.Lt()], [end]), [*node.body, last], []),
        ]


class _TypedLiterals(ast.NodeTransformer):
    """Rewrites numbers that meet floats into numbers of the real type; indices, counts and exponents stay ints."""

    def __init__(self, real: str) -> None:
        self.real = real

    def typed(self, node: ast.expr) -> ast.expr:
        """`node`, or a call of the real type around it when it is a literal number, perhaps negated."""
        inner = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
        if isinstance(inner, ast.Constant) and type(inner.value) in (int, float):
            return ast.Call(ast.Name(self.real, ast.Load()), [node], [])
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return self.typed(node) if type(node.value) is float else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == "math" and node.attr in ("pi", "e", "inf", "nan"):
            return ast.Call(ast.Name(self.real, ast.Load()), [node], [])
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        if isinstance(node.op, (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.FloorDiv)):
            node.left, node.right = self.typed(node.left), self.typed(node.right)
        elif isinstance(node.op, ast.Pow):
            node.left = self.typed(node.left)
        return self._inside(node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        node.left, node.comparators = self.typed(node.left), [self.typed(c) for c in node.comparators]
        return self._inside(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        node.body, node.orelse = self.typed(node.body), self.typed(node.orelse)
        return self._inside(node)

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        if node.value is not None:
            node.value = self.typed(node.value)
        return self._inside(node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name) and node.func.id == self.real:
            return node  # typed already
        return self._inside(node)

    def _inside(self, node: Any) -> Any:
        return self.generic_visit(node)


class _FollowModules(ast.NodeTransformer):
    """Turns `module.function`, where the function is written in Python, into a name of the program."""

    def __init__(self, scope: Mapping[str, object], bind: Callable[[str, object], str]) -> None:
        self.scope, self.bind = scope, bind

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        module = self.scope.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if isinstance(module, ModuleType) and module is not np:
            value = getattr(module, node.attr, None)
            if isinstance(value, FunctionType):
                return ast.Name(self.bind(node.attr, value), ast.Load())
        self.generic_visit(node)
        return node


class _WriteOutPolynomials(ast.NodeTransformer):
    """Turns `polynomial(x, TABLE)` into `TABLE_0 + x * (TABLE_1 + x * ...)`: no loop, and each coefficient typed."""

    def __init__(self, scope: Mapping[str, object]) -> None:
        self.scope = scope
        self.coefficients: dict[str, float] = {}

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if not (isinstance(node.func, ast.Name) and self.scope.get(node.func.id) is polynomial):
            return node
        x, table = node.args
        assert isinstance(x, ast.Name) and isinstance(table, ast.Name), "polynomial() takes two names"
        values = self.scope[table.id]
        assert isinstance(values, tuple)
        names = [f"{table.id}_{k}" for k in range(len(values))]
        self.coefficients.update(zip(names, values, strict=True))
        text = f" + {x.id} * (".join(names) + ")" * (len(names) - 1)
        return ast.parse(text, mode="eval").body


class Part:
    """A program's last function, as another program calls it; it keeps its literals, and LLVM's flags of its own."""

    def __init__(self, program: "Program", flags: frozenset[str]) -> None:
        self.program, self.flags = program, flags

    def __call__(self, *args: Any) -> Any:
        return self.program.load()[self.program.compiled[-1]](*args)  # type: ignore[operator]  # the last is a function

    def digest(self) -> bytes:
        return digest(self.program.digest().encode(), ",".join(sorted(self.flags)).encode())


class Program:
    """Collects functions, callees first, into `text` and the `namespace` that the text needs.

    `real` is "float32", "float64", or None, which leaves literals as they are (integer and complex kernels, and
    loops that are written with types throughout).
    """

    def __init__(self, real: str | None) -> None:
        if real is not None and real not in REALS:
            raise ValueError(f"literals can become {REALS}, not {real!r}")
        self.real = real
        self.parts: list[str] = []
        self.namespace: dict[str, object] = {"float32": np.float32, "float64": np.float64}
        self.reserved: set[str] = set()
        self.uses_primitives = False
        self.names: dict[
            object, str
        ] = {}  # what was added already, with the type of its literals -> its name in the text
        self.compiled: list[str] = []  # the functions of the text, callees first
        self.trees: dict[str, ast.FunctionDef] = {}  # each of them, as it stands in the text
        self.constants: dict[str, object] = {}  # the numbers to which the text gives the real type
        self.apart: set[str] = set()  # functions that write to no array which they have by another name, too

    def add(self, func: Callable, given: Mapping[str, object] | None = None, rewrite: bool = True) -> str:
        """Add a plain function and all that it reaches; returns its name in the text.

        `given` replaces globals of `func` by name: how one loop is used with many bodies, loads and stores.
        """
        if (func, self.real) in self.names:
            return self.names[func, self.real]
        if getattr(func, "is_primitive", False):
            return self._bind_primitive(func)
        tree = _parse(func)
        self._add_globals(func, tree, given or {})
        if self.real is not None and rewrite and not getattr(func, "is_integral", False):
            tree = ast.fix_missing_locations(_TypedLiterals(self.real).visit(tree))
        return self._emit(func, tree)

    def add_text(
        self, name: str, text: str, given: Mapping[str, object], reals: Mapping[str, str | None] | None = None
    ) -> str:
        """Add a generated function; `given` holds the globals it uses, `reals` the type of literals in some of them."""
        module = ast.parse(text)
        tree = module.body[0]
        assert isinstance(tree, ast.FunctionDef)
        code = next(one for one in compile(module, name, "exec").co_consts if isinstance(one, CodeType))
        self.reserved |= {name, *code.co_varnames}
        renamed, own = {}, self.real
        for word, value in given.items():
            self.real = own if reals is None else reals.get(word, own)
            renamed[word] = self._bind(word, value)
        self.real = own
        self._append(name, _rename(tree, renamed, text), tree)
        return name

    def _emit(self, func: Callable, tree: ast.FunctionDef) -> str:
        name = self._unused(tree.name)
        tree.name = name
        self.names[func, self.real] = name
        self._append(name, ast.unparse(tree) + "\n", tree)
        return name

    def _append(self, name: str, source: str, tree: ast.FunctionDef) -> None:
        self.compiled.append(name)
        self.trees[name] = tree
        self.parts.append(source)

    def _add_globals(self, func: Callable, tree: ast.FunctionDef, given: Mapping[str, object]) -> None:
        scope = {**getattr(func, "__globals__", {}), **_cells(func), **given}
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        if any(scope.get(node.id) is polynomial for node in names):
            polynomials = _WriteOutPolynomials(scope)
            polynomials.visit(tree)
            scope |= polynomials.coefficients
            names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        local = {node.id for node in names if isinstance(node.ctx, ast.Store)} | {a.arg for a in tree.args.args}
        words = sorted({node.id for node in names} - local)
        renamed = {}
        if any(isinstance(scope.get(word), ModuleType) for word in words):
            _FollowModules(scope, self._bind).visit(tree)
        for word in words:
            if word in scope:
                bound = self._bind(word, scope[word])
                if bound != word:
                    renamed[word] = bound
            elif not hasattr(builtins, word):
                raise NameError(f"scalar function {func.__qualname__} uses {word!r}, which is not defined")
        for node in names:
            node.id = renamed.get(node.id, node.id)

    def _bind(self, word: str, value: object) -> str:
        """Make `value` known to the text, under `word` if that is free; returns the name."""
        if isinstance(value, FunctionType):
            return self.add(value)
        if isinstance(value, np.generic):
            word = self._unused(word)
            number = value.item()
            written = f'float("{number!r}")' if isinstance(number, float) else repr(number)
            if isinstance(number, complex) and not np.isfinite(number):
                written = f'complex(float("{number.real!r}"), float("{number.imag!r}"))'
            self.parts.append(f"{word} = {value.dtype.name}({written})\n")
            self.namespace[value.dtype.name] = type(value)
            self.namespace[word] = value
            return word
        if isinstance(value, (bool, int, float, complex)) and self.namespace.get(word, self) != value:
            word = self._unused(word)
            typed = self.real is not None and isinstance(value, float)
            number = f'float("{value!r}")' if isinstance(value, float) else repr(value)
            self.parts.append(f"{word} = {self.real}({number})\n" if typed else f"{word} = {number}\n")
            self.namespace[word] = value
            if self.real is not None and isinstance(value, float):
                self.constants[word] = np.float32(value) if self.real == "float32" else np.float64(value)
        elif not isinstance(value, (bool, int, float, complex)):
            if self.namespace.get(word, value) is not value:
                word = self._unused(word)
            self.namespace[word] = value
        return word

    def _bind_primitive(self, func: Callable) -> str:
        name = self._unused(func.__name__)
        self.names[func, self.real] = name
        self.namespace[name] = func
        self.uses_primitives = True
        return name

    def _unused(self, word: str) -> str:
        name, number = word, 2
        while name in self.namespace or name in self.compiled or name in self.reserved:
            name, number = f"{word}_{number}", number + 1
        return name

    def text(self) -> str:
        """The complete source, imports first: a module that a person can open."""
        lines = []
        for name, value in sorted(self.namespace.items()):
            if isinstance(value, ModuleType):
                lines.append(f"import {value.__name__} as {name}" if name != value.__name__ else f"import {name}")
            elif hasattr(value, "__module__") and hasattr(value, "__name__"):
                original = value.__name__
                alias = "" if original == name else f" as {name}"
                lines.append(f"from {value.__module__} import {original}{alias}")
        return "\n".join(lines) + "\n\n" + "\n\n".join(self.parts)

    def digest(self) -> str:
        """A hash of everything that decides what the program computes."""
        parts = [",".join(sorted(self.apart)).encode()] if self.apart else []
        parts += [value.digest() for value in self.namespace.values() if isinstance(value, Part)]
        return digest(self.text().encode(), _primitives_digest() if self.uses_primitives else b"", *parts).hex()

    def load(self) -> dict[str, object]:
        """Execute the text; its functions show up in tracebacks and `inspect.getsource` through `linecache`."""
        short = self.digest()[:16]
        filename = f"<redispatch kernel {self.compiled[-1]} {short}>"
        text = self.text()
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
        namespace = {**self.namespace, "__name__": __name__}  # a real module: numba looks it up when it unpickles
        body = "\n\n".join(self.parts)
        # the imports are in the namespace already; blank lines keep line numbers equal to those of the full text
        exec(compile("\n" * (text.count("\n") - body.count("\n")) + body, filename, "exec"), namespace)
        for name in self.compiled:  # numba derives symbols from it, which must differ between all kernels in a process
            function = namespace[name]
            assert isinstance(function, FunctionType)
            function.__qualname__ = f"{name}_{short}"
        return namespace


@once
def _primitives_digest() -> bytes:
    """A hash of the files that say what primitives compile to."""
    here = Path(__file__).parent
    files = [here / "primitives.py", here / "program.py"]
    files += [file for room in ("vecmath", "special") for file in sorted((here.parent / "maths" / room).glob("*.py"))]
    return digest(*(file.read_bytes() for file in files))


def _parse(func: Callable) -> ast.FunctionDef:
    if isinstance(getattr(func, "__code__", None), CodeType):
        _check_unchanged(func)
    try:
        tree = ast.parse(_source(getattr(func, "__code__", func))).body[0]
    except (OSError, TypeError, SyntaxError):
        tree = None
    if not isinstance(tree, ast.FunctionDef):
        raise TypeError(
            f"a kernel's scalar function must be a `def` whose source can be read; {func!r} is not. "
            "Write it in a file or a notebook cell, and not as a lambda."
        )
    if ast.get_docstring(tree) is not None:
        tree.body = tree.body[1:] or [ast.Pass()]
    tree.decorator_list, tree.returns = [], None  # not part of the program, and neither are the names they use
    for argument in tree.args.args:
        argument.annotation = None
    code = getattr(func, "__code__", None)
    return AsWhile().visit(tree) if code is None or "steps" in code.co_names else tree


@once  # many kernels have the same functions
def _source(code: Any) -> str:
    """The text of a function's code. `inspect.getsource` would look through all modules for its file."""
    lines = linecache.getlines(code.co_filename) if isinstance(code, CodeType) else []
    found = "".join(inspect.getblock(lines[code.co_firstlineno - 1 :])) if lines else inspect.getsource(code)
    return textwrap.dedent(found)


def _cells(func: Callable) -> dict[str, object]:
    """Returns what a function has from the functions around it."""
    cells = getattr(func, "__closure__", None) or ()
    return (
        {}
        if not cells
        else {name: cell.cell_contents for name, cell in zip(func.__code__.co_freevars, cells, strict=True)}
    )


def _check_unchanged(func: Callable) -> None:
    """RuntimeError where the source on disk is no longer what `func` was made of: another kernel would run, silently.

    Compared is the byte code, of the function as it would be now. Where the text around it is no module (a page of
    documentation, say), there is nothing to compare with.
    """
    made: CodeType = func.__code__
    try:
        if os.path.getmtime(made.co_filename) < STARTED:
            return  # not touched while this process runs, which saves compiling the file again
    except OSError:
        pass  # a notebook's cell, or text without a file
    text = "".join(linecache.getlines(made.co_filename))
    now = _codes(made.co_filename, text) if text else None
    if now is not None and (made.co_name, made.co_firstlineno, made.co_code) not in now:
        raise RuntimeError(
            f"the source of {made.co_qualname} ({made.co_filename}:{made.co_firstlineno}) has changed since it was "
            "imported, so its kernel cannot be compiled from it; start Python again"
        )


@once
def _codes(filename: str, text: str) -> frozenset[tuple[str, int, bytes]] | None:
    """Name, first line and byte code of every function in a module's text; None for what is no module."""
    try:
        pending: list[CodeType] = [compile(text, filename, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        return None
    found = set()
    while pending:
        code = pending.pop()
        found.add((code.co_name, code.co_firstlineno, code.co_code))
        pending += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return frozenset(found)


def _rename(tree: ast.FunctionDef, renamed: Mapping[str, str], text: str) -> str:
    if all(old == new for old, new in renamed.items()):
        return text  # keeps the comments that the generator wrote
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in renamed:
            node.id = renamed[node.id]
    return ast.unparse(tree) + "\n"
