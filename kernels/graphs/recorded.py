"""An operator's own kernel as a step of a routine: the loops and the products that it calls, noted once.

    recorder = Recorder("convolution")
    x = recorder.block("x", 1000, "float32")            # an array in which nothing lies
    with on_target(recorder):
        kernel(...)                                     # of tensors over such arrays
    step = recorder.step(results)                       # lines() calls what the kernel has called

A kernel of Python decides by metadata what it calls. So it runs once, with a target (dispatch/tensor/operand.py) that
notes the calls: of which loop, with which numbers, with which part of which array. Arrays that the kernel makes itself,
tables of strides, are constants; memory to work in is that of the routine.

Note [What is noted]
Numpy may look at the arrays (`Noted`), of which it makes views, and do nothing else: a kernel that reads numbers, that
adds with numpy, that warns, or writes to what it has not asked the target for, is `Refused`, and stays a call of
Python's. So is one that reads memory before it has written there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from redispatch.dispatch import dataclass
from redispatch.dispatch.tensor.devices import ARRAYS, device
from redispatch.dispatch.tensor.operand import TARGET, Operand, Place, Scratch, Target

from ..cpu.blas import BY_ROWS, gemm
from ..cpu.indexing import NEVER, ready_put, ready_to_take
from ..engine.compile import Kernel
from ..engine.convert import array_type
from ..engine.pool import SMALL
from ..engine.program import Part, Program
from ..engine.translate import Unit, Unknown
from .bounds import BOUNDS, indices_of
from .product import WORK, factor, is_matrix
from .walk import Array

ON_PAPER = device("ve")  # of tensors whose memory is noted; the name is PyTorch's, of a machine that is not supported
LINE = 64


class Refused(Exception):
    """A kernel does what is not a call of loops."""


def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise Refused("numpy computes with elements")


class Noted(np.ndarray):
    """An array in which nothing lies. Note [What is noted]"""

    __array_ufunc__ = __array_function__ = __setitem__ = __iter__ = __float__ = __int__ = __bool__ = refuse
    copy = astype = tolist = item = fill = sort = argsort = take = put = choose = repeat = tobytes = nonzero = refuse

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return found if isinstance(found, Noted) else refuse(self)


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """An array's name, and the array: `count` elements, or a few more."""

    name: str
    array: Noted
    count: int


@dataclass(frozen=True, eq=False, slots=True)
class Spot:
    """A place in a block."""

    block: Block
    at: int


