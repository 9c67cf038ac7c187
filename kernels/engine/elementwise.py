"""From one scalar function to loops over whole operands.

`Elementwise("bump", bump_scalar)` knows nothing but what happens to one element. From it come, for each combination of
dtypes that is met, four kinds of loop:

- flat: every array is dense and in the same order, so one index serves all;
- rows: any strides, but each innermost step is 0 or 1: the inner loop is flat, an outer one moves along;
- tiles: two arrays lie across each other, as when a transposed matrix is copied: eight columns at a time, so that the
  cache lines which one array crosses are still there when it comes to their next element;
- strided: any strides at all.

A layout says how each input is read: `a` array, `0` one element for the whole inner loop, `n` a Python number,
`=` through the output itself (in-place operators; LLVM only vectorises when it sees that they are one array).
Read next: `kernels/cpu/reduce.py`.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from redispatch.dispatch import dataclass
from redispatch.dispatch.tensor.geometry import Plan, broadcast_strides, plan
from redispatch.dispatch.tensor.operand import DTYPES, TARGET, ByTarget, Operand

from .compile import Entry, Kernel
from .convert import array_type, conversion, load, real_type, store
from .pool import is_small, nothing_to_do, ready
from .program import integral

Body = Callable | Mapping[str, Callable]
BLOCK = 1024  # elements that are looked at before they are computed, where a body has a usual case
Number = bool | int | float | complex


@integral
def offset_of(index, ndim, sizes, strides, operand):
    """The distance of element `index` (row-major, over the first `ndim` dimensions) from an operand's first element."""
    at = 0
    for d in range(ndim - 1, 0, -1):
        rest = index // sizes[d]
        at += (index - rest * sizes[d]) * strides[operand + d]
        index = rest
    if ndim > 0:  # the outermost index needs no division, which would take as long as 20 elements of a row
        at += index * strides[operand]
    return at


ACROSS = 8  # columns of a tile: no more cache lines than the first-level cache keeps of addresses 4096 bytes apart
BAND = 256  # rows of a tile


def usually(usual: Callable, *, when: Callable) -> Callable[[Callable], Callable]:
    """Decorates a scalar function: where `when` is true of all elements of a block, `usual` is computed in its place.

    For functions which a few arguments keep from being vectorised, such as large angles. Both take the same arguments.
    In other blocks each element has its own function, so that its bits do not depend on its neighbours.
    """

    def mark(body: Callable) -> Callable:
        body.usual, body.when = usual, when  # type: ignore[attr-defined]  # a mark on a function object
        return body

    return mark


def has_usual(body: Callable, dtype: str) -> bool:
    """Whether there are two functions, for usual and for other elements of a dtype."""
    return hasattr(body, "usual") and DTYPES[dtype].kind == "float"


MEANT_BY_BODIES = ("complex",)  # Python's own, which a loop must not hide from the bodies in its program
LAUNCHES = 4096  # remembered per operator; then it starts afresh


@dataclass(slots=True)
class Loop:
    """A decided call, ready to run: `run(out, out_at, x, x_at, ...)`, with flat arrays, offsets, numbers as they are.

    Nothing stands for an input that is the output itself. Where a single call of a compiled function is all there is to
    it, that is `entry(0, numel, out, out_at, ...)`: 30 ns less.
    """

    entry: Entry | None
    numel: int
    run: Callable[..., object]


