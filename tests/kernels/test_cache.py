"""Compiled kernels on disk: damage, edits, places that cannot be written, and the import that stays light."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

from redispatch.dispatch import disk as _disk
from redispatch.kernels import Elementwise, Operand
from redispatch.kernels.engine import cache
from redispatch.kernels.engine import compile as compile_
from redispatch.kernels.engine.program import Program

from .layouts import dense


def shifted(x):
    return helper(x) + 1


def helper(x):
    return x * 2


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("REDISPATCH_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setattr(_disk, "_warned", False)
    return tmp_path / "kernels"


def run_shifted():
    out = dense(np.zeros(3, np.float32))
    Elementwise("shifted", shifted).run(out, dense(np.array([1, 2, 3], np.float32)))
    return out.array.tolist()


def test_a_kernel_is_kept_with_its_source_beside_it_in_a_private_directory(folder):
    assert run_shifted() == [3, 5, 7]
    (kernel,), (source,) = folder.glob("*.kernel"), folder.glob("*.py")
    assert folder.stat().st_mode & 0o777 == 0o700
    text = source.read_text()
    assert "return x * float32(2)" in text and text.startswith("# shifted(int64, int64, float32[]")
    compile(text, str(source), "exec")
    before = kernel.stat().st_mtime_ns
    assert run_shifted() == [3, 5, 7]
    assert kernel.stat().st_mtime_ns == before


def test_a_damaged_file_is_a_miss(folder):
    run_shifted()
    (kernel,) = folder.glob("*.kernel")
    whole = kernel.read_bytes()
    damaged = [b"", whole[:10], whole[:-1], whole + b"x"]
    for place in range(0, len(whole), len(whole) // 10):
        damaged.append(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    for content in damaged:
        kernel.write_bytes(content)
        assert cache.load(kernel.stem) is None
    assert run_shifted() == [3, 5, 7]
    assert cache.load(kernel.stem) is not None


def test_a_file_under_another_kernels_name_is_a_miss(folder):
    run_shifted()
    (kernel,) = folder.glob("*.kernel")
    kernel.rename(folder / ("0" * 64 + ".kernel"))
    assert cache.load("0" * 64) is None


def test_an_edit_in_a_helper_of_a_helper_changes_the_key():
    def program(body):
        made = Program("float32")
        made.add(shifted, {"helper": body})
        return made.digest()

    def other(x):
        return x * 3

    def renamed(x):
        return helper(x)

    assert len({program(helper), program(other), program(renamed)}) == 3
    assert program(helper) == program(helper)


def test_a_function_means_the_same_in_two_programs_unless_something_that_it_reaches_differs():
    def meanings(body, loop, real="float32"):
        made = Program(real)
        called = made.add(shifted, {"helper": body})
        made.add_text(loop, f"def {loop}(x):\n    return f(x)\n", {"f": shifted})
        return made.meanings(made.load())[called]

    def other(x):
        return x * 3

    assert meanings(helper, "flat") == meanings(helper, "rows")
    assert len({meanings(helper, "flat"), meanings(other, "flat"), meanings(helper, "flat", "float64")}) == 3


def test_loops_of_one_function_share_what_was_compiled_of_it(folder, monkeypatch):
    monkeypatch.setattr(compile_, "_inner", {})
    loops = Elementwise("shifted", shifted)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for given in (x, x.T.copy().T, x[:, ::2]):
        out = dense(np.zeros(given.shape, np.float32))
        loops.run(out, Operand(x.ravel(), "float32", given.shape, tuple(s // 4 for s in given.strides), 0))
    assert len(list(folder.glob("*.kernel"))) > 1
    dispatchers = [one for one in compile_._inner.values() if one.__name__.startswith(("shifted", "helper"))]
    assert len(dispatchers) == 2 and all(len(one.signatures) == 1 for one in dispatchers)


def test_where_nothing_can_be_written_kernels_run_and_one_warning_says_so(folder):
    folder.write_text("a file where the directory should be")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert run_shifted() == [3, 5, 7]
        assert run_shifted() == [3, 5, 7]
    assert [str(w.message).split(" (")[0] for w in caught] == ["compiled kernels cannot be kept on disk"]


def test_a_directory_that_others_can_write_is_refused(folder):
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="can be written by other users"):
        assert cache.directory() is None


def test_a_directory_of_another_user_is_refused(folder, monkeypatch):
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    with pytest.warns(RuntimeWarning, match="owned by another user"):
        assert cache.directory() is None


def run_child(program, **environment):
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout


def test_importing_kernels_does_not_import_numba():
    assert run_child("import sys, redispatch.kernels; print('numba' in sys.modules)") == "False\n"


def test_a_kernel_loads_in_a_process_that_compiles_nothing(folder):
    program = (
        "import sys, numpy as np\n"
        "from redispatch.kernels import Operand, fill\n"
        "x = Operand(np.zeros(3, np.float32), 'float32', (3,), (1,))\n"
        "fill(x, 5)\n"
        "print(x.array.tolist(), 'numba.core.typing.arraydecl' in sys.modules)\n"
    )
    first, second = run_child(program), run_child(program)
    assert first.startswith("[5.0, 5.0, 5.0]") and second.startswith("[5.0, 5.0, 5.0]")
    assert len(list(folder.glob("*.kernel"))) == 1


def test_kernels_mean_the_same_as_plain_python(folder):
    program = (
        "import numpy as np\n"
        "from redispatch.kernels import Operand, SUM, copy\n"
        "x = Operand(np.arange(6, dtype=np.float32), 'float32', (2, 3), (1, 2))\n"
        "out = Operand(np.zeros(6, np.uint16), 'bfloat16', (2, 3), (3, 1))\n"
        "total = Operand(np.zeros(2, np.float32), 'float32', (2,), (1,))\n"
        "copy(out, x); SUM.run(total, out, (1,)); print(out.array.tolist(), total.array.tolist())\n"
    )
    assert run_child(program, NUMBA_DISABLE_JIT="1") == run_child(program)


def test_many_processes_that_compile_at_once_leave_whole_files_alone(folder):
    program = (
        "import numpy as np\n"
        "from redispatch.kernels import Elementwise, Operand\n"
        "from redispatch.kernels import cache\n"
        "out, x = (Operand(np.ones(4, np.float32), 'float32', (4,), (1,)) for _ in range(2))\n"
        "def raced(x): return x + 41\n"
    )
    file = folder / "raced.py"
    folder.mkdir(exist_ok=True, mode=0o700)
    file.write_text(program + "Elementwise('raced', raced).run(out, x)\nprint(out.array.tolist())\n")
    environment = {**os.environ, "REDISPATCH_CACHE_DIR": str(folder)}
    children = [
        subprocess.Popen([sys.executable, str(file)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    for child in children:
        out, err = child.communicate(timeout=120)
        assert (child.returncode, out.decode().strip()) == (0, str([42.0] * 4)), err.decode()
    assert len(cache.kept()) == 1 and not list(folder.glob("*.new"))
    assert cache.kept()[0].title.startswith("raced(int64, int64, float32[]")
    cache.clear()
    assert not cache.kept() and file.exists()  # what is not ours stays


def test_a_second_of_compiling_is_told_once(monkeypatch, capsys):
    monkeypatch.setattr(compile_, "_seconds", 0.0)
    monkeypatch.setattr(compile_, "_compiled", [])
    monkeypatch.setenv("REDISPATCH_QUIET", "0")
    for seconds in (0.6, 0.3, 0.3, 5.0):
        compile_._tell("shifted", seconds)
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert told.startswith("redispatch: compiled 3 kernels on first use, in 1.2 s (shifted, shifted, shifted)")
    monkeypatch.setattr(compile_, "_seconds", 0.0)
    monkeypatch.setenv("REDISPATCH_QUIET", "1")
    compile_._tell("shifted", 5.0)
    assert not capsys.readouterr().err
