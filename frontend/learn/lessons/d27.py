"""D27, who holds whom: a graph goes with the last tensor that holds it."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import redispatch as rd

from ..lesson import Lesson, Part, Wrong, same

TEXT = """
# Who holds whom

An object of Python lives as long as somebody *holds* it: a name, or an object that lives. Each counts its holders; when
the count comes to zero, the object dies at once, and lets go of what it held, which may die in turn. That is all, as
long as nobody holds himself. Two objects that hold each other keep their counts above zero for ever: a *cycle*. Only
the garbage collector, which comes when it likes, finds that no name leads to them.

For a graph of gradients that is no detail. It holds the memory of all activations. If it died by the collector only,
a training loop would hold some steps' worth of memory at a time, and more when it likes. So the graph is built such
that counting frees it. A tensor `t` that a call gave has *memory* `m` and a *node* `n`:

- The tensor holds its memory and its node. (A leaf has no node in what follows, but memory.)
- The node holds, for each input that requires grad, the node of the call that gave it: nodes point to *earlier* nodes,
  never the other way. Where the input is a leaf, it holds the leaf itself: there the gradient has to go.
- It holds what its formula needs, and nothing else: `mul(x, y)` the tensor `y` if `x` requires grad, and the tensor `x`
  if `y` does. `add` needs nothing.
- `tanh` needs its *result*, and here is the trap: the result holds the node. A node that held it would close a cycle.
  So it holds the result's memory alone, and puts another tensor together when it runs.
- No input requires grad: there is no node, and the result holds its memory alone.

An intermediate tensor that nobody saved dies when its name goes, though the graph lives on: `z = (x + y) * c` keeps
neither the sum's tensor nor its memory if `c` is constant.

In the library: `dispatch/autograd/saved.py`, Note [Results are taken apart], and `accumulate.py`, Note [Leaves keep
their nodes].
"""

DEMO = """
import gc, weakref
import redispatch as rd

gc.disable()
x = rd.ones(1000, requires_grad=True)
y = x.tanh()
z = y + x
tensor, node, memory = weakref.ref(y), weakref.ref(y.grad_fn), weakref.ref(y._array)
def tell(what):
    print(f"{what:<12} tensor {tensor() is not None}, node {node() is not None}, memory {memory() is not None}")
tell("all names")
del y
tell("without y")
del z
tell("without z")
gc.enable()
"""

TEMPLATE = '''"""D27: who holds whom. `python -m redispatch learn D27` has the text."""


def counted(holds, names):
    """Returns the set of objects that live when of all names only `names` are left, by counting alone.

    holds: object -> list of the objects that it holds, some perhaps twice, perhaps itself. Objects are texts; each is
    among the keys. Before, each had a name. Chains may be 10,000 objects long.
    """
    raise NotImplementedError


def collected(holds, names):
    """Returns the set of those of them that the garbage collector would free: no name leads to them."""
    raise NotImplementedError


def holds(program):
    """Returns who holds whom, as in the text, after a program ran: object -> list of objects, for all that there are.

    program: a list of lines, of which number i makes a tensor:
        ("leaf",)           that requires grad
        ("constant",)       that does not
        ("add", a, b)       of the tensors that lines a and b made; so "mul"
        ("tanh", a)
    The tensor of line i is "t3" for i = 3, its memory "m3", its node, if it has one, "n3".
    """
    raise NotImplementedError
'''

HINTS = (
    "`counted` is a simulation: a dict of counts, a list of those that have come down to zero, and those alive. "
    "Draw the graph of `tanh(x) * y` with arrows, and count.",
    "An object's count is the number of arrows that lead to it, plus one for its name. Take the names away; what has "
    "zero dies, and its arrows go. A thing that holds itself never dies so.",
    "holds: keep beside it which lines' tensors require grad. For a line with a node: t -> [m, n]; n -> for each input "
    "that requires grad, its 'n', or 't' of a leaf; then what is saved: 't's for mul, the own 'm' for tanh.",
)

DEEP = 10_000


class Thing:
    """An object of Python's that holds others."""

    def __init__(self) -> None:
        self.held: list[Thing] = []


def living(holds: Any, names: Any) -> tuple[set[str], set[str]]:
    """(what lives by counting, what of it the collector frees): Python itself is asked."""
    gc.disable()
    try:
        things = {name: Thing() for name in holds}
        for name, held in holds.items():
            things[name].held = [things[one] for one in held]
        weak = {name: weakref.ref(thing) for name, thing in things.items()}
        kept = [things[name] for name in names]
        del things
        by_counting = {name for name, ref in weak.items() if ref() is not None}
        reached = set(names)
        todo = [*reached]
        while todo:
            new = set(holds[todo.pop()]) - reached
            reached |= new
            todo += new
        free = by_counting - reached
        for ref in (weak[name] for name in free):
            if (thing := ref()) is not None:
                thing.held = []  # so that no cycle is left of this check
        del kept
        return by_counting, free
    finally:
        gc.enable()


