"""D31, a program without Python: traced once, it is data, which is saved, loaded and run."""

from __future__ import annotations

import math
import operator
from collections import namedtuple
from typing import Any

from redispatch.fx import Graph, Tracer

from ..lesson import Lesson, Part, Wrong, same
from ..student import Raised

TEXT = """
# A program without Python

Call a function with *proxies* instead of tensors: objects that compute nothing, but note in a list that they were
asked. What is in the list afterwards is the program: each line has a name, an operator and arguments, which are names
of earlier lines or constants. It needs no Python any more: it can be saved, sent, rewritten and run by thirty lines
called an *interpreter*.

What Python does with `2 - x`: it asks the int, which does not know x, and then `x.__rsub__(2)`. The line is
`sub(2, x)`, not `sub(x, 2)`. And `if x > 0`: a proxy has no value, so `__bool__` must raise; the truth that every
object has otherwise would silently choose one way for all time. Loops over ints and calls of other functions simply
run: the trace has what they did. A line that nobody reads is in the trace as well: tracing notes, passes decide.

Names: a line is called as its operator is; the second one `sin_1`, then `sin_2`, and so on, whatever is taken already
being left out. So in a program whose input is called `add`, the first addition is `add_1`.

An interpreter keeps the values by name, and lets each go after its last reader: without that a long program
holds all that it ever computed.

The library's are `fx/proxy.py`, `fx/_symbolic_trace.py`, `fx/interpreter.py`; the answer key is `fx.Tracer`, on the
same programs. `make_fx` traces below the dispatcher instead, where there is no Python operator left, and a TorchScript
archive (`jit/archive.py`) keeps what was saved in a zip. TorchScript reads `if`s from the source, where a trace has one
way only.
"""

DEMO = """
import redispatch as rd
from redispatch.fx import Interpreter, symbolic_trace

def program(x, y):
    for i in range(2):
        x = 2 - x.sin() * y
    return x

module = symbolic_trace(program)
for node in module.graph.nodes:
    print(node.name, node.op, node.args)
print(Interpreter(module).run(rd.ones(2), rd.ones(2)))
try:
    symbolic_trace(lambda x: x if x.sum() > 0 else -x)
except Exception as refused:
    print(str(refused).splitlines()[0])
"""

TEMPLATE = '''"""D31: a program without Python. `python -m redispatch learn D31` has the text.

A line of a program is a Line(name, op, args): op is "input", with args (), or one of add, sub, mul, matmul, neg, sin,
exp. args is a tuple of constants (ints, floats) and Ref(name)s, which refer to earlier lines.
"""


class Proxy:
    """Stands for a value while a program is traced.

    It has `+`, `-`, `*`, `@` with proxies and with constants on either side, `-x`, the methods sin() and exp(); asked
    whether it is true it raises a TypeError.
    """


def trace(program, inputs):
    """Returns (lines, result) of `program(*proxies)`: a list of Lines, the inputs' first; the result a Ref or constant.

    inputs: names of the inputs, all different.
    """
    raise NotImplementedError


def run(lines, result, values, functions, free):
    """Returns the result of a program for `values` of its inputs, in their order.

    functions: op -> function, called once for each line, in their order. Values are opaque: they can be handed on only.
    free(name) is to be called for each line but inputs that some line reads, just after the last that does, unless it
    is the result; for several at once in the order of the line's arguments, each once.
    """
    raise NotImplementedError


def save(lines, result):
    """Returns a text of which `load` makes the same program again: types, signs of zeros, infinities, nan."""
    raise NotImplementedError


def load(text):
    """Returns (lines, result) of a text of `save`; ValueError for a text that was cut off anywhere."""
    raise NotImplementedError
'''

HINTS = (
    "`__sub__` notes (self, other), `__rsub__` notes (other, self). One method `note(op, *args)` does the rest.",
    "run: go over the lines from the end once and note for each name which line reads it last.",
    "save: json has all but tuples and the difference between Ref and constant; nan and Infinity are written. A list "
    "that was cut off is no JSON: `json.loads` raises a ValueError.",
)

