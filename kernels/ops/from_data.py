"""Tensors made of what Python has already: nested sequences, numpy arrays, buffers, other tensors.

`tensor` copies; `from_numpy`, `from_dlpack` and, where they can, `as_tensor` and `asarray` share the memory. All of
them work below the dispatcher and then say `lift_fresh`, the one operator that modes see: a new tensor appears.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import ARGUMENT_TYPES, ops
from redispatch.dispatch.symbolic import Symbolic
from redispatch.dispatch.tensor import (
    CONSTRUCT,
    CPU,
    FOREIGN,
    SET_REQUIRES_GRAD,
    Size,
    StorageBase,
    Tensor,
    UntypedStorage,
    as_device,
    as_numpy,
    device,
    dtype,
    dtypes,
    empty,
    from_numpy_dtype,
    get_default_dtype,
    overridable_builtin,
    pinned,
    promote_types,
    strided,
    tensor_over,
)
from redispatch.dispatch.tensor.operand import DTYPES as COMPUTED
from redispatch.dispatch.tensor.storage import map_path

from ..declare.overridable import builtin_function, factory_function
from ..declare.structured import c_name
from .creation import empty_op, filled_by, filled_first, integer_range, planned, written

_MAX_DIMS = 128

# --- the public functions --------------------------------------------------------------------------------------------


@factory_function
def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """Returns a tensor with a copy of `data`: nested sequences of numbers, a numpy array or number, a tensor.

    The dtype is that of the data: bool, int64, the default float dtype or its complex counterpart for Python's numbers.

    Errors: ValueError where sequences differ in length or an integer exceeds int64; TypeError or RuntimeError for what
    is no number, RuntimeError for a number that `dtype` cannot hold.

    >>> import redispatch as rd
    >>> rd.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    >>> rd.tensor([1, 2], dtype=rd.float32)
    tensor([1., 2.])
    """
    dtype, device = as_dtype("tensor", dtype), None if device is None else as_device(device)
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=3,
        )
        result = ops.aten._to_copy.default(
            data.detach(),
            dtype=dtype or data._dtype,
            device=device or data._device,
        )
    elif type(data) is not list and is_storage(data):
        element = dtype or get_default_dtype()
        result = lifted(new_memory(storage_of(data, element), element), device)
    else:
        over = over_foreign(data)
        if over is not None:
            result = ops.aten._to_copy.default(over, dtype=dtype or over._dtype, device=device or over._device)
        else:
            try:
                result = lifted(converted_copy(data, dtype), device)
            except Symbols:
                result = of_symbols(data, dtype, device)
    return with_grad(pinned(result, pin_memory), requires_grad)


class Symbols(Exception):
    """There are symbols among numbers, so that they have no place in memory."""


def of_symbols(data: Any, dtype: dtype | None, device: Any) -> Tensor:
    """Returns a tensor of numbers some of which are symbols, by operators, so that a graph computes it."""
    if isinstance(data, list | tuple):
        return ops.aten.stack.default([of_symbols(one, dtype, device) for one in data])
    return ops.aten.full.default([], data, dtype=dtype, device=device)


@factory_function
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Returns `data` as a tensor: itself if it is one of this dtype and device, over a numpy array's memory, or a copy.

    >>> import redispatch as rd
    >>> x = rd.ones(2)
    >>> rd.as_tensor(x) is x
    True
    >>> rd.as_tensor(x, dtype=rd.int64)
    tensor([1, 1])
    """
    dtype, device = as_dtype("as_tensor", dtype), None if device is None else as_device(device)
    if isinstance(data, Tensor):
        if (dtype or data._dtype) is data._dtype and (device or data._device) == data._device:
            return data
        return ops.aten._to_copy.default(data, dtype=dtype or data._dtype, device=device or data._device)
    if isinstance(data, np.ndarray) and dtype in (None, from_numpy_dtype(data.dtype)):
        return lifted(over_array(data), device)
    over = over_foreign(data)
    if over is not None:
        return as_tensor(over, dtype, device)
    return lifted(converted_copy(data, dtype), device)


def over_foreign(data: Any) -> Tensor | None:
    """A tensor over the memory of an object that says by a protocol where it is; None for others."""
    for protocol, importer in FOREIGN.items():
        if isinstance(protocol, str) and hasattr(data, protocol):
            return lifted(importer(data), None)
    return None


