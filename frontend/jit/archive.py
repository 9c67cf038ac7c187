"""save and load of programs, in PyTorch's archives: source text of TorchScript, and pickles of the values.

    code/__torch__/a/b.py   classes and functions of `__torch__.a.b`, as code.py prints them
    data.pkl                the module: objects of these classes with their attributes, tensors as `save` writes them
    constants.pkl           the tensors that the text calls CONSTANTS.c0, ...

An archive is data: the text is compiled to graphs, with no names but the registry's, nn.functional's and its own
(text.py), the pickles call nothing of their own choice, and nothing is run. Whatever does not fit is a RuntimeError.
Read next: tracing.py.
"""

from __future__ import annotations

import ast
import copyreg
import enum
import os
import pickle
from collections import namedtuple
from typing import Any, NoReturn

from redispatch import nn
from redispatch.dispatch.schema.schema import DictType, GenericType, ListType, OptionalType, TupleType, Type
from redispatch.dispatch.tensor import Tensor, dtype, layout, memory_format
from redispatch.serialization.reader import Reader, opened, placing
from redispatch.serialization.writer import ArchiveReader, Writer, is_path, writing

from . import code
from .builtins import number_of
from .classes import Compiler
from .function import ScriptFunction
from .interpreter import ScriptObject
from .module import BARE, RecursiveScriptModule, ScriptModule, dressed
from .pending import Pending, literal, parsed_text
from .source import Source, fail
from .text import ArchiveNames
from .types import EnumType, NamedTupleType, ObjectType, members, of_annotation, spoken

TAGS = "torch.jit._pickle"
WRONG = (LookupError, MemoryError, ValueError, TypeError, AttributeError, RecursionError, OverflowError, SyntaxError)


class Instance:
    """An object in data.pkl: its type, and its attributes. Each type has a class of its own below this one."""

    kind: ObjectType

    def __setstate__(self, state: Any) -> None:
        self.state = state


def instance_class(kind: ObjectType) -> Any:
    return type("Instance", (Instance,), {"kind": kind})


def refuse(text: str) -> NoReturn:
    raise RuntimeError(f"jit.load: the archive is damaged or was not written by jit.save: {text}")


def tagged(value: Any, tag: str) -> Any:
    """Returns a list or dict, which its type's name accompanies in the file."""
    return value


def untagged(value: Any) -> Any:
    """Returns a list, whose type the function's name in the file says."""
    return value


# --- writing ----------------------------------------------------------------------------------------------------------


class ProgramWriter(Writer):
    """Writes the pickles, in which classes of the program have names in `__torch__`."""

    def save_global(self, obj: Any, name: str | None = None) -> None:
        kind = getattr(obj, "kind", None)
        path = f"{TAGS}.restore_type_tag" if obj is tagged else kind and str(kind)
        path = str(EnumType(obj)) if isinstance(obj, enum.EnumMeta) else path
        if not path:
            super().save_global(obj, name)
            return
        module, _, short = path.rpartition(".")
        self.write(pickle.GLOBAL + f"{module}\n{short}\n".encode())
        self.memoize(obj)

    dispatch = Writer.dispatch | {type(tagged): save_global}

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if isinstance(obj, enum.Enum):  # PyTorch's form: the value itself stands where arguments would
            self.save_global(type(obj))
            super().save(obj.value)
            self.write(pickle.REDUCE)
            return
        super().save(obj, save_persistent_id)

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Instance):
            return copyreg.__newobj__, (type(obj),), obj.state  # type: ignore[attr-defined]  # pickle's own
        return super().reducer_override(obj)

    def save_type(self, obj: Any) -> None:
        self.save_global(obj)

    dispatch |= {type: save_type, enum.EnumMeta: save_type}


