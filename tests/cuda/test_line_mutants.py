"""Scans, sorts and what is kept, with a barrier, a shuffle, a store or a load changed: the simulator, or a wrong
result, tells of each. As test_mutants.py does with kept texts, but on kernels that are compiled here."""

import re

import numpy as np
import pytest

from redispatch.kernels import cuda
from redispatch.kernels.cuda import compiler, scan
from redispatch.kernels.cuda.ops import compaction, sort

from .test_mutants import Bench, barrier, caught, load, mutants, shuffle, store

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not cuda.available(), reason="kernels are compiled by numba-cuda: install redispatch[cuda]"),
]
THREADS = 64


def shuffle_up(line):
    """A shuffle goes the other way, or takes a lane's own value."""
    if "shfl.sync.up" in line:
        yield line.replace(".up.", ".down.")
        yield line.replace(".up.", ".idx.")


KINDS = (barrier, shuffle, shuffle_up, store, load)


def ran(code, name, blocks, outs, *arguments):
    """What lies in memory like `outs` afterwards, whose addresses stand where these arrays are among the arguments."""
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


# (kernels, the line, the change): why the changed kernel is right, too.
EQUIVALENT = [("kept", r"ld\.global\.f32", "+4", "the first element is kept, whatever stands before it")]


@pytest.mark.parametrize("run", sources(), ids=lambda run: run.__name__)
def test_every_change_is_caught(run):  # some minutes in all
    code = compiler.ptx(sources()[run])
    assert caught(run, code) is None
    survivors, tried = [], 0
    # What moves elements adds up in the last round what nobody reads: there barriers are tried alone.
    for kind, line, changed, text in mutants(code, (barrier,) if run is moved else KINDS):
        tried += 1
        if caught(run, text) is None and not any(
            name == run.__name__ and re.search(before, line) and after in changed
            for name, before, after, _ in EQUIVALENT
        ):
            survivors.append((kind, line, changed))
    assert not survivors
    assert tried > (2 if run is moved else 15)