@factory_function
def from_numpy(array: np.ndarray) -> Tensor:
    """Returns a tensor over the memory of a numpy array, which stays alive as long as the tensor.

    Errors: TypeError for what is no array or has elements that no dtype stands for, ValueError for negative strides,
    strides that are no multiple of the element size, and a foreign byte order.

    >>> import redispatch as rd
    >>> import numpy as np
    >>> array = np.zeros(3)
    >>> x = rd.from_numpy(array)
    >>> array[0] = 7
    >>> x
    tensor([7., 0., 0.], dtype=torch.float64)
    """
    if not isinstance(array, np.ndarray):
        kind = type(array)
        name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        raise TypeError(f"expected np.ndarray (got {name})")
    return lifted(over_array(array), None)


@factory_function
def from_dlpack(ext_tensor: Any) -> Tensor:
    """Returns a tensor over the memory of any object with `__dlpack__`, or of a capsule. A tensor of ours comes as
    an alias."""
    if isinstance(ext_tensor, Tensor):
        return ext_tensor.detach()
    if type(ext_tensor).__name__ == "PyCapsule":
        return lifted(FOREIGN[0](ext_tensor), None)
    if not hasattr(ext_tensor, "__dlpack__"):
        raise TypeError(f"from_dlpack() expects an object with a __dlpack__ method, not {type(ext_tensor).__name__}")
    code = ext_tensor.__dlpack_device__()[0] if hasattr(ext_tensor, "__dlpack_device__") else None
    if code in FOREIGN:
        return lifted(FOREIGN[code](ext_tensor), None)
    return lifted(over_array(np.from_dlpack(ext_tensor)), None)


@factory_function
def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """Returns a 1-d tensor over an object with the buffer protocol, such as a bytearray, from byte `offset` on."""
    element = as_dtype("frombuffer", dtype)
    try:
        array = np.frombuffer(buffer, element.array, count, offset)
    except ValueError as problem:
        raise ValueError(f"frombuffer(): {problem}") from None
    return with_grad(lifted(over_array(array, element), None), requires_grad)


@factory_function
def from_file(
    filename: Any, shared: bool | None = None, size: int = 0, *, dtype: Any = None, requires_grad: bool = False
) -> Tensor:
    """Returns a 1-d tensor of `size` elements over a file; to a `shared` one it writes, and makes it large enough.

    Errors: RuntimeError for a file that cannot be opened, or is too small.
    """
    element = as_dtype("from_file", dtype) or get_default_dtype()
    return with_grad(
        lifted(new_memory(map_path(filename, shared, size * element.itemsize), element), None), requires_grad
    )


@factory_function
def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """Returns `obj` as a tensor, sharing its memory where possible; `copy` demands a copy (True) or forbids one
    (False).

    `obj` may be a tensor, a numpy array or number, a DLPack object, a buffer, or a sequence of numbers.
    Errors: ValueError where sharing is demanded and impossible.
    """
    dtype, device = as_dtype("asarray", dtype), None if device is None else as_device(device)
    result: Tensor | None = None
    if isinstance(obj, Tensor):
        result = obj
    elif isinstance(obj, np.ndarray):
        result = lifted(over_array(obj), None)
    elif hasattr(obj, "__dlpack__") and not isinstance(obj, np.generic):
        result = from_dlpack(obj)
    elif (over := over_foreign(obj)) is not None:
        result = over
    elif isinstance(obj, bytes | bytearray | memoryview):
        result = frombuffer(obj, dtype=dtype or get_default_dtype())
    if result is None:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return with_grad(lifted(converted_copy(obj, dtype), device), requires_grad)
    wants_other = (dtype or result._dtype) is not result._dtype or (device or result._device) != result._device
    if wants_other:
        if copy is False:
            raise ValueError("can't alias tensor with another dtype or on another device")
        result = ops.aten._to_copy.default(result, dtype=dtype or result._dtype, device=device or result._device)
    elif copy:
        result = result.clone()
    if result.requires_grad is requires_grad:
        return result
    return with_grad(result.detach(), requires_grad)


