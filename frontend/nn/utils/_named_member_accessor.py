"""NamedMemberAccessor: a module's tensors by dotted name, read, set, and swapped for others.

    former = swap_tensor(layer, "weight", other)

Where `func.functional_call` is for the time of a call, this is for as long as the caller wants.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from redispatch.dispatch.tensor import Tensor

from ..module import Module

__all__ = ["NamedMemberAccessor", "set_tensor", "swap_submodule", "swap_tensor"]

_MISSING: Any = object()  # what stands for no tensor, where one is taken away


def set_tensor(module: Any, name: str, tensor: Any) -> None:
    """Puts a tensor where a parameter or buffer of this name is, of whatever class it is; else sets the attribute."""
    _check(module, name, "tensor", tensor)
    table = _table(module, name)
    if table is None:
        setattr(module, name, tensor)
    else:
        table[name] = tensor


def swap_tensor(module: Any, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Does as `set_tensor`, and returns what was there; AttributeError where nothing was, unless that is allowed."""
    _check(module, name, "tensor", None if tensor is _MISSING else tensor)
    table = _table(module, name)
    former = getattr(module, name, _MISSING) if table is None else table[name]
    if former is _MISSING and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if former is not _MISSING and former is not None and not isinstance(former, Tensor):
        raise TypeError(f"attribute `{name}`: {former} is not an instance of torch.Tensor")
    if tensor is not _MISSING:
        set_tensor(module, name, tensor)
    elif former is not _MISSING:
        delattr(module, name)
    return former


def swap_submodule(module: Any, name: str, submodule: Any) -> Any:
    """Puts a module where a child of this name is, and returns the child. KeyError where there is none."""
    _check(module, name, "submodule", None)
    if not isinstance(submodule, Module):
        raise TypeError(f"{submodule} is not an instance of torch.nn.Module")
    if name not in module._modules:
        raise KeyError(f"submodule {name} does not exist")
    former = module._modules[name]
    if not isinstance(former, Module):
        raise TypeError(f"{name} attribute is not an instance of torch.nn.Module")
    module._modules[name] = submodule
    return former


def _check(module: Any, name: str, noun: str, tensor: Any) -> None:
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if tensor is not None and not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if "." in name:
        raise KeyError(f'{noun} name can\'t contain "."')
    if name == "":
        raise KeyError(f'{noun} name can\'t be empty string ""')


def _table(module: Any, name: str) -> Any:
    """Returns where the module files this name: its parameters, its buffers, or None."""
    return next((table for table in (module._parameters, module._buffers) if name in table), None)


class NamedMemberAccessor:
    """A module, whose tensors and modules are told by dotted names; it looks up each inner module once."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.memo: dict[str, Any] = {}

    def get_submodule(self, name: str) -> Any:
        """Returns the module of that name. AttributeError where there is nothing, TypeError where it is no module."""
        if not name:
            return self.module
        if name not in self.memo:
            found = self._read(name)
            if not isinstance(found, Module):
                raise TypeError(f"submodule `{name}`: {found} is not an instance of torch.nn.Module")
            self.memo[name] = found
        return self.memo[name]

    def _owner(self, name: str) -> tuple[Any, str]:
        """Returns the module that has what is of this name, and the name there."""
        prefix, _, own = name.rpartition(".")
        return self.get_submodule(prefix), own

    def _read(self, name: str, shown: str | None = None) -> Any:
        owner, own = self._owner(name)
        try:
            return getattr(owner, own)
        except AttributeError as problem:
            raise AttributeError(f"{owner._get_name()} has no attribute `{shown or own}`") from problem

    def swap_submodule(self, path: str, value: Any) -> Any:
        owner, own = self._owner(path)
        return swap_submodule(owner, own, value)

    def get_tensor(self, name: str) -> Any:
        """Returns the tensor of that name, or None. AttributeError where there is nothing, TypeError for no tensor."""
        found = self._read(name, name)
        if found is not None and not isinstance(found, Tensor):
            raise TypeError(f"{found} is not an instance of torch.Tensor")
        return found

    def set_tensor(self, name: str, value: Any) -> None:
        owner, own = self._owner(name)
        set_tensor(owner, own, value)

    def del_tensor(self, name: str) -> None:
        self._read(name, name)
        owner, own = self._owner(name)
        delattr(owner, own)

    def swap_tensor(self, name: str, value: Any, allow_missing: bool = False) -> Any:
        owner, own = self._owner(name)
        return swap_tensor(owner, own, value, allow_missing=allow_missing)

    def get_tensors(self, names: Iterable[str]) -> list[Any]:
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names: Iterable[str], values: Iterable[Any]) -> None:
        for name, value in _pairs(names, values):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors: dict[str, Any]) -> None:
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def del_tensors(self, names: Iterable[str]) -> None:
        for name in names:
            self.del_tensor(name)

    def swap_tensors(self, names: Iterable[str], values: Iterable[Any], allow_missing: bool = False) -> list[Any]:
        return [self.swap_tensor(name, value, allow_missing) for name, value in _pairs(names, values)]

    def swap_tensors_dict(
        self, named_tensors: dict[str, Any], allow_missing: bool = False
    ) -> tuple[dict[str, Any], list[str]]:
        """Swaps all or none, and returns what was there and the names of which nothing was.

        Errors: RuntimeError for missing names, unless they are allowed.
        """
        former: dict[str, Any] = {}
        try:
            for name, tensor in named_tensors.items():
                former[name] = self.swap_tensor(name, tensor, allow_missing=True)
            missing = [name for name, tensor in former.items() if tensor is _MISSING]
            if missing and not allow_missing:
                raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        except Exception:
            for name, tensor in former.items():
                self.swap_tensor(name, tensor, allow_missing=True)
            raise
        return former, missing

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """Returns the names of tensors that are not among `keys`, and the keys that are none of them."""
        given, known = set(keys), {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(known - given), sorted(given - known)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Any]]:
        return self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Any]]:
        return self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Any]]:
        """Yields the parameters, then the buffers."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Any]]:
        return self.module.named_modules(remove_duplicate=remove_duplicate)


def _pairs(names: Iterable[str], values: Iterable[Any]) -> list[tuple[str, Any]]:
    names, values = list(names), list(values)
    if len(names) != len(values):
        raise AssertionError(
            f"names and values must have the same length, got {len(names)} names and {len(values)} values"
        )
    return list(zip(names, values, strict=True))
