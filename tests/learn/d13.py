"""Lesson D13, the teacher's part: a solution, and misconceptions as changes of it, with the part that refuses each."""

SOLUTION = """
from itertools import product
from math import prod


def places(view):
    for index in product(*map(range, view.sizes)):
        yield view.offset + sum(i * stride for i, stride in zip(index, view.strides))


def read(buffer, itemsize, view):
    spans = [buffer[at * itemsize : (at + 1) * itemsize] for at in places(view)]
    return [int.from_bytes(span, "little", signed=True) for span in spans]


def fill(buffer, itemsize, view, value):
    written = bytearray(buffer)
    for at in places(view):
        written[at * itemsize : (at + 1) * itemsize] = value.to_bytes(itemsize, "little", signed=True)
    return bytes(written)


def transpose(view, first, second):
    sizes, strides = list(view.sizes), list(view.strides)
    sizes[first], sizes[second] = sizes[second], sizes[first]
    strides[first], strides[second] = strides[second], strides[first]
    return View(view.offset, tuple(sizes), tuple(strides))


def cut(view, dim, start, stop, step):
    sizes, strides = list(view.sizes), list(view.strides)
    size = sizes[dim]
    start = start + size if start < 0 else start
    stop = stop + size if stop < 0 else stop
    start = min(max(start, 0), size)
    stop = min(max(stop, start), size)
    offset = view.offset + start * strides[dim]
    sizes[dim] = (stop - start + step - 1) // step
    strides[dim] *= step
    return View(offset, tuple(sizes), tuple(strides))


def expand(view, sizes):
    new = len(sizes) - len(view.sizes)
    old = [(1, 0)] * new + list(zip(view.sizes, view.strides))
    found = []
    for (size, stride), wanted in zip(old, sizes):
        if wanted in (-1, size):
            found.append((size, stride))
        elif size == 1:
            found.append((wanted, 0))
        else:
            return None
    return View(view.offset, tuple(size for size, _ in found), tuple(stride for _, stride in found))


def view_as(view, sizes):
    count = prod(view.sizes)
    if -1 in sizes:
        known = prod(size for size in sizes if size != -1)
        sizes = tuple(count // known if size == -1 else size for size in sizes)
    blocks = []
    for size, stride in zip(view.sizes, view.strides):
        if size == 1:
            continue
        if blocks and blocks[-1][1] == size * stride:
            blocks[-1] = (blocks[-1][0] * size, stride)
        else:
            blocks.append((size, stride))
    strides = []
    left, stride = blocks.pop() if blocks else (1, 1)
    for size in reversed(sizes):
        if size == 1:
            strides.append(0)
            continue
        if left == 1:
            left, stride = blocks.pop()
        if left % size:
            return None
        strides.append(stride)
        left, stride = left // size, stride * size
    return View(view.offset, tuple(sizes), tuple(reversed(strides)))


def reshape(buffer, itemsize, view, sizes):
    found = view_as(view, sizes)
    if found is not None:
        return buffer, found
    copied = b"".join(buffer[at * itemsize : (at + 1) * itemsize] for at in places(view))
    strides = tuple(prod(sizes[i + 1 :]) for i in range(len(sizes)))
    return copied, View(0, tuple(sizes), strides)
"""

WRONG = {  # what is thought -> (part, what stands there, what stands there instead)
    "a view begins at the storage's first element": ("read", "yield view.offset + sum", "yield sum"),
    "strides count bytes": ("read", "at * itemsize : (at + 1) * itemsize] for at in places(view)]\n    return [",
                            "at : at + itemsize] for at in places(view)]\n    return ["),
    "elements are those that follow each other in memory": (
        "read", "for at in places(view)]\n    return [", "for at in sorted(places(view))]\n    return ["),
    "a write goes to the first elements": ("fill", "for at in places(view):", "for at in range(prod(view.sizes)):"),
    "transpose changes the sizes alone": (
        "transpose", "    strides[first], strides[second] = strides[second], strides[first]\n", ""),
    "transpose makes a contiguous tensor": (
        "transpose", "    return View(view.offset, tuple(sizes), tuple(strides))\n\n\ndef cut",
        "    return View(view.offset, tuple(sizes), tuple(prod(sizes[i + 1 :]) for i in range(len(sizes))))\n\n\n"
        "def cut"),
    "a step leaves the stride": ("cut", "    strides[dim] *= step\n", ""),
    "a slice's length is rounded down": ("cut", "(stop - start + step - 1) // step", "(stop - start) // step"),
    "the offset moves by elements, not by strides": ("cut", "start * strides[dim]", "start"),
    "negative ends are brought to 0": ("cut", "start + size if start < 0 else start", "start"),
    "expand keeps the stride": ("expand", "found.append((wanted, 0))", "found.append((wanted, stride or 1))"),
    "new dimensions come behind": (
        "expand", "[(1, 0)] * new + list(zip(view.sizes, view.strides))",
        "list(zip(view.sizes, view.strides)) + [(1, 0)] * new"),
    "any size may be expanded": ("expand", "elif size == 1:", "else:", "        else:\n            return None\n", ""),
    "a transposed tensor can be viewed as any sizes": (
        "view_as", "    blocks = []\n",
        "    return View(view.offset, tuple(sizes), tuple(prod(sizes[i + 1 :]) for i in range(len(sizes))))\n"
        "    blocks = []\n"),
    "only what is contiguous can be viewed": (
        "view_as", "    strides = []\n",
        "    if len(blocks) > 1 or (blocks and blocks[0][1] != 1):\n        return None\n    strides = []\n"),
    "dimensions of size 1 have a say": ("view_as", "        if size == 1:\n            continue\n        if blocks",
                                        "        if blocks"),
    "reshape always copies": ("reshape", "if found is not None:", "if found == view:"),
    "a copy keeps the offset": (
        "reshape", "View(0, tuple(sizes), strides)", "View(view.offset, tuple(sizes), strides)"),
}  # fmt: skip