@overridable_builtin
def new_tensor(self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    """Returns a tensor with a copy of `data`, by default of this tensor's dtype and on its device."""
    return tensor(data, dtype=dtype or self._dtype, device=device or self._device, requires_grad=requires_grad)


Tensor.new_tensor = new_tensor  # type: ignore[attr-defined]  # attached here


def is_tensor(obj: Any) -> bool:
    """Returns whether `obj` is a tensor, of whatever subclass."""
    return isinstance(obj, Tensor)


@builtin_function
def is_floating_point(input: Tensor) -> bool:
    """Returns whether the tensor's elements are floating-point numbers."""
    return input._dtype.is_floating_point


@builtin_function
def is_complex(input: Tensor) -> bool:
    """Returns whether the tensor's elements are complex numbers."""
    return input._dtype.is_complex


@builtin_function
def numel(input: Tensor) -> int:
    """Returns the number of elements."""
    if not isinstance(input, Tensor):
        raise TypeError(f"numel(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return input.numel()


# --- the legacy constructor ------------------------------------------------------------------------------------------


def construct(cls: type, *args: Any, **kwargs: Any) -> Any:
    """`Tensor(2, 3)`: memory of that shape; `Tensor([1., 2.])`: that data; `Tensor(t)`: an alias. Default dtype."""
    result = legacy(get_default_dtype(), CPU, args, kwargs, any_tensor=True)
    return result if cls is Tensor else result.as_subclass(cls)


LEGACY_FORMS = """(*, torch.device device = None)
(torch.Storage storage)
(Tensor other)
(tuple of ints size, *, torch.device device = None)
(object data, *, torch.device device = None)"""


def legacy(element: dtype, on: device, args: Any, kwargs: dict[str, Any], any_tensor: bool = False) -> Any:
    """Makes of arguments what `Tensor(...)`, `FloatTensor(...)` and `x.new(...)` do.

    Errors: TypeError for a tensor that has another dtype or device, unless any is taken.
    """
    given = dict(kwargs)
    kind = as_device(given.pop("device", None) or on).type
    if kind != on.type:
        raise RuntimeError(f"legacy constructor expects device type: {on.type} but device type: {kind} was passed")
    if not args and not given:
        given["size"] = [0]
    elif args and not given and (isinstance(args[0], Size) or is_int(args[0])):
        given["size"] = args if is_int(args[0]) else args[0]
        args = args[1:] if isinstance(args[0], Size) else ()
    elif args:
        given["data"], *args = args
    name: str
    data: Any
    name, data = next(iter(given.items())) if len(given) == 1 and not args else ("", None)
    if name == "size" and is_sequence(data):
        for position, item in enumerate(data):
            if not is_int(item):
                raise TypeError(
                    f"new(): argument 'size' failed to unpack the object at pos {position + 1} with error "
                    f'"type must be tuple of ints,but got {type(item).__name__}"'
                )
        sizes = [operator.index(item) for item in data]
        return empty_op.functional(sizes, dtype=element, layout=strided, device=on)
    if name in ("other", "data") and isinstance(data, Tensor):
        if not any_tensor and (data._dtype is not element or data._device.type != kind):
            raise TypeError(
                f"expected TensorOptions(dtype={c_name(element)}, device={on}, layout=Strided) "
                f"(got TensorOptions(dtype={c_name(data._dtype)}, device={data._device}, layout=Strided))"
            )
        return data.alias()
    if name in ("storage", "data") and is_storage(data):
        return lifted(new_memory(storage_of(data, element, "got type"), element), None)
    if name != "data":
        kinds = [type(arg).__name__ for arg in args] + [f"{key}={type(arg).__name__}" for key, arg in kwargs.items()]
        raise TypeError(
            f"new() received an invalid combination of arguments - got ({', '.join(kinds)}), but expected one of:\n"
            + "".join(f" * {form}\n" for form in LEGACY_FORMS.split("\n"))
        )
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    if not is_sequence(data):
        raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    return lifted(converted_copy(data, element), None).to(on)


CONSTRUCT.fill(construct)


def is_storage(data: Any) -> bool:
    """Whether this is a storage; a typed one has `_untyped_storage` (storages.py)."""
    return isinstance(data, StorageBase) or isinstance(getattr(data, "_untyped_storage", None), StorageBase)


def storage_of(data: Any, element: dtype, verb: str = "got") -> Any:
    """The bytes of a storage. RuntimeError for one with elements of another dtype."""
    if isinstance(data, StorageBase):
        return data
    if data.dtype is not element:
        where = " for argument 1 'storage'" if verb == "got type" else ""
        raise RuntimeError(
            f"Expected a Storage of type {element.tensor_name} or an UntypedStorage, but {verb} "
            f"{data.dtype.tensor_name}{where}"
        )
    return data._untyped_storage


def new_memory(storage: Any, element: dtype) -> Tensor:
    """A tensor over all elements of a storage."""
    count = storage.nbytes() // element.itemsize
    return tensor_over(storage, storage.typed(element), Size((count,)), (1,), 0, element, storage.device)


# --- from data to memory ---------------------------------------------------------------------------------------------


def lifted(result: Tensor, device: device | None) -> Tensor:
    """The tensor on its device, as modes get to see it. On the meta device there is nothing to see."""
    if device is not None and device.type == "meta":
        return empty(result._shape, result._dtype, device)
    result = ops.aten.lift_fresh.default(result)  # before it goes elsewhere: a mode that lifts it makes it its own
    if device is not None and device.type != "cpu":
        result = ops.aten._to_copy.default(result, device=device)
    return result


def with_grad(result: Tensor, requires_grad: bool) -> Tensor:
    if requires_grad:
        SET_REQUIRES_GRAD()(result, True)
    return result


def as_dtype(name: str, value: Any) -> Any:
    """The dtype that a user gave, or None. TypeError for anything else."""
    value = ARGUMENT_TYPES["dtype of Python type"](value)
    if value is None or isinstance(value, dtype):
        return value
    raise TypeError(f"{name}(): argument 'dtype' must be torch.dtype, not {type(value).__name__}")


def over_array(array: np.ndarray, element: dtype | None = None) -> Tensor:
    """A tensor over the memory of `array`, below the dispatcher."""
    element = element or element_type(array)
    size = array.itemsize
    if any(step < 0 for step in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array  with "
            "array.copy().) "
        )
    if any(step % size for step in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the "
            "memory."
        )
    if not array.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
            "currently not supported."
        )
    if not array.flags.aligned:
        raise ValueError("given numpy array is not aligned to its element size. Copy the numpy array.")
    if not array.flags.writeable:
        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means "
            "writing to this tensor will result in undefined behavior. You may want to copy the array to protect "
            "its data or make it writable before converting it to a tensor.",
            UserWarning,
            stacklevel=4,
        )
    strides = tuple(step // size for step in array.strides)
    # Kernels want the storage as one flat array. Every element of it lies between the array's first and last one.
    span = 0 if array.size == 0 else 1 + sum((n - 1) * step for n, step in zip(array.shape, strides, strict=True))
    flat = np.lib.stride_tricks.as_strided(array, (span,), (size,), writeable=array.flags.writeable)
    storage = UntypedStorage.of_array(flat.view(element.array), owner=array)
    return tensor_over(storage, storage.typed(element), Size(array.shape), strides, 0, element, CPU)


def element_type(array: np.ndarray) -> dtype:
    try:
        return from_numpy_dtype(array.dtype.newbyteorder("="))
    except TypeError:
        raise TypeError(
            f"can't convert np.ndarray of type {array.dtype.type.__module__}.{array.dtype.type.__name__}. The only "
            "supported types are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint8, "
            "and bool."
        ) from None


def converted_copy(data: Any, element: dtype | None) -> Tensor:
    """A dense CPU tensor with a copy of the data, below the dispatcher."""
    if type(data) in (float, bool) or (type(data) is int and -(2**63) <= data < 2**63):
        own = get_default_dtype() if type(data) is float else dtypes.bool if type(data) is bool else dtypes.int64
        if element is None or element is own:
            plan = planned((), own, CPU, False)
            return filled_first((), data, own, CPU, False) if plan is None else filled_by(plan, data)
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    if isinstance(data, np.ndarray | np.generic):
        array = np.asarray(data)
        if not array.flags.writeable:
            array = array.copy()
        source = over_array(array)
        result = empty(source._shape, element or source._dtype)
        kernels.copy(result._operand, source._operand)
        return result
    array = nested_values(data, element)
    return written(empty(array.shape, element or from_numpy_dtype(array.dtype)), array)


def nested_values(data: Any, element: dtype | None) -> np.ndarray:
    """The numbers of nested sequences as an array of their dtype, or of the widest dtype of `element`'s category."""
    shape = nested_shape(data)
    values: list[Any] = []
    flatten(data, shape, 0, values)
    found = common_dtype(values)
    target = element or found
    if target.name not in COMPUTED:
        raise RuntimeError("store_scalar: invalid type")
    numbers = plain_numbers(values)
    if target.is_complex:
        array = np.array(numbers, np.complex128)
    elif found.is_complex:
        raise TypeError("must be real number, not complex")
    elif target.is_floating_point:
        array = np.array(numbers, np.float64)
    elif target is dtypes.bool:
        array = np.array([bool(number) for number in numbers], np.bool_)
    else:
        array = whole_numbers(numbers, target)
    if element is None and array.dtype != target.numpy:
        array = array.astype(target.numpy)
    return array.reshape(shape)


def whole_numbers(numbers: list[Any], target: dtype) -> np.ndarray:
    if target is dtypes.uint64:
        if not all(isinstance(number, int) for number in numbers):
            raise TypeError("an integer is required")
        if any(number < 0 for number in numbers):
            raise OverflowError("can't convert negative int to unsigned")
        if any(number >= 2**64 for number in numbers):
            raise OverflowError("int too big to convert")
        return np.array(numbers, np.uint64)
    low, high = integer_range(target)
    if not target.is_signed:
        low = -high  # wraps around
    try:
        array = np.array([int(number) for number in numbers], np.int64)
        fits = bool(((array >= low) & (array <= high)).all())
        if not target.is_signed:  # a negative int wraps around, a negative float does not
            fits = fits and not any(isinstance(number, float) and number < 0 for number in numbers)
    except OverflowError:
        if any(isinstance(number, int) for number in numbers if not -(2**63) <= number < 2**63):
            raise ValueError("Overflow when unpacking long long") from None
        fits = False
    except ValueError:  # int(nan)
        fits = False
    if not fits:
        raise RuntimeError(f"value cannot be converted to type {target.name} without overflow")
    return array.astype(target.numpy)


def nested_shape(data: Any) -> tuple[int, ...]:
    """The lengths of nested sequences, found along the first items."""
    shape: list[int] = []
    while is_sequence(data):
        if len(shape) >= _MAX_DIMS or (shape and isinstance(data, str)):
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        shape.append(len(data))
        if not len(data):
            break
        data = data[0]
    return tuple(shape)


def flatten(data: Any, shape: tuple[int, ...], dim: int, values: list[Any]) -> None:
    """Appends the items of nested sequences, which must have the lengths that `shape` gives, row by row."""
    if dim == len(shape):
        values.append(data)
        return
    if not is_sequence(data):
        raise TypeError("not a sequence")
    if len(data) != shape[dim]:
        raise ValueError(f"expected sequence of length {shape[dim]} at dim {dim} (got {len(data)})")
    if dim == len(shape) - 1:
        values.extend(data)
        return
    for item in data:
        flatten(item, shape, dim + 1, values)


def is_sequence(value: Any) -> bool:
    """Whether `value` is one with a length and items by position. A tensor among the items stands for a number."""
    if isinstance(value, list | tuple):
        return True
    if isinstance(value, Tensor):
        return False
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return hasattr(value, "__len__") and hasattr(value, "__getitem__") and not hasattr(value, "keys")


def is_int(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def common_dtype(values: Iterable[Any]) -> dtype:
    """The dtype that the numbers promote to; the default float dtype for none."""
    result: dtype | None = None
    for kind in number_kinds(values):
        result = kind if result is None else promote_types(result, kind)
    return result or get_default_dtype()


def number_kinds(values: Iterable[Any]) -> set[dtype]:
    """The dtypes of numbers. RuntimeError for what is no number, TypeError where sequences are nested unevenly."""
    kinds: set[dtype] = set()
    default = get_default_dtype()
    of_type = {bool: dtypes.bool, int: dtypes.int64, float: default, complex: default.to_complex()}
    for kind in set(map(type, values)):
        if kind in of_type:
            kinds.add(of_type[kind])
        elif issubclass(kind, np.generic):
            kinds.add(from_numpy_dtype(np.dtype(kind)))
        elif issubclass(kind, Tensor | np.ndarray):
            found = (value for value in values if type(value) is kind)
            kinds |= {value._dtype if isinstance(value, Tensor) else from_numpy_dtype(value.dtype) for value in found}
        elif issubclass(kind, list | tuple):
            raise TypeError(f"'{kind.__name__}' object cannot be interpreted as an integer")
        elif issubclass(kind, Symbolic):
            raise Symbols
        elif issubclass(kind, bool | int | float | complex):
            kinds.add(next(of_type[base] for base in kind.__mro__ if base in of_type))
        else:
            raise RuntimeError(f"Could not infer dtype of {kind.__name__}")
    return kinds


def plain_numbers(values: list[Any]) -> list[Any]:
    """Python's numbers for tensors and numpy's numbers."""

    def plain(value: Any) -> Any:
        if isinstance(value, Tensor):
            if value._shape.numel() != 1:
                if value._dtype.is_floating_point:
                    raise ValueError("only one element tensors can be converted to Python scalars")
                raise TypeError("only integer tensors of a single element can be converted to an index")
            value = as_numpy(value).reshape(())[()]
        return value.item() if isinstance(value, np.generic | np.ndarray) else value

    if all(type(value) in (int, float, bool, complex) for value in values):
        return values
    return [plain(value) for value in values]
