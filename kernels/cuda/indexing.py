"""Reading and writing at indices on a GPU: two kernels, one element a thread.

`take` reads x[i + index[i] * scale + ...] and `put` writes there, with as many indices as are given at once; which
operators these are is said in `../indexing.py`. Every index is looked at before it is used. One that is outside touches
no memory: the first of them writes itself into the device's error words, of which the host learns when it next waits.

Where several elements are written to one place, one of them stays; where they are combined (added, multiplied), each
does so by itself, by a compare-and-swap of the word that holds it: in any order, so that sums may differ in their last
bits. Read next: `runtime/async_errors.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from redispatch.dispatch.tensor.geometry import plan
from redispatch.dispatch.tensor.operand import DTYPES, Operand, Place

from ..cpu.indexing import COMBINE
from ..engine.convert import load, real_type, store
from ..engine.primitives import bits_of_double, bits_of_float, double_of_bits, float_of_bits
from ..engine.program import integral
from .compiler import Source
from .elementwise import MOST, THREADS, dimension_tables, places, storage_type
from .intrinsics import swap_if_equal
from .launch import Kernels, Launch

int32, int64, uint64 = np.int32, np.int64, np.uint64
WORDS = 4  # of an error: the operator's number, 0 for none; the index; the size of its dimension; which one that is


class Form(NamedTuple):
    """The version of a kernel. how: None reads."""

    dtype: str
    indices: tuple[tuple[str, bool], ...]  # dtype, and whether negative ones count from the end
    dims: int
    how: str | None
    skips: bool


@integral
def report(error, operator, index, size, dim):
    """Writes what is wrong into the error words, unless something is there already."""
    if swap_if_equal(error, 0, int64(0), operator) == 0:
        error[1] = index
        error[2] = size
        error[3] = dim


def source(form: Form) -> Source:
    """The kernel of a form."""
    wide = storage_type(form.dtype)
    name = "take" if form.how is None else f"put_{form.how}"
    combines = form.how not in (None, "replace")
    other = "out" if form.how is None else "source"
    arrays = [other, "x", *(f"index{k}" for k in range(len(form.indices)))]
    parameters = ["n", "error", "operator", "skip", other, "x", "x_first"]
    swapped = "int32" if DTYPES[form.dtype].storage.itemsize == 4 else "int64"
    types = ["int64", "int64*", "int64", "int64", f"{wide}*", f"{swapped}*" if combines else f"{wide}*", "int64"]
    for k, (dtype, _) in enumerate(form.indices):
        parameters += [f"index{k}", f"scale{k}", f"dim_size{k}", f"dim{k}"]
        types += [f"{dtype}*", "int64", "int64", "int64"]
    for d in range(form.dims):
        parameters += [f"size{d}", f"magic{d}", f"shift{d}", *(f"{array}_step{d}" for array in arrays)]
        types += ["int64"] * (3 + len(arrays))
    lines = [f"def {name}({', '.join(parameters)}):"]
    lines += ["    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x", "    if i < n:"]
    lines += [f"        {line}" for line in places("i", form.dims, arrays)]
    lines += ["        at, fits = x_first + x_at, True"]
    for k, (_, wraps) in enumerate(form.indices):
        lines += [f"        given = int64(index{k}[index{k}_at])", "        place = given"]
        if wraps:
            lines += ["        if place < 0:", f"            place += dim_size{k}"]
        skipping = "given != skip and " if form.skips else ""
        lines += [f"        if {skipping}(place < 0 or place >= dim_size{k}):", "            fits = False"]
        lines += [f"            report(error, operator, given, dim_size{k}, dim{k})"]
        lines += [f"        at += place * scale{k}"]
    if form.skips:
        lines += ["        fits = fits and given != skip"]
    functions: dict[str, object] = {"report": report, "int64": int64, "uint64": uint64}
    if form.how is None:
        functions["nothing"] = np.dtype(wide).type(0)
        lines += [
            "        if fits:",
            "            out[out_at] = x[at]",
            "        else:",
            "            out[out_at] = nothing",
        ]
    elif form.how == "replace":
        lines += ["        if fits:", "            x[at] = source[source_at]"]
    else:
        found, written = combining(form, functions)
        lines += ["        if fits:", *(f"            {line}" for line in swapping(found, written))]
    return Source(name, "\n".join(lines) + "\n", functions, tuple(types), real_type(form.dtype))


def combining(form: Form, functions: dict[str, object]) -> tuple[str, str]:
    """The bits of what was there as a number, and the number as bits: templates with {}."""
    dtype = form.dtype
    functions |= {"swap_if_equal": swap_if_equal, "combine": COMBINE[form.how or "sum"], "load_one": load(dtype)}
    functions |= {"store_one": store(dtype), "int32": int32}
    kind = storage_type(dtype)
    known: dict[str, tuple[Callable, Callable]] = {
        "float32": (float_of_bits, bits_of_float),
        "float64": (double_of_bits, bits_of_double),
    }
    if kind in known:
        of_bits, to_bits = known[kind]
        functions |= {of_bits.__name__: of_bits, to_bits.__name__: to_bits}
        return f"{of_bits.__name__}({{}})", f"{to_bits.__name__}({{}})"
    functions[kind] = getattr(np, kind)
    return f"{kind}({{}})", f"{'int64' if kind == 'int64' else 'int32'}({{}})"


def swapping(found: str, written: str) -> list[str]:
    """Lines that combine source[source_at] with x[at], again until no other thread came between."""
    bits = written.format(f"store_one(combine(load_one({found.format('old')}), load_one(source[source_at])))")
    return [
        "old = x[at]",
        "while True:",
        f"    seen = swap_if_equal(x, at, old, {bits})",
        "    if seen == old:",
        "        break",
        "    old = seen",
    ]


class Indexing:
    """Both kernels: `prepared(x, other, places, how, skip)` is a launch, and what it is told behind the error words."""

    def __init__(self) -> None:
        self.kernels = Kernels(source)

    def prepared(
        self, x: Operand, other: Operand, given: Sequence[Place], how: str | None, skip: int | None
    ) -> tuple[Launch, int, list[Any]] | None:
        """(launch, elements, arguments behind the operator's number); None where there are no elements."""
        if DTYPES[x.dtype].kind == "complex" and how not in (None, "replace"):
            if how != "sum":
                raise NotImplementedError(f"{how} of complex numbers at indices has no CUDA kernel yet")
            return self.prepared(*as_real(x, other, given), how, skip)
        walk = plan(other.shape, (other.strides, x.strides, *(place.positions.strides for place in given)))
        if walk.numel == 0:
            return None
        if walk.numel >= MOST:
            raise NotImplementedError(f"{walk.numel} indices are more than one CUDA launch counts yet")
        steps = walk.strides.reshape(2 + len(given), -1).tolist()
        form = Form(x.dtype, tuple((p.positions.dtype, p.wrap) for p in given), len(walk.sizes), how, skip is not None)
        item = DTYPES[x.dtype].storage.itemsize
        arguments: list[Any] = [0 if skip is None else skip, address(other), address(x) - x.offset * item, x.offset]
        for place in given:
            arguments += [address(place.positions), place.scale, place.size, place.dim]
        arguments += dimension_tables(walk.sizes.tolist(), steps)
        blocks = -(-walk.numel // THREADS)
        where = Launch(self.kernels[form], (blocks, 1, 1), (min(THREADS, -(-walk.numel // 32) * 32), 1, 1))
        return where, walk.numel, arguments


def address(x: Operand) -> int:
    memory: Any = x.array
    return memory.address + x.offset * DTYPES[x.dtype].storage.itemsize


def as_real(x: Operand, other: Operand, given: Sequence[Place]) -> tuple[Operand, Operand, list[Place]]:
    """Complex operands as real ones, with the two parts along one more dimension."""

    def parts(one: Operand) -> Operand:
        real = {"complex64": "float32", "complex128": "float64"}[one.dtype]
        strides = (*(2 * step for step in one.strides), 1)
        return Operand(one.array, real, (*one.shape, 2), strides, 2 * one.offset)

    def twice(place: Place) -> Place:
        index = place.positions
        wide = index._replace(shape=(*index.shape, 2), strides=(*index.strides, 0))
        return place._replace(positions=wide, scale=2 * place.scale)

    return parts(x), parts(other), [twice(place) for place in given]
