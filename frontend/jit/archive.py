"""save and load of programs: graphs as JSON, tensors as `save` writes them, both in one zip archive.

An archive is data. Loading looks names up in fixed places, the registry, nn.functional and nn's modules, checks that
every value is there before it is used, and runs nothing. Whatever does not fit is a RuntimeError.
Read next: tracing.py.
"""

from __future__ import annotations

import json
import os
from collections import namedtuple
from collections.abc import Callable
from typing import Any, NoReturn

import redispatch
from redispatch import nn
from redispatch.dispatch import OPERATORS
from redispatch.dispatch.core.registry import load_late
from redispatch.dispatch.schema.schema import (
    NO_DEFAULT,
    Argument,
    BaseType,
    DictType,
    GenericType,
    ListType,
    OptionalType,
    TupleType,
    Type,
)  # fmt: skip
from redispatch.dispatch.tensor import Tensor, device, dtype, layout, memory_format
from redispatch.dispatch.tensor.dtypes import dtype_named
from redispatch.serialization.reader import Reader, opened, placing
from redispatch.serialization.writer import ArchiveReader, Writer, is_path, writing

from .builtins import BY_NAME
from .calls import TENSOR_ATTRIBUTES
from .classes import Compiler
from .function import ScriptFunction
from .graph import Block, Graph, Node, Value
from .interpreter import SIMPLE
from .module import BARE, RecursiveScriptModule, ScriptModule, dressed
from .source import fail
from .sugared import is_library
from .types import NAMED, NamedTupleType, ObjectType

VERSION = 1
STRUCTURED = {"prim::Constant", "prim::If", "prim::Loop", "prim::GetAttr", "prim::SetAttr", "prim::CallFunction",
              "prim::CallMethod", "prim::isinstance", "prim::TensorAttr", "prim::fork", "prim::FunctionalCall",
              "prim::ModuleCall", "prim::CreateObject", "prim::TupleConstruct", "prim::EnterGrad"}  # fmt: skip
KINDS = STRUCTURED | SIMPLE.keys()
NAMED_VALUES: dict[str, tuple[type, Callable[[str], Any]]] = {
    "dtype": (dtype, lambda name: dtype_named(name.removeprefix("torch."))),
    "device": (device, device),
    "layout": (layout, lambda name: named_of(layout, name)),
    "memory_format": (memory_format, lambda name: named_of(memory_format, name)),
    "complex": (complex, complex),
}


def named_of(kind: type, name: str) -> Any:
    found = getattr(redispatch, name.removeprefix("torch."), None)
    return found if isinstance(found, kind) else refuse(f"{name!r} is no {kind.__name__}")


def refuse(text: str) -> NoReturn:
    raise RuntimeError(f"jit.load: the archive is damaged or was not written by jit.save: {text}")


# --- writing ----------------------------------------------------------------------------------------------------------


