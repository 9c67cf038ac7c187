"""Compiles functions, classes and modules of a program as they are called, each once.

A function that calls another has it compiled first; the error of the inner one says on whose account. A module's
attributes, parameters and submodules become one type; its methods are compiled when something calls them.
Read next: module.py, which makes the modules that Python holds.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import sys
import threading
import typing
from typing import Any

from redispatch import nn
from redispatch.dispatch.schema.schema import ANY, NO_DEFAULT, NONE, TENSOR, Argument, FunctionSchema, Type
from redispatch.dispatch.tensor import Tensor

from . import marks
from .builtins import BY_NAME
from .function import ScriptFunction
from .graph import Graph, Node, Value, removed_dead
from .pending import of_dataclass
from .source import NotSupportedError, Place, ScriptError, Source, fail, parsed
from .statements import Statements
from .sugared import finder, is_library
from .types import (
    EnumType,
    NamedTupleType,
    ObjectType,
    is_subtype,
    of_annotation,
    of_python,
    of_value,
    path_of,
    python_method,
    spoken,
)  # fmt: skip

REFUSED = (ScriptError, NotSupportedError, OSError)  # why a function of the library may be left to Python
LOCK = threading.RLock()


class Compiler:
    """Compiles, and keeps what it has compiled: functions by their Python function, classes by their class."""

    def __init__(self, names: dict[str, Any] | None = None) -> None:
        self.functions: dict[Any, ScriptFunction] = {}
        self.classes: dict[type, Type] = {}
        self.running: list[Any] = []
        self.names = names if names is not None else {}

    # Functions ------------------------------------------------------------------------------------------------

    def function(self, fn: Any, place: Place | None = None, caller: Any = None) -> ScriptFunction:
        """Returns a Python function compiled. RuntimeError where it is no TorchScript, or calls itself."""
        if isinstance(fn, ScriptFunction):
            return fn
        if hasattr(fn, "compiled_for"):  # of a text, see text.py
            return fn.compiled_for(place, caller)
        bound = getattr(fn, "__self__", None)
        if isinstance(bound, nn.Module):
            fail(place, f"the method {fn.__name__} of a module that is no part of this one cannot be called")
        fn = getattr(fn, "__script_if_tracing_wrapper", False) and fn.__original_fn or inspect.unwrap(fn)
        with LOCK:
            if fn in self.functions:
                return self.functions[fn]
            if not hasattr(fn, "__code__"):
                fail(
                    place,
                    f"Unknown builtin op or python value: {fn}. Could not find it among operators, and it has "
                    f"no source",
                )
            tree, source = parsed(fn)
            self.functions[fn] = self.compiled(fn, tree, source, finder(fn), defaults_of(fn), None, place, caller)
            return self.functions[fn]

    def overloaded(self, fn: Any, number: int, owner: Any, place: Place | None, caller: Any) -> ScriptFunction:
        """Returns a function compiled with the signature of one of its overloads: its body is that of all."""
        declared = marks.overloads_of(fn)[number]
        key = fn, number, owner
        if key not in self.functions:
            (tree, source), (signature, _) = parsed(fn), parsed(declared)
            tree.name, tree.args, tree.returns = f"{tree.name}__{number}", signature.args, signature.returns
            defaults = defaults_of(declared)
            self.functions[key] = self.compiled(key, tree, source, finder(fn), defaults, owner, place, caller)
        return self.functions[key]

    def compiled(
        self, key: Any, tree: ast.FunctionDef, source: Source, find: Any, defaults: dict[str, Any],
        owner: ObjectType | None, place: Place | None = None, caller: Any = None,
    ) -> ScriptFunction:  # fmt: skip
        """Compiles one function on account of another one."""
        if key in self.running:
            fail(place, f"function '{tree.name}' is called recursively. Recursive calls are not supported")
        self.running.append(key)
        try:
            return Definition(self, source, find, tree, owner).compiled(defaults)
        except ScriptError as problem:
            if place is None:
                raise
            where = place.pointed()
            raise ScriptError(
                f"{str(problem).rstrip(chr(10))}\n'{tree.name}' is being compiled since it was called from "
                f"'{caller.name}'\n{where}\n"
            ) from None
        finally:
            self.running.pop()

    def closure(self, outer: Any, node: ast.FunctionDef, taken: dict[str, Value], others: Any) -> ScriptFunction:
        """Returns a function compiled whose arguments are what it takes from around it."""
        made = Definition(self, outer.source, outer.find, node, None)
        made.env |= others | {name: made.graph.add_param(one.type, name) for name, one in taken.items()}
        function = made.compiled({})
        arguments = [Argument(name, one.type) for name, one in taken.items()]
        return ScriptFunction(node.name, function.graph, arguments, function.schema.returns[0].type)

    def declared(self, fn: Any, method: bool = False) -> FunctionSchema:
        """Returns the schema by which Python's function is called: annotations, and Tensor where there is none."""
        tree, _ = parsed(fn)
        find = finder(fn)

        def kind(node: ast.expr | None) -> Type:
            return TENSOR if node is None else of_annotation(node, find, self.type_of_class)

        arguments = [Argument(one.arg, kind(one.annotation)) for one in tree.args.args[method:]]
        return FunctionSchema(tree.name, "", tuple(arguments), (Argument("", kind(tree.returns)),))

    def guess_return(self, statements: Statements, loop: Any) -> Type:
        """Returns the type of what a loop returns that is not declared: that of its first `return`, tried out."""
        first = next(node for node in ast.walk(loop) if isinstance(node, ast.Return))
        if first.value is None:
            return NONE
        trial = TrialReturn(statements)
        return trial.type_of(loop, first)

    # Classes --------------------------------------------------------------------------------------------------

    def type_of_class(self, kind: Any) -> Type | None:
        """Returns the type that a Python class is, compiled; None for what is no class of a program."""
        if kind in self.classes:
            return self.classes[kind]
        if isinstance(kind, str) and kind in self.names:
            return self.type_of_class(self.names[kind])
        if (
            not isinstance(kind, type)
            or issubclass(kind, nn.Module | Tensor)
            or (kind.__module__ == "builtins")
            or is_library(kind)
        ):
            return None
        name = path_of(kind)
        if issubclass(kind, enum.Enum):
            made: Type = EnumType(kind)
        elif issubclass(kind, tuple) and hasattr(kind, "_fields"):
            hints = typing.get_type_hints(kind)
            elems = [of_python(hints[one], self.type_of_class) if one in hints else TENSOR for one in kind._fields]
            made = NamedTupleType(name, kind._fields, elems, kind)
        elif issubclass(kind, Exception) or not hasattr(kind, "__dict__") or issubclass(kind, type):
            return None
        else:
            made = ObjectType(name, kind)
        self.classes[kind] = made
        if isinstance(made, ObjectType) and dataclasses.is_dataclass(kind):
            made.pending |= of_dataclass(self, kind, made)
        if isinstance(made, ObjectType):
            for attribute, hint in getattr(kind, "__annotations__", {}).items():
                declared = ast.parse(hint, mode="eval").body if isinstance(hint, str) else None
                module = vars(sys.modules.get(kind.__module__, object()))
                made.attributes[attribute] = (
                    of_python(hint, self.type_of_class)
                    if declared is None
                    else of_annotation(declared, module.get, self.type_of_class)
                )
            try:
                if "__init__" in vars(kind):
                    self.method(made, "__init__", None, None)
            except Exception:
                del self.classes[kind]
                raise
        return made

    # Methods --------------------------------------------------------------------------------------------------

    def has_method(self, kind: ObjectType, name: str) -> bool:
        if name in kind.methods or name in kind.pending:
            return True
        base, _, number = name.rpartition("__")
        found = python_method(kind, base if base and number.isdigit() else name)
        return inspect.isroutine(found) and getattr(object, name, None) is not found

    def is_static(self, kind: ObjectType, name: str) -> bool:
        return kind.python is not None and isinstance(inspect.getattr_static(kind.python, name, None), staticmethod)

    def method(self, kind: ObjectType, name: str, place: Place | None, caller: Any) -> ScriptFunction:
        """Returns a method of a class or module, compiled; the module's type is its first argument's."""
        with LOCK:
            if name in kind.pending and name not in kind.methods:
                kind.methods[name] = kind.pending[name].compiled_for(place, caller)
            if name in kind.methods:
                return kind.methods[name]
            base, _, number = name.rpartition("__")
            if base and number.isdigit():
                kind.methods[name] = self.overloaded(python_method(kind, base), int(number), kind, place, caller)
                return kind.methods[name]
            static = self.is_static(kind, name)
            fn = inspect.unwrap(python_method(kind, name))
            fn = getattr(fn, "__func__", fn)
            mark = marks.of(fn)
            if mark in ("ignore", "unused"):
                made = self.left_to_python(kind, name, fn, mark)
            elif static:
                made = self.function(fn, place, caller)
            else:
                try:
                    tree, source = parsed(fn)
                    made = self.compiled((kind, name), tree, source, finder(fn), defaults_of(fn), kind, place, caller)
                except REFUSED:
                    if name != "forward" or not (kind.is_module and is_library(kind.python)):
                        raise
                    made = self.builtin_method(kind, name, fn)
            kind.methods[name] = made
            return made

    def hook(self, kind: ObjectType, fn: Any, place: Place | None = None, caller: Any = None) -> ScriptFunction:
        """Returns a hook of a module compiled: a function of the module, its arguments and perhaps its result."""
        if (kind, fn) not in self.functions:
            tree, source = parsed(fn)
            self.functions[kind, fn] = self.compiled((kind, fn), tree, source, finder(fn), {}, kind, place, caller)
        return self.functions[kind, fn]

    def left_to_python(self, kind: ObjectType, name: str, fn: Any, mark: str) -> ScriptFunction:
        """Returns a method that runs as Python, or that only raises."""
        schema = self.declared(fn, method=True)
        graph = Graph()
        values = [graph.add_param(kind, "self"), *(graph.add_param(one.type, one.name) for one in schema.arguments)]
        if mark == "ignore":
            node = Node(graph, "prim::PythonOp", values, None, fn, name=name)
        else:
            said = [graph.constant(marks.IGNORED), graph.constant(None)]
            graph.nodes_.append(Node(graph, "prim::RaiseException", said, None, BY_NAME["prim::RaiseException"]))
            node = Node(graph, "prim::Uninitialized", [], None)
        graph.nodes_.append(node)
        graph.results = [node.add_output(schema.returns[0].type)]
        return ScriptFunction(name, graph, [Argument("self", kind), *schema.arguments], schema.returns[0].type)

    def builtin_method(self, kind: ObjectType, name: str, fn: Any) -> ScriptFunction:
        """Returns a method of one of the library's modules that runs as the library's Python."""
        parameters = list(inspect.signature(fn).parameters.values())[1:]
        made = [
            Argument(one.name, ANY, NO_DEFAULT if one.default is inspect.Parameter.empty else one.default)
            for one in parameters
        ]
        graph = Graph()
        values = [graph.add_param(kind, "self"), *(graph.add_param(ANY, one.name) for one in made)]
        node = Node(graph, "prim::ModuleCall", values, None, None, name=name, value=kind.name)
        graph.nodes_.append(node)
        graph.results = [node.add_output(TENSOR, loose=True)]
        return ScriptFunction(name, graph, [Argument("self", kind), *made], TENSOR)

    # Modules --------------------------------------------------------------------------------------------------

    def children(self, kind: ObjectType) -> list[str]:
        """Returns the names of the modules in a list, sequence or dict of modules, or of a list's parameters."""
        if isinstance(kind.python, type) and issubclass(kind.python, nn.ParameterList):
            return [name for name in kind.attributes if name.isdigit()]
        return [name for name, one in kind.attributes.items() if isinstance(one, ObjectType) and one.is_module]

    def is_container(self, kind: Type) -> bool:
        """Whether a type is that of a list, sequence or dict of modules."""
        return (
            isinstance(kind, ObjectType)
            and isinstance(kind.python, type)
            and issubclass(kind.python, nn.ModuleList | nn.Sequential | nn.ModuleDict)
        )

    def iterates(self, kind: ObjectType) -> str:
        return "keys" if isinstance(kind.python, type) and issubclass(kind.python, nn.ModuleDict) else "values"

    def why_no_attribute(self, kind: ObjectType, name: str) -> str:
        return kind.constants.get(" failed", {}).get(name, "")

    @staticmethod
    def tensors_of(module: Any, made: ObjectType) -> None:
        """Enters a module's parameters and buffers into its type."""
        made.parameters, made.buffers = list(module._parameters), list(module._buffers)
        for name, one in [*module._parameters.items(), *module._buffers.items()]:
            made.attributes[name] = NONE if one is None else TENSOR

    def type_of_module(self, module: Any) -> ObjectType:
        """Returns a type for one module: its attributes, and those of its class that are constants."""
        if hasattr(module, "_script_type"):  # it was compiled before
            return module._script_type
        cls = type(module)
        made = ObjectType(name_of_class(cls), cls, is_module=True)
        failed = made.constants[" failed"] = {}
        self.tensors_of(module, made)
        made.hooks = [list(module._forward_pre_hooks.values()), list(module._forward_hooks.values())]
        for name, one in module._modules.items():
            made.attributes[name] = NONE if one is None else self.type_of_module(one)
        constants = set(getattr(cls, "__constants__", ()))
        hints = {
            name: hint
            for base in reversed(cls.__mro__)
            if not is_library(base)
            for name, hint in vars(base).get("__annotations__", {}).items()
        }
        constants |= {name for name, hint in hints.items() if "Final" in str(hint)}
        if is_library(cls):  # `dims = 2`, by which classes of one family differ
            constants |= {
                name
                for base in cls.__mro__
                for name, one in vars(base).items()
                if isinstance(one, int | tuple) and not name.startswith("__") and not hasattr(nn.Module, name)
            }
            constants -= vars(module).keys()
        known = {name: getattr(cls, name) for name in constants if hasattr(cls, name)} | vars(module)
        for name, value in known.items():
            if name in made.attributes or (name.startswith("_") and name in vars(BARE)):
                continue
            if name in constants and not isinstance(value, nn.Module):
                made.constants[name] = value
                continue
            self.attribute_of(made, name, value, hints.get(name), cls, failed)
        return made

    def attribute_of(
        self, made: ObjectType, name: str, value: Any, hint: Any, cls: type, failed: dict[str, str]
    ) -> None:
        """Enters one attribute of a module into its type, or why it has none there."""
        try:
            if isinstance(value, marks.Attribute):
                made.attributes[name] = of_python(value.type, self.type_of_class)
            elif isinstance(hint, str):
                module = sys.modules[cls.__module__]
                made.attributes[name] = of_annotation(
                    ast.parse(hint, mode="eval").body, vars(module).get, self.type_of_class
                )
            elif hint is not None:
                made.attributes[name] = of_python(hint, self.type_of_class)
            elif inspect.isroutine(value) or isinstance(value, ScriptFunction):
                made.constants[name] = value
            else:
                found = of_value(value, self.type_of_class)
                if found is None:
                    raise ValueError(why_untyped(value))
                made.attributes[name] = found
        except (ValueError, AttributeError, ScriptError) as problem:
            failed[name] = (
                f"(This attribute exists on the Python module, but we failed to convert Python type: "
                f"'{type(value).__name__}' to a "
                f"TorchScript type. {str(problem).strip()}. Its type was inferred; try adding a type annotation "
                f"for the attribute.)"
            )


