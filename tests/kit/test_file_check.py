"""FileCheck: what a text has, in which order, and what it has not in between."""

import pytest

import redispatch as rd
from redispatch.testing import FileCheck

TEXT = "a b\nc d c\ne\nf x f\n"


@pytest.mark.parametrize(
    "checks",
    [
        lambda c: c.check("a").check("d").check("e"),
        lambda c: c.check("a").check_not("z").check("e"),
        lambda c: c.check("c").check_same("d").check_next("e"),
        lambda c: c.check_count("c", 2, exactly=True),
        lambda c: c.check_dag("e").check_dag("a").check("f"),
        lambda c: c.check_dag("e").check_not("b").check_dag("f"),
        lambda c: c.check_regex("c . c"),
    ],
)
def test_a_text_has_what_it_has(checks):
    checks(rd.FileCheck()).run(TEXT)


@pytest.mark.parametrize(
    ("checks", "problem"),
    [
        (lambda c: c.check("d").check("a"), 'Expected to find "a" but did not find it'),
        (lambda c: c.check("a").check_not("c").check("e"), 'Expected to not find "c" but found it'),
        (lambda c: c.check("a").check_same("d"), 'Expected to not find "\\\\n" but found it'),
        (lambda c: c.check("a").check_next("e"), 'Expected to not find "\\\\n" but found it'),
        (lambda c: c.check_count("c", 1, exactly=True), 'Expected to not find "c" but found it'),
        (lambda c: c.check_count("c", 3), "From CHECK-COUNT-3: c"),
        (lambda c: c.check_dag("e").check_dag("q"), 'Expected to find "q" but did not find it'),
        (lambda c: c.check_regex("c .z c"), 'Expected to find regex "c .z c"'),
        (lambda c: c.check("f").check_not("f"), 'Expected to not find "f" but found it'),
        (lambda c: c.check_source_highlighted("d"), 'Expected to find "d"highlighted but it is not.'),
        (lambda c: c, "No checks have been added"),
    ],
)
def test_a_text_that_has_it_otherwise_is_an_error(checks, problem):
    with pytest.raises(RuntimeError, match=problem):
        checks(FileCheck()).run(TEXT)


def test_checks_may_stand_in_comments_and_a_mark_below_a_line():
    FileCheck().run("# CHECK: a\n# CHECK-NOT: e\n# CHECK-COUNT-EXACTLY-2: c\n", TEXT)
    with pytest.raises(RuntimeError, match="From CHECK: z"):
        FileCheck().run("# CHECK: z\n", TEXT)
    FileCheck().check_source_highlighted("x").run("def f\n    x + y\n    ~ <--- HERE\n")
    assert repr(FileCheck().check("a").check_not("b")) == "FileCheck checks:\n\tCHECK: a\n\tCHECK-NOT: b"
