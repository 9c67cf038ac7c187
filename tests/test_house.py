"""The rules of the house that a program can hold: reasons, words, arrows between rooms, what is packaged."""

import ast
import importlib
import os
import pkgutil
import re
import subprocess
import sys
import textwrap
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from redispatch.dispatch import OPERATORS

from . import drawing

ROOT = Path(__file__).resolve().parents[1]
ROOMS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]
FOLDERS = tuple(ROOMS.values())
SOURCES = [file for room in FOLDERS for file in sorted((ROOT / room).rglob("*.py"))]

IGNORE = re.compile(r"#\s*(ruff: )?(noqa|type: ignore)(?!-)")
REASON = re.compile(r"#\s*(?:ruff: )?(?:noqa|type: ignore)[^#(]*(?:#\s*\S|\(\S)")

# A docstring's first line begins with a verb or a noun: none of these, which begin a clause without one.
NO_BEGINNING = re.compile(r"(As|How|That|What(ever)?|When|Where(ver)?|Which|Who(m|se)?|Why)\b")

# What a word of the glossary took the place of: a regular expression -> the word of today, and where it holds
RETIRED = {
    r"\b[Rr]oads?\b": ("path", ("dispatch",)),
    r"\b[Mm]oulds?\b": ("OutputSpec, output_spec", FOLDERS),
    r"\b(_looks|looks_of|\w+_looks)\b|\bLooks\b(?! [a-z])|\b(the|these|its|by|of) looks\b(?! \w)": (
        "metadata, Metadata",
        FOLDERS,
    ),
    r"\b[Ll]anes?\b": ("fast path", ("dispatch",)),
    r"\w_(otherwise|anew)\b": ("..._slow", FOLDERS),
    r"\bbackends/cuda\b": ("kernels/cuda/runtime", FOLDERS),
    r"\b(through_host\.py|butterflies|remembered\.py|taped\.py)\b": ("the module's name of today", FOLDERS),
}


def test_each_ignore_of_a_linter_or_type_checker_gives_its_reason():
    bare = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in SOURCES
        for number, line in enumerate(file.read_text().split("\n"), 1)
        if IGNORE.search(line) and not REASON.search(line)
    ]
    assert bare == []


def clauses_for_docstrings(text: str) -> Iterator[tuple[int, str]]:
    """(line, first line of the docstring) of the functions and classes whose docstrings begin with no verb or noun."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            said = ast.get_docstring(node) or ""
            if NO_BEGINNING.match(said):
                yield node.lineno, said.split("\n")[0]


def test_docstrings_begin_with_a_verb_or_a_noun():
    files = [*SOURCES, *sorted((ROOT / "tests").rglob("*.py"))]
    found = [
        f"{file.relative_to(ROOT)}:{n}: {said}"
        for file in files
        for n, said in clauses_for_docstrings(file.read_text())
    ]
    assert found == []


def test_a_docstring_that_begins_with_a_clause_is_seen():
    text = 'class C:\n    """{}"""\n    async def f():\n        """{}"""\n'
    assert list(clauses_for_docstrings(text.format("Which.", "How it is."))) == [(1, "Which."), (3, "How it is.")]
    assert list(clauses_for_docstrings(text.format("Asks.", "Howls where others stop."))) == []


def test_retired_words_do_not_come_back():
    found = [
        f"{file.relative_to(ROOT)}:{number}: {match[0]!r} is {today!r} now"
        for word, (today, rooms) in RETIRED.items()
        for file in SOURCES
        if file.relative_to(ROOT).parts[0] in rooms
        for number, line in enumerate(file.read_text().split("\n"), 1)
        if (match := re.search(word, line))
    ]
    assert found == []


def test_what_to_read_next_and_the_files_that_pages_name_are_there():
    """A name is that of a file beside the one that mentions it, or a path from the root."""
    gone = [
        f"{file.relative_to(ROOT)}: {named}"
        for file in SOURCES
        for passage in re.findall(r'Read next:(.*?)(?:"""|\n\n)', file.read_text(), re.DOTALL)
        for named in re.findall(r"[\w./]+\.(?:py|md)\b", passage)
        if not (file.parent / named).exists() and not (ROOT / named).exists()
    ]
    gone += [
        f"{page.relative_to(ROOT)}: {named}"
        for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
        if page.name != "CHANGELOG.md"
        for named in re.findall(rf"\b(?:{'|'.join(FOLDERS)}|docs|tests)/[\w./]+\.(?:py|md)\b", page.read_text())
        if not (ROOT / named).exists()
    ]
    assert gone == []