class Package:
    """Gathers what an archive's text has to define: the classes and functions that a module or function needs."""

    def __init__(self) -> None:
        self.files: dict[str, list[str]] = {}
        self.classes: dict[int, Any] = {}
        self.paths: dict[int, str] = {}
        self.taken: dict[str, int] = {}
        self.tensors: list[Tensor] = []
        self.kept: list[Any] = []  # so that ids stay theirs
        self.objects: dict[int, Any] = {}

    def entered(self, path: str, text: str) -> None:
        self.files.setdefault(path.rpartition(".")[0], []).append(text)

    def unique(self, path: str) -> str:
        """Returns a path that nothing else has: PyTorch's way is a package of its own for each further class."""
        count = self.taken[path] = self.taken.get(path, -1) + 1
        owner, _, name = path.rpartition(".")
        return f"{owner}.___torch_mangle_{count - 1}.{name}" if count else path

    def function(self, function: ScriptFunction) -> str:
        """Returns the path of a function, whose text is entered."""
        if id(function) not in self.paths:
            self.kept.append(function)
            path = self.paths[id(function)] = self.unique(f"__torch__.{function.name}")
            self.entered(path, self.source(function, path.rpartition(".")[2]))
        return self.paths[id(function)]

    def source(self, function: ScriptFunction, name: str, own: str = "") -> str:
        """Returns a function's text. RuntimeError where it calls Python."""
        names = {}
        for node in function.graph.all_nodes():
            value = node.attributes.get("value")
            if node._kind == "prim::PythonOp":
                text = f"Could not export Python function call '{node.attributes['name']}'. Remove calls to Python "
                text += "functions before export"
                fail(node.place, f"{text}: mark the function with @unused or ignore(drop=True), or script it")
            if isinstance(value, Tensor):
                names[id(value)] = f"c{len(self.tensors)}"
                self.tensors.append(value)
        values = [*function.graph.params, *(one for node in function.graph.all_nodes() for one in node.output_values)]
        for value in values:
            self.type(value.type)
        return code.Printer(function, self.function, names).text(name, own)

    def type(self, kind: Type) -> None:
        """Enters the classes that a type is made of."""
        if isinstance(kind, ObjectType):
            self.instance_class(kind)
        elif isinstance(kind, NamedTupleType | EnumType):
            if id(kind.python) not in self.classes:
                self.classes[id(kind.python)] = kind
                self.entered(str(kind), class_text(kind))
        for inner in kind.containedTypes():
            self.type(inner)

    def instance_class(self, kind: ObjectType) -> Any:
        """Returns the class of a type's objects in the pickle; the type's text is entered."""
        if id(kind) not in self.classes:
            self.kept.append(kind)
            kind.name = self.unique(f"__torch__.{kind.name}").removeprefix("__torch__.")
            self.classes[id(kind)] = instance_class(kind)
            for one in kind.attributes.values():
                self.type(one)
            methods = [self.source(one, name) for name, one in kind.methods.items()]
            self.entered(str(kind), class_text(kind) + "".join(map(indented, methods)))
        return self.classes[id(kind)]

    def value(self, value: Any, kind: Type) -> Any:
        """Returns an attribute's value as the pickle has it."""
        if value is None:
            return None
        if isinstance(kind, OptionalType):
            return self.value(value, kind.elem)
        if isinstance(kind, GenericType) and kind.name == "Union":
            kind = next((one for one in members(kind) if type(value).__name__ == spoken(one)), kind)
        if isinstance(kind, ObjectType):
            return self.instance(value, kind)
        if isinstance(kind, ListType):
            return tagged_as([self.value(one, kind.elem) for one in value], kind)
        if isinstance(kind, DictType):
            return tagged_as({key: self.value(one, kind.value) for key, one in value.items()}, kind)
        if isinstance(kind, TupleType):
            return tuple(map(self.value, value, kind.elems))
        return number_of(value) if isinstance(value, dtype | layout | memory_format) else value

    def instance(self, value: Any, kind: ObjectType) -> Any:
        """Returns a module or an instance of a class as the pickle has it, the same one each time."""
        if id(value) not in self.objects:
            self.kept.append(value)
            made = self.objects[id(value)] = self.instance_class(kind)()
            made.state = {
                name: self.value(getattr(value, name), one)
                for name, one in kind.attributes.items()
                if hasattr(value, name)
            }
        return self.objects[id(value)]


class Tagged:
    """A list or dict and the name of its type."""

    def __init__(self, value: Any, kind: Type) -> None:
        self.value, self.tag = value, code.spoken_type(kind)

    def __reduce__(self) -> Any:
        return tagged, (self.value, self.tag)


tagged_as = Tagged


def indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())


