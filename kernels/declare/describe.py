"""The docstring of a public function of operators: `help(redispatch.sin)`.

Its sentence stands where the function is made (`public(..., doc="Returns ...")`), at the declaration, or in the
kernel's docstring; a second name has the first one's. All else follows from the schemas
and the facts: shapes, dtypes, errors, forms, and where the operator is declared. Read next: public.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import cache
from inspect import cleandoc

from redispatch.dispatch import OpOverload

from .declare import SEVERAL, Operator

PACKAGE = len(os.path.dirname(os.path.dirname(os.path.dirname(__file__)))) + 1  # of a path, up to the room's name
IN_NAME = re.compile(r"_?[a-z]\w*?([123])d(?![a-z])")
SIDES = {1: "length", 2: "height, width", 3: "depth, height, width"}
COMPUTED = {  # what `promotion` says of dtypes, after those that are taken
    "same": "the result has the common dtype",
    "float": "whole numbers are computed as the default float dtype",
    "compare": "the result is of bools",
    "real": "complex numbers have real results",
    "complex": "the result is complex",
}


def image_rank(name: str) -> int:
    """The number of dimensions of one image, channels included, by an operator's name: 3 for `avg_pool2d`; or 0."""
    found = IN_NAME.match(name)
    return int(found[1]) + 1 if found else 0


def sentence(operators: Sequence[Operator], given: str) -> str:
    """Returns what the function does: as given, as the operator is declared, or as what it is a second name of."""
    first = operators[0]
    said = given or first.doc or (first.alias_of.doc if first.alias_of else "")
    first.doc = cleandoc(said) if "\n" in said else said
    return first.doc


def in_place(name: str, said: str) -> str:
    """The sentence of an in-place form."""
    return f"Does in place what `{name}` does: {said[:1].lower()}{said[1:]}" if said else ""


def facts(operators: Sequence[Operator]) -> str:
    """The paragraph behind the sentence that follows from schemas and facts."""
    first = operators[0]
    of = first.alias_of or first
    names = of.names
    wrong = ["shapes that do not broadcast"] if of.elementwise and len(of.text.tensor_positions) > 1 else []
    wrong += ["other dtypes"] if of.refuses else []
    errors = "TypeError for arguments that no schema takes"
    if wrong:
        errors += f"; RuntimeError for {' and '.join(wrong)}"
    if "dim" in names or "dims" in names:
        errors += "; IndexError for a dimension that there is not"
    computed = f"; {COMPUTED[of.promotion]}" if of.promotion in COMPUTED else ""
    dtypes = taken(tuple(of.refuses)) + computed
    return f"{shapes_of(of, names)}Dtypes: {dtypes}.\nErrors: {errors}.\nDeclared: {first.place[PACKAGE:]}."


def shapes_of(op: Operator, names: Sequence[str]) -> str:
    """The line on shapes, where schema, tags or the name tell."""
    rank = image_rank(op.base_name)
    if op.elementwise and len(op.text.tensor_positions) > 1:
        return "Shapes: any that broadcast, to what the result has.\n"
    if op.elementwise:
        return "Shapes: any; the result has the same.\n"
    if "keepdim" in names:
        return "Shapes: any; `dim` is gone in the result, or has size 1 there with `keepdim`.\n"
    if op.text.is_factory and "size" in names:
        return "Shapes: the result has `size`.\n"
    return f"Shapes: [batch, channels, {SIDES[rank - 1]}], or without the batch.\n" if rank else ""


@cache
def taken(refused: tuple[str, ...]) -> str:
    """Names the dtypes that are taken: "all but bool and complex"."""
    left, words = list(refused), []
    for word in ("bool", "integers", "floating", "halves", "complex"):
        group = SEVERAL.get(word, (word,))
        if set(group) <= set(left):
            words.append({"halves": "16-bit floats"}.get(word, word))
            left = [name for name in left if name not in group]
    words += left
    return f"all but {', '.join(words[:-1])}{' and ' * (len(words) > 1)}{words[-1]}" if words else "all"


def documented(said: str, behind: str, overloads: Iterable[OpOverload]) -> str:
    """The docstring: the sentence, what follows from facts, and the schemas."""
    schemas = "\n    ".join([str(op._declared) for op in overloads])
    return f"{said}\n\n{behind}\n\n    {schemas}\n" if said else schemas
