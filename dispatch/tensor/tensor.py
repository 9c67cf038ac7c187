"""Tensor: a window onto a storage, with a keyset. What needs no operator is here; the rest is attached by the room
`ops`.

A tensor is a storage with shape, strides and offset (both counted in elements), a dtype and a device; the keyset that
it brings to the dispatcher; a version counter shared with its views; and, where there is something to remember, a
record for autograd and one that says what it is a view of (metadata.py).

Every public method and property can be overridden by `__torch_function__` and function modes: `@overridable` asks. It
costs a plain tensor outside such a mode one comparison.

Read next: factory.py (how tensors come to be), dtypes.py, subclass.py.
"""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np

from redispatch.dispatch import (
    LAZY_BITS,
    STATE,
    VALUE_CLASSES,
    OfPython,
    Slot,
    TensorBase,
    TensorMeta,
    _disabled_torch_function_impl,
    ask,
    asked_once,
    asks,
    call_overridden,
    handle_torch_function,
    of_builtin_method,
    overridden,
    within,
)
from redispatch.dispatch.core.state import PLAIN_TENSORS, State
from redispatch.dispatch.inspection.origins import telling_origin
from redispatch.dispatch.layers.lazy_bit import CONJUGATE, NEGATIVE, ZERO_TENSOR
from redispatch.dispatch.layers.python import has_handler
from redispatch.dispatch.protocols.override import DEFAULT_HANDLER, PLAIN_TYPES

from .devices import CPU, KINDS, device, device_keyset
from .dtypes import IN_NUMPY, QUANTIZED, Bare, dtype, get_default_dtype
from .geometry import check_view, is_channels_last, is_contiguous, last_element
from .layouts import channels_last, channels_last_3d, contiguous_format, layout, strided
from .metadata import (
    CURRENT_GRAD_FN,
    EPOCH,
    SET_REQUIRES_GRAD,
    AutogradRecord,
    Metadata,
    Size,
    ViewRecord,
    no_dimension,
)
from .operand import TARGET, Operand
from .printing import format_tensor, tensor_html
from .quantizer import codes_in
from .routes import routed
from .storage import ALONE, UntypedStorage

get_state = STATE.get  # every method and property asks, and a name is found faster than an attribute

VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS  # flags of code

# (class, args, kwargs) -> a tensor: the legacy constructor `Tensor(2, 3)`, `Tensor([1., 2.])`
CONSTRUCT: Slot[Callable[..., Any]] = Slot("how Tensor(...) makes a tensor")


