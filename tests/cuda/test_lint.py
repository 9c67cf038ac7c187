"""Rules for the machine code of every kernel, for sm_80 and sm_90. No GPU is needed.

The kernels are those that the table of operators asks a device for. `make test` looks at all that the simulator runs
(test_table.py), and compiles for both, of every dtype, those that are drawn; `make test-all` compiles all, which takes
.1 to .5 s for each of the two, once per machine. Read helpers.py.
"""

import itertools

import pytest

import redispatch as rd
from redispatch.dispatch import MissingKernelError
from redispatch.kernels import Elementwise, cuda
from redispatch.kernels.cuda import compiler, elementwise
from redispatch.kernels.cuda.sass import machine_code
from redispatch.testing.op_db import op_db

from .. import drawing
from .conftest import devices_of
from .helpers import check, problems
from .texts import sources

pytestmark = pytest.mark.skipif(
    not cuda.available(), reason="kernels are compiled by numba-cuda: install redispatch[cuda]"
)
EVERY = 200  # one in so many operators of the table is drawn to have its kernels made


class Collecting(cuda.NullDriver):
    """Notes the kernels that it is asked for."""

    def __init__(self):
        super().__init__(1 << 30)
        self.sources = {}

    def load(self, source):
        self.sources[source.name, source.signature, source.text, source.program().digest()] = source
        return source.name


def kernels_of(info, most=None):
    """The kernels that an operator of the table asks for, with its samples, or the first of them, of every dtype."""
    with devices_of(Collecting()) as driver:
        for dtype in info.dtypes:
            for sample in itertools.islice(info.sample_inputs(dtype), most):
                moved = sample.map(lambda x: x.cuda()).map(lambda on: rd.device("cuda"), rd.device)
                try:
                    info.op(*moved.arguments, **moved.kwargs)
                except (MissingKernelError, NotImplementedError):
                    continue  # it has none, or none for this dtype
                except (RuntimeError, ValueError, IndexError, ZeroDivisionError):
                    continue  # a number was read, and the null device knows only zeros
    return list(driver.sources.values())


# --- the kernels of the table -----------------------------------------------------------------------------------------


DRAWN = [info for info in op_db if drawing.one_in(EVERY, "machine code", info)]


@pytest.mark.parametrize("info", DRAWN, ids=str)
def test_the_kernels_of_an_operator_keep_the_rules(info):
    check(kernels_of(info, None if drawing.everything else 3))


KERNELS = {
    "mul.Tensor": "mul_contiguous",
    "sum.dim_IntList": "sum_rows",
    "cumsum": "scan_rows",
    "gather": "take",
}


def test_operators_ask_for_kernels():
    asked = {str(info): {source.name for source in kernels_of(info, 1)} for info in op_db if str(info) in KERNELS}
    assert asked == {name: {kernel} for name, kernel in KERNELS.items()}


LONG_LINES = {
    "cumsum": lambda x: x.cumsum(-1),
    "cummax": lambda x: x.cummax(-1),
    "sort": lambda x: x.sort(-1),
    "topk of few": lambda x: x.topk(5, -1),
    "topk of many": lambda x: x.topk(3000, -1),
    "kthvalue": lambda x: x.kthvalue(7, -1),
    "median": lambda x: x.median(-1),
    "mode": lambda x: x.mode(-1),
    "argmax": lambda x: x.argmax(-1),
    "nonzero": lambda x: x.nonzero(),
}


@pytest.mark.long
@pytest.mark.parametrize("name", LONG_LINES)
def test_the_kernels_of_lines_longer_than_the_tables_keep_the_rules(name):
    with devices_of(Collecting()) as driver:
        for dtype in (rd.int64, rd.float64, rd.float32, rd.float16, rd.uint8):
            for shape in ((100_000,), (3, 5000)):
                LONG_LINES[name](rd.empty(shape, dtype=dtype, device="cuda"))
            LONG_LINES[name](rd.empty(5000, 3, dtype=dtype, device="cuda").t())
    assert driver.sources
    check(driver.sources.values())


# --- the rules, broken ------------------------------------------------------------------------------------------------


def test_what_machine_code_says():
    source = sources()["sum_rows"]
    code = machine_code(compiler.cubin(source, "sm_90"), "sum_rows")
    assert 16 <= code.registers <= 64 and code.frame == code.stack == 0 and not code.unresolved
    assert code.shared >= 128  # the parts of 32 warps
    sine = machine_code(compiler.cubin(sources()["sine"], "sm_80"), "sine_contiguous")
    assert sine.frame > 0
    with pytest.raises(KeyError):
        machine_code(compiler.cubin(source, "sm_90"), "another")
    with pytest.raises(ValueError, match="no cubin"):
        machine_code(b"PTX", "sum_rows")


def axpy_with(body, width, real="float32"):
    """The contiguous kernel of a scalar function of two float32 tensors and a number."""
    form = elementwise.Form(width, 0, "aan", ("float32",), ("float32", "float32", None), "float32")
    source = elementwise.source(Elementwise("axpy", body), form)
    return compiler.Source(source.name, source.text, source.given, source.signature, real)


def test_kernels_that_break_a_rule_are_found():
    def right(x, y, a):
        return 0.1 * a * x + y

    assert problems(axpy_with(right, 4), "sm_80") == []
    assert problems(axpy_with(right, 4, None), "sm_80") == ["double precision, where none was asked for"]
    narrow = axpy_with(right, 1)
    pretending = compiler.Source(narrow.name, narrow.text + "    # load_4\n", narrow.given, narrow.signature, "float32")
    assert problems(pretending, "sm_80") == ["no access of 16 bytes"]
    rows = narrow.text.replace(narrow.name, "axpy_in_rows")
    pretending = compiler.Source("axpy_in_rows", rows, narrow.given, narrow.signature, "float32")
    assert problems(pretending, "sm_80") == ["no access to several elements"]
