"""Our schema parser and printer against PyTorch's: every schema that PyTorch has, and thousands of damaged ones.

Run with a Python that has torch: `python tests/parity/schemas.py [mutants]`. Exits non-zero when a schema of PyTorch's
does not come back as it was, when anything but SchemaError comes out of a mutant, or when both accept one and print it
differently, except for the differences that we mean:

- PyTorch accepts and we refuse: defaults that do not fit (`int x=1.5`), a second `*`,
  `Tensor!` without a set, alias annotations inside tuples and dicts, more than MAX_LIST_SIZE elements, `float` and
  friends as the default of an `int`, hexadecimal numbers (which it reads as 0), Python's triple quotes.
- We accept and PyTorch refuses: line breaks outside brackets, class types that are not registered (we cannot know),
  one-member unions, `*|a`, names of dtypes and memory formats that it has no words for, lists behind `?`.
- Printed otherwise: `int[3] x=[0, 0]`, which PyTorch prints as `int[3] x=0`; strings beyond ASCII; unions as written.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter

import torch
from loading import load

parse_schema = load("dispatch.schema_parser").parse_schema
SchemaError = load("dispatch.errors").SchemaError


def every_schema() -> int:
    """Counts PyTorch's schemas that do not come back as they were, or say something else about their arguments."""
    wrong = 0
    theirs = torch._C._jit_get_all_schemas()
    start = time.perf_counter()
    for theirs_schema in theirs:
        text = str(theirs_schema)
        try:
            ours = parse_schema(text)
            problem = None if str(ours) == text else f"printed {ours}"
            problem = problem or facts_differ(ours, theirs_schema)
        except SchemaError as error:
            problem = str(error)
        if problem:
            wrong += 1
            print(f"{text}\n    {problem}")
    seconds = time.perf_counter() - start
    print(f"{len(theirs) - wrong} of {len(theirs)} schemas come back as they were ({seconds:.2f} s)")
    return wrong


def facts_differ(ours, theirs) -> str | None:
    if (ours.name, ours.overload_name, ours.is_mutable) != (theirs.name, theirs.overload_name, theirs.is_mutable):
        return "name, overload or is_mutable differ"
    for mine, other in zip([*ours.arguments, *ours.returns], [*theirs.arguments, *theirs.returns], strict=True):
        pairs = {
            "name": (mine.name, other.name),
            "type": (str(mine.type), str(other.type)),
            "kind": (mine.type.kind(), other.type.kind()),
            "N": (mine.N, other.N),
            "kwarg_only": (mine.kwarg_only, other.kwarg_only),
            "is_out": (mine.is_out, other.is_out),
            "is_write": (mine.is_write, other.alias_info is not None and other.alias_info.is_write),
            "aliased": (mine.alias_info is not None, other.alias_info is not None),
            "has_default": (mine.has_default_value(), other.has_default_value()),
            "default": (mine.default_value, other.default_value),
        }
        if mine.alias_info is not None and other.alias_info is not None:
            pairs["before"] = (set(mine.alias_info.before_set), other.alias_info.before_set)
            pairs["after"] = (set(mine.alias_info.after_set), other.alias_info.after_set)
        for what, (a, b) in pairs.items():
            if a != b or type(a) is not type(b):
                return f"{mine}: {what} is {a!r}, PyTorch says {b!r}"
    return None


PIECES = ["Tensor", "int", "int[2]", "Tensor(a!)", "Tensor?", "t", "Dict(str, int)", "(", ")", "[", "]", "?", "!", "*"]
PIECES += [
    "=",
    "=1",
    "=None",
    "=[1, 2]",
    "=True",
    '="x"',
    "...",
    ", ",
    " -> ",
    "|",
    ".",
    "::",
    " ",
    "x",
    "1",
    "-",
    "\\",
]


def mutant(rng: random.Random, texts: list[str]) -> str:
    """A schema with one to three small accidents."""
    text = rng.choice(texts)
    for _ in range(rng.randint(1, 3)):
        i = rng.randrange(len(text) + 1)
        j = min(len(text), i + rng.randint(1, 6))
        replacements = ["", rng.choice(PIECES), text[i:j] * 2]
        text = text[: rng.choice([i, j])] + rng.choice(replacements) + text[rng.choice([i, j]) :]
    return text


def mutants(count: int) -> int:
    rng = random.Random(0)
    texts = [text for text in map(str, torch._C._jit_get_all_schemas()) if len(text) < 300]
    counts: Counter[str] = Counter()
    examples: dict[str, list[str]] = {}
    wrong, slowest = 0, 0.0
    for _ in range(count):
        text = mutant(rng, texts)
        start = time.perf_counter()
        try:
            ours = str(parse_schema(text))
        except SchemaError:
            ours = None
        except Exception as error:
            print(f"{type(error).__name__} for {text!r}")
            wrong += 1
            continue
        slowest = max(slowest, time.perf_counter() - start)
        try:
            theirs = str(torch._C.parse_schema(text))
        except Exception:  # RuntimeError, IndexError, UnicodeDecodeError, ...: all of them mean "refused"
            theirs = None
        if ours is not None and theirs is not None:
            verdict = "both accept" if ours == theirs else "both accept, printed otherwise"
        else:
            verdict = (
                f"ours {'refuses' if ours is None else 'accepts'}, torch {'refuses' if theirs is None else 'accepts'}"
            )
        counts[verdict] += 1
        examples.setdefault(verdict, []).append(f"{text!r}  ours {ours!r}  torch {theirs!r}")
    for verdict, number in counts.most_common():
        print(f"{number:7}  {verdict}")
        if "--examples" in sys.argv and "both refuse" not in verdict:
            print(*(f"           {line}" for line in examples[verdict][:40]), sep="\n")
    print(f"slowest {1e3 * slowest:.2f} ms, exceptions other than SchemaError: {wrong}")
    return wrong


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:] if argument.isdigit()]
    sys.exit(1 if every_schema() + mutants(*numbers or [5000]) else 0)
