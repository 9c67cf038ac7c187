"""Folds generated code: a run of lines that stands in much of it shows as a call of the fragment that it is.

snapshots/fragments.py holds the fragments. Each reads as a function, though none is ever called: its parameters and
what it returns are what differs from place to place. A parameter stands for a name, one with `: any` for anything on
a line, `then` for a statement. Other names that the body assigns are local: they may be any, as long as no line that
follows reads them, or else the run is not folded. What stands below a layer's comment, and has stood below the same
one under other names, shows as three dots. So the short text says all that the long one does, but for the names of
locals.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from redispatch.dispatch.specialiser.residual import wrapped

FILE = Path(__file__).parent / "snapshots" / "fragments.py"
DEFINITION = re.compile(r"^def (\w+)\((.*?)\):.*\n((?:    .*\n)+?)(?:    return (.*)\n)?(?=\n|\Z)", re.MULTILINE)
NAME = re.compile(r"(?<!\.)\b[A-Za-z_]\w*")
ASSIGNED = re.compile(r"^ *((?:\w+, )*\w+) = ", re.MULTILINE)


@dataclass
class Fragment:
    name: str
    parameters: list[str]
    results: list[str]
    local: set[str]
    pattern: re.Pattern

    def call(self, match):
        rest = [word for word in self.parameters if word != "then"]
        results, arguments = (", ".join(match[word] for word in words) for words in (self.results, rest))
        call = f"{results + ' = ' if results else ''}{self.name}({arguments})"
        return f"{match['margin']}" + (f"with {call}: {match['then']}\n" if rest != self.parameters else f"{call}\n")


def fragments():
    return [fragment(*match.groups()) for match in DEFINITION.finditer(FILE.read_text())]


def fragment(name, parameters, body, returned):
    holes = dict(part.partition(":")[::2] for part in parameters.replace(" ", "").split(",") if part)
    results = returned.split(", ") if returned else []
    lines = [line[4:] for line in body.splitlines()]
    assigned = {word for words in ASSIGNED.findall("\n".join(lines)) for word in words.split(", ")}
    seen = set()

    def hole(match):
        word = match.group()
        if word not in holes and word not in assigned:
            return word
        if word in seen:
            return f"(?P={word})"
        seen.add(word)
        return f"(?P<{word}>.*?)" if holes.get(word) else rf"(?P<{word}>[A-Za-z_]\w*)"

    pattern = r"^(?P<margin> *)" + "(?P=margin)".join(NAME.sub(hole, re.escape(line)) + "\n" for line in lines)
    return Fragment(name, list(holes), results, assigned - {*results, *holes}, re.compile(pattern, re.MULTILINE))


def is_read(name, rest):
    """Whether the lines that follow use a name before they assign it anew."""
    first = re.search(rf"(?<!\.)\b{name}\b((?:, \w+)* = )?", rest)
    return bool(first) and not first[1]


def joined(source):
    """The source with each statement on one line, whatever its length."""
    lines = iter(source.splitlines())
    return "".join(f"{whole(line, lines, statement=True)}\n" for line in lines)


def whole(line, lines, statement=False):
    """A line with what stands on those below it, up to the bracket that closes what it opened."""
    if not line.endswith(("(", "[", "{")) or line.lstrip().startswith("#"):
        return line
    margin, parts = len(line) - len(line.lstrip()), []
    for below in lines:
        if len(below) - len(below.lstrip()) == margin:
            break
        parts.append(whole(below, lines).lstrip())
    if statement and re.fullmatch(r" *(if|return|[\w., ]+ =) \(", line) and parts[1].startswith(("or ", "and ", "if ")):
        return line[:-1] + " ".join(parts) + below.lstrip()[1:]  # brackets that only the break needs
    return line + " ".join(parts).removesuffix(",") + below.lstrip()


def broken(source):
    """The source with long statements on several lines, as the specialiser breaks them."""
    lines = [(line.lstrip(), line[: len(line) - len(line.lstrip())]) for line in source.splitlines()]
    return "".join(f"{part}\n" for line, margin in lines for part in wrapped(line, margin))


def fold(source, known):
    """The source with all that is a fragment as calls."""
    source = joined(source)
    for one in known:
        place = 0
        while match := one.pattern.search(source, place):
            if any(is_read(match[word], source[match.end() :]) for word in one.local):
                place = match.end()
                continue
            call = one.call(match)
            source = source[: match.start()] + call + source[match.end() :]
            place = match.start() + len(call)
    return source


def like(line, former, names):
    """Whether a line is a former one but for the numbers behind its names, which stand for the same throughout."""
    new, old = NAME.findall(line), NAME.findall(former)
    if NAME.sub("", line) != NAME.sub("", former) or len(new) != len(old):
        return False
    pairs = dict(zip(new, old, strict=True))
    if any(re.sub(r"_\d+$", "", a) != re.sub(r"_\d+$", "", b) or names.get(a, b) != b for a, b in pairs.items()):
        return False
    names.update(pairs)
    return True


def as_above(source):
    """The source with three dots for what has stood below the same layer's comment, and the new names."""
    lines, start = source.splitlines(keepends=True), 3
    while (start := start + 1) < len(lines):
        text = lines[start].lstrip()
        margin = " " * (len(lines[start]) - len(text))
        for former in [i for i in range(3, start) if text.startswith("# ") and lines[i].lstrip() == text]:
            names, end = {}, start + 1
            while end < len(lines) and lines[end].startswith(margin) and former + end - start < start:
                deeper = len(lines[former]) - len(lines[start])
                if not like(" " * deeper + lines[end], lines[former + end - start], names):
                    break
                end += 1
            while lines[end:] and lines[end].startswith((margin + " ", margin + "else:", margin + "finally:")):
                end -= 1  # up to the beginning of the statement
            if end - start > 2:
                rest = "".join(lines[end:])
                read = [f"{new} for {old}" for new, old in names.items() if new != old and is_read(new, rest)]
                lines[start + 1 : end] = [f"{margin}...  # {', '.join(['as above', *read])}\n"]
                break
    return "".join(lines)
