"""D38, save or recompute: what backward is handed is a minimum cut."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import Any

import redispatch as rd
from redispatch._functorch.aot_autograd import aot_function
from redispatch._functorch.compilers import nop
from redispatch._functorch.max_flow import Network
from redispatch._functorch.partitioners import (
    Joint,
    bytes_of,
    may_recompute,
    min_cut_rematerialization_partition,
    saved_bytes,
)

from ..lesson import Lesson, Part, Wrong, on_library, same

TEXT = """
# Save or recompute: a minimum cut

A compiler sees forward and backward as one graph, the *joint graph*: of inputs and *tangents* (the gradients of the
results) it computes the results and the gradients of the inputs. To run it in two halves, the forward must hand on some
values to the backward. Which? For `y = exp(sin(x))` backward reads `cos(x)` and `exp(sin(x))`. Saved as they are, that
is twice the memory of `x`; but both can be computed again from `x` alone.

A value is *early* where no tangent leads to it, else *late*: late values there are only in backward, so nobody can save
one. An early value that backward reads is either saved, or recomputed from values that are themselves saved or
recomputed. Inputs cannot be recomputed: they are saved, or not there. Products, convolutions and other *dear* values
are not recomputed either, but for those that the forward does not need for its results: backward computes these, once.

So the question is: which set of early values, of the fewest bytes in all, lets backward compute all gradients? Draw a
pipe for each early value, as wide as its bytes. It leads from those it reads to those that read it; these connections
are as wide as you like. What cannot be recomputed is filled from a *source*; where a late value reads an early one, and
where an early one is itself a gradient, it runs into a *drain*. To save a value is to cut its pipe. A set is enough if
it cuts every way from source to drain, and the cheapest such set is a **minimum cut**.

A value with three readers is saved once, so its width must be counted once: it becomes *two* places, an entry and an
exit, with the pipe between them.

A minimum cut is as wide as the greatest *flow* from source to drain (Ford and Fulkerson). To find it, look for a way on
which every pipe has room, fill it, and repeat. A filled pipe may be emptied again: beside each pipe is one back, with
as much room as there is flow; without it the first greedy way blocks better ones. If ways with the fewest pipes come
first (Edmonds and Karp: breadth first), there are few rounds, whatever the widths. When no way is left, the places that
the source still reaches are one side; the pipes from them to the others are the cut. Not every full pipe is.

The library's own are `_functorch/max_flow.py` (Dinic's) and `_functorch/partitioners.py`; yours goes in their place.
"""

DEMO = """
import redispatch as rd
from redispatch._functorch.aot_autograd import aot_function
from redispatch._functorch.partitioners import default_partition, min_cut_rematerialization_partition, saved_bytes

def program(x, w):
    return (x @ w).sin().exp().cos().sum()

for partition in (default_partition, min_cut_rematerialization_partition):
    def parted(joint, inputs, **options):
        forward, backward = partition(joint, inputs, **options)
        print(partition.__name__, "saves", saved_bytes(forward, 1), "bytes")
        print("   backward:", *(node.name for node in backward.graph.nodes if node.op != "output"))
        return forward, backward
    x, w = rd.randn(8, 8, requires_grad=True), rd.randn(8, 8, requires_grad=True)
    as_it_is = lambda module, inputs: module
    aot_function(program, as_it_is, as_it_is, partition_fn=parted)(x, w).backward()
