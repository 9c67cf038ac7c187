"""Lesson D21, the teacher's part: a solution, and misconceptions as changes of it, with the part that refuses each."""

SOLUTION = """
from itertools import product

DTYPES = {
    "bool": (0, 1, False), "uint8": (1, 1, False), "int8": (1, 1, True), "int16": (1, 2, True),
    "int32": (1, 4, True), "int64": (1, 8, True), "float16": (2, 2, True), "bfloat16": (2, 2, True),
    "float32": (2, 4, True), "float64": (2, 8, True), "complex32": (3, 4, True), "complex64": (3, 8, True),
    "complex128": (3, 16, True),
}
COMPLEX = {"float16": "complex32", "bfloat16": "complex64", "float32": "complex64", "float64": "complex128"}


def broadcast_shape(shapes):
    rank = max(map(len, shapes))
    result = []
    for column in zip(*[(1,) * (rank - len(shape)) + shape for shape in shapes]):
        sizes = set(column) - {1}
        if len(sizes) > 1:
            return None
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def broadcast_strides(shape, strides, to):
    lead = len(to) - len(shape)
    own = [0 if size == 1 and target != 1 else step for size, step, target in zip(shape, strides, to[lead:])]
    return (0,) * lead + tuple(own)


def promote(a, b):
    if a == b:
        return a
    (kind, size, signed), (kind_b, size_b, signed_b) = DTYPES[a], DTYPES[b]
    if kind > kind_b:
        return promote(b, a)
    if kind < kind_b:
        return promote(COMPLEX[a], b) if kind == 2 else b
    if kind == 1 and signed != signed_b:
        wanted = a if signed else b
        return "int16" if wanted == "int8" else wanted
    if size == size_b:
        return "float32"
    return a if size > size_b else b


def over(high, low):
    if high is None or low is None:
        return high or low
    if DTYPES[low][0] <= DTYPES[high][0]:
        return high
    return COMPLEX[high] if high in COMPLEX else promote(high, low)


def result_type(operands):
    ranks = [None, None, None]
    for one in operands:
        if isinstance(one, Tensor):
            rank, kind = 0 if one.dims else 1, one.dtype
        else:
            rank, kind = 2, {bool: "bool", int: "int64", float: "float32", complex: "complex64"}[type(one)]
        ranks[rank] = kind if ranks[rank] is None else promote(ranks[rank], kind)
    return over(ranks[0], over(ranks[1], ranks[2]))


def cells(window):
    return [
        window.offset + sum(i * step for i, step in zip(index, window.strides))
        for index in product(*map(range, window.shape))
    ]


def overlap(a, b):
    ours, theirs = cells(a), cells(b)
    if not set(ours) & set(theirs):
        return "no"
    return "full" if a.shape == b.shape and ours == theirs else "partial"


def compare(shape, all_strides, a, b):
    for strides in all_strides:
        if strides[a] == 0 or strides[b] == 0:
            continue
        if strides[a] != strides[b]:
            return -1 if strides[a] < strides[b] else 1
        if shape[a] > shape[b]:
            return 1
    return 0


def plan(shape, all_strides):
    order = list(range(len(shape)))[::-1]
    for i in range(1, len(order)):
        moving = i
        for j in range(i - 1, -1, -1):
            verdict = compare(shape, all_strides, order[j], order[moving])
            if verdict > 0:
                order[j], order[moving] = order[moving], order[j]
                moving = j
            elif verdict < 0:
                break
    sizes, kept = [], [[] for _ in all_strides]
    for d in reversed(order):
        if shape[d] == 1:
            continue
        steps = [strides[d] for strides in all_strides]
        if sizes and all(k[-1] == shape[d] * step for k, step in zip(kept, steps)):
            sizes[-1] *= shape[d]
            for k, step in zip(kept, steps):
                k[-1] = step
        else:
            sizes.append(shape[d])
            for k, step in zip(kept, steps):
                k.append(step)
    return (sizes, kept) if sizes else ([1], [[1] for _ in all_strides])


def walk(shape, all_strides, offsets, body):
    sizes, strides = plan(shape, all_strides)
    for index in product(*map(range, sizes)):
        body([at + sum(i * step for i, step in zip(index, own)) for at, own in zip(offsets, strides)])
"""

WRONG = {  # what is thought -> (part, what stands there, what stands there instead)
    "shapes are aligned at the left": (
        "broadcast_shape", "(1,) * (rank - len(shape)) + shape", "shape + (1,) * (rank - len(shape))",
    ),
    "the larger size wins, so 1 and 0 give 1": ("broadcast_shape", "sizes.pop() if sizes else 1", "max(column)"),
    "what repeats keeps its stride": ("broadcast_strides", "0 if size == 1 and target != 1 else step", "step"),
    "every size of 1 has the stride 0": ("broadcast_strides", "size == 1 and target != 1", "size == 1"),
    "a tensor without dimensions counts like any other": ("result_type", "0 if one.dims else 1, one", "0, one"),
    "a number counts like a tensor without dimensions": ("result_type", "rank, kind = 2, {", "rank, kind = 1, {"),
    "a number never counts": (
        "result_type", "over(ranks[0], over(ranks[1], ranks[2]))", "ranks[0] or ranks[1] or ranks[2]",
    ),
    "the wider of float16 and bfloat16 is the first": ("result_type", '        return "float32"', "        return a"),
    "uint8 and int8 fit int8": ("result_type", '"int16" if wanted == "int8" else wanted', "wanted"),
    "float64 and complex64 are complex64": ("result_type", "promote(COMPLEX[a], b) if kind == 2 else b", "b"),
    "ranges that meet share cells": (
        "overlap", "not set(ours) & set(theirs)",
        "not ours or not theirs or max(ours) < min(theirs) or max(theirs) < min(ours)",
    ),
    "the same cells in whatever order are full overlap": ("overlap", "ours == theirs", "set(ours) == set(theirs)"),
    "the same cells in another shape are full overlap": ("overlap", "a.shape == b.shape and ", ""),
    "views that begin at one cell are the same": (
        "overlap", "a.shape == b.shape and ours == theirs", "a.shape == b.shape and a.offset == b.offset",
    ),
    "dimensions stay in their order": ("plan", "for i in range(1, len(order)):", "for i in ():"),
    "a stride of 0 is the smallest": ("plan", "if strides[a] == 0 or strides[b] == 0:", "if False:"),
    "the last operand decides": (
        "plan", "in all_strides:\n        if strides[a] == 0", "in all_strides[::-1]:\n        if strides[a] == 0",
    ),
    "the output alone decides": (
        "plan", "in all_strides:\n        if strides[a] == 0", "in all_strides[:1]:\n        if strides[a] == 0",
    ),
    "merge where the first operand can": ("plan", "if sizes and all(k[-1] ==", "if sizes and next(k[-1] =="),
    "merge where some operand can": ("plan", "if sizes and all(k[-1] ==", "if sizes and any(k[-1] =="),
    "a size of 1 is a dimension": ("plan", "        if shape[d] == 1:\n            continue\n", ""),
    "outer stride = outer size x inner stride": ("plan", "k[-1] == shape[d] * step", "k[-1] == sizes[-1] * step"),
    "the loop needs no offsets": ("walk", "body([at + sum(", "body([sum("),
    "the order of a walk is that of indices": (
        "walk", "sizes, strides = plan(shape, all_strides)", "sizes, strides = shape, all_strides",
    ),
}  # fmt: skip
