"""Attention on a GPU without a matrix of scores in memory: softmax(scale Q Kᵀ + bias) V, and its gradients.

A block holds a tile of scores at a time, made from STEP columns of Q and K in shared memory, as in matmul.py. Forward,
it walks along the keys, and keeps for each row the largest score so far, the sum of exponentials relative to it, and
the sums of values, which shrink whenever a larger score comes. Of the row are kept the result and the logarithm of that
sum, from which backward makes the same tiles again: once along the keys, for the gradient of Q, and once along the
queries, for those of K and V. So every sum is one block's, in one order, and nothing is added atomically. Tiles that a
causal mask leaves empty are not visited.

A thread (i, j) of 16 x 16 has the rows i, i + 16, ... of a tile, and the columns j, j + 16, ...: HIGH and 4 of them;
of a result, as many columns as it takes 16 of. Dropout's choice for a score depends on seed, offset and the place of
the score alone (`choices`), so that all three kernels make the same.

Source: Dao, Fu, Ermon, Rudra, Ré, "FlashAttention", 2022; Milakov and Gimelshein, "Online normalizer calculation for
softmax", 2018.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined, assignment"
# Names like load_x, store_out, zero are put there by `Written`.

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache as once
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import Tensor, dtypes
from redispatch.dispatch.tensor.geometry import broadcast_strides
from redispatch.dispatch.tensor.operand import Operand
from redispatch.kernels.cpu.random import block as random_words
from redispatch.kernels.engine.convert import CONVERT, conversion
from redispatch.kernels.engine.primitives import maximum
from redispatch.kernels.engine.program import integral, steps
from redispatch.kernels.maths.vecmath import exp, log
from redispatch.kernels.ops import fused_attention
from redispatch.kernels.ops.fused_attention import SDPAParams, given_bias, has_widths, random_count, scale_of
from redispatch.kernels.ops.generators import drawn

from ..compiler import CUDA as cuda
from ..elementwise import as_argument, loading
from ..launch import Launch
from ..runtime.launch_recorder import refuse
from ..runtime.operands import operand
from ..runtime.rng_state import write_seed
from ..runtime.structured import SCRATCH, ByWork, Task, apart_from_target, define
from ..templates import Written, add, divided, in_turn, over_lanes

TILE, STEP = 64, 16
LINE = TILE + 1  # of shared memory: one more, so that a column lies in different banks
AT_ONCE = 512  # threads that a processor holds: 128 registers each
WIDEST = 256  # elements of a head: with more, a thread's sums would not fit into its registers
int64, uint64 = np.int64, np.uint64
ZERO, ONE, LOWEST = np.float32(0), np.float32(1), np.float32(-np.inf)


# --- what the kernels have in common ----------------------------------------------------------------------------------


@integral
def multiplied(sums, left, left_at, left_line, right, right_line, high, wide):
    """Adds the product of STEP lines of shared memory: sums[r, c] += left[left_at + s, i + 16 r] right[s, j + 16 c]."""
    thread = int64(cuda.threadIdx.x)
    i, j = thread >> 4, thread & 15
    for step in range(STEP):
        for r in range(high):
            x = left[uint64((left_at + step) * left_line + i + 16 * r)]
            for c in range(wide):
                sums[r * wide + c] += x * right[uint64(step * right_line + j + 16 * c)]


# Of what the 16 threads of a row have: the largest, NaN if one is, and the sum.
most_of_row, total_of_row = over_lanes(maximum, 16), over_lanes(add, 16)


def walks(load):
    """The two walks of all the kernels, for tensors of the dtype that `load` takes."""

    @integral
    def carried(part, line, x, at, step, top, count, start, size, high):
        """Rows `top` to `top + 16 high` of a matrix, its columns `start` to `start + STEP`, into columns of shared
        memory; a warp reads two rows."""
        thread = int64(cuda.threadIdx.x)
        i, j = thread >> 4, thread & 15
        more = count - top - i if start + j < size else int64(0)
        place = at + (top + i) * step + start + j
        for r in range(high):
            value = ZERO
            if 16 * r < more:
                value = load(x[place])
            place += 16 * step
            part[uint64(j * line + i + 16 * r)] = value

    @integral
    def scored(sums, left, right, high, a, a_at, a_row, a_top, a_count, b, b_at, b_row, b_top, b_count, size):
        """A tile of a bᵀ, of rows from `a_top` and `b_top` on."""
        for part in range(high * 4):
            sums[part] = ZERO
        start = int64(0)
        while start < size:
            carried(left, 16 * high + 1, a, a_at, a_row, a_top, a_count, start, size, high)
            carried(right, LINE, b, b_at, b_row, b_top, b_count, start, size, 4)
            cuda.syncthreads()
            multiplied(sums, left, 0, 16 * high + 1, right, LINE, high, 4)
            cuda.syncthreads()
            start += STEP

    @integral
    def weighed(sums, shares, right, high, wide, x, at, step, top, count, size):
        """Adds shares times the rows of a matrix from `top` on, up to TILE of them, as many as there are."""
        thread = int64(cuda.threadIdx.x)
        i, j = thread >> 4, thread & 15
        start = int64(0)
        while start < TILE and top + start < count:
            more = size - j if top + start + i < count else int64(0)
            place = at + (top + start + i) * step + j
            for c in range(wide):
                value = ZERO
                if 16 * c < more:
                    value = load(x[place + 16 * c])
                right[uint64(i * (16 * wide) + j + 16 * c)] = value
            cuda.syncthreads()
            multiplied(sums, shares, start, 16 * high + 1, right, 16 * wide, high, wide)
            cuda.syncthreads()
            start += STEP

    return scored, weighed


@integral
def choices(seed, offset, row, column, columns):
    """Four random words: for the columns `column`, + 16, + 32, + 48 of a row, which is counted over all heads. Of 64
    columns the first 16 ask."""
    groups = (columns + (TILE - 1)) // TILE
    place = (row * groups + column // TILE) * 16 + column % 16
    return random_words(uint64(seed[0]), uint64(offset[0]) + uint64(place))


@integral
def chosen_of_row(seed, offset, row, column, columns, limit):
    """Four bits: whether the scores of these columns are kept."""
    w0, w1, w2, w3 = choices(seed, offset, row, column, columns)
    most = uint64(limit)
    return int64(w0 < most) | int64(w1 < most) << 1 | int64(w2 < most) << 2 | int64(w3 < most) << 3


@integral
def chosen_along_rows(seed, offset, row, column, columns, limit, high):
    """A thread's choices in a tile with queries as rows, four bits a row. They are made before, so that the loop is
    short that uses them."""
    bits = int64(0)
    for r in range(high):
        bits |= chosen_of_row(seed, offset, row + 16 * r, column, columns, limit) << (4 * r)
    return bits


@integral
def chosen_along_columns(seed, offset, row, column, columns, limit, high):
    """Draws the mask with queries as columns: `high` bits of each, from those of the quarter of `column` on."""
    bits = int64(0)
    for c in range(4):
        found = chosen_of_row(seed, offset, row + 16 * c, column, columns, limit) >> (column // 16 % 4)
        for r in range(high):
            bits |= ((found >> r) & 1) << (4 * r + c)
    return bits


@integral
def no_choices(seed, offset, row, column, columns, limit, high):
    """In the place of both, without dropout."""
    return int64(0)


@integral
def factor_of(bits, place, factor):
    """Returns the factor of a weight: 0, where it is left out."""
    return factor if (bits >> place) & 1 == 1 else ZERO


@integral
def no_factor(bits, place, factor):
    return ONE


def adding(load):
    """A score with its bias."""

    @integral
    def biased(score, bias, at):
        return score + load(bias[at])

    return biased


@integral
def unbiased(score, bias, at):
    return score


# --- forward ----------------------------------------------------------------------------------------------------------


def attended(
    out, logs, seed, offset, q, k, v, bias, rows, columns, width, value_width, heads, together, reach, scale,
    limit, rescale, kept_rows, out_batch, out_head, out_row, q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch,
    v_head, v_row, bias_batch, bias_head, bias_row, bias_column,
):  # fmt: skip
    """A block makes 16 HIGH rows of the result of one head."""
    # One function: what has a name is called (`scored`, `weighed`); the rest shares the thread's registers and places.
    left = cuda.shared.array(LEFT, compute)
    right = cuda.shared.array(RIGHT, compute)
    shares = cuda.shared.array(SHARES, compute)
    sums = cuda.local.array(SUMS, compute)  # registers, as are the next: their loops are written out
    scores = cuda.local.array(SCORES, compute)
    most = cuda.local.array(HIGH, compute)
    totals = cuda.local.array(HIGH, compute)
    thread, block = int64(cuda.threadIdx.x), int64(cuda.blockIdx.x)
    i, j = thread >> 4, thread & 15
    down = (rows + (16 * HIGH - 1)) // (16 * HIGH)
    pair = divided(block, down)
    top = (down - 1 - (block - pair * down)) * (16 * HIGH)  # under a causal mask the longest rows come first
    batch = divided(pair, heads)
    head = pair - batch * heads
    q_at, k_at = batch * q_batch + head * q_head, batch * k_batch + divided(head, together) * k_head
    v_at, bias_at = batch * v_batch + divided(head, together) * v_head, batch * bias_batch + head * bias_head
    for part in range(SUMS):
        sums[part] = zero
    for r in range(HIGH):
        most[r] = lowest
        totals[r] = zero
    end = min(columns, top + (16 * HIGH - 1) + reach)
    for side in steps(int64(0), end, TILE):
        scored(scores, left, right, HIGH, q, q_at, q_row, top, rows, k, k_at, k_row, side, columns, width)
        choice = chosen(seed, offset, pair * rows + top + i, side + j, columns, limit, HIGH)
        for r in range(HIGH):
            row, highest = top + i + 16 * r, most[r]
            seen = (min(columns, row + reach) if row < rows else int64(0)) - side - j
            for c in range(4):
                value = lowest
                if 16 * c < seen:
                    column = side + j + 16 * c
                    at = bias_at + row * bias_row + column * bias_column
                    value = biased(scores[r * 4 + c] * number(scale), bias, at)
                scores[r * 4 + c] = value
                highest = maximum(highest, value)
            highest = most_of_row(highest)
            shift = zero if highest == lowest else highest  # as long as a row has seen nothing
            shrink = exp(most[r] - shift)
            most[r] = highest
            totals[r] *= shrink
            for c in range(WIDE):
                sums[r * WIDE + c] *= shrink
            for c in range(4):
                share = exp(scores[r * 4 + c] - shift)
                totals[r] += share
                shares[uint64((j + 16 * c) * PITCH + i + 16 * r)] = share * kept(choice, 4 * r + c, number(rescale))
        weighed(sums, shares, right, HIGH, WIDE, v, v_at, v_row, side, end, value_width)
    for r in range(HIGH):
        row = top + i + 16 * r
        total = total_of_row(totals[r])
        inverse = zero if total == zero else one / total
        if j == 0 and row < kept_rows:
            logs[pair * kept_rows + row] = zero if total == zero else most[r] + log(total)
        for c in range(WIDE):
            if row < rows and j + 16 * c < value_width:
                at = batch * out_batch + head * out_head + row * out_row + j + 16 * c
                out[at] = store_out(sums[r * WIDE + c] * inverse)


# --- backward ---------------------------------------------------------------------------------------------------------


def products_of_rows(
    deltas, grad, out, all_rows, rows, heads, width, grad_batch, grad_head, grad_row, out_batch, out_head, out_row
):
    """The sum of gradient times result, which softmax's derivative subtracts; a block takes 16 rows."""
    thread = int64(cuda.threadIdx.x)
    index, j = int64(cuda.blockIdx.x) * 16 + (thread >> 4), thread & 15
    pair = divided(index, rows)
    batch = divided(pair, heads)
    row, head = index - pair * rows, pair - batch * heads
    total = zero
    while j < width and index < all_rows:
        slope = load_grad(grad[batch * grad_batch + head * grad_head + row * grad_row + j])
        total += slope * load_out(out[batch * out_batch + head * out_head + row * out_row + j])
        j += 16
    total = total_of_row(total)
    if thread & 15 == 0 and index < all_rows:
        deltas[index] = total


