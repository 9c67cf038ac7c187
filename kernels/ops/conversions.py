"""`to` and the methods that say the same: `double`, `cpu`, `type`, `type_as`.

All are composite: where nothing changes they give the tensor itself, and otherwise one `_to_copy`, which modes see with
exactly what the caller asked to change. The methods read their arguments by hand, as no schema says it all; common
calls take lanes (public.py, `Way`).
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import BACKEND_OF_DEVICE, STATE, WITHOUT_MODULE, call
from redispatch.dispatch.entry.fast_paths import Attribute, Fixed, Reads, Taken
from redispatch.dispatch.specialiser.annotations import inline
from redispatch.dispatch.tensor import (
    CPU,
    DEVICE_TYPES,
    DTYPES,
    KINDS,
    STARTERS,
    Tensor,
    as_device,
    device,
    dtype,
    dtypes,
    indexed,
    overridable,
    preserve_format,
    strided,
)

from ..declare.operator import composite
from ..declare.public import Way, written
from .copying import copy_inplace_op, suggested_format, to_copy_op

_TO = "bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)"


@inline
def converted(
    self: Tensor, dtype: Any, layout: Any, device: Any, non_blocking: bool, copy: bool, format: Any
) -> Tensor:
    """`self` where it is as wanted already, else a `_to_copy` that says what was asked for."""
    if (
        copy
        or (dtype is not None and dtype is not self._dtype)
        or (device is not None and device is not self._device and device != self._device)
        or (format is not None and format is not preserve_format and format is not suggested_format(self))
    ):
        return call(to_copy_op.functional, [self, dtype, layout, device, None, non_blocking, format])
    return self


@composite(f"to.device(Tensor(a) self, Device device, ScalarType dtype, {_TO}")
@inline
def to_device_op(self, on, dtype, non_blocking, copy, format):
    return converted(self, dtype, None, on, non_blocking, copy, format)


@composite(f"to.dtype(Tensor(a) self, ScalarType dtype, {_TO}")
@inline
def to_dtype_op(self, dtype, non_blocking, copy, format):
    return converted(self, dtype, None, None, non_blocking, copy, format)


@composite(f"to.other(Tensor(a) self, Tensor other, {_TO}")
@inline
def to_other_op(self, other, non_blocking, copy, format):
    return converted(self, other._dtype, None, other._device, non_blocking, copy, format)


@composite(
    "to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    f"bool? pin_memory=None, {_TO}",
)
@inline
def to_dtype_layout_op(self, dtype, layout, on, pin_memory, non_blocking, copy, format):
    return converted(self, dtype, layout, on, non_blocking, copy, format)


def available_device(value: Any) -> device:
    """The device that a value stands for. In PyTorch's words, RuntimeError where nothing serves it; AssertionError for
    one that a starter would start."""
    on = as_device(value)
    kernels = copy_inplace_op.functional
    key = BACKEND_OF_DEVICE.get(on.type, "Undefined")
    if on.type not in KINDS and not kernels.has_kernel_for_dispatch_key(key):
        if on.type in STARTERS:
            STARTERS[on.type]()
        elif on.type in DEVICE_TYPES and on.type not in ("lazy", *WITHOUT_MODULE):
            raise RuntimeError(f"PyTorch is not linked with support for {on.type} devices: it has no kernels")
    return indexed(on)


READS_DEVICE = Reads({kind: Taken(kind, "{convert}({v})", convert=available_device) for kind in (device, str)}, None)
HOW = ("non_blocking", "copy", "memory_format")
ITS_OWN: dict[str, Fixed | Attribute] = {"dtype": Attribute(0, "_dtype"), "layout": Fixed(strided)}


@written(
    Way(to_dtype_op, ("self", "dtype", "non_blocking", "copy"), HOW),
    Way(to_other_op, ("self", "other", "non_blocking", "copy"), HOW),
    Way(to_dtype_layout_op, ("self", "device"), HOW, given=ITS_OWN, reads={"device": READS_DEVICE}),
    Way(to_device_op, ("self", "device", "dtype", "non_blocking", "copy"), HOW, reads={"device": READS_DEVICE}),
)
def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Returns the tensor with another dtype, on another device or in another memory format; itself if it is so already.

    `to(dtype)`, `to(device, dtype=None)`, `to(other)`, each with `non_blocking`, `copy`, `memory_format`.
    """
    names = ["non_blocking", "copy"]
    if args and isinstance(args[0], Tensor):
        names = ["other", *names]
    elif args and (isinstance(args[0], dtype) or args[0] in (float, int, bool, complex)):
        names = ["dtype", *names]
    elif args:
        names = ["device", "dtype", *names]
    if len(args) > len(names):
        raise TypeError(f"to() takes from 0 to {len(names)} positional arguments but {len(args)} were given")
    given = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name in given:
            raise TypeError(f"to() got multiple values for argument '{name}'")
        if name not in ("other", "device", "dtype", "non_blocking", "copy", "memory_format"):
            raise TypeError(f"to() got an unexpected keyword argument '{name}'")
        given[name] = value
    how = {name: given[name] for name in ("non_blocking", "copy", "memory_format") if name in given}
    if given.get("other") is not None:
        return to_other_op.functional(self, given["other"], **how)
    element, on = _as_dtype(given.get("dtype")), given.get("device")
    if on is not None:
        on = available_device(on)
        if element is not None:
            return to_device_op.functional(self, on, element, **how)
        return to_dtype_layout_op.functional(self, dtype=self._dtype, layout=strided, device=on, **how)
    if element is not None:
        return to_dtype_op.functional(self, element, **how)
    return to_dtype_layout_op.functional(self, dtype=self._dtype, layout=strided, device=self._device, **how)


