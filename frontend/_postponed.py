"""Modules that are imported when one of their names is used: what an import under a list of operators makes of others.

Note [Names that come later]
`from .shape import expand` of a module that is not wanted binds `expand` to a `Later`. When it is used, the module is
imported, and whoever had bound one of its names gets what they stand for: the second use costs nothing. Only functions
and operators come later; a name that stands for anything else, which may be compared, brings its value at once.

Nothing of the library is imported here before `Finder` is asked for it. Read next: selective.py.
"""

from __future__ import annotations

import json
import operator
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from threading import RLock
from types import ModuleType, SimpleNamespace
from typing import Any

ROOT = __name__.partition(".")[0]
HERE = os.path.dirname(__file__)
WHERE = "selection.json"  # in a wheel that was cut from a list
ROOMS = tuple(f"{ROOT}.{room}" for room in ("kernels.ops.", "kernels.batching", "kernels.cuda", "viz"))
ALWAYS = "lift_fresh empty full ones zeros".split()  # with these tensors come into being; no list need name them
LOCK = RLock()
OMITTED = (
    "Could not run '{0}' with arguments from the '{1}' backend. This could be because the operator doesn't exist for "
    "this backend, or was omitted during the selective/custom build process (if using custom build). '{0}' is only "
    "available for these backends: []."
)


def entries(path: str | os.PathLike[str]) -> dict[str, frozenset[str]]:
    """Reads a list: "aten::add.Tensor", or "add" for all overloads -> the dtypes that are wanted, none for all.

    A line is a name and its dtypes; what follows a # is a comment.
    """
    with open(path, encoding="utf-8") as lines:
        rows = [line.partition("#")[0].split() for line in lines]
    return {row[0]: frozenset(row[1:]) for row in rows if row}


def packet(name: str) -> str:
    """The overloads to which an entry belongs: "aten::add" for "aten::add.Tensor" and for "add"."""
    return name.partition(".")[0] if "::" in name else f"aten::{name}"