def gradient_of_queries(
    grad_q, grad_bias, deltas, grad, q, k, v, bias, logs, seed, offset, rows, columns, width, value_width, heads,
    together, reach, scale, limit, rescale, kept_rows, wants_queries, wants_bias, gq_batch, gq_head, gq_row,
    gb_batch, gb_head, gb_row, grad_batch, grad_head, grad_row, q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch,
    v_head, v_row, bias_batch, bias_head, bias_row, bias_column,
):  # fmt: skip
    """A block makes 16 HIGH rows of the gradients of one head's queries and bias, walking along the keys."""
    left = cuda.shared.array(LEFT, compute)
    right = cuda.shared.array(RIGHT, compute)
    shares = cuda.shared.array(SHARES, compute)
    sums = cuda.local.array(SUMS, compute)
    scores = cuda.local.array(SCORES, compute)
    slopes = cuda.local.array(SCORES, compute)
    thread, block = int64(cuda.threadIdx.x), int64(cuda.blockIdx.x)
    i, j = thread >> 4, thread & 15
    down = (rows + (16 * HIGH - 1)) // (16 * HIGH)
    pair = divided(block, down)
    top = (down - 1 - (block - pair * down)) * (16 * HIGH)
    batch = divided(pair, heads)
    head = pair - batch * heads
    q_at, k_at = batch * q_batch + head * q_head, batch * k_batch + divided(head, together) * k_head
    v_at, bias_at = batch * v_batch + divided(head, together) * v_head, batch * bias_batch + head * bias_head
    grad_at = batch * grad_batch + head * grad_head
    for part in range(SUMS):
        sums[part] = zero
    end = columns if wants_bias == 1 else min(columns, top + (16 * HIGH - 1) + reach)
    for side in steps(int64(0), end, TILE):
        scored(scores, left, right, HIGH, q, q_at, q_row, top, rows, k, k_at, k_row, side, columns, width)
        scored(
            slopes, left, right, HIGH, grad, grad_at, grad_row, top, rows, v, v_at, v_row, side, columns, value_width
        )
        choice = chosen(seed, offset, pair * rows + top + i, side + j, columns, limit, HIGH)
        for r in range(HIGH):
            row, log_total, delta, seen = top + i + 16 * r, zero, zero, int64(0)
            if row < rows:
                log_total, delta = logs[pair * kept_rows + row], deltas[pair * rows + row]
                seen = min(columns, row + reach) - side - j
            for c in range(4):
                column, slope = side + j + 16 * c, zero
                if 16 * c < seen:
                    at = bias_at + row * bias_row + column * bias_column
                    value = biased(scores[r * 4 + c] * number(scale), bias, at)
                    slope = slopes[r * 4 + c] * kept(choice, 4 * r + c, number(rescale))
                    slope = exp(value - log_total) * (slope - delta)
                if wants_bias == 1 and row < rows and column < columns:
                    at = batch * gb_batch + head * gb_head + row * gb_row + column
                    grad_bias[at] = store_grad_bias(slope)
                shares[uint64((j + 16 * c) * PITCH + i + 16 * r)] = slope * number(scale)
        weighed(sums, shares, right, HIGH, WIDE, k, k_at, k_row, side, end, width)
    for r in range(HIGH):
        row = top + i + 16 * r
        for c in range(WIDE):
            if wants_queries == 1 and row < rows and j + 16 * c < width:
                at = batch * gq_batch + head * gq_head + row * gq_row + j + 16 * c
                grad_q[at] = store_grad_q(sums[r * WIDE + c])