def test_the_glossary_has_each_term_once():
    terms = re.findall(r"^\| (?!term|-)([^|]+) \|", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
    assert len(terms) >= 40 and len(set(terms)) == len(terms)


# Where six names of operators, or of what is called like one, may stand in a list: a file or a folder -> why.
NO_FACTS = {
    "frontend/array_api": "the standard's names, which it publishes",
    "frontend/fx/experimental/meta_tracer.py": "questions about a tensor's metadata",
    "frontend/fx/experimental/sym_node.py": "operations of numbers that are symbols, under PyTorch's names",
    "frontend/fx/proxy.py": "Python's operators by their names",
    "frontend/jit": "TorchScript's own operators on numbers, and Python's operators by their names",
    "frontend/learn/lessons": "the operators of which drawn programs are made",
    "frontend/masked": "a subclass says itself which operators it takes; PyTorch's module of that name publishes these",
    "frontend/functional.py": "PyTorch's module of that name, which publishes these",
    "frontend/nn/functional.py": "PyTorch's module of that name, which publishes these",
    "frontend/testing/op_db": "samples of operators, by their names",
    "kernels/cuda/intrinsics.py": "functions of libdevice",
    "kernels/declare/scalar_functions.py": "functions of Python's math",
    "kernels/engine/translate/instructions.py": "functions of Python's math and of LLVM",
    "kernels/ops/device_memory.py": "what an allocator needs to be a device; the file's subject",
    "kernels/ops/on_quantized.py": "the operators for which a backend has kernels; the file's subject",
    "kernels/ops/foreach.py": "operators on lists, which are declared here by the names of those that they call",
    "subclasses": "a subclass says itself what operators mean for it, as a user's does",
}


def names_of_operators():
    names = {name.removeprefix("aten::") for name in OPERATORS if name.startswith("aten::")}
    return names | {name.partition(".")[0] for name in names}


def is_plain(value):
    """Whether a value in a table is data: a dict of names and functions registers what stands beside each name."""
    if isinstance(value, ast.Tuple | ast.List | ast.Set):
        return all(map(is_plain, value.elts))
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Dict) and all(map(is_plain, value.values)))


def listed_in(node):
    """The words that a literal lists: elements, words of a string, keys of a table of data and values that are one."""
    if isinstance(node, ast.Dict):
        pairs = [(key, value) for key, value in zip(node.keys, node.values, strict=True) if key and is_plain(value)]
        return [word for pair in pairs for one in pair if isinstance(one, ast.Constant) for word in listed_in(one)]
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return [one.value for one in node.elts if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return node.value.split() if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def lists_of_operators(text, known):
    """(line, names) of each literal in a program, most of whose words are six or more names of operators."""
    tree = ast.parse(text)
    left_out = set()  # docstrings, and the names that a module publishes
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and isinstance(node.body[0], ast.Expr):
            left_out.add(node.body[0].value)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            left_out.add(node.value)
    for node in ast.walk(tree):
        words = [] if node in left_out else listed_in(node)
        names = {word for word in words if word.removeprefix("aten::") in known}
        if len(names) >= 6 and 2 * len(names) >= len(words):
            yield node.lineno, sorted(names)


def test_what_is_true_of_an_operator_stands_where_it_is_declared():
    known, excused, found = names_of_operators(), set(), []
    for file in SOURCES:
        path = str(file.relative_to(ROOT))
        excuse = next((one for one in NO_FACTS if path == one or path.startswith(f"{one}/")), None)
        for line, names in lists_of_operators(file.read_text(), known):
            excused.add(excuse)
            if excuse is None:
                found.append(f"{path}:{line} lists {' '.join(names)}: a keyword at each operator's declaration says it")
    assert found == []
    assert excused - {None} >= {*NO_FACTS}, "an excuse that nobody needs any more"


def test_a_list_of_operators_is_seen_for_one():
    known, six = {"sin", "cos", "tan", "exp", "log", "abs"}, "sin cos tan exp log abs"
    for text in (
        f"X = {six!r}.split()",
        f"X = {six.split()}",
        f"X = f({{{', '.join(f'{one!r}: 1' for one in six.split())}}})",
    ):
        assert [names for _, names in lists_of_operators(text, known)] == [sorted(known)]
    registers = f"X = {{{', '.join(f'{one!r}: {one}' for one in six.split())}}}"
    for text in (registers, f'"""{six}"""', f"__all__ = {six.split()}", f"X = {six.split()[1:]}"):
        assert list(lists_of_operators(text, known)) == []


# The arrows between files ---------------------------------------------------------------------------------------------

# None goes in a circle, and an import inside of a function says why it is there. import-linter holds the order of
# the rooms (pyproject.toml); this counts every import, those for types alone and those inside of functions, too.


class Import(NamedTuple):
    importer: str
    imported: str
    line: int
    is_hidden: bool  # inside of a function


def modules() -> dict[str, Path]:
    found = {}
    for package, folder in ROOMS.items():
        for file in (ROOT / folder).rglob("*.py"):
            parts = file.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join((package, *parts)).removesuffix(".__init__")] = file
    return found


