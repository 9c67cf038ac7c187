"""Parameter and Buffer: tensors that a module recognises when they are assigned to its attributes.

A Parameter is a leaf of class Parameter over the memory that it was given. Where that tensor is of a class of its own
(a wrapper, say), the class must stay, or its behaviour would be lost; then the tensor is flagged instead, and
`isinstance(tensor, Parameter)` looks at the flag. A Buffer is always a flagged tensor.

Read next: tree.py, which files them.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import TensorMeta, _disabled_torch_function_impl
from redispatch.dispatch.tensor import Tensor, empty, get_default_dtype, preserve_format


class _Flagged(TensorMeta):
    """A class whose instances are its own, and all tensors that carry its flag."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        # In the class itself only: a flagged tensor is a Parameter, not an instance of every subclass of Parameter.
        flag = cls.__dict__.get("_flag")
        return flag is not None and isinstance(instance, Tensor) and bool(getattr(instance, flag, False))


class Parameter(Tensor, metaclass=_Flagged):
    """A leaf over the memory of `data` that modules list as a parameter and optimizers update.

    Shapes and dtypes: those of `data`; an empty float tensor where there is none.
    Errors: RuntimeError for a dtype that cannot require grad, unless `requires_grad` is False; RuntimeError where
    `data` is of a subclass whose `detach()` gives another class.
    """

    __slots__ = ()
    # A parameter takes part in calls as a plain tensor does.
    __torch_function__ = _disabled_torch_function_impl  # type: ignore[assignment]  # not a method: called as a function
    _flag = "_is_param"
    _is_param = True
    _prints_as_tensor = True  # of this very class; a subclass shows its own name

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if data is None:
            data = empty((0,), get_default_dtype())
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        flagged = data.detach().requires_grad_(requires_grad)
        if type(flagged) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns "
                f"an instance of the same type, but return type {type(flagged).__name__} was found instead. To use the "
                "type as a Parameter, please correct the detach() semantics defined by its __torch_dispatch__() "
                "implementation."
            )
        flagged._is_param = True
        return flagged

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            copied = self.data.clone(memory_format=preserve_format)
            memo[id(self)] = type(self)(copied, self.requires_grad)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return rebuild_parameter, (type(self), self.data, self.requires_grad, self.__dict__)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return "Parameter containing:\n" + super().__repr__(tensor_contents=tensor_contents)

    __str__ = __repr__


def rebuild_parameter(cls: type, data: Tensor, requires_grad: bool, attributes: dict[str, Any]) -> Any:
    """An unpickled parameter, with the attributes that were hung on it."""
    parameter = Tensor._make_subclass(cls, data, requires_grad)
    parameter.__dict__.update(attributes)
    return parameter


class Buffer(Tensor, metaclass=_Flagged):
    """A tensor over the memory of `data` that modules list as a buffer: state that is saved and moved but not trained.

    The result keeps the class of `data`. A buffer that is not `persistent` stays out of `state_dict()`.
    """

    __slots__ = ()
    __torch_function__ = _disabled_torch_function_impl  # type: ignore[assignment]  # another type on purpose
    persistent: bool
    _flag = "_is_buffer"

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = empty((0,), get_default_dtype())
        flagged = data.detach().requires_grad_(data.requires_grad)
        flagged.persistent = persistent
        flagged._is_buffer = True
        return flagged
