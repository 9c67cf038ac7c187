"""Selective builds: which operators a program needs, in a list that an import can hold to, and a wheel of no more.

    traced = selective.trace(model, x)           # roots: what the program calls; closure: what these call in turn
    traced.write("ops.txt")
    $ REDISPATCH_OPS=ops.txt python program.py   # other operators are not registered, their files not opened
    $ python -m redispatch selective cut ops.txt program.py       # a wheel of the files that the program opens

Read next: _postponed.py, the import under a list.
"""

from __future__ import annotations

import inspect
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from redispatch.dispatch import LATE, OPERATORS, OpOverload
from redispatch.dispatch.autograd.engine import current_task
from redispatch.dispatch.config import config
from redispatch.dispatch.disk import digest, write_whole
from redispatch.dispatch.rules import TABLES
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.declare.declare import Operator
from redispatch.kernels.declare.public import FUNCTIONS, IN_PLACE

from ._postponed import ALWAYS, ROOMS, WHERE, dtypes_in, is_postponed, packet, places
from ._selection import LIST

Names = dict[str, frozenset[str]]  # of operators -> the dtypes of their tensors


def where() -> dict[str, Any]:
    """The places of things, for an import under a list: of each operator the module that declares it and the families
    that register something for it; of functions and methods the module and the operator; and what is no function.

    Left out are shortcuts at ZeroTensor, whose fallback does without them.
    """
    for module in [*LATE.values()]:
        import_module(module)
    files = {getattr(module, "__file__", None): name for name, module in sys.modules.items() if stands_there(name)}

    def module_of(place: str) -> str:
        return files.get(place.rpartition(":")[0], "")

    found: dict[str, dict[str, None]] = {}
    for op in OPERATORS.values():
        kernels = [kept[-1] for key, kept in op.registrations.items() if key.name != "ZeroTensor"]
        places = [op.place, *(kernel.place for kernel in kernels)]
        places += [table._rules[op].place for table in TABLES if op in table._rules]
        found.setdefault(op.packet_name, {}).update((module_of(place), None) for place in places)
    operators = {
        name: [module for i, module in enumerate(modules) if not i or module.startswith(ROOMS[0])]
        for name, modules in found.items()
    }

    def row(face: Any) -> list[str]:
        op = face.operators[0]
        return [operators[op.packet_name][0], op.packet_name]

    functions = {
        table: {name: row(face) for name, face in rows.items() if hasattr(face, "operators")}
        for table, rows in FUNCTIONS.items()
    }
    aliases = f"{__package__}.kernels.ops.aliases"
    functions["in place"] = {name: [aliases, row(face)[1]] for name, face in IN_PLACE.items()}
    methods: dict[str, list[Any]] = {}
    for op in OPERATORS.values():
        if op._opname.startswith("__"):  # which dunders.py takes as what its own are made of
            methods[op._opname] = [operators[op.packet_name][0], op.packet_name, False]
    for name, member in vars(Tensor).items():
        is_property = isinstance(member, property)
        function = inspect.unwrap(member.fget if is_property else member)
        module = files.get(getattr(getattr(function, "__code__", None), "co_filename", None), "")
        if module.endswith(".entries"):  # Python's operators, in whose code no place is seen
            module = f"{__package__}.kernels.ops.dunders"
        if hasattr(member, "operators"):
            methods[name] = [*row(member), False]
        elif module.startswith(ROOMS[0]):
            methods[name] = [module, f"aten::{name}", is_property]
    values = {name: values_of(sys.modules[name]) for name in files.values() if name.startswith(ROOMS)}
    return {"operators": operators, "functions": functions, "methods": methods, "values": values}


def values_of(module: ModuleType) -> dict[str, list[Any]]:
    """The names of a module that stand for no function or operator, which a `Later` could not replace: `x is NONE`.
    What is not simple is told of operators' modules alone: the others are imported as a whole, if at all.

    Of each the value in a list, or an empty one if it is to be had from the module alone.
    """
    found: dict[str, list[Any]] = {}
    for name, value in vars(module).items():
        simple, is_class = type(value) in (int, str, float, bool), inspect.isclass(value)
        if name.startswith("__") or callable(value) and not is_class or isinstance(value, Operator):
            continue
        if simple or (module.__name__.startswith(ROOMS[0]) and not (is_class and value.__module__ != module.__name__)):
            found[name] = [value] if simple else []
    return found


def stands_there(name: str) -> bool:
    """Whether a module is imported under its own name, and not only as a former path of another."""
    module = sys.modules[name]
    return name.partition(".")[0] == __package__ and getattr(module.__spec__, "name", "") == name


class Traced(NamedTuple):
    """The operators that a program calls, and those that these call in turn, each with the dtypes of its tensors."""

    roots: Names
    closure: Names

    def write(self, path: str | os.PathLike[str], dtypes: bool = False) -> None:
        """Writes the list of these operators, one a line; with dtypes, in no others than it was seen with."""
        parts = (("called by the program", self.roots), ("called by these, and by the gradient", self.closure))
        lines = []
        for what, names in parts:
            lines.append(f"# {what}")
            lines += [
                " ".join([name, *sorted(seen if dtypes else ())])
                for name, seen in sorted(names.items())
                if packet(name).removeprefix("aten::") not in ALWAYS
            ]
        write_whole(Path(path).absolute(), "\n".join([*lines, ""]).encode())


