"""Programs that hypothesis makes up, as data: inputs, steps, and which values they return.

What a compiler could get wrong is among the steps: views, writes, regions without gradients, random numbers, casts,
custom operators; and among the inputs: the same tensor twice, views of one another, what is no leaf, subclasses.
"""

from dataclasses import dataclass

from hypothesis import strategies as st

import redispatch as rd
from redispatch.nn import functional as F
from redispatch.subclasses.two_tensor import TwoTensor
from redispatch.utils.checkpoint import checkpoint

SIDE = 3

STEPS = {
    "sin": lambda x, y, a: x.sin() * a,
    "mul": lambda x, y, a: x * y + a,
    "relu": lambda x, y, a: (x + y).relu(),
    "softmax": lambda x, y, a: F.softmax(x, -1),
    "cumsum": lambda x, y, a: x.cumsum(0),
    "mean": lambda x, y, a: x - x.mean(0, keepdim=True),
    "cat": lambda x, y, a: rd.cat([x, y]),
    "mm": lambda x, y, a: x @ y.t() if x.dim() == 2 else x.exp().clamp(max=2),
    "t": lambda x, y, a: x.t(),
    "rows": lambda x, y, a: x[1:] if x.shape[0] > 1 else x,
    "flat": lambda x, y, a: x.reshape(-1),
    "view": lambda x, y, a: x.unsqueeze(0).squeeze(0),
    "detach": lambda x, y, a: x.detach(),
    "mul_": lambda x, y, a: x.mul_(0.5),
    "add_": lambda x, y, a: x.add_(y),
    "first": lambda x, y, a: x.select(0, 0).fill_(a).sum() + x,
    "copy_": lambda x, y, a: x.copy_(y * 2),
    "no_grad": lambda x, y, a: without_gradient(lambda: x * 2),
    "silent": lambda x, y, a: without_gradient(lambda: x.add_(1)),
    "dropout": lambda x, y, a: F.dropout(x, 0.4),
    "drawn": lambda x, y, a: x + rd.rand(x.shape),
    "autocast": lambda x, y, a: cast(x) if x.dim() == 2 else x,
    "checkpoint": lambda x, y, a: checkpoint(lambda x: F.dropout(x.sin(), 0.4).exp(), x, use_reentrant=False),
    "custom": lambda x, y, a: rd.ops.random_programs.scaled(x, a),
    "custom_": lambda x, y, a: rd.ops.random_programs.scale_(x, a) or x,
}
INPUTS = ["plain", "plain", "leaf", "leaf", "inner", "transposed", "same", "view"]


def without_gradient(f):
    with rd.no_grad():
        return f()


def cast(x):
    with rd.autocast("cpu"):
        return (x @ x.t()).float()


def scale_in_place(x, by):
    """Writes as an operator with no derivative does: autograd does not see into it, with a graph or without one."""
    with rd._C._AutoDispatchBelowAutograd():
        x.copy_(x * by)


def define_operators():
    """The custom operators of the steps: one that computes, with a derivative, and one that writes."""
    library = rd.library.Library("random_programs", "FRAGMENT")
    library.define("scaled(Tensor x, float by) -> Tensor")
    library.define("scale_(Tensor(a!) x, float by) -> ()")
    library.impl("scaled", lambda x, by: x * by, "CompositeExplicitAutograd")
    library.impl("scale_", scale_in_place, "CompositeExplicitAutograd")
    rd.library.register_autograd(
        "random_programs::scaled",
        lambda ctx, g: (g * ctx.by, None),
        setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]),
    )
    return library


@dataclass(frozen=True)
class Program:
    """inputs: kinds. steps: (name, two numbers of values). returned: numbers of values. Modulo how many there are."""

    inputs: tuple
    steps: tuple
    returned: tuple

    def __call__(self, *inputs):
        values = list(inputs)
        for name, i, j in self.steps:
            x, y = values[i % len(values)], values[j % len(values)]
            values.append(STEPS[name](x, y if y.shape == x.shape else x, (i + 1) / 4))
        found = [values[-1 - i % len(values)] for i in self.returned]
        return found if len(found) > 1 else found[0]

    def arguments(self, seed=0):
        """(the leaves of autograd's graph, what the program is called with)."""
        rd.manual_seed(seed)
        leaves, given = [], []
        for kind in self.inputs:
            if kind == "same" and given:
                given.append(given[-1])
            elif kind == "view" and given and not given[-1].requires_grad and type(given[-1]) is rd.Tensor:
                given.append(given[-1].t())
            else:
                leaf = rd.randn(SIDE, SIDE, requires_grad=kind in ("leaf", "inner"))
                leaves.append(leaf)
                given.append(leaf * 1.0 if kind == "inner" else leaf.t() if kind == "transposed" else leaf)
                if kind == "two":
                    given[-1] = leaves[-1] = TwoTensor(leaf, leaf + 1).requires_grad_()
        return leaves, given


def programs(without=(), inputs=INPUTS, steps=8):
    """The strategy of programs without steps of these names."""
    names = st.sampled_from([name for name in STEPS if name not in without])
    numbers = st.integers(0, 7)
    return st.builds(
        Program,
        st.lists(st.sampled_from(inputs), min_size=1, max_size=3).map(tuple),
        st.lists(st.tuples(names, numbers, numbers), min_size=1, max_size=steps).map(tuple),
        st.lists(numbers, min_size=1, max_size=3).map(tuple),
    )


def outcome(function, program, seed=0):
    """All that one can see of a call: values, flags, identities, gradients, and where a later write is seen."""
    leaves, given = program.arguments(seed)
    rd.manual_seed(seed + 1)
    found = function(*given)
    results = found if isinstance(found, list) else [found]
    both = [*results, *given]
    seen = {
        "values": [values_of(x) for x in both],
        "flags": [(type(x), x.requires_grad, x.dtype, x.shape) for x in both],
        "identities": [[one is other for other in both] for one in results],
        "next number": rd.rand(()).item(),
    }
    loss = sum(((x * (i + 1)).sum() for i, x in enumerate(results) if x.requires_grad), rd.zeros(()))
    try:
        if loss.requires_grad:
            loss.backward()
        seen["gradients"] = [
            values_of(x.grad) if x.grad is not None and x.grad.any() else None for x in leaves if x.is_leaf
        ]
    except RuntimeError as error:
        seen["gradients"] = type(error)
    try:
        with rd.no_grad():
            results[0].add_(1)
        seen["after a write"] = [values_of(x) for x in both]
    except RuntimeError as error:
        seen["after a write"] = type(error)
    return seen


def values_of(x):
    if isinstance(x, TwoTensor):
        return values_of(x.a) + values_of(x.b)
    return x.detach().reshape(-1).tolist()


def second_gradients(function, program, seed=0):
    """The gradients of the sum of the gradients of all results' squares, or the class of the error that there is."""
    leaves, given = program.arguments(seed)
    wanting = [x for x in leaves if x.requires_grad]
    rd.manual_seed(seed + 1)
    try:
        found = function(*given)
        loss = sum(((x * x).sum() for x in (found if isinstance(found, list) else [found])), rd.zeros(()))
        first = rd.autograd.grad(loss, wanting, create_graph=True, allow_unused=True)
        total = sum((g.sum() for g in first if g is not None), rd.zeros(()))
        second = rd.autograd.grad(total, wanting, allow_unused=True)
    except RuntimeError as error:
        return type(error)
    return [values_of(x) if x is not None and x.any() else None for x in (*first, *second)]
