"""The arrows between files: none goes in a circle, and an import inside of a function says why it is there.

import-linter holds the order of the rooms (pyproject.toml); this counts every import, those for types alone and those
inside of functions, too.
"""

import ast
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
ROOMS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]


class Import(NamedTuple):
    importer: str
    imported: str
    line: int
    is_hidden: bool  # inside of a function
    has_reason: bool  # a comment on the line, or on the one before


def modules() -> dict[str, Path]:
    found = {}
    for package, folder in ROOMS.items():
        for file in (ROOT / folder).rglob("*.py"):
            parts = file.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join((package, *parts)).removesuffix(".__init__")] = file
    return found


MODULES = modules()


def imports(module: str, text: str) -> Iterator[Import]:
    """Every import of one of the library's modules."""
    tree, lines = ast.parse(text), text.split("\n")
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    hidden = {inner for function in functions for inner in ast.walk(function)}
    package = module.split(".") if MODULES[module].name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names = [f"{base}.{a.name}" if f"{base}.{a.name}" in MODULES else base for a in node.names]
        else:
            continue
        reason = any("#" in line for line in lines[max(node.lineno - 2, 0) : node.lineno])
        for name in names:
            if name in MODULES and name != module:
                yield Import(module, name, node.lineno, node in hidden, reason)


IMPORTS = [one for module, file in MODULES.items() for one in imports(module, file.read_text())]


def circles(arrows: dict[str, set[str]]) -> list[set[str]]:
    """The groups of files that can all be reached from each other."""

    def reached(start: str) -> set[str]:
        seen, todo = set(), [start]
        while todo:
            new = arrows.get(todo.pop(), set()) - seen
            seen |= new
            todo += new
        return seen

    reach = {one: reached(one) for one in arrows}
    found = {frozenset(b for b in reach[a] if a in reach.get(b, ())) for a in arrows if a in reach[a]}
    return sorted(map(set, found), key=sorted)


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [{"b", "c"}]
    assert circles({"a": {"b", "c"}, "b": {"c"}}) == []


def test_no_arrow_between_files_goes_in_a_circle():
    """Packages are left out: a package names what its files have, and a file may ask the package for it."""
    arrows: dict[str, set[str]] = {}
    for one in IMPORTS:
        if not {MODULES[one.importer].name, MODULES[one.imported].name} & {"__init__.py"}:
            arrows.setdefault(one.importer, set()).add(one.imported)
    assert circles(arrows) == []


def test_an_import_inside_of_a_function_says_why():
    hidden = [one for one in IMPORTS if one.is_hidden]
    without = [f"{os.path.relpath(MODULES[one.importer], ROOT)}:{one.line}" for one in hidden if not one.has_reason]
    assert without == []
    assert len({(one.importer, one.line) for one in hidden}) <= 25
