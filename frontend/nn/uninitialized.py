"""UninitializedParameter and UninitializedBuffer: tensors whose shape is not known yet. Read next: lazy.py.

They have a dtype and a device and can be moved and converted; anything else is an error. `materialize(shape)` makes
them what they stand for.
"""

from __future__ import annotations

from typing import Any

from redispatch.autograd import no_grad
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.ops import creation

from .parameter import Parameter


class UninitializedTensorMixin:
    """What both share."""

    cls_to_become: type
    _allowed = frozenset(
        "__hash__ size copy_ is_complex is_floating_point half float double char short int long cuda cpu to get_device "
        "detach requires_grad_ __get__ __set__".split()
    )

    def materialize(self: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Gives it this shape, and values that are undefined."""
        with no_grad():
            device, dtype = device or self.data.device, dtype or self.data.dtype
            self.data = creation.empty(shape, device=device, dtype=dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    __str__ = __repr__

    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]

    def __reduce_ex__(self: Any, protocol: Any) -> tuple[Any, ...]:
        return type(self), (self.requires_grad,)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in cls._allowed:
            return Tensor.__torch_function__.__func__(cls, func, types, args, kwargs or {})  # type: ignore[attr-defined]  # an attribute that mypy does not see
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a "
            f"`LazyModule` or explicitly manipulating `torch.nn.parameter.{cls.__name__}` objects. When using "
            "LazyModules Call `forward` with a dummy batch to initialize the parameters before calling torch functions"
        )


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]  # the mixin's come first
    """A Parameter that has no shape yet."""

    __slots__ = ()
    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        return Tensor._make_subclass(cls, creation.empty(0, device=device, dtype=dtype), requires_grad)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer that has no shape yet."""

    __slots__ = ()
    cls_to_become = Tensor

    def __new__(cls, requires_grad: bool = False, device: Any = None, dtype: Any = None) -> Any:
        return Tensor._make_subclass(cls, creation.empty(0, device=device, dtype=dtype), requires_grad)


def is_lazy(param: Any) -> bool:
    """Whether it has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)