class Packer:
    """Turns types, functions and modules into plain data, and gathers the tensors."""

    def __init__(self) -> None:
        self.tensors: list[Any] = []
        self.types: dict[int, int] = {}
        self.type_rows: list[Any] = []
        self.functions: dict[int, int] = {}
        self.function_rows: list[Any] = []
        self.kept: list[Any] = []  # so that ids stay theirs

    def type(self, kind: Type) -> Any:
        if isinstance(kind, ObjectType):
            return ["object", self.object_type(kind)]
        if isinstance(kind, NamedTupleType):
            return ["named", kind.name, list(kind.fields), [self.type(one) for one in kind.elems]]
        if isinstance(kind, BaseType):
            return kind.name
        if isinstance(kind, GenericType):
            return ["generic", kind.name, [self.type(one) for one in kind.elems]]
        word = {ListType: "list", OptionalType: "optional", TupleType: "tuple", DictType: "dict"}[type(kind)]
        parts = kind.elems if isinstance(kind, TupleType) else kind.containedTypes()
        return [word, *(self.type(one) for one in parts)]

    def object_type(self, kind: ObjectType) -> int:
        if id(kind) not in self.types:
            self.types[id(kind)] = len(self.type_rows)
            self.kept.append(kind)
            row: dict[str, Any] = {"name": kind.name, "module": kind.is_module}
            self.type_rows.append(row)
            row["attributes"] = {name: self.type(one) for name, one in kind.attributes.items()}
            row["methods"] = {name: self.function(one) for name, one in kind.methods.items()}
        return self.types[id(kind)]

    def function(self, function: ScriptFunction) -> int:
        if id(function) not in self.functions:
            self.kept.append(function)
            graph = self.graph(function.graph)
            arguments = [
                [one.name, self.type(one.type), *([] if one.default is NO_DEFAULT else [self.value(one.default)])]
                for one in function.schema.arguments
            ]
            row = {
                "name": function.name,
                "arguments": arguments,
                "returns": self.type(function.schema.returns[0].type),
                "graph": graph,
            }
            self.functions[id(function)] = len(self.function_rows)
            self.function_rows.append(row)
        return self.functions[id(function)]

    def graph(self, graph: Graph) -> Any:
        numbers: dict[Value, int] = {}

        def number(value: Value) -> Any:
            numbers[value] = len(numbers)
            return [value.name, self.type(value.type), int(value.loose)]

        def block(one: Block) -> Any:
            params = [number(value) for value in one.params]
            nodes = [node(each) for each in one.nodes_]
            return {"params": params, "nodes": nodes, "results": [numbers[value] for value in one.results]}

        def node(one: Node) -> Any:
            if one._kind == "prim::PythonOp":
                text = f"Could not export Python function call '{one.attributes['name']}'. Remove calls to Python "
                text += "functions before export"
                fail(one.place, f"{text}: mark the function with @unused or ignore(drop=True), or script it")
            op = getattr(one.op, "qualified_name", None)
            attributes = {name: self.value(value) for name, value in one.attributes.items()}
            inputs = [numbers[value] for value in one.input_values]
            blocks = [block(each) for each in one.blocks]
            return [one._kind, inputs, [number(value) for value in one.output_values], op, attributes, blocks]

        return block(graph)

    def value(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return {"float": value.hex() if value == value else "nan"}
        if isinstance(value, list | tuple):
            return {type(value).__name__ if type(value) is list else "tuple": [self.value(one) for one in value]}
        if isinstance(value, dict):
            return {"dict": [[self.value(key), self.value(one)] for key, one in value.items()]}
        if isinstance(value, Tensor):
            self.tensors.append(value)
            return {"tensor": len(self.tensors) - 1}
        if isinstance(value, ScriptFunction):
            return {"function": self.function(value)}
        if isinstance(value, Type):
            return {"type": self.type(value)}
        for word, (kind, _) in NAMED_VALUES.items():
            if isinstance(value, kind):
                return {word: str(value)}
        name = getattr(value, "__name__", "")
        if callable(value) and getattr(nn.functional, name, None) is value:
            return {"functional": name}
        raise RuntimeError(f"jit.save: a value of type {type(value).__name__} cannot be written: {value!r}")

    def module(self, module: ScriptModule) -> Any:
        kind = module._script_type
        plain = {}
        for name, value in module._plain().items():
            if name in kind.attributes or name == "training" or (kind.python is not None and is_library(kind.python)):
                try:
                    plain[name] = self.value(value)
                except RuntimeError:
                    if name in kind.attributes:
                        raise  # what only Python's own methods would read may be left out
        return {
            "type": self.object_type(kind),
            "parameters": {name: self.value(one) for name, one in module._parameters.items()},
            "buffers": {name: self.value(one) for name, one in module._buffers.items()},
            "modules": {name: None if one is None else self.module(one) for name, one in module._modules.items()},
            "plain": plain,
        }


def save(m: Any, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
    """Writes a compiled module or function to a path or an open file; see load.

    Errors: RuntimeError where it calls Python (`ignore`), or holds a value that is no data.
    """
    if isinstance(m, nn.Module) and not isinstance(m, ScriptModule) or not isinstance(m, ScriptModule | ScriptFunction):
        raise RuntimeError(f"jit.save takes what jit.script or jit.trace made, and not a {type(m).__name__}")
    packer = Packer()
    top = {"module": packer.module(m)} if isinstance(m, ScriptModule) else {"function": packer.function(m)}
    program = {"version": VERSION, **top, "types": packer.type_rows, "functions": packer.function_rows}
    folder = os.path.splitext(os.path.basename(os.fspath(f)))[0] if is_path(f) else "archive"
    writer = Writer(2)
    tensors = writer.pickled(packer.tensors)
    with writing(f, folder or "archive") as archive:
        archive.write("data.pkl", tensors)
        for number, storage, _ in writer.storages.values():
            archive.write(f"data/{number}", storage.read().data)
        archive.write("program.json", json.dumps(program).encode())
        for name, one in (_extra_files or {}).items():
            archive.write(f"extra/{name}", one.encode() if isinstance(one, str) else bytes(one))


ScriptFunction.save = ScriptModule.save = save

# --- reading ----------------------------------------------------------------------------------------------------------


class Unpacker:
    """Makes types, functions and modules of plain data that nobody has checked."""

    def __init__(self, program: Any, tensors: list[Any]) -> None:
        self.program, self.tensors, self.unit = program, tensors, Compiler()
        self.types = [self.empty_type(row) for row in program["types"]]
        for made, row in zip(self.types, program["types"], strict=True):
            made.attributes = {self.attribute_name(name): self.type(one) for name, one in row["attributes"].items()}
        self.functions: list[ScriptFunction] = []
        for row in program["functions"]:
            self.functions.append(self.function(row))
        for made, row in zip(self.types, program["types"], strict=True):
            made.methods = {str(name): self.functions[number] for name, number in row["methods"].items()}

    def empty_type(self, row: Any) -> ObjectType:
        name, python = str(row["name"]), None
        if row["module"] and name.startswith("torch.nn."):
            python = getattr(nn, name.rpartition(".")[2], None)
            python = python if isinstance(python, type) and issubclass(python, nn.Module) else None
        made = ObjectType(name, None, bool(row["module"]))
        made.python = python
        return made

    def attribute_name(self, name: str) -> str:
        if (
            name.startswith("__")
            or "." in name
            or (hasattr(ScriptModule, name) and name != "training")
            or name in ("_unit", "_twin", "_script_type")
        ):
            refuse(f"an attribute may not be called {name!r}")
        return name

    def type(self, row: Any) -> Type:
        if isinstance(row, str):
            return NAMED.get(row) or BaseType(row)
        word, *parts = row
        if word == "object":
            return self.types[parts[0]]
        if word == "named":
            name, fields, elems = parts
            return NamedTupleType(
                name, fields, [self.type(one) for one in elems], named_tuple(name, tuple(map(str, fields)))
            )
        if word == "generic":
            return GenericType(str(parts[0]), tuple(map(self.type, parts[1])))
        inner = list(map(self.type, parts))
        if word == "tuple":
            return TupleType(tuple(inner))
        return {"list": ListType, "optional": OptionalType, "dict": DictType}[word](*inner)

    def value(self, row: Any) -> Any:
        if row is None or isinstance(row, bool | int | str):
            return row
        ((word, inner),) = row.items()
        if word == "float":
            return float("nan") if inner == "nan" else float.fromhex(inner)
        if word in ("list", "tuple"):
            made = [self.value(one) for one in inner]
            return made if word == "list" else tuple(made)
        if word == "dict":
            return {self.value(key): self.value(one) for key, one in inner}
        if word == "tensor":
            found = self.tensors[inner]
            return found if isinstance(found, Tensor) else refuse("a tensor is none")
        if word == "function":
            return self.functions[inner] if 0 <= inner < len(self.functions) else refuse("a function calls a later one")
        if word == "type":
            return self.type(inner)
        if word == "functional":
            return getattr(nn.functional, self.functional(inner))
        return NAMED_VALUES[word][1](inner)

    def functional(self, name: Any) -> str:
        return name if name in vars(nn.functional)["__all__"] else refuse(f"there is no function nn.functional.{name}")

    def function(self, row: Any) -> ScriptFunction:
        graph = Graph()
        values: list[Value] = []
        self.block(graph, row["graph"], values)
        arguments = [
            Argument(str(one[0]), self.type(one[1]), self.value(one[2]) if len(one) > 2 else NO_DEFAULT)
            for one in row["arguments"]
        ]
        if len(arguments) != len(graph.params):
            refuse(f"{row['name']} has {len(arguments)} arguments and takes {len(graph.params)}")
        return ScriptFunction(str(row["name"]), graph, arguments, self.type(row["returns"]))

    def block(self, block: Block, row: Any, values: list[Value]) -> None:
        """Fills a block. values: all that there are so far, of which those of inner blocks end with them."""
        for name, kind, loose in row["params"]:
            values.append(block.add_param(self.type(kind), str(name).partition(".")[0]))
            values[-1].loose = bool(loose)
        visible = {*VISIBLE.get(id(values), ()), *range(len(values) - len(row["params"]), len(values))}
        outer = VISIBLE.get(id(values))
        VISIBLE[id(values)] = visible
        try:
            for each in row["nodes"]:
                self.node(block, each, values, visible)
            block.results = [self.seen(one, values, visible) for one in row["results"]]
        finally:
            if outer is None:
                del VISIBLE[id(values)]
            else:
                VISIBLE[id(values)] = outer

    @staticmethod
    def seen(number: Any, values: list[Value], visible: set[int]) -> Value:
        return values[number] if number in visible else refuse(f"value {number} is used where it is not there")

    def node(self, block: Block, row: Any, values: list[Value], visible: set[int]) -> None:
        kind, inputs, outputs, op, attributes, blocks = row
        found = None
        if op is not None:
            found = (
                BY_NAME.get(op) or OPERATORS.get(op) or (load_late(op.partition(".")[0]) and OPERATORS.get(op)) or None
            )
            if found is None:
                refuse(f"there is no operator {op}")
            if len(inputs) != len(found.schema.arguments):
                refuse(f"{op} takes {len(found.schema.arguments)} arguments, and not {len(inputs)}")
        elif kind not in KINDS:
            refuse(f"there is no node {kind}")
        made = Node(
            block.graph,
            str(kind),
            [self.seen(one, values, visible) for one in inputs],
            None,
            found,
            **{str(name): self.value(one) for name, one in attributes.items()},
        )
        for inner in blocks:
            self.block(made.add_block(), inner, values)
        for name, one, loose in outputs:
            visible.add(len(values))
            values.append(made.add_output(self.type(one), str(name).partition(".")[0], bool(loose)))
        self.check(made)
        block.nodes_.append(made)
        if kind == "prim::Constant" and block is block.graph:
            block.graph.constants[id(made)] = made.output()

    def check(self, node: Node) -> None:
        """Refuses a node that cannot run, or that would reach for what a program may not."""
        kind, attributes, inputs = node._kind, node.attributes, node.input_values
        if kind == "prim::If" and (
            len(node.blocks) != 2
            or any(len(one.results) != len(node.output_values) or one.params for one in node.blocks)
            or len(inputs) != 1
        ):
            refuse("an If has two blocks, each with its results")
        if kind == "prim::Loop":
            count = len(node.output_values)
            if (
                len(node.blocks) != 1
                or len(inputs) != count + 2
                or len(node.blocks[0].params) != count + 1
                or len(node.blocks[0].results) != count + 1
            ):
                refuse("a Loop has one block, which takes what it carries and returns it")
        if kind == "prim::FunctionalCall":
            self.functional(attributes.get("name"))
        if kind == "prim::TensorAttr" and attributes.get("name") not in (*TENSOR_ATTRIBUTES, "type", "index"):
            refuse(f"a tensor has no attribute {attributes.get('name')!r}")
        if kind in ("prim::GetAttr", "prim::SetAttr", "prim::ModuleCall"):
            owner = inputs[0].type if inputs else None
            if not isinstance(owner, ObjectType):
                refuse(f"{kind} of what is no object")
            if kind != "prim::ModuleCall" and attributes.get("name") not in owner.attributes:
                refuse(f"{owner} has no attribute {attributes.get('name')!r}")
            if kind == "prim::ModuleCall" and (owner.python is None or attributes.get("name") != "forward"):
                refuse(f"{owner} is none of the library's modules")
        if kind in ("prim::CallFunction", "prim::CallMethod", "prim::fork") and not isinstance(
            attributes.get("value"), ScriptFunction
        ):
            refuse(f"{kind} calls no function")
        if kind == "prim::EnterGrad" and attributes.get("name") not in ("no_grad", "enable_grad", "inference_mode"):
            refuse("a region that there is not")

    def module(self, row: Any) -> RecursiveScriptModule:
        kind = self.types[row["type"]]
        parameters, buffers = (
            {self.attribute_name(name): self.value(one) for name, one in row[part].items()}
            for part in ("parameters", "buffers")
        )
        modules = {name: None if one is None else self.module(one) for name, one in row["modules"].items()}
        plain = {self.attribute_name(name): self.value(one) for name, one in row["plain"].items()}
        if any(name in vars(BARE) and name != "training" for name in (*parameters, *buffers, *modules, *plain)):
            refuse("an attribute has the name of a part of every module")
        return dressed(RecursiveScriptModule, kind, self.unit, parameters, buffers, modules, plain)


VISIBLE: dict[int, set[int]] = {}  # by the list of values that is being filled


def named_tuple(name: str, fields: tuple[str, ...]) -> Any:
    return namedtuple(name.rpartition(".")[2], fields)  # ValueError for what is no name


def load(
    f: Any, map_location: Any = None, _extra_files: dict[str, Any] | None = None, _restore_shapes: bool = False
) -> Any:
    """Loads what jit.save wrote: a module or function that needs no Python source. Nothing in the archive is run.

    _extra_files: a dict whose values become the members of these names. Errors: RuntimeError for another archive.
    """
    if is_path(f) and not os.path.exists(f):
        raise ValueError(f"The provided filename {f} does not exist")
    with opened(f) as file:
        archive = ArchiveReader(file, False)
        try:
            tensors = Reader(archive, placing(map_location)).load()
            program = json.loads(archive.read("program.json"))
            if program.get("version") != VERSION:
                refuse(f"it is of version {program.get('version')}, this is {VERSION}")
            if not isinstance(tensors, list):
                refuse("its tensors are no list")
            unpacker = Unpacker(program, tensors)
            made = (
                unpacker.module(program["module"]) if "module" in program else unpacker.functions[program["function"]]
            )
            for name in _extra_files or {}:
                _extra_files[name] = archive.read(f"extra/{name}")  # type: ignore[index]  # not None here
            return made
        except (KeyError, IndexError, ValueError, TypeError, AttributeError, RecursionError, OverflowError) as problem:
            refuse(f"{type(problem).__name__}: {problem}")
