"""Wrong kernels are found: each kernel of the kept texts is changed in one place after another, and every change is
caught, by what the simulator watches or by a wrong result. So the tests of kernels are themselves tested.

What no test can catch, because the changed kernel is right, too, is listed with the reason. Scans, sorts and what is
kept are compiled here, and have a barrier, a shuffle, a store or a load changed.
"""

import re
import signal

import numpy as np
import pytest

from redispatch.kernels import cuda
from redispatch.kernels.cuda import compiler
from redispatch.kernels.cuda.elementwise import as_argument, magic
from redispatch.kernels.cuda.ops import compaction, scan, sort
from redispatch.kernels.cuda.simulator import Device, KernelFault, PTXError

from .texts import text

# --- the kernels, run so that their edges count ---------------------------------------------------------------------


class Bench:
    """A device of its own for one run."""

    def __init__(self, code):
        self.device = Device(1 << 20)
        self.module = self.device.load(code)

    def given(self, array):
        address = self.device.allocate(array.nbytes)
        self.device.write(address, array)
        return address

    def run(self, name, grid, block, out, *arguments):
        """Returns the memory like `out` afterwards, whose address is the first argument but for `n`."""
        address = self.device.allocate(out.nbytes)
        values = [address if value is OUT else value for value in arguments]
        self.device.launch(self.module, name, (grid, 1, 1), (block, 1, 1), values)
        return self.device.read(address, out.nbytes).view(out.dtype).reshape(out.shape)


OUT = object()


