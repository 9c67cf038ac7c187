"""What the machine code of every kernel must and must not hold, for sm_80 and sm_90. No GPU is needed.

The kernels are those that the table of operators asks a device for. A part of them is made in `make test`, all in
`make test-long`: to compile one takes .1 to .5 s for each of the two, once per machine.
"""

import itertools
import re
import zlib

import pytest

import redispatch as rd
from redispatch.dispatch import MissingKernelError
from redispatch.kernels import Elementwise, cuda
from redispatch.kernels.cuda import compiler, elementwise
from redispatch.kernels.cuda.machine_code import machine_code
from redispatch.testing.op_db import op_db

from .conftest import devices_of
from .texts import sources

pytestmark = pytest.mark.skipif(
    not cuda.available(), reason="kernels are compiled by numba-cuda: install redispatch[cuda]"
)
TARGETS = ("sm_80", "sm_90")
EVERY = 90  # one in so many operators of the table has its kernels made in `make test`
REGISTERS = 128  # of a lane: with more, a card runs fewer than 512 of them at once on each of its processors


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


# --- the rules --------------------------------------------------------------------------------------------------------

# Sines of large angles are reduced by digits of 2 / pi, for which libdevice has memory of the lane's own (7 words for
# float32), one product in double precision (by pi / 2^65), and for float64 a function that is called.
ANGLES = ("__local_depot0[28]", "0d3BF921FB54442D19", "trig_reduction_slowpath")
# Series that lose too much in single precision are summed in double precision, and are too long to be written in place.
SERIES = ("special_", "polygamma", "igamma", "i0", "digamma", "mvlgamma")
LIBDEVICE = re.compile(r"__internal_\w+")  # functions of its own, for float64: pow, and the angles'
VECTOR = re.compile(r"(ld|st)\.global(\.nc)?\.v(4\.[bfsu]32|2\.[bfsu]64)")
SEVERAL = re.compile(r"(ld|st)\.global(\.nc)?\.v[24]\.")
NARROW = {"int8*", "uint8*", "int16*", "uint16*"}  # several of which are one word


def is_wide(source):
    """Whether the kernel is asked to compute with float64, or does not say by its signature what it computes with."""
    kinds = (*source.signature, source.real or "")
    if source.name.endswith("_on_device"):
        return True
    return any(kind.startswith(("float64", "complex128")) for kind in kinds)


def problems(source, target):
    """What is wrong with a kernel for such cards, in words."""
    text = compiler.ptx(source, target)
    code = machine_code(compiler.cubin(source, target), source.name)
    found = []
    angles = any(word in text for word in ANGLES)
    if (code.frame or code.stack) and not angles:
        found.append(f"{max(code.frame, code.stack)} bytes of memory of the lane's own: registers are spilled")
    if code.registers > REGISTERS:
        found.append(f"{code.registers} registers")
    if code.unresolved:
        found.append(f"unresolved: {', '.join(code.unresolved)}")
    series = source.name.startswith(SERIES)
    if re.search(r"\.f64\b", text) and not (is_wide(source) or series or angles):
        found.append("double precision, where none was asked for")
    if ".extern" in text:
        found.append("a symbol is left open")
    if source.name.endswith("_contiguous"):
        if re.search(r"^\s*call\b", text, re.M) and not series and not (is_wide(source) and LIBDEVICE.search(text)):
            found.append("a call")
        if "load_" in source.text and "ld.global" in text and not VECTOR.search(text):
            found.append("no access of 16 bytes")
    pointed = {kind for kind in source.signature if kind.endswith("*")}
    if source.name.endswith("_in_rows") and not (SEVERAL.search(text) or pointed <= NARROW):
        found.append("no access to several elements")
    return found


def check(made):
    wrong = {}
    for source in made:
        for target in TARGETS:
            found = problems(source, target)
            if found:
                wrong[f"{source.name}({', '.join(source.signature)}) for {target}"] = found
    assert not wrong, wrong


def is_chosen(info):
    return zlib.crc32(str(info).encode()) % EVERY == 0


def test_the_kernels_of_some_operators_keep_the_rules():  # 20 s for 60 kernels, where none was made before
    made = {source.program().digest(): source for info in filter(is_chosen, op_db) for source in kernels_of(info, 3)}
    assert len(made) > 10
    check(made.values())


@pytest.mark.long
@pytest.mark.parametrize("info", op_db, ids=str)
def test_all_kernels_of_an_operator_keep_the_rules(info):
    check(kernels_of(info))


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