Line = namedtuple("Line", "name op args")
Ref = namedtuple("Ref", "name")
BINARY, UNARY = ("add", "sub", "mul", "matmul"), ("neg", "sin", "exp")
# A program as data: steps (op, places of the arguments among the values so far, or a constant and on which side).


def traced_by_the_library(steps: list[Any], inputs: list[str]) -> tuple[list[Any], Any]:
    """The lines of fx's trace of the steps."""
    root = Tracer()
    graph = root.graph = Graph()
    values = [root.create_proxy("placeholder", name, (), {}) for name in inputs]
    for op, first, second, constant in steps:
        x = values[-1 - first % len(values)]
        if op in UNARY:
            values.append(operator.neg(x) if op == "neg" else getattr(x, op)())
        elif constant is None or op == "matmul":
            values.append(getattr(operator, op)(x, values[-1 - second % len(values)]))
        else:
            values.append(getattr(operator, op)(*((constant, x) if second % 2 else (x, constant))))
    lines = []
    for node in graph.nodes:
        args = tuple(Ref(str(one)) if hasattr(one, "op") else one for one in node.args)
        op = "input" if node.op == "placeholder" else str(getattr(node.target, "__name__", node.target))
        lines.append(Line(node.name, op, args))
    return lines, Ref(values[-1].node.name)


def program_of(steps: list[Any]) -> Any:
    """The steps as a function, which asks the student's proxies as Python would."""

    def program(*proxies: Any) -> Any:
        values = list(proxies)
        for op, first, second, constant in steps:
            x = values[-1 - first % len(values)]
            if op in UNARY:
                values.append(x.ask("__neg__" if op == "neg" else op))
            elif constant is None or op == "matmul":
                values.append(x.ask(f"__{op}__", values[-1 - second % len(values)]))
            else:
                values.append(x.ask(f"__r{op}__" if second % 2 else f"__{op}__", constant))
        return values[-1]

    return program


def drawn_steps(st: Any) -> Any:
    constant = st.sampled_from([None, None, 2, 0.5, -3])
    step = st.tuples(st.sampled_from([*BINARY, *UNARY]), st.integers(0, 3), st.integers(0, 3), constant)
    return st.lists(step, min_size=1, max_size=7)


def spelled(lines: Any, result: Any) -> str:
    def one(value: Any) -> str:
        return value.name if isinstance(value, Ref) else repr(value)

    try:
        said = [f"{line.name} = {line.op}({', '.join(map(one, line.args))})" for line in lines]
        return "; ".join([*said, f"return {one(result)}"])
    except Exception:
        return repr((lines, result))


def check_trace(student: Any, draw: Any) -> None:
    def test(steps: Any, inputs: Any) -> None:
        right = traced_by_the_library(steps, inputs)
        yours = student("trace", program_of(steps), inputs)
        if not isinstance(yours, tuple) or len(yours) != 2 or spelled(*yours) != spelled(*right):
            answer = spelled(*yours) if isinstance(yours, tuple) and len(yours) == 2 else repr(yours)
            question = f"trace: a program of inputs {inputs} that does what is right here"
            raise Wrong(f"{question}\nyours   {answer}\nright   {spelled(*right)}")

    names = draw.st.sampled_from([["x", "y"], ["x"], ["add", "sin_1"], ["mul", "y", "neg"]])
    draw(test, steps=drawn_steps(draw.st), inputs=names, examples=150)

    found: list[Any] = []

    def undecided(x: Any) -> Any:
        try:
            found.append(x.ask("__bool__"))
        except Raised as raised:
            found.append(raised.kind)
        return x

    student("trace", undecided, ["x"])
    if found != ["TypeError"]:
        raise Wrong(f"trace: bool(x) of a proxy x\nyours   {found[0]}\nright   TypeError: a proxy has no truth")