MODULES = modules()


def hidden_imports(tree: ast.AST) -> list[ast.Import | ast.ImportFrom]:
    """Those inside of functions, from the top."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    found = {node for one in functions for node in ast.walk(one) if isinstance(node, ast.Import | ast.ImportFrom)}
    return sorted(found, key=lambda node: node.lineno)


def imports_without_reason(text: str) -> Iterator[int]:
    """The lines of the imports in functions that have no comment; of those in a row, the first one's is for all."""
    lines, excused = text.split("\n"), 0
    for node in hidden_imports(ast.parse(text)):
        if node.lineno == excused or "#" in "".join(lines[node.lineno - 1 : node.end_lineno]):
            excused = node.end_lineno + 1
        else:
            yield node.lineno


def imports(module: str, text: str) -> Iterator[Import]:
    """Every import of one of the library's modules."""
    tree = ast.parse(text)
    hidden = set(hidden_imports(tree))
    package = module.split(".") if MODULES[module].name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names = [f"{base}.{a.name}" if f"{base}.{a.name}" in MODULES else base for a in node.names]
        else:
            continue
        for name in names:
            if name in MODULES and name != module:
                yield Import(module, name, node.lineno, node in hidden)


IMPORTS = [one for module, file in MODULES.items() for one in imports(module, file.read_text())]


def circles(arrows: dict[str, set[str]]) -> list[set[str]]:
    """The groups of files that can all be reached from each other."""

    def reached(start: str) -> set[str]:
        seen, todo = set(), [start]
        while todo:
            new = arrows.get(todo.pop(), set()) - seen
            seen |= new
            todo += new
        return seen

    reach = {one: reached(one) for one in arrows}
    found = {frozenset(b for b in reach[a] if a in reach.get(b, ())) for a in arrows if a in reach[a]}
    return sorted(map(set, found), key=sorted)


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [{"b", "c"}]
    assert circles({"a": {"b", "c"}, "b": {"c"}}) == []


def test_no_arrow_between_files_goes_in_a_circle():
    """Packages are left out: a package names what its files have, and a file may ask the package for it."""
    arrows: dict[str, set[str]] = {}
    for one in IMPORTS:
        if not {MODULES[one.importer].name, MODULES[one.imported].name} & {"__init__.py"}:
            arrows.setdefault(one.importer, set()).add(one.imported)
    assert circles(arrows) == []


def test_an_import_inside_of_a_function_says_why():
    files = [*SOURCES, ROOT / "tests" / "cuda" / "fakes.py"]
    without = [f"{file.relative_to(ROOT)}:{n}" for file in files for n in imports_without_reason(file.read_text())]
    assert without == []
    assert len({(one.importer, one.line) for one in IMPORTS if one.is_hidden}) <= 25


def test_an_import_without_a_reason_is_seen():
    text = "def f():\n    import a{}\n    import b{}\n\n    # why\n    from c import (\n        d,{}\n    )\n"
    assert list(imports_without_reason(text.format("  # why", "", ""))) == [6]
    assert list(imports_without_reason(text.format("", "  # why", "  # why"))) == [2]
    assert list(imports_without_reason("import a\n\nclass C:\n    import b\n")) == []


# The rooms stand at the top of the repository -------------------------------------------------------------------------

# These tests hold the consequences (docs/decisions/0001).

PROJECT = ROOT / "pyproject.toml"
SETUP = tomllib.loads(PROJECT.read_text())["tool"]["setuptools"]
PATHS = {name: ROOT / folder for name, folder in SETUP["package-dir"].items()}  # package -> folder
HEAVY = {"numba", "llvmlite", "torch", "scipy", "sklearn", "matplotlib", "logging", "redispatch.kernels.cuda"}


def folders(root: Path) -> list[Path]:
    """`root` and the folders below it that can hold packages."""
    below = sorted(p for p in root.iterdir() if p.is_dir() and p.name.isidentifier() and p.name != "__pycache__")
    return [root, *(found for folder in below for found in folders(folder))]


