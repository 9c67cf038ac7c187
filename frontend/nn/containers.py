"""Containers: Sequential, ModuleList, ModuleDict of child modules, ParameterList, ParameterDict of parameters.

Items are named by place or by key. Other values than tensors are kept as they are in a container of parameters.
"""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from redispatch.dispatch.tensor import Tensor

from .module import Module, block, indented
from .parameter import Parameter
from .tree import typename


class Container(Module):
    """A module whose children are given by name. Older programs derive from it; derive from Module."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        warnings.warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in `nn.Module`. Subclass that "
            "instead.",
            FutureWarning,
            stacklevel=2,
        )
        for name, module in kwargs.items():
            self.add_module(name, module)


class _Numbered(Module):
    """Child modules named "0", "1", ...: what Sequential and ModuleList share."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            chosen = list(self._modules.items())[index]
            return self._made_of(chosen)
        return self._modules[self._get_abs_string_index(index)]

    def __setitem__(self, index: int, module: Any) -> None:
        setattr(self, self._get_abs_string_index(index), module)

    def __delitem__(self, index: int | slice) -> None:
        names = list(self._modules)[index] if isinstance(index, slice) else [self._get_abs_string_index(index)]
        for name in names:
            del self._modules[name]
        self._renumber(list(self._modules.values()))

    def append(self, module: Any) -> Self:
        """Adds a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Any) -> None:
        """Puts a module before the one at `index`, counted from the end where negative."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)

    def extend(self, modules: Iterable[Any]) -> Self:
        """Adds several modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"{self._get_name()}.extend should be called with an iterable, but got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, key: int | slice) -> Any:
        """Takes a module out and returns it."""
        taken = self[key]
        del self[key]
        return taken

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def _get_abs_string_index(self, index: Any) -> str:
        index, size = operator.index(index), len(self)
        if not -size <= index < size:
            raise IndexError(f"index {index} is out of range")
        return list(self._modules)[index]

    def _renumber(self, modules: list[Any]) -> None:
        self._modules.clear()
        self._modules.update({str(number): module for number, module in enumerate(modules)})

    def _made_of(self, items: list[tuple[str, Any]]) -> Any:
        """A container of the same class with these items."""
        raise NotImplementedError


class Sequential(_Numbered):
    """Modules that run one after another, each on the result of the one before.

    `Sequential(a, b)`, or `Sequential(OrderedDict(first=a, second=b))` to name them.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            self.extend(args)

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input

    def insert(self, index: int, module: Any) -> Self:  # type: ignore[override]  # PyTorch's returns itself, its list's None
        """Puts a module before the one at `index`.

        Errors: AssertionError for what is no module, IndexError beyond the ends: PyTorch's classes.
        """
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        super().insert(index, module)
        return self

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *_sequential(other))

    def __iadd__(self, other: Sequential) -> Self:
        return self.extend(_sequential(other))

    def __mul__(self, times: int) -> Sequential:
        self._check_times(times)
        return Sequential(*list(self) * times)

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Self:
        self._check_times(times)
        return self.extend(list(self) * (times - 1))

    def _check_times(self, times: Any) -> None:
        if not isinstance(times, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(times)}")
        if times <= 0:
            raise ValueError(f"Non-positive multiplication factor {times} for {type(self)}")

    def _made_of(self, items: list[tuple[str, Any]]) -> Any:
        return type(self)(OrderedDict(items))


def _sequential(other: Any) -> Sequential:
    if not isinstance(other, Sequential):
        raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
    return other


class ModuleList(_Numbered):
    """A list of modules, which the module that holds it knows as its children. What to do with them is its affair."""

    def __init__(self, modules: Iterable[Any] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __iadd__(self, modules: Iterable[Any]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Any]) -> ModuleList:
        return ModuleList([*self, *other])

    def _made_of(self, items: list[tuple[str, Any]]) -> Any:
        return type(self)(module for _, module in items)

    def __repr__(self) -> str:
        """Shows every module, but neighbours that look the same share a line: `(0-5): 6 x Linear(...)`."""
        runs: list[tuple[int, str, int]] = []  # where it starts, how it looks, how many there are
        for number, module in enumerate(self):
            text = repr(module)
            if runs and runs[-1][1] == text:
                start, _, count = runs[-1]
                runs[-1] = start, text, count + 1
            else:
                runs.append((number, text, 1))
        children = [
            f"({start}): {indented(text)}"
            if count == 1
            else f"({start}-{start + count - 1}): {indented(f'{count} x {text}')}"
            for start, text, count in runs
        ]
        return block(self._get_name(), "", children)


