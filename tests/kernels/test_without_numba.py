"""Where numba and LLVM cannot be imported, kernels are Python: slower, said once, and the same results."""

import os
import pickle
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest

from redispatch.selective import wheel
from redispatch.testing.comparison import close, default_tolerances
from redispatch.testing.op_db import op_db

from .. import drawing
from ..without_numba import results

ROOT = Path(__file__).parents[2]
NAMES = sorted(set(map(str, op_db)))


@pytest.fixture
def run_child(tmp_path):
    """Runs a program in a process of its own; from a file, so that a kernel's source can be read."""

    def run(program, *options, **environment):
        file = tmp_path / "program.py"
        file.write_text(program)
        surroundings = {**os.environ, "REDISPATCH_QUIET": "0", "PYTHONPATH": str(ROOT), **environment}
        done = subprocess.run(
            [sys.executable, *options, file], cwd=ROOT, env=surroundings, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done

    return run


# Results --------------------------------------------------------------------------------------------------------------


def numbers(dtype, memory):
    """Bytes of memory as numbers that numpy can compare."""
    if dtype == "bfloat16":
        return (memory.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    found = memory.view(np.dtype(dtype)) if dtype in np.sctypeDict else memory
    return found.astype(np.float32) if found.dtype == np.float16 else found


def is_equal(one, other):
    """Whether a result is that of compiled kernels: the same numbers, floats up to the last digits."""
    if not (isinstance(one, tuple) and isinstance(other, tuple)):
        return (
            one == other
            or one != one
            and other != other
            or isinstance(one, float)
            and abs(one - other) < 1e-7 * abs(other)
        )
    if one[:2] != other[:2] or one[2] is None or other[2] is None:
        return one == other
    tolerances = default_tolerances(type("dtype", (), {"name": one[0]}))
    return bool(close(numbers(one[0], one[2]), numbers(other[0], other[2]), *tolerances, True).all())


def test_operators_give_the_results_of_compiled_kernels(tmp_path):
    chosen = drawing.draw(NAMES, "without numba", count=8)
    file = tmp_path / "results"
    subprocess.run(
        [sys.executable, "-m", "tests.without_numba", file, *chosen],
        cwd=ROOT, check=True, env={**os.environ, "REDISPATCH_QUIET": "1"},
    )  # fmt: skip
    found, wanted = pickle.loads(file.read_bytes()), dict(results(chosen))
    assert found.keys() == wanted.keys() and len(found) >= len(chosen)
    wrong = [
        key for key in wanted if not all(map(is_equal, found[key], wanted[key])) or len(found[key]) != len(wanted[key])
    ]
    assert len(wrong) <= len(wanted) // 100, wrong


def test_the_comparison_sees_another_number():
    memory = np.arange(3, dtype=np.float32).view(np.uint8)
    other = np.array([0, 1, 2.001], np.float32).view(np.uint8)
    assert is_equal(("float32", (3,), memory), ("float32", (3,), memory.copy()))
    assert not is_equal(("float32", (3,), memory), ("float32", (3,), other))
    assert not is_equal(("float32", (3,), memory), "RuntimeError")


# What numpy's numbers and Python's would do by themselves: raise, or compute in another type.
MEANINGS = """
import math, numpy as np
from redispatch.kernels import Elementwise, Operand

def run(body, dtype, *columns):
    arrays = [np.array(column, dtype) for column in columns]
    operands = [Operand(x, dtype, x.shape, (1,)) for x in arrays]
    out = Operand(np.zeros_like(arrays[0]), dtype, arrays[0].shape, (1,))
    Elementwise(body.__name__, body).run(out, *operands)
    digits = ".6g" if body in (half_exp, root, gamma) else ""  # functions of libraries, which differ in the last bit
    print(body.__name__, dtype, [format(x, digits) for x in out.array.tolist()])

def quotient(x, y): return x / y
def floored(x, y): return x // y
def rest(x, y): return x % y
def sum_of(x, y): return x + y
def half_exp(x): return 0.5 * math.exp(x)
def root(x): return math.sqrt(x) + math.log(x)
def as_float(x): return float(x) * 0.1
def third(x): return x * 0.1 + 1 / 3
def whole(x): return math.floor(x) + int(x)
def gamma(x): return math.gamma(x)
def part(x): return complex(x, x).real

for dtype in ("int8", "uint8", "int64"):
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    for body in (floored, rest, sum_of):
        run(body, dtype, [7, 7, most, least, 5], [0, 2, 1, 1, 3])
for dtype in ("float32", "float64"):
    for body in (quotient, floored, rest):
        run(body, dtype, [1, -1, 0, 7.5, math.inf], [0, 0, 0, -2, 3])
    for body in (half_exp, root, as_float, third, part):
        run(body, dtype, [0, 1, 1e30, -1, 0.3])
    run(whole, dtype, [0, 1.5, -1.5])
    run(gamma, dtype, [0.5, 3.0])
"""


def test_numbers_wrap_and_round_and_nothing_raises(run_child):
    blocked = "from tests.without_numba import COMPILERS, block\nblock(COMPILERS)\n"
    assert run_child(blocked + MEANINGS).stdout == run_child(MEANINGS).stdout


# What is said, and what does without ----------------------------------------------------------------------------------

PROGRAM = """
from tests.without_numba import COMPILERS, block
block({names})
import redispatch as rd
x = rd.randn(3, 4, requires_grad=True)
(x.exp() @ rd.randn(4, 2)).sum().backward()
compiled = rd.compile(lambda a: (a.sin() + 1).relu())
assert rd.equal(compiled(x), (x.sin() + 1).relu())
assert rd.backends.cpu.get_cpu_capability() == "DEFAULT" and "architecture" in rd.cpu.get_capabilities()
"""


def test_it_is_said_once_what_is_missing_and_what_to_install(run_child):
    said = run_child(PROGRAM.format(names="COMPILERS")).stderr
    assert said.count("kernels run as plain Python") == 1 and "pip install numba" in said
    assert not run_child(PROGRAM.format(names="COMPILERS"), REDISPATCH_QUIET="1").stderr


def test_without_numba_alone_only_what_it_translates_is_python(run_child, tmp_path):
    program = (
        "from tests.without_numba import block\nblock(['numba'])\nimport redispatch as rd, warnings\n"
        "from redispatch.kernels.ops.from_data import tensor\n"
        "rd.ones(3).exp(); print('loops are compiled')\n"
        "import numpy as np\nfrom redispatch.kernels import Elementwise, Operand\n"
        "def power(x): return x ** (1 + 2j)\n"
        "x, out = (Operand(np.ones(2, np.complex64), 'complex64', (2,), (1,)) for _ in range(2))\n"
        "Elementwise('power', power).run(out, x); print(out.array.tolist())\n"
    )
    done = run_child(program, REDISPATCH_CACHE_DIR=str(tmp_path))
    assert done.stdout == "loops are compiled\n[(1+0j), (1+0j)]\n" and done.stderr.count("plain Python") == 1


# A browser ------------------------------------------------------------------------------------------------------------

LESSON = """
import sys
sys.path[:0] = {paths!r}
from tests.without_numba import as_in_a_browser
as_in_a_browser()
import redispatch as rd
assert rd.__file__.startswith({wheel!r}), rd.__file__
rd.manual_seed(0)
model = rd.nn.Sequential(rd.nn.Linear(4, 8), rd.nn.ReLU(), rd.nn.Linear(8, 1))
optimizer = rd.optim.Adam(model.parameters(), lr=0.05)
x = rd.randn(16, 4)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0] / 4, losses
with rd.trace() as hops:
    rd.func.vmap(rd.func.grad(lambda v: (v * v).sum()))(x)
assert "aten.mul.Tensor" in str(hops) and "<svg" in hops.html() + "<svg"
rd.explain(rd.ops.aten.add.Tensor, x, x)
large = rd.ones(600, 600)
assert (large @ large + large.relu()).sum() == 600**3 + 600**2
assert rd.equal(rd.compile(lambda a: (a.sin() + 1).relu())(x), (x.sin() + 1).relu())
print("taught")
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The folder into which a wheel of the whole library is unpacked, as micropip does."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    files = {}
    for package in told["packages"]:
        root = max((one for one in told["package-dir"] if f"{package}.".startswith(f"{one}.")), key=len)
        folder = ROOT / told["package-dir"][root] / Path(*package.removeprefix(root).split("."))
        data = [file for pattern in told["package-data"].get(package, ()) for file in folder.glob(pattern)]
        for file in (*folder.glob("*.py"), *data):
            files[f"{package.replace('.', '/')}/{file.relative_to(folder)}"] = file.read_bytes()
    folder = tmp_path_factory.mktemp("browser")
    zipfile.ZipFile(wheel(folder, files)).extractall(folder / "site")
    return folder / "site"


def test_the_wheel_trains_where_there_is_no_more_than_in_a_browser(unpacked, run_child, tmp_path):
    packages = str(Path(np.__file__).parents[1])
    program = LESSON.format(paths=[str(unpacked), str(ROOT), packages], wheel=str(unpacked))
    done = run_child(program, "-I", "-S", REDISPATCH_CACHE_DIR=str(tmp_path))
    assert done.stdout == "taught\n" and done.stderr.count("plain Python") == 1


def test_the_page_for_browsers_loads_the_wheel_that_lies_beside_it():
    page = (ROOT / "docs" / "howto" / "browser.html").read_text()
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"redispatch-{told['version']}-py3-none-any.whl" in page
    for name in ("numba", "ml_dtypes"):  # which no browser has: micropip must not look for them
        assert all("emscripten" in one for one in told["dependencies"] if one.startswith(name))
