"""D21, the iterator: shapes become one loop."""

from __future__ import annotations

from collections import namedtuple
from itertools import product, zip_longest
from typing import Any

import numpy as np

import redispatch as rd
from redispatch.dispatch.tensor import geometry, operand

from ..lesson import Lesson, Part, Wrong, same

TEXT = """
# Shapes become one loop

`x + y` may mean a matrix and its transpose, a row that repeats, every second column, in two dtypes. A kernel should
know nothing of it: it should be a loop. Before the first element is computed, the *iterator* turns all that into
numbers:

1. **Shape.** Shapes are aligned at the right; sizes are equal, or one of them is 1 and repeats.
2. **Strides.** A dimension that repeats is read with stride 0. Nothing is copied.
3. **Dtype.** Operands have three ranks: tensors with dimensions, tensors without, Python numbers. Within a rank, types
   promote. A lower rank counts only where its *category* (bool, integer, floating, complex) is higher: `int8 + 1.5` is
   float32, but `float32 + float64 scalar` stays float32.
4. **Overlap.** Where a result is written into memory that is read at *other* places, a loop would read what it has
   just written. The very same cells in the same places are harmless: `x.add_(x)` is. So there are three answers: no,
   full, partial. A stepped view shares no cell with the one between its elements, though their ranges overlap.
5. **Order.** The dimension with the smallest stride goes inside. The first operand that has an opinion decides (the
   output comes first); stride 0 has none.
6. **Coalescing.** Two neighbouring dimensions are one, where for *every* operand outer stride = inner size x inner
   stride. Dimensions of size 1 are none. A contiguous tensor of any rank ends as one dimension: one loop.

In the library that is `dispatch/tensor/geometry.py` (broadcast_strides, loop_order, coalesce, plan), `dtypes.py`
(result_type) and `operand.py` (overlap); PyTorch has it in TensorIterator. An example: shape (2, 3), the output with
strides (1, 2), the input with (1, 2). The order from outside is dimension 1, then 0: sizes (3, 2), strides (2, 1) for
both; 2 = 2 x 1, so it is one loop over 6 elements with step 1.
"""

DEMO = """
import redispatch as rd
from redispatch.dispatch.tensor.geometry import loop_order, plan

x = rd.randn(4, 3, 2)
cases = {
    "contiguous": (x, x),
    "both permuted alike": (x.permute(2, 0, 1), x.permute(2, 0, 1)),
    "transposed input": (rd.empty(4, 2, 3), x.transpose(1, 2)),
    "every second": (rd.empty(2, 3, 2), x[::2]),
    "a row that repeats": (x, rd.ones(2).expand(4, 3, 2)),
}
for name, (out, read) in cases.items():
    walk = plan(tuple(out.shape), (out.stride(), read.stride()))
    kind = "flat" if walk.flat else "strided"
    print(f"{name:<20} {tuple(out.shape)} -> sizes {walk.sizes.tolist()}, strides {walk.strides.tolist()}, {kind}")
print(rd.result_type(rd.ones(2, dtype=rd.int8), 1.5), rd.result_type(rd.ones(2), rd.tensor(1.0, dtype=rd.float64)))
"""

