"""D11, no Variable any more: detach, .data, and the versions that tell who wrote."""

from __future__ import annotations

import math
from typing import Any

import redispatch as rd

from ..lesson import Lesson, Part, Wrong

TEXT = """
# Variable is gone, and its counter is left

Once there were two classes: `Tensor` with values, and `Variable`, a tensor with a history. They are one class now. A
tensor has values; one that requires grad has a *node*, too, which says where its gradient goes. Two tensors may
show the same values, with a history or without. And that makes a question that one class has to answer: what if
somebody *writes*?

A node keeps what its formula will need. `z = x * y` keeps `y` for the gradient of `x`, and `x` for that of `y`. To
copy them would cost as much memory as the call; so it keeps the tensors themselves. If `y` is written before
`backward`, the gradient would be computed of other values than the call was: silently wrong.

So values have a *version counter*: each write adds one. What is kept is (tensor, version at that time), and when
the formula asks for it, the two are compared: another version is a RuntimeError. The rules:

- A node keeps only what a *wanted* gradient needs: where `x` requires no grad, `x * y` does not keep `y`, and a write
  of `y` does no harm. `x + y` keeps nothing. `tanh` keeps its *result* (its derivative is 1 - result ** 2).
- A write counts after it is done, and what is kept of its result has the new version. Whatever its formula needs of the
  *old* values is copied first. Then the tensor's node is that of the write: the history goes on.
- A write counts whoever does it, under `no_grad` as well; whether values really changed is not looked at.
- A leaf that requires grad may not be written while recording is on: its history would no longer begin there. Under
  `no_grad` it may: that is what an optimizer does. There, a write leaves the history as it was.
- `x.detach()` shows the same values without history, and *shares the counter*: a write through it is seen by all who
  kept `x`. `x.data` shows the same values, too, but has *its own counter*, beginning at 0: whoever writes through it
  says "I know what I do", and nobody is told. The gradient is wrong then.

In the library: `dispatch/autograd/saved.py`, and `dispatch/layers/ad_inplace_or_view.py`, which counts.
"""

DEMO = """
import redispatch as rd

for name in ("detach", "data"):
    x = rd.tensor([1.0, 2.0], requires_grad=True)
    y = x.tanh()
    z = y * y
    same = y.detach() if name == "detach" else y.data
    same.fill_(0.0)
    print(f"written through {name}: y is {y.tolist()}, version {y._version}")
    try:
        z.sum().backward()
        print("  the gradient, silently wrong:", x.grad.tolist())
    except RuntimeError as error:
        print("  ", str(error)[:110])
"""

GIVEN = '''
class Mode:
    recording = True  # False under no_grad


class Node:
    """A step of backward. inputs: for each, the node of a tensor, or None where no gradient is wanted.

    run(gradient), gradient a list of numbers, gives one such list (or None) for each of `inputs`.
    """

    made = 0

    def __init__(self, inputs, run):
        self.inputs, self.run = inputs, run
        Node.made += 1
        self.number = Node.made


def send(node, gradient):
    """Sends a gradient from a node to the leaves."""
    come = {node: gradient}
    while come:
        node = max(come, key=lambda one: one.number)
        for behind, result in zip(node.inputs, node.run(come.pop(node))):
            if behind is not None:
                before = come.get(behind, [0.0] * len(result))
                come[behind] = [a + b for a, b in zip(before, result)]


def play(program):
    """Plays a program: what each line raised, and what the tensors are in the end. It stops where backward fails."""
    Mode.recording = True
    tensors, raised = [], []
    for name, *args in program:
        try:
            if name == "tensor":
                tensors.append(Tensor(list(args[0]), args[1]))
            elif name == "recording":
                Mode.recording = args[0]
            else:
                found = getattr(tensors[args[0]], name)(*(tensors[one] for one in args[1:]))
                if name in ("mul", "add", "tanh", "detach", "data"):
                    tensors.append(found)
        except NotImplementedError:
            raise
        except RuntimeError:
            raised.append("RuntimeError")
            if name == "backward":
                return raised, None
        else:
            raised.append(None)
    return raised, [(list(one.values), one.counter[0], one.requires_grad, one.grad) for one in tensors]
'''

