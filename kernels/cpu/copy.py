"""Copying and converting between any two operands, putting several together, and filling one.

A copy is the elementwise loop whose scalar function is the identity, so that it broadcasts, converts and walks any
strides. On the way it may conjugate or negate what it copies. Read next: kernels/engine/convert.py
for the meaning of a conversion.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from redispatch.dispatch.tensor.dtypes import dtype_named
from redispatch.dispatch.tensor.geometry import contiguous_strides, is_contiguous, numel
from redispatch.dispatch.tensor.operand import DTYPES, ByTarget, Operand

from ..engine.compile import Entry, Kernel
from ..engine.convert import array_type
from ..engine.elementwise import Elementwise, Number
from ..engine.pool import SMALL, parallel_for, ready
from ..engine.template import Template, store_out


def identity(x):
    return x


def conjugate(x):
    return x.conjugate()


def negative(x):
    return -x


def negative_conjugate(x):
    return -x.conjugate()


def real_part(x):
    return x.real


def negative_real_part(x):
    return -x.real


def arange_loop(lo, hi, out, out_at, start, step):
    for i in range(lo, hi):
        out[uint64(out_at + i)] = store_out(start + i * step)


uint64 = np.uint64

_COPY = Elementwise("copy", identity)
_REAL = Elementwise("copy_real", real_part)
_CONJUGATE, _NEGATIVE = Elementwise("copy_conj", conjugate), Elementwise("copy_neg", negative)
_NEGATIVE_CONJUGATE = Elementwise("copy_neg_conj", negative_conjugate)
_NEGATIVE_REAL = Elementwise("copy_neg_real", negative_real_part)
ARANGE = Template(arange_loop, "out[] out", "number start step")


def copy(out: Operand, x: Operand, *, conj: bool = False, neg: bool = False) -> None:
    """Write `x`, broadcast to the shape of `out`, into `out`, converted to its dtype. They must not overlap partly.

    conj, neg: whether to write the conjugates, the negatives.
    """
    if moves_bits(out, x) and not neg and not conj:
        out, x = as_bits(out), as_bits(x)
    elementwise_for(out, x, conj, neg).run(out, x)


def ready_copy(out: Operand, x: Operand, *, conj: bool = False, neg: bool = False) -> Callable[..., object]:
    """Prepares `copy` for operands of such metadata: `f(out, out_at, x, x_at)`.

    The operands of the calls share no memory.
    """
    if moves_bits(out, x) and not neg and not conj:
        move = ready_copy(as_bits(out), as_bits(x))
        bits = BITS[dtype_named(out.dtype).itemsize]
        return lambda out, out_at, x, x_at: move(out.view(bits), out_at, x.view(bits), x_at)
    return elementwise_for(out, x, conj, neg).loop((out,), (x,), None).run


def moves_bits(out: Operand, x: Operand) -> bool:
    """Whether elements that are computed in another type are to be moved as they are."""
    return out.dtype == x.dtype and (out.dtype not in DTYPES or DTYPES[out.dtype].compute != out.dtype)


BITS = {1: "uint8", 2: "int16", 4: "int32"}


def as_bits(x: Operand) -> Operand:
    bits = BITS[dtype_named(x.dtype).itemsize]
    array: Any = x.array.view(bits) if isinstance(x.array, np.ndarray) else x.array  # a device's has no dtype
    return x._replace(dtype=bits, array=array)


def elementwise_for(out: Operand, x: Operand, conj: bool = False, neg: bool = False) -> Elementwise:
    """The loops that copy the one operand to the other."""
    is_complex, to = DTYPES[x.dtype].kind == "complex", DTYPES[out.dtype].kind
    if to == "bool":  # whether it is zero
        return _COPY
    if is_complex and to != "complex":
        return _NEGATIVE_REAL if neg else _REAL
    if conj and is_complex:
        return _NEGATIVE_CONJUGATE if neg else _CONJUGATE
    return _NEGATIVE if neg else _COPY


def fill(out: Operand, value: Number) -> None:
    """Write one number everywhere."""
    out = fillable(out, value)
    _COPY.run(out, value, dtype=out.dtype)


def fillable(out: Operand, value: Number) -> Operand:
    """`out`, or its bits: where nothing computes there is one number that can be written, zero."""
    if out.dtype in DTYPES:
        return out
    if value:
        raise NotImplementedError(f"\"fill_cpu\" not implemented for '{dtype_named(out.dtype).tensor_name}'")
    return as_bits(out)


def ready_fill(out: Operand, value: Number) -> Callable[..., object]:
    """Prepares `fill` for operands of such metadata and numbers of this type: `f(out, out_at, value)`."""
    plain = fillable(out, value)
    if plain is not out:
        run, bits = ready_fill(plain, value), BITS[dtype_named(out.dtype).itemsize]
        return lambda array, at, value: run(array.view(bits), at, value)
    return _COPY.loop((out,), (value,), out.dtype).run


def ready_cat(out: Operand, parts: Sequence[Operand], axis: int) -> Callable[..., object]:
    """Writes `parts` one behind the other along `axis`, for callers that remember it: `f(out, out_at, x, x_at, ...)`.

    A part of shape (0,) is left out. The operands of the calls share no memory.
    """
    rows = numel(out.shape[:axis])
    alike = all(x.dtype == out.dtype and is_contiguous(x.shape, x.strides) for x in (out, *parts))
    if alike and len(parts) <= MANY and numel(out.shape) < SMALL:
        widths = np.array([numel(x.shape[axis:]) if numel(x.shape) else 0 for x in parts], np.int64)
        return ready(_cat_entry(out.dtype, len(parts)), rows, (widths,), int(widths.sum()))
    copies, start = [], 0
    for i, x in enumerate(parts):
        if x.shape != (0,):
            copies.append((2 * i, start * out.strides[axis], ready_copy(out._replace(shape=x.shape), x)))
            start += x.shape[axis]

    def one_by_one(to: np.ndarray, to_at: int, *given: Any) -> None:
        for i, at, copy_part in copies:
            copy_part(to, to_at + at, given[i], given[i + 1])

    return one_by_one


MANY = 8  # parts that one loop may put together
_CATS = ByTarget()


def _cat_entry(dtype: str, count: int) -> Entry:
    """The loop that puts together so many dense parts, row by row: what lies in one stretch in each of them."""
    entry = _CATS.get((dtype, count))
    if entry is None:
        arrays = [f"x{k}, x{k}_at" for k in range(count)]
        lines = [f"def cat_{count}(lo, hi, widths, out, out_at, {', '.join(arrays)}):"]
        total = " + ".join(f"widths[{k}]" for k in range(count))
        lines += [f"    to = out_at + lo * ({total})", "    for i in range(lo, hi):"]
        for k in range(count):
            lines += [
                f"        for j in range(widths[{k}]):",
                f"            out[uint64(to + j)] = x{k}[uint64(x{k}_at + i * widths[{k}] + j)]",
                f"        to += widths[{k}]",
            ]
        kernel = Kernel("\n".join(lines) + "\n", name=f"cat_{count}", given={"uint64": np.uint64})
        entry = kernel.entry("int64", "int64", "int64[]", *[array_type(dtype), "int64"] * (count + 1))
        _CATS[dtype, count] = entry
    return entry


def arange(out: Operand, start: float, step: float) -> None:
    """Write start, start + step, ... into a 1-d `out`: integers exactly, floats computed in float64, rounded once."""
    (size,) = out.shape
    if size == 0:
        return
    number = "float64" if DTYPES[out.dtype].kind == "float" else "int64"
    if out.strides != contiguous_strides(out.shape):
        dense = Operand(np.empty(size, out.array.dtype), out.dtype, (size,), (1,))
        arange(dense, start, step)
        copy(out, dense)
        return
    first, by = (float(start), float(step)) if number == "float64" else (math.trunc(start), math.trunc(step))
    entry = ARANGE(name="arange", out=out.dtype, number=number)
    parallel_for(entry, size, (out.array, out.offset, first, by))