TEMPLATE = '''"""D21: shapes become one loop. `python -m redispatch learn D21` has the text."""

# dtype -> its category (0 bool, 1 integer, 2 floating, 3 complex), its bytes, whether it is signed
DTYPES = {
    "bool": (0, 1, False), "uint8": (1, 1, False), "int8": (1, 1, True), "int16": (1, 2, True),
    "int32": (1, 4, True), "int64": (1, 8, True), "float16": (2, 2, True), "bfloat16": (2, 2, True),
    "float32": (2, 4, True), "float64": (2, 8, True), "complex32": (3, 4, True), "complex64": (3, 8, True),
    "complex128": (3, 16, True),
}
# floating -> the complex type of its width
COMPLEX = {"float16": "complex32", "bfloat16": "complex64", "float32": "complex64", "float64": "complex128"}


def broadcast_shape(shapes):
    """Returns the shape, a tuple, to which all `shapes` (tuples) expand; None where there is none. Sizes may be 0."""
    raise NotImplementedError


def broadcast_strides(shape, strides, to):
    """Returns the strides, a tuple, with which a tensor is read as if it had the shape `to`, to which it expands.

    A dimension of size 1 that stays one keeps its stride.
    """
    raise NotImplementedError


def result_type(operands):
    """Returns the dtype, a name, in which operands are computed.

    Each is Tensor(dims, dtype), `dims` being how many dimensions it has, or a number: True is bool, 1 int64, 1.5
    float32, 2j complex64. Types promote to the higher category, and within one to the wider; but uint8 and a signed
    integer to that, int8 to int16; float16 and bfloat16 to float32; a floating and a complex type to the wider of the
    complex and that of COMPLEX. What a lower rank has counts only where its category is higher than that of the ranks
    above: a floating type then becomes its complex of COMPLEX whatever the lower one's width, others promote.
    """
    raise NotImplementedError


def overlap(a, b):
    """Returns "no", "full" or "partial" for two windows onto one memory: what cells they share.

    A window is Window(shape, strides, offset). "full": the same shape, and each index names the same cell in both.
    """
    raise NotImplementedError


def plan(shape, all_strides):
    """Returns (sizes, all_strides): the walk with the fewest dimensions, outermost first; lists of ints.

    all_strides: a tuple for each operand, all for `shape`, in which no size is 0. The order is an insertion sort, since
    operands that abstain make "belongs inside of" no order: begin with the last dimension inside; then each in turn,
    from the inside, is compared with those further inside, one after the other. It changes places with one that
    belongs outside of it, passes one that is tied, and stops at one that belongs inside of it. Of two dimensions the
    first operand decides in which both strides are not 0 and differ (the smaller goes inside); on the way there an
    operand whose strides are equal, but not 0, decides that the one further inside goes outside, if its size is
    greater. Then coalesce. A walk of one element has sizes [1] and stride 1 for each.
    """
    raise NotImplementedError


def walk(shape, all_strides, offsets, body):
    """Calls body([address in operand 0, in operand 1, ...]) once for each element, in the order of the plan."""
    raise NotImplementedError
'''

HINTS = (
    "Shapes: fill up with ones at the left, then go dimension by dimension. Overlap: these windows are small, so write "
    "down all addresses of both.",
    "result_type: three lists, promote each, then a function over(high, low) used twice, from below. Coalescing: keep "
    "a list of finished dimensions; a new inner one merges with the last if for all operands last stride == size * "
    "stride.",
    "The sort: order = reversed(range(rank)); for i: moving = i; for j from i - 1 down to 0: compare order[j] with "
    "order[moving]; above 0: swap and moving = j; below 0: break; a tie goes on without a swap. compare goes through "
    "the operands: skip if a stride is 0; strides differ: that decides; shape[a] > shape[b]: 1.",
)