TEMPLATE = '''"""D11: versions tell who wrote. `python -m redispatch learn D11` has the text.

The file is given `Mode`, whose `recording` is False under no_grad, and a small engine:

    Node(inputs, run)       a step of backward. inputs: for each input of the call its tensor's node, or None where no
                            gradient is wanted; run(gradient): a list with the gradient of each (None for a None)
    send(node, gradient)    sends a gradient, a list of numbers, from a node to the leaves
"""


class Saved:
    """A tensor that a node keeps for its formula."""

    def __init__(self, tensor):
        raise NotImplementedError

    def unpack(self):
        """Returns the values, a list. RuntimeError where they were written since."""
        raise NotImplementedError


class Tensor:
    """values: a list of numbers, which other tensors may show, too; counter: a list with one int, the version;
    requires_grad; node: None where it does not require grad; grad: None, or a list, that of a leaf, to which each
    backward adds.
    """

    def __init__(self, values, requires_grad=False):
        """Makes a leaf."""
        raise NotImplementedError

    def detach(self):
        """Returns a tensor of the same values without history. Writes through either are counted for both."""
        raise NotImplementedError

    def data(self):
        """Returns a tensor of the same values without history, whose writes are its own affair."""
        raise NotImplementedError

    def mul(self, other):
        """Returns self * other, element by element."""
        raise NotImplementedError

    def add(self, other):
        """Returns self + other."""
        raise NotImplementedError

    def tanh(self):
        """Returns tanh(self), whose node keeps the result."""
        raise NotImplementedError

    def mul_(self, other):
        """Writes self * other into self. RuntimeError for a leaf that requires grad, while recording is on."""
        raise NotImplementedError

    def add_(self, other):
        """Writes self + other into self; errors as mul_."""
        raise NotImplementedError

    def tanh_(self):
        """Writes tanh(self) into self; errors as mul_."""
        raise NotImplementedError

    def backward(self):
        """Sends a gradient of ones. RuntimeError for what does not require grad, and where a node kept what was
        written since. Can be called again: nothing is freed."""
        raise NotImplementedError
'''

HINTS = (
    "One function for the three calls: is recording on, and does any input require grad? Then make the node; the "
    "result requires grad. What `values` and `counter` are shared by is decided where the tensor is made.",
    "A write has an order: refuse, keep (copies of the old values), write `self.values[:] = ...`, count, and only "
    "then save what the formula needs of the result. `x.mul_(x)` writes what `other` saved, too: an error later.",
    "mul's formula: [multiply(gradient, other.unpack()) if x wants, multiply(gradient, x.unpack()) if other wants]. In "
    "mul_ the second is a plain copy of the old values, of which no version is asked. A leaf's node adds to `.grad`.",
)

# Programs, and the library's answers ----------------------------------------------------------------------------------

MAKES = ("mul", "add", "tanh", "detach", "data")
TWO = ("mul", "add", "mul_", "add_")


def by_library(program: Any) -> tuple[list[str | None], Any]:
    """The same as the given `play`, on the library's tensors."""
    tensors: list[Any] = []
    raised: list[str | None] = []
    recording = True
    for name, *args in program:
        try:
            with rd.set_grad_enabled(recording):
                if name == "tensor":
                    tensors.append(rd.tensor(args[0], dtype=rd.float64, requires_grad=args[1]))
                elif name == "recording":
                    recording = args[0]
                elif name == "backward":
                    tensors[args[0]].backward(rd.ones(2, dtype=rd.float64), retain_graph=True)
                elif name == "data":
                    tensors.append(tensors[args[0]].data)
                else:
                    found = getattr(tensors[args[0]], name)(*(tensors[one] for one in args[1:]))
                    if name in MAKES:
                        tensors.append(found)
        except RuntimeError:
            raised.append("RuntimeError")
            if name == "backward":
                return raised, None
        else:
            raised.append(None)
    return raised, [(one.tolist(), one._version, one.requires_grad, grad_of(one)) for one in tensors]


def grad_of(tensor: Any) -> Any:
    grad = tensor.grad if tensor.is_leaf else None
    return None if grad is None else grad.tolist()


def close(a: Any, b: Any) -> bool:
    """Whether two answers are the same, but for the last digits of numbers."""
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, float) and isinstance(b, float | int):
        return a == b or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12) or (a != a and b != b)
    return bool(a == b) and type(a) is type(b)


def spelled(program: Any) -> str:
    """A program as a student would type it, t0, t1 ... being its tensors."""
    lines, made = [], 0
    for name, *args in program:
        if name == "recording":
            lines.append(f"recording = {args[0]}")
            continue
        rest = ", ".join(f"t{one}" for one in args[1:])
        call = f"Tensor({args[0]}, {args[1]})" if name == "tensor" else f"t{args[0]}.{name}({rest})"
        is_new = name == "tensor" or name in MAKES
        lines.append(f"t{made} = {call}" if is_new else call)
        made += is_new
    return "; ".join(lines)


def compare(student: Any, program: Any) -> None:
    right = by_library(program)
    yours = student("play", program)
    if close(yours[0], right[0]) and close(yours[1], right[1]):
        return
    lines = [f"the program: {spelled(program)}"]
    if yours[0] != right[0]:
        place = next(i for i, (a, b) in enumerate(zip(yours[0], right[0], strict=False)) if a != b)
        lines += [f"line {place + 1}", f"yours   raises {yours[0][place]}", f"right   raises {right[0][place]}"]
    else:
        place = next(i for i, (a, b) in enumerate(zip(yours[1], right[1], strict=False)) if not close(a, b))
        for whose, (values, version, requires, grad) in (("yours", yours[1][place]), ("right", right[1][place])):
            lines.append(f"{whose}   t{place}: {values}, version {version}, requires_grad {requires}, grad {grad}")
    raise Wrong("\n".join(lines))