def class_text(kind: Type) -> str:
    """Returns the text of a class without its methods."""
    if isinstance(kind, EnumType):
        rows = [f"{name} = {code.constant(one.value)}" for name, one in kind.python.__members__.items()]
        return f"class {kind.python.__name__}(Enum):\n" + indented("\n".join(rows))
    if isinstance(kind, NamedTupleType):
        rows = [f"{name} : {code.spoken_type(one)}" for name, one in zip(kind.fields, kind.elems, strict=True)]
        return f"class {kind.name.rpartition('.')[2]}(NamedTuple):\n" + indented("\n".join(rows) or "pass")
    assert isinstance(kind, ObjectType)
    rows = []
    if kind.is_module:
        for word in ("parameters", "buffers"):
            rows.append(f"__{word}__ = [{''.join(f'{code.constant(one)}, ' for one in getattr(kind, word))}]")
    for name, one in kind.attributes.items():
        text = code.spoken_type(one)
        rows.append(f"{name} : {text}" if name.isidentifier() else f'__annotations__["{name}"] = {text}')
    for name, one in kind.constants.items():
        text = code.final(one)
        if text and name.isidentifier():
            rows.append(f"{name} : {text}")
    head = f"class {kind.name.rpartition('.')[2]}{'(Module)' if kind.is_module else ''}:\n"
    return head + indented("\n".join(rows) or "pass")


