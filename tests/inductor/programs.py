"""Programs at random of pointwise operators, over inputs that lie awkwardly; and what it means to have the same bits.

    program = Program(seed)
    program.function(*program.inputs)      # some of what it computed, the last included

Each pointwise operator that a nest takes is among them, with any dtypes that it takes; views, copies, gathers,
writes, and operators that are calls stand between.
"""

import math
import random
from collections import Counter

import redispatch as rd
from redispatch._inductor.lowering import Multiplying, Nesting
from redispatch._inductor.operators import pointwise, rule_of
from redispatch.kernels.declare.declare import DECLARED
from redispatch.kernels.graphs import Accumulate, Reduce

FLOATS = [rd.float16, rd.bfloat16, rd.float32, rd.float64]
WHOLE = [rd.int8, rd.uint8, rd.int16, rd.int32, rd.int64, rd.bool]
COMPLEX = [rd.complex64, rd.complex128]
BITS = {1: rd.uint8, 2: rd.int16, 4: rd.int32, 8: rd.int64}
ODD = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-40, -1e-310, 6e4, 3e38, 1e300]

POINTWISE = [op for op, one in DECLARED.items() if rule_of(op) is pointwise and one.functional is op]
USUAL = [op for op in POINTWISE if "special" not in op.name()]
NUMBERS = {"number": [0, 1, -2, 3, 0.5, -1.5, True], "float": [0.25, -2.0], "int": [1, 2], "bool": [True, False]}


def overlapping(x):
    """A tensor whose rows share elements with each other."""
    if x.dim() < 2 or not x.numel():
        return x
    flat, steps = x.reshape(-1), [1] * x.dim()
    return flat.as_strided(x.shape, steps)


LAYOUTS = [
    lambda x: x,
    lambda x: x.transpose(0, -1).contiguous().transpose(0, -1) if x.dim() > 1 else x,
    lambda x: x.repeat_interleave(2, -1)[..., ::2] if x.dim() else x,
    lambda x: rd.stack([x] * 3, -1).select(-1, 1),
    lambda x: x[:1].expand(x.shape) if x.dim() and x.shape[0] else x,
    lambda x: x.reshape(-1)[:1].reshape(()).expand(x.shape) if x.numel() else x,
    lambda x: rd.cat([x.reshape(-1), x.reshape(-1)])[x.numel() :].view(x.shape),
    lambda x: x.permute(*range(1, x.dim()), 0).contiguous().permute(x.dim() - 1, *range(x.dim() - 1)) if x.dim() else x,
    overlapping,
]
VIEWS = [
    lambda x: x.transpose(0, -1) if x.dim() > 1 else x,
    lambda x: x.unsqueeze(-1),
    lambda x: x[..., ::2] if x.dim() else x,
    lambda x: x[..., 1:] if x.dim() else x,
    lambda x: x.expand(2, *x.shape),
    lambda x: x.reshape(-1),
    lambda x: x.select(0, -1) if x.dim() and x.shape[0] else x,
    lambda x: x.diagonal() if x.dim() > 1 else x,
    lambda x: x.unfold(0, 2, 1) if x.dim() and x.shape[0] > 1 else x,
    lambda x: x.view(BITS[x.dtype.itemsize]) if x.dtype in FLOATS else x,
    lambda x: rd.view_as_real(x) if x.is_complex() else x,
    lambda x: x.conj() if x.is_complex() else x,
    lambda x: x.real,
]
OTHERS = [  # of one tensor: copies, what is known without memory, what reads by an index, what is called
    lambda x: x.clone(),
    lambda x: x.clone(memory_format=rd.contiguous_format),
    lambda x: x.to(rd.float32),
    lambda x: x.to(rd.int64) if not x.is_complex() else x.to(rd.complex128),
    lambda x: x.to(rd.bfloat16),
    lambda x: x.to(rd.bool),
    lambda x: x.to(rd.uint8) if x.dtype in WHOLE else x.to(rd.complex64),
    lambda x: rd.full_like(x, 2),
    lambda x: rd.arange(x.shape[-1]) if x.dim() else rd.ones(()),
    lambda x: rd.zeros(x.shape, dtype=rd.int32),
    lambda x: x.flip(0) if x.dim() else x,
    lambda x: x.roll(1, 0) if x.dim() else x,
    lambda x: rd.cat([x, x]) if x.dim() else x,
    lambda x: x.sort(-1)[0] if x.dim() and not x.is_complex() else x,
    lambda x: x.clone().mul_(2) if x.dtype != rd.bool else x,
    lambda x: x.clone().fill_(1),
    lambda x: written(x),
    lambda x: written(rd.full_like(x, 3)),
]


def written(x):
    """A copy, of which the program writes a part between two reads."""
    y = x.clone()
    before = y * 2 if x.dtype != rd.bool else ~y
    if y.dim() and y.shape[0]:
        y[0] = 1
    return rd.cat([(before + y).reshape(-1), y.reshape(-1)])


def gathered(x, index, way):
    """Elements of a tensor that another one tells, whatever its numbers are."""
    dim = index.dim() - 1 if way else 0
    index = index.to(rd.int64) if not index.is_complex() else index.real.to(rd.int64)
    if way and x.dim() == index.dim() > 0 and x.shape[dim]:
        return x.gather(dim, index.remainder(x.shape[dim]))
    if x.dim() == 2 and x.shape[0]:
        return rd.nn.functional.embedding(index.remainder(x.shape[0]), x)
    return x


