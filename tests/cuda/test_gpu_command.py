"""`make gpu`, run on devices that are none: what it will do on a card, and that it does not call these one."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from redispatch.kernels import cuda
from redispatch.kernels.cuda.runtime.devices import started

from .conftest import devices_of

FOLDER = Path(__file__).parents[1] / "gpu"


@pytest.fixture
def command(monkeypatch):
    """The command's modules, which it finds beside itself; afterwards their names are free again."""
    monkeypatch.syspath_prepend(FOLDER)
    yield importlib.import_module("run")
    for name in ("run", "table", "speed", "workers", "missing", "compiled", "rows"):
        sys.modules.pop(name, None)
    for name in ("cuda", "bench"):
        sys.path.remove(str(FOLDER.parent / name))


def test_on_the_null_device_everything_is_timed_and_nothing_claimed(tmp_path):  # 6 s: a process of its own
    known = {**os.environ, "REDISPATCH_CUDA": "null"}
    given = [sys.executable, FOLDER / "run.py", "--small", "--out", tmp_path / "gpu.json"]
    told = subprocess.run(given, capture_output=True, text=True, env=known, check=True).stdout
    found = json.loads((tmp_path / "gpu.json").read_text())
    assert found["versions"]["card"] is False and found["versions"]["device"] == "null device"
    assert "table" not in found and "device copy" in told
    speed = found["speed"]
    for name in ("copy", "gelu", "row sums", "add a row", "cast to bfloat16"):
        assert speed[name]["ours seconds"] > 0 and speed[name]["ours of the copy"] > 0
    programs = [name for name in speed if name.startswith("compiled")]
    assert len(programs) == 2
    for name in ("add(64)", "graph of 100", "allocator churn", *programs):
        assert speed[name]["ours seconds"] > 0 and "torch seconds" not in speed[name]
    failed = {name: row["ours error"] for name, row in speed.items() if "ours error" in row}
    assert all("has no CUDA kernel yet" in error for error in failed.values()), failed


def test_without_a_device_it_says_what_is_missing(command, capsys):
    former = cuda.use(None)
    try:
        assert command.main([]) == 2
    finally:
        cuda.restore(former)
    assert "there is no CUDA device" in capsys.readouterr().err


def test_a_wrong_operator_is_found(command, tmp_path, monkeypatch):
    with devices_of(cuda.NullDriver()) as driver:
        monkeypatch.setattr(driver, "title", "a device that computes zeros")
        assert (
            command.main(
                ["--small", "--only", "atan2", "--skip", "simulator", "--jobs", "0", "--out", str(tmp_path / "g")]
            )
            == 1
        )
    table = json.loads((tmp_path / "g").read_text())["table"]
    assert table["right"] == 0 and "not close" in table["wrong"]["atan2"]


@pytest.mark.skipif(not cuda.available(), reason="kernels are compiled by numba-cuda: install redispatch[cuda]")
def test_a_card_is_compared_with_the_cpu_and_the_simulator(command, tmp_path, monkeypatch):
    from .fakes import fake_cards

    with fake_cards(monkeypatch, memory=1 << 26) as (driver, _), devices_of(driver):
        given = ["--small", "--only", "atan2", "--jobs", "0", "--out", str(tmp_path / "g")]
        assert command.main(given) == 0
        assert started().driver is driver  # which it was before
    found = json.loads((tmp_path / "g").read_text())
    assert found["versions"]["card"] is True and found["versions"]["driver"] == "13000"
    assert found["table"]["right"] == found["simulator"]["right"] >= 1 and not found["table"]["wrong"]


JOB = """
import os, time

def job(names):
    if "dies" in names:
        os._exit(3)
    if "hangs" in names:
        time.sleep(60)
    done = names[: names.index("loses") + 1] if "loses" in names else names
    return {name: name.upper() for name in done}
"""


def test_a_process_that_dies_takes_no_other_operator_with_it(command, tmp_path, monkeypatch):
    (tmp_path / "a_job.py").write_text(JOB)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(command.sys.modules["workers"], "PATIENCE", 1.0)
    names = [*"abcde", "dies", *"fg", "loses", *"hi", "hangs", "j"]
    job = importlib.import_module("a_job").job
    found = dict(command.shared_out(job, names, workers=2, chunk=4))
    assert found.keys() == set(names)
    assert found.pop("dies") == "its process ended with 3" and found.pop("hangs") == "it took more than 1 s"
    assert found == {name: name.upper() for name in found}
