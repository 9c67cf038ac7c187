"""The rules of the house that a program can hold: reasons beside ignores, and the words that the glossary replaced."""

import ast
import re
import tomllib
from pathlib import Path

from redispatch.dispatch import OPERATORS

ROOT = Path(__file__).resolve().parents[1]
ROOMS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"].values()
SOURCES = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*.py"))]

IGNORE = re.compile(r"#\s*(ruff: )?(noqa|type: ignore)(?!-)")
REASON = re.compile(r"#\s*(?:ruff: )?(?:noqa|type: ignore)[^#(]*(?:#\s*\S|\(\S)")

# What a word of the glossary took the place of: a regular expression -> the word of today, and where it holds
RETIRED = {
    r"\b[Rr]oads?\b": ("path", ("dispatch",)),
    r"\b[Mm]oulds?\b": ("OutputSpec, output_spec", tuple(ROOMS)),
    r"\b(_looks|looks_of|\w+_looks)\b|\bLooks\b(?! [a-z])|\b(the|these|its|by|of) looks\b(?! \w)": (
        "metadata, Metadata",
        tuple(ROOMS),
    ),
    r"\b[Ll]anes?\b": ("fast path", ("dispatch",)),
    r"\w_(otherwise|anew)\b": ("..._slow", tuple(ROOMS)),
    r"\bbackends/cuda\b": ("kernels/cuda/runtime", tuple(ROOMS)),
    r"\b(through_host\.py|butterflies|remembered\.py|taped\.py)\b": ("the module's name of today", tuple(ROOMS)),
}


def test_each_ignore_of_a_linter_or_type_checker_gives_its_reason():
    bare = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in SOURCES
        for number, line in enumerate(file.read_text().split("\n"), 1)
        if IGNORE.search(line) and not REASON.search(line)
    ]
    assert bare == []


def test_retired_words_do_not_come_back():
    found = [
        f"{file.relative_to(ROOT)}:{number}: {match[0]!r} is {today!r} now"
        for word, (today, rooms) in RETIRED.items()
        for file in SOURCES
        if file.relative_to(ROOT).parts[0] in rooms
        for number, line in enumerate(file.read_text().split("\n"), 1)
        if (match := re.search(word, line))
    ]
    assert found == []


def test_what_to_read_next_and_the_files_that_pages_name_are_there():
    """A name is that of a file beside the one that mentions it, or a path from the root."""
    gone = [
        f"{file.relative_to(ROOT)}: {named}"
        for file in SOURCES
        for passage in re.findall(r'Read next:(.*?)(?:"""|\n\n)', file.read_text(), re.DOTALL)
        for named in re.findall(r"[\w./]+\.(?:py|md)\b", passage)
        if not (file.parent / named).exists() and not (ROOT / named).exists()
    ]
    gone += [
        f"{page.relative_to(ROOT)}: {named}"
        for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/howto/*.md"))
        if page.name != "CHANGELOG.md"
        for named in re.findall(rf"\b(?:{'|'.join(ROOMS)}|docs|tests)/[\w./]+\.(?:py|md)\b", page.read_text())
        if not (ROOT / named).exists()
    ]
    assert gone == []


def test_the_glossary_has_each_term_once():
    terms = re.findall(r"^\| (?!term|-)([^|]+) \|", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
    assert len(terms) >= 40 and len(set(terms)) == len(terms)


# Where six names of operators, or of what is called like one, may stand in a list: a file or a folder -> why.
NO_FACTS = {
    "frontend/array_api": "the standard's names, which it publishes",
    "frontend/functional.py": "PyTorch's module of that name, which publishes these",
    "frontend/nn/functional.py": "PyTorch's module of that name, which publishes these",
    "frontend/testing/op_db": "samples of operators, by their names",
    "kernels/cuda/intrinsics.py": "functions of libdevice",
    "kernels/declare/scalar_functions.py": "functions of Python's math",
    "kernels/ops/device_memory.py": "what an allocator needs to be a device; the file's subject",
    "subclasses": "a subclass says itself what operators mean for it, as a user's does",
}


def names_of_operators():
    names = {name.removeprefix("aten::") for name in OPERATORS if name.startswith("aten::")}
    return names | {name.partition(".")[0] for name in names}


def is_plain(value):
    """Whether a value in a table is data: a dict of names and functions registers what stands beside each name."""
    if isinstance(value, ast.Tuple | ast.List | ast.Set):
        return all(map(is_plain, value.elts))
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Dict) and all(map(is_plain, value.values)))


def listed_in(node):
    """The words that a literal lists: elements, words of a string, keys of a table of data and values that are one."""
    if isinstance(node, ast.Dict):
        pairs = [(key, value) for key, value in zip(node.keys, node.values, strict=True) if key and is_plain(value)]
        return [word for pair in pairs for one in pair if isinstance(one, ast.Constant) for word in listed_in(one)]
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return [one.value for one in node.elts if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return node.value.split() if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def lists_of_operators(text, known):
    """(line, names) of each literal in a program, most of whose words are six or more names of operators."""
    tree = ast.parse(text)
    left_out = set()  # docstrings, and the names that a module publishes
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and isinstance(node.body[0], ast.Expr):
            left_out.add(node.body[0].value)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            left_out.add(node.value)
    for node in ast.walk(tree):
        words = [] if node in left_out else listed_in(node)
        names = {word for word in words if word.removeprefix("aten::") in known}
        if len(names) >= 6 and 2 * len(names) >= len(words):
            yield node.lineno, sorted(names)


def test_what_is_true_of_an_operator_stands_where_it_is_declared():
    known, excused, found = names_of_operators(), set(), []
    for file in SOURCES:
        path = str(file.relative_to(ROOT))
        excuse = next((one for one in NO_FACTS if path == one or path.startswith(f"{one}/")), None)
        for line, names in lists_of_operators(file.read_text(), known):
            excused.add(excuse)
            if excuse is None:
                found.append(f"{path}:{line} lists {' '.join(names)}: a keyword at each operator's declaration says it")
    assert found == []
    assert excused - {None} >= {*NO_FACTS}, "an excuse that nobody needs any more"


def test_a_list_of_operators_is_seen_for_one():
    known, six = {"sin", "cos", "tan", "exp", "log", "abs"}, "sin cos tan exp log abs"
    for text in (
        f"X = {six!r}.split()",
        f"X = {six.split()}",
        f"X = f({{{', '.join(f'{one!r}: 1' for one in six.split())}}})",
    ):
        assert [names for _, names in lists_of_operators(text, known)] == [sorted(known)]
    registers = f"X = {{{', '.join(f'{one!r}: {one}' for one in six.split())}}}"
    for text in (registers, f'"""{six}"""', f"__all__ = {six.split()}", f"X = {six.split()[1:]}"):
        assert list(lists_of_operators(text, known)) == []