class Program:
    """A function of a few tensors, and inputs for it."""

    def __init__(self, seed, dtypes=(*FLOATS, *WHOLE, *COMPLEX)):
        self.draw = draw = random.Random(seed)
        shape = [draw.choice([0, 1, 2, 3, 5, 17, 40]) for _ in range(draw.randrange(4))]
        self.shapes = [shape, shape, [1 if draw.random() < 0.3 else size for size in shape], shape[1:]]
        own = [draw.choice(dtypes) for _ in range(2)]  # few: most pairs of them have operators
        self.kinds = [
            (draw.choice(self.shapes), draw.choice(own), draw.choice(LAYOUTS)) for _ in range(draw.randrange(1, 4))
        ]
        self.inputs = self.fresh()
        self.steps = []
        values = list(self.inputs)
        for _ in range(draw.randrange(2, 12)):
            step = self.a_step()
            try:
                found = step(values)
            except (RuntimeError, IndexError, NotImplementedError, TypeError, ValueError):
                continue  # of these shapes or dtypes there is none
            if isinstance(found, rd.Tensor) and found.numel() < 30000:
                values.append(found)
                self.steps.append(step)
        made = range(len(self.inputs), len(values))
        self.returned = [at for at in made if at == made[-1] or draw.random() < 0.3]

    def fresh(self):
        """Inputs of the same metadata, with other numbers."""
        return [layout(self.numbers(shape, dtype)) for shape, dtype, layout in self.kinds]

    def numbers(self, shape, dtype):
        """A tensor of usual numbers, and some that are not."""
        generator = rd.Generator().manual_seed(self.draw.randrange(1 << 30))
        x = rd.randn(shape, generator=generator, dtype=rd.float64) * self.draw.choice([1, 3, 100])
        if dtype in COMPLEX:
            x = rd.complex(x, rd.randn(shape, generator=generator, dtype=rd.float64))
        elif x.numel() and dtype in FLOATS and self.draw.random() < 0.5:
            for at in range(0, x.numel(), 3):
                x.view(-1)[at] = self.draw.choice(ODD)
        return x.to(dtype)

    def a_step(self):
        """A function of the values so far, for the next one."""
        draw = self.draw
        first, second, third = (draw.random() for _ in range(3))

        def pick(values, place):
            return values[int(len(values) * place**0.5)]  # later ones are likelier

        kind = draw.random()
        if kind < 0.15:
            view = draw.choice(VIEWS)
            return lambda values: view(pick(values, first))
        if kind < 0.35:
            other = draw.choice(OTHERS)
            return lambda values: other(pick(values, first))
        if kind < 0.4:
            return lambda values: gathered(pick(values, first), pick(values, second), third < 0.5)
        op = draw.choice(POINTWISE if draw.random() < 0.2 else USUAL)
        places = iter((first, second, third))
        given = []
        for argument in op.schema.arguments:
            kind = str(argument.type).removeprefix("Optional[").removesuffix("]")
            if kind == "Tensor":
                given.append((argument.name, next(places)))
            elif kind in NUMBERS and draw.random() < (0.5 if argument.has_default_value() else 1):
                given.append((argument.name, [draw.choice(NUMBERS[kind])]))

        def step(values):
            found = {name: pick(values, one) if isinstance(one, float) else one[0] for name, one in given}
            return op(**found)

        return step

    def function(self, *inputs):
        values = list(inputs)
        for step in self.steps:
            values.append(step(values))
        return [values[at] for at in self.returned]


def bits(x):
    """A tensor's bits as integers, NaNs' aside: which of them an operation returns is left to the machine."""
    if x.is_complex():
        x = rd.view_as_real(x.resolve_conj())
    if x.dtype in FLOATS:
        return rd.where(x.isnan(), 0, x.resolve_neg().contiguous().view(BITS[x.dtype.itemsize])), x.isnan()
    return x.resolve_neg() if x.dtype is not rd.bool else x, rd.zeros((), dtype=rd.bool)


def same_bits(found, expected):
    """AssertionError unless two tensors are alike in metadata and bits."""
    assert type(found) is type(expected)
    if not isinstance(expected, rd.Tensor):
        assert found == expected or found is expected
        return
    assert (found.shape, found.dtype, found.stride()) == (expected.shape, expected.dtype, expected.stride())
    assert (found.is_conj(), found.is_neg()) == (expected.is_conj(), expected.is_neg())
    if expected.is_sparse or expected.is_quantized:
        raise AssertionError("compare what it is made of")
    for one, other in zip(bits(found), bits(expected), strict=True):
        assert rd.equal(one, other), (found, expected)


def is_exact(graph):
    """Whether a compiled graph computes by its operators alone, in their order: no sums, no products, no formulas."""
    computed, wanted = (Counter(node.target for node in one.nodes) for one in (graph.graph, graph.module.graph))
    if not computed <= wanted:
        return False
    if any(isinstance(step, Multiplying) for step in graph.steps):
        return False
    values = [value for step in graph.steps if isinstance(step, Nesting) for value in step.values.values()]
    return not any(isinstance(value, Reduce | Accumulate) for value in values)
