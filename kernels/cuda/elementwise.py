"""From one scalar function to CUDA kernels over whole tensors: the `Elementwise` of the CPU, for another machine.

Four forms, chosen by how the operands lie:

- contiguous: all in one order, without gaps. A thread computes as many elements as fill 16 bytes of the widest operand,
  and reads and writes each operand in one access; the few elements behind the last whole vector have a thread each.
  Where an address is not a multiple of the vector's bytes, a vector is one element.
- in rows: along the innermost dimension each operand is dense, or the same for all elements, and its rows begin aligned
  (a vector beside a matrix, a column beside one, slices). A thread takes 16 bytes of the widest operand along a row, or
  8 or 4 where rows are not so well aligned, and finds their place once for all of them, as the next form does.
- turned: some operands are dense along another dimension than the result, as where a matrix is transposed. A block
  carries squares of these into shared memory, reading them along the one, and computes along the other. A line there is
  one longer, so that a column lies in different banks.
- strided: anything else. A thread computes one element; its place in each operand is found from its number by dividing
  by the sizes, where a division is a multiplication with a number made beforehand and a shift (`magic`): GPUs have no
  instruction for division.

16-bit floats are converted in registers. Python numbers travel as the bits that they have in the kernel, so that no
double precision enters a kernel that asks for none. Read next: `reduce.py`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from redispatch.dispatch.tensor.geometry import broadcast_strides, plan
from redispatch.dispatch.tensor.operand import DTYPES, Operand

from ..engine.convert import CONVERT, conversion, load, real_type, store
from ..engine.elementwise import LAUNCHES, Elementwise, Number
from ..engine.primitives import double_of_bits, float_of_bits
from .compiler import Source
from .driver import Driver, Start
from .intrinsics import LOADS, STORES, load_1, store_1
from .launch import Address, Kernels, Launch, Memory

THREADS = 256
VECTOR = 16  # bytes of the widest access
SQUARE, SHARED = 32, 48 << 10  # lines of a square in shared memory, whose bytes a block may have so many of
MOST = 1 << 31  # elements that one launch can count: `magic`
int32, int64, uint8, uint64 = np.int32, np.int64, np.uint8, np.uint64


def bool_of_byte(x):
    return x != uint8(0)


def byte_of_bool(x):
    return uint8(1) if x else uint8(0)


def single_of_number(bits):
    return float_of_bits(int32(bits))


def storage_type(dtype: str) -> str:
    """The type that a kernel's address points to."""
    return "uint8" if dtype == "bool" else DTYPES[dtype].storage.name


def loading(dtype: str) -> list[Callable]:
    """The functions from what lies in memory to the compute type of `dtype`."""
    if dtype == "bool":
        return [bool_of_byte]
    found = load(dtype)
    return [] if found.__name__ == "as_is" else [found]


def storing(dtype: str) -> list[Callable]:
    """The functions from a computed number to what lies in memory."""
    return [store(dtype), byte_of_bool] if dtype == "bool" else [store(dtype)]


def number_from(compute: str) -> tuple[str, list[Callable]]:
    """The way of a Python number to a kernel that computes in this type: its parameter's type, and what restores it."""
    kind = DTYPES[compute].kind
    if compute == "float32":
        return "int64", [single_of_number]
    if compute == "float64":
        return "int64", [double_of_bits]
    if kind == "complex":
        raise NotImplementedError("a complex Python number cannot be passed to a CUDA kernel yet; make it a tensor")
    return "int64", [CONVERT[compute]]


_BITS = {
    "float32": (struct.Struct("<f"), struct.Struct("<i")),
    "float64": (struct.Struct("<d"), struct.Struct("<q")),
}


def as_argument(number: Number, compute: str) -> int:
    """The number as the int64 that `number_from` restores."""
    kind = DTYPES[compute].kind
    if kind == "float":
        try:
            return _BITS[compute][1].unpack(_BITS[compute][0].pack(number))[0]
        except (struct.error, OverflowError):  # more than float32 has
            with np.errstate(over="ignore"):
                given: Any = np.array(number, compute)  # rounds to inf
            return int(given.view(np.int32 if compute == "float32" else np.int64))
    assert not isinstance(number, complex)
    wrapped = int(number) & ((1 << 64) - 1)
    return wrapped - (1 << 64) if wrapped >> 63 else wrapped