def packages() -> dict[str, Path]:
    """The packages of the tree, by name: the folders of the rooms."""
    return {
        ".".join((name, *folder.relative_to(room).parts)): folder
        for name, room in PATHS.items()
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
    inside = [*PATHS["redispatch"].iterdir(), *(room for name, room in PATHS.items() if name != "redispatch")]
    assert links == {path.name: path for path in inside if path.name != "__pycache__"}


def test_the_top_level_is_the_rooms_and_a_few_texts():
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    shown = {name.partition("/")[0] for name in names if not name.startswith(".")}
    if not shown:
        pytest.skip("no git checkout")
    texts = {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "pyproject.toml"}
    assert shown == texts | {room.name for room in PATHS.values()} | {"docs", "tests"}


# What the forge reads: forms, workflows -------------------------------------------------------------------------------

FORGE = ROOT / ".github"


def commands_of(workflow):
    """Yields the lines that the jobs of a workflow run."""
    for job in workflow["jobs"].values():
        assert job["runs-on"] and job["timeout-minutes"] <= 360
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step)
            yield from step.get("run", "").splitlines()


def test_workflows_run_the_commands_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    targets, variables = (
        re.findall(r"^([a-z-]+):", makefile, re.MULTILINE),
        re.findall(r"^(\w+) +\?=", makefile, re.MULTILINE),
    )
    called = Counter()
    for file in sorted((FORGE / "workflows").glob("*.yml")):
        workflow = yaml.safe_load(file.read_text())
        assert workflow["name"] == file.stem and workflow["permissions"] == {"contents": "read"}
        for command in commands_of(workflow):
            words = command.split()
            if words[0] == "make":
                called[words[1]] += 1
                settings = " ".join(words[2:])
                assert words[1] in targets and set(re.findall(r"(\w+)=", settings)) <= {*variables}, command
            else:
                assert command.startswith("echo ") and command.endswith('>> "$GITHUB_ENV"'), command
    assert {"lint", "test", "docs", "demo", "test-all", "parity"} <= called.keys()
    in_ci = re.findall(r"^make (\w+)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert set(in_ci) == {"lint", "test", "docs"} <= called.keys()


def test_the_parts_of_the_tests_that_workflows_run_are_all_of_them():
    for file, job, count in (("check", "test", 4), ("nightly", "everything", 8)):
        found = yaml.safe_load((FORGE / "workflows" / f"{file}.yml").read_text())["jobs"][job]
        assert found["strategy"]["matrix"]["shard"] == [*range(1, count + 1)]
        assert [step["run"] for step in found["steps"] if f"/{count}" in step.get("run", "")]
    texts = [f"tests/test_a.py::test_{number}" for number in range(200)]
    parts = [[text for text in texts if drawing.number("shard", text) % 4 == place] for place in range(4)]
    assert sorted(sum(parts, [])) == sorted(texts) and min(map(len, parts)) > 30


def test_issue_forms_ask_for_what_triage_needs():
    forms = {file.stem: yaml.safe_load(file.read_text()) for file in (FORGE / "ISSUE_TEMPLATE").glob("*.yml")}
    assert forms.pop("config") == {"blank_issues_enabled": False}
    for form in forms.values():
        assert form["name"] and form["description"] and "needs-triage" in form["labels"]
        fields = [field for field in form["body"] if field["type"] != "markdown"]
        assert all(field["attributes"]["label"] for field in fields) and len({field["id"] for field in fields}) == len(
            fields
        )
    (asked,) = [field["attributes"]["description"] for field in forms["bug"]["body"] if field["id"] == "environment"]
    command = re.search(r"`python -m (\S+)`", asked)[1]
    ran = subprocess.run([sys.executable, "-m", command], cwd=ROOT / "docs", capture_output=True, text=True, check=True)
    assert "redispatch" in ran.stdout and "numpy==" in ran.stdout


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
from redispatch.ops.trigonometry import sin
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


def in_a_fresh_process(program):
    """Returns what a program prints in a Python of its own."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True, timeout=120
    ).stdout.split()


def test_the_collector_searches_nothing_that_the_import_made():
    unseen, left = in_a_fresh_process(
        """
        import gc, weakref
        import redispatch
        class Ring: pass
        ring = Ring(); ring.ring = ring; gone = weakref.ref(ring); del ring
        gc.collect()
        print(gc.get_freeze_count() > 50_000 and gc.isenabled(), gone() is None)
        """
    )
    assert (unseen, left) == ("True", "True")


def test_the_collector_goes_on_searching_what_a_program_had_before_the_import():
    assert in_a_fresh_process(
        """
        import gc
        own = [[number] for number in range(60_000)]
        import redispatch
        print(gc.get_freeze_count(), gc.isenabled())
        """
    ) == ["0", "True"]


def test_importing_the_library_loads_nothing_heavy():
    """In a process of its own: the kernels and other tests bring numba in here."""
    program = "import sys, redispatch; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert HEAVY.intersection(loaded) == set()


def test_no_compiled_kernel_lies_beside_the_sources():
    """numba's own cache files would shadow a later install; kernels have a cache folder of their own."""
    assert [file for folder in packages().values() for file in folder.glob("*.nb[ic]")] == []
