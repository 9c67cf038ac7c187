"""D36, passes: a graph is rewritten, and nobody can tell but by the time it takes."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import redispatch as rd

from ..lesson import Lesson, Part, Wrong

TEXT = """
# Passes: nobody may tell

A pass takes a graph and returns another, which computes the same in less. Finding the pattern is the easy half; the
other is to prove that nobody can tell: not by the values, not by what was *written* to the inputs, and not by which
results share memory, since a caller may write to them later.

A graph is a list of nodes in order; each has a name, an operator and the names that it reads. `add_(x, y)` writes to
`x` and its value *is* x; `t(x)` is a view, whose value shares the memory of x; `clone(x)` has memory of its own, and so
have the results of `add`, `mul`, `mm` and `addmm`. So each value lives in one *memory*: that of an input, or of the
node that made it. All graphs here are of square matrices, and no input shares memory with another.

Three passes:

1. **Dead code.** A node whose value nobody reads goes, and then perhaps those it read. A write stays, always: somebody
   may see the memory (`Graph.eliminate_dead_code` asks `is_impure`).
2. **Needless copies.** In order, a `clone` goes, and its readers (and the results) get what it copied, if in the graph
   as it is by then (a) no later node writes to the memory of the copy, nor to that of its source, and (b) unless the
   memory of the copy is nowhere among the results, the memory of the source is neither an input's nor that of a result
   that does not come by way of this copy. Of (b) a caller could tell: two tensors that had memory of their own, share
   one now.
3. **Fusion.** `s = add(a, m)` or `add(m, a)` with `m = mm(x, y)` becomes `s = addmm(a, x, y)` at the place of the add,
   if m is read by this node alone, once, and no result, and no node between the two writes to the memory of x or y (the
   product is computed later now). Where both are such products, the second argument is m. In order. A product in
   the memory of which somebody writes is read by that write, too, so it stays.

The library's: `fx/graph.py`, `fx/subgraph_rewriter.py`, `fx/passes/`, and docs/passes.md. The checker runs your graphs
on tensors of the library.
"""

DEMO = """
import redispatch as rd
from redispatch.fx import symbolic_trace

def program(x, y, b):
    unused = x * 3
    return (x @ y).clone() + b

module = symbolic_trace(program)
print(module.graph)
module.graph.eliminate_dead_code()
for node in module.graph.find_nodes(op="call_method", target="clone"):
    node.replace_all_uses_with(node.args[0])
    module.graph.erase_node(node)
module.recompile()
print(module.graph)
x = rd.ones(2, 2)
print(module(x, x, x))
"""

TEMPLATE = '''"""D36: passes. `python -m redispatch learn D36` has the text.