def magic(divisor: int) -> tuple[int, int]:
    """(m, s) such that n // divisor == (n * m) >> s for all 0 <= n < 2^31.

    Source: Granlund and Montgomery, "Division by invariant integers using multiplication"; 2^s lies so far above the
    divisor that rounding m up costs less than 1 / divisor for all such n. n * m stays below 2^63.
    """
    shift = 31 + max(divisor - 1, 0).bit_length()
    return -(-(1 << shift) // max(divisor, 1)), shift  # of a dimension without elements nothing is counted


@dataclass(frozen=True, slots=True)
class Form:
    """The version of an elementwise kernel, beside its scalar function.

    layout: per input, `a` array, `r` array that is the same along a row, `t` one that is turned, `0` one element for
    all, `n` a Python number. dims: 0 for the contiguous form. With a width of more than 1 they are those of rows, whose
    sizes count vectors; where operands are turned, the sizes of the last two count squares.
    """

    width: int  # elements of a vector
    dims: int
    layout: str
    outs: tuple[str, ...]
    ins: tuple[str | None, ...]
    dtype: str | None


def source(op: Elementwise, form: Form) -> Source:
    """The kernel of a form. NotImplementedError for dtypes that the scalar function does not take."""
    computes = [op.computing_dtype(k, own, form.dtype) for k, own in enumerate(form.ins)]
    leading = form.dtype or next((c for k, c in enumerate(computes) if k not in op.keep), (*computes, *form.outs)[0])
    writer = _Writer(op, form, computes)
    how = "contiguous" if not form.dims else "turned" if "t" in form.layout else "strided"
    name = f"{op.name}_{how if form.width == 1 or not form.dims else 'in_rows'}"
    text = getattr(writer, how)(name)
    return Source(name, text, {**writer.given, "body": op.body_for(leading)}, writer.signature(), real_type(leading))


class _Writer:
    """Writes a kernel's text, and gathers the functions that it names."""

    def __init__(self, op: Elementwise, form: Form, computes: Sequence[str]) -> None:
        self.op, self.form, self.computes = op, form, computes
        self.given: dict[str, object] = {}
        self.arrays = [f"out{k}" for k in range(len(form.outs))]
        self.arrays += [f"x{k}" for k, how in enumerate(form.layout) if how in "art"]
        self.located = [*self.arrays, "down", "across"] if "t" in form.layout else self.arrays

    def named(self, functions: Sequence[Callable], value: str) -> str:
        for function in functions:
            self.given[function.__name__] = function
            value = f"{function.__name__}({value})"
        return value

    def parameters(self) -> list[str]:
        given = [f"out{k}" for k in range(len(self.form.outs))]
        return ["n", *given, *(f"x{k}" for k in range(len(self.form.layout)))]

    def signature(self) -> tuple[str, ...]:
        found = ["int64", *(f"{storage_type(dtype)}*" for dtype in self.form.outs)]
        for how, own, compute in zip(self.form.layout, self.form.ins, self.computes, strict=True):
            found.append(number_from(DTYPES[compute].compute)[0] if how == "n" else f"{storage_type(own or '')}*")
        for _ in range(self.form.dims):
            found += ["int64"] * (3 + len(self.located))
        if "t" in self.form.layout:
            found += ["int64"] * (2 + 2 * len(self.arrays))
        return tuple(found)

    def once(self) -> list[str]:
        """Writes what is the same for all elements: numbers, and operands of one element."""
        lines = []
        for k, how in enumerate(self.form.layout):
            if how == "n":
                lines.append(f"x{k}_value = {self.named(number_from(DTYPES[self.computes[k]].compute)[1], f'x{k}')}")
            elif how == "0":
                lines.append(f"x{k}_value = {self.converted(k, f'x{k}[0]')}")
        return lines

    def converted(self, k: int, value: str) -> str:
        own = self.form.ins[k]
        assert own is not None
        return self.named([*loading(own), *conversion(own, self.computes[k])], value)

    def element(self, read: Callable[[int], str]) -> str:
        """The body, called with elements that `read` names."""
        varies = "a" if self.form.width > 1 else "art"
        values = [
            self.converted(k, read(k)) if how in varies else f"x{k}_value" for k, how in enumerate(self.form.layout)
        ]
        return f"body({', '.join(values)})"

    def stored(self, k: int, value: str) -> str:
        return self.named(storing(self.form.outs[k]), value)

    def single(self, at: Callable[[str], str], read: Callable[[int], str] | None = None) -> list[str]:
        """One element: `at(operand)` is its place, and `read(k)` input k's, if that is another."""

        def there(k: int) -> str:
            return f"x{k}[{at(f'x{k}')}]"

        lines = [f"value = {self.element(read or there)}"]
        for k in range(len(self.form.outs)):
            part = f"value[{k}]" if len(self.form.outs) > 1 else "value"
            lines.append(f"out{k}[{at(f'out{k}')}] = {self.stored(k, part)}")
        return lines

    def contiguous(self, name: str) -> str:
        width = self.form.width
        lines = [f"def {name}({', '.join(self.parameters())}):"]
        lines += ["    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x"]
        lines += [f"    {line}" for line in self.once()]
        if width == 1:
            lines += ["    if i < n:", *(f"        {line}" for line in self.single(lambda operand: "i"))]
            return "\n".join(lines) + "\n"
        lines += [f"    vectors = n // {width}", "    if i < vectors:", f"        at = i * {width}"]
        lines += [f"        {line}" for line in self.vector(lambda operand: "at")]
        lines += ["    else:", f"        i += vectors * {width - 1}", "        if i < n:"]
        lines += [f"            {line}" for line in self.single(lambda operand: "i")]
        return "\n".join(lines) + "\n"

    def vector(self, at: Callable[[str], str]) -> list[str]:
        """A vector of elements, the first of which is at `at(operand)`."""
        width, outs = self.form.width, len(self.form.outs)
        self.given |= {f"load_{width}": LOADS[width], f"store_{width}": STORES[width]}
        read = [k for k, how in enumerate(self.form.layout) if how == "a"]
        lines = [f"x{k}_all = load_{width}(x{k}, {at(f'x{k}')})" for k in read]
        for j in range(width):
            lines.append(f"value{j} = {self.element(lambda k, j=j: f'x{k}_all[{j}]')}")  # type: ignore[misc]  # mypy gives up on a default argument
        for k in range(outs):
            part = f"[{k}]" if outs > 1 else ""
            values = ", ".join(self.stored(k, f"value{j}{part}") for j in range(width))
            lines.append(f"store_{width}(out{k}, {at(f'out{k}')}, ({values}))")
        return lines

    def strided(self, name: str) -> str:
        given, lines = self.parameters(), []
        for d in range(self.form.dims):
            given += [f"size{d}", f"magic{d}", f"shift{d}", *(f"{operand}_step{d}" for operand in self.located)]
        lines = [f"def {name}({', '.join(given)}):"]
        lines += ["    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x", "    if i < n:"]
        lines += [f"        {line}" for line in self.once()]
        self.given |= {"uint64": uint64, "int64": int64}
        lines += [f"        {line}" for line in places("i", self.form.dims, self.arrays)]
        if self.form.width > 1:
            same = [k for k, how in enumerate(self.form.layout) if how == "r"]
            lines += [f"        x{k}_value = {self.converted(k, f'x{k}[x{k}_at]')}" for k in same]
        write = self.single if self.form.width == 1 else self.vector
        lines += [f"        {line}" for line in write(lambda operand: f"{operand}_at")]
        return "\n".join(lines) + "\n"

    def turned(self, name: str) -> str:
        given, turned = self.parameters(), [k for k, how in enumerate(self.form.layout) if how == "t"]
        for d in range(self.form.dims):
            given += [f"size{d}", f"magic{d}", f"shift{d}", *(f"{operand}_step{d}" for operand in self.located)]
        given += ["height", "breadth", *(f"{operand}_{way}" for operand in self.arrays for way in ("below", "beside"))]
        lines = [f"def {name}({', '.join(given)}):"]
        lines += ["    thread, block = int64(cuda.threadIdx.x), int64(cuda.blockIdx.x)"]
        lines += ["    lane, warp = thread & 31, thread >> 5"]
        lines += [f"    {line}" for line in self.once()]
        self.given |= {"uint64": uint64, "int64": int64, "load_1": load_1, "store_1": store_1}
        lines += [f"    {line}" for line in places("block", self.form.dims, self.located)]
        for k in turned:
            kind = storage_type(self.form.ins[k] or "")
            lines += [f"    x{k}_square = cuda.shared.array({SQUARE * (SQUARE + 1)}, '{kind}', {VECTOR})"]
        for row in range(0, SQUARE, THREADS // SQUARE):
            lines += [f"    j = warp + {row}", "    if down_at + lane < height and across_at + j < breadth:"]
            for k in turned:
                element = f"x{k}[x{k}_at + lane * x{k}_below + j * x{k}_beside]"
                lines += [f"        store_1(x{k}_square, j * {SQUARE + 1} + lane, ({element},))"]
        lines += ["    cuda.syncthreads()"]

        def at(operand: str) -> str:
            return f"{operand}_at + j * {operand}_below + lane * {operand}_beside"

        def read(k: int) -> str:
            there = f"load_1(x{k}_square, lane * {SQUARE + 1} + j)[0]"  # `[]` would ask whether the place is negative
            return there if k in turned else f"x{k}[{at(f'x{k}')}]"

        for row in range(0, SQUARE, THREADS // SQUARE):
            lines += [f"    j = warp + {row}", "    if down_at + j < height and across_at + lane < breadth:"]
            lines += [f"        {line}" for line in self.single(at, read)]
        return "\n".join(lines) + "\n"


def places(index: str, dims: int, operands: Sequence[str], prefix: str = "") -> list[str]:
    """Lines that find `{operand}_at` of element `index`, counted row by row over `dims` sizes, outermost first."""
    lines = [f"rest = {index}"]
    lines += [f"{operand}_at = 0" for operand in operands]
    for d in range(dims - 1, 0, -1):
        lines += [f"above = (uint64(rest) * uint64({prefix}magic{d})) >> uint64({prefix}shift{d})"]
        lines += [f"here = rest - int64(above) * {prefix}size{d}"]
        lines += [f"{operand}_at += here * {operand}_{prefix}step{d}" for operand in operands]
        lines += ["rest = int64(above)"]
    return [*lines, *(f"{operand}_at += rest * {operand}_{prefix}step0" for operand in operands)] if dims else lines


def dimension_tables(sizes: Sequence[int], strides: Sequence[Sequence[int]]) -> list[int]:
    """The arguments that `places` reads: for each dimension size, magic, shift and each operand's stride."""
    given: list[int] = []
    for d, size in enumerate(sizes):
        given += [size, *magic(size), *(steps[d] for steps in strides)]
    return given


@dataclass(slots=True)
class Prepared:
    """A launch for all operands that look alike: how often, and what is told beside their addresses."""

    where: Launch
    numel: int  # elements, or vectors of rows
    tables: list[int]
    numbers: tuple[tuple[int, str], ...]  # (place among the values, type) of Python numbers

    width: int

    def start(self, memory: Memory, values: list[Any]) -> None:
        """Runs on outputs and inputs given as addresses, or as numbers; `values` is used up."""
        for place, compute in self.numbers:
            values[place] = as_argument(values[place], compute)
        self.where.start(memory, [self.numel, *values, *self.tables])

    def ready(self, driver: Driver, fit: Callable[[Any], Any]) -> Ready:
        """Prepares the kernel for one driver, and for callers with one output who pass numbers as they are."""
        mask = VECTOR - 1 if self.width > 1 else 0
        packs: list[Any] = [None] * (1 + max((place for place, _ in self.numbers), default=0))
        for place, compute in self.numbers:
            packs[place - 1] = packing(compute, fit)
        start, tables = self.where.on(driver), tuple(self.tables)
        if tables:
            launch = start

            def start(arguments: tuple[int | float, ...], stream: int) -> None:
                launch(arguments + tables, stream)

        return Ready(start, self.numel, tuple(packs), mask)


class Ready:
    """A launch of which only addresses and numbers are left to be said:

        ready.start((ready.numel, out, *inputs), stream)

    packs: by input, what makes an argument of a number. mask: the bits that no address may have.
    """

    __slots__ = ("start", "numel", "packs", "mask")

    def __init__(self, start: Start, numel: int, packs: tuple[Callable[[Any], int], ...], mask: int) -> None:
        self.start, self.numel, self.packs, self.mask = start, numel, packs, mask


def packing(compute: str, fit: Callable[[Any], Any]) -> Callable[[Any], int]:
    """Makes the function from a Python number to an argument of kernels that compute in this type."""
    if compute != "float32":
        return lambda number: as_argument(fit(number), compute)

    known: dict[Any, int] = {}  # numbers come again; 2, 2.0 and True have the same bits, but 0.0 and -0.0 have not

    def packed(number: Any) -> int:
        if type(number) is int and not number:
            return 0
        bits = known.get(number)
        if bits is None:
            bits = as_argument(number, compute)
            if number and len(known) < LAUNCHES:
                known[number] = bits
        return bits

    return packed


class OnCUDA:
    """The CUDA kernels of an `Elementwise`: `launch(outs, inputs, dtype)`; `prepared` for callers that remember it."""

    def __init__(self, op: Elementwise) -> None:
        self.op = op
        self.plans: dict[Any, Prepared] = {}
        self.kernels = Kernels(lambda form: source(op, form))

    def launch(self, outs: Sequence[Operand], inputs: Sequence[Operand | Number], dtype: str | None) -> None:
        """Computes into `outs`, operands whose arrays are `Memory` of a device. Inputs broadcast to their shape.

        Numbers are rounded to the type that is computed in. Operands without elements launch nothing.
        """
        if 0 in outs[0].shape:
            return
        values = [address_of(x) if isinstance(x, Operand) else x for x in (*outs, *inputs)]
        self.prepared(outs, inputs, dtype).start(memory_of(outs[0]), values)

    def prepared(self, outs: Sequence[Operand], inputs: Sequence[Operand | Number], dtype: str | None) -> Prepared:
        """The launch for operands that look so, and whose addresses are as much aligned. They have elements."""
        key = (dtype, *[(o.dtype, o.shape, o.strides, address_of(o) % VECTOR) for o in outs])
        key += tuple(
            (x.dtype, x.shape, x.strides, address_of(x) % VECTOR) if isinstance(x, Operand) else None for x in inputs
        )
        found = self.plans.get(key)
        if found is None:
            if len(self.plans) >= LAUNCHES:
                self.plans.clear()
            found = self.plans[key] = self._plan(outs, inputs, dtype)
        return found

    def _plan(self, outs: Sequence[Operand], inputs: Sequence[Operand | Number], dtype: str | None) -> Prepared:
        shape = outs[0].shape
        arrays = [x for x in inputs if isinstance(x, Operand)]
        strides = [o.strides for o in outs] + [broadcast_strides(x.shape, x.strides, shape) for x in arrays]
        walk = plan(shape, tuple(strides))
        if walk.numel >= MOST:
            raise NotImplementedError(f"{self.op.name}: {walk.numel} elements are more than one CUDA launch counts yet")
        dims = len(walk.sizes)
        steps = walk.strides.reshape(-1, dims)
        layout, passed, position = "", list(range(len(outs))), len(outs)
        for x in inputs:
            if not isinstance(x, Operand):
                layout += "n"
                continue
            layout += "0" if not steps[position].any() else "a" if steps[position][-1] else "r"
            if layout[-1] != "0":
                passed.append(position)
            position += 1
        operands = [*outs, *arrays]
        flat = dims == 1 and all(steps[k][0] == 1 for k in passed)
        dtypes = tuple(x.dtype if isinstance(x, Operand) else None for x in inputs)
        sizes, alike = walk.sizes.tolist(), steps[passed].tolist()
        if flat:
            width = vector_width([operands[k] for k in passed])
        else:
            width = row_width([operands[k] for k in passed], sizes, alike)
        if width == 1:
            layout = layout.replace("r", "a")  # one element a thread, whose place is found anyhow
            down = None if flat else turned_dim([operands[k] for k in passed], len(outs), sizes, alike)
            if down is not None:
                return self._turned(outs, inputs, dtype, layout, down, (sizes, alike))
        form = Form(width, 0 if flat else dims, layout, tuple(o.dtype for o in outs), dtypes, dtype)
        count = walk.numel if flat else walk.numel // width
        tables = [] if flat else dimension_tables(*in_vectors(sizes, alike, width))
        threads = walk.numel // width + (walk.numel % width if flat else 0)
        where = Launch(self.kernels[form], (-(-threads // THREADS), 1, 1), (min(THREADS, -(-threads // 32) * 32), 1, 1))

        return Prepared(where, count, tables, self._numbers(len(outs), layout, dtype), width)

    def _numbers(self, outs: int, layout: str, dtype: str | None) -> tuple[tuple[int, str], ...]:
        """The indices of Python numbers among the values, and the types that they are passed in."""
        given = [k for k, how in enumerate(layout) if how == "n"]
        return tuple((outs + k, DTYPES[self.op.computing_dtype(k, None, dtype)].compute) for k in given)

    def _turned(
        self,
        outs: Sequence[Operand],
        inputs: Sequence[Operand | Number],
        dtype: str | None,
        layout: str,
        down: int,
        walk: tuple[list[int], list[list[int]]],
    ) -> Prepared:
        """The launch of the turned form. down: the dimension along which some operands are dense."""
        dims = len(walk[0])
        order = [*(d for d in range(dims - 1) if d != down), down, dims - 1]
        sizes, strides = [walk[0][d] for d in order], [[steps[d] for d in order] for steps in walk[1]]
        arrays = [k for k, how in enumerate(layout) if how == "a"]
        ways = list(layout)
        for k, steps in zip(arrays, strides[len(outs) :], strict=True):
            ways[k] = "a" if steps[-1] in (0, 1) else "t"
        squares = [*sizes[:-2], *(-(-size // SQUARE) for size in sizes[-2:])]
        origins = [[*steps[:-2], *(step * SQUARE for step in steps[-2:])] for steps in strides]
        origins += [[0] * (dims - 2) + [SQUARE, 0], [0] * (dims - 1) + [SQUARE]]
        tables = [*dimension_tables(squares, origins), *sizes[-2:], *(step for steps in strides for step in steps[-2:])]
        dtypes = tuple(x.dtype if isinstance(x, Operand) else None for x in inputs)
        form = Form(1, dims, "".join(ways), tuple(o.dtype for o in outs), dtypes, dtype)
        where = Launch(self.kernels[form], (math.prod(squares), 1, 1), (THREADS, 1, 1))
        return Prepared(where, math.prod(sizes), tables, self._numbers(len(outs), layout, dtype), 1)


def memory_of(x: Operand) -> Memory:
    """Returns the memory that stands for the array in a device's operand."""
    memory: Any = x.array
    return memory


def address_of(x: Operand) -> Address:
    return memory_of(x).address + x.offset * DTYPES[x.dtype].storage.itemsize


def vector_width(operands: Sequence[Operand]) -> int:
    """The number of elements that a thread takes at once: 16 bytes of the widest operand, if all lie fit for it."""
    sizes = [DTYPES[x.dtype].storage.itemsize for x in operands]
    width = VECTOR // max(sizes)
    aligned = all(address_of(x) % (width * size) == 0 for x, size in zip(operands, sizes, strict=True))
    return width if aligned else 1


def row_width(operands: Sequence[Operand], sizes: Sequence[int], strides: Sequence[Sequence[int]]) -> int:
    """The number of elements that a thread takes along rows, the first operand being written; 1 where they do not lie
    so. A width divides the rows and the steps between them."""
    if strides[0][-1] != 1 or any(steps[-1] not in (0, 1) for steps in strides):
        return 1
    dense = [k for k, steps in enumerate(strides) if steps[-1] == 1]
    bytes_of = [DTYPES[operands[k].dtype].storage.itemsize for k in dense]
    width = VECTOR // max(bytes_of)
    whole = [sizes[-1], *(step for k in dense for step in strides[k][:-1])]
    while width > 1:
        aligned = all(address_of(operands[k]) % (width * size) == 0 for k, size in zip(dense, bytes_of, strict=True))
        if aligned and all(number % width == 0 for number in whole):
            break
        width //= 2
    return max(width, 1)


def turned_dim(
    operands: Sequence[Operand], outs: int, sizes: Sequence[int], strides: Sequence[Sequence[int]]
) -> int | None:
    """The dimension along which those operands are dense that are not so along the innermost one, where this is one
    dimension; None where operands do not lie so, or are too small for squares, or too many."""
    turned = [k for k, steps in enumerate(strides) if steps[-1] not in (0, 1)]
    if not turned or turned[0] < outs or any(steps[-1] != 1 for steps in strides[:outs]):
        return None
    ways = [d for d in range(len(sizes) - 1) if all(strides[k][d] == 1 for k in turned)]
    room = sum(DTYPES[operands[k].dtype].storage.itemsize for k in turned) * SQUARE * (SQUARE + 1)
    if len(ways) != 1 or min(sizes[ways[0]], sizes[-1]) < SQUARE // 2 or room > SHARED:
        return None
    return ways[0]


def in_vectors(sizes: Sequence[int], strides: Sequence[Sequence[int]], width: int) -> tuple[list[int], list[list[int]]]:
    """Sizes and strides of vectors along the innermost dimension, of those of elements."""
    return [*sizes[:-1], sizes[-1] // width], [[*steps[:-1], steps[-1] * width] for steps in strides]