def overridable(function: Callable[..., Any], asked: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A method of Tensor which subclasses and function modes may override.

    asked: how they see the call (dispatch/protocols/override.py); if not said, as that of a method which PyTorch has
    in C++.
    """
    method: Any
    long_way = routed(function)
    code: Any = getattr(function, "__wrapped__", function).__code__
    alone = code.co_argcount == 1 and not code.co_kwonlyargcount and not code.co_flags & VARIADIC
    asked = asked or (of_builtin_method if alone else call_overridden)
    if alone:  # as most: this way is shorter

        def method(self: Any) -> Any:
            kind = type(self)
            state = get_state()
            if (kind is Tensor or id(kind) in state.plain) and not state.keys.by_mode:
                return function(self)
            return asked(method, (self,), {}) if overridden((self,), {}) else long_way(self)

    else:

        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            if type(self) is Tensor and not kwargs and not get_state().keys.by_mode:
                if not args:
                    return function(self)
                if len(args) == 1 and type(args[0]) in PLAIN_TYPES:
                    return function(self, *args)
            if overridden((self, *args), kwargs):
                return asked(method, (self, *args), kwargs)
            return long_way(self, *args, **kwargs)

    method = functools.wraps(function)(method)
    method.__module__ = "torch"
    return asks(method, f"torch.Tensor.{function.__name__}")


def overridable_in_python(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a method overridable that PyTorch has in Python; of the classes, the tensor's own is asked."""
    return overridable(function, OfPython(function, alone=True))


def overridable_builtin(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a method overridable that PyTorch has in C++ and that asks the tensor's class alone, even a plain one."""
    return overridable(function, of_builtin_method)


def another(method: Any, name: str, decorate: Callable[..., Any] = overridable) -> Any:
    """A method which does the same under a name of its own, so that a handler sees by which it was called."""
    body = method.__wrapped__

    def named(*args: Any, **kwargs: Any) -> Any:
        return body(*args, **kwargs)

    functools.update_wrapper(named, body)  # with the parameters of `body`, by which `overridable` goes
    named.__name__, named.__qualname__ = name, f"Tensor.{name}"
    return decorate(named)


def run_function(func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
    """The function as usual, without asking the classes of its arguments."""
    with within(STATE.get().without_subclasses()):
        return func(*args, **(kwargs or {}))


class overridable_property(property):
    """A property of Tensor which subclasses and function modes may override: they see `Tensor.name.__get__`."""

    def __init__(
        self,
        read: Callable[[Any], Any],
        write: Callable[[Any, Any], None] | None = None,
        remove: Callable[[Any], None] | None = None,
    ) -> None:
        long_way = routed(read)

        def get(owner: Any) -> Any:
            kind = type(owner)
            state = get_state()
            if (kind is Tensor or id(kind) in state.plain) and not state.keys.by_mode:
                return read(owner)
            if overridden((owner,), {}):
                return ask(self.__get__, (owner,), (owner,), None)
            return long_way(owner)

        def set_(owner: Any, value: Any) -> None:
            if overridden((owner, value), {}):
                ask(self.__set__, (owner,), (owner, value), None)
            else:
                assert write is not None
                write(owner, value)

        super().__init__(functools.wraps(read)(get), write and functools.wraps(write)(set_), remove or not_removed)

    def __getattr__(self, name: str) -> Any:
        """Gives its `__qualname__`, as PyTorch's properties in C++ have one: `TensorBase.shape`."""
        if name == "__qualname__":
            for known, value in vars(Tensor).items():
                if value is self and not known.startswith("__"):
                    return f"TensorBase.{known}"
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def not_removed(owner: Any) -> None:
    """RuntimeError: a tensor has all its properties."""
    raise RuntimeError("Deletion of a tensor's property is not allowed!")


class Tensor(TensorBase, metaclass=TensorMeta):
    """An n-dimensional array of one dtype on one device. Make one by `tensor`, `ones`, `empty`, `from_numpy`, ..."""

    __module__ = "redispatch"  # where users, and pickle, find it

    __slots__ = (
        "_store",  # the storage, or None as long as nobody has asked for it: see _storage
        "_array",  # the storage's flat array of this dtype: what kernels get; None without data
        "_shape",
        "_stride",
        "_offset",
        "_dtype",
        "_device",
        "_view",
        "_interned",  # shape, stride, dtype and device as one object, or None: see metadata.py
        "__dict__",
        "__weakref__",
    )
    _store: UntypedStorage | None
    _array: np.ndarray | None
    _shape: Size
    _stride: tuple[int, ...]
    _offset: int
    _dtype: dtype
    _device: device
    _view: ViewRecord | None
    _interned: Metadata | None
    _autograd: AutogradRecord | None
    _routes: frozenset[str] = frozenset()  # what the class's handler is asked about: routes.py
    _layout: layout = strided  # another one is the face of a wrapper, no more

    if TYPE_CHECKING:
        # Most methods are operators: the room `ops` attaches them, and Python's own operators, from their schemas.
        _operator: Any = None
        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _operator
        __floordiv__ = __mod__ = __pow__ = __rpow__ = __matmul__ = __neg__ = __abs__ = __invert__ = _operator
        __lshift__ = __rshift__ = _operator
        __and__ = __or__ = __xor__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _operator
        __getitem__ = __setitem__ = _operator
        _make_subclass: Any  # attached by subclass.py
        _make_wrapper_subclass: Any

        def __getattr__(self, name: str) -> Any: ...

    _tangent: Any = None  # in forward mode: see dispatch/autograd/jvp_level.py
    __array_priority__ = 1000  # numpy leaves `ndarray + tensor` to us
    _is_param = False
    _quantizer: Any = None  # what the codes of a quantised tensor mean: quantizer.py

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return CONSTRUCT()(cls, *args, **kwargs)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Everything is done by `__new__`; subclasses take what arguments they like."""

    def __init_subclass__(cls, **options: Any) -> None:
        """A class with a `__torch_dispatch__` takes its calls there, and none at the default `__torch_function__`."""
        super().__init_subclass__(**options)
        inherited = getattr(cls.__torch_function__, "__func__", None)
        if has_handler(cls) and inherited is Tensor.__torch_function__.__func__:  # type: ignore[attr-defined]  # an attribute that mypy does not see
            cls.__torch_function__ = staticmethod(_disabled_torch_function_impl)  # type: ignore[method-assign]  # wrapped on purpose

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The default for subclasses: runs the function as usual and hands out its tensors as this class."""
        for kind in types:
            if not issubclass(cls, kind):
                return NotImplemented
        if cls is Tensor:  # no function of ours asks it; another library's does, and must not be asked back for ever
            return asked_once(cls, run_function, func, types, args, kwargs)
        state = STATE.get()
        token = STATE.set(state.memo.get("without subclasses") or state.without_subclasses())
        try:
            result = func(*args, **kwargs) if kwargs else func(*args)
            return result if func in nowrap_functions() else converted(result, cls)
        finally:
            STATE.reset(token)

    # Note [Storages are made when they are asked for]
    # Most results are read and dropped: a storage object would cost them a third of their time. A fresh tensor holds
    # its array alone; the storage around it comes to be with the first view, resize or question. So two tensors alias
    # only if they hold the same `_store`, which is not None, or the same array: a node that kept its result before
    # there was a storage puts another tensor together around it. Both then find one storage (`shared_storage`).

    @property
    def _storage(self) -> UntypedStorage:
        store = self._store
        return made_storage(self) if store is None else store

    @_storage.setter
    def _storage(self, value: UntypedStorage) -> None:
        self._store = value

    # What kernels see -----------------------------------------------------------------------------------------

    @property
    def _operand(self) -> Operand:
        array: Any = self._array
        if array is None:
            array = None if TARGET.get() is None else self._storage.block  # a device's, for kernels that run there
            if array is None:
                raise no_memory(self)
        return Operand(array, self._dtype.name, self._shape, self._stride, self._offset)

    def _summary(self) -> str:
        """The tensor in error messages and traces: `f32[2, 3]`, its device and whether it requires grad."""
        short = self._dtype.name.replace("float", "f").replace("uint", "u").replace("int", "i").replace("complex", "c")
        text = f"{short}[{', '.join(map(str, self._shape))}]"
        if type(self) is not Tensor:
            text = f"{type(self).__name__}({text})"
        if self._device.type != "cpu":
            text += f" on {self._device}"
        return text

    def _look(self) -> tuple[tuple[str, str], ...]:
        """The facts by which pages show the tensor; asked of what it holds, and so of no handler."""
        facts = {
            "shape": str(tuple(self._shape)),
            "strides": str(tuple(self._stride)),
            "dtype": self._dtype.name,
            "device": str(self._device),
        }
        if self._autograd is not None and self._autograd.requires_grad:
            facts["requires_grad"] = "True"
        return tuple(facts.items())

    # Shape and memory -----------------------------------------------------------------------------------------

    @overridable_property
    def shape(self) -> Size:
        return self._shape

    @overridable
    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one dimension."""
        return self._shape if dim is None else item_of("size", self._shape, dim)

    @overridable
    def stride(self, dim: int | None = None) -> Any:
        """The strides in elements, or that of one dimension."""
        return self._stride if dim is None else item_of("stride", self._stride, dim)

    @overridable
    def storage_offset(self) -> int:
        return self._offset

    @overridable
    def dim(self) -> int:
        return len(self._shape)

    @asks
    def ndimension(self) -> int:
        """`dim()`, which is what handlers see."""
        return self.dim()

    @overridable_property
    def ndim(self) -> int:
        return len(self._shape)

    @overridable
    def numel(self) -> int:
        return self._shape.numel()

    @asks
    def nelement(self) -> int:
        """`numel()`, which is what handlers see."""
        return self.numel()

    @overridable
    def element_size(self) -> int:
        return self._dtype.itemsize

    @overridable_property
    def itemsize(self) -> int:
        return self._dtype.itemsize

    @overridable_property
    def nbytes(self) -> int:
        return self._shape.numel() * self._dtype.itemsize

    @overridable
    def is_contiguous(self, memory_format: Any = contiguous_format) -> bool:
        """Whether the elements lie densely in the order of the memory format."""
        if memory_format in (channels_last, channels_last_3d):
            wanted = 4 if memory_format is channels_last else 5
            return len(self._shape) == wanted and is_channels_last(self._shape, self._stride)
        return is_contiguous(self._shape, self._stride)

    @overridable
    def untyped_storage(self) -> UntypedStorage:
        return self._storage

    @overridable
    def data_ptr(self) -> int:
        """The address of the first element; 0 where there is no memory."""
        if not self._storage.has_data:
            return 0
        start = self._storage.data_ptr()
        return start + self._offset * self._dtype.itemsize if start and self._shape.numel() else 0

    @overridable_property
    def dtype(self) -> dtype:
        return self._dtype

    @overridable_property
    def device(self) -> device:
        return self._device

    @overridable_property
    def layout(self) -> layout:
        return self._layout

    @overridable
    def get_device(self) -> int:
        return -1 if self._device.type == "cpu" else self._device.index or 0

    @overridable
    def is_floating_point(self) -> bool:
        return self._dtype.is_floating_point

    @overridable
    def is_complex(self) -> bool:
        return self._dtype.is_complex

    @overridable
    def is_signed(self) -> bool:
        return self._dtype.is_signed

    @overridable
    def is_inference(self) -> bool:
        """Whether the tensor was made in inference mode and so has neither version nor gradient."""
        return self._counter is None

    @overridable_property
    def is_cpu(self) -> bool:
        return self._device.type == "cpu"

    @overridable_property
    def is_cuda(self) -> bool:
        return self._device.type == "cuda"

    @overridable_property
    def is_meta(self) -> bool:
        return self._device.type == "meta"

    @overridable_property
    def is_sparse(self) -> bool:
        return False

    @overridable_property
    def is_quantized(self) -> bool:
        return bool(self._dtype.bits & QUANTIZED)

    # Note [Lazy bits]
    # What a tensor shows may be the conjugates or the negatives of what lies in its memory, or zeros where there is no
    # memory at all. A key in its keyset says so (dispatch/layers/lazy_bit.py), and no slot of its own: an ordinary
    # tensor is not asked. Whoever reads memory without an operator asks `is_lazy`.

    @overridable
    def is_conj(self) -> bool:
        """Whether the elements are the conjugates of what lies in memory."""
        return self._keyset & CONJUGATE != 0

    @overridable
    def is_neg(self) -> bool:
        """Whether the elements are the negatives of what lies in memory."""
        return self._keyset & NEGATIVE != 0

    @overridable
    def _is_zerotensor(self) -> bool:
        """Whether all elements are zero and take no memory."""
        return self._keyset & ZERO_TENSOR != 0

    # Versions, views, gradients -------------------------------------------------------------------------------

    @overridable_property
    def _version(self) -> int:
        """Counts the writes to the memory through this tensor or one that aliases it."""
        if self._counter is None:
            raise telling_origin(RuntimeError("Inference tensors do not track version counter."), tensor=self)
        return self._counter[0] % EPOCH

    @overridable
    def _is_view(self) -> bool:
        return self._view is not None

    @overridable_property
    def _base(self) -> Any:
        return None if self._view is None else self._view.base

    def _requires_grad(self) -> bool:
        return self._autograd is not None and self._autograd.requires_grad

    def _set_requires_grad(self, value: bool) -> None:
        SET_REQUIRES_GRAD()(self, value, "only Tensors of floating point and complex dtype")

    requires_grad = overridable_property(_requires_grad, _set_requires_grad)

    @overridable_property
    def grad_fn(self) -> Any:
        """The node whose output this tensor is; None for a leaf."""
        return CURRENT_GRAD_FN()(self)

    @overridable_property
    def output_nr(self) -> int:
        return 0 if self._autograd is None else self._autograd.output_nr

    @overridable_property
    def is_leaf(self) -> bool:
        return CURRENT_GRAD_FN()(self) is None

    @overridable_property
    def retains_grad(self) -> bool:
        record = self._autograd
        return record is not None and record.retains_grad is not None

    def _get_grad(self) -> Any:
        record = self._autograd
        if record is None:
            return None
        if record.grad is None and record.grad_fn is not None and record.retains_grad is None:
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute "
                "won't be populated during autograd.backward(). If you indeed want the .grad field to be populated for "
                "a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by "
                "mistake, make sure you access the leaf Tensor instead.",
                stacklevel=3,
            )
        return record.grad

    def _set_grad(self, value: Any) -> None:
        check_grad(self, value)
        if self._autograd is None:
            if value is None:
                return
            self._autograd = AutogradRecord()
        self._autograd.grad = value

    def _del_grad(self) -> None:
        self._set_grad(None)

    grad = overridable_property(_get_grad, _set_grad, _del_grad)
    _grad = overridable_property(_get_grad, _set_grad, _del_grad)

    # numpy and Python -----------------------------------------------------------------------------------------

    @overridable
    def numpy(self, *, force: bool = False) -> np.ndarray:
        """A numpy array over the same memory.

        Errors: RuntimeError where the tensor requires grad and gradients are recorded (unless `force`), and for a
        wrapper subclass; TypeError off the CPU.
        """
        if has_handler(type(self)) and self._array is None:
            raise RuntimeError(".numpy() is not supported for tensor subclasses.")
        if self._requires_grad() and STATE.get().grad_enabled and not force:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if self._device.type != "cpu":
            raise TypeError(
                f"can't convert {self._device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to "
                "host memory first."
            )
        if self._dtype.name not in IN_NUMPY:
            raise TypeError(f"Got unsupported ScalarType {self._dtype.tensor_name}")
        if self._keyset & LAZY_BITS:
            if not force:
                raise lazy_to_numpy(self)
            return self.detach().clone().numpy()
        array = as_numpy(self)
        self._storage._resizable = False
        return array

    @overridable
    def tolist(self) -> Any:
        """The values as nested lists of Python numbers; a number for a tensor without dimensions."""
        if has_handler(type(self)) and self._array is None:
            raise RuntimeError(f".tolist() is not supported for tensor subclasses, got {type(self).__name__}")
        if self._is_zerotensor():
            raise RuntimeError("tolist() shouldn't be called on a tensor with unallocated storage")
        if isinstance(self._dtype, Bare):
            raise RuntimeError("load_scalar: invalid type")
        return shown(self).tolist()

    @overridable_in_python
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        return array if dtype is None and not copy else np.array(array, dtype=dtype, copy=copy)

    @overridable_in_python
    def __dlpack__(
        self, *, stream: Any = -1, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        """A DLPack capsule over the same memory, which a consumer's `stream` may use. BufferError where something would
        be lost: gradients, conjugation; and for other devices than the tensor's, but the CPU."""
        if self._requires_grad():
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        kind = KINDS.get(self._device.type)
        if kind is None or kind.dlpack is None:
            given = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
            return self.numpy().__dlpack__(**{name: value for name, value in given.items() if value is not None})
        if self.is_conj() or self.is_neg():
            raise BufferError("Can't export tensors with the conjugate bit set")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            return self.cpu().__dlpack__(max_version=max_version, dl_device=dl_device)
        return kind.dlpack.export(self.clone() if copy else self, stream, max_version)

    @overridable_in_python
    def __dlpack_device__(self) -> tuple[int, int]:
        kind = KINDS.get(self._device.type)
        if kind is not None and kind.dlpack is not None:
            return kind.dlpack.code, self._device.index or 0
        return as_numpy(self).__dlpack_device__()

    @overridable_in_python
    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of a 0-d tensor")
        return self._shape[0]

    def __iter__(self) -> Iterator[Any]:
        """The slices along the first dimension. Overrides see `dim` and `unbind`, whose results they can convert."""
        if self.dim() == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    @overridable_in_python
    def __reversed__(self) -> Any:
        return self.flip(0) if self._shape else self

    @overridable
    def __bool__(self) -> bool:
        if self._shape.numel() == 0:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
        if self._shape.numel() > 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        if getattr(self, "_bdim", None) is not None:
            raise RuntimeError(
                "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't "
                "support that yet."
            )
        return bool(self.item())

    @overridable
    def __float__(self) -> float:
        return float(self._one_value())

    @overridable
    def __int__(self) -> int:
        return int(self._one_value())

    __nonzero__ = another(
        __bool__, "__nonzero__"
    )  # as Python 2 called them: programs that forward methods by name do so
    __long__ = another(__int__, "__long__")

    @overridable
    def __complex__(self) -> complex:
        return complex(self._one_value())

    def _one_value(self) -> Any:
        if self._shape.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self.item()

    @overridable
    def __index__(self) -> int:
        if self._shape.numel() != 1 or self._dtype.category > 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    @overridable_in_python
    def __format__(self, spec: str) -> str:
        if not self._shape and type(self) is Tensor and self._device.type != "meta":
            return format(self.item(), spec)
        return object.__format__(self, spec)

    def __hash__(self) -> int:
        return id(self)

    @asks
    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        """An override that shows the tensor itself, or hands it to one that does, is not asked again."""
        state = STATE.get()
        if not state.showing and overridden((self,), {}):
            with within(state.replace(showing=True)):
                return handle_torch_function(Tensor.__repr__, (self,), self, tensor_contents=tensor_contents)
        text = describe(self, tensor_contents)
        return f"Parameter({text})" if self._is_param and not prints_as_tensor(type(self)) else text

    def _repr_html_(self) -> str:
        """Returns the tensor for notebooks: its values, shape, strides, dtype, device and dispatch keys."""
        return tensor_html(repr(self), self._look(), self._keyset)

    @overridable_in_python
    def __dir__(self) -> list[str]:
        absent = {"volatile"} if self._device.type == "cuda" else {"volatile", "__cuda_array_interface__"}
        return sorted({*dir(type(self)), *self.__dict__} - absent)


_MAKING = threading.RLock()  # the same thread may come again, from a finalizer

# The storages of arrays that more than one tensor held before there was a storage: id of the array -> storage.
# A node that keeps its result takes the tensor apart (dispatch/autograd/saved.py), and may put another one together
# around it.
_OF_SHARED: weakref.WeakValueDictionary[int, UntypedStorage] = weakref.WeakValueDictionary()


def made_storage(tensor: Tensor) -> UntypedStorage:
    """The storage of a tensor that has had none so far."""
    with _MAKING:  # threads that ask at once must get one storage
        if tensor._store is None:
            if tensor._array is None:
                elements = 1 + last_element(tensor._shape, tensor._stride, tensor._offset)
                tensor._store = UntypedStorage.without_data(elements * tensor._dtype.itemsize, tensor._device)
            elif getrefcount(tensor._array) == ALONE:  # an error here costs time, and no more
                tensor._store = UntypedStorage.of_array(tensor._array)
            else:
                tensor._store = shared_storage(tensor._array)
        return tensor._store


def shared_storage(array: np.ndarray) -> UntypedStorage:
    """The one storage of an array that others hold, too."""
    found = _OF_SHARED.get(id(array))
    if found is None or found._array is not array:  # a storage that was resized has another array now
        found = _OF_SHARED[id(array)] = UntypedStorage.of_array(array)
    return found


VALUE_CLASSES["Tensor"] = Tensor
DEFAULT_HANDLER.append(vars(Tensor)["__torch_function__"].__func__)
PLAIN_TYPES.add(Tensor)  # its own `__torch_function__` is the default for subclasses; a plain tensor overrides nothing


def wrap_dim(dim: int, ndim: int, wrap_scalar: bool = True) -> int:
    """A dimension counted from the front. IndexError where there is none of that number; 0-d counts as 1-d, if it
    may."""
    limit = max(ndim, wrap_scalar)
    if not -limit <= dim < limit:
        raise no_dimension(dim, limit)
    return dim % limit


def item_of(name: str, values: tuple[int, ...], dim: Any) -> int:
    """The size or stride of one dimension, counted from either end.

    Errors: IndexError where there is none of that number; TypeError for what is no int, with the method's name.
    """
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise TypeError(f"{name}(): argument 'dim' (position 1) must be int, not {type(dim).__name__}")
    try:
        return tuple.__getitem__(values, dim)
    except IndexError:
        raise no_dimension(dim, len(values)) from None


def as_numpy(tensor: Tensor) -> np.ndarray:
    """The numpy view of a CPU tensor's memory, in its own dtype: float16 and bfloat16, too, as far as numpy knows
    them; of complex32, which it does not, a copy as complex64."""
    array = tensor._array
    if array is None:
        inside = getattr(tensor, "_value", None)  # of a wrapper that looks as its value does
        if inside is not None and tensor._bdim is None:
            return as_numpy(inside)
        raise no_memory(tensor)
    if not tensor._shape.numel():  # its offset may lie behind the end of the memory, which numpy refuses
        return np.empty(tensor._shape, tensor._dtype.numpy if tensor._dtype.name != "complex32" else np.complex64)
    size = tensor._dtype.itemsize
    if tensor._dtype.name == "complex32":  # which numpy has not: a copy, of pairs of float16
        pairs = np.ndarray(
            (*tensor._shape, 2),
            np.float16,
            array,
            tensor._offset * size,
            (*(step * size for step in tensor._stride), 2),
        )
        return pairs.view(type(array)).astype(np.float32).view(np.complex64)[..., 0]
    # a step that no second element takes may be too large for numpy
    strides = tuple(step * size if step < 2**58 else 0 for step in tensor._stride)
    seen = np.ndarray(tensor._shape, tensor._dtype.numpy, array, tensor._offset * size, strides)
    return seen if TARGET.get() is None else seen.view(type(array))  # which says what may be done with it


def is_elsewhere(tensor: Tensor) -> bool:
    """Whether the elements lie in the memory of a user's device, which the library can read through its allocator."""
    return tensor._store is not None and tensor._store.block is not None


def on_host(tensor: Tensor) -> Tensor:
    """A tensor on the CPU over a copy of the whole storage of one that is elsewhere. Asks no operator."""
    storage = UntypedStorage.of_array(tensor._storage.read().copy())
    host = object.__new__(Tensor)
    for name in ("_shape", "_stride", "_offset", "_dtype"):
        setattr(host, name, getattr(tensor, name))
    host._store, host._device, host._view, host._interned = storage, CPU, None, None
    host._array, host._autograd, host._counter = storage.typed(tensor._dtype), None, [0]
    host._keyset = device_keyset("cpu", bits=tensor._keyset & LAZY_BITS | tensor._dtype.bits)
    return host


def shown(tensor: Tensor) -> np.ndarray:
    """The elements of a tensor as numpy has them, lazy bits worked out. Asks no operator."""
    if tensor._keyset & ZERO_TENSOR:
        return np.zeros(tensor._shape, tensor._dtype.numpy)
    values = as_numpy(on_host(tensor) if is_elsewhere(tensor) else tensor)
    values = values.conj() if tensor._keyset & CONJUGATE else values
    is_negated = tensor._keyset & NEGATIVE and values.dtype != bool  # -1 is True as well
    return -values if is_negated else values


def lazy_to_numpy(tensor: Tensor) -> RuntimeError:
    """Returns the error for numpy's access to memory that does not hold the elements themselves."""
    if tensor._keyset & ZERO_TENSOR:
        return RuntimeError(" Cannot convert a ZeroTensor to numpy. Set force=True if you need the zero array.")
    bit, way = ("conjugate", "conj") if tensor._keyset & CONJUGATE else ("negative", "neg")
    return RuntimeError(
        f"Can't call numpy() on Tensor that has {bit} bit set. Use tensor.resolve_{way}().numpy() instead."
    )


def no_memory(tensor: Tensor) -> Exception:
    """The error for using the memory of a tensor that has none, or whose storage was made too small for it."""
    if hasattr(tensor, "_level"):  # one of many, under vmap
        return RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
    if tensor._device.type == "meta":
        return NotImplementedError("Cannot copy out of meta tensor; no data!")
    if tensor._device.type != "cpu":
        return RuntimeError(
            f"{tensor._summary()}: its memory is that of its device, and a kernel for the CPU was to use it; copy the "
            "tensor by .cpu() before, or give the operator a kernel for the device"
        )
    if tensor._storage.has_data:
        try:
            elements = tensor._storage.nbytes() // tensor._dtype.itemsize
            check_view(tensor._shape, tensor._stride, tensor._offset, elements)
        except RuntimeError as outside:
            return outside
    return RuntimeError("Attempted to access the data pointer on an invalid python storage.")


def describe(tensor: Tensor, contents: str | None = None) -> str:
    """The tensor as PyTorch prints it. Asks no operator, so that it is safe inside any handler."""
    if hasattr(tensor, "_level"):
        return describe_wrapped(tensor)
    suffixes = []
    if tensor._autograd is not None:
        try:
            node = CURRENT_GRAD_FN()(tensor)
        except RuntimeError:  # a view that must not be written was written: printing still works
            suffixes.append("grad_fn=<Invalid>")
        else:
            if node is not None:
                suffixes.append(f"grad_fn=<{type(node).__name__}>")
            elif tensor._autograd.requires_grad:
                suffixes.append("requires_grad=True")
    if tensor._tangent is not None:
        suffixes.append(f"tangent={describe(tensor._tangent)}")
    prefix = "tensor(" if prints_as_tensor(type(tensor)) else f"{type(tensor).__name__}("
    if contents is not None:
        return f"{prefix}{contents}{''.join(', ' + suffix for suffix in suffixes)})"
    has_values = tensor._array is not None or tensor._keyset & ZERO_TENSOR != 0 or is_elsewhere(tensor)
    if tensor._quantizer is not None and contents is None:
        return describe_quantized(tensor, prefix)
    values = shown(tensor) if has_values else None
    if values is not None and tensor._dtype.itemsize == 2 and tensor._dtype.is_floating_point:
        values = values.astype(np.float32)
    return format_tensor(
        values,
        tensor._dtype.name,
        shape=tuple(tensor._shape),
        default_dtype_name=get_default_dtype().name,
        device=None if tensor._device.type == "cpu" and has_values else str(tensor._device),
        suffixes=suffixes,
        prefix=prefix,
    )


def describe_quantized(tensor: Tensor, prefix: str) -> str:
    """The text of a quantised tensor: the numbers that its codes stand for, and what they are read by."""
    quantizer, scheme = tensor._quantizer, tensor._quantizer.scheme
    facts = [f"size={tuple(tensor._shape)}", f"dtype={tensor._dtype}", f"quantization_scheme={scheme}"]
    facts += [f"scale={quantizer.scale}", f"zero_point={quantizer.zero_point}"]
    facts += [] if quantizer.axis is None else [f"axis={quantizer.axis}"]
    values, plain = quantizer.values(codes_in(tensor)), get_default_dtype().name
    return format_tensor(values, plain, default_dtype_name=plain, suffixes=facts, prefix=prefix)


def prints_as_tensor(kind: type) -> bool:
    """Whether a class of tensors is shown as `tensor(...)`, without its own name."""
    return kind is Tensor or bool(kind.__dict__.get("_prints_as_tensor"))


def describe_wrapped(tensor: Any) -> str:
    """A wrapper of a transform: whose it is, and the value in it."""
    number = tensor._level.number if tensor._level.alive or tensor._bdim is not None else -2
    batch = "" if tensor._bdim is None else f"bdim={tensor._bdim}, "
    name = "GradTrackingTensor" if tensor._bdim is None else "BatchedTensor"
    value = "\n".join(f"    {line}" for line in describe(tensor._value).splitlines())
    return f"{name}(lvl={number}, {batch}value=\n{value}\n)"


def check_grad(tensor: Tensor, grad: Any) -> None:
    """Raises where `grad` cannot be the gradient of `tensor`."""
    if grad is None:
        return
    if not isinstance(grad, Tensor):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(grad).__name__}")
    if grad is tensor:
        raise RuntimeError("can't assign Variable as its own grad")
    wanted = getattr(tensor._autograd, "grad_dtype", tensor._dtype)
    if grad._dtype is not wanted and wanted is not None:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{grad._dtype.tensor_name.lower()}' to a tensor with "
            f"grad_dtype '{wanted.tensor_name}'. The gradient must match the tensor's grad_dtype (defaults to the "
            "tensor's dtype). You can set the tensor's grad_dtype attribute with a specific dtype, or None to allow "
            "any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may break "
            "downstream systems that assume they match."
        )
    if grad._device != tensor._device:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{grad._device}' to a tensor with device type "
            f"'{tensor._device}'. Please ensure that the gradient and the tensor are on the same device"
        )
    if grad._shape != tensor._shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(grad._shape)}' to a tensor of size "
            f"'{list(tensor._shape)}'. Please ensure that the gradient and the tensor are the same size"
        )


