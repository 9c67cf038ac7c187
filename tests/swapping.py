"""`pytest --swap autograd.engine=mine.py`: the library's own tests, on a part of yours.

    pytest --swap keyset=mine.py                     # the tests that hold for this part: `redispatch.swap.points()`
    pytest --swap keyset=mine.py:answer tests/func   # a function of another name, and tests of your choice

The function is named as the point is, with underscores (autograd_engine), or as the library's own (run_backward). It is
swapped in while a test's function runs, not while its fixtures do. Several options swap several parts.
"""

import importlib.util
from contextlib import ExitStack
from pathlib import Path

import pytest

import redispatch as rd

SWAPS = []  # (point, function)


def read(text):
    """(point, function) of "point=file.py" or "point=file.py:name". UsageError where something is missing."""
    point, _, rest = text.partition("=")
    path, _, name = rest.partition(":")
    if not rest:
        raise pytest.UsageError(f"--swap must be like autograd.engine=mine.py, but is {text!r}")
    try:
        default = rd.swap.default(point)
        wanted = [name] if name else [point.replace(".", "_"), default.__name__, point.rpartition(".")[2]]
        spec = importlib.util.spec_from_file_location(Path(path).stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found = [vars(module)[one] for one in wanted if one in vars(module)]
        if not found:
            raise ValueError(f"{path} defines no {' or '.join(dict.fromkeys(wanted))}")
        rd.swap(point, found[0])
    except (ValueError, TypeError, OSError) as problem:
        raise pytest.UsageError(f"--swap {text}: {problem}") from None
    return point, found[0]


def add_option(parser):
    parser.getgroup("redispatch").addoption(
        "--swap", action="append", default=[], metavar="POINT=FILE", help="run the tests on a part of yours"
    )


def configure(config):
    SWAPS[:] = [read(text) for text in config.getoption("--swap")]
    if SWAPS and config.args_source is not pytest.Config.ArgsSource.ARGS:
        points = rd.swap.points()
        config.args = list(dict.fromkeys(test for point, _ in SWAPS for test in points[point].tests))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call():
    with ExitStack() as stack:
        for point, function in SWAPS:
            stack.enter_context(rd.swap(point, function))
        return (yield)
