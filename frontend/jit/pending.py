"""Functions that are text alone, compiled when they are first called: of a CompilationUnit, an archive, a dataclass.

Read next: classes.py.
"""

from __future__ import annotations

import ast
import dataclasses
import sys
from typing import Any

from .source import Place, ScriptError, Source, fail


def parsed_text(text: str) -> ast.Module:
    """Returns a text's syntax tree. ScriptError, with the place, for what is no Python."""
    try:
        return ast.parse(text)
    except SyntaxError as problem:
        raise ScriptError(
            f'{problem.msg}:\n  File "<string>", line '
            f"{problem.lineno}\n{(problem.text or '').rstrip()}\n{' ' * ((problem.offset or 1) - 1)}~ <--- HERE\n"
        ) from None


class Pending:
    """A function of a text that is compiled when it is first called, or its turn comes. owner: the class it is in."""

    def __init__(self, unit: Any, tree: ast.FunctionDef, source: Source, find: Any, owner: Any = None) -> None:
        self.unit, self.tree, self.source, self.find, self.owner = unit, tree, source, find, owner
        self.made: Any = None

    def __call__(self) -> None:  # programs call it
        raise NotImplementedError(self.tree.name)

    def compiled_for(self, place: Place | None, caller: Any) -> Any:
        """Returns the function, compiled on account of a caller."""
        if self.made is None:
            spec = self.tree.args
            positional = spec.args[len(spec.args) - len(spec.defaults) :]
            nodes = [*zip(positional, spec.defaults, strict=True), *zip(spec.kwonlyargs, spec.kw_defaults, strict=True)]
            defaults = {one.arg: self.literal(node) for one, node in nodes if node is not None}
            self.made = self.unit.compiled(self, self.tree, self.source, self.find, defaults, self.owner, place, caller)
        return self.made

    def literal(self, node: ast.expr) -> Any:
        try:
            return literal(node)
        except ValueError:
            fail(Place(self.source, node), "a default has to be a constant")


def literal(node: ast.expr) -> Any:
    """Returns the value of a constant in a text, in which infinities have names. ValueError for what is none."""
    text = ast.unparse(node)
    return float(text) if text in ("inf", "-inf", "nan") else ast.literal_eval(node)


def of_dataclass(unit: Any, kind: Any, owner: Any) -> dict[str, Pending]:
    """Returns the methods that `dataclass` has made, whose source is nowhere: __init__ and __eq__."""
    names: dict[str, Any] = dict(vars(sys.modules[kind.__module__]))
    heads, fields = ["self"], [one for one in dataclasses.fields(kind) if one.init]
    for one in fields:
        names[f"type_of_{one.name}"] = one.type
        kind_of = one.type if isinstance(one.type, str) else f"type_of_{one.name}"
        if one.default_factory is not dataclasses.MISSING:
            raise NotImplementedError(f"{kind.__name__}.{one.name}: TorchScript has no default_factory")
        heads.append(f"{one.name}: {kind_of}" + ("" if one.default is dataclasses.MISSING else f" = {one.default!r}"))
    names["Own"] = kind
    body = [f"self.{one.name} = {one.name}" for one in fields]
    body += ["self.__post_init__()"] if hasattr(kind, "__post_init__") else []
    same = " and ".join(f"self.{one.name} == other.{one.name}" for one in fields if one.compare)
    texts = {
        "__init__": f"def __init__({', '.join(heads)}) -> None:\n    " + "\n    ".join(body or ["pass"]),
        "__eq__": f"def __eq__(self, other: Own) -> bool:\n    return {same or True}",
    }
    trees = {name: parsed_text(text).body[0] for name, text in texts.items()}
    return {name: Pending(unit, tree, Source(texts[name]), names.get, owner) for name, tree in trees.items()}  # type: ignore[arg-type]  # a def