def check_run(student: Any, draw: Any) -> None:
    """Values are opaque, and the functions are the checker's: who calls what, and when, cannot be made up."""

    def test(steps: Any, place: int) -> None:
        lines, _ = traced_by_the_library(steps, ["x", "y"])
        result = Ref(lines[2:][-1 - place % len(steps)].name)
        log = list[str]()
        values = [object(), object()]
        known: dict[int, Any] = {id(values[0]): "x", id(values[1]): "y"}
        keep: list[Any] = []

        def function(op: str) -> Any:
            def call(*args: Any) -> Any:
                made = object()
                keep.append(made)
                known[id(made)] = f"{op}({', '.join(known.get(id(one), repr(one)) for one in args)})"
                log.append(known[id(made)])
                return made

            return call

        answer = student("run", lines, result, values, {op: function(op) for op in BINARY + UNARY}, freed(log))
        right, value = expected(lines, result)
        question = f"run: {spelled(lines, result)}"
        same(f"{question}\nthe calls", log, right)
        same(question, known.get(id(answer), repr(answer)), value)

    draw(test, steps=drawn_steps(draw.st), place=draw.st.integers(0, 2), examples=120)


def freed(log: list[str]) -> Any:
    return lambda name: log.append(f"free {name}")


def expected(lines: list[Any], result: Any) -> tuple[list[str], str]:
    """The calls of a program in order, with what is freed; and the result."""
    said, log = dict[str, str](), list[str]()
    for i, line in enumerate(lines):
        if line.op == "input":
            said[line.name] = line.name
            continue
        shown = [said[one.name] if isinstance(one, Ref) else repr(one) for one in line.args]
        said[line.name] = f"{line.op}({', '.join(shown)})"
        log.append(said[line.name])
        inputs = {one.name for one in lines if one.op == "input"}
        for name in dict.fromkeys(one.name for one in line.args if isinstance(one, Ref)):
            later = any(Ref(name) in one.args for one in lines[i + 1 :])
            if name not in inputs and not later and name != result.name:
                log.append(f"free {name}")
    return log, said[result.name]


def check_saved(student: Any, draw: Any) -> None:
    st = draw.st
    constant = st.sampled_from([0, 1, -7, 10**20, 0.0, -0.0, 1.0, 0.1, math.inf, -math.inf, math.nan, 1e-300])
    line = st.tuples(st.sampled_from(["x", "y", "true", "None", "1", "e'", 'q"', "Ref"]), constant, st.booleans())

    def test(drawn: Any, cut: int) -> None:
        lines = [Line("x", "input", ())]
        for i, (name, number, first) in enumerate(drawn):
            args = (Ref(name), number) if first else (number, Ref(name))
            lines.append(Line(f"{name}{i}", "mul", args))
        result = Ref(lines[-1].name) if len(drawn) % 2 else drawn[-1][1] if drawn else 3
        question = f"load(save(...)): {spelled(lines, result)}"
        text = student("save", lines, result)
        if type(text) is not str:
            raise Wrong(f"{question}\nyours   save returned {text!r}\nright   a text")
        yours = student("load", text)
        if repr(yours) != repr((lines, result)):
            raise Wrong(f"{question}\nyours   {yours!r}\nright   {(lines, result)!r}")
        short = text[: cut % len(text.rstrip())]
        try:
            yours = student("load", short)
        except Raised as raised:
            yours = raised.kind
        if yours != "ValueError" and yours not in ("JSONDecodeError", "UnicodeDecodeError"):
            raise Wrong(f"load: the text {short[-60:]!r}, cut off\nyours   {yours!r}\nright   ValueError")

    draw(test, drawn=st.lists(line, max_size=4), cut=st.integers(0, 500), examples=150)


LESSON = Lesson(
    row="D31",
    title="A program without Python",
    reading=9,
    writing=50,
    text=TEXT,
    demo=DEMO,
    template=TEMPLATE,
    parts=(
        Part("trace", 5, check_trace),
        Part("run", 4, check_run),
        Part("save and load", 3, check_saved),
    ),
    hints=HINTS,
    needs=("D08",),
    imports=("json",),
    records=(Line, Ref),
)