def save(m: Any, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
    """Writes a compiled module or function to a path or an open file; see load.

    Errors: RuntimeError where it calls Python (`ignore`), or holds a value that is no data.
    """
    if isinstance(m, nn.Module) and not isinstance(m, ScriptModule) or not isinstance(m, ScriptModule | ScriptFunction):
        raise RuntimeError(f"jit.save takes what jit.script or jit.trace made, and not a {type(m).__name__}")
    if isinstance(m, ScriptModule) and any(m._script_type.hooks):
        raise RuntimeError("jit.save: hooks of the module itself cannot be written; put it into a module without")
    package = Package()
    kind = m._script_type if isinstance(m, ScriptModule) else ObjectType("PlaceholderModule", None, is_module=True)
    if isinstance(m, ScriptFunction):
        own = package.unique(str(kind))
        text = package.source(m, "forward", f"self: {own}")
        package.entered(own, f"{class_text(kind)}{indented(text)}")
        package.classes[id(kind)] = instance_class(kind)
    top = package.instance(m, kind)
    folder = os.path.splitext(os.path.basename(os.fspath(f)))[0] if is_path(f) else "archive"
    with writing(f, folder or "archive") as archive:
        for name, content in (_extra_files or {}).items():
            archive.write(f"extra/{name}", content.encode() if isinstance(content, str) else bytes(content))
        for name, value in (("data", top), ("constants", tuple(package.tensors))):
            writer = ProgramWriter(2)
            pickled = writer.pickled(value)
            for number, storage, _ in writer.storages.values():
                archive.write(f"{name}/{number}", storage.read().data)
            archive.write(f"{name}.pkl", pickled)
        for path, texts in package.files.items():
            archive.write(f"code/{path.replace('.', '/')}.py", "".join(texts).encode())


ScriptFunction.save = ScriptModule.save = save

# --- reading ----------------------------------------------------------------------------------------------------------


class ProgramReader(Reader):
    """Reads a pickle in which names of `__torch__` are classes of the program."""

    def __init__(self, archive: Any, place: Any, program: Program, folder: str) -> None:
        super().__init__(archive, place, folder)
        self.program = program
        self.own: dict[str, Any] = {f"{TAGS}.restore_type_tag": tagged}
        self.own |= {f"{TAGS}.build_{kind}list": untagged for kind in ("int", "double", "bool", "tensor")}

    def find_class(self, module: str, name: str) -> Any:
        full = f"{module}.{name}"
        if module.partition(".")[0] == "__torch__" and full not in self.own:
            kind = self.program.resolved(full) or refuse(f"there is no {full}")
            self.own[full] = instance_class(kind) if isinstance(kind, ObjectType) else kind.python
        return self.own.get(full) or super().find_class(module, name)

    def is_allowed(self, value: Any) -> bool:
        return any(value is one for one in self.own.values()) or super().is_allowed(value)

    def load_reduce(self) -> None:
        if isinstance(self.stack[-2], enum.EnumMeta):
            value = self.stack.pop()
            self.stack[-1] = self.stack[-1](value)
            return
        super().load_reduce()

    def load_build(self) -> None:
        state, made = self.stack[-1], self.stack[-2]
        if isinstance(made, Instance):
            self.stack.pop()
            made.state = state if isinstance(state, dict) else refuse(f"the state of {made.kind} is no dict")
            return
        super().load_build()

    dispatch = Reader.dispatch | {pickle.BUILD[0]: load_build, pickle.REDUCE[0]: load_reduce}


class Program:
    """The text of an archive: its classes and functions, compiled when they are asked for."""

    def __init__(self, archive: ArchiveReader) -> None:
        self.archive, self.unit, self.constants = archive, Compiler(), dict[str, Any]()
        self.found: dict[str, Any] = {}
        self.find = ArchiveNames(self.resolved, self.constants)
        self.nodes: dict[str, dict[str, Any]] = {}  # of each file: name -> syntax tree and source
        self.made: dict[int, Any] = {}
        self.parameters: dict[int, Any] = {}

    def resolved(self, path: str) -> Any:
        """Returns what `__torch__.a.B` is: a type, a function; None where the archive has none, or it is a package."""
        owner = path.rpartition(".")[0]
        if owner not in self.nodes:
            member = f"code/{owner.replace('.', '/')}.py"
            text = self.archive.read(member).decode() if self.archive.has(member) else ""
            source, body = Source(text, member), parsed_text(text).body
            if not all(isinstance(one, ast.FunctionDef | ast.ClassDef) for one in body):
                refuse(f"{member} has more than classes and functions")
            self.nodes[owner] = {one.name: (one, source) for one in body}  # type: ignore[attr-defined]  # see above
        if path not in self.found and path.rpartition(".")[2] in self.nodes[owner]:
            node, source = self.nodes[owner][path.rpartition(".")[2]]
            if isinstance(node, ast.ClassDef):
                self.found[path] = self.class_of(path, node, source)
            else:
                self.found[path] = Pending(self.unit, node, source, self.find)
        return self.found.get(path)

    def class_of(self, path: str, node: ast.ClassDef, source: Source) -> Type:
        base = node.bases[0].id if node.bases and isinstance(node.bases[0], ast.Name) else ""
        name = path.removeprefix("__torch__.")
        if base == "Enum":
            rows = {one.targets[0].id: ast.literal_eval(one.value) for one in node.body if isinstance(one, ast.Assign)}  # type: ignore[attr-defined]  # names
            return EnumType(enum.Enum(node.name, rows, module=name.rpartition(".")[0]))
        if base == "NamedTuple":
            fields = [one for one in node.body if isinstance(one, ast.AnnAssign)]
            names = [one.target.id for one in fields]  # type: ignore[union-attr]  # names
            elems = [self.type(one.annotation) for one in fields]
            return NamedTupleType(name, names, elems, namedtuple(node.name, names))
        if base not in ("Module", ""):
            refuse(f"a class of the program is derived from {base}")
        made = self.found[path] = ObjectType(name, None, base == "Module")
        if made.is_module and name.startswith("torch.nn."):
            python = getattr(nn, node.name, None)
            made.python = python if isinstance(python, type) and issubclass(python, nn.Module) else None
        for one in node.body:
            self.enter_member(made, one, source)
        return made

    def enter_member(self, made: ObjectType, node: Any, source: Source) -> None:
        """Enters a line of a class: an attribute's type, a constant, a method."""
        if isinstance(node, ast.FunctionDef):
            made.pending[node.name] = Pending(self.unit, node, source, self.find, made)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            made.attributes[attribute_name(ast.literal_eval(node.targets[0].slice))] = self.type(node.value)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            names = ast.literal_eval(node.value)
            if node.targets[0].id == "__parameters__":
                made.parameters = names
            elif node.targets[0].id == "__buffers__":
                made.buffers = names
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = attribute_name(node.target.id)
            if node.value is None:
                made.attributes[name] = self.type(node.annotation)
            else:
                made.constants[name] = self.constant(node.value)
        elif not isinstance(node, ast.Pass):
            refuse(f"{made} has a {type(node).__name__}")

    def type(self, node: ast.expr) -> Type:
        return of_annotation(node, self.find, lambda kind: kind if isinstance(kind, Type) else None)

    def constant(self, node: ast.expr) -> Any:
        text = ast.unparse(node)
        if text.startswith("torch.nn.functional."):
            name = text.rpartition(".")[2]
            known = name in vars(nn.functional)["__all__"]
            return getattr(nn.functional, name) if known else refuse(f"there is no {text}")
        return literal(node)

    def object(self, value: Any) -> Any:
        """Returns what stands for an attribute's value in the pickle: modules and instances are made."""
        if isinstance(value, Instance):
            if id(value) not in self.made:
                self.made[id(value)] = self.module(value) if value.kind.is_module else self.instance(value)
            return self.made[id(value)]
        if isinstance(value, list | tuple):
            return type(value)(map(self.object, value))
        return {key: self.object(one) for key, one in value.items()} if isinstance(value, dict) else value

    def instance(self, value: Instance) -> ScriptObject:
        made = self.made[id(value)] = ScriptObject(value.kind)
        for name in value.kind.pending:
            self.unit.method(value.kind, name, None, None)
        for name, one in value.state.items():
            if name not in value.kind.attributes:
                refuse(f"{value.kind} has no attribute {name}")
            made.__dict__[name] = self.object(one)
        return made

    def module(self, value: Instance) -> RecursiveScriptModule:
        kind, state = value.kind, {name: self.object(one) for name, one in value.state.items()}
        if any(name not in kind.attributes for name in state):
            refuse(f"{kind} has other attributes than it declares")
        parts: dict[str, dict[str, Any]] = {"parameters": {}, "buffers": {}, "modules": {}, "plain": {}}
        for name, declared in kind.attributes.items():
            one = state.get(name)
            of_module = any(isinstance(each, ObjectType) and each.is_module for each in members(declared))
            part = "parameters" if name in kind.parameters else "buffers" if name in kind.buffers else "plain"
            part = "modules" if of_module else part
            wanted = {"parameters": Tensor, "buffers": Tensor, "modules": ScriptModule}.get(part, object)
            if one is not None and not isinstance(one, wanted):
                refuse(f"{name} of {kind} is a {type(one).__name__}")
            parts[part][name] = self.parameter(one) if part == "parameters" and isinstance(one, Tensor) else one
        if kind.python is not None:
            parts["plain"] = kind.constants | parts["plain"]
        return dressed(RecursiveScriptModule, kind, self.unit, *parts.values())

    def parameter(self, x: Tensor) -> nn.Parameter:
        """Returns a tensor as a parameter, the same one each time."""
        return self.parameters.setdefault(id(x), (x, nn.Parameter(x.detach(), x.requires_grad)))[1]


def attribute_name(name: Any) -> str:
    """Returns the name of an attribute. RuntimeError for one that is a part of every module or object."""
    known = hasattr(ScriptModule, name) and name not in ("training", "_is_full_backward_hook")
    if name.startswith("__") or "." in name or known or name in ("_unit", "_twin", "_script_type"):
        refuse(f"an attribute may not be called {name!r}")
    if name in vars(BARE) and name not in ("training", "_is_full_backward_hook"):
        refuse(f"{name!r} is a part of every module")
    return name


def load(
    f: Any, map_location: Any = None, _extra_files: dict[str, Any] | None = None, _restore_shapes: bool = False
) -> Any:
    """Loads what jit.save wrote, here or in PyTorch: a module that needs no Python source. Nothing in it is run.

    _extra_files: a dict whose values become the members of these names. Errors: RuntimeError for another archive.
    """
    if is_path(f) and not os.path.exists(f):
        raise ValueError(f"The provided filename {f} does not exist")
    with opened(f) as file:
        archive = ArchiveReader(file, False)
        program, place = Program(archive), placing(map_location)
        try:
            tensors = ProgramReader(archive, place, program, "constants").load()
            program.constants |= {f"c{i}": one for i, one in enumerate(tensors) if isinstance(one, Tensor)}
            top = program.object(ProgramReader(archive, place, program, "data").load())
            if not isinstance(top, ScriptModule):
                refuse(f"it holds a {type(top).__name__}")
            for kind in [one for one in program.found.values() if isinstance(one, ObjectType)]:
                for name in kind.pending:
                    program.unit.method(kind, name, None, None)
            for name in _extra_files or {}:
                _extra_files[name] = archive.read(f"extra/{name}")  # type: ignore[index]  # not None here
            return top
        except pickle.UnpicklingError as problem:
            refuse(str(problem))
        except WRONG as problem:
            refuse(f"{type(problem).__name__}: {problem}")