def check_counting(student: Any, draw: Any, function: str = "counted") -> None:
    st = draw.st
    names = "abcdef"
    graph = st.fixed_dictionaries({name: st.lists(st.sampled_from(names), max_size=2) for name in names})

    def test(holds: Any, left: Any) -> None:
        right = living(holds, sorted(left))[function == "collected"]
        yours = student(function, holds, sorted(left))
        same(
            f"{function}: who holds whom {holds}, names left {sorted(left)}",
            sorted(yours) if isinstance(yours, set) else yours, sorted(right),
        )  # fmt: skip

    draw(test, examples=150, holds=graph, left=st.sets(st.sampled_from(names), max_size=2))
    chain = {str(i): [str(i - 1)] if i else [] for i in range(DEEP)}
    if student(function, chain, []) != set():
        raise Wrong(f"{function}: a chain of {DEEP}, no name left\nyours   something lives\nright   nothing does")


def check_collected(student: Any, draw: Any) -> None:
    check_counting(student, draw, "collected")


# Graphs ---------------------------------------------------------------------------------------------------------------


def by_library(program: Any, left: Any) -> set[str]:
    """The tensors, memories and nodes that live in the library when only tensors `left` have a name."""
    gc.disable()
    try:
        weak: dict[str, Any] = {}
        tensors: list[Any] = []
        for i, (name, *inputs) in enumerate(program):
            if inputs:
                tensors.append(getattr(rd, name)(*(tensors[one] for one in inputs)))
            else:
                tensors.append(rd.ones(2, requires_grad=name == "leaf"))
            weak[f"t{i}"], weak[f"m{i}"] = weakref.ref(tensors[i]), weakref.ref(tensors[i]._array)
            if tensors[i].grad_fn is not None:
                weak[f"n{i}"] = weakref.ref(tensors[i].grad_fn)
        kept = [tensors[one] for one in left]
        del tensors
        alive = {name for name, ref in weak.items() if ref() is not None}
        del kept
        return alive
    finally:
        gc.enable()


def programs(st: Any) -> Any:
    """Draws programs: a leaf, a constant, and calls of what is newest."""
    line = st.tuples(st.sampled_from(["add", "mul", "mul", "tanh", "leaf"]), st.integers(0, 3), st.integers(0, 3))
    return st.lists(line, min_size=1, max_size=6).map(program)


def program(lines: Any) -> list[Any]:
    found: list[Any] = [("leaf",), ("constant",)]
    for name, a, b in lines:
        inputs = [len(found) - 1 - one % len(found) for one in (a, b)]
        found.append((name, *inputs[: {"leaf": 0, "tanh": 1}.get(name, 2)]))
    return found


def spelled(program: Any) -> str:
    return "; ".join(
        f"t{i} = {name}({', '.join(f't{one}' for one in inputs)})" for i, (name, *inputs) in enumerate(program)
    )


def check_holds(student: Any, draw: Any) -> None:
    """Compares what lives in the library, collector off, to what would by the student's arrows, whoever is dropped."""
    st = draw.st

    def test(program: Any, left: Any) -> None:
        left = sorted({len(program) - 1 - one % len(program) for one in left})
        arrows = student("holds", program)
        right = by_library(program, left)
        question = f"holds: {spelled(program)}; then only {[f't{one}' for one in left]} have names"
        known = isinstance(arrows, dict) and all(one in arrows for held in arrows.values() for one in held)
        if not known or not set(arrows) >= right:
            raise Wrong(
                f"{question}\nyours   knows of {sorted(arrows)}\nright   each object is there; {sorted(right)} live"
            )
        yours = living(arrows, [f"t{one}" for one in left])[0]
        if yours != right:
            differ = sorted(yours ^ right)
            raise Wrong(
                f"{question}\nyours   {sorted(yours)} live\nright   {sorted(right)}: look at {', '.join(differ)}"
            )

    draw(test, examples=250, program=programs(st), left=st.sets(st.integers(0, 4), max_size=2))


def check_no_cycle(student: Any, draw: Any) -> None:
    """A training loop's graph: when its names go, everything goes, at once."""
    st = draw.st

    def test(program: Any) -> None:
        arrows = student("holds", program)
        whole = living(arrows, [])[0]
        if whole:
            said = f"yours   {sorted(whole)} hold each other"
            raise Wrong(f"holds: {spelled(program)}; then no name is left\n{said}\nright   all die by counting")
        wanted = {f"n{i}" for i in range(len(program))} & set(arrows)
        last = f"t{len(program) - 1}"
        right = {name for name in by_library(program, [len(program) - 1]) if name[0] == "n"}
        yours = living(arrows, [last])[0] & wanted
        same(f"holds: {spelled(program)}; {last} has a name: the nodes that live", sorted(yours), sorted(right))

    draw(test, examples=100, program=programs(st))


LESSON = Lesson(
    row="D27",
    title="Who holds whom",
    reading=6,
    writing=35,
    text=TEXT,
    demo=DEMO,
    template=TEMPLATE,
    parts=(
        Part("counted", 3, check_counting),
        Part("collected", 2, check_collected),
        Part("holds", 5, check_holds),
        Part("no cycle", 2, check_no_cycle),
    ),
    hints=HINTS,
    needs=("D23", "D11"),
)
