"""D13, tensor and storage: a tensor is a view of a storage."""

from __future__ import annotations

from collections import namedtuple
from itertools import product
from math import prod
from typing import Any

import redispatch as rd

from ..lesson import Lesson, Part, Wrong, same

TEXT = """
# A tensor is a view of a storage

Memory has no rows and columns: a *storage* is a row of bytes. A tensor is a way to look at one, in three facts:

- its *offset*: the element of the storage at which it begins;
- its *sizes*: how many indices each dimension has;
- its *strides*: by how many elements one steps in the storage when the index of a dimension grows by one.

The element of index (i, j, ...) lies at element `offset + i * stride[0] + j * stride[1] + ...`, and at byte that number
times the size of an element. Everything follows from this line.

A new tensor is *contiguous*: the last dimension has stride 1, each other the product of the sizes behind it. Sizes
(2, 3) have strides (3, 1). Now most operations on shapes need to touch no element; they return other facts about the
same storage, a *view*, and a write to one is seen in all:

- `transpose` exchanges two sizes and the two strides: (3, 2) with strides (1, 3). No byte moves;
- `x[start:stop:step]` moves the offset, and multiplies a stride by `step`; there are as many as fit, rounded up;
- `expand` gives a dimension of size 1 any size, with stride 0: each index is the same element. New dimensions come in
  front;
- `view` keeps the order of the elements and cuts them into other sizes. Sometimes no strides can say that: (3, 2) with
  strides (1, 3) as a row of 6 would visit elements 0, 3, 1, 4, 2, 5, and no one stride does.

When is there a `view`? Two neighbouring dimensions are one *block* if the outer stride is the inner size times the
inner stride: one walks over both in equal steps. Dimensions of size 1 say nothing and are left out. Split the old
dimensions into such blocks, as long as possible. The new sizes must fit into the blocks: from the right, new
dimensions are collected until their product is the block's number of elements; their strides begin with the stride
of the block's innermost dimension. Where a new dimension would reach over the end of a block, there is no view, and
`view` raises. `reshape` returns a view if there is one, else a copy.

The library's own: `dispatch/tensor/storage.py`, and `kernels/` under the name of each operator.
"""

DEMO = """
import redispatch as rd

x = rd.arange(6).view(2, 3)
t = x.t()
print(x.stride(), t.stride(), "the same storage:", x.data_ptr() == t.data_ptr())
t[0, 1] = 100
print(x)
print("as a row:", t.reshape(6), "a view:", t.reshape(6).data_ptr() == x.data_ptr())
try:
    t.view(6)
except RuntimeError as error:
    print(error)
print(rd.ones(3, 1).expand(3, 4).stride(), x[:, ::2].stride())
"""

TEMPLATE = '''"""D13: a tensor is a view of a storage. `python -m redispatch learn D13` has the text.

View(offset, sizes, strides) is given: an int and two tuples of ints, counted in elements. Dimensions may be negative,
counted from the end. Return new Views with tuples. Strides of dimensions of size 1 are not compared.
"""


def read(buffer, itemsize, view):
    """Returns the elements of a view, a list in the order of its indices (the last index runs fastest).

    buffer: bytes, the storage. Each element is an int of `itemsize` bytes, signed, the lowest byte first:
    int.from_bytes(part, "little", signed=True).
    """
    raise NotImplementedError


def fill(buffer, itemsize, view, value):
    """Returns the bytes of the storage after each element of the view was made `value`."""
    raise NotImplementedError


def transpose(view, first, second):
    """Returns the view with two dimensions exchanged."""
    raise NotImplementedError


def cut(view, dim, start, stop, step):
    """Returns the view of x[start:stop:step] at dimension `dim`, as slices of Python's lists have it; step >= 1.

    start, stop: negative ones count from the end, others are brought into the range. An empty one begins at `start`.
    """
    raise NotImplementedError


def expand(view, sizes):
    """Returns the view expanded to `sizes`; -1 keeps a size. None where a size that is not 1 would have to change."""
    raise NotImplementedError


def view_as(view, sizes):
    """Returns the same elements in the same order under other sizes, without a copy; None where no view can do it.

    One of `sizes` may be -1, which stands for what is left. The number of elements is at least 1, and fits.
    """
    raise NotImplementedError


def reshape(buffer, itemsize, view, sizes):
    """Returns (buffer, View) with the elements of `view` under `sizes` (without -1): with the same bytes where that can
    be a view, else with new bytes, of exactly the elements, contiguous."""
    raise NotImplementedError
'''

HINTS = (
    "Do it on paper for sizes (2, 3) with strides (3, 1), then with strides (1, 2): write down the storage's elements "
    "in the order of the indices. `x.stride()` and `x.storage_offset()` of the library tell what it does.",
    "read: itertools.product(*map(range, view.sizes)) are the indices in order. expand: put new dimensions in front "
    "first. view_as: leave out dimensions of size 1, then go from the right, old block by old block.",
    "view_as: keep the old dimensions as (size, stride) without ones, merge neighbours where outer stride == inner "
    "size * inner stride. Then for each new size from the right: take the last block; the size must divide the rest "
    "of it; the stride is the block's stride times what has been used.",
)