"""

TEMPLATE = '''"""D38: save or recompute. `python -m redispatch learn D38` has the text."""

import math


def max_flow(size, pipes, source, drain):
    """Returns the greatest flow from `source` to `drain`, math.inf where nothing bounds it.

    Places are 0 to size - 1. pipes: a list of (start, end, width); widths are ints or math.inf; several pipes may begin
    and end at the same places, and lead in both directions. There may be 5,000 places in a row.
    """
    raise NotImplementedError


def min_cut(size, pipes, source, drain):
    """Returns a minimum cut, a sorted list of numbers of `pipes`; the flow is finite here.

    Without these pipes nothing leads from source to drain, and their widths, in all, are the greatest flow. Of several
    such cuts any is right. Pipes of width 0 lead nowhere and are not listed.
    """
    raise NotImplementedError


def saved(nodes, results, gradients):
    """Returns the set of names of the values to save: of the fewest bytes from which backward can compute `gradients`.

    nodes: in order, each a Value(name, reads, bytes, kind). reads: names of earlier ones; bytes: an int >= 1;
    kind: "input", "tangent", "cheap", "dear". results, gradients: lists of names; no result is late. Of several sets
    any is right.
    """
    raise NotImplementedError
'''

HINTS = (
    "Keep pipes by number: pipe i and its way back side by side, at 2i and 2i + 1, so that i ^ 1 is the other. A queue "
    "finds a way; note by which pipe each place was reached.",
    "min_cut: after the last search, which places were reached? The pipes from a reached place to one that was not.",
    "saved: late = reads something late, or is a tangent. Early value number i has places 2i + 2 and 2i + 3. "
    "`needed` = all that the results depend on: a dear value outside of it gets no source.",
)

Value = namedtuple("Value", "name reads bytes kind")


# Networks -------------------------------------------------------------------------------------------------------------


def flow_of(size: int, pipes: list[Any], source: int, drain: int) -> float:
    network = Network(size)
    for pipe in pipes:
        network.add(*pipe)
    return network.flow(source, drain)


# Ways that cross: the shortest first way blocks the others, unless it can be emptied again.
CROSSING = [(0, 2, 1), (0, 3, 1), (2, 4, 1), (3, 4, 1), (2, 5, 1), (4, 1, 1), (5, 6, 1), (6, 1, 1)]
AGAIN = [(0, 2, 1), (2, 5, 1), (5, 1, 1), (0, 3, 1), (3, 4, 1), (4, 5, 1), (2, 6, 1), (6, 7, 1), (7, 1, 1)]


def networks(st: Any, widths: Any) -> Any:
    """Networks of few places; every third has known ways that cross, with all else drawn."""
    pipe = st.tuples(st.integers(0, 7), st.integers(0, 7), widths).filter(lambda one: one[0] != one[1])
    some = st.lists(pipe, min_size=4, max_size=12)
    crossing = st.tuples(st.sampled_from([CROSSING, AGAIN]), st.permutations(range(2, 8))).map(renumbered)
    return st.one_of(some, some.map(lambda pipes: [*pipes, (0, 2, 1), (2, 1, 3), (0, 2, 1)]), crossing)


def renumbered(drawn: Any) -> list[Any]:
    pipes, order = drawn
    number = dict(zip(range(8), [0, 1, *order], strict=True))
    return [(number[start], number[end], width) for start, end, width in pipes]


def check_flow(student: Any, draw: Any) -> None:
    widths = draw.st.sampled_from([0, 1, 1, 2, 3, 5, 7, math.inf])

    def test(pipes: Any) -> None:
        same(
            f"max_flow: pipes {pipes}, from 0 to 1", float(student("max_flow", 8, pipes, 0, 1)), flow_of(8, pipes, 0, 1)
        )

    draw(test, pipes=networks(draw.st, widths), examples=150)
    row = [(place, place + 1, 3) for place in range(4999)]
    same("max_flow: 4,999 pipes of width 3 in a row", float(student("max_flow", 5000, row, 0, 4999)), 3.0)
    wide = [(0, 2, 10**9), (0, 3, 10**9), (2, 3, 1), (2, 1, 10**9), (3, 1, 10**9)]
    same(f"max_flow: pipes {wide}, from 0 to 1", float(student("max_flow", 4, wide, 0, 1)), 2e9)


def check_cut(student: Any, draw: Any) -> None:
    st = draw.st

    def test(pipes: Any) -> None:
        answer = student("min_cut", 8, pipes, 0, 1)
        right = int(flow_of(8, pipes, 0, 1))
        question = f"min_cut: pipes {pipes}, from 0 to 1"
        if not isinstance(answer, list) or not set(answer) <= set(range(len(pipes))) or len(set(answer)) < len(answer):
            raise Wrong(f"{question}\nyours   {answer!r}\nright   numbers of pipes, each once, of width {right} in all")
        width = sum(pipes[number][2] for number in answer)
        rest = [pipe for number, pipe in enumerate(pipes) if number not in answer]
        listed = answer == sorted(answer) and all(pipes[number][2] for number in answer)
        if width != right or not listed or flow_of(8, rest, 0, 1):
            still = "something still flows" if flow_of(8, rest, 0, 1) else "nothing flows any more"
            raise Wrong(f"{question}\nyours   {answer}, of width {width}: {still}\nright   sorted, of width {right}")

    draw(test, pipes=networks(st, st.sampled_from([0, 1, 1, 2, 3, 5])), examples=150)


# Joint graphs ---------------------------------------------------------------------------------------------------------


def leading_to(by_name: dict[str, Any], names: Any, until: Any = ()) -> set[str]:
    """The values that these depend on, and themselves; not beyond `until`."""
    found, todo = set[str](), list(names)
    while todo:
        if (name := todo.pop()) not in found:
            found.add(name)
            todo += () if name in until else by_name[name].reads
    return found


def late_of(nodes: list[Any]) -> set[str]:
    late = set[str]()
    for one in nodes:
        if one.kind == "tangent" or late & set(one.reads):
            late.add(one.name)
    return late


def flaw(nodes: list[Any], results: list[str], gradients: list[str], chosen: set[str]) -> str:
    """The reason why backward cannot compute the gradients from these values, or ""."""
    by_name, late = {one.name: one for one in nodes}, late_of(nodes)
    forward = leading_to(by_name, results)
    if unknown := chosen - set(by_name):
        return f"{sorted(unknown)} are no values"
    if chosen & late:
        return f"{sorted(chosen & late)} depend on a tangent: there is nothing to save when forward ends"
    for name in sorted(leading_to(by_name, gradients, until=chosen) - chosen - late):
        if by_name[name].kind == "input" or (by_name[name].kind == "dear" and name in forward):
            return f"backward needs {name}, {by_name[name].kind}, which is not saved"
    return ""


def cheapest(nodes: list[Any], results: list[str], gradients: list[str]) -> tuple[int, set[str]]:
    """The fewest bytes, by trying all sets of early values that backward depends on."""
    by_name, late = {one.name: one for one in nodes}, late_of(nodes)
    early = sorted(leading_to(by_name, gradients) - late)
    sets = (set(some) for count in range(len(early) + 1) for some in combinations(early, count))
    costs = ((sum(by_name[name].bytes for name in some), sorted(some)) for some in sets)
    return next((cost, set(some)) for cost, some in sorted(costs) if not flaw(nodes, results, gradients, set(some)))


def drawn_graph(kinds: Any, sizes: Any, reads: Any, readers: Any, early_gradient: bool) -> tuple[Any, Any, Any]:
    """A joint graph: one or two inputs, early values, a tangent, late values that read both."""
    nodes = [Value("in0", [], sizes[0], "input"), Value("in1", [], sizes[1], "input")]
    for i, kind in enumerate(kinds):
        some = sorted({nodes[one % len(nodes)].name for one in reads[i]})
        nodes.append(Value(f"v{i}", some, sizes[i + 2], kind))
    early = [one.name for one in nodes]
    # The last early value but one may be nobody's but backward's: results are those before it.
    results = [early[-2]]
    nodes.append(Value("t0", [], 1, "tangent"))
    last = "t0"
    for i, many in enumerate(readers):
        some = sorted({early[one % len(early)] for one in many})
        nodes.append(Value(f"g{i}", [last, *some], 1 + i % 2, "cheap" if i % 2 else "dear"))
        last = f"g{i}"
    gradients = [last] if not readers else [f"g{len(readers) - 1}", "g0"]
    return nodes, results, [*gradients, *([early[-1]] if early_gradient else [])]


def graphs(st: Any) -> Any:
    places = st.lists(st.integers(0, 7), min_size=1, max_size=2)
    return st.builds(
        drawn_graph,
        st.lists(st.sampled_from(["cheap", "cheap", "dear"]), min_size=3, max_size=6),
        st.lists(st.sampled_from([1, 2, 3, 4, 8]), min_size=8, max_size=8),
        st.lists(places, min_size=6, max_size=6),
        st.lists(st.lists(st.integers(0, 7), min_size=1, max_size=3), min_size=1, max_size=3),
        st.booleans(),
    )


def check_saved(student: Any, draw: Any) -> None:
    def test(graph: Any) -> None:
        nodes, results, gradients = graph
        answer = student("saved", nodes, results, gradients)
        lines = [f"{one.name}={one.kind}({', '.join(one.reads)}):{one.bytes}" for one in nodes]
        question = f"saved: {' '.join(lines)}\nresults {results}, gradients {gradients}"
        cost, right = cheapest(nodes, results, gradients)
        if not isinstance(answer, set) or (why := flaw(nodes, results, gradients, answer)):
            why = why if isinstance(answer, set) else "not a set"
            raise Wrong(f"{question}\nyours   {answer}: {why}\nright   {sorted(right)}")
        bytes_saved = sum(one.bytes for one in nodes if one.name in answer)
        if bytes_saved != cost:
            raise Wrong(f"{question}\nyours   {sorted(answer)}, {bytes_saved} bytes\nright   {sorted(right)}, {cost}")

    draw(test, graph=graphs(draw.st), examples=150)


# The library on it ----------------------------------------------------------------------------------------------------


def described(joint: Any) -> tuple[list[Any], list[str], list[str]]:
    """A joint graph of the library's as a lesson's: values, results, gradients."""
    nodes = []
    for node in joint.nodes[:-1]:
        kind = "tangent" if node in joint.tangents else "input" if node.op == "placeholder" else ""
        kind = kind or ("cheap" if may_recompute(node, None) else "dear")
        reads = sorted({one.name for one in node.all_input_nodes})
        nodes.append(Value(node.name, reads, max(1, int(bytes_of(node))), kind))
    names = [[one.name for one in some if one is not None] for some in (joint.results, joint.gradients)]
    return nodes, names[0], names[1]


@contextmanager
def installed(student: Any) -> Iterator[None]:
    """Has the library's compiler part joint graphs where the student says."""

    def partitioner(
        module: Any, inputs: Any, compiler: str = "", recomputable_ops: Any = None, *, num_fwd_outputs: int, **o: Any
    ) -> Any:
        joint = Joint(module, num_fwd_outputs)
        nodes, results, gradients = described(joint)
        names = student("saved", nodes, results, gradients)
        if why := flaw(nodes, results, gradients, names):
            raise Wrong(f"saved: of {[one.name for one in nodes]}\nyours   {sorted(names)}: {why}")
        return joint.parted([node for node in joint.nodes if node.name in names])

    with rd.swap("partitioner", partitioner):
        yield


