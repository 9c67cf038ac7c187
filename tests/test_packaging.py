"""The rooms stand at the top of the repository: these tests hold the consequences (docs/decisions/0001)."""

import importlib
import os
import pkgutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = ROOT / "pyproject.toml"
SETUP = tomllib.loads(PROJECT.read_text())["tool"]["setuptools"]
ROOMS = {name: ROOT / folder for name, folder in SETUP["package-dir"].items()}  # package -> folder
HEAVY = {"numba", "llvmlite", "torch", "scipy", "sklearn", "matplotlib"}


def folders(root: Path) -> list[Path]:
    """`root` and the folders below it that can hold packages."""
    below = sorted(p for p in root.iterdir() if p.is_dir() and p.name.isidentifier() and p.name != "__pycache__")
    return [root, *(found for folder in below for found in folders(folder))]


def packages() -> dict[str, Path]:
    """The packages of the tree, by name: the folders of the rooms."""
    return {
        ".".join((name, *folder.relative_to(room).parts)): folder
        for name, room in ROOMS.items()
        for folder in folders(room)
    }


def sources() -> list[Path]:
    """Every source file of the package."""
    return [file for folder in packages().values() for file in sorted(folder.glob("*.py"))]


def import_everything() -> None:
    for name, folder in packages().items():
        for module in pkgutil.iter_modules([str(folder)], f"{name}."):
            importlib.import_module(module.name)


def test_the_list_of_packages_equals_the_tree():
    assert SETUP["packages"] == sorted(SETUP["packages"])
    assert SETUP["packages"] == sorted(name for name, folder in packages().items() if (folder / "__init__.py").exists())


def test_type_checkers_find_every_room():
    """Links stand for the package in .typing/, since type checkers do not see through the editable install."""
    links = {link.name: link.resolve() for link in (ROOT / ".typing" / "redispatch").iterdir() if link.is_symlink()}
    inside = [*ROOMS["redispatch"].iterdir(), *(room for name, room in ROOMS.items() if name != "redispatch")]
    assert links == {path.name: path for path in inside if path.name != "__pycache__"}


def test_the_top_level_is_the_rooms_and_a_few_texts():
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    shown = {name.partition("/")[0] for name in names if not name.startswith(".")}
    if not shown:
        pytest.skip("no git checkout")
    texts = {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "pyproject.toml"}
    assert shown == texts | {room.name for room in ROOMS.values()} | {"docs", "tests"}


def test_former_import_paths_still_lead_to_the_modules():
    """Those of before the rooms: `redispatch.ops.pointwise`. None loads a module twice, none hides a public name."""
    program = """
import redispatch as rd, redispatch.ops.linalg, redispatch.dispatch.trace, redispatch.tensor.storage
from redispatch.ops.pointwise import pointwise
from redispatch.kernels.declare.pointwise import pointwise as today
from redispatch.tensor import Tensor
from redispatch.func.vmap_level import VmapLevel
from redispatch.kernels.program import Program
from redispatch.func.batching.fallback import one_by_one
assert pointwise is today and Tensor is rd.Tensor and callable(rd.dispatch.trace) and callable(rd.tensor)
assert rd.ops.aten.add.Tensor(rd.ones(1), rd.ones(1)).item() == 2
assert rd.utils._pytree.tree_leaves([1, (2,)]) == [1, 2]
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_source_file_lies_in_a_package():
    assert [file for file in sources() if not (file.parent / "__init__.py").exists()] == []


def test_every_source_file_is_imported_exactly_once():
    import_everything()
    files = [
        getattr(module, "__file__", None) for module in {id(one): one for one in list(sys.modules.values())}.values()
    ]
    times = Counter(os.path.realpath(file) for file in files if file)
    assert {str(file): times[str(file)] for file in sources() if times[str(file)] != 1} == {}


def test_every_source_file_says_what_it_is():
    assert [file for file in sources() if not file.read_text().lstrip().startswith('"""')] == []


def test_importing_the_library_loads_nothing_heavy():
    """In a process of its own: the kernels and other tests bring numba in here."""
    program = "import sys, redispatch; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert HEAVY.intersection(loaded) == set()


def test_no_compiled_kernel_lies_beside_the_sources():
    """numba's own cache files would shadow a later install; kernels have a cache folder of their own."""
    assert [file for folder in packages().values() for file in folder.glob("*.nb[ic]")] == []