class NotedLoop:
    """A kernel's loop: a call of it is noted by the target that is set."""

    def __init__(self, kernel: Kernel, signature: tuple[str, ...]) -> None:
        self.kernel, self.signature = kernel, signature

    @cached_property
    def part(self) -> Part:
        """The loop, for a routine that calls it. Raises Refused for what only numba translates."""
        program = self.kernel.program()
        try:
            Unit().function(program, program.compiled[-1], self.signature, self.kernel.fastmath)
        except Unknown as problem:
            raise Refused(f"{self.kernel.name} is numba's to translate: {problem}") from None
        return Part(program, self.kernel.fastmath)

    @cached_property
    def writes(self) -> frozenset[int]:
        """The places of the arguments that it writes to, lo and hi counted."""
        program = self.part.program
        return written(program, program.compiled[-1])

    def whole(self, n: int, args: Sequence[Any], work: int) -> None:
        """A call for a range that could be shared out (pool.py)."""
        TARGET.get().launch(self, 0, n, args, n * work)  # type: ignore[union-attr]  # a recorder's

    def __call__(self, lo: int, hi: int, *args: Any) -> None:
        TARGET.get().launch(self, lo, hi, args, SMALL // 8)  # type: ignore[union-attr]  # about: it is not told


def written(program: Program, name: str) -> frozenset[int]:
    """The places of a function's parameters to whose elements it writes, itself or by functions that it calls."""
    tree = program.trees[name]
    found = set()
    for node in reached(tree, program):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            found.add(ast.unparse(node.value))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in program.trees:
            inner = written(program, node.func.id)
            found |= {ast.unparse(one) for k, one in enumerate(node.args) if k in inner}
    return frozenset(k for k, one in enumerate(tree.args.args) if one.arg in found)


def reached(tree: ast.AST, program: Program) -> Iterator[ast.AST]:
    """Yields the nodes of a tree, without those that stand behind a name for False."""
    yield tree
    skipped: list[ast.stmt] = []
    if isinstance(tree, ast.If):
        negated = isinstance(tree.test, ast.UnaryOp) and isinstance(tree.test.op, ast.Not)
        name = tree.test.operand if negated else tree.test  # type: ignore[attr-defined]  # a UnaryOp's
        known = program.namespace.get(name.id) if isinstance(name, ast.Name) else None
        skipped = [] if not isinstance(known, bool) else tree.orelse if known is not negated else tree.body
    for node in ast.iter_child_nodes(tree):
        if node not in skipped:
            yield from reached(node, program)


@dataclass(frozen=True, eq=False, slots=True)
class Launch:
    """A call of a loop. args: behind lo and hi, numbers of numpy, `Spot`s, and constants."""

    loop: NotedLoop
    lo: int
    hi: int
    args: tuple[Any, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Multiply:
    """Products of matrices of n x k and k x m, for all of `counts`: out = a @ b + beta * out. steps: of out, a and b by
    these; how: how a and b lie, and how far apart the rows of a, b and out are."""

    dtype: str
    sizes: tuple[int, int, int]
    counts: tuple[int, ...]
    spots: tuple[Spot, Spot, Spot]
    steps: tuple[tuple[int, ...], ...]
    how: tuple[int, ...]
    beta: float


@dataclass(frozen=True, eq=False, slots=True)
class Stop:
    """The routine ends here where an index is beyond its array: `pick` is its number."""

    pick: int


class Recorder(Target):
    """Notes one call of an operator's kernel. pick: is told of an index (dim, size); returns its number."""

    def __init__(self, name: str, pick: Callable[[int, int], int] = lambda dim, size: 0) -> None:
        self.name, self.pick = name, pick
        self.blocks: list[Block] = []
        self.ready: set[Block] = set()  # in which there is something
        self.given: set[Block] = set()
        self.made: list[Launch | Multiply | Stop] = []
        self.work = 0

    # Memory -----------------------------------------------------------------------------------------------------------

    def block(self, name: str, count: int, storage: Any) -> Noted:
        """An array of a name, whose elements the kernel is given."""
        made = self.fresh(name, count, storage)
        self.given.add(self.blocks[-1])
        self.ready.add(self.blocks[-1])
        return made

    def fresh(self, name: str, count: int, storage: Any) -> Noted:
        """An array that begins at a line of the cache."""
        storage = np.dtype(storage)
        count = max(int(count), 1)
        raw = np.empty(count * storage.itemsize + LINE, np.uint8)
        skip = -raw.ctypes.data % LINE
        array = raw[skip : skip + count * storage.itemsize].view(storage).view(Noted)
        self.blocks.append(Block(name, array, count))
        return array

    def memory(self, count: int, dtype: Any) -> Noted:
        return self.fresh(f"{self.name}_memory{len(self.blocks)}", count, dtype)

    def numbers(self, x: Operand) -> NoReturn:
        raise Refused("the kernel decides by numbers")

    def spot(self, array: np.ndarray) -> Spot:
        """The place where an array begins."""
        address = array.__array_interface__["data"][0]
        for block in self.blocks:
            size = block.array.itemsize
            at, rest = divmod(address - block.array.__array_interface__["data"][0], size)
            if 0 <= at < block.count:
                if rest or array.dtype != block.array.dtype:
                    raise Refused(f"{block.name} is read as {array.dtype}")
                return Spot(block, at)
        raise Refused("an array is a copy of numpy's")

    # Calls ------------------------------------------------------------------------------------------------------------

    def entry(self, kernel: Kernel, signature: tuple[str, ...]) -> Callable[..., Any]:
        key = ("noted", *signature)
        found: Any = kernel.entries.get(key)
        if found is None:
            found = kernel.entries[key] = NotedLoop(kernel, signature)
        return found

    def launch(self, loop: NotedLoop, lo: int, hi: int, args: Sequence[Any], work: int) -> None:
        """Notes a call of a loop."""
        if hi <= lo:
            return
        taken: list[Any] = []
        for k, (given, kind) in enumerate(zip(args, loop.signature[2:], strict=True), 2):
            if not kind.endswith("[]"):
                taken.append(np.dtype(kind).type(given))
                continue
            writes = k in loop.writes
            if isinstance(given, Scratch):
                given = self.memory(given.each, given.dtype)
            if array_type(given.dtype.name) != kind:
                raise Refused(f"{loop.kernel.name} takes {kind}, and is given {given.dtype}")
            if isinstance(given, Noted):
                taken.append(self.touched(self.spot(given), writes))
            elif writes:
                raise Refused(f"{loop.kernel.name} writes to memory that is not the routine's")
            else:
                taken.append(np.array(given))  # a copy: the constant as it is now
        _ = loop.part
        self.made.append(Launch(loop, lo, hi, tuple(taken)))
        self.work += work

    def touched(self, spot: Spot, writes: bool) -> Spot:
        """The place, which is read, or written to. Raises Refused where that may not be."""
        if writes and spot.block in self.given:
            raise Refused(f"{spot.block.name} is written to")
        if not writes and spot.block not in self.ready:
            raise Refused(f"{spot.block.name} is read before it is written")
        self.ready.add(spot.block)
        return spot

    def multiply(self, out: np.ndarray, a: np.ndarray, b: np.ndarray, add: bool) -> None:
        (n, k), m, counts, dtype = a.shape[-2:], b.shape[-1], out.shape[:-2], out.dtype.name
        if a.dtype != b.dtype or a.dtype != out.dtype or gemm(dtype) is None or 0 in (n, k, m):
            raise Refused(f"a product of {a.dtype}")
        out, a, b = (one.view(np.ndarray) for one in (out, a, b))
        a, b = (np.broadcast_to(one, (*counts, *one.shape[-2:])) for one in (a, b))
        steps = [[step // out.itemsize for step in one.strides] for one in (out, a, b)]
        (down, across), ways = steps[0][-2:], []
        for one, step in zip((a, b), steps[1:], strict=True):
            if not is_matrix(one.shape[-2:], step[-2:]):
                raise Refused("matrices that are not for BLAS")
            ways.append(factor(Array("", dtype, (0, *step[-2:])), *one.shape[-2:]))
        if not ((across == 1 or m == 1) and (down >= m or n == 1)):
            raise Refused("a product that does not lie by rows")
        spots = self.spot(out), self.spot(a), self.spot(b)
        for spot in spots[1:] if not add else spots:
            self.touched(spot, False)
        self.touched(spots[0], True)
        how = (ways[0][0], ways[1][0], ways[0][1], ways[1][1], max(down, m))
        own = tuple(tuple(step[:-2]) for step in steps)
        self.made.append(Multiply(dtype, (n, k, m), counts, spots, own, how, 1.0 if add else 0.0))
        self.work += int(np.prod(counts)) * n * k * m // WORK

    def elementwise(self, op: Any, outs: Sequence[Operand], inputs: Sequence[Any], dtype: str | None) -> None:
        op.call(op.decide(tuple(outs), inputs, dtype), outs, inputs)

    def reduce(self, reduction: Any, out: Operand, x: Operand, dims: Sequence[int]) -> None:
        reduction.ready(out, x, dims)(out.array, out.offset, x.array, x.offset)

    # Indices ----------------------------------------------------------------------------------------------------------

    def take(self, out: Operand, x: Operand, places: Sequence[Place]) -> None:
        (place,) = self.checked(places, None)
        arrays = (one for each in (out, place.positions, x) for one in (each.array, each.offset))
        taking = ready_to_take(out, place.positions, x, place.size)
        taking(*arrays, place.scale, place.size, self.memory(1, np.int64))

    def put(self, x: Operand, source: Operand, places: Sequence[Place], how: str, skip: int | None = None) -> None:
        (place,) = self.checked(places, skip)
        arrays = (one for each in (source, place.positions, x) for one in (each.array, each.offset))
        ready_put(x, place.positions, source, place.scale, how, NEVER if skip is None else skip)(*arrays)

    def checked(self, places: Sequence[Place], skip: int | None) -> Sequence[Place]:
        """Notes that indices are looked at. Raises Refused for several in one call, and for those from the end."""
        if len(places) != 1 or places[0].wrap:
            raise Refused("several indices, or such as count from the end")
        (place,) = places
        number = self.pick(place.dim, place.size)
        index = indices_of(place.positions)
        sizes = np.array(index.shape or (1,), np.int64)
        steps = np.array(index.strides or (0,), np.int64)
        status = self.status()
        loop = BOUNDS(index=index.dtype)
        args = (sizes, steps, index.array, index.offset, place.size, number, status)
        loop(0, int(sizes.prod()), *args)
        self.made.append(Stop(number))
        return places

    def status(self) -> Noted:
        """The array that says which index was beyond its array: the routine's own."""
        for block in self.blocks:
            if block.name == "status":
                return block.array
        found = self.fresh("status", 2, np.int64)
        self.ready.add(self.blocks[-1])
        return found

    def do_not_cache(self) -> None:
        raise Refused("the kernel does more than its loops do")

    # The step ---------------------------------------------------------------------------------------------------------

    def step(self, results: dict[str, np.ndarray]) -> Recorded:
        """Returns what was noted, of a kernel with these results.

        Raises Refused where one is no array that it has written.
        """
        names = {}
        for name, array in results.items():
            spot = self.spot(array)
            if spot.at or spot.block in self.given or spot.block not in self.ready or spot.block in names:
                raise Refused("a result is no memory of its own")
            names[spot.block] = name
        return Recorded(self, names)


class Recorded:
    """A step of a routine: calls of loops and products. names: of the blocks that are results."""

    def __init__(self, recorder: Recorder, results: dict[Block, str]) -> None:
        self.name, self.made, self.work = recorder.name, recorder.made, recorder.work
        self.names = {block: results.get(block, block.name) for block in recorder.blocks}
        own = {block for block in recorder.blocks if block not in recorder.given and block not in results}
        used = {spot.block for one in self.made for spot in spots_of(one)} | set(results)
        self.memories = {
            block.name: (block.array.dtype.name, block.count) for block in own & used if block.name != "status"
        }
        self.has_status = any(block.name == "status" for block in recorder.blocks)
        outside = [block for block in recorder.blocks if block in used and block.name != "status"]
        self.arrays = [Array(self.names[block], block.array.dtype.name, ()) for block in outside]
        self.has_products = any(isinstance(one, Multiply) for one in self.made)

    def lines(
        self,
        word: Callable[[str, Any], str],
        at: Callable[[str], tuple[str, str]],
        table: Callable[[np.ndarray], str],
    ) -> Iterator[str]:
        """The text. word: the name of a function or number, which is to be called so; at: the words for an array and
        where it begins; table: the word for a constant array."""

        def place(spot: Spot, more: Sequence[str] = ()) -> str:
            array, begin = at(self.names[spot.block]) if spot.block.name != "status" else ("status", "0")
            terms = [term for term in (begin, str(spot.at), *more) if term != "0"]
            return f"{array}[{' + '.join(terms)} :]" if terms else array

        for one in self.made:
            if isinstance(one, Stop):
                yield "if status[0] != 0:"
                yield "    return"
            elif isinstance(one, Multiply):
                external: Any = gemm(one.dtype)
                yield from product_lines(one, word(external.symbol.rpartition(".")[2], external), place)
            else:
                words = [
                    place(given) if isinstance(given, Spot) else table(given) if given.ndim else number(given, word)
                    for given in one.args
                ]
                name = word(one.loop.kernel.name, one.loop.part)
                yield f"{name}({', '.join([str(one.lo), str(one.hi), *words])})"


def number(given: Any, word: Callable[[str, Any], str]) -> str:
    """The words for a number."""
    return str(int(given)) if given.dtype == np.int64 else word("number", given)


def spots_of(one: Launch | Multiply | Stop) -> list[Spot]:
    """The places that a call is given."""
    if isinstance(one, Stop):
        return []
    return [spot for spot in (one.args if isinstance(one, Launch) else one.spots) if isinstance(spot, Spot)]


def product_lines(one: Multiply, word: str, place: Callable[..., str]) -> Iterator[str]:
    """The text of products, one for each pair of matrices."""
    (n, k, m), indent, names = one.sizes, "", []
    for d, count in enumerate(one.counts):
        if count > 1:
            yield f"{indent}for pair{d} in range({count}):"
            indent += "    "
            names.append(d)
    out, a, b = (
        place(spot, [f"pair{d} * {steps[d]}" for d in names if steps[d]])
        for spot, steps in zip(one.spots, one.steps, strict=True)
    )
    a_as, b_as, a_step, b_step, out_step = one.how
    how = f"{BY_ROWS}, {a_as}, {b_as}, {n}, {m}, {k}"
    yield f"{indent}{word}({how}, 1.0, {a}, {a_step}, {b}, {b_step}, {one.beta}, {out}, {out_step})"


def array_of_target(count: int, dtype: Any) -> np.ndarray:
    """The array of a fresh tensor on that device: of the recorder that is at work."""
    target = TARGET.get()
    if not isinstance(target, Recorder):
        raise RuntimeError("tensors of device ve are the compiler's, while it notes what a kernel does")
    return target.memory(count, dtype)


ARRAYS[ON_PAPER] = array_of_target