Tensor = namedtuple("Tensor", "dims dtype")
Window = namedtuple("Window", "shape strides offset")
DTYPES = tuple("bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split())


def check_shape(student: Any, draw: Any) -> None:
    def make(rng: Any) -> Any:
        full = [rng.choice([1, 2, 3, 0, 1, 2]) for _ in range(rng.randint(0, 4))]
        cuts = [rng.randint(0, len(full)) for _ in range(rng.randint(1, 3))]
        return [tuple(rng.choice([one, one, 1, 1, 3]) for one in full[cut:]) for cut in cuts]

    for shapes in draw.cases(make):
        try:
            right = geometry.broadcast_shapes(*shapes)
        except RuntimeError:
            right = None  # no shape
        same(f"broadcast_shape({shapes})", student("broadcast_shape", shapes), right)


def laid(rng: Any, sizes: Any, repeats: float = 0.2) -> tuple[int, ...]:
    """Draws the strides of an operand: in any order of dimensions, with gaps and repetitions."""
    order = list(range(len(sizes)))[::-1]
    if rng.random() < 0.5:
        rng.shuffle(order)
    strides, step, gap = [0] * len(sizes), 1, rng.random() < 0.3
    for d in order:
        if rng.random() >= repeats:
            strides[d] = step
            step *= sizes[d] + (gap and rng.randint(0, 1))
    return tuple(strides)


def check_strides(student: Any, draw: Any) -> None:
    def make(rng: Any) -> Any:
        shape = tuple(rng.choice([1, 1, 2, 3]) for _ in range(rng.randint(0, 3)))
        grown = (size if size > 1 else rng.randint(1, 3) for size in shape)
        return shape, laid(rng, shape, 0), (*(rng.randint(1, 3) for _ in range(rng.randint(0, 2))), *grown)

    for case in draw.cases(make):
        right = geometry.broadcast_strides(*case)
        same(f"broadcast_strides{case}", student("broadcast_strides", *case), right)


def check_types(student: Any, draw: Any) -> None:
    def make(rng: Any) -> Any:
        def one() -> Any:
            return rng.choice([True, 1, 1.5, 2j] + [Tensor(rng.choice([0, 2]), rng.choice(DTYPES))] * 8)

        return [one() for _ in range(rng.randint(1, 3))]

    for operands in draw.cases(make, 2000):
        real = [
            rd.ones((1,) * one.dims, dtype=getattr(rd, one.dtype)) if isinstance(one, Tensor) else one
            for one in operands
        ]
        right = str(rd.result_type(*real)).partition(".")[2]
        same(f"result_type({operands})", student("result_type", operands), right)


def check_overlap(student: Any, draw: Any) -> None:
    memory = np.zeros(200, np.float32)

    def window(rng: Any, shape: Any) -> Window:
        return Window(shape, tuple(rng.choice([1, 2, 3, 4, 6]) for _ in shape), rng.randint(0, 4))

    def make(rng: Any) -> Any:
        shape, other = (tuple(rng.choice([1, 2, 3, 0, 2]) for _ in range(rng.randint(0, 2))) for _ in range(2))
        a, kind = window(rng, shape), rng.randint(0, 4)
        if kind == 0:  # nearly the same
            return a, Window(shape, a.strides, a.offset + rng.choice([0, 0, 1, 2]))
        if kind == 1:  # turned
            return a, Window(shape[::-1], a.strides[::-1], a.offset)
        return a, window(rng, shape if kind == 2 else other)

    for a, b in draw.cases(make):
        right = operand.overlap(*(operand.Operand(memory, "float32", *one) for one in (a, b)))
        same(f"overlap({a}, {b})", student("overlap", a, b), right)


def operands_of(rng: Any) -> Any:
    """Draws (shape, strides of one to three operands); the first seldom repeats, as outputs do not."""
    shape = tuple(rng.choice([2, 3, 2, 1]) for _ in range(rng.randint(0, 4)))
    first = laid(rng, shape, 0.05)
    others = [rng.choice([first, laid(rng, shape), laid(rng, shape)]) for _ in range(rng.randint(0, 2))]
    return shape, (first, *others)


def right_plan(shape: Any, strides: Any) -> tuple[list[int], list[list[int]]]:
    found = geometry.plan(shape, strides)
    return found.sizes.tolist(), found.strides.reshape(len(strides), -1).tolist()


def check_plan(student: Any, draw: Any) -> None:
    for shape, strides in draw.cases(operands_of, 2000):
        yours = student("plan", shape, strides)
        if isinstance(yours, tuple | list) and len(yours) == 2:
            yours = ([*yours[0]], [[*one] for one in yours[1]])
        same(f"plan({shape}, {strides})", yours, right_plan(shape, strides))


def check_walk(student: Any, draw: Any) -> None:
    """The addresses that the loop's body is called with, in their order."""
    for shape, strides in draw.cases(operands_of, 150):
        sizes, steps = right_plan(shape, strides)
        offsets = [3, 0, 7][: len(strides)]
        visited = [
            [at + sum(i * s for i, s in zip(index, own, strict=True)) for at, own in zip(offsets, steps, strict=True)]
            for index in product(*map(range, sizes))
        ]
        told: list[Any] = []
        student("walk", shape, strides, offsets, told.append)
        for number, (yours, right) in enumerate(zip_longest(told, visited)):
            if yours != right:
                raise Wrong(
                    f"walk({shape}, {strides}, {offsets}, body): call {number} of body, of {len(visited)}"
                    f"\nyours   {yours}\nright   {right}"
                )


LESSON = Lesson(
    row="D21",
    title="Shapes become one loop",
    reading=8,
    writing=75,
    text=TEXT,
    demo=DEMO,
    template=TEMPLATE,
    parts=(
        Part("broadcast_shape", 1, check_shape),
        Part("broadcast_strides", 1, check_strides),
        Part("result_type", 3, check_types),
        Part("overlap", 2, check_overlap),
        Part("plan", 4, check_plan),
        Part("walk", 1, check_walk),
    ),
    hints=HINTS,
    needs=("D13",),
    records=(Tensor, Window),
)
