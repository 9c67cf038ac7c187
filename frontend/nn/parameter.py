"""Parameter and Buffer: tensors that a module recognises when they are assigned to its attributes.

A Parameter is a leaf of class Parameter over the memory that it was given. Where that tensor is of a class of its own
(a wrapper, say), the class must stay, or its behaviour would be lost; then the tensor is flagged instead, and
`isinstance(tensor, Parameter)` looks at the flag. A Buffer is always a flagged tensor.

Those without a shape yet, `UninitializedParameter` and `UninitializedBuffer`, have a dtype and a device and can be
moved and converted. Anything else is an error until `materialize(shape)` makes them what they stand for.

When `Module.to` and its kin convert, a parameter stays the same object, which optimizers hold, and gets other data:
`parameter.data = converted`. Where that cannot be, between data and no data, there is a new parameter. The data of a
wrapper subclass is elsewhere, so it changes places with the converted one (dispatch/tensor/copies.py).
`redispatch.__future__` can ask for either. Read next: tree.py, which files them.
"""

from collections.abc import Callable, Mapping
from typing import Any

from redispatch.autograd import no_grad
from redispatch.dispatch import TensorMeta, _disabled_torch_function_impl
from redispatch.dispatch.layers.python import has_handler
from redispatch.dispatch.tensor import (
    SET_REQUIRES_GRAD,
    Tensor,
    empty,
    get_default_dtype,
    preserve_format,
    shell,
    swap_tensors,
)
from redispatch.dispatch.tensor.functional import is_functional
from redispatch.kernels.ops import creation

from .. import _future


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
    Errors: RuntimeError for a dtype that cannot require grad, unless `requires_grad` is False.
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
            parameter = shell(cls, data)
            if requires_grad:
                SET_REQUIRES_GRAD()(parameter, True)
            return parameter
        flagged = data.detach()
        if type(flagged) is not type(data):  # by a handler that unwraps: an alias is made without asking it
            flagged = shell(type(data), data)
            flagged.__dict__.update(data.__dict__)
        flagged.requires_grad_(requires_grad)
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


# --- without a shape yet ---------------------------------------------------------------------------------------------


class UninitializedTensorMixin:
    """The common part of uninitialized parameters and buffers."""

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
            return Tensor.__torch_function__.__func__(cls, func, types, args, kwargs or {})  # type: ignore[attr-defined]  # of a classmethod
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
    """Returns whether it has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)


# --- converted ones --------------------------------------------------------------------------------------------------


def converted(parameter: Any, fn: Callable[[Any], Any], name: str) -> Any:
    """The parameter, its data and gradient changed by `fn`; a new one where it cannot take the new data over.

    Errors: RuntimeError, with `name`, where it cannot change places with the new one; it keeps data and gradient.
    """
    gradient = parameter.grad
    with no_grad():
        data = fn(parameter)
    if _future.get_swap_module_params_on_conversion() or is_wrapper(parameter) or is_wrapper(data):
        swapped(parameter, Parameter(data, parameter.requires_grad), name)
        swap = True
    elif can_take_over(parameter, data):
        parameter.data = data
        swap = False
    else:
        parameter, swap = Parameter(data, parameter.requires_grad), False
    if gradient is not None:
        parameter.grad = None
        with no_grad():
            changed = fn(gradient).requires_grad_(gradient.requires_grad)
        if swap:
            swap_tensors(gradient, changed)
        elif can_take_over(gradient, changed):
            gradient.data = changed
        else:
            gradient = changed
        parameter.grad = gradient
    return parameter


def swap_in(tensor: Any, given: Any, assign: bool) -> None:
    """`load_state_dict` for one tensor, by swapping. RuntimeError where `module_load` makes no tensor of its own."""
    loaded = tensor.module_load(given, assign=assign)
    if loaded is given or loaded is tensor:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning one of the inputs in "
            "module_load"
        )
    if isinstance(tensor, Parameter):
        wanted = tensor.requires_grad
        loaded = loaded.requires_grad_(wanted) if isinstance(loaded, Parameter) else Parameter(loaded, wanted)
    swap_tensors(tensor, loaded)


def swapped(tensor: Any, other: Any, name: str) -> None:
    """`tensor` becomes `other`. RuntimeError, with the parameter's name, where it cannot."""
    gradient = tensor.grad
    if gradient is not None:
        tensor.grad = None
    try:
        swap_tensors(tensor, other)
    except Exception as error:
        tensor.grad = gradient
        raise RuntimeError(f"_apply(): Couldn't swap {name}") from error


def is_wrapper(tensor: Any) -> bool:
    """Returns whether operators on the tensor go to its class: it then may have its data elsewhere."""
    return has_handler(type(tensor))


def can_take_over(tensor: Any, value: Any) -> bool:
    """Returns whether `tensor.data = value` works, and is wanted: not between data and no data, or lazy tensors."""
    alike = tensor.is_meta == value.is_meta and is_functional(tensor) == is_functional(value)
    return alike and not _future.get_overwrite_module_params_on_conversion()


# --- options of factories --------------------------------------------------------------------------------------------

FACTORY_OPTIONS = {"device", "dtype", "memory_format"}


def factory_kwargs(kwargs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the options for a factory: device, dtype and memory_format, and those in a dictionary `factory_kwargs`.

    A layer hands them on: `nn.Parameter(redispatch.empty(size, **nn.factory_kwargs(kwargs)))`.
    Errors: TypeError for other options, and for one that is given both ways.
    """
    if kwargs is None:
        return {}
    unknown = kwargs.keys() - FACTORY_OPTIONS - {"factory_kwargs"}
    if unknown:
        raise TypeError(f"unexpected kwargs {unknown}")
    found = dict(kwargs.get("factory_kwargs", {}))
    for name in FACTORY_OPTIONS & kwargs.keys():
        if name in found:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        found[name] = kwargs[name]
    return found


def empty_parameters(module: Any, device: Any, dtype: Any, **shapes: Any) -> None:
    """Registers parameters of these shapes, without values, and None for those whose shape is None."""
    for name, shape in shapes.items():
        values = None if shape is None else Parameter(creation.empty(shape, device=device, dtype=dtype))
        module.register_parameter(name, values)
