"""Kernels whose PTX lies in `ptx/`, so that the simulator is tested where there is no compiler for CUDA.

    python tests/cuda/texts.py          writes the files anew; needs redispatch[cuda]

They are made as the library's kernels are, one for each thing that these do: vectors, numbers, 16-bit floats,
places found by multiplication, shuffles with shared memory and barriers, memory of a lane's own.
"""

from pathlib import Path

from redispatch import kernels
from redispatch.dispatch.tensor.operand import Operand
from redispatch.kernels import Elementwise, sin
from redispatch.kernels.cpu.copy import elementwise_for
from redispatch.kernels.cuda import compiler, elementwise, reduce

FOLDER = Path(__file__).parent / "ptx"


def axpy_element(x, y, a):
    return a * x + y


def half_element(x):
    return 0.5 * x


def sine_element(x):
    return sin(x)


def flat(name, body, width, dtype, layout="a"):
    ins = tuple(None if how == "n" else dtype for how in layout)
    form = elementwise.Form(width, 0, layout, (dtype,), ins, dtype)
    return elementwise.source(Elementwise(name, body), form)


def beside_a_column():
    """A matrix times a column, by vectors along the rows."""
    form = elementwise.Form(4, 2, "arn", ("float32",), ("float32", "float32", None), "float32")
    return elementwise.source(Elementwise("axpy", column_element), form)


def column_element(x, y, a):
    return a * x * y


def copy_of(out, x, dims, layout="a"):
    form = elementwise.Form(1, dims, layout, (out,), (x,), None)
    loops = elementwise_for(Operand(None, out, (), ()), Operand(None, x, (), ()))
    return elementwise.source(loops, form)


def sources():
    return {
        "axpy": flat("axpy", axpy_element, 4, "float32", "aan"),
        "half": flat("half", half_element, 8, "float16"),
        "bytes": flat("bytes", half_element, 16, "uint8"),
        "sine": flat("sine", sine_element, 1, "float32"),
        "rows": beside_a_column(),
        "transpose": copy_of("int32", "float64", 3),
        "turned": copy_of("float32", "float32", 2, "t"),
        "sum_rows": reduce.source(kernels.SUM, reduce.Form("rows", 4, 1, 1, "float32", "float32")),
        "amax_columns": reduce.source(kernels.AMAX, reduce.Form("columns", 1, 1, 1, "int64", "int64")),
    }


def text(name):
    return (FOLDER / f"{name}.ptx").read_text()


if __name__ == "__main__":
    for name, source in sources().items():
        (FOLDER / f"{name}.ptx").write_text(compiler.emit_ptx(source.program(), source, "sm_80"))
