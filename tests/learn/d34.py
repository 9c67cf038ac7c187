"""Lesson D34, the teacher's part: a solution, and misconceptions as changes of it, with the part that refuses each."""

SOLUTION = r'''
import ast


def literal(text):
    before = text
    text = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if (len(before) - len(before.rstrip('"'))) % 3:
        text = text[:-1] + '\\"'
    return '"""' + ("\\\n" if "\n" in text else "") + text + '"""'


def places(source, line):
    lines = source.split("\n")

    def place(number, column):
        return sum(len(one) + 1 for one in lines[:number - 1]) + len(lines[number - 1].encode()[:column].decode())

    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or node.lineno != line:
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name == "assert_expected_inline":
            at = node.args[1]
            found.append((place(at.lineno, at.col_offset), place(at.end_lineno, at.end_col_offset)))
    return sorted(found)


def accept(source, found):
    texts = {}
    for line, text in found:
        if texts.setdefault(line, text) != text:
            raise ValueError(f"line {line} expects two texts")
    edits = [(*places(source, line)[0], text) for line, text in texts.items()]
    for start, end, text in sorted(edits, reverse=True):
        source = source[:start] + literal(text) + source[end:]
    return source
'''

WRONG = {  # what is thought -> (part, what stands there, what stands there instead)
    "backslashes stand as they are": ("literal", 'text.replace("\\\\", "\\\\\\\\").replace', "text.replace"),
    "three quotes are never in a text": ("literal", """.replace('\"\"\"', '\\\\"\\\\"\\\\"')""", ""),
    "a quote at the end is no matter": ("literal", "before.rstrip", "before.strip", "% 3:", "< 0:"),
    "repr is a literal": ("literal", "    text = text.replace", "    return repr(text)\n    text = text.replace"),
    "the text begins right after the quotes": ("literal", '("\\\\\\n" if "\\n" in text else "")', '""'),
    "columns are characters": ("places", ".encode()[:column].decode()", "[:column]"),
    "lines end at form feeds, too": ("places", 'source.split("\\n")', "source.splitlines()"),
    "methods are no calls of it": ("places", "node.func.attr if isinstance(node.func, ast.Attribute) else ", ""),
    "one call a line": ("places", "return sorted(found)", "return sorted(found)[:1]"),
    "the literal is the last argument": (
        "places",
        "at = node.args[1]",
        "at = [*node.args, *(k.value for k in node.keywords)][-1]",
    ),
    "the literal begins on the line of the call": (
        "places",
        "found.append((place(at.lineno,",
        "found.append((place(line,",
    ),
    "the first edit comes first": ("accept", "sorted(edits, reverse=True)", "sorted(edits)"),
    "edits come in the order of the tests": ("accept", "sorted(edits, reverse=True)", "edits"),
    "the last text counts": (
        "accept",
        "if texts.setdefault(line, text) != text:",
        "texts[line] = text\n        if False:",
    ),
    "a call runs once": (
        "accept",
        "texts.setdefault(line, text) != text",
        "texts.setdefault(line, text) != text or len(set(found)) < len(found)",
    ),
}
