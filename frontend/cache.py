"""The command `python -m redispatch.cache`: compiled kernels and specialised code on disk: listed, made, or removed.

    python -m redispatch.cache list
    python -m redispatch.cache warm --dtypes float32 int64 --operators add mm softmax
    python -m redispatch.cache warm --cuda sm_90 --operators add mm softmax
    python -m redispatch.cache warm --cuda sm_90 --program train.py --epochs 1
    python -m redispatch.cache clear

Kernels are compiled when they are first needed and kept in a directory (kernels/engine/cache.py), and so is the code
that the specialiser makes (dispatch/specialiser/reads.py). An image or a fleet of machines that are alike can have that
done once: `warm` runs the samples of the table of operators. With `--cuda` it
compiles the CUDA kernels of a compute capability instead, for which the machine needs numba-cuda and no GPU: those of
the samples, or with `--program` those that a program launches, which runs then on a device that computes nothing.
"""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from redispatch.dispatch.specialiser import reads
from redispatch.dispatch.specialiser.specialise import BOXED_AT_FIRST
from redispatch.kernels.engine import cache

if TYPE_CHECKING:
    from redispatch.dispatch.tensor import dtype
    from redispatch.testing import OpInfo

DTYPES = ("float32", "float64", "int64", "bool")


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; returns the exit status: 0, 1 where there is no directory, 2 for a wrong command."""
    parser = argparse.ArgumentParser(
        prog="python -m redispatch.cache", description="Compiled kernels on disk: list, make beforehand, remove."
    )
    commands = parser.add_subparsers(required=True, metavar="command", dest="command")
    commands.add_parser("list", help="what is there: kernel and types, size, when it was made")
    warm = commands.add_parser("warm", help="compile what operators need, by running samples of them")
    warm.add_argument("--operators", nargs="+", metavar="NAME", default=[], help="such as add or mm; by default all")
    warm.add_argument("--dtypes", nargs="+", metavar="DTYPE", default=DTYPES, help=f"by default {' '.join(DTYPES)}")
    warm.add_argument("--cuda", metavar="TARGET", help="CUDA kernels for sm_90 or the like, instead of the CPU's")
    warm.add_argument(
        "--program", nargs=argparse.REMAINDER, metavar="FILE", help="with --cuda: what this program needs; last"
    )
    commands.add_parser("clear", help="remove all compiled kernels")
    chosen = parser.parse_args(arguments)
    path = cache.directory()
    if path is None:
        return 1  # why was told
    if chosen.command == "list":
        show()
    elif chosen.command == "clear":
        count, size = cache.clear()
        print(f"removed {count} kernels, {in_units(size)}, from {path}")
        count, size = reads.clear()
        print(f"removed {count} pieces of specialised code, {in_units(size)}")
    else:
        if chosen.program is not None and not (chosen.program and chosen.cuda):
            parser.error("--program is for CUDA kernels: warm --cuda sm_90 --program FILE [ARGUMENT...]")
        try:
            if chosen.program:
                fill_for(chosen.program, chosen.cuda)
            else:
                fill(chosen.operators, chosen.dtypes, chosen.cuda)
        except ValueError as wrong:
            parser.error(str(wrong))
    return 0


def show() -> None:
    """Prints the kernels on disk."""
    found = cache.kept()
    for one in found:
        made = datetime.fromtimestamp(one.seconds).strftime("%Y-%m-%d %H:%M")
        print(f"{in_units(one.bytes):>9}  {made}  {one.title}")
    print(f"{len(found)} kernels, {in_units(sum(one.bytes for one in found))}, in {cache.directory()}")
    sizes = reads.sizes()
    print(f"{len(sizes)} pieces of specialised code, {in_units(sum(sizes))}")


def fill(names: Iterable[str], dtypes: Iterable[str], cuda: str | None = None) -> None:
    """Runs the samples of operators, so that their kernels are compiled and kept.

    names: of operators, without namespace and overload; none means all. ValueError for a name that there is not.
    cuda: the compute capability for which CUDA kernels are compiled, instead of the CPU's. ValueError for what is none.
    """
    import redispatch as rd  # here, because the other commands do without operators
    from redispatch.testing.op_db import op_db
    from redispatch.utils.text import Progress

    names, wanted = set(names), [getattr(rd, name, None) for name in dtypes]
    for name, found in zip(dtypes, wanted, strict=True):
        if not isinstance(found, rd.dtype):
            raise ValueError(f"there is no dtype {name!r}; there are {', '.join(DTYPES)} and the like")
    infos = [info for info in op_db if not names or info.op.schema.base_name in names]
    unknown = names - {info.op.schema.base_name for info in infos}
    if unknown:
        raise ValueError(f"there is no operator {min(unknown)!r}; `rd.ops.aten` has their names")
    progress, state = Progress(len(infos)), rd.get_rng_state()
    try:
        with compiling_for(cuda) if cuda else nullcontext(), told():
            for info in infos:
                for dtype in wanted:
                    if dtype in info.dtypes:
                        run_samples(info, dtype) if cuda is None else run_on_device(info, dtype)
                progress.advance(str(info.op))
    finally:
        rd.set_rng_state(state)


def fill_for(program: Sequence[str], cuda: str) -> None:
    """Runs a program (its file, and its arguments) as `python FILE ARGUMENT...` would, so that the CUDA kernels which
    it needs are compiled and kept.

    Its device "cuda" computes nothing: all that is read from there is zero, and what it prints is of no value. It
    should do a step of each kind, not a whole training. ValueError where there is no such file, and for no capability.
    """
    if not Path(program[0]).is_file():
        raise ValueError(f"there is no program {program[0]!r}")
    arguments, folders = sys.argv, sys.path
    sys.argv, sys.path = [*program], [str(Path(program[0]).resolve().parent), *sys.path]
    try:
        with compiling_for(cuda), told():
            runpy.run_path(program[0], run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.argv, sys.path = arguments, folders


@contextmanager
def told() -> Iterator[None]:
    """Tells how many kernels a block has compiled, also where it ends with an error."""
    before = len(cache.kept())
    try:
        yield
    finally:
        found = cache.kept()
        total = in_units(sum(one.bytes for one in found))
        print(f"{len(found) - before} kernels more; {len(found)} in all, {total}, in {cache.directory()}")


def run_samples(info: OpInfo, dtype: dtype) -> None:
    """Runs the samples of an operator in a dtype, and backward, where it has a gradient."""
    for given in info.sample_inputs(dtype, requires_grad=info.gradients and not info.mutates):
        for _ in range(1 if info.mutates else 1 + BOXED_AT_FIRST):  # then its code is made
            run_back(info.op(*given.arguments, **given.kwargs))


def run_back(results: Any) -> None:
    """Runs backward from each result that has a gradient."""
    for result in results if isinstance(results, tuple | list) else [results]:
        if getattr(result, "requires_grad", False):
            result.backward(result.detach(), retain_graph=True)


@contextmanager
def compiling_for(target: str) -> Iterator[None]:
    """A block in which CUDA kernels are compiled for a compute capability, and none runs.

    Errors: ValueError without numba-cuda, or where a device is in use.
    """
    from redispatch.kernels import cuda  # here, because the other commands do without CUDA
    from redispatch.kernels.cuda.runtime.devices import start, started

    if not cuda.available():
        raise ValueError("compiling CUDA kernels needs numba-cuda: install redispatch[cuda]")
    if started() is not None:
        raise ValueError("CUDA devices are in use in this process")
    former = cuda.use(cuda.CompilingDriver(target))
    try:
        devices = start()
        try:
            yield
        finally:
            devices.remove()
    finally:
        cuda.restore(former)


def run_on_device(info: OpInfo, dtype: dtype) -> None:
    """Runs the samples on the device "cuda", which only compiles: the results have no value."""
    for given in info.sample_inputs(dtype, requires_grad=info.gradients and not info.mutates):
        try:
            moved = given.map(lambda x: x.cuda())
            run_back(info.op(*moved.arguments, **moved.kwargs))
        except (NotImplementedError, RuntimeError, ValueError, IndexError, TypeError):
            continue  # it has no CUDA kernel, or looks at numbers, which there are none


def in_units(size: int) -> str:
    """Bytes as people read them."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size = size / 1000  # type: ignore[assignment]  # another type on purpose
    return f"{size:.1f} GB"


if __name__ == "__main__":
    sys.exit(main())
