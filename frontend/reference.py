"""The operator reference: pages of Markdown with what the registry knows of every operator. `make docs` writes them.

    python -m redispatch.reference docs/reference

A page for each family in kernels/ops/, and one with the taxonomy: how shapes go through operators, how many do it each
way and which. Nothing on them is written by hand, so nothing can be out of date. Read next:
kernels/batching/__init__.py.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import redispatch.special  # noqa: F401  # declares its operators when it is imported
from redispatch import torch_names
from redispatch.dispatch import OPERATORS, OpOverload
from redispatch.dispatch.layers.autograd import DERIVATIVES
from redispatch.kernels import ops as families
from redispatch.kernels.batching import shape_class
from redispatch.testing.op_db import op_db
from redispatch.testing.op_info import EVERY_DTYPE

FAMILIES = Path(families.__file__).parent
CLASSES = {
    "pointwise": "Shapes broadcast from the right; each element of the result depends on one element of each argument.",
    "dims": "Name the dimensions that they work along, or sizes; the others are only passed through.",
    "full": "Work along all dimensions at once.",
    "leading": "Work on the last dimensions, whatever is in front.",
    "matrices": "Products of matrices and vectors.",
    "images": "Take any number of images, or of the like.",
    "indices": "Take tensors of indices, whose shape is part of the result's.",
    "losses": "Pointwise, then reduced if asked for.",
    "random": "Draw numbers: others for each example, or the same, as `vmap` is told.",
    "view": "Change how a tensor looks, in place: a batch cannot be told so.",
    "dynamic": "The shape of the result, or a Python value, depends on the values.",
    "composite": "Written in other operators, and so of their classes.",
    "parts": "Have a kernel of their own, and can be said in other operators, which a batch is given to.",
    "other": "Of none of these; `vmap` calls them once for each example.",
}


def operators() -> list[OpOverload]:
    """The library's operators that have kernels, in the order of their names."""
    found = [op for op in OPERATORS.values() if op.namespace == "aten" and op.registrations]
    return sorted(found, key=lambda op: op.qualified_name)


def pages() -> dict[str, str]:
    """The reference: file name -> text."""
    by_family: dict[str, list[OpOverload]] = defaultdict(list)
    for op in operators():
        by_family[family_of(op)].append(op)
    made = {f"{family}.md": family_page(family, ops) for family, ops in sorted(by_family.items())}
    return {
        "index.md": index_page(sorted(by_family)),
        "shapes.md": shapes_page(),
        "torch.md": torch_names.page(),
        **made,
    }


def index_page(names: Iterable[str]) -> str:
    listed = "\n".join(names)
    return f"""# Operator reference

Every operator of the library, a page for each family: its schema, who answers for it at which key, its derivative, the
dtypes that it computes, its tags and its shape class. These pages are made from the registry whenever the documentation
is built; for one operator, `redispatch.explain` tells the same at run time. {{doc}}`shapes` sorts the operators by how
shapes go through them.

```{{toctree}}
:maxdepth: 1

shapes
{listed}
```
"""


def shapes_page() -> str:
    """The taxonomy: for each class what it is, how many operators are in it, and which."""
    members = taxonomy()
    rows = [f"| [{name}](#{name}) | {len(members[name])} | {CLASSES[name]} |" for name in CLASSES]
    parts = [f"## {name}\n\n{CLASSES[name]}\n\n{', '.join(f'`{op}`' for op in members[name])}\n" for name in CLASSES]
    total = sum(map(len, members.values()))
    return "\n".join(
        [
            "# Operators by what they do to shapes",
            "",
            "How shapes go through an operator is nearly always one of a few ways. Whoever knows it knows how to",
            "give the operator a batch where it expects an example, which is what `vmap` does, and so this is the",
            "classification that `vmap` goes by. Forms with `out=` are of the class of their functional form, and are",
            "not counted.",
            "",
            f"| class | of {total} | |",
            "|---|---:|---|",
            *rows,
            "",
            *parts,
        ]
    )


