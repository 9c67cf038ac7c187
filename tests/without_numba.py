"""What a process does that cannot import numba or llvmlite; and one that has no more than a browser's Python has.

    python -m tests.without_numba FILE NAME...    writes the results of these operators' samples to a file

Each sample of an operator, in each of its dtypes, is one result: its arrays, or the class of an error.
"""

import os
import pickle
import sys
import warnings

COMPILERS = ("numba", "llvmlite", "numba_cuda")
# Modules that Pyodide leaves out of the standard library, those that it has no use for, and what is no wheel for it
NOT_IN_A_BROWSER = (*COMPILERS, *"fcntl resource termios grp pwd mmap _multiprocessing _posixshmem ml_dtypes".split())


def block(names):
    """Has imports of these modules fail, as where they are not installed."""
    sys.modules.update(dict.fromkeys(names))


def as_in_a_browser():
    """Takes away what a process in a browser has not: those modules, new threads and new processes."""
    import _thread
    import subprocess
    import threading

    def refuse(*args, **kwargs):
        raise RuntimeError("can't start new thread")

    def no_process(*args, **kwargs):
        raise OSError(138, "emscripten does not support processes.")

    block(NOT_IN_A_BROWSER)
    _thread.start_new_thread = threading._start_new_thread = refuse
    subprocess.Popen = no_process
    for name in ("fork", "forkpty", "posix_spawn", "posix_spawnp", "sched_getaffinity", "memfd_create"):
        vars(os).pop(name, None)


def results(names):
    """Yields ((operator, dtype, number of the sample), results) of these operators."""
    import redispatch as rd
    from redispatch.testing.op_db import op_db
    from redispatch.testing.op_info import each

    def kept(x):
        if not isinstance(x, rd.Tensor):
            return x if isinstance(x, bool | int | float | complex | str) else str(x)
        if unset or x.device.type != "cpu" or x.layout is not rd.strided:
            return x.dtype.name, tuple(x.shape), None
        x = x.detach().resolve_conj().resolve_neg()
        return x.dtype.name, tuple(x.shape), x.reshape(-1).view(rd.uint8).numpy().copy()

    warnings.simplefilter("ignore")
    for info in {str(info): info for info in op_db}.values():
        if str(info) not in names:
            continue
        unset = "empty" in str(info)  # whose memory holds whatever was there
        for dtype in info.dtypes:
            for number, sample in enumerate(info.sample_inputs(dtype)):
                try:
                    found = [kept(x) for x in each(info.run(sample))]
                except Exception as error:
                    found = [type(error).__name__]
                yield (str(info), dtype.name, number), found


def main(file, *names):
    block(COMPILERS)
    with open(file, "wb") as out:
        pickle.dump(dict(results(names)), out)


if __name__ == "__main__":
    main(*sys.argv[1:])