@functools.cache
def nowrap_functions() -> frozenset[Any]:
    """The functions whose results keep their own class, whatever the class of the argument."""
    return frozenset(getattr(Tensor, name).__get__ for name in ("_base", "grad"))


def references_to_local() -> int:
    local = object()
    return getrefcount(local)


HELD_ONCE = references_to_local()  # measured, since it depends on the interpreter


def ask_default(public: Callable[..., Any], state: State, args: tuple[Any, ...]) -> Any:
    """Calls a function under the default `__torch_function__`; NotImplemented where another class has a say, too."""
    cls: Any = None
    for value in args:
        kind = type(value)
        if kind is cls or kind is Tensor or kind in PLAIN_TYPES or id(kind) in PLAIN_TENSORS:
            continue
        if cls is not None or id(kind) not in state.by_default:
            return NotImplemented
        cls = kind
    token = STATE.set(state.memo.get("without subclasses") or state.without_subclasses())
    try:
        result = public(*args)
        if type(result) is not Tensor:
            return converted(result, cls)
        if result._autograd is None and getrefcount(result) == HELD_ONCE:
            try:
                result.__class__ = cls  # nobody has seen it, no graph holds it: an alias would cost as much as the call
                return result
            except TypeError:
                pass  # the class has slots of its own
        return result.as_subclass(cls)
    finally:
        STATE.reset(token)


def converted(result: Any, cls: type) -> Any:
    """The tensors in a result as `cls`, inside tuples, named tuples and lists, too."""
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, tuple | list):
        items = [converted(item, cls) for item in result]
        if hasattr(result, "_fields"):
            return type(result)(*items)
        return type(result)(items) if type(result) in (tuple, list) else result
    return result
