"""Schemas that are not read yet: what their text tells at a glance, and the text of the forms derived from them.

Importing the library declares hundreds of operators, of which a program calls a few dozen. To parse a schema and work
out its facts takes 60 us, so that is left until somebody asks; a declaration needs names and kinds alone.

    text = SchemaText("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
    text.names                # ["self", "other", "alpha"]
    text.inplace().text       # "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)"

Such text is ours, well-formed, and held to what the parser makes of it by a test of all operators. What users pass is
parsed at once. Read next: dispatch/schema/parser.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from string import ascii_lowercase as LETTERS

from .parser import parse_schema
from .schema import FunctionSchema

BETWEEN = re.compile(r",\s*(?![^\[(]*[\])])")  # a comma that stands in no bracket
FACTORY_OPTIONS = ("ScalarType? dtype", "Layout? layout", "Device? device", "bool? pin_memory")
ALIAS = re.compile(r"Tensor\([a-z]")


class SchemaText:
    """A schema by its text. Fields: `text`, `name` ("aten::add"), `overload_name`, `arguments` (their texts).

    scratch: an argument that is written, of which no layer is to hear; see FunctionSchema.with_scratch.
    """

    def __init__(self, text: str, scratch: str = "") -> None:
        self.text, self.scratch = text, scratch
        head, _, rest = text.partition("(")
        inside, _, self.returns = rest.rpartition(") -> ")
        self.name, _, self.overload_name = head.partition(".")
        self.arguments = BETWEEN.split(inside) if inside else []

    @cached_property
    def schema(self) -> FunctionSchema:
        """The schema, parsed when it is first asked for."""
        schema = parse_schema(self.text)
        return schema.with_scratch(self.scratch) if self.scratch else schema

    @property
    def names(self) -> list[str]:
        """The names of the arguments."""
        return [one.partition("=")[0].rpartition(" ")[2] for one in self.arguments if one != "*"]

    @property
    def tensor_positions(self) -> tuple[int, ...]:
        """The arguments that are `Tensor` or `Tensor?`."""
        types = [one.partition(" ")[0] for one in self.arguments if one != "*"]
        return tuple(i for i, type_ in enumerate(types) if type_.startswith("Tensor") and "[" not in type_)

    @property
    def shares_memory(self) -> bool:
        """Whether some argument is written, or returned as a view."""
        return ALIAS.search(self.text, self.text.index("(")) is not None

    @property
    def is_factory(self) -> bool:
        """Whether it takes a device and no tensors."""
        return "Device" in self.text and not any(one.startswith("Tensor") for one in self.arguments)

    @property
    def kind(self) -> str:
        """'out', 'inplace' or 'functional', as FunctionSchema.kind; 'mutable' for whatever else writes."""
        if "!" not in self.text:
            return "functional"
        if "*" in self.arguments and any("!" in one for one in self.arguments[self.arguments.index("*") :]):
            return "out"
        return "inplace" if self.name.endswith("_") and "!" in self.arguments[0] else "mutable"

    def inplace(self, overload: str | None = None) -> SchemaText:
        """The form that writes its first argument; `overload` where its overload has another name ("default": none)."""
        named = self.overload_name if overload is None else overload.removesuffix("default")
        first, *rest = self.arguments
        type_, _, name = first.partition(" ")
        written = type_.replace("Tensor", "Tensor(a!)")
        arguments = ", ".join([f"{written} {name}", *rest])
        returns = "()" if type_.endswith("[]") else f"{self.returns}(a!)"  # of a list, the caller has the tensors
        return SchemaText(f"{head(self.name + '_', named)}({arguments}) -> {returns}")

    def out(self, overload: str, names: Sequence[str] = ()) -> SchemaText:
        """The form that writes into an argument `out`, or `grad_input` if the overload has that name.

        Several results are written into arguments that are called as they are, or by `names`; a list of results into a
        list. What would say how the result is made (`dtype`, `device` and so on) is left out: `out` is made already.
        """
        name = overload if overload == "grad_input" else "out"
        several = self.returns.startswith("(")
        type_ = self.returns.partition(" ")[0]
        results = BETWEEN.split(self.returns.strip("()")) if several else [f"{type_} {name}"]
        letters = [letter for letter in LETTERS if f"({letter}!)" not in self.text]
        written = [
            one.replace("Tensor", f"Tensor({letter}!)", 1) for one, letter in zip(results, letters, strict=False)
        ]
        made = "pin_memory" in self.names
        arguments = [one for one in self.arguments if not (made and one.startswith(FACTORY_OPTIONS))]
        star = [] if "*" in arguments else ["*"]
        named = [f"{one.partition(' ')[0]} {other}" for one, other in zip(written, names, strict=False)]
        returns = f"({', '.join(written)})" if several else "()" if type_.endswith("[]") else f"{type_}(a!)"
        return SchemaText(
            f"{head(self.name, overload)}({', '.join([*arguments, *star, *(named or written)])}) -> {returns}"
        )

    def __str__(self) -> str:
        return self.text


def head(name: str, overload: str) -> str:
    return f"{name}.{overload}" if overload else name