def axpy(code):
    for n in (1, 3, 4, 7, 103):
        bench, x, y = Bench(code), np.arange(n, dtype=np.float32) - 3, np.linspace(1, 2, n, dtype=np.float32)
        given = [n, OUT, bench.given(x), bench.given(y), as_argument(0.5, "float32")]
        yield bench.run("axpy_contiguous", -(-(n // 4 + n % 4) // 32) + 1, 32, x, *given), np.float32(0.5) * x + y


def half(code):
    for n in (1, 8, 13, 40):
        bench, x = Bench(code), (np.arange(n) - 2.5).astype(np.float16)
        yield bench.run("half_contiguous", 1, 32, x, n, OUT, bench.given(x)), x * np.float16(0.5)


def many_bytes(code):
    for n in (1, 16, 35, 100):
        bench, x = Bench(code), (np.arange(n) * 7 % 256).astype(np.uint8)
        found = bench.run("bytes_contiguous", 1, 32, x, n, OUT, bench.given(x))
        yield found, (x * 0.5).astype(np.uint8)


def rows(code):
    for count, size in ((1, 4), (3, 8), (5, 12)):
        bench, x = Bench(code), np.arange(count * (size + 4), dtype=np.float32).reshape(count, size + 4) - 20.5
        y, vectors = np.linspace(1, 2, count, dtype=np.float32), size // 4
        tables = [count, *magic(count), size, size + 4, 1, vectors, *magic(vectors), 4, 4, 0]
        given = [count * vectors, OUT, bench.given(x), bench.given(y), as_argument(0.5, "float32")]
        wanted = np.float32(0.5) * x[:, :size] * y[:, None]
        yield bench.run("axpy_in_rows", -(-count * vectors // 32), 32, wanted, *given, *tables), wanted


def transpose(code):
    bench, x = Bench(code), np.arange(105, dtype=np.float64) - 20.5
    tables = []
    for size, to, source in zip((3, 5, 7), (35, 7, 1), (1, 3, 15), strict=True):
        tables += [size, *magic(size), to, source]
    wanted = x.reshape(7, 5, 3).transpose(2, 1, 0).astype(np.int32)
    yield bench.run("copy_strided", 1, 128, wanted, 105, OUT, bench.given(x), *tables), wanted


def turned(code):
    for height, breadth in ((33, 40), (65, 40), (40, 48), (48, 56), (56, 33)):
        bench, x = Bench(code), np.arange(height * breadth, dtype=np.float32).reshape(breadth, height)
        down, across = -(-height // 32), -(-breadth // 32)
        tables = [down, *magic(down), 32 * breadth, 32, 32, 0, across, *magic(across), 32, 32 * height, 0, 32]
        tables += [height, breadth, breadth, 1, 1, height]
        given = [x.size, OUT, bench.given(x), *tables]
        yield bench.run("copy_turned", down * across, 256, np.ascontiguousarray(x.T), *given), x.T


def sum_rows(code):
    for rows, count in ((2, 4), (1, 1024), (3, 1000), (1, 1028), (1, 4100), (2, 3076), (1, 9004), (1, 12288)):
        bench, x = Bench(code), np.arange(rows * count, dtype=np.float32).reshape(rows, count) % 17 + 1
        tables = [rows, *magic(rows), 1, count, count, *magic(count), 1]
        found = bench.run("sum_rows", rows, 256, x[:, 0], OUT, bench.given(x), rows, count, count, *tables)
        yield found, x.sum(1)


def amax_columns(code):
    for rows, columns in ((1, 1), (8, 32), (50, 70), (9, 33), (24, 33), (25, 2), (100, 3)):
        bench, x = Bench(code), (np.arange(rows * columns, dtype=np.int64).reshape(rows, columns) * 7919) % 1009 - 500
        tables = [columns, *magic(columns), 1, 1, rows, *magic(rows), columns]
        given = [OUT, bench.given(x), columns, rows, rows, *tables]
        yield bench.run("amax_columns", -(-columns // 32), 256, x[0], *given), x.max(0)


RUNS = {
    "axpy": axpy,
    "half": half,
    "bytes": many_bytes,
    "rows": rows,
    "transpose": transpose,
    "turned": turned,
    "sum_rows": sum_rows,
    "amax_columns": amax_columns,
}

# --- what is changed --------------------------------------------------------------------------------------------------

SWAPS = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "eq": "ne", "ne": "eq"}


def barrier(line):
    """A barrier is left out."""
    if re.search(r"\bbar(rier)?\.sync", line):
        yield ""


def bound(line):
    """A bound is off by one, or a condition is the opposite."""
    found = re.search(r"setp\.(lt|le|gt|ge|eq|ne)\.", line)
    if found:
        yield line[: found.start(1)] + SWAPS[found[1]] + line[found.end(1) :]


def shuffle(line):
    """A shuffle goes the other way, or takes a lane's own value."""
    if "shfl.sync.down" in line:
        yield line.replace(".down.", ".up.")
        yield line.replace(".down.", ".idx.")


def store(line):
    """A result is not stored, or beside its place."""
    found = re.search(r"\bst\.(global|shared)(?:\.v\d)?\.\w?(\d+)\s+\[%?\w+(\])", line)
    if found:
        yield ""
        yield f"{line[: found.start(3)]}+{int(found[2]) // 8}{line[found.start(3) :]}"


def load(line):
    """A value is read beside its place."""
    found = re.search(r"\bld\.(global|shared)(?:\.v\d)?\.\w?(\d+)\s+.*\[%\w+(\])", line)
    if found:
        yield f"{line[: found.start(3)]}+{int(found[2]) // 8}{line[found.start(3) :]}"


def operands(line):
    """Two operands change places, which is the same for == and !=."""
    found = re.search(r"\b(sub|shl|shr|selp|setp\.[lg])[.\w]*\s+(%\w+), ([^,;]+), ([^,;]+)", line)
    if found and found[3] != found[4]:
        yield f"{line[: found.start(3)]}{found[4]}, {found[3]}{line[found.end(4) :]}"


def operation(line):
    """Another operation stands there."""
    for one, other in (("add.", "sub."), ("mul.", "add."), ("max.", "min."), ("and.", "or.")):
        if re.search(rf"\t{re.escape(one)}[bfslu]", line):
            changed = line.replace(one, other, 1)
            yield re.sub(r"(add\.)(?:rn\.|lo\.|hi\.)", r"\1", changed) if one == "mul." else changed


def number(line):
    """A number is off by one."""
    found = re.search(r"\t(?:add|shl|shr|and|mul)[.\w]*\s+%\w+, %\w+, (-?\d+);", line)
    if found:
        yield f"{line[: found.start(1)]}{int(found[1]) + 1}{line[found.end(1) :]}"


MUTATIONS = [barrier, bound, shuffle, store, load, operands, operation, number]


def mutants(code, mutations=MUTATIONS):
    """(what was done, line, text) of all changes."""
    lines = code.splitlines()
    for k, line in enumerate(lines):
        for mutation in mutations:
            for changed in mutation(line):
                whole = [*lines[:k], changed, *lines[k + 1 :]]
                yield mutation.__name__, line.strip(), changed.strip(), "\n".join(whole)


class Endless(Exception):
    """A kernel ran on and on."""


def ring(signum, frame):
    raise Endless


def caught(run, code):
    """The way a kernel is found out: by a fault, a wrong result, or because it does not end; None if it is not."""
    former = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 3)
    try:
        for found, wanted in run(code):
            if not np.array_equal(found, wanted):
                return "a wrong result"
    except (KernelFault, RuntimeError, PTXError) as problem:
        return str(problem).splitlines()[0]
    except Endless:
        return "it does not end"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    return None


@pytest.mark.parametrize("name", RUNS)
def test_the_kernels_are_right_as_they_are(name):
    assert caught(RUNS[name], text(name)) is None


# --- what cannot be found ---------------------------------------------------------------------------------------------

# (kernels, the line, the change): why the changed kernel is right, too. Compilers number registers as they like.
SIGN = "counts are not negative; this is what a division does for those that are"
EQUIVALENT = [
    ("axpy half bytes", r"shr\.s64 .* 63", "", SIGN),
    ("axpy half bytes", r"shr\.u64 .* 6\d", "", SIGN),
    ("axpy half bytes", r"and\.b64 .* -\d+", "", SIGN),
    ("axpy half bytes sum_rows", r"add\.s64 %rd\d+, %rd\d+, %rd\d+", r"sub", SIGN),
    ("half bytes", r"shr\.s64 .* [34]", "", "elements that no vector takes are taken one by one"),
    ("turned", r"add\.s64 %rd4, %rd38, %rd42", "sub", "a square further down lies nothing further across"),
    ("sum_rows amax_columns", r"and\.b32 .* -2147483648", "", SIGN),
    ("sum_rows amax_columns", r"shr\.u32 .* 2\d", "", SIGN),
    ("sum_rows", r"setp\.lt\.u64 .* 3072", "le", "vectors of four: what is left is never as much as that"),
    (
        "sum_rows",
        r"add\.s64 .* 4096",
        "4097",
        "the same: it is compared with a multiple of four, and used for no address",
    ),
    ("sum_rows", r"shfl.*", "idx", "one step down from lane 0, whose sum counts, is lane 1"),
    ("sum_rows", r"setp\.ne\.s64 .* 0", "eq", "warps that should rest add up the same, and write the same"),
    ("kept", r"ld\.global\.f32 .*", "+4", "the first element is kept, whatever stands before it"),
]


def excused(name, line, changed):
    """The places in `EQUIVALENT` that a change belongs to."""
    return [
        k
        for k, (kernels, before, after, _) in enumerate(EQUIVALENT)
        if name in kernels.split() and re.fullmatch(before, line.rstrip(";").replace("\t", "")) and after in changed
    ]


def surviving(name, run, code, mutations=MUTATIONS):
    """The changes that are not caught, and how the others are, by kind."""
    survivors, found = [], {}
    for kind, line, changed, mutant in mutants(code, mutations):
        how = caught(run, mutant)
        found.setdefault(kind, []).append(how)
        if how is None and not excused(name, line, changed):
            survivors.append((kind, line, changed))
    return survivors, found


@pytest.mark.parametrize("name", RUNS)
def test_every_change_of_a_kernel_is_caught(name):  # 1 to 4 s: a hundred kernels run on several inputs
    survivors, found = surviving(name, RUNS[name], text(name))
    assert not survivors
    counts = {kind: len(hows) - hows.count(None) for kind, hows in found.items()}
    assert all(counts.values()) and sum(counts.values()) > 15, counts


def test_every_kind_of_change_is_tried_and_each_excuse_is_needed():
    kinds, used = set(), set()
    for name in RUNS:
        for kind, line, changed, _ in mutants(text(name)):
            kinds.add(kind)
            used.update(excused(name, line, changed))
    needed = {k for k, (kernels, *_) in enumerate(EQUIVALENT) if kernels != "kept"}
    assert kinds == {mutation.__name__ for mutation in MUTATIONS} and used == needed


# --- kernels that are compiled here -----------------------------------------------------------------------------------


THREADS = 64


def shuffle_up(line):
    """A shuffle goes the other way, or takes a lane's own value."""
    if "shfl.sync.up" in line:
        yield line.replace(".up.", ".down.")
        yield line.replace(".up.", ".idx.")


KINDS = (barrier, shuffle, shuffle_up, store, load)


def ran(code, name, blocks, outs, *arguments):
    """Returns the memory like `outs` afterwards, whose addresses stand where these arrays are among the arguments."""
    bench = Bench(code)
    places = {id(out): bench.device.allocate(out.nbytes) for out in outs}
    told = []
    for one in arguments:
        is_array = isinstance(one, np.ndarray)
        told.append(places.get(id(one)) or bench.given(one) if is_array else one)
    bench.device.launch(bench.module, name, (blocks, 1, 1), (THREADS, 1, 1), told)
    return [bench.device.read(places[id(out)], out.nbytes).view(out.dtype).reshape(out.shape) for out in outs]


def scanned(code):
    for size in (1, 63, 256, 701):
        x = (np.arange(2 * size, dtype=np.float32).reshape(2, size) * 7) % 5
        out = np.empty_like(x)
        (found,) = ran(code, "scan_rows", 2, [out], out, out, out, x, 2, size, 1, size)
        yield found, x.cumsum(1)


def sorted_in_block(code):
    for lines, size, span, together in ((3, 20, 32, 2), (1, 64, 64, 1), (5, 3, 4, 16), (2, 1, 1, 2)):
        x = (np.arange(lines * size, dtype=np.float32).reshape(lines, size) * 7) % 5
        values, places = np.empty_like(x), np.empty(x.shape, np.int64)
        numbers = (lines, size, 1, size, 0, span, together)
        blocks = -(-lines // together)
        found = ran(code, "sort_in_block", blocks, [values, places], values, places, values, values, x, *numbers)
        order = x.argsort(1, kind="stable")
        yield found[0], np.take_along_axis(x, order, 1)
        yield found[1], order
    x = (np.arange(20 * 6, dtype=np.float32).reshape(2, 20, 3) * 7) % 5
    values, places = np.empty_like(x), np.empty(x.shape, np.int64)
    given = (values, places, values, values, x)
    found = ran(code, "sort_in_block", 3, [values, places], *given, 6, 20, 3, 20, 0, 32, 2)
    order = x.argsort(1, kind="stable")
    yield found[0], np.take_along_axis(x, order, 1)
    yield found[1], order


def moved(code):
    for size in (1, 130, 300):
        x, tiles = (np.arange(size) % 40 * 6 + np.arange(size) % 3).astype(np.uint8), -(-size // 128)
        counts = np.zeros((256, tiles), np.int32)
        for tile in range(tiles):
            counts[:, tile] = np.bincount(x[tile * 128 : tile * 128 + 128], minlength=256)
        upto = counts.reshape(-1).cumsum().astype(np.int32)
        values, places = np.empty_like(x), np.empty(size, np.int64)
        given = (values, places, values, values, values, values, upto, x)
        found = ran(code, "move_by_digit", tiles, [values, places], *given, size, 1, tiles, 0, 0, size)
        order = x.argsort(kind="stable")
        yield found[0], x[order]
        yield found[1], order


def kept(code):
    for n, piece in ((5, 256), (700, 256), (513, 512)):
        x = ((np.arange(n) // 3 * 7) % 5).astype(np.float32)
        flags = x != np.concatenate([[-1], x[:-1]])
        places = np.append(np.flatnonzero(flags), n)
        blocks = -(-n // piece)
        upto = np.array([flags[: (k + 1) * piece].sum() for k in range(blocks)], np.int64)
        made = np.empty_like(places), np.empty(flags.sum(), np.float32), np.empty(n, np.int64)
        order = np.arange(n)[::-1].copy()
        found = ran(code, "write_kept", blocks, made, *made, upto, x, x, order, n, piece)
        yield found[0], places
        yield found[1], x[flags]
        yield found[2], (flags.cumsum() - 1)[::-1]


def sources():
    cut = scan.Cut(threads=THREADS, groups=1)
    key = sort.KEYS["float32"].given()
    flags = {"RUNS": True, "PLACES": True, "VALUES": True, "GROUPS": True}
    kinds = ("int64", "float32", "int64", "int64", "float32", "float32", "int64")
    digits = {"FIRST": True, "LAST": True, "DIGITS": 256, "TABLES": 512, "THREADS": THREADS, "EACH": 2}
    narrow = ("uint8", "int64", "int32", "int32", "int32", "int32", "int32", "uint8")
    return {
        scanned: scan.planned(scan.CUMSUM, "float32", "float32", 2, 701, 1, cut).launches[0].kernel.make(),
        sorted_in_block: sort.BLOCK.source(
            "float32", ("float32", "int64", "int32", "int32", "float32"), BY_KEYS=False, SLOTS=64, **key
        ),
        moved: sort.MOVE.source("uint8", narrow, **digits, **sort.KEYS["uint8"].given()),
        kept: compaction.WRITE.source(
            "float32", kinds, **flags, THREADS=THREADS, WARPS=2, scanned=compaction.counting(THREADS)
        ),
    }


@pytest.mark.long
@pytest.mark.skipif(not cuda.available(), reason="kernels are compiled by numba-cuda: install redispatch[cuda]")
@pytest.mark.parametrize("run", sources(), ids=lambda run: run.__name__)
def test_every_change_of_a_kernel_that_is_compiled_is_caught(run):  # 9 s in all
    code = compiler.ptx(sources()[run])
    assert caught(run, code) is None
    # What moves elements adds up in the last round what nobody reads: there barriers are tried alone.
    survivors, found = surviving(run.__name__, run, code, (barrier,) if run is moved else KINDS)
    assert not survivors
    assert sum(map(len, found.values())) > (2 if run is moved else 15)
