"""Programs after PyTorch's documentation print here, but for the import line, what they print on PyTorch.

Each `<program>.py` imports torch; what PyTorch 2.13 printed is in `<program>.txt`, and tests/parity/programs.py
compares these files with the torch that is installed. Here all run in one other process, where `install()` answers.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROGRAMS = sorted(path.stem for path in HERE.glob("*.txt"))
RUN_ALL = """
import contextlib, io, json, runpy, sys, traceback, warnings
import redispatch
warnings.simplefilter("ignore")
redispatch.install()
printed = {}
for path in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            runpy.run_path(path, run_name="__main__")
        except Exception:
            traceback.print_exc(file=out)
    printed[path] = out.getvalue()
print(json.dumps(printed))
"""


@pytest.fixture(scope="module")
def printed():
    paths = [str(HERE / f"{name}.py") for name in PROGRAMS]
    done = subprocess.run([sys.executable, "-c", RUN_ALL, *paths], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return {Path(path).stem: text for path, text in json.loads(done.stdout).items()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_what_it_prints_on_torch(name, printed):
    assert printed[name] == (HERE / f"{name}.txt").read_text()


def test_there_are_ten_programs_and_each_imports_torch_alone():
    assert len(PROGRAMS) >= 10
    for name in PROGRAMS:
        program = (HERE / f"{name}.py").read_text()
        assert "\nimport torch\n" in program and "import redispatch" not in program