View = namedtuple("View", "offset sizes strides")
SIZES = [
    (),
    (1,),
    (4,),
    (6,),
    (2, 3),
    (3, 2),
    (1, 4),
    (4, 1),
    (2, 2, 3),
    (2, 1, 3),
    (3, 4),
    (4, 3),
    (2, 3, 4),
    (2, 3, 1),
]


# Layouts: what is drawn -----------------------------------------------------------------------------------------------


def layouts(st: Any) -> Any:
    """Strategy of tensors: a contiguous one of drawn sizes, on which a few drawn changes of its shape were done."""
    change = st.tuples(st.sampled_from(["transpose", "cut", "expand", "one"]), *[st.integers(0, 3)] * 3)
    return st.tuples(st.sampled_from(SIZES), st.integers(0, 2), st.lists(change, max_size=3)).map(made)


def made(drawn: Any) -> Any:
    sizes, offset, changes = drawn
    x = rd.arange(prod(sizes) + offset, dtype=rd.int16)[offset:].view(sizes)
    for name, a, b, c in changes:
        if not x.dim():
            continue
        a, b = a % x.dim(), b % x.dim()
        if name == "transpose":
            x = x.transpose(a, b)
        elif name == "cut" and x.size(a) > 1:
            x = x.narrow(a, c % 2, x.size(a) - c % 2)[(slice(None),) * a + (slice(None, None, 1 + c // 2),)]
        elif name == "expand" and x.size(a) == 1 and x.numel() < 24:
            x = x.expand(*(c + 1 if i == a else size for i, size in enumerate(x.shape)))
        elif name == "one":
            x = x.unsqueeze(a)  # with a stride that fits nowhere: it has no say
            x = x.as_strided(x.shape, [5 if i == a else one for i, one in enumerate(x.stride())], x.storage_offset())
    return x


def seen(x: Any) -> View:
    return View(x.storage_offset(), tuple(x.shape), tuple(x.stride()))


def shown(view: Any) -> str:
    if not isinstance(view, View):
        return repr(view)
    return f"offset {view.offset}, sizes {view.sizes}, strides {view.strides}"


def plain(view: Any) -> Any:
    """A view without what it says about dimensions of size 1."""
    if not isinstance(view, View):
        return view
    steps = zip(view.sizes, view.strides, strict=False)
    return View(view.offset, tuple(view.sizes), tuple(stride if size != 1 else 0 for size, stride in steps))


def compare(question: str, yours: Any, x: Any | None) -> None:
    """Raises Wrong where a view is another than that of the library's tensor; None stands for an error."""
    right = None if x is None else seen(x)
    lengths_differ = isinstance(yours, View) and len(yours.sizes) != len(yours.strides)
    if lengths_differ or plain(yours) != plain(right):
        raise Wrong(f"{question}\nyours   {shown(yours)}\nright   {shown(right)}")


def or_none(function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except RuntimeError:
        return None


def storage(x: Any) -> bytes:
    """The bytes of a tensor's storage, whose elements are int16."""
    count = x.untyped_storage().nbytes() // 2
    return b"".join(one.to_bytes(2, "little", signed=True) for one in x.as_strided((count,), (1,), 0).tolist())


# The parts ------------------------------------------------------------------------------------------------------------


def check_read(student: Any, draw: Any) -> None:
    def test(x: Any, first: int) -> None:
        whole = x.as_strided((x.untyped_storage().nbytes() // 2,), (1,), 0)
        whole.copy_(rd.arange(len(whole), dtype=rd.int16) * 255 + first)
        question = f"read: a storage of the int16 {whole.tolist()}, {shown(seen(x))}"
        same(question, student("read", storage(x), 2, seen(x)), x.flatten().tolist())

    draw(test, 60, x=layouts(draw.st), first=draw.st.sampled_from([0, -300, 256]))

    wide = rd.arange(12).view(3, 4).t()[1:]
    buffer = b"".join((one * 2**30 - 3).to_bytes(8, "little", signed=True) for one in range(12))
    same("read: items of 8 bytes", student("read", buffer, 8, seen(wide)), (wide.flatten() * 2**30 - 3).tolist())


def check_fill(student: Any, draw: Any) -> None:
    def test(x: Any, value: int) -> None:
        before, view = storage(x), seen(x)
        for index in product(*map(range, x.shape)):
            x[index] = value
        right, question = storage(x), f"fill: {shown(view)} with {value} in a storage of {len(before) // 2} elements"
        yours = student("fill", before, 2, view, value)
        if yours != right:
            said = memoryview(yours).cast("h").tolist() if isinstance(yours, bytes) and not len(yours) % 2 else yours
            raise Wrong(f"{question}\nyours   {said!r}\nright   {memoryview(right).cast('h').tolist()}")

    draw(test, 40, x=layouts(draw.st), value=draw.st.sampled_from([-1, 300]))


def check_transpose(student: Any, draw: Any) -> None:
    def test(x: Any, first: int, second: int) -> None:
        n = x.dim()
        if n:
            first, second = first % (2 * n) - n, second % (2 * n) - n
            question = f"transpose {first}, {second}: {shown(seen(x))}"
            compare(question, student("transpose", seen(x), first, second), x.transpose(first, second))

    draw(test, 80, x=layouts(draw.st), first=draw.st.integers(0, 7), second=draw.st.integers(0, 7))


def check_cut(student: Any, draw: Any) -> None:
    st = draw.st
    ends = st.integers(-6, 6)

    def test(x: Any, dim: int, start: int, stop: int, step: int) -> None:
        if x.dim():
            dim = dim % (2 * x.dim()) - x.dim()
            question = f"cut dimension {dim}, {start}:{stop}:{step}, of {shown(seen(x))}"
            right = rd.ops.aten.slice.Tensor(x, dim, start, stop, step)
            compare(question, student("cut", seen(x), dim, start, stop, step), right)

    draw(test, 200, x=layouts(st), dim=st.integers(0, 7), start=ends, stop=ends, step=st.integers(1, 3))


def check_expand(student: Any, draw: Any) -> None:
    st = draw.st

    def test(x: Any, chosen: Any, front: Any, ruin: int) -> None:
        sizes = [size if size != 1 or keep == 1 else keep for size, keep in zip(x.shape, chosen, strict=False)]
        sizes = [-1 if keep == 3 else size for size, keep in zip(sizes, chosen, strict=False)]
        sizes = [*front, *sizes]
        if ruin == 0 and x.dim():
            sizes[-1] = x.size(-1) + 1
        question = f"expand to {tuple(sizes)}: {shown(seen(x))}"
        compare(question, student("expand", seen(x), tuple(sizes)), or_none(x.expand, sizes))

    few = st.lists(st.integers(2, 3), max_size=2)
    chosen = st.lists(st.integers(1, 4), min_size=8, max_size=8)
    draw(test, 150, x=layouts(st), chosen=chosen, front=few, ruin=st.integers(0, 4))


def shapes(count: int) -> list[tuple[int, ...]]:
    """All sizes of up to three dimensions with `count` elements."""
    divisors = [one for one in range(1, count + 1) if count % one == 0]
    pairs = [(a, count // a) for a in divisors]
    triples = [(a, b, rest // b) for a, rest in pairs for b in divisors if rest % b == 0]
    return [(count,), *pairs, *triples]


def check_view(student: Any, draw: Any) -> None:
    def test(x: Any, which: int, unknown: int) -> None:
        if not x.numel():
            return
        choice = shapes(x.numel())
        sizes = choice[which % len(choice)]
        if unknown < len(sizes):
            sizes = (*sizes[:unknown], -1, *sizes[unknown + 1 :])
        question = f"view_as {sizes}: {shown(seen(x))}"
        compare(question, student("view_as", seen(x), sizes), or_none(x.view, sizes))

    draw(test, 300, x=layouts(draw.st), which=draw.st.integers(0, 200), unknown=draw.st.integers(0, 6))


def check_reshape(student: Any, draw: Any) -> None:
    """The elements are right, and bytes are copied where there is no view only: those that come back tell."""

    def test(x: Any, which: int) -> None:
        if not x.numel():
            return
        choice, before = shapes(x.numel()), storage(x)
        sizes = choice[which % len(choice)]
        y = x.reshape(sizes)
        question = f"reshape to {sizes}: {shown(seen(x))}"
        answer = student("reshape", before, 2, seen(x), sizes)
        if not (isinstance(answer, tuple) and len(answer) == 2):
            raise Wrong(f"{question}\nyours   {answer!r}\nright   a tuple (bytes, View)")
        shared = y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        compare(f"{question}, which is {'a view' if shared else 'a copy'}", answer[1], y)
        same(f"{question}: the bytes", answer[0], before if shared else storage(y))

    draw(test, 120, x=layouts(draw.st), which=draw.st.integers(0, 200))


LESSON = Lesson(
    row="D13",
    title="A tensor is a view of a storage",
    reading=8,
    writing=50,
    text=TEXT,
    demo=DEMO,
    template=TEMPLATE,
    parts=(
        Part("read", 2, check_read),
        Part("fill", 1, check_fill),
        Part("transpose", 1, check_transpose),
        Part("cut", 2, check_cut),
        Part("expand", 2, check_expand),
        Part("view_as", 4, check_view),
        Part("reshape", 2, check_reshape),
    ),
    hints=HINTS,
    needs=("D42",),
    records=(View,),
)