def trace(function: Callable[..., Any], *examples: Any) -> Traced:
    """Runs a function once, and returns what operators of the library it needs: exactly those whose kernels ran.

    What runs in a backward pass is seen where the function calls for one. Every call goes through the interpreter.
    """
    roots: Names = {}
    closure: Names = {}
    with recorded(roots, closure):
        function(*examples)
    return Traced(roots, {name: seen for name, seen in closure.items() if name not in roots})


@contextmanager
def recorded(roots: Names, closure: Names) -> Iterator[None]:
    """Notes the operators that run meanwhile: the outermost among the roots, those inside and of gradients apart."""
    entry, before, depth = OpOverload.entry, config.specialize, 0

    def note(op: OpOverload, stack: Any) -> None:
        names = closure if depth or current_task() is not None else roots
        seen = {dtype.name for dtype in dtypes_in(stack)}
        names[op.qualified_name] = names.get(op.qualified_name, frozenset()) | seen

    def noting(op: OpOverload, keyset: int) -> Any:
        found = entry(op, keyset)
        kernel = found.kernel

        def boxed(op: OpOverload, keyset: int, stack: Any) -> Any:
            nonlocal depth
            note(op, stack)
            depth += 1
            try:
                return kernel.boxed(op, keyset, stack)
            finally:
                depth -= 1

        own = op.namespace == "aten" and any(kernel in kernels for kernels in op.registrations.values())
        wanted = own and not kernel.is_fallthrough and not is_layer(kernel)
        return replace(found, kernel=replace(kernel, boxed=boxed)) if wanted else found

    config.specialize, OpOverload.entry = False, noting  # type: ignore[method-assign, assignment]  # for as long as this runs
    try:
        yield
    finally:
        config.specialize, OpOverload.entry = before, entry  # type: ignore[method-assign]  # as it was


def is_layer(kernel: Any) -> bool:
    """Whether a kernel does what its key does for all operators, and stays where an operator is left out."""
    return kernel.convention == "boxed" and kernel.function.__module__.startswith(f"{__package__}.dispatch.layers.")


# A wheel of no more ---------------------------------------------------------------------------------------------------

# Wanted whatever the program: what declares and calls operators, and makes code where none is kept on disk.
WHOLE = ("dispatch", "kernels.declare", "kernels.engine", "kernels.maths", "kernels.cpu")
RUN = """
import json, runpy, sys
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
from {0}.selective import loaded
from pathlib import Path
Path({1!r}).write_text(json.dumps(loaded()))
"""


def cut(path: str | os.PathLike[str], program: str, *arguments: str, folder: str | os.PathLike[str] = ".") -> Path:
    """Writes a wheel of the files that a program opens under a list of operators, and returns its path.

    Such an installation runs that program, and whatever needs the same: other operators, and modules that the program
    did not use, are not in it. Errors: RuntimeError, with what it printed, if the program fails.
    """
    with tempfile.TemporaryDirectory() as temporary:
        names = Path(temporary, "files")
        environment = {**os.environ, "REDISPATCH_OPS": os.fspath(path), "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", RUN.format(__package__, str(names)), program, *arguments]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace")
        if run.returncode or not names.exists():
            raise RuntimeError(f"{program} fails under the operators of {os.fspath(path)}:\n{run.stderr or run.stdout}")
        opened = json.loads(names.read_text())
    files = {f"{__package__}/py.typed": b""} | {name: Path(file).read_bytes() for name, file in opened.items()}
    files[f"{__package__}/{LIST}"] = Path(path).read_bytes()
    files[f"{__package__}/{WHERE}"] = json.dumps(places()).encode()
    return wheel(Path(folder), files)


def loaded() -> dict[str, str]:
    """The library's files that this process has opened, and those of every build: where in a wheel -> path."""
    found = {name: getattr(module, "__file__", None) for name, module in sys.modules.items() if is_wanted(name)}
    for room in WHOLE:
        package = import_module(f"{__package__}.{room}")
        for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            found[one.name] = one.module_finder.find_spec(one.name, None).origin  # type: ignore[union-attr]  # modules have a file
    files = {name.replace(".", "/"): path for name, path in found.items() if path and os.path.exists(path)}
    end = f"{os.sep}__init__.py"
    return {f"{name}/__init__.py" if path.endswith(end) else f"{name}.py": path for name, path in files.items()}


def is_wanted(name: str) -> bool:
    """Whether a module of the library has really been imported."""
    return stands_there(name) and name != __name__ and not is_postponed(sys.modules[name])


def wheel(folder: Path, files: dict[str, bytes]) -> Path:
    """Packs files as a wheel of this library, whose version says that they are a selection."""
    known = metadata.metadata(__package__)
    version = f"{known['Version']}+selected"
    needs = [f"Requires-Dist: {need}" for need in metadata.requires(__package__) or () if "extra ==" not in need]
    facts = ["Metadata-Version: 2.1", f"Name: {__package__}", f"Version: {version}", *needs, ""]
    about = f"{__package__}-{version}.dist-info"
    files = files | {
        f"{about}/METADATA": "\n".join(facts).encode(),
        f"{about}/WHEEL": b"Wheel-Version: 1.0\nGenerator: redispatch\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = f"{about}/RECORD"
    lines = [
        f"{name},sha256={urlsafe_b64encode(digest(data)).decode().rstrip('=')},{len(data)}"
        for name, data in files.items()
    ]
    files[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{__package__}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    return path
