"""Lesson D31, the teacher's part: a solution, and misconceptions as changes of it, with the part that refuses each."""

SOLUTION = """
import json


class Proxy:
    def __init__(self, notes, name):
        self.notes, self.name = notes, name

    def note(self, op, *args):
        return self.notes.add(op, tuple(Ref(a.name) if isinstance(a, Proxy) else a for a in args))

    def __add__(self, other): return self.note("add", self, other)
    def __radd__(self, other): return self.note("add", other, self)
    def __sub__(self, other): return self.note("sub", self, other)
    def __rsub__(self, other): return self.note("sub", other, self)
    def __mul__(self, other): return self.note("mul", self, other)
    def __rmul__(self, other): return self.note("mul", other, self)
    def __matmul__(self, other): return self.note("matmul", self, other)
    def __neg__(self): return self.note("neg", self)
    def sin(self): return self.note("sin", self)
    def exp(self): return self.note("exp", self)

    def __bool__(self):
        raise TypeError("a proxy has no value")


class Notes:
    def __init__(self):
        self.lines, self.taken = [], set()

    def add(self, op, args, name=None):
        wanted, count = name or op, 0
        name = wanted
        while name in self.taken:
            count += 1
            name = f"{wanted}_{count}"
        self.taken.add(name)
        self.lines.append(Line(name, op, args))
        return Proxy(self, name)


def trace(program, inputs):
    notes = Notes()
    result = program(*[notes.add("input", (), name) for name in inputs])
    return notes.lines, Ref(result.name) if isinstance(result, Proxy) else result


def run(lines, result, values, functions, free):
    last = {}
    for i, line in enumerate(lines):
        for one in line.args:
            if isinstance(one, Ref):
                last[one.name] = i
    inputs = [line.name for line in lines if line.op == "input"]
    known = dict(zip(inputs, values))
    for i, line in enumerate(lines):
        if line.op == "input":
            continue
        args = [known[one.name] if isinstance(one, Ref) else one for one in line.args]
        known[line.name] = functions[line.op](*args)
        for one in dict.fromkeys(line.args):
            if isinstance(one, Ref) and last[one.name] == i and one.name not in inputs and one != result:
                del known[one.name]
                free(one.name)
    return known[result.name] if isinstance(result, Ref) else result


def spell(one):
    return ["ref", one.name] if isinstance(one, Ref) else ["constant", one]


def read(one):
    return Ref(one[1]) if one[0] == "ref" else one[1]


def save(lines, result):
    return json.dumps([[[line.name, line.op, [spell(a) for a in line.args]] for line in lines], spell(result)])


def load(text):
    lines, result = json.loads(text)
    return [Line(name, op, tuple(read(a) for a in args)) for name, op, args in lines], read(result)
"""

WRONG = {  # what is thought -> (part, what stands there, what stands there instead)
    "2 - x is x - 2": ("trace", 'self.note("sub", other, self)', 'self.note("sub", self, other)'),
    "2 * x is x * 2": ("trace", 'self.note("mul", other, self)', 'self.note("mul", self, other)'),
    "an input's name is free": ("trace", "self.taken.add(name)", "self.taken.add(name if op != 'input' else '')"),
    "names are counted by operator": (
        "trace",
        "while name in self.taken:",
        "count = sum(line.op == op for line in self.lines) - 1 if op != 'input' else 0\n"
        "        if any(line.op == op for line in self.lines) and op != 'input':",
    ),
    "a proxy is true": ("trace", 'raise TypeError("a proxy has no value")', "return True"),
    "a proxy is false, with a value error": ("trace", "raise TypeError", "raise ValueError"),
    "the same expression is noted once": (
        "trace",
        "        wanted, count",
        "        for line in self.lines:\n            if line.op == op != 'input' and line.args == args:\n"
        "                return Proxy(self, line.name)\n        wanted, count",
    ),
    "nothing is let go": ("run", "                free(one.name)", "                pass"),
    "a value goes after its first reader": (
        "run",
        "                last[one.name] = i",
        "                last.setdefault(one.name, i)",
        "del known[one.name]",
        "pass",
    ),
    "the result goes, too": ("run", " and one != result", "", "del known[one.name]", "pass"),
    "inputs go, too": ("run", " and one.name not in inputs", ""),
    "what is read twice goes twice": (
        "run",
        "in dict.fromkeys(line.args)",
        "in line.args",
        "del known[one.name]",
        "pass",
    ),
    "a text is a name": (
        "save and load",
        '["ref", one.name] if isinstance(one, Ref) else ["constant", one]',
        "one.name if isinstance(one, Ref) else one",
        'Ref(one[1]) if one[0] == "ref" else one[1]',
        "Ref(one) if isinstance(one, str) and not one.isdigit() else one",
    ),
    "all numbers are floats": ("save and load", '["constant", one]', '["constant", float(one)]'),
    "arguments are a list": ("save and load", "tuple(read(a) for a in args)", "[read(a) for a in args]"),
    "what is missing is zero": (
        "save and load",
        "    lines, result = json.loads(text)",
        "    try:\n        lines, result = json.loads(text)\n    except ValueError:\n        return [], 0",
    ),
}
