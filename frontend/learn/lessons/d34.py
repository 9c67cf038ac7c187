"""D34, expect tests: a test that writes what it expects, into its own source."""

from __future__ import annotations

import ast
from typing import Any

from ..lesson import Lesson, Part, Wrong, same
from ..student import Raised

TEXT = '''
# Expect tests

A test of a graph, a trace or an error's text expects thirty lines. Written by hand they are never kept up to date; so
a machine writes them:

    assert_expected_inline(str(module.graph), """""")

Run with `EXPECTTEST_ACCEPT=1`, the test rewrites its own source: the literal becomes what came out. A person reads the
diff, and commits it. The text stands beside the program that makes it, and a change of it is seen in review.

How is the place found? By the line of the call, which the frame of the caller has, and then by the syntax tree, whose
nodes have lines and columns: columns in *bytes* of UTF-8, which are more than characters as soon as a line has an
`é`. A regular expression is fooled by a `"""` in a comment, by two calls on a line, and by brackets in strings; the
tree is not.

What is written in has rules. The literal is a triple-quoted string: within it `\\\\` stands for a backslash; three
quotes in a row would end it, so would a quote at its very end. After the replacement, the file must
mean exactly the new text there, and be byte for byte the same elsewhere.

And a file has many: when one replacement adds five lines, all calls below move. The lines that running tests report are
those of the file *as it was when it was loaded*. Either each edit is kept, to correct for it later (as the package
`expecttest` does, with which this library tests its graphs: tests/fx/test_graph.py), or all are collected and made at
once, from the end of the file.
'''

DEMO = '''
import ast

source = 'check(f(1), """old""")  # the first """ of the line is the literal\\n'
call = ast.parse(source).body[0].value
literal = call.args[1]
print("the call is on line", call.lineno, "the literal at columns", literal.col_offset, "to", literal.end_col_offset)
print(source[: literal.col_offset] + '"""new"""' + source[literal.end_col_offset :])
accented = 'check("é", """old""")'
literal = ast.parse(accented).body[0].value.args[1]
print("bytes, not characters:", accented[literal.col_offset :], "/", accented.encode()[literal.col_offset :].decode())
'''

TEMPLATE = '''"""D34: expect tests. `python -m redispatch learn D34` has the text."""

import ast


def literal(text):
    """Returns the source of a triple-quoted string (three double quotes) whose value is `text`.

    Backslashes and quotes are escaped where they must be; a text of several lines stands on several lines, the first of
    them right after an escaped end of line. All other characters stand as they are. There is no carriage return.
    """
    raise NotImplementedError


def places(source, line):
    """Returns (start, end) of the second argument of each call of `assert_expected_inline` that begins on `line`.

    source: the text of a file. start and end are places in it, so that source[start:end] is the argument; in the order
    of the file. The call may be a method (`self.assert_expected_inline`), and may have further keywords.
    """
    raise NotImplementedError


def accept(source, found):
    """Returns the source with new expected texts. found: a list of (line, text), in any order: the text that came out
    at the call that begins on that line of `source`. A call that ran twice with the same text is one; where it ran with
    two different texts, it raises a ValueError. There is one call a line here.
    """
    raise NotImplementedError
'''

HINTS = (
    "literal: escape all backslashes first, else those that you add are escaped as well.",
    "places: ast.walk finds calls; the function is a Name or an Attribute. Make (line, column in bytes) into a "
    "place: the lengths of the lines before, and the decoded beginning of this one. Split at newlines alone.",
    "accept: find all places in the untouched source first; then replace from the last to the first.",
)


def check_literal(student: Any, draw: Any) -> None:
    st = draw.st
    piece = st.sampled_from(
        ['"', '""', '"""', "\\", "\\n", "\n", "a", " ", "'''", "é", "{x}", "%s", "\t", '\\"', "\x0c"]
    )

    def test(pieces: Any) -> None:
        text = "".join(pieces)
        answer = student("literal", text)
        try:
            means = ast.literal_eval(answer)
        except (ValueError, SyntaxError, TypeError) as problem:
            means = type(problem).__name__
        if means != text or not answer.startswith('"""') or not answer.endswith('"""'):
            raise Wrong(f"literal: {text!r}\nyours   {answer}\nmeans   {means!r}\nright   what means {text!r}")
        same(
            f"literal: {text!r}\nyours   {answer!r}\nlines of it", answer.count("\n"), text.count("\n") + ("\n" in text)
        )
        bare = {"é", "{x}", "%s", "'''", "\t"}.intersection(pieces)
        if lost := [one for one in bare if one not in answer]:
            raise Wrong(f"literal: {text!r}\nyours   {answer!r}\nright   {lost[0]!r} stands as it is")

    draw(test, pieces=st.lists(piece, max_size=6), examples=300)