_OF_PYTHON_TYPE = {float: dtypes.float64, int: dtypes.int64, bool: dtypes.bool, complex: dtypes.complex128}


def _as_dtype(value: Any) -> dtype | None:
    value = _OF_PYTHON_TYPE.get(value, value) if isinstance(value, type) else value
    if value is None or isinstance(value, dtype):
        return value
    raise TypeError(f"to(): argument 'dtype' must be torch.dtype, not {type(value).__name__}")


@written(Way(to_dtype_layout_op, ("self",), given=ITS_OWN | {"device": Fixed(CPU)}))
def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """Returns the tensor in the CPU's memory; itself if it is there."""
    return to_dtype_layout_op.functional(
        self, dtype=self._dtype, layout=strided, device=CPU, memory_format=memory_format
    )


@overridable
def cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """Returns the tensor in a GPU's memory; itself if it is there."""
    on = available_device("cuda" if device is None else device)
    return to_dtype_layout_op.functional(
        self, dtype=self._dtype, layout=strided, device=on, non_blocking=non_blocking, memory_format=memory_format
    )


def conversion(name: str, element: dtype) -> Any:
    """The method `Tensor.<name>`, which converts to one dtype."""

    def method(self: Tensor, memory_format: Any = None) -> Tensor:
        return to_dtype_op.functional(self, element, memory_format=memory_format)

    method.__name__, method.__doc__ = name, f"Returns the tensor as {element.name}; itself if it is."
    return written(Way(to_dtype_op, ("self",), given={"dtype": Fixed(element)}))(method)


Tensor.cuda = cuda  # type: ignore[attr-defined]  # attached here
to_double = conversion("double", dtypes.float64)
to_float = conversion("float", dtypes.float32)
to_half = conversion("half", dtypes.float16)
to_bfloat16 = conversion("bfloat16", dtypes.bfloat16)
to_long = conversion("long", dtypes.int64)
to_int = conversion("int", dtypes.int32)
to_short = conversion("short", dtypes.int16)
to_char = conversion("char", dtypes.int8)
to_byte = conversion("byte", dtypes.uint8)
to_bool = conversion("bool", dtypes.bool)
to_cfloat = conversion("cfloat", dtypes.complex64)
to_cdouble = conversion("cdouble", dtypes.complex128)
to_chalf = conversion("chalf", dtypes.complex32)

# "torch.FloatTensor", "torch.cuda.FloatTensor": names of dtypes on a type of device
_TENSOR_NAMES = {
    f"torch.{where}{t.tensor_name}Tensor": (device(kind), t)
    for where, kind in (("", "cpu"), ("cuda.", "cuda"))
    for t in DTYPES.values()
}


def tensor_type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Returns the name of the tensor's type, "torch.FloatTensor"; with a dtype or such a name, the tensor converted
    to it."""
    if dtype is None:
        device_name = "" if self._device.type == "cpu" else f"{self._device.type}."
        quantised = "quantized." if self._dtype.name.startswith("q") else ""
        return f"torch.{device_name}{quantised}{self._dtype.tensor_name}Tensor"
    if isinstance(dtype, str):
        if dtype not in _TENSOR_NAMES:
            raise ValueError(f"invalid type: {dtype!r}")
        return to_device_op.functional(self, *_TENSOR_NAMES[dtype], non_blocking=non_blocking)
    if dtype is Tensor:
        dtype = dtypes.get_default_dtype()
    element = _as_dtype(getattr(dtype, "dtype", dtype))  # `FloatTensor` says which it is of
    return to_dtype_op.functional(self, element, non_blocking=non_blocking)


tensor_type.__name__ = "type"
Tensor.type = overridable(tensor_type)  # type: ignore[attr-defined]  # attached here


@composite("type_as(Tensor self, Tensor other) -> Tensor", function=False)
def type_as(self, other):
    # As `to_dtype_layout_op.functional(self, dtype=..., layout=..., device=...)`, whose keywords take longer to read
    """Returns the tensor in the dtype of `other`."""
    return TO_LIKE.find(STATE.get().keys, self._keyset)(self, other._dtype, strided, other._device)


TO_LIKE = to_dtype_layout_op.functional.site(("T", "x", "x", "x", "D", "D", "D", "D"))
