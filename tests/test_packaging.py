"""The repository's root is the package: these tests hold the consequences (docs/decisions/0001)."""

import importlib
import os
import pkgutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import redispatch

ROOT = Path(redispatch.__file__).resolve().parent
PROJECT = ROOT / "pyproject.toml"
NOT_PACKAGES = {"tests", "docs", "build", "dist"}
HEAVY = {"numba", "llvmlite", "torch", "scipy", "sklearn", "matplotlib"}


def folders(root: Path) -> list[Path]:
    """`root` and the folders below it that can hold packages: not hidden, not tests, not docs."""
    found = [root]
    for folder in sorted(p for p in root.iterdir() if p.is_dir() and not p.is_symlink()):
        if folder.name.isidentifier() and not (root == ROOT and folder.name in NOT_PACKAGES):
            found += folders(folder)
    return found


def sources() -> list[Path]:
    """Every source file of the package."""
    return [file for folder in folders(ROOT) for file in sorted(folder.glob("*.py"))]


def package_name(folder: Path) -> str:
    return ".".join(("redispatch", *folder.relative_to(ROOT).parts))


def import_everything() -> None:
    for module in pkgutil.walk_packages(redispatch.__path__, "redispatch."):
        importlib.import_module(module.name)


def test_the_list_of_packages_equals_the_tree():
    listed = tomllib.loads(PROJECT.read_text())["tool"]["setuptools"]["packages"]
    assert listed == sorted(listed)
    assert listed == sorted(package_name(f) for f in folders(ROOT) if (f / "__init__.py").exists())


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
    assert [file for folder in folders(ROOT) for file in folder.glob("*.nb[ic]")] == []
