"""Modules that were compiled: parameters, buffers and submodules as before, methods as graphs.

Read next: archive.py.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from redispatch import nn

from . import marks
from .classes import BARE, Compiler
from .function import ScriptFunction
from .graph import Graph
from .types import ObjectType, convert, spoken


class ScriptModule(nn.Module):
    """A module whose methods are graphs. `graph`, `code`, `save` are those of `forward` and of the whole."""

    _script_type: ObjectType
    _unit: Compiler
    save: Any  # (file, _extra_files=None), of archive.py

    def __setattr__(self, name: str, value: Any) -> None:
        kind = self.__dict__.get("_script_type")
        if (
            kind is not None
            and name in kind.attributes
            and name not in (*self._parameters, *self._buffers, *self._modules)
        ):
            try:
                value = convert(value, kind.attributes[name])
            except (TypeError, ValueError) as problem:
                raise RuntimeError(
                    f"Could not cast attribute '{name}' to type {spoken(kind.attributes[name])}: {problem}"
                ) from None
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        kind = self.__dict__.get("_script_type")
        if kind is not None and not name.startswith("__"):
            if name in kind.methods and name != "__init__":
                return ScriptMethod(self, kind.methods[name])
            if name in kind.constants:
                return kind.constants[name]
            if self._unit.has_method(kind, f"__{name}_getter"):
                return self._unit.method(kind, f"__{name}_getter", None, None)(self)
        return super().__getattr__(name)

    def __init_subclass__(cls, **options: Any) -> None:
        """Has instances of a user's class below this one compiled when they are made: methods with `script_method`."""
        super().__init_subclass__(**options)
        if cls.__module__ == __name__:
            return
        init = cls.__init__

        def compiling(self: Any, *args: Any, **kwargs: Any) -> None:
            init(self, *args, **kwargs)
            if type(self) is cls:
                compiled_in_place(self)

        cls.__init__ = compiling  # type: ignore[method-assign]  # so that what follows __init__ is ours

    forward: Any = property(lambda self: ScriptMethod(self, self._method("forward")))

    def _method(self, name: str) -> ScriptFunction:
        found = self._script_type.methods.get(name)
        if found is None:
            raise AttributeError(f"'{self.original_name}' object has no attribute or method '{name}'")
        return found

    @property
    def original_name(self) -> str:
        return self._script_type.name.rpartition(".")[2]

    @property
    def graph(self) -> Graph:
        return self._method("forward").graph

    @property
    def inlined_graph(self) -> Graph:
        return self._method("forward").inlined_graph

    @property
    def code(self) -> str:
        return self._method("forward").code

    @property
    def schema(self) -> Any:
        return self._method("forward").schema

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Any:
        return iter(self._modules if self._unit.iterates(self._script_type) == "keys" else self._modules.values())

    def __getitem__(self, index: Any) -> Any:
        return self._modules[index] if isinstance(index, str) else list(self._modules.values())[index]

    def __bool__(self) -> bool:
        return True

    def __contains__(self, name: Any) -> bool:
        return name in self._modules

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}"

    def __copy__(self) -> ScriptModule:
        return dressed(
            type(self),
            self._script_type,
            self._unit,
            dict(self._parameters),
            dict(self._buffers),
            dict(self._modules),
            self._plain(),
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> ScriptModule:
        if id(self) not in memo:
            parts = [deepcopy(dict(one), memo) for one in (self._parameters, self._buffers, self._modules)]
            memo[id(self)] = dressed(
                type(self), self._script_type, self._unit, parts[0], parts[1], parts[2], deepcopy(self._plain(), memo)
            )
        return memo[id(self)]

    def _plain(self) -> dict[str, Any]:
        """Returns the attributes that are no parameters, buffers or modules."""
        return {
            name: one
            for name, one in self.__dict__.items()
            if name not in vars(BARE)
            and name not in ("_script_type", "_unit", "_twin")
            and not isinstance(one, ScriptMethod)
        } | {"training": self.training}

    def __reduce__(self) -> Any:
        raise TypeError("ScriptModule cannot be pickled; write it with torch.jit.save")


class RecursiveScriptModule(ScriptModule):
    """A module that `script` made of one in Python."""


class TracedModule(ScriptModule):
    """A module below one that `trace` made."""

    def _get_name(self) -> str:
        return self.original_name


class TopLevelTracedModule(TracedModule):
    """A module that `trace` made."""


class ScriptMethod:
    """A method of one module."""

    def __init__(self, owner: Any, function: ScriptFunction) -> None:
        self.owner, self.function = owner, function
        self.name = self.__name__ = function.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(self.owner, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)


def dressed(
    cls: Any, kind: ObjectType, unit: Compiler, parameters: Any, buffers: Any, modules: Any, plain: dict[str, Any]
) -> Any:
    """Returns a module of a type with these contents."""
    made = cls.__new__(cls)
    nn.Module.__init__(made)
    made.__dict__.update(_script_type=kind, _unit=unit)
    made._parameters.update(parameters)
    made._buffers.update(buffers)
    made._modules.update(modules)
    made.__dict__.update(plain)
    return made


def scripted(module: Any, unit: Compiler | None = None, kind: Any = None) -> ScriptModule:
    """Returns a module compiled: `forward`, what is marked with `export`, and whatever these call."""
    if isinstance(module, ScriptModule):
        return module
    unit = unit or Compiler()
    top = kind is None
    kind = kind or unit.type_of_module(module)
    children = {
        name: None if one is None else scripted(one, unit, kind.attributes[name])
        for name, one in module._modules.items()
    }
    plain = {
        name: (one.value if isinstance(one, marks.Attribute) else one)
        for name, one in vars(module).items()
        if name not in vars(BARE) or name == "training"
    }
    made = dressed(RecursiveScriptModule, kind, unit, module._parameters, module._buffers, children, plain)
    for name in module._non_persistent_buffers_set:
        made._non_persistent_buffers_set.add(name)
    for hooks, found in zip(kind.hooks, (made._forward_pre_hooks, made._forward_hooks), strict=True):
        for fn in hooks:
            found[id(fn)] = unit.hook(kind, fn)
    if top:
        compile_methods(module, kind, unit)
    return made


def compiled_in_place(module: Any) -> None:
    """Compiles a module of a class below ScriptModule: its marked methods are graphs from then on."""
    unit = Compiler()
    kind = unit.type_of_module(module)
    for name, child in module._modules.items():
        if child is not None:
            module._modules[name] = scripted(child, unit, kind.attributes[name])
    compile_methods(module, kind, unit)
    module.__dict__.update(_script_type=kind, _unit=unit)
    module.__dict__.update({name: ScriptMethod(module, one) for name, one in kind.methods.items()})


def compile_methods(module: Any, kind: ObjectType, unit: Compiler) -> None:
    """Compiles the methods of a module and of those below that are asked for by name."""
    for name, child in module._modules.items():
        if child is not None:
            compile_methods(child, kind.attributes[name], unit)  # type: ignore[arg-type]  # the module's type
    for name in dir(type(module)):
        if marks.of(getattr(type(module), name, None)) == "export":
            unit.method(kind, name, None, None)
    forward = type(module).forward
    if (
        forward is not nn.Module.forward
        and marks.of(forward) is None
        and not isinstance(module, nn.ModuleList | nn.ModuleDict)
    ):
        unit.method(kind, "forward", None, None)
