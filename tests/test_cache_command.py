"""`python -m redispatch.cache`: what it says and does."""

import pytest

import redispatch as rd
from redispatch import cache as command
from redispatch.dispatch import disk as _disk
from redispatch.kernels.engine import cache


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("REDISPATCH_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def keep(folder, name, text="# shifted(int64, float32[])   flags: nogil\npass\n"):
    cache.directory()
    (folder / f"{name * 64}.kernel").write_bytes(b"x" * 1000)
    (folder / f"shifted-{name * 12}.py").write_text(text)


def test_what_is_there_is_listed(folder, capsys):
    keep(folder, "a")
    keep(folder, "b")
    (folder / f"{'c' * 64}.kernel").write_bytes(b"")  # its source is gone
    assert command.main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[-1] for line in lines[:2]] == ["c" * 12, "shifted(int64, float32[])"]
    assert lines[-2:] == [f"3 kernels, 2.1 kB, in {folder}", "0 pieces of specialised code, 0 B"]


def test_clearing_removes_kernels_and_nothing_else(folder, capsys):
    keep(folder, "a")
    (folder / "notes.py").write_text("mine")
    (folder / "other.kernel").write_text("mine")
    (folder / "code").mkdir()
    (folder / "code" / f"{'d' * 64}.code").write_bytes(b"x" * 500)
    (folder / "code" / "notes.code").write_text("mine")
    assert command.main(["clear"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("removed 1 kernels, 1.0 kB") and lines[1:] == [
        "removed 1 pieces of specialised code, 500 B"
    ]
    assert sorted(file.name for file in folder.iterdir()) == ["code", "notes.py", "other.kernel"]
    assert [file.name for file in (folder / "code").iterdir()] == ["notes.code"]


@pytest.mark.parametrize("wrong", [["--operators", "adds"], ["--dtypes", "float3"], ["--dtypes", "add"]])
def test_a_wrong_name_is_an_error_that_names_it(wrong, capsys):
    with pytest.raises(SystemExit):
        command.main(["warm", *wrong])
    assert f"there is no {'operator' if wrong[0] == '--operators' else 'dtype'} {wrong[1]!r}" in capsys.readouterr().err


def test_warming_runs_the_samples(folder, capsys):
    rd.ops.aten.neg.default.forget_entries()  # code that other tests had made would be found in memory, and not kept
    assert command.main(["warm", "--operators", "neg", "--dtypes", "float32"]) == 0
    assert "aten.neg.default" in capsys.readouterr().out
    assert list((folder / "code").glob("*.code"))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (["--program", "train.py"], "--program is for CUDA kernels"),
        (["--cuda", "sm_90", "--program"], "--program is for CUDA kernels"),
        (["--cuda", "sm_90", "--program", "nowhere.py"], "there is no program 'nowhere.py'"),
    ],
)
def test_a_program_is_run_for_a_card(wrong, why, capsys):
    with pytest.raises(SystemExit):
        command.main(["warm", *wrong])
    assert why in capsys.readouterr().err


def test_no_directory_is_told(tmp_path, monkeypatch, recwarn):
    monkeypatch.setattr(_disk, "_warned", False)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("REDISPATCH_CACHE_DIR", str(tmp_path / "file"))
    assert command.main(["list"]) == 1
    assert "cannot be kept on disk" in str(recwarn.list[0].message)
