"""softmax(scale Q K^T + mask) V for many heads, without the matrix of all scores: only a block of it is ever in memory.

A block of queries meets one block of keys after the other. For each query there are kept the largest score so far and
the sum of exp(score - largest); where a block of keys brings a larger score, what was summed up before is scaled down.
Backward makes each block of weights again, as exp(score - logsumexp), and with D the dot product of a query's result
and its gradient,

    dV += W^T dO,   dW = dO V^T,   dS = scale W (dW - D),   dQ += dS K,   dK += dS^T Q.

BLAS multiplies; the loops here do what lies between two products. Several small heads share a call of both. A query
head may share its key head with others ("grouped queries"), so arrays are [batch, key head, query head of it, row, :].

Sources: Milakov, Gimelshein, "Online normalizer calculation for softmax", 2018; Dao, Fu, Ermon, Rudra, Re,
"FlashAttention: fast and memory-efficient exact attention with IO-awareness", 2022.
Read next: blas.py, which says what BLAS takes; normalize.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from redispatch.dispatch.tensor.operand import TARGET, Operand, memory, window

from ..engine.pool import parallel_for
from ..engine.primitives import maximum
from ..engine.program import integral
from ..engine.template import Template, load_mask, lowest, one, zero
from ..maths.vecmath import exp, log
from .blas import allow_threads, bare, multiply
from .reduce import REASSOCIATE

ROWS, COLUMNS = 64, 512  # queries and keys in a block
SHARED = 1 << 16  # scores that may be in memory at a time: so many small heads are worked on together
uint64 = np.uint64

# --- the loops -------------------------------------------------------------------------------------------------------

lanes = 32  # elements that a loop over vectors does at a time


@integral
def scale_and_mask(lo, hi, block, scale, scores, mask, mask_at):
    """scores = scale * scores + mask, for rows lo <= row < hi of blocks of several heads.

    block: rows, columns; how many queries of the last dimensions share a head, and heads a batch; the mask's steps from
    batch to batch, head to head, query head to query head, row to row, column to column.
    """
    rows, columns, repeats, heads = block[0], block[1], block[2], block[3]
    of_batch, of_head, of_repeat, of_row, of_column = block[4], block[5], block[6], block[7], block[8]
    for row in range(lo, hi):
        head, i = row // rows, row % rows
        group, repeat = head // repeats, head % repeats
        at = row * columns
        from_ = mask_at + group // heads * of_batch + group % heads * of_head + repeat * of_repeat + i * of_row
        if of_column == 1:
            for j in range(columns):
                scores[uint64(at + j)] = scores[uint64(at + j)] * scale + load_mask(mask[uint64(from_ + j)])
        else:
            for j in range(columns):
                added = load_mask(mask[uint64(from_ + j * of_column)])
                scores[uint64(at + j)] = scores[uint64(at + j)] * scale + added


def weigh(lo, hi, rows, columns, seen, scale, first, scores, tops, totals, factors):
    """Turns scores of heads lo <= head < hi into weights exp(scale * score - top); keeps account of tops and totals.

    seen: how many columns the first row sees; each row sees one more than the row before it.
    first: whether these are a row's first columns. factors: what results of earlier ones are to be multiplied with.

    A row that ends within a vector goes on to the vector's end with -inf, whose weight is 0: what is left over at the
    end of a loop is computed one by one, and an exponential at a time takes ten times as long.
    """
    for head in range(lo, hi):
        for i in range(rows):
            row = head * rows + i
            at, limit = row * columns, max(0, min(columns, seen + i))
            end = min(columns, (limit + lanes - 1) // lanes * lanes)
            before = lowest if first else tops[uint64(row)]
            for j in range(limit):
                scores[uint64(at + j)] *= scale
            for j in range(limit, end):
                scores[uint64(at + j)] = lowest
            top, total = before, zero
            for j in range(end):
                top = maximum(top, scores[uint64(at + j)])
            start = end
            if top == lowest:  # nothing was seen yet: there is no score to subtract
                start, factor = 0, one
            else:
                for j in range(end):
                    weight = exp(scores[uint64(at + j)] - top)
                    scores[uint64(at + j)] = weight
                    total += weight
                factor = one if first else exp(before - top)
            for j in range(start, columns):
                scores[uint64(at + j)] = zero
            factors[uint64(row)] = factor
            totals[uint64(row)] = total if first else totals[uint64(row)] * factor + total
            tops[uint64(row)] = top


def gather(lo, hi, width, sums, product, factors):
    """sums = factor * sums + product, for rows of this width."""
    for row in range(lo, hi):
        at, factor = row * width, factors[uint64(row)]
        for j in range(width):
            sums[uint64(at + j)] = sums[uint64(at + j)] * factor + product[uint64(at + j)]


@integral
def head_at(head, repeats, heads, steps, k):
    """Returns where a head of a block begins. steps[k:]: from batch to batch, head to head, query head to query head"""
    group, repeat = head // repeats, head % repeats
    return group // heads * steps[k] + group % heads * steps[k + 1] + repeat * steps[k + 2]


def finish(lo, hi, rows, width, repeats, heads, steps, tops, totals, sums, out, out_at, logs, logs_at):
    """Of heads lo <= head < hi: out = sums / total, logs = the logarithm of all exponentials' sum; 0 for a row that
    saw nothing. steps: of out and logs, five of each, as `Attention.steps` gives them.
    """
    row_step, step, log_step = steps[3], steps[4], steps[8]
    for head in range(lo, hi):
        to = out_at + head_at(head, repeats, heads, steps, 0)
        to_log = logs_at + head_at(head, repeats, heads, steps, 5)
        for i in range(rows):
            row, at = head * rows + i, to + i * row_step
            from_, top, total = row * width, tops[uint64(row)], totals[uint64(row)]
            blind = top == lowest
            factor = zero if blind else one / total
            logs[uint64(to_log + i * log_step)] = zero if blind else top + log(total)
            if step == 1:
                for j in range(width):
                    out[uint64(at + j)] = sums[uint64(from_ + j)] * factor
            else:
                for j in range(width):
                    out[uint64(at + j * step)] = sums[uint64(from_ + j)] * factor


def prepare(
    lo, hi, rows, width, repeats, heads, steps, grad, grad_at, out, out_at, logs, logs_at, row_logs, dots
):  # fmt: skip
    """Of heads lo <= head < hi the dot products of results and their gradients; and the logs, row after row.

    steps: of grad, out and logs.
    """
    for head in range(lo, hi):
        of_grad = grad_at + head_at(head, repeats, heads, steps, 0)
        of_out = out_at + head_at(head, repeats, heads, steps, 5)
        of_log = logs_at + head_at(head, repeats, heads, steps, 10)
        for i in range(rows):
            x, y, total = of_grad + i * steps[3], of_out + i * steps[8], zero
            if steps[4] == 1 and steps[9] == 1:
                for j in range(width):
                    total += grad[uint64(x + j)] * out[uint64(y + j)]
            else:
                for j in range(width):
                    total += grad[uint64(x + j * steps[4])] * out[uint64(y + j * steps[9])]
            dots[uint64(head * rows + i)] = total
            row_logs[uint64(head * rows + i)] = logs[uint64(of_log + i * steps[13])]


def weigh_again(lo, hi, rows, columns, seen, scale, factor, scores, grads, logs, dots):
    """scores become weights exp(scale * score - log) again, and gradients of weights those of scores before scaling.

    A row goes on to the end of a vector, as in `weigh`; what it should not see becomes 0 afterwards.
    """
    for head in range(lo, hi):
        for i in range(rows):
            row = head * rows + i
            at, limit = row * columns, max(0, min(columns, seen + i))
            shift, dot = logs[uint64(row)], dots[uint64(row)]
            for j in range(min(columns, (limit + lanes - 1) // lanes * lanes)):
                weight = exp(scores[uint64(at + j)] * scale - shift)
                scores[uint64(at + j)] = weight
                grads[uint64(at + j)] = weight * (grads[uint64(at + j)] - dot) * factor
            for j in range(limit, columns):
                scores[uint64(at + j)] = zero
                grads[uint64(at + j)] = zero


# "reassoc" for the sums over a row, see `reduce.py`
SCALE_AND_MASK = Template(scale_and_mask, "int64[] block", "x scale", "x[] scores", "mask[] mask", fastmath=REASSOCIATE)
WEIGH = Template(weigh, "x scale", "x[] scores tops totals factors", fastmath=REASSOCIATE)
WEIGH_AGAIN = Template(weigh_again, "x scale factor", "x[] scores grads logs dots", fastmath=REASSOCIATE)
GATHER = Template(gather, "x[] sums product factors", fastmath=REASSOCIATE)
FINISH = Template(finish, "int64[] steps", "x[] tops totals sums out logs", fastmath=REASSOCIATE)
PREPARE = Template(prepare, "int64[] steps", "x[] grad out logs row_logs dots", fastmath=REASSOCIATE)

# --- blocks ----------------------------------------------------------------------------------------------------------

Part = tuple[slice, slice]  # of the batch, and of the key heads


def grouped(x: Operand, repeats: int = 1) -> Callable[[np.ndarray, int], np.ndarray]:
    """Returns a function that views memory of x[batch, heads, ...] as [batch, key heads, query heads of each, ...]."""
    (batch, heads, *rest), (of_batch, of_head, *steps) = x.shape, x.strides
    shape, strides = (batch, heads // repeats, repeats, *rest), (of_batch, of_head * repeats, of_head, *steps)
    return lambda array, at: window(array, shape, strides, at)


class Given(NamedTuple):
    """The operands of a call: [batch, key head, query head of it, row, :] of each, and the memory of the mask."""

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    mask: tuple[Any, ...]  # the array and where it begins, or nothing


class Attention:
    """Decides calls with operands of such metadata: which part of the batch and of the heads is worked on at a time,
    and how a block is made.

    query[batch, heads, n, width], key and value[batch, key heads, m, width] in float32 or float64, as BLAS takes them;
    `mask` broadcasts to [batch, heads, n, m]; with `causal` query i sees keys 0 to i.
    """

    def __init__(self, query: Operand, key: Operand, value: Operand, mask: Operand | None, causal: bool, scale: float):
        heads, groups = query.shape[1], key.shape[1]
        self.repeats, self.dtype, self.causal, self.scale = heads // groups, query.dtype, causal, scale
        self.see_query, self.see_key, self.see_value = grouped(query, self.repeats), grouped(key), grouped(value)
        self.n, self.m, self.width = query.shape[2], key.shape[2], query.shape[3]
        self.mask = None if mask is None else self.spread(bare(mask))
        self.parts = self.split(query.shape[0], groups)

    def given(self, q: np.ndarray, q_at: int, k: np.ndarray, k_at: int, v: np.ndarray, v_at: int, *mask: Any) -> Given:
        """The arrays of a call."""
        return Given(self.see_query(q, q_at), self.see_key(k, k_at), self.see_value(v, v_at), mask)

    def steps(self, *operands: Operand) -> np.ndarray:
        """The steps of each in a block: batch to batch, head to head, query head to query head, row, column; or 0."""
        found: list[int] = []
        for x in operands:
            of_batch, of_head, *rest = x.strides
            found += [of_batch, of_head * self.repeats, of_head, *rest, *[0] * (2 - len(rest))]
        return np.array(found, np.int64)

    def heads(self, part: Part) -> tuple[tuple[int, int, int], int]:
        """(how many batches, key heads and query heads of each a part has, how many heads in all)"""
        b, g = part
        shape = b.stop - b.start, g.stop - g.start, self.repeats
        return shape, shape[0] * shape[1] * shape[2]

    def starts(self, strides: Sequence[tuple[int, ...]], places: Sequence[Any], part: Part, i: int) -> list[Any]:
        """The arrays, each with the place where row `i` of a part begins."""
        b, g = part
        found: list[Any] = []
        for steps, array, at in zip(strides, places[::2], places[1::2], strict=True):
            found += array, at + b.start * steps[0] + g.start * self.repeats * steps[1] + i * steps[2]
        return found

    def spread(self, mask: Operand) -> Operand:
        """The mask by its steps [batch, key head, query head of it, query, key]; 0 where it broadcasts."""
        missing = 4 - len(mask.shape)
        steps = [0 if size == 1 else step for size, step in zip(mask.shape, mask.strides, strict=True)]
        of_batch, of_head, of_row, of_column = [0] * missing + steps
        return mask._replace(strides=(of_batch, of_head * self.repeats, of_head, of_row, of_column))

    def split(self, batch: int, groups: int) -> list[Part]:
        """Parts so large that their blocks fill the memory that may be used; at least one key head each."""
        block = self.repeats * min(self.n, ROWS) * min(self.m, COLUMNS)
        heads = max(1, SHARED // block)
        some, many = max(1, heads // groups), min(heads, groups)
        return [
            (slice(b, min(b + some, batch)), slice(g, min(g + many, groups)))
            for b in range(0, batch, some)
            for g in range(0, groups, many)
        ]

    def run(self, work: Callable[..., None], *args: Any) -> None:
        """`work(part, *args)` for each part, on several threads if it is much."""
        allow_threads(0)  # each product is small; parts are shared out instead
        if len(self.parts) == 1 or TARGET.get() is not None:
            for part in self.parts:
                work(part, *args)
            return

        def some(lo: int, hi: int) -> None:
            for part in self.parts[lo:hi]:
                work(part, *args)

        most = self.parts[0]
        heads = (most[0].stop - most[0].start) * (most[1].stop - most[1].start) * self.repeats
        parallel_for(some, len(self.parts), (), heads * self.n * self.m * (8 + self.width // 4))

    def blocks_of(self, i: int, rows: int) -> list[tuple[int, int]]:
        """(first, how many) keys in each block that these queries see."""
        end = min(self.m, i + rows) if self.causal else self.m
        return [(j, min(COLUMNS, end - j)) for j in range(0, end, COLUMNS)]

    def scores(
        self, given: Given, part: Part, i: int, rows: int, j: int, columns: int, flat: np.ndarray
    ) -> tuple[Any, float]:
        """(a block of scores in this memory, by what they are still to be multiplied)."""
        b, g = part
        query, key = given.query[b, g, :, i : i + rows], given.key[b, g, :, j : j + columns]
        shape = (*query.shape[:3], rows, columns)
        block = flat[: query.shape[0] * query.shape[1] * self.repeats * rows * columns].reshape(shape)
        multiply(block, query, key.swapaxes(-1, -2))
        if self.mask is None:
            return block, self.scale
        mask, steps, (array, at) = self.mask, self.mask.strides, given.mask
        at += b.start * steps[0] + g.start * steps[1] + i * steps[3] + j * steps[4]
        table = np.array([rows, columns, self.repeats, shape[1], *steps], np.int64)
        loop = SCALE_AND_MASK(x=self.dtype, mask=mask.dtype)
        loop(0, block.size // columns, table, self.scale, flat, array, at)
        return block, 1.0

    def seen(self, i: int, j: int, columns: int) -> int:
        """The number of keys of the block from j on that the query i sees."""
        return i - j + 1 if self.causal else columns

    # forward -----------------------------------------------------------------------------------------------------

    def forward(self, out: Operand, logs: Operand) -> Callable[..., None]:
        """`f(out, at, logs, at, query, at, key, at, value, at)`, with the mask last where there is one."""
        steps, strides = self.steps(out, logs), (out.strides, logs.strides)

        def some(part: Part, given: Given, places: tuple[Any, ...]) -> None:
            """Fills in one part of the results."""
            b, g = part
            heads, count = self.heads(part)
            most = count * min(ROWS, self.n)
            flat, sums = memory(most * min(COLUMNS, self.m), self.dtype), memory(most * self.width, self.dtype)
            added = memory(most * self.width, self.dtype) if self.m > COLUMNS else sums
            tops, totals, factors = (memory(most, self.dtype) for _ in range(3))
            for i in range(0, self.n, ROWS):
                rows = min(ROWS, self.n - i)
                for j, columns in self.blocks_of(i, rows):
                    block, scale = self.scores(given, part, i, rows, j, columns, flat)
                    seen = self.seen(i, j, columns)
                    WEIGH(x=self.dtype)(0, count, rows, columns, seen, scale, j == 0, flat, tops, totals, factors)
                    target = (sums if j == 0 else added)[: count * rows * self.width]
                    product = target.reshape(*heads, rows, self.width)
                    multiply(product, block, given.value[b, g, :, j : j + columns])
                    if j > 0:
                        GATHER(x=self.dtype)(0, count * rows, self.width, sums, added, factors)
                at = self.starts(strides, places, part, i)
                sizes = rows, self.width, self.repeats, heads[1]
                FINISH(x=self.dtype)(0, count, *sizes, steps, tops, totals, sums, *at)

        return lambda *arrays: self.run(some, self.given(*arrays[4:]), arrays[:4])

    # backward ----------------------------------------------------------------------------------------------------

    def backward(
        self, of_query: Operand, of_key: Operand, of_value: Operand, grad: Operand, out: Operand, logs: Operand
    ) -> Callable[..., None]:
        """`f(of_query, at, of_key, at, of_value, at, grad, at, query, at, key, at, value, at, out, at, logs, at)`, with
        the mask last where there is one."""
        steps, strides = self.steps(grad, out, logs), (grad.strides, out.strides, logs.strides)
        see = [grouped(of_query, self.repeats), grouped(of_key), grouped(of_value), grouped(grad, self.repeats)]

        def some(part: Part, given: Given, views: list[np.ndarray], places: tuple[Any, ...]) -> None:
            """Fills in one part of the gradients.

            The last queries come first: they see all keys that any query sees, so what they give need not be added.
            """
            b, g = part
            to_query, to_key, to_value, of_out = (view[b, g] for view in views)
            heads, count = self.heads(part)
            most = count * min(ROWS, self.n)
            flat, flat_grads = (memory(most * min(COLUMNS, self.m), self.dtype) for _ in range(2))
            row_logs, dots = (memory(most, self.dtype) for _ in range(2))
            for i in range((self.n - 1) // ROWS * ROWS, -1, -ROWS):
                rows = min(ROWS, self.n - i)
                last, end = i + rows == self.n, 0
                at = self.starts(strides, places, part, i)
                sizes = rows, self.width, self.repeats, heads[1]
                PREPARE(x=self.dtype)(0, count, *sizes, steps, *at, row_logs, dots)
                queries, grads = given.query[b, g, :, i : i + rows], of_out[:, :, :, i : i + rows]
                for j, columns in self.blocks_of(i, rows):
                    end = j + columns
                    keys, values = given.key[b, g, :, j:end], given.value[b, g, :, j:end]
                    weights, scale = self.scores(given, part, i, rows, j, columns, flat)
                    of_weights = flat_grads[: weights.size].reshape(weights.shape)
                    multiply(of_weights, grads, values.swapaxes(-1, -2))
                    seen = self.seen(i, j, columns)
                    scales = scale, self.scale
                    WEIGH_AGAIN(x=self.dtype)(0, count, rows, columns, seen, *scales, flat, flat_grads, row_logs, dots)
                    product(of_weights, keys, to_query[:, :, :, i : i + rows], j == 0)
                    product(weights.swapaxes(-1, -2), grads, to_value[:, :, :, j:end], last)
                    product(of_weights.swapaxes(-1, -2), queries, to_key[:, :, :, j:end], last)
                if last and end < self.m:  # keys that no query sees
                    to_value[:, :, :, end:], to_key[:, :, :, end:] = 0, 0

        def backward(*arrays: Any) -> None:
            views = [sees(arrays[2 * k], arrays[2 * k + 1]) for k, sees in enumerate(see)]
            given = self.given(*arrays[8:14], *arrays[18:])
            self.run(some, given, views, (*arrays[6:8], *arrays[14:18]))

        return backward


def product(x: np.ndarray, y: np.ndarray, out: np.ndarray, first: bool) -> None:
    """out = x @ y if it is the first, else it is added; summed over query heads that share a head of `out`."""
    if x.shape[2] != out.shape[2]:
        (np.copyto if first else add)(out, (x @ y).sum(2, keepdims=True))
    else:
        multiply(out, x, y, not first)


def add(out: np.ndarray, added: np.ndarray) -> None:
    out += added


def blas_takes(x: Operand) -> bool:
    """Whether rows or columns of the matrices in an operand are dense, and do not overlap."""
    (n, m), (of_row, of_column) = x.shape[-2:], x.strides[-2:]
    return (of_column == 1 and of_row >= m) or (of_row == 1 and of_column >= n)