class Elementwise:
    """`run(out, *inputs)` writes `body(*elements)` everywhere. The body is a scalar function in plain Python.

    body:    one function, or one per kind of the compute dtype: {"int": ..., "uint": ..., "float": ..., ...}. The name
             of a dtype comes before its kind.
    outputs: how many values the body returns; with more than one it returns a tuple.
    keep:    inputs that keep their own dtype when the others are converted, such as the condition of `where`.
    cost:    of one element, in cheap operations; decides from which size on several threads are worth it.
    """

    def __init__(self, name: str, body: Body, *, outputs: int = 1, keep: Sequence[int] = (), cost: int = 1) -> None:
        self.name = f"{name}_loop" if name in MEANT_BY_BODIES else name
        self.body, self.outputs, self.keep, self.cost = body, outputs, frozenset(keep), cost
        self._entries = ByTarget()
        self._loops: dict[tuple, tuple[Loop, str]] = {}  # by metadata: with the layout of the inputs

    def run(self, out: Operand | Sequence[Operand], *inputs: Operand | Number, dtype: str | None = None) -> None:
        """Compute into `out`, or several of one shape, which do not overlap. Inputs broadcast to that shape.

        dtype: the common compute dtype, to which array inputs are converted; needed with Python numbers. By default
        each input computes in its own. An input may be the very operand `out`, but must not overlap it otherwise.
        """
        outs = (out,) if isinstance(out, Operand) else tuple(out)
        first = outs[0]
        if type(first.array) is not np.ndarray and (target := TARGET.get()) is not None:
            return target.elementwise(self, outs, inputs, dtype)
        facts: list[object] = [dtype, *[o[1:4] for o in outs]]  # [1:4] is dtype, shape and strides
        for x in inputs:
            if isinstance(x, Operand):
                facts += (x[1:4], x.array is first.array and x.offset == first.offset)
            else:
                facts.append(None)
        key = tuple(facts)
        found = self._loops.get(key)
        if found is None:
            if len(self._loops) >= LAUNCHES:
                self._loops.clear()
            found = self._loops[key] = self.decide(outs, inputs, dtype)
        self.call(found, outs, inputs)

    def call(self, decided: tuple[Loop, str], outs: Sequence[Operand], inputs: Sequence) -> None:
        """Runs what `decide` has decided for such operands."""
        loop, layout = decided
        args: list[object] = []
        for o in outs:
            args += (o.array, o.offset)
        for x, how in zip(inputs, layout, strict=True):
            if not isinstance(x, Operand):
                args.append(x)
            elif how != "=":
                args += (x.array, x.offset)
        loop.run(*args)

    def loop(self, outs: tuple[Operand, ...], inputs: Sequence, dtype: str | None) -> Loop:
        """Returns the loop for all operands of such metadata."""
        return self.decide(outs, inputs, dtype)[0]

    def decide(self, outs: tuple[Operand, ...], inputs: Sequence, dtype: str | None) -> tuple[Loop, str]:
        """Chooses the loop and the layout, for all operands of such metadata."""
        shape, first = outs[0].shape, outs[0]
        arrays = [x for x in inputs if isinstance(x, Operand)]
        strides = [o.strides for o in outs] + [broadcast_strides(x.shape, x.strides, shape) for x in arrays]
        walk = plan(shape, tuple(strides))
        simple = all(step in (0, 1) for step in walk.steps) and all(walk.steps[: len(outs)])
        across = None if simple else crossing_dimension(walk)
        loop = "tiles" if across is not None else "strided" if not simple else "flat" if walk.flat else "rows"
        layout, passed, position = "", list(range(len(outs))), len(outs)
        for x in inputs:
            if not isinstance(x, Operand):
                layout += "n"
                continue
            if x.array is first.array and x.offset == first.offset and strides[position] == first.strides:
                layout += "="
            else:
                layout += "0" if simple and walk.steps[position] == 0 else "a"
                passed.append(position)
            position += 1
        tables: tuple = ()
        count, work, sizes = walk.numel, self.cost, walk.sizes
        if loop != "flat":  # the strides of the operands that the loop is given
            steps = walk.strides.reshape(-1, len(sizes))[passed]
            if across is not None:
                order = [d for d in range(len(sizes) - 1) if d != across] + [across, len(sizes) - 1]
                sizes, steps = sizes[order], steps[:, order]
                count = int(sizes[:-2].prod()) * -(-int(sizes[-2]) // BAND)
                work *= min(BAND, int(sizes[-2])) * int(sizes[-1])
            tables = (sizes, steps.ravel())
        dtypes = tuple(x.dtype if isinstance(x, Operand) else None for x in inputs)
        if not walk.numel:
            return Loop(None, 0, nothing_to_do), layout  # nothing is compiled
        small = is_small(count, work)
        entry = self.entry(loop, layout, tuple(o.dtype for o in outs), dtypes, dtype, nogil=not small)
        return Loop(None if tables or not small else entry, count, ready(entry, count, tables, work)), layout

    def contiguous_entry(
        self, out_dtypes: Sequence[str], in_dtypes: Sequence[str | None], dtype: str | None = None
    ) -> Entry:
        """The flat loop's entry point, for callers that know their operands to be dense and in one order.

        Call it as `entry(lo, hi, out, out_offset, x, x_offset, ...)`: outputs first, then inputs, each as its flat
        array and its offset, both of the dtypes given here; it computes elements lo <= i < hi. An input dtype of None
        is a Python number, passed as itself in its place (and needs `dtype`). No argument is checked. For an input that
        is the output itself, and for other layouts, see `entry`.
        """
        layout = "".join("n" if d is None else "a" for d in in_dtypes)
        return self.entry("flat", layout, tuple(out_dtypes), tuple(in_dtypes), dtype)

    def entry(
        self,
        loop: str,
        layout: str,
        outs: tuple[str, ...],
        ins: tuple[str | None, ...],
        dtype: str | None = None,
        *,
        nogil: bool = True,
    ) -> Entry:
        """The entry of a loop ("flat", "rows", "tiles", "strided") for a layout (see the head of this file) and dtypes.

        Calls look as in `contiguous_entry`, but nothing is passed for an input read through the output, and loops
        other than flat take `sizes` and `strides` (see `geometry.Plan`) between `hi` and the first output.
        """
        key = (loop, layout, outs, ins, dtype)
        entry = self._entries.get((*key, nogil))
        if entry is None:
            kernel = self._kernel(*key, nogil)
            try:
                entry = self._entries[(*key, nogil)] = kernel.entry(*self._signature(*key))
            except Exception as problem:
                if type(problem).__name__ != "TypingError":  # numba's, which is not imported for its sake
                    raise
                raise self.not_implemented(dtype or outs[0]) from problem
        return entry

    def source(self, loop: str, layout: str, outs: tuple, ins: tuple, dtype: str | None = None) -> str:
        """The text of the loop that `entry` compiles."""
        return self._kernel(loop, layout, outs, ins, dtype).source()

    def assembly(self, loop: str, layout: str, outs: tuple, ins: tuple, dtype: str | None = None) -> str:
        """Returns the assembly of the loop that `source` shows."""
        return self._kernel(loop, layout, outs, ins, dtype).assembly(*self._signature(loop, layout, outs, ins, dtype))

    def body_for(self, dtype: str) -> Callable:
        """Returns the scalar function for a compute dtype. NotImplementedError where it takes none such."""
        found = self.body if callable(self.body) else self.body.get(dtype) or self.body.get(DTYPES[dtype].kind)
        if found is None:
            raise self.not_implemented(dtype)
        return found

    def not_implemented(self, dtype: str) -> NotImplementedError:
        """Returns the error for a dtype that the scalar function does not take."""
        return NotImplementedError(f'"{self.name}" not implemented for {dtype}: its scalar function does not take such')

    def computing_dtype(self, position: int, own: str | None, dtype: str | None) -> str:
        """The dtype to which an input is converted; TypeError where nothing says it."""
        chosen = own if dtype is None or (position in self.keep and own is not None) else dtype
        if chosen is None:
            raise TypeError(f"{self.name}: a Python number needs dtype=, the dtype in which to compute")
        return chosen

    def _signature(self, loop: str, layout: str, outs: tuple, ins: tuple, dtype: str | None) -> tuple[str, ...]:
        signature = ["int64", "int64"] + ([] if loop == "flat" else ["int64[]", "int64[]"])
        for out in outs:
            signature += [array_type(out), "int64"]
        for position, (how, own) in enumerate(zip(layout, ins, strict=True)):
            if how == "n":
                signature.append(DTYPES[self.computing_dtype(position, own, dtype)].compute)
            elif how != "=":
                signature += [array_type(own), "int64"]
        return tuple(signature)

    def _kernel(self, loop: str, layout: str, outs: tuple, ins: tuple, dtype: str | None, nogil: bool = True) -> Kernel:
        computes = [self.computing_dtype(k, own, dtype) for k, own in enumerate(ins)]
        leading = dtype or next((c for k, c in enumerate(computes) if k not in self.keep), (*computes, *outs)[0])
        body = self.body_for(leading)
        sorts = has_usual(body, leading)
        text, given = _write_loop(self.name, loop, layout, outs, ins, computes, sorts)
        given["body"] = body
        if sorts:
            given |= {"usual": body.usual, "when": body.when, "BLOCK": BLOCK}  # type: ignore[attr-defined]  # see usually
        return Kernel(text, name=self.name, given=given, real=real_type(leading), nogil=nogil)


def indented(depth: int, lines: Sequence[str]) -> list[str]:
    return ["    " * depth + line for line in lines]


def crossing_dimension(walk: Plan) -> int | None:
    """The dimension in which an operand that crosses the innermost one is walked in smaller steps, if any does."""
    inner = len(walk.sizes) - 1
    if walk.sizes[inner] < ACROSS:
        return None
    for strides in walk.strides.reshape(-1, inner + 1):
        if strides[inner] > 1:
            closer = [d for d in range(inner) if 0 < strides[d] < strides[inner] and walk.sizes[d] >= ACROSS]
            if closer:
                return min(closer, key=strides.__getitem__)
    return None


def _write_loop(
    name: str, loop: str, layout: str, outs: tuple, ins: tuple, computes: Sequence[str], sorts: bool
) -> tuple[str, dict[str, object]]:
    """The loop's text and the functions it names."""
    # One function: all parts write of the same operands, and the loop's text reads from the top
    given: dict[str, object] = {"uint64": np.uint64}
    arrays = [f"out{k}" for k in range(len(outs))] + [f"x{k}" for k, how in enumerate(layout) if how in "a0"]
    parameters = ["lo", "hi"] + ([] if loop == "flat" else ["sizes", "strides"])
    for k in range(len(outs)):
        parameters += [f"out{k}", f"out{k}_at"]
    for k, how in enumerate(layout):
        parameters += [f"x{k}"] if how == "n" else [f"x{k}", f"x{k}_at"] if how in "a0" else []

    def named(function: Callable) -> str:
        given[function.__name__] = function
        return function.__name__

    def at(operand: str) -> str:
        start = f"{operand}_at" if loop == "flat" else f"{operand}_row"
        steps = {"tiles": f"i * {operand}_down + (j + k) * {operand}_step", "strided": f"i * {operand}_step"}
        return f"uint64({start} + {steps.get(loop, 'i')})"  # unsigned, else numba adds a test for negative indices

    def read(k: int, how: str) -> str:
        if how == "n":
            return f"x{k}"
        if how == "=":
            value = f"out0[{at('out0')}]"
        else:
            start = f"x{k}_at" if loop == "flat" else f"x{k}_row"
            value = f"x{k}[uint64({start})]" if how == "0" else f"x{k}[{at(f'x{k}')}]"
        loading = load(ins[k])
        chain = ([loading] if loading.__name__ != "as_is" else []) + conversion(ins[k], computes[k])
        for function in chain:
            value = f"{named(function)}({value})"
        return value

    once = [f"x{k}_value = {read(k, how)}" for k, how in enumerate(layout) if how == "0"]
    values = ", ".join(f"x{k}_value" if how == "0" else read(k, how) for k, how in enumerate(layout))
    stores = [named(store(dtype)) for dtype in outs]

    def work(body: str = "body") -> list[str]:
        result = f"{body}({values})"
        if sorts and body == "body":
            result = f"usual({values}) if when({values}) else {result}"
        if len(outs) == 1:
            return [f"out0[{at('out0')}] = {stores[0]}({result})"]
        lines = [", ".join(f"value{k}" for k in range(len(outs))) + f" = {result}"]
        return lines + [f"out{k}[{at(f'out{k}')}] = {stores[k]}(value{k})" for k in range(len(outs))]

    def inner_loop(first: str, last: str) -> list[str]:
        if not sorts:
            return [f"for i in range({first}, {last}):", *indented(1, work())]
        lines = [f"for start in range({first}, {last}, BLOCK):", f"    stop = min(start + BLOCK, {last})"]
        lines += ["    strange = 0", "    for i in range(start, stop):"]
        lines += [f"        strange += 0 if when({values}) else 1", "    if strange == 0:"]
        lines += ["        for i in range(start, stop):", *indented(3, work("usual"))]
        return [*lines, "    else:", "        for i in range(start, stop):", *indented(3, work())]

    lines = [f"def {name}({', '.join(parameters)}):"]
    if loop == "flat":
        lines += indented(1, once + inner_loop("lo", "hi"))
        return "\n".join(lines) + "\n", given
    given["offset_of"] = offset_of
    lines += ["    ndim = len(sizes)", "    inner = sizes[ndim - 1]"]
    if loop in ("tiles", "strided"):
        lines += [f"    {a}_step = strides[{k + 1} * ndim - 1]" for k, a in enumerate(arrays)]
    if loop == "tiles":
        lines += [f"    {a}_down = strides[{k + 1} * ndim - 2]" for k, a in enumerate(arrays)]
        lines += [f"    bands = (sizes[ndim - 2] + {BAND - 1}) // {BAND}", "    for band in range(lo, hi):"]
        lines += ["        block = band // bands", f"        first = (band - block * bands) * {BAND}"]
        lines += [f"        rows = min({BAND}, sizes[ndim - 2] - first)"]
        lines += [
            f"        {a}_row = {a}_at + offset_of(block, ndim - 2, sizes, strides, {k} * ndim) + first * {a}_down"
            for k, a in enumerate(arrays)
        ]
        lines += [f"        for j in range(0, inner - {ACROSS - 1}, {ACROSS}):", "            for i in range(rows):"]
        lines += [f"                for k in range({ACROSS}):", *indented(5, work())]
        lines += [f"        j = inner - inner % {ACROSS}", "        for i in range(rows):"]
        lines += ["            for k in range(inner - j):", *indented(4, work())]
        return "\n".join(lines) + "\n", given
    lines += ["    row = lo // inner", "    first = lo - row * inner", "    left = hi - lo", "    while left > 0:"]
    lines += ["        last = min(inner, first + left)"]
    lines += [
        f"        {a}_row = {a}_at + offset_of(row, ndim - 1, sizes, strides, {k} * ndim)" for k, a in enumerate(arrays)
    ]
    lines += [f"        {line}" for line in once]
    lines += indented(2, inner_loop("first", "last"))
    lines += ["        left -= last - first", "        row += 1", "        first = 0"]
    return "\n".join(lines) + "\n", given
