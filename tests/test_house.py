"""The rules of the house that a program can hold: reasons beside ignores, and the words that the glossary replaced."""

import re
import tomllib
from pathlib import Path

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


def test_the_glossary_has_each_term_once():
    terms = re.findall(r"^\| (?!term|-)([^|]+) \|", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
    assert len(terms) >= 40 and len(set(terms)) == len(terms)