CALLS = [
    'assert_expected_inline(f(1), """a""")',
    'assert_expected_inline(f("é"), """a""")',
    'self.assert_expected_inline(str(g), """\\\na\n  b\n""")',
    "assert_expected_inline(f('''x\"\"\"y'''), '''old''')  # \"\"\"no\"\"\"",
    'assert_expected_inline(\n    g(2, ")"),\n    """a\\"b""",\n    skip=1,\n)',
    'assert_expected_inline(f(")"), r"""a\\n""", skip="""no""")',
    'assert_expected_inline(h("""first"""), "plain")',
    'if True:\n    x.y.assert_expected_inline(f(2), """""")',
]
OTHERS = [
    "x = 1", 'assert_equal(f(), """a""")', '# assert_expected_inline(f(), """a""")', "", 'y = "é\x0c"  # é',
    's = """\nassert_expected_inline(1, 2)\n"""',
]  # fmt: skip


def found_in(source: str) -> list[tuple[int, int, int]]:
    """(line, start, end) of the expected texts in a source."""
    lines, found = source.split("\n"), []

    def place(line: int, column: int) -> int:
        before = sum(len(one) + 1 for one in lines[: line - 1])
        return before + len(lines[line - 1].encode()[:column].decode())

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("assert_expected_inline"):
            at = node.args[1]
            start, end = place(at.lineno, at.col_offset), place(at.end_lineno or 0, at.end_col_offset or 0)
            found.append((node.lineno, start, end))
    return sorted(found)


def sources(st: Any, joined: bool) -> Any:
    """Files of calls and other lines; `joined`: some with two calls on a line."""
    block = st.one_of(st.sampled_from(CALLS), st.sampled_from(OTHERS), st.sampled_from(CALLS))
    if joined:
        short = [one for one in CALLS if "\n" not in one and "#" not in one]
        block = st.one_of(block, st.tuples(*[st.sampled_from(short)] * 2).map("; ".join))
    return st.lists(block, min_size=1, max_size=5).map(lambda blocks: "\n".join(blocks) + "\n")


def check_places(student: Any, draw: Any) -> None:
    def test(source: str) -> None:
        for line in range(1, source.count("\n") + 1):
            right = [source[start:end] for at, start, end in found_in(source) if at == line]
            answer = student("places", source, line)
            yours = [source[start:end] for start, end in answer]
            same(f"places: line {line} of\n{source[:300]!r}\n(the texts there)", yours, right)

    for call in CALLS:
        test(f"x = 'é\x0c'\n{call}\n{call}\n")
    draw(test, source=sources(draw.st, joined=True), examples=60)


def check_accept(student: Any, draw: Any) -> None:
    st = draw.st
    text = st.sampled_from(["", "new", "one\ntwo\nthree\n", 'a "quote"', "back\\slash", '"""', "é"])

    def test(source: str, texts: Any, order: Any, twice: bool) -> None:
        calls = found_in(source)
        found = [(at, texts[i % len(texts)]) for i, (at, start, end) in enumerate(calls)]
        asked = [found[i] for i in sorted(range(len(found)), key=lambda i: order[i % len(order)])]
        asked += asked[:1] if twice else []
        answer = student("accept", source, asked)
        question = f"accept: {asked} in\n{source[:400]!r}"
        try:
            after = found_in(answer)
            means = [ast.literal_eval(answer[start:end]) for _, start, end in after]
        except (SyntaxError, ValueError):
            raise Wrong(f"{question}\nyours   {answer[:400]!r}\nright   a file that can be read") from None
        same(f"{question}\nthe texts afterwards", means, [text for _, text in found])
        same(f"{question}\nthe rest", rest(answer, after), rest(source, calls))

    draw(test, source=sources(st, joined=False), texts=st.lists(text, min_size=1, max_size=3),
         order=st.permutations(range(4)), twice=st.booleans(), examples=120)  # fmt: skip

    def doubtful(before: int) -> None:
        source = "\n" * before + 'for i in range(2):\n    assert_expected_inline(str(i), """""")\n'
        asked = [(before + 2, "0"), (before + 2, "1")]
        same(f"accept: {asked} in {source!r}", refusal(student, source, asked), "ValueError")

    doubtful(0)
    doubtful(2)


def refusal(student: Any, source: str, asked: list[Any]) -> str:
    try:
        return repr(student("accept", source, asked))
    except Raised as raised:
        return raised.kind


def rest(source: str, places: list[Any]) -> list[str]:
    """The source around the expected texts."""
    ends = [0, *(end for _, _, end in places)]
    return [source[a:b] for a, b in zip(ends, [*(start for _, start, _ in places), len(source)], strict=True)]


LESSON = Lesson(
    row="D34",
    title="Expect tests",
    reading=8,
    writing=40,
    text=TEXT,
    demo=DEMO,
    template=TEMPLATE,
    parts=(
        Part("literal", 3, check_literal),
        Part("places", 4, check_places),
        Part("accept", 4, check_accept),
    ),
    hints=HINTS,
    needs=("D31",),
    imports=("ast",),
)