def defaults_of(fn: Any) -> dict[str, Any]:
    """Returns the defaults of a Python function's arguments."""
    found = {name: one.default for name, one in inspect.signature(fn).parameters.items()}
    return {name: one for name, one in found.items() if one is not inspect.Parameter.empty}


def why_untyped(value: Any) -> str:
    if isinstance(value, list | dict):
        word = "List" if isinstance(value, list) else "Dictionary"
        return (
            f"{word} inputs to traced functions must have consistent type"
            if value
            else f"{word} trace inputs must have elements"
        )
    return (
        "Only tensors and (possibly nested) tuples of tensors, lists, or dicts are supported as inputs or "
        "outputs of traced "
        f"functions, but instead got value of type {type(value).__name__}."
    )


def name_of_class(cls: type) -> str:
    """Returns the name of a class in programs: PyTorch's for the library's own."""
    name = path_of(cls)
    return name.replace("redispatch.nn.", "torch.nn.modules.", 1) if is_library(cls) else name


BARE = nn.Module()


class Definition(Statements):
    """Compiles one `def`."""

    def __init__(
        self, unit: Compiler, source: Source, find: Any, tree: ast.FunctionDef, owner: ObjectType | None
    ) -> None:
        super().__init__(unit, source, find, tree.name)
        self.tree, self.owner = tree, owner
        if owner is not None and tree.name == "__init__":
            self.initialises = owner

    def compiled(self, defaults: dict[str, Any]) -> ScriptFunction:
        tree, spec = self.tree, self.tree.args
        refused = spec.vararg or spec.kwarg or next((one for one in spec.kw_defaults if one is not None), None)
        if refused:
            text = (
                "Compiled functions can't take variable number of arguments or use keyword-only arguments with defaults"
            )
            raise NotSupportedError(Place(self.source, refused), text)
        lenient = self.owner is not None and self.owner.is_module and is_library(self.owner.python)
        lenient = lenient and not getattr(self.find, "strict", False)
        if tree.returns is not None:
            self.returns = self.annotation(tree.returns)
            self.declared_return = not (lenient and self.returns == ANY)
            self.returns = self.returns if self.declared_return else None
        comment = self.type_comment()
        if comment is not None and comment.returns is not None:
            self.returns, self.declared_return = self.annotation(comment.returns), True
            own = 1 if self.owner is not None else 0
            for one, kind_of in zip(spec.args[own:], comment.argtypes, strict=False):
                one.annotation = kind_of
        arguments = []
        for number, one in enumerate([*spec.args, *spec.kwonlyargs]):
            if number == 0 and self.owner is not None:
                kind: Type = self.owner
            else:
                kind = TENSOR if one.annotation is None else self.annotation(one.annotation)
                kind = TENSOR if lenient and kind == ANY else kind
            default = self.default(one, kind, defaults)
            arguments.append(Argument(one.arg, kind, default, number >= len(spec.args)))
            self.env[one.arg] = self.graph.add_param(kind, one.arg)
        self.statements(tree.body)
        self.finish(tree)
        removed_dead(self.graph)
        assert self.returns is not None
        return ScriptFunction(tree.name, self.graph, arguments, self.returns)

    def type_comment(self) -> Any:
        """Returns the signature of a comment `# type: (Tensor, int) -> Tensor` below the head, or None."""
        first = self.tree.body[0].lineno
        for line in self.source.lines[self.tree.lineno - 1 : first]:
            _, found, text = line.partition("# type: (")
            if found:
                signature: Any = ast.parse("(" + text.strip(), mode="func_type")
                for node in ast.walk(signature):
                    if isinstance(node, ast.expr):
                        node.lineno = node.end_lineno = self.tree.lineno
                return signature
        return None

    def default(self, one: ast.arg, kind: Type, defaults: dict[str, Any]) -> Any:
        if one.arg not in defaults:
            return NO_DEFAULT
        value = defaults[one.arg]
        found = of_value(value, self.unit.type_of_class)
        fits = found is not None and (is_subtype(found, kind) or (spoken(kind) == "float" and type(value) is int))
        if not fits and value not in ([], {}):
            fail(self.place(one), f'Expected a default value of type {spoken(kind)} on parameter "{one.arg}"')
        return float(value) if spoken(kind) == "float" and type(value) is int else value


class TrialReturn:
    """Finds the type of a loop's `return` by compiling the loop once, for nothing."""

    def __init__(self, statements: Statements) -> None:
        self.outer = statements

    def type_of(self, loop: Any, first: ast.Return) -> Type:
        outer = self.outer
        trial = Statements(outer.unit, outer.source, outer.find, outer.name)
        trial.env = {
            name: trial.graph.add_param(value.type, name) if isinstance(value, Value) else value
            for name, value in outer.env.items()
        }
        trial.returns = TENSOR if outer.returns is None else outer.returns
        found: list[Type] = []

        def noted(node: ast.Return) -> None:
            found.append(NONE if node.value is None else trial.value(node.value).type)

        trial.write_Return = noted  # type: ignore[method-assign]  # this one does not return
        trial.ret_before = lambda node: trial.graph.constant(None)  # type: ignore[method-assign]  # nor does it ask again
        trial.env[".ret"] = trial.graph.constant(None)
        trial.env[".returned"] = trial.graph.constant(False)
        trial.env |= {".broke": trial.graph.constant(False)}
        try:
            trial.statement(loop)
        except ScriptError:
            if not found:
                raise
        return found[0]
