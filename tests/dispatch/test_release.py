"""The schemas of the last release: what was called and saved with them can be called and loaded.

release.txt has them by signature. At a release, `python -m tests.dispatch.test_release 0.2.0` writes it anew; until
then a change that breaks one needs an entry below, with the reason that the changelog gives.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

from redispatch.dispatch import OPERATORS, operators, parse_schema

RECORD = Path(__file__).with_name("release.txt")
REMOVED: dict[str, str] = {}  # name -> why
CHANGED: dict[str, str] = {}  # name -> why


def current():
    """{name: schema} of the library's own operators."""
    return {op.name(): op.schema for op in operators() if op.namespace in ("aten", "prims", "prim")}


def recorded():
    """Yields the schemas of the last release."""
    for line in RECORD.read_text().splitlines()[1:]:
        signature, names = line.split(": ")
        for name in names.split():
            yield parse_schema(f"{name if '::' in name else f'aten::{name}'}{signature}")


def broken(old, schemas):
    """Yields what the schemas of today break of those before."""
    for schema in old:
        name = f"{schema.name}.{schema.overload_name}".removesuffix(".")
        if name not in schemas:
            if name not in REMOVED:
                yield f"{name} is gone"
        elif not schemas[name].is_backward_compatible_with(schema) and name not in CHANGED:
            yield f"{name}: calls of {schema} do not suit {schemas[name]}"


def test_what_was_called_with_the_last_release_can_be_called():
    old = list(recorded())
    assert len(old) > 1700 and RECORD.read_text().startswith("redispatch ")
    assert not list(broken(old, current()))
    stale = [name for name in (*REMOVED, *CHANGED) if name not in {one.name for one in old} | set(OPERATORS)]
    assert not stale, "these are of no release"


def test_the_rules_see_a_break():
    schemas = {
        "a::f": parse_schema("a::f(Tensor x, int k) -> Tensor"),
        "a::g": parse_schema("a::g(Tensor? x) -> Tensor"),
    }
    old = [parse_schema(f"a::{name}(Tensor x) -> Tensor") for name in "fgh"]
    assert [re.split(":? (?:calls|is)", one)[0] for one in broken(old, schemas)] == ["a::f", "a::h"]


def write(release):
    by_signature = defaultdict(list)
    for name, schema in current().items():
        by_signature[str(schema)[len(name) :]].append(name.removeprefix("aten::"))
    lines = sorted(f"{signature}: {' '.join(sorted(names))}" for signature, names in by_signature.items())
    RECORD.write_text("\n".join([f"redispatch {release}", *lines]) + "\n")


if __name__ == "__main__":
    write(sys.argv[1])