def programs() -> list[Any]:
    """Gradients of three programs, each with the bytes that its forward saves."""
    found = list[Any]()

    def noted(module: Any, inputs: Any, **options: Any) -> Any:
        forward, backward = min_cut_rematerialization_partition(module, inputs, **options)
        found.append(saved_bytes(forward, options["num_fwd_outputs"]))
        return forward, backward

    for program in (
        lambda x, w: (x.exp() * w.sin()).cos().sum(),
        lambda x, w: rd.nn.functional.gelu(x @ w).sum(),
        lambda x, w: ((x @ w) @ x.t()).softmax(-1).exp().sin().sum(),
    ):
        rd.manual_seed(0)
        x, w = rd.randn(4, 4, requires_grad=True), rd.randn(4, 4, requires_grad=True)
        aot_function(program, nop, nop, partition_fn=noted)(x, w).backward()
        found += [x.grad.tolist(), w.grad.tolist()]
    return found


def check_swapped(student: Any, draw: Any) -> None:
    """The library's compiler runs on the student's cut, and saves as few bytes as with its own."""
    on_library(installed(student), programs, "three programs and their gradients")


LESSON = Lesson(
    row="D38",
    title="Save or recompute: a minimum cut",
    reading=14,
    writing=75,
    text=TEXT,
    demo=DEMO,
    template=TEMPLATE,
    parts=(
        Part("max_flow", 3, check_flow),
        Part("min_cut", 3, check_cut),
        Part("saved", 4, check_saved),
        Part("the library on it", 3, check_swapped, on_library=True),
    ),
    hints=HINTS,
    needs=("D23", "D36"),
    records=(Value,),
    installed=installed,
)
