"""Parameters that are computed: `register_parametrization(layer, "weight", Symmetric())` makes `layer.weight` what the
module `Symmetric` makes of a parameter of its own, `layer.parametrizations.weight.original`.

The layer gets a class of its own, a subclass of the one it had, in which `weight` is a property. Several
parametrizations of one name run one after the other; `right_inverse`, if they have it, finds what they make a given
value of. Read next: parametrizations.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from typing import Any

from redispatch.autograd import no_grad
from redispatch.dispatch.tensor import Tensor

from ..containers import ModuleDict, ModuleList
from ..module import Module
from ..parameter import Parameter

# What was computed within `cached()`: (module, name) -> value. None outside of it.
CACHE: ContextVar[dict[tuple[int, str], Any] | None] = ContextVar("parametrized values", default=None)


@contextmanager
def cached() -> Iterator[None]:
    """Within, each value is computed once."""
    if CACHE.get() is not None:
        yield
        return
    token = CACHE.set({})
    try:
        yield
    finally:
        CACHE.reset(token)


class ParametrizationList(ModuleList):
    """The parametrizations of one name, and what they start from: `original`, or `original0`, `original1`, ...

    Errors: ValueError for none, and, unless `unsafe`, where they change the shape or dtype.
    """

    original: Any

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            first = self._undone(original)
        self.is_tensor = isinstance(first, Tensor)
        if self.is_tensor:
            look = original.shape, original.dtype
            if not unsafe and first.dtype != original.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {first.dtype}"
                )
            with no_grad():
                original.data = first.data
            self._file("original", original, isinstance(original, Parameter))
        else:
            look = original.shape, original.dtype
            self.ntensors = len(first)
            for number, one in enumerate(first):
                is_parameter = isinstance(original, Parameter)
                value = Parameter(one, original.requires_grad) if is_parameter else one
                self._file(f"original{number}", value, is_parameter)
        if not unsafe:
            made = self()
            if not isinstance(made, Tensor):
                raise ValueError(f"A parametrization must return a tensor. Got {type(made).__name__}.")
            check_look("Registering a parametrization", look, made)

    def _file(self, name: str, value: Any, is_parameter: bool) -> None:
        if is_parameter:
            self.register_parameter(name, value)
        else:
            self.register_buffer(name, value)

    def _undone(self, value: Any) -> Any:
        """Returns the originals of this value, as far as the parametrizations know them."""
        for module in reversed(list(self)):
            if hasattr(module, "right_inverse"):
                try:
                    value = module.right_inverse(value)
                except NotImplementedError:
                    continue
        return value

    def originals(self) -> tuple[Any, ...]:
        """Returns the tensors that the parametrizations start from."""
        names = ["original"] if self.is_tensor else [f"original{number}" for number in range(self.ntensors)]
        return tuple(getattr(self, name) for name in names)

    def right_inverse(self, value: Any) -> None:
        """Sets what they start from, so that they make this value.

        Errors: RuntimeError for one without `right_inverse`; ValueError where that gives another shape or dtype.
        """
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            values = (value,) if self.is_tensor else tuple(value)
            for original, one in zip(self.originals(), values, strict=True):
                if original.dtype != one.dtype:
                    raise ValueError(
                        f"The tensor `parametrization.original` has dtype {original.dtype} and the value {one.dtype}"
                    )
                original.data = one

    def forward(self) -> Any:
        first, *rest = self
        value = first(*self.originals())
        for module in rest:
            value = module(value)
        return value


def check_look(what: str, wanted: tuple[Any, Any], made: Any) -> None:
    """Raises ValueError where the value has another dtype or shape."""
    if made.dtype != wanted[1]:
        raise ValueError(
            f"{what} may not change the dtype of the tensor, unless `unsafe` flag is enabled.\n"
            f"unparametrized dtype: {wanted[1]}\nparametrized dtype: {made.dtype}"
        )
    if made.shape != wanted[0]:
        raise ValueError(
            f"{what} may not change the shape of the tensor, unless `unsafe` flag is enabled.\n"
            f"unparametrized shape: {wanted[0]}\nparametrized shape: {made.shape}"
        )


def register_parametrization(module: Any, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Any:
    """Makes `module.<tensor_name>` what the parametrization makes of it. Returns the module.

    Errors: ValueError for a name that is no parameter or buffer and, unless `unsafe`, where shape or dtype changes.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        before = getattr(module, tensor_name)
        if not unsafe:
            check_look("Registering a parametrization", (before.shape, before.dtype), parametrization(before))
        parametrizations = module.parametrizations[tensor_name]
        parametrizations.append(parametrization)
        parametrizations.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        parametrizations = ParametrizationList([parametrization], original, unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            module.__class__ = parametrized_class(type(module))
            module.parametrizations = ModuleDict()
        setattr(type(module), tensor_name, computed(tensor_name))
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def parametrized_class(kind: type) -> type:
    """A subclass of its own for one module, for its properties."""

    def copy_of(self: Any, memo: dict[int, Any]) -> Any:
        copied = object.__new__(type(self))
        memo[id(self)] = copied
        copied.__dict__.update(deepcopy(self.__dict__, memo))
        return copied

    def cannot_be_pickled(self: Any) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See:\n"
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
            "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    return type(f"Parametrized{kind.__name__}", (kind,), {"__deepcopy__": copy_of, "__getstate__": cannot_be_pickled})


def computed(name: str) -> property:
    """The attribute that is computed when it is read; setting it sets what it is computed from."""

    def read(self: Any) -> Any:
        cache = CACHE.get()
        if cache is None:
            return self.parametrizations[name]()
        key = id(self), name
        if key not in cache:
            cache[key] = self.parametrizations[name]()
        return cache[key]

    def write(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(read, write)


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Returns whether any attribute of the module is computed, or the one of this name."""
    parametrizations = module._modules.get("parametrizations")
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Makes the attribute a parameter or buffer again: of the computed value, or of what it was computed from.

    Errors: ValueError where it is not computed, or is computed from several tensors that it cannot be left as.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    originals = parametrizations.originals()
    original = originals[0]
    if leave_parametrized:
        with no_grad():
            value = getattr(module, tensor_name)
        if not parametrizations.is_tensor:
            original = Parameter(value) if isinstance(original, Parameter) else value
        elif original is not value:
            with no_grad():
                original.data = value
    elif not parametrizations.is_tensor:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    if isinstance(original, Parameter):
        module.register_parameter(tensor_name, original)
    else:
        module.register_buffer(tensor_name, original)
    return module


def type_before_parametrizations(module: Any) -> type:
    """The class that the module had."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Any, to_module: Any, tensor_name: str | None = None) -> Any:
    """Gives another module of the same shapes the parametrizations of one, or of its one name, and the values of what
    they start from. A tensor that it lacks is copied first. Returns it.

    The modules of the parametrizations are in both afterwards, not copied.
    """
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        source = from_module.parametrizations[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for original in ["original"] if source.is_tensor else [f"original{i}" for i in range(source.ntensors)]:
            setattr(target, original, getattr(source, original))
    return to_module