class Later:
    """A name of a module that is imported when this is used. NotImplementedError where a build has no such module.

    `op` is the operator of which it is a public function or method.
    """

    __slots__ = ("_module", "_find", "_op")

    def __init__(self, module: Postponed, find: Callable[[], Any], op: str = "") -> None:
        object.__setattr__(self, "_module", module)
        object.__setattr__(self, "_find", find)
        object.__setattr__(self, "_op", op)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._op and self._module.__held__.spec() is None:
            given = next((value for value in args if hasattr(value, "_keyset")), None)
            raise NotImplementedError(
                OMITTED.format(self._op, given.device.type.upper() if given is not None else "CPU")
            )
        return real(self)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in ("__name__", "__qualname__", "__dict__", "__annotations__") and self._op:  # for functools.wraps
            return self._op.rpartition(":")[2] if "name" in name else {}
        if name == "inplace":  # of a function, which nobody compares
            return Later(self._module, lambda: getattr(self._find(), name), self._op)
        return getattr(real(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(real(self), name, value)

    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None or not self._op:
            return self
        return partial(self, instance) if self._module.__held__.spec() is None else real(self).__get__(instance, owner)

    def __mro_entries__(self, bases: Any) -> tuple[Any, ...]:
        return (real(self),)


class LaterProperty(Later):
    """A property of Tensor."""

    __slots__ = ()

    def __set__(self, instance: Any, value: Any) -> None:
        real(self).__set__(instance, value)


for _name, _does in {
    "bool": bool, "contains": operator.contains, "getitem": operator.getitem, "iter": iter, "len": len,
    "or": operator.or_, "ror": lambda later, other: other | later,
    "instancecheck": lambda later, value: isinstance(value, later),
    "subclasscheck": lambda later, kind: issubclass(kind, later),
}.items():  # fmt: skip
    setattr(Later, f"__{_name}__", lambda self, *args, _does=_does: _does(real(self), *args))


def real(later: Later) -> Any:
    """Returns what a name stands for, and lets those globals have it, too, from which it was used."""
    module = later._module
    if not module.__held__.begun:
        load(module)
    scope = sys._getframe(2).f_globals
    if id(scope) not in module.__held__.homes:  # it has the name from another module that imported it
        module.__held__.homes[id(scope)] = scope
        replace_names(module, scope)
    return later._find()


def replace_names(module: Postponed, scope: dict[str, Any]) -> None:
    for name, value in list(scope.items()):
        if type(value) is Later and value._module is module:
            scope[name] = value._find()


class Postponed(ModuleType):
    """A module that is imported when one of its names is used, or its names are asked for.

    `__held__` is what is known of it: what finds its real spec, whether its import has begun, which of its names are no
    functions (with their values, if these are simple), and who has imported some.
    """

    __held__: SimpleNamespace

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or self.__held__.begun:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = self.__held__.values.get(name)
        if value == []:
            load(self)
        elif value is None:
            scope = sys._getframe(1).f_globals
            self.__held__.homes[id(scope)] = scope
            return Later(self, partial(find, self, name))
        return value[0] if value else find(self, name)

    def __dir__(self) -> list[str]:
        load(self)
        return list(vars(self))


def postponed(finder: Finder, name: str) -> Postponed:
    """Returns a module that nobody has imported, as an import would put it in its place."""
    room, _, last = name.rpartition(".")
    if name not in sys.modules:
        spec = finder.find_spec(name, sys.modules[room].__path__)
        assert spec is not None, name
        sys.modules[name] = module_from_spec(spec)
        setattr(sys.modules[room], last, sys.modules[name])
    module = sys.modules[name]
    assert isinstance(module, Postponed), name
    return module


def find(module: ModuleType, name: str) -> Any:
    """Returns what has this name: something in the module, or a module in the package."""
    return vars(module)[name] if name in vars(module) else import_module(f"{module.__name__}.{name}")


def is_postponed(module: ModuleType) -> bool:
    return isinstance(module, Postponed) and not module.__held__.begun


def load(module: Postponed) -> None:
    """Imports a module, if that has not begun. NotImplementedError where it is not there."""
    held = module.__held__
    with LOCK:
        if held.begun:
            return
        spec = held.spec()
        if spec is None:
            raise NotImplementedError(f"{module.__name__} is not in this build, which was cut from a list of operators")
        held.begun = True
        module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
        for name, part in [*sys.modules.items()]:  # a package is imported as a whole
            if name.startswith(f"{module.__name__}.") and isinstance(part, Postponed):
                load(part)
        tensor = sys.modules[f"{ROOT}.dispatch.tensor"].Tensor
        before = {name: member for name, member in vars(tensor).items() if not isinstance(member, Later)}
        spec.loader.exec_module(module)
        late = sys.modules[f"{ROOT}.dispatch.core.registry"].LATE
        for name in [name for name, place in late.items() if place == module.__name__]:
            del late[name]
        for scope in held.homes.values():
            replace_names(module, scope)
        for name, member in before.items():  # of modules that would have been imported after this one
            if vars(tensor)[name] is not member:
                setattr(tensor, name, member)


class Finder:
    """Finds the modules of operators as ones that are postponed, unless the list wants them."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.listed = entries(path) | {name: frozenset() for name in ALWAYS}
        self.wanted: set[str] = set()
        self.values: dict[str, Any] = {}  # of each module in the rooms
        self.packages: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name == f"{ROOT}.kernels.ops":
            return self.around(PathFinder.find_spec(name, path))
        parent = sys.modules[name.rpartition(".")[0]] if name.startswith(ROOMS) else None
        if parent is None or name in self.wanted or (isinstance(parent, Postponed) and parent.__held__.begun):
            return None
        found = ModuleSpec(name, self, loader_state=path)  # type: ignore[arg-type]  # a loader by what it has
        if name in self.packages:
            found.submodule_search_locations = [os.path.join(path[0], name.rpartition(".")[2])]
        return found

    def create_module(self, spec: ModuleSpec) -> Postponed:
        module = Postponed(spec.name)
        find_real = partial(PathFinder.find_spec, spec.name, spec.loader_state)
        values = self.values.get(spec.name, {})
        module.__held__ = SimpleNamespace(spec=find_real, begun=False, homes={}, values=values)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leaves the module as it is until it is used."""

    def around(self, spec: Any) -> Any:
        """The room of operators: before it is imported, the list decides what of it is wanted."""
        run = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            where = places()
            self.prepare(where)
            run(module)
            late = import_module(f"{ROOT}.dispatch.core.registry").LATE
            for name, (place, *_) in where["operators"].items():
                if place not in sys.modules or is_postponed(sys.modules[place]):
                    late[name] = place

        spec.loader.exec_module = exec_module
        return spec

    def prepare(self, where: dict[str, Any]) -> None:
        library = import_module(f"{ROOT}.dispatch.library")
        operators = where["operators"]
        for name in self.listed:
            if packet(name) not in operators:
                raise ValueError(f"{self.path}: there is no operator {name!r}")
        modules = {module for name in self.listed for module in operators[packet(name)]}
        self.wanted = {module for module in modules if module.startswith(ROOMS[0])}  # loops of devices come when asked
        self.values = where["values"]
        self.packages = {name.rpartition(".")[0] for name in self.values}
        library.SELECTED.append(self.selected)
        self.promise(where)

    def promise(self, where: dict[str, Any]) -> None:
        """Gives the tables of public functions, and Tensor, the names of modules that are not wanted."""
        public = import_module(f"{ROOT}.kernels.declare.public")
        functions = {**public.FUNCTIONS, "in place": public.IN_PLACE}
        tensor = import_module(f"{ROOT}.dispatch.tensor").Tensor
        modules = {
            module: postponed(self, module)
            for module in self.values.keys() - self.wanted
            if module.startswith(ROOMS[0])
        }
        for table, rows in where["functions"].items():
            for name, (module, op) in rows.items():
                if module in modules:
                    functions[table][name] = Later(modules[module], partial(functions[table].__getitem__, name), op)
        for name, (module, op, is_property) in where["methods"].items():
            if module in modules:
                kind = LaterProperty if is_property else Later
                setattr(tensor, name, kind(modules[module], partial(vars(tensor).__getitem__, name), op))
        batched = import_module(f"{ROOT}.dispatch.transforms.batched")
        tables = import_module(f"{ROOT}.dispatch.layers.transforms")
        batching = postponed(self, f"{ROOT}.kernels.batching")

        def rule_of(op: Any) -> Any:
            load(batching)
            return tables.BATCHING.get(op) or batched.RULES().of(op)

        def later(name: str) -> Callable[..., Any]:
            def ask(*args: Any) -> Any:
                load(batching)
                return getattr(batched.RULES(), name)(*args)

            return ask

        names = [field.name for field in fields(batched.Rules)]
        batched.RULES.fill(batched.Rules(rule_of, *map(later, names[1:])))

    def selected(self, op: Any, function: Callable[..., Any]) -> Callable[..., Any] | None:
        """Returns the kernel as the list wants it: as it is, one that refuses dtypes, or None."""
        if op.namespace != "aten":
            return function
        dtypes = self.listed.get(op.qualified_name, self.listed.get(op._opname))
        return None if dtypes is None else refusing(op, function, dtypes) if dtypes else function


def refusing(op: Any, function: Callable[..., Any], dtypes: frozenset[str]) -> Callable[..., Any]:
    """Returns a kernel that raises RuntimeError for a tensor, or an argument, of another dtype than these."""
    if getattr(function, "__name__", "") == "fallthrough_kernel":
        return function

    def checked(*args: Any) -> Any:
        for dtype in dtypes_in(args):
            if dtype.name not in dtypes:
                raise RuntimeError(f"dtype '{dtype.tensor_name}' not selected for kernel tag {op.packet_name}")
        return function(*args)

    checked.__name__ = getattr(function, "__name__", op._opname)
    vars(checked).update((mark, True) for mark in ("__leaf__",) if hasattr(function, mark))
    return checked


def dtypes_in(values: Iterable[Any]) -> Iterator[Any]:
    """The dtypes of the tensors among values, lists of them included, and those that are values."""
    for value in values:
        if isinstance(value, list | tuple):
            yield from dtypes_in(value)
        elif hasattr(value, "_keyset"):
            yield value.dtype
        elif type(value).__name__ == "dtype":
            yield value


def places() -> dict[str, Any]:
    """The places of operators, functions and methods: kept on disk, because to find them takes a whole import."""
    beside = os.path.join(HERE, WHERE)
    if os.path.exists(beside):
        with open(beside, encoding="utf-8") as file:
            return json.load(file)
    disk = import_module(f"{ROOT}.dispatch.disk")
    kernels = os.path.dirname(str(import_module(f"{ROOT}.kernels").__file__))
    rooms = [os.scandir(os.path.join(kernels, room)) for room in ("ops", "batching")]
    files = [file.stat() for room in rooms for file in room if file.name.endswith(".py")]
    key = [kernels, len(files), max(file.st_mtime_ns for file in files), sum(file.st_size for file in files)]
    folder = disk.directory()
    path = folder and folder / f"selection-{kernels.replace(os.sep, '-')[-99:]}.json"
    if path and path.exists():
        known = json.loads(path.read_text())
        if known.pop("key", None) == key:
            return known
    environment = {**os.environ, "REDISPATCH_OPS": "", "PYTHONPATH": os.pathsep.join(sys.path)}
    program = f"import json; from {ROOT}.selective import where; print(json.dumps(where()))"
    import subprocess  # here, because it takes a tenth of such an import's time, and the answer is nearly always kept

    text = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True).stdout
    if path:
        disk.write_whole(path, json.dumps({**json.loads(text), "key": key}).encode())
    return json.loads(text)