def gradient_of_keys(
    grad_k, grad_v, deltas, grad, q, k, v, bias, logs, seed, offset, rows, columns, width, value_width, heads, together,
    reach, scale, limit, rescale, kept_rows, wants_keys, wants_values, gk_batch, gk_head, gk_row, gv_batch,
    gv_head, gv_row, grad_batch, grad_head, grad_row, q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head,
    v_row, bias_batch, bias_head, bias_row, bias_column,
):  # fmt: skip
    """A block makes 16 HIGH rows of the gradients of keys and values that `together` heads share, walking along the
    queries of each: tiles have keys as rows here, and queries as columns."""
    # One function, as `attended` is
    left = cuda.shared.array(LEFT, compute)
    right = cuda.shared.array(RIGHT, compute)
    shares = cuda.shared.array(SHARES, compute)
    of_keys = cuda.local.array(SUMS, compute)
    of_values = cuda.local.array(VALUE_SUMS, compute)
    scores = cuda.local.array(SCORES, compute)
    slopes = cuda.local.array(SCORES, compute)
    thread, block = int64(cuda.threadIdx.x), int64(cuda.blockIdx.x)
    i, j = thread >> 4, thread & 15
    across = (columns + (16 * HIGH - 1)) // (16 * HIGH)
    shared = divided(block, across)
    side = (block - shared * across) * (16 * HIGH)
    fewer = divided(heads, together)
    batch = divided(shared, fewer)
    of_key = shared - batch * fewer
    k_at, v_at = batch * k_batch + of_key * k_head, batch * v_batch + of_key * v_head
    for part in range(SUMS):
        of_keys[part] = zero
    for part in range(VALUE_SUMS):
        of_values[part] = zero
    for member in range(together):
        head = of_key * together + member
        q_at, grad_at = batch * q_batch + head * q_head, batch * grad_batch + head * grad_head
        bias_at, pair = batch * bias_batch + head * bias_head, batch * heads + head
        for top in steps(max(side - reach + 1, 0) // TILE * TILE, rows, TILE):  # queries before see none of these keys
            scored(scores, left, right, HIGH, k, k_at, k_row, side, columns, q, q_at, q_row, top, rows, width)
            scored(
                slopes,
                left,
                right,
                HIGH,
                v,
                v_at,
                v_row,
                side,
                columns,
                grad,
                grad_at,
                grad_row,
                top,
                rows,
                value_width,
            )
            choice = chosen(seed, offset, pair * rows + top + j, side + i, columns, limit, HIGH)
            for c in range(4):
                row, log_total, delta, seen = top + j + 16 * c, zero, zero, int64(0)
                if row < rows:
                    log_total, delta = logs[pair * kept_rows + row], deltas[pair * rows + row]
                    seen = min(columns, row + reach) - side - i
                for r in range(HIGH):
                    share, slope = zero, zero
                    if 16 * r < seen:
                        column = side + i + 16 * r
                        at = bias_at + row * bias_row + column * bias_column
                        value = biased(scores[r * 4 + c] * number(scale), bias, at)
                        share, factor = exp(value - log_total), kept(choice, 4 * r + c, number(rescale))
                        slope = share * (slopes[r * 4 + c] * factor - delta) * number(scale)
                        share *= factor
                    slopes[r * 4 + c] = slope
                    shares[uint64((j + 16 * c) * PITCH + i + 16 * r)] = share
            weighed(of_values, shares, right, HIGH, VALUE_WIDE, grad, grad_at, grad_row, top, rows, value_width)
            for c in range(4):
                for r in range(HIGH):
                    shares[uint64((j + 16 * c) * PITCH + i + 16 * r)] = slopes[r * 4 + c]
            weighed(of_keys, shares, right, HIGH, WIDE, q, q_at, q_row, top, rows, width)
    for r in range(HIGH):
        column = side + i + 16 * r
        for c in range(WIDE):
            if wants_keys == 1 and column < columns and j + 16 * c < width:
                at = batch * gk_batch + of_key * gk_head + column * gk_row + j + 16 * c
                grad_k[at] = store_grad_k(of_keys[r * WIDE + c])
        for c in range(VALUE_WIDE):
            if wants_values == 1 and column < columns and j + 16 * c < value_width:
                at = batch * gv_batch + of_key * gv_head + column * gv_row + j + 16 * c
                grad_v[at] = store_grad_v(of_values[r * VALUE_WIDE + c])


# --- from operands to launches ----------------------------------------------------------------------------------------


ATTENDED = Written(attended, ("out", "logs", "seed", "offset", "q", "k", "v", "bias"), AT_ONCE)
PRODUCTS = Written(products_of_rows, ("deltas", "grad", "out"))
READ = ("deltas", "grad", "q", "k", "v", "bias", "logs", "seed", "offset")
AFTER_BIAS = ("float32", "int64", "int64")  # the dtypes of the last three
OF_QUERIES = Written(gradient_of_queries, ("grad_q", "grad_bias", *READ), AT_ONCE)
OF_KEYS = Written(gradient_of_keys, ("grad_k", "grad_v", *READ), AT_ONCE)


class Attention:
    """A call, by how its operands look: query[batch, heads, rows, width], key[batch, shared, columns, width],
    value[batch, shared, columns, value_width], of one dtype, the elements of a row side by side; a bias that broadcasts
    to the scores, or none. The launches that it becomes are told addresses in the order in which `Written` names them.
    """

    def __init__(
        self, q: Operand, k: Operand, v: Operand, bias: Operand | None, causal: bool, scale: float, dropout: float
    ) -> None:
        self.batch, self.heads, self.rows, self.width = q.shape
        self.columns, self.value_width = k.shape[2], v.shape[3]
        self.shared, self.dtype, self.bias_dtype = k.shape[1], q.dtype, (q if bias is None else bias).dtype
        self.together = self.heads // max(self.shared, 1)
        self.steps = [*q.strides[:3], *k.strides[:3], *v.strides[:3]]
        self.bias_steps = [0] * 4
        if bias is not None:
            self.bias_steps = list(broadcast_strides(bias.shape, bias.strides, (*q.shape[:3], self.columns)))
        factor = 0.0 if dropout >= 1 else 1 / (1 - dropout)
        chances = round((1 - dropout) * 2**32), as_argument(factor, "float32")
        self.numbers = [
            self.rows, self.columns, self.width, self.value_width, self.heads, self.together,
            1 if causal else self.columns, as_argument(scale, "float32"), *chances,
        ]  # fmt: skip
        self.drops, self.adds = dropout > 0, bias is not None

    def given(self, high: int, wide: int, widest: int, chosen: Callable = chosen_along_rows) -> dict[str, object]:
        """Returns the names of a version of a kernel: of so many rows and columns a thread, and its widest walk."""
        scored, weighed = walks_of(self.dtype)
        line = 16 * high + 1
        shape = {"HIGH": high, "WIDE": wide, "PITCH": line, "SUMS": high * wide, "SCORES": high * 4}
        memory = {"LEFT": STEP * line, "RIGHT": STEP * max(LINE, 16 * widest), "SHARES": TILE * line}
        choice = {"chosen": chosen, "kept": factor_of} if self.drops else {"chosen": no_choices, "kept": no_factor}
        score = {"scored": scored, "weighed": weighed, "biased": adding_of(self.bias_dtype) if self.adds else unbiased}
        return {**shape, **memory, **choice, **score, "lowest": LOWEST}

    def forward(self, out: Operand, kept_rows: int) -> tuple[Launch, tuple[int, ...]]:
        """Returns the launch that fills `out` and, for so many rows of each head, the logarithms of sums."""
        wide = each(self.value_width)
        high = 2 if wide + 2 * self.drops + self.adds <= 8 else 1
        dtypes = (self.dtype, "float32", "int64", "int64", *[self.dtype] * 3, self.bias_dtype)
        rest = (*self.numbers, kept_rows, *out.strides[:3], *self.steps, *self.bias_steps)
        blocks = self.batch * self.heads * -(-self.rows // (16 * high))
        return ATTENDED.launch("float32", dtypes, blocks, **self.given(high, wide, wide)), rest

    def products(self, grad: Operand, out: Operand) -> tuple[Launch, tuple[int, ...]]:
        """Returns the launch that fills the float32 numbers, one for each row, that both gradients need."""
        count = self.batch * self.heads * self.rows
        rest = (count, self.rows, self.heads, self.value_width, *grad.strides[:3], *out.strides[:3])
        return PRODUCTS.launch("float32", ("float32", self.dtype, self.dtype), -(-count // 16)), rest

    def of_queries(
        self, to: Operand | None, to_bias: Operand | None, grad: Operand, kept_rows: int
    ) -> tuple[Launch, tuple[int, ...]]:
        """Returns the launch that fills the gradients of the query and of the bias, which has all scores' shape."""
        wide, high = each(self.width), 2
        dtypes = (self.dtype, self.bias_dtype, "float32", *[self.dtype] * 4, self.bias_dtype, *AFTER_BIAS)
        wanted = [int(to is not None), int(to_bias is not None)]
        steps = [*steps_of(to), *steps_of(to_bias), *grad.strides[:3], *self.steps, *self.bias_steps]
        rest, blocks = (
            (*self.numbers, kept_rows, *wanted, *steps),
            self.batch * self.heads * -(-self.rows // (16 * high)),
        )
        return OF_QUERIES.launch("float32", dtypes, blocks, **self.given(high, wide, wide)), rest

    def of_keys(
        self, to: Operand | None, to_value: Operand | None, grad: Operand, kept_rows: int
    ) -> tuple[Launch, tuple[int, ...]]:
        """Returns the launch that fills the gradients of key and value."""
        wide, value_wide = each(self.width), each(self.value_width)
        widest = max(wide, value_wide)
        high = 4 if widest <= 4 else 2 if widest <= 8 else 1
        dtypes = (self.dtype, self.dtype, "float32", *[self.dtype] * 4, self.bias_dtype, *AFTER_BIAS)
        given = self.given(high, wide, widest, chosen_along_columns)
        of_values = {"VALUE_WIDE": value_wide, "VALUE_SUMS": high * value_wide}
        wanted = [int(to is not None), int(to_value is not None)]
        steps = [*steps_of(to), *steps_of(to_value), *grad.strides[:3], *self.steps, *self.bias_steps]
        rest = (*self.numbers, kept_rows, *wanted, *steps)
        blocks = self.batch * self.shared * -(-self.columns // (16 * high))
        return OF_KEYS.launch("float32", dtypes, blocks, **given, **of_values), rest


def each(width: int) -> int:
    """The number of columns that a thread has of a row, which 16 share."""
    return max(1, -(-width // 16))


def steps_of(x: Operand | None) -> Sequence[int]:
    return (0, 0, 0) if x is None else x.strides[:3]


@once
def walks_of(dtype: str) -> tuple[Callable[..., None], Callable[..., None]]:
    """`walks` over tensors of a dtype."""
    return walks(loaded(dtype))


@once
def adding_of(dtype: str) -> Callable:
    """`adding` for biases of a dtype."""
    return adding(loaded(dtype))


def loaded(dtype: str) -> Callable:
    """Returns the function from the bits in memory to float32."""
    return in_turn([*loading(dtype), *conversion(dtype, "float32"), CONVERT["float32"]])


FLOATS = dtypes.float16, dtypes.bfloat16, dtypes.float32
OUT, LOGS, SEED, OFFSET, Q, K, V, BIAS = range(8)  # where forward's tensors stand, results first


def call_of(query: Tensor, key: Tensor, value: Tensor, bias: Any, dropout_p: float, is_causal: bool, scale: Any) -> Any:
    more: Operand | None = None if bias is None else operand(bias)
    given = operand(query), operand(key), operand(value), more
    return Attention(*given, is_causal, scale_of(query, scale), dropout_p)


def forward_work(
    outs: tuple[Tensor, ...], query: Tensor, key: Tensor, value: Tensor, attn_bias: Any, compute_log_sumexp: bool,
    dropout_p: float, is_causal: bool, scale: Any,
) -> list[Task]:  # fmt: skip
    out, logs = outs[:2]
    call = call_of(query, key, value, attn_bias, dropout_p, is_causal, scale)
    launch, rest = call.forward(operand(out), logs._shape[2])
    bias = BIAS if attn_bias is not None else Q  # read by nobody
    return [Task(launch, (OUT, LOGS, SEED, OFFSET, Q, K, V, bias), rest)]


def backward_work(
    outs: tuple[Tensor | None, ...], grad_out: Tensor, query: Tensor, key: Tensor, value: Tensor, attn_bias: Any,
    out: Tensor, logsumexp: Tensor, philox_seed: Tensor, philox_offset: Tensor, dropout_p: float, mask: Sequence[bool],
    is_causal: bool, scale: Any,
) -> list[Task]:  # fmt: skip
    grad, q, k, v, bias, result, logs, seed, offset = range(4, 13)
    attn_bias = given_bias(attn_bias)
    bias = bias if attn_bias is not None else q
    call = call_of(query, key, value, attn_bias, dropout_p, is_causal, scale)
    of_query, of_key, of_value, of_bias = (None if x is None else operand(x) for x in outs)
    slope, kept, scratch = operand(grad_out), logsumexp._shape[2], 4 * query._shape[:3].numel()
    read = (grad, q, k, v, bias, logs, seed, offset)
    tasks = [Task(*told(call.products(slope, operand(out)), (SCRATCH, grad, result)), scratch)]
    if of_query is not None or of_bias is not None:
        first = call.of_queries(of_query, of_bias, slope, kept)
        tasks.append(Task(*told(first, (0, 3, SCRATCH, *read)), scratch))
    if of_key is not None or of_value is not None:
        second = call.of_keys(of_key, of_value, slope, kept)
        tasks.append(Task(*told(second, (1, 2, SCRATCH, *read)), scratch))
    return tasks


def told(launch: Any, tensors: tuple[int, ...]) -> tuple[Any, tuple[int, ...], tuple[int, ...]]:
    return launch[0], tensors, launch[1]


class FusedAttention(ByWork):
    """Kernels for tensors whose rows are dense; what they do not take is computed by definition.

    Seed and offset of dropout lie on the device before the kernel runs, which reads them there, as backward will.
    """

    def __init__(self, op: Any, work: Any, definition: Any, dense: Sequence[str]) -> None:
        super().__init__(op, work, dense)
        self.definition: Any = apart_from_target(definition)
        at = self.op.names.index
        self.dropout_at, self.causal_at = at("dropout_p"), at("is_causal")
        self.three_at, self.bias_at = (at("query"), at("key"), at("value")), at("attn_bias")

    def to_copy(self, args: tuple[Any, ...]) -> tuple[int, ...]:
        given = [(i, args[i]) for i in self.dense if args[i] is not None]
        return tuple(i for i, x in given if x._shape[3] > 1 and x._stride[3] != 1)

    def is_taken(self, args: tuple[Any, ...]) -> bool:
        """Whether the kernels are for such arguments."""
        self.op.metas_function(*args)
        query, key, value = three = [args[i] for i in self.three_at]
        bias = args[self.bias_at]
        bias = bias if bias is None else given_bias(bias)
        call = SDPAParams(query, key, value, bias, args[self.dropout_at], args[self.causal_at], True)
        elements = all(x._shape.numel() for x in three)
        return elements and query._dtype in FLOATS and has_widths(call) is None

    def run_functional(self, *args: Any) -> Any:
        if not self.is_taken(args):
            return self.definition(*args)
        results = self.results(args)
        if self.op is fused_attention.efficient_op and args[self.dropout_at] > 0:
            refuse()  # the seed is written as a number
            write_seed(results[SEED], results[OFFSET], *drawn(None, random_count(*args[:2]), args[0]._device))
        self.launch(results, args)
        return results


define(
    FusedAttention(
        fused_attention.efficient_op,
        forward_work,
        fused_attention.efficient_definition,
        ("query", "key", "value"),
    )
)
define(
    FusedAttention(
        fused_attention.efficient_backward_op,
        backward_work,
        fused_attention.efficient_backward_definition,
        ("grad_out_", "query", "key", "value", "out"),
    )
)