def programs(st: Any, names: Any, backward: bool) -> Any:
    """Draws programs of two leaves and some lines, the last of them backward."""
    values = st.lists(st.sampled_from([1.0, 1.0, 2.0, -1.0, 0.5]), min_size=2, max_size=2)
    leaves = st.lists(st.tuples(values, st.booleans() if backward else st.just(False)), min_size=2, max_size=3)
    line = st.tuples(st.sampled_from(names), st.integers(0, 4), st.integers(0, 4))
    return st.tuples(leaves, st.lists(line, min_size=1, max_size=6)).map(
        lambda drawn: program(drawn[0], drawn[1], backward)
    )


def program(leaves: Any, lines: Any, backward: bool) -> Any:
    found: list[Any] = [("tensor", values, requires) for values, requires in leaves]
    many, recording = len(leaves), True
    for name, a, b in lines:
        if name == "recording":
            recording = not recording
            found.append((name, recording))
            continue
        # The newest tensors are the likelier ones
        arguments = [many - 1 - one % many for one in ((a, b) if name in TWO else (a,))]
        found.append((name, *arguments))
        many += name in MAKES
    ends = [many - 1, *(i for i in range(many - 1, -1, -1))][:many] if backward else []
    return [*found, *(("backward", one) for one in ends[:1])]


# The parts ------------------------------------------------------------------------------------------------------------


def check_versions(student: Any, draw: Any) -> None:
    """Values and versions, where nothing requires grad."""
    names = ["mul_", "add_", "tanh_", "detach", "data", "detach", "data", "mul", "tanh", "recording"]

    def test(program: Any) -> None:
        compare(student, program)

    def short(many: int, way: str, again: bool) -> None:
        """Writes, another tensor of the same values, and a write through it."""
        lines = [("tensor", [2.0, 1.0], False), *[("add_", 0, 0)] * many, (way, 0), *[("tanh_", 1)] * again]
        compare(student, lines)

    st = draw.st
    draw(test, examples=120, program=programs(st, names, backward=False))
    draw(short, examples=20, many=st.integers(0, 2), way=st.sampled_from(["detach", "data"]), again=st.booleans())


def check_gradients(student: Any, draw: Any) -> None:
    """Gradients of programs that write nothing."""

    def test(program: Any) -> None:
        compare(student, program)

    draw(test, examples=100, program=programs(draw.st, ["mul", "mul", "add", "tanh", "detach", "recording"], True))


def check_writes(student: Any, draw: Any) -> None:
    """An error where something was kept and written, and no error elsewhere; writes through .data are silent."""
    names = ["mul", "mul_", "add", "add_", "tanh", "tanh_", "detach", "data"]
    st = draw.st
    kept = st.sampled_from(["mul", "mul", "tanh", "add", "tanh_", "mul_"])
    ways = st.sampled_from(["", "detach", "data"])
    write = st.sampled_from(["mul_", "add_", "tanh_"])

    def test(program: Any) -> None:
        compare(student, program)

    def short(
        leaf: Any, other: Any, first: str, keeps: str, two: Any, way: str, writes: str, no_grad: bool, end: int
    ) -> None:
        """A call that keeps something, a write, and backward of what the call gave."""
        lines: list[Any] = [("tensor", [2.0, 1.0], leaf), ("tensor", [1.0, 1.0], other)]
        lines += [
            (first, 0, 1),
            (keeps, *two) if keeps == "mul" else (keeps, 2, two[1])[: 3 if keeps in TWO else 2],
            ("mul", 2, 1),
        ]
        lines += [("recording", not no_grad)]
        many = 3 + (keeps in MAKES) + 1
        target = end % many  # any tensor there is may be written
        lines += [(way, target)] if way else []
        one = many if way else target
        lines += [(writes, one, 1) if writes in TWO else (writes, one), ("recording", True)]
        compare(student, [*lines, ("backward", 3), ("backward", many - 1)])

    draw(test, examples=200, program=programs(st, names, backward=True))
    draw(
        short, examples=450, leaf=st.booleans(), other=st.booleans(), first=st.sampled_from(["mul", "add"]), keeps=kept,
        two=st.sampled_from([(2, 1), (0, 2), (2, 0), (1, 2)]), way=ways, writes=write,
        no_grad=st.booleans(), end=st.integers(0, 4),
    )  # fmt: skip


def check_leaves(student: Any, draw: Any) -> None:
    """Checks writes to leaves, under no_grad or not."""
    names = ["mul_", "add_", "tanh_", "recording", "recording", "detach", "data", "mul"]

    def test(program: Any) -> None:
        compare(student, program)

    draw(test, examples=200, program=programs(draw.st, names, backward=True))


LESSON = Lesson(
    row="D11",
    title="Variable is gone, and its counter is left",
    reading=8,
    writing=50,
    text=TEXT,
    demo=DEMO,
    template=TEMPLATE,
    parts=(
        Part("versions", 3, check_versions),
        Part("gradients", 2, check_gradients),
        Part("writes", 5, check_writes),
        Part("leaves", 2, check_leaves),
    ),
    hints=HINTS,
    needs=("D23",),
    given=GIVEN,
)