Each pass takes (nodes, results) and returns (nodes, results). nodes: a list of Node(name, op, reads), in order; op is
"input", "add", "mul", "mm", "addmm", "clone", "t" (a view), "add_" or "mul_" (which write to their first argument).
reads and results: lists of names. Inputs always stay. Names of nodes that stay do not change.
"""


def without_dead_code(nodes, results):
    """Returns the graph without nodes that nobody reads, neither a result nor a node that stays; writes stay."""
    raise NotImplementedError


def without_copies(nodes, results):
    """Returns the graph without needless clones, as the text says."""
    raise NotImplementedError


def fused(nodes, results):
    """Returns the graph with `addmm(a, x, y)` for `add(a, mm(x, y))`, as the text says."""
    raise NotImplementedError
'''

HINTS = (
    "Write `memory(nodes)` first: name -> name of the node whose memory it is. Views and writes pass on their first "
    "argument's; all others have their own.",
    "Dead code goes backwards: a set of names that are read, which starts as the results.",
    "A pass that changes a graph goes on with what it has become: a `while` over a number i, which grows where nothing "
    "has changed, is not fast, but right.",
)

Node = namedtuple("Node", "name op reads")
Graph = tuple[list[Any], list[str]]
SHARING = {"t", "add_", "mul_"}


# Running a graph on the library ---------------------------------------------------------------------------------------


def run(nodes: list[Any], results: list[str]) -> Any:
    """(results, inputs afterwards, which of them share memory), on matrices that tell most graphs apart."""
    values, inputs = dict[str, Any](), list[Any]()
    for one in nodes:
        if one.op == "input":
            number = len(inputs)
            made = rd.tensor([[1.0 + number, 2.0 - number], [3.0 * number - 1, 1.0 - number]], dtype=rd.float64)
            inputs.append(made)
        else:
            first, *rest = (values[name] for name in one.reads)
            made = getattr(rd, one.op)(first, *rest) if hasattr(rd, one.op) else getattr(first, one.op)(*rest)
        values[one.name] = made
    seen = [*inputs, *(values[name] for name in results)]
    places = [one.untyped_storage().data_ptr() for one in seen]
    return [one.tolist() for one in seen], [places.index(place) for place in places]


def said(graph: Graph) -> str:
    nodes, results = graph
    return " ".join(f"{n.name}={n.op}({', '.join(n.reads)})" for n in nodes) + f" -> {', '.join(results)}"


def memory(nodes: list[Any]) -> dict[str, str]:
    found = dict[str, str]()
    for one in nodes:
        found[one.name] = found[one.reads[0]] if one.op in SHARING else one.name
    return found


# What may go: one question for each pass, which leaves to the student how a graph is rewritten ------------------------


def dead(nodes: list[Any], results: list[str], i: int) -> bool:
    one = nodes[i]
    read = {name for other in nodes for name in other.reads} | set(results)
    return one.op not in ("input", "add_", "mul_") and one.name not in read


def written(nodes: list[Any], where: dict[str, str], places: set[str]) -> bool:
    return any(one.op.endswith("_") and where[one.name] in places for one in nodes)


def needless(nodes: list[Any], results: list[str], i: int) -> bool:
    """Whether a clone may go: rules (a) and (b)."""
    one, where = nodes[i], memory(nodes)
    if one.op != "clone" or written(nodes[i + 1 :], where, {one.name, where[one.reads[0]]}):
        return False
    returned = {where[name] for name in results}
    source = where[one.reads[0]]
    is_input = any(other.name == source and other.op == "input" for other in nodes)
    return one.name not in returned or not (is_input or source in returned)


def product(nodes: list[Any], results: list[str], i: int) -> str:
    """The name of the product that an addition may take in, or ""."""
    one, where = nodes[i], memory(nodes)
    readers = [name for other in nodes for name in other.reads] + results
    for name in reversed(one.reads if one.op == "add" else []):
        j = next(j for j, other in enumerate(nodes) if other.name == name)
        places = {where[read] for read in nodes[j].reads}
        if nodes[j].op == "mm" and readers.count(name) == 1 and not written(nodes[j + 1 : i], where, places):
            return str(name)
    return ""


def checked(student: Any, draw: Any, name: str, left: Callable[..., Any], may_change: Callable[..., Any]) -> None:
    """Runs a pass on drawn graphs: nobody may tell, and nothing that may change is left."""
    st = draw.st
    ops = ["add", "mul", "mm", "clone", "t", "add_"]
    ops = {"fused": ["add", "mm", "mm", "add", "add_", "t"], "without_copies": [*ops, "clone", "clone"]}.get(name, ops)
    node = st.tuples(st.sampled_from(ops), st.integers(0, 3), st.integers(0, 3))
    rest, places = st.lists(node, max_size=2), st.lists(st.integers(0, 4), min_size=1, max_size=2)
    known = st.builds(lambda first, more: first + more, st.sampled_from(PATTERNS), rest)
    some = st.one_of(known, st.lists(node, min_size=2, max_size=7))

    def test(graph: Graph) -> None:
        question = f"{name}: {said(graph)}"
        try:
            expected = run(*graph)
        except RuntimeError:
            return  # the library refuses to write where what is read and what is written overlap
        nodes, results = student(name, *graph)
        yours = f"yours   {said((nodes, results))}"
        try:
            found = run(nodes, results)
        except Exception as problem:
            raise Wrong(f"{question}\n{yours}\nright   a graph that runs; this does not: {problem}") from None
        for word, right, answer in zip(("values are", "memory is shared as"), expected, found, strict=True):
            if right != answer:
                raise Wrong(f"{question}\n{yours}\n{word} {answer}\nright   {right} (inputs, results)")
        kept, before = {one.name for one in nodes}, {one.name: one for one in graph[0]}
        if more := [one.name for i, one in enumerate(nodes) if may_change(nodes, results, i)]:
            raise Wrong(f"{question}\n{yours}\nright   {more[0]} can still go" + (" in" if name == "fused" else ""))
        if why := left(graph, kept, [one for one in nodes if before.get(one.name) != one]):
            raise Wrong(f"{question}\n{yours}\nright   {why}")

    for pattern in PATTERNS:
        for read in ([0], [0, 1], [1], [0, 2]):
            test(drawn(pattern, read))
    draw(test, graph=st.builds(drawn, some, places), examples=300)


# Where a copy is needed, or a product cannot wait: chance rarely makes these.
PATTERNS = [
    [("clone", 0, 0), ("add", 0, 0), ("add_", 2, 0)],
    [("clone", 0, 0), ("add", 0, 1), ("add_", 1, 0)],
    [("add", 0, 1), ("clone", 0, 0)],
    [("mm", 0, 1), ("add_", 1, 2), ("add", 1, 0)],
    [("mm", 0, 1), ("add", 0, 1)],
    [("mm", 0, 1), ("add", 1, 0)],
    [("add", 0, 1), ("clone", 0, 0), ("t", 0, 0), ("add_", 0, 4)],
    [("mm", 0, 1), ("t", 0, 0), ("add_", 0, 1), ("add", 2, 0)],
    [("add", 0, 1), ("t", 0, 0), ("clone", 0, 0), ("add_", 1, 3)],
]


def drawn(nodes: Any, results: Any) -> Graph:
    """Nodes read near ones, so that patterns come about: distance 0 is the newest value, 3 may be an input."""
    made = [Node("a", "input", []), Node("b", "input", []), Node("c", "input", [])]
    for i, (op, first, second) in enumerate(nodes):
        reads = [made[-1 - distance % len(made)].name for distance in (first, second)]
        made.append(Node(f"v{i}", op, reads[:1] if op in ("clone", "t") else reads))
    return made, [made[-1 - distance % len(made)].name for distance in results]


def check_dead(student: Any, draw: Any) -> None:
    def left(graph: Graph, kept: set[str], changed: list[Any]) -> str:
        nodes, results = list(graph[0]), graph[1]
        while gone := [one for i, one in enumerate(nodes) if dead(nodes, results, i)]:
            nodes = [one for one in nodes if one not in gone]
        lost = [one.name for one in nodes if one.name not in kept]
        return f"{lost[0]} is alive" if lost else f"{changed[0].name} does not change" if changed else ""

    checked(student, draw, "without_dead_code", left, dead)


def check_copies(student: Any, draw: Any) -> None:
    def left(graph: Graph, kept: set[str], changed: list[Any]) -> str:
        if lost := [one.name for one in graph[0] if one.op != "clone" and one.name not in kept]:
            return f"{lost[0]} is no copy: it stays"
        return allowed(*graph, {one.name for one in graph[0]} - kept)

    def allowed(nodes: list[Any], results: list[str], gone: set[str]) -> str:
        """Takes the clones out in order, as the rules say, and tells which was not to go."""
        for name in [one.name for one in nodes if one.name in gone]:
            i = next(i for i, one in enumerate(nodes) if one.name == name)
            if not needless(nodes, results, i):
                return f"{name} is needed: it stays"
            source = nodes[i].reads[0]
            nodes = [
                one._replace(reads=[source if read == name else read for read in one.reads])
                for one in nodes
                if one.name != name
            ]
            results = [source if read == name else read for read in results]
        return ""

    checked(student, draw, "without_copies", left, needless)


def check_fused(student: Any, draw: Any) -> None:
    def left(graph: Graph, kept: set[str], changed: list[Any]) -> str:
        products = {one.name for one in graph[0]} - kept
        if len(changed) != len(products) or any(one.op != "addmm" for one in changed):
            return "for each addmm one mm is gone, and nothing else changes"
        return ""

    checked(student, draw, "fused", left, product)


LESSON = Lesson(
    row="D36",
    title="Passes: nobody may tell",
    reading=9,
    writing=60,
    text=TEXT,
    demo=DEMO,
    template=TEMPLATE,
    parts=(
        Part("dead code", 3, check_dead),
        Part("copies", 5, check_copies),
        Part("fusion", 4, check_fused),
    ),
    hints=HINTS,
    needs=("D08", "D31"),
    records=(Node,),
)