def taxonomy() -> dict[str, list[str]]:
    """Shape class -> the names of its operators."""
    members: dict[str, list[str]] = {name: [] for name in CLASSES}
    for op in operators():
        if not op.schema.is_out:
            members[shape_class(op)].append(op.qualified_name.removeprefix("aten::"))
    return members


def family_page(family: str, ops: list[OpOverload]) -> str:
    """The operators of one file, those of one name together, with their in-place forms."""
    by_name: dict[str, list[OpOverload]] = defaultdict(list)
    for op in ops:
        by_name[op._opname.removesuffix("_") if "inplace" in op.tags else op._opname].append(op)
    sections = [section(name, overloads) for name, overloads in by_name.items()]
    return "\n".join([f"# {family}", "", escaped(about(family)), "", f"Declared in `ops/{family}.py`.", "", *sections])


def section(name: str, overloads: list[OpOverload]) -> str:
    rows = [[f"`{op.__name__}`", *(fact(op) for fact in FACTS.values())] for op in overloads]
    lines = [
        f"## `{name}`",
        "",
        "```text",
        *(str(op.schema).removeprefix("aten::") for op in overloads),
        "```",
        "",
        f"| operator | {' | '.join(FACTS)} |",
        "|---" * (len(FACTS) + 1) + "|",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]
    return "\n".join(lines)


# --- the facts --------------------------------------------------------------------------------------------------------


def kernels(op: OpOverload) -> str:
    """Lists the kernels by key: `CPU` and its kernel's name."""
    found = sorted(op.registrations.items(), key=lambda item: item[0].name)
    return "<br>".join(f"{key.name}: {escaped(registered[-1].label)}" for key, registered in found)


def derivative(op: OpOverload) -> str:
    """The node, with the arguments that have a gradient."""
    if op in DERIVATIVES:
        return f"`{DERIVATIVES.get(op)}`"
    return "that of its parts" if shape_class(op) == "composite" else ""


def dtypes(op: OpOverload) -> str:
    """Lists the dtypes that it computes, or does not, whichever list is shorter; as its entry in the table of tests
    says."""
    refused = refusals().get(op)
    if refused is None:
        return ""
    taken = [dtype.name for dtype in EVERY_DTYPE if dtype.name not in refused]
    if not refused:
        return "all"
    return ", ".join(taken) if len(taken) <= len(refused) else f"all but {', '.join(sorted(refused))}"


def tags(op: OpOverload) -> str:
    return ", ".join(tag for tag in op.tags if tag != "pt2_compliant_tag")  # which all have


def shapes(op: OpOverload) -> str:
    found = shape_class(op)
    return f"[{found}](shapes.md#{found})" if found in CLASSES else found


FACTS: dict[str, Callable[[OpOverload], str]] = {
    "kernels": kernels,
    "derivative": derivative,
    "dtypes": dtypes,
    "tags": tags,
    "shapes": shapes,
}


@cache
def refusals() -> dict[OpOverload, frozenset[str]]:
    """Operator -> the names of the dtypes that it refuses."""
    return {op: info.refused for info in op_db for op in info.covers}


def family_of(op: OpOverload) -> str:
    """The file in kernels/ops/ that declares it."""
    return Path(re.sub(r":\d+$", "", op.place)).stem  # a form made by rule has a file and no line


@cache
def about(family: str) -> str:
    """The first paragraph of the file's docstring."""
    text = ast.get_docstring(ast.parse((FAMILIES / f"{family}.py").read_text())) or ""
    return text.partition("\n\n")[0].replace("\n", " ")


def escaped(text: str) -> str:
    """Text in which Markdown sees nothing of its own."""
    return "".join(f"\\{sign}" if sign in r"\`*_{}[]<>#|" else sign for sign in text)


def write(folder: Path) -> None:
    """Writes the pages, and leaves those alone that have not changed, so that Sphinx need not read them again."""
    folder.mkdir(parents=True, exist_ok=True)
    made = pages()
    for old in folder.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
