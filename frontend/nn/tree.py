"""A module as a tree: named parameters, buffers and children, filed when they are assigned, and the walks over them.

`self.weight = Parameter(...)` does not go into the instance's `__dict__` but into `_parameters`; buffers and child
modules likewise. A name is in one of these places only. Reading `self.weight` finds nothing in the usual place, so
Python asks `__getattr__`, which looks there.

Read next: checkpoint.py, module.py.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from redispatch.dispatch.tensor import Tensor

from .parameter import Buffer, Parameter


class Kind(NamedTuple):
    """One of the three kinds of attributes that are filed apart."""

    store: str  # the attribute that holds them by name
    noun: str  # as errors call one
    expected: str  # what may be assigned to a name of this kind
    before_init: str  # what cannot be assigned before `__init__`


PARAMETER = Kind("_parameters", "parameter", "torch.nn.Parameter or None expected", "parameters")
MODULE = Kind("_modules", "child module", "torch.nn.Module or None expected", "module")
BUFFER = Kind("_buffers", "buffer", "torch.nn.Buffer, torch.Tensor or None expected", "buffer")
KINDS = tuple((kind.store, kind) for kind in (PARAMETER, MODULE, BUFFER))
STORES = (PARAMETER.store, BUFFER.store, MODULE.store)  # in the order in which a name is looked for
# `hook(module, name, value)` of all modules, by kind and by the number of the handle that takes it away again
ON_REGISTRATION: dict[str, OrderedDict[int, Callable[..., Any]]] = {
    kind.store: OrderedDict() for kind in (PARAMETER, MODULE, BUFFER)
}


class ModuleTree:
    """Named parameters, buffers and child modules."""

    training: bool
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]

    def __init__(self) -> None:
        # Not by assignment, which needs these to be there.
        self.__dict__.update(_parameters={}, _buffers={}, _modules={}, _non_persistent_buffers_set=set(), training=True)

    # Attributes -----------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for store in STORES:
            if store in own and name in own[store]:
                return own[store][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        kind = self._kind_for(name, value)
        if kind is None:
            return object.__setattr__(self, name, value)
        if kind.store not in self.__dict__:
            raise AttributeError(f"cannot assign {kind.before_init} before Module.__init__() call")
        elif not fits(kind, value):
            raise TypeError(f"cannot assign '{typename(value)}' as {kind.noun} '{name}' ({kind.expected})")
        elif kind is PARAMETER:
            self._forget(name, PARAMETER)
            self.register_parameter(name, value)
        elif kind is MODULE:
            self._forget(name, MODULE)
            self._enter(MODULE, name, value)
        else:
            persistent = name not in self._non_persistent_buffers_set
            if isinstance(value, Buffer):
                if name not in self._buffers and name in self.__dict__:
                    raise KeyError(f"attribute '{name}' already exists")
                persistent = value.persistent
            self._forget(name, BUFFER)
            if type(self).register_buffer is ModuleTree.register_buffer:
                self.register_buffer(name, value, persistent)
            elif persistent:  # a class may have its own, which need not know of what does not persist
                self.register_buffer(name, value)
            else:
                self.register_buffer(name, value, persistent)

    def __delattr__(self, name: str) -> None:
        kind = self._kind_for(name)
        if kind is None:
            object.__delattr__(self, name)
        else:
            del getattr(self, kind.store)[name]
            self._non_persistent_buffers_set.discard(name)

    def _kind_for(self, name: str, value: Any = None) -> Kind | None:
        """The first kind that the value is of, or under which the name is filed already."""
        wanted = None if value is None else kind_of(value)
        own = self.__dict__
        for store, kind in KINDS:
            if kind is wanted or store in own and name in own[store]:
                return kind
        return None

    def _forget(self, name: str, kind: Kind) -> None:
        """Takes the name out of every place but that of its new kind."""
        for place in (self.__dict__, self._parameters, self._buffers, self._modules):
            if place is not self.__dict__[kind.store]:
                place.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())  # the children of a Sequential are no attributes

    # Registration ---------------------------------------------------------------------------------------------

    def register_parameter(self, name: str, param: Any) -> None:
        """Files a parameter; `None` reserves the name.

        Errors: KeyError for a name that is taken, empty or dotted; TypeError for what is no Parameter; ValueError for
        one that was computed.
        """
        self._check_name(name, PARAMETER)
        if not fits(PARAMETER, param):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._enter(PARAMETER, name, param)

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Files a tensor which is state but no parameter; one that is not `persistent` stays out of `state_dict()`.

        Errors: KeyError for a name that is taken, empty or dotted; TypeError for what is no tensor.
        """
        self._check_name(name, BUFFER)
        if not fits(BUFFER, tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._enter(BUFFER, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_module(self, name: str, module: Any) -> None:
        """Files a child module; `None` reserves the name.

        Errors: TypeError for what is no module; KeyError for a name that is taken, empty or dotted.
        """
        if not fits(MODULE, module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name(name, MODULE)
        self._enter(MODULE, name, module)

    def add_module(self, name: str, module: Any) -> None:
        """Adds a module, as `register_module` does."""
        self.register_module(name, module)

    def _enter(self, kind: Kind, name: str, value: Any) -> None:
        """Enters a value under its name, or what a hook of all modules makes of it."""
        for hook in ON_REGISTRATION[kind.store].values():
            changed = hook(self, name, value)
            value = value if changed is None else changed
        self.__dict__[kind.store][name] = value

    def _check_name(self, name: Any, kind: Kind) -> None:
        noun = "module" if kind is MODULE else kind.noun
        if kind.store not in self.__dict__:
            raise AttributeError(f"cannot assign {noun} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{noun} name should be a string. Got {typename(name)}")
        if "." in name:
            raise KeyError(f'{noun} name can\'t contain "."' + (f", got: {name}" if kind is MODULE else ""))
        if name == "":
            raise KeyError(f'{noun} name can\'t be empty string ""')
        if name not in self.__dict__[kind.store] and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    # Walks ----------------------------------------------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The child modules with their names; one that has two names comes once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Any]:
        return (module for _, module in self.named_children())

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """This module and all below it, parents first, with their dotted names."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, dotted(prefix, name), remove_duplicate)

    def modules(self) -> Iterator[Any]:
        return (module for _, module in self.named_modules())

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """The parameters with their dotted names; those of this module alone unless `recurse`."""
        return self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """The buffers with their dotted names; those of this module alone unless `recurse`."""
        return self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, member in get_members_fn(module):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield dotted(path, name), member

    # Look-up by dotted name -----------------------------------------------------------------------------------

    def get_submodule(self, target: str) -> Any:
        """The module of that dotted name; this one for the empty name. AttributeError where there is none."""
        module: Any = self
        for name in target.split(".") if target else ():
            module = owned(module, name)
            if not isinstance(module, ModuleTree):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Puts `module` at a dotted name; with `strict`, only where there is a module already.

        Errors: ValueError for an empty name or what is no module; AttributeError where the path does not lead to one.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, ModuleTree):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if (strict or hasattr(parent, name)) and not isinstance(owned(parent, name), ModuleTree):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Any:
        """The parameter of that dotted name. AttributeError where there is none."""
        path, _, name = target.rpartition(".")
        found = owned(self.get_submodule(path), name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Any:
        """The buffer of that dotted name. AttributeError where there is none."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        owned(module, name)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return module._buffers[name]

    def _get_name(self) -> str:
        return type(self).__name__


def kind_of(value: Any) -> Kind | None:
    """The kind that a value is of, whatever the name under which it comes."""
    if isinstance(value, Parameter):
        return PARAMETER
    if isinstance(value, ModuleTree):
        return MODULE
    return BUFFER if isinstance(value, Buffer) else None


def fits(kind: Kind, value: Any) -> bool:
    """Returns whether a value may be filed as this kind. A plain tensor is a buffer where the name says so."""
    if value is None or kind_of(value) is kind:
        return True
    return kind is BUFFER and (isinstance(value, Tensor) or hasattr(value, "__torch_function__"))


def owned(module: Any, name: str) -> Any:
    if not hasattr(module, name):
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    return getattr(module, name)


def dotted(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def typename(value: Any) -> str:
    """Returns the name by which messages call a value: a tensor's legacy type name, else the
    dotted name of a class or function, or of the class.
    """
    if isinstance(value, Tensor):
        place = "" if value.device.type in ("cpu", "meta") else f"{value.device.type}."
        return f"torch.{place}{value.dtype.tensor_name}Tensor"
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None) or type(value).__name__
    return name if module in (None, "builtins") else f"{module}.{name}"