class _Dictionary(Module):
    """A dictionary of what the module that holds it knows as its own. A subclass says where its `_entries` are."""

    _entries: dict[str, Any]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __getitem__(self, key: str) -> Any:
        return self._entries[key]

    def __delitem__(self, key: str) -> None:
        del self._entries[key]

    def keys(self) -> Iterable[str]:
        return self._entries.keys()

    def clear(self) -> None:
        for key in list(self):
            del self[key]

    def pop(self, key: str) -> Any:
        """Takes a value out and returns it."""
        value = self[key]
        del self[key]
        return value


class ModuleDict(_Dictionary):
    """A dictionary of modules, which the module that holds it knows as its children."""

    _entries = property(lambda self: self._modules)

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __setitem__(self, key: str, module: Any) -> None:
        self.add_module(key, module)

    def values(self) -> Iterable[Any]:
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        return self._modules.items()

    def update(self, modules: Any) -> None:
        """Adds the modules of a mapping, or of pairs (key, module); a key that is there gets the new module."""
        for key, module in pairs(modules, "ModuleDict", "ModuleDict"):
            self[key] = module


def pairs(given: Any, name: str, called: str) -> list[tuple[str, Any]]:
    """The pairs of a mapping or of an iterable of pairs.

    Errors, in PyTorch's words (`called` is how it names `update`'s class): TypeError for what is not iterable,
    ValueError for an item that is no pair.
    """
    if not isinstance(given, Iterable):
        raise TypeError(
            f"{called}.update should be called with an iterable of key/value pairs, but got {type(given).__name__}"
        )
    if isinstance(given, Mapping) or hasattr(given, "items"):
        return list(given.items())
    found = []
    for place, pair in enumerate(given):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{name} update sequence element #{place} should be Iterable; is{type(pair).__name__}")
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(f"{name} update sequence element #{place} has length {len(pair)}; 2 is required")
        found.append(pair)
    return found


class ParameterList(Module):
    """A list of parameters, which the module that holds it knows as its own."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[index] for index in range(len(self))])

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(self[place] for place in range(*index.indices(len(self))))
        return getattr(self, self._get_abs_string_index(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._get_abs_string_index(index), as_parameter(value))

    def append(self, value: Any) -> Self:
        """Adds a value at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Adds several values at the end. TypeError for a single tensor, which would fall apart into its rows."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    __iadd__ = extend

    def _get_abs_string_index(self, index: Any) -> str:
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range")
        return str(index % len(self))

    def extra_repr(self) -> str:
        return lines(((str(place), value) for place, value in enumerate(self)), lambda value: str(value.dtype))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(_Dictionary):
    """A dictionary of parameters, which the module that holds it knows as its own."""

    _entries = property(lambda self: self._keys)

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}  # in their order: parameters and other values are not filed in one place
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, _checked(key))

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, _checked(key), as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        delattr(self, key)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def values(self) -> Iterable[Any]:
        return [self[key] for key in self._keys]

    def items(self) -> Iterable[tuple[str, Any]]:
        return [(key, self[key]) for key in self._keys]

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value under `key`, which is set to `default` where there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def popitem(self) -> tuple[str, Any]:
        """Takes the last pair out and returns it."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def copy(self) -> ParameterDict:
        """Another dictionary of the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        return ParameterDict((key, default) for key in keys)

    def update(self, parameters: Any) -> None:
        """Adds the values of a mapping, or of pairs (key, value). A plain mapping's come in the order of their keys."""
        given = pairs(parameters, "ParameterDict", "ParametersDict")
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            given.sort(key=operator.itemgetter(0))
        for key, value in given:
            self[key] = value

    def __or__(self, other: ParameterDict) -> ParameterDict:
        union = self.copy()
        union.update(other)
        return union

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        return lines(self.items(), typename)

    def __call__(self, input: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")


def as_parameter(value: Any) -> Any:
    """A plain tensor as a Parameter; anything else as it is."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def lines(items: Iterable[tuple[str, Any]], describe: Any) -> str:
    """A line for each item: `  (0): Parameter containing: [torch.float32 of size 2x3]`."""
    found = []
    for name, value in items:
        if isinstance(value, Tensor):
            kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
            place = f" ({value.device})" if value.device.type == "cuda" else ""
            size = "x".join(map(str, value.shape))
            found.append(f"  ({name}): {kind} containing: [{describe(value)} of size {size}{place}]")
        else:
            found.append(f"  ({name}): Object of type: {type(value).__name__}")
    return "\n".join(found)


def _checked(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(
            "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
            f"'{type(key).__name__}'): give each parameter a name."
        )
    return key
