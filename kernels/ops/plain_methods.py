"""Methods of Tensor in plain Python: elementwise by a Python function, memory of the same kind, questions of layout.

Most are there for old programs. Layouts other than strided and other devices are not built: what asks for them says
no, and what needs them says so.
"""

from __future__ import annotations

import itertools
import operator
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.layers.python import has_handler
from redispatch.dispatch.tensor import (
    Size,
    Tensor,
    another,
    memory_format,
    overridable,
    overridable_builtin,
    overridable_in_python,
    overridable_property,
)
from redispatch.dispatch.tensor.geometry import loop_order

from . import comparison
from .from_data import legacy
from .geometry import expanded
from .legacy import TYPES

# --- a Python function for each element -------------------------------------------------------------------------------


def by_python(name: str, self: Any, others: tuple[Any, ...], function: Callable[..., Any]) -> Any:
    """Writes function(element, elements of the others...) over each element. Slow: one call of Python for each."""
    if any(isinstance(each, Tensor) and each._requires_grad() for each in (self, *others)):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    for position, other in enumerate(others, 1):
        if not isinstance(other, Tensor):
            raise TypeError(
                f"{name}(): argument 'other' (position {position}) must be Tensor, not {type(other).__name__}"
            )
        if other._dtype is not self._dtype:
            raise TypeError(f"{name}: expected {self.type()} for 'other' (got {other.type()})")
    columns = [expanded(other, self._shape).of(other).flatten().tolist() for other in others]
    if self._device.type == "meta":
        return self
    kind = float if self._dtype.is_floating_point else complex if self._dtype.is_complex else int
    results = [as_number(kind, function(*values)) for values in zip(self.flatten().tolist(), *columns, strict=True)]
    return self.copy_(self.new_tensor(results).reshape(self._shape))


def as_number(kind: type, value: Any) -> Any:
    """A number of that kind. TypeError for what is none, such as a str that shows one."""
    if kind is int:
        return int(value) if isinstance(value, float) else operator.index(value)
    if isinstance(value, str | bytes):
        raise TypeError(f"must be real number, not {type(value).__name__}")
    return kind(value)


@overridable_builtin
def apply_(self: Any, callable: Callable[[Any], Any]) -> Any:
    """Writes callable(x) over each element x."""
    return by_python("apply_", self, (), callable)


@overridable
def map_(self: Any, other: Any, callable: Callable[[Any, Any], Any]) -> Any:
    """Writes callable(x, y) over each element x, with y from `other`, broadcast."""
    return by_python("map_", self, (other,), callable)


@overridable
def map2_(self: Any, x: Any, y: Any, callable: Callable[[Any, Any, Any], Any]) -> Any:
    """Writes what `map_` does, of three tensors' elements."""
    return by_python("map2_", self, (x, y), callable)


# --- tensors like this one --------------------------------------------------------------------------------------------


@overridable_builtin
def new(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns a tensor of the same dtype: of a shape, `x.new(2, 3)`, or with data, `x.new([1, 2])`."""
    return legacy(self._dtype, self._device, args, kwargs)


@overridable
def where(self: Any, condition: Any, other: Any) -> Any:
    """Returns the elements of `self` where the condition holds, else those of `other`."""
    return comparison.where(condition, self, other)


@overridable_in_python
def resize(self: Any, *sizes: Any) -> Any:
    """Returns a view of another shape with as many elements. Deprecated: use `reshape`, or `resize_`."""
    warnings.warn("non-inplace resize is deprecated", UserWarning, stacklevel=3)
    shape = Size(sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes)
    if shape.numel() != self._shape.numel():
        asked, own = ("x".join(map(str, size)) for size in (shape, self._shape))
        raise RuntimeError(
            f"requested resize to {asked} ({shape.numel()} elements in total), but the given tensor has a size of "
            f"{own} ({self._shape.numel()} elements). autograd's resize can only change the shape of a given tensor, "
            "while preserving the number of elements. "
        )
    return self.contiguous().view(shape)


@overridable_in_python
def resize_as(self: Any, tensor: Any) -> Any:
    """Returns what `resize` to the shape of another tensor does. Deprecated, too."""
    warnings.warn("non-inplace resize_as is deprecated", UserWarning, stacklevel=3)
    return self.contiguous().view(tensor.shape)


@overridable_in_python
def module_load(self: Any, other: Any, assign: bool = False) -> Any:
    """Returns what `load_state_dict` puts here: the tensor's own memory with the values of `other`, or `other`."""
    if assign:
        return other.detach()
    return self.copy_(other).detach()


# --- the array API standard -------------------------------------------------------------------------------------------


@overridable
def __array_namespace__(self: Any, *, api_version: str | None = None) -> Any:
    """The module with the functions of the Python array API standard.

    Errors: ValueError for a version that it does not hold to.
    """
    if api_version not in (None, *ARRAY_API_VERSIONS):
        raise ValueError(f"the array API of {api_version!r} is not there, only {', '.join(ARRAY_API_VERSIONS)}")
    return import_module("redispatch.array_api")  # here: it is written in public names, and so stands above this room


ARRAY_API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


@overridable
def to_device(self: Any, device: Any, /, *, stream: Any = None) -> Any:
    """Returns the array on another device; itself if it is there. Errors: ValueError for a stream, as there are
    none."""
    if stream is not None:
        raise ValueError(f"to_device(): there are no streams, got {stream!r}")
    return self.to(device)


# --- memory -----------------------------------------------------------------------------------------------------------


@overridable_in_python
def dim_order(self: Any, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """Returns the dimensions from the outermost in memory to the innermost.

    Errors: RuntimeError, with `ambiguity_check`, where dimensions of size 1 or of equal steps could stand elsewhere; a
    list of memory formats allows what exactly one of them is.
    """
    formats = ambiguity_check if isinstance(ambiguity_check, list) else []
    if not isinstance(ambiguity_check, bool | list) or not all(isinstance(item, memory_format) for item in formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    shape, stride = self.shape, self.stride()
    several = 1 in shape or any(one == next for one, next in itertools.pairwise(stride))
    if ambiguity_check is not False and several and sum(self.is_contiguous(memory_format=f) for f in formats) != 1:
        raise RuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
        )
    if self.is_contiguous():  # where a dimension has one element, its step is free
        return tuple(range(len(shape)))
    return tuple(reversed(loop_order(tuple(shape), [stride])))


@overridable_in_python
def is_shared(self: Any) -> bool:
    """Returns whether other processes see the memory (dispatch/tensor/storage.py)."""
    return self._storage.is_shared()


@overridable_in_python
def share_memory_(self: Any) -> Any:
    """Moves the memory to where other processes see it, and returns the tensor. RuntimeError where it is elsewhere."""
    self._storage.share_memory_()
    return self


@overridable_property
def __cuda_array_interface__(self: Any) -> dict[str, Any]:
    """The memory of a tensor on a CUDA device, for other libraries; version 2.

    Errors: AttributeError for tensors that are elsewhere, RuntimeError for those that require gradients.
    """
    if self._device.type != "cuda":
        raise AttributeError(
            f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()} If CUDA data is required use "
            "tensor.cuda() to copy tensor to device memory."
        )
    if self.requires_grad:
        raise RuntimeError(
            "Can't get __cuda_array_interface__ on Variable that requires grad. If gradients aren't required, use "
            "var.detach() to get Variable that doesn't require grad."
        )
    itemsize = self._dtype.itemsize
    return {
        "typestr": "<V2" if self._dtype.name == "bfloat16" else self._dtype.numpy.str,  # numpy has no bfloat16
        "shape": tuple(self._shape),
        "strides": None if self.is_contiguous() else tuple(step * itemsize for step in self._stride),
        "data": (self.data_ptr() if self.numel() else 0, False),
        "version": 2,
    }


@overridable_in_python
def storage_type(self: Any) -> Any:
    """Returns the class of the typed storage: `FloatStorage`."""
    return TYPES[f"{self._dtype.tensor_name}Storage"]


# --- layouts and devices that are not there ---------------------------------------------------------------------------


@overridable
def sparse_dim(self: Any) -> int:
    """Returns how many dimensions are stored by their indices alone: none."""
    return 0


@overridable
def dense_dim(self: Any) -> int:
    """Returns how many are stored whole: all."""
    return len(self._shape)


@overridable
def is_distributed(self: Any) -> bool:
    """Returns whether parts of the tensor lie on other machines."""
    return False


def expects(name: str, layout: str) -> Callable[..., Any]:
    """A method that a strided tensor does not have."""

    def method(self: Any, *args: Any) -> Any:
        raise RuntimeError(f"{name} expected {layout} layout but got Strided")

    method.__name__, method.__doc__ = name, f"Raises RuntimeError: {layout}s are not built."
    return overridable(method)


def not_built(name: str, what: str) -> Callable[..., Any]:
    """A method for what the library does not have."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"Tensor.{name}: {what} are not built")

    method.__name__, method.__doc__ = name, f"Raises NotImplementedError: {what} are not built."
    return overridable(method)


@overridable
def reinforce(self: Any, reward: Any) -> None:
    """Raises RuntimeError: the method was removed."""
    raise RuntimeError("reinforce() was removed.\nUse torch.distributions instead.")


@overridable
def _autocast_to_full_precision(self: Any, cuda_enabled: bool, cpu_enabled: bool) -> Any:
    """Returns the tensor in float32, where autocast is on for its device and it is of 16 bits."""
    enabled = {"cuda": cuda_enabled, "cpu": cpu_enabled}.get(self._device.type, False)
    return self.float() if enabled and self._dtype.is_floating_point and self._dtype.itemsize == 2 else self


@overridable
def _autocast_to_reduced_precision(
    self: Any, cuda_enabled: bool, cpu_enabled: bool, cuda_dtype: Any, cpu_dtype: Any
) -> Any:
    """Returns the tensor in autocast's dtype, where it is on for the tensor's device and that is of float32."""
    dtype = {"cuda": cuda_enabled and cuda_dtype, "cpu": cpu_enabled and cpu_dtype}.get(self._device.type)
    return self.to(dtype) if dtype and self._dtype.name == "float32" else self


def _clear_non_serializable_cached_data(self: Any) -> None:
    """Does nothing: what a tensor remembers is not saved with it."""


def _volatile(self: Any) -> bool:
    warnings.warn("volatile was removed (Variable.volatile is always False)", UserWarning, stacklevel=4)
    return False


def no(self: Any) -> bool:
    return False


COO, ROWS, COLUMNS = "sparse coordinate tensor", "sparse row compressed tensor", "sparse column compressed tensor"

aten = ops.aten
METHODS: dict[str, Any] = {
    "__cuda_array_interface__": __cuda_array_interface__,
    "__array_namespace__": __array_namespace__,
    "to_device": to_device,
    "apply_": apply_,
    "map_": map_,
    "map2_": map2_,
    "new": new,
    "_fix_weakref": lambda self: None,  # what a weak reference found is alive
    "where": where,
    "resize": resize,
    "resize_as": resize_as,
    "module_load": module_load,
    "dim_order": dim_order,
    **{name: another(Tensor.data_ptr, name) for name in ("const_data_ptr", "mutable_data_ptr")},
    "is_shared": is_shared,
    "share_memory_": share_memory_,
    "storage_type": storage_type,
    "is_distributed": is_distributed,
    "sparse_dim": sparse_dim,
    "dense_dim": dense_dim,
    "reinforce": reinforce,
    **{name: expects(name, COO) for name in ("indices", "coalesce", "is_coalesced")},
    "values": expects("values", "sparse tensor"),
    **{name: expects(name, ROWS) for name in ("crow_indices", "col_indices")},
    **{name: expects(name, COLUMNS) for name in ("ccol_indices", "row_indices")},
    **{
        name: not_built(name, "sparse tensors")
        for name in (
            "to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc",
            "_nnz", "_indices", "_values", "_dimI", "_dimV", "_to_dense", "_coalesced_", "_sparse_mask_projection",
            "sparse_mask", "sparse_resize_", "sparse_resize_and_clear_", "resize_as_sparse_", "smm", "sspaddmm",
            "_to_sparse", "_to_sparse_csr", "_to_sparse_csc", "_to_sparse_bsr", "_to_sparse_bsc",
        )
    },
    **{name: not_built(name, f"{name} devices") for name in ("xpu", "ipu", "mtia")},
    "to_mkldnn": not_built("to_mkldnn", "MKL-DNN tensors"),
    **{
        name: not_built(name, "nested tensors")
        for name in (
            "to_padded_tensor", "_nested_tensor_size", "_nested_tensor_strides", "_nested_tensor_storage_offsets",
        )
    },
    **{
        name: not_built(name, "views that are repeated by hand")
        for name in ("_view_func", "_view_func_unsafe", "_rev_view_func_unsafe")
    },
    **{name: not_built(name, "keys of random numbers") for name in ("_philox_normal_", "_philox_uniform_")},
    "_lazy_clone": not_built("_lazy_clone", "copies that wait for a write"),
    "_use_count": not_built("_use_count", "counts of references in C++"),
    "_dtensor__new__": not_built("_dtensor__new__", "distributed tensors"),
    "index": not_built("index", "dimensions that are objects"),
    "_addmm_activation": overridable(lambda self, *args, **kwargs: aten._addmm_activation(self, *args, **kwargs)),
    "_reduce_ex_internal": lambda self, protocol: Tensor.__reduce_ex__(self, protocol),
    "_python_dispatch": property(lambda self: has_handler(type(self))),
    "_has_symbolic_sizes_strides": property(
        lambda self: any(type(one) is not int for one in (*self._shape, *self._stride))
    ),
    "_autocast_to_full_precision": _autocast_to_full_precision,
    "_autocast_to_reduced_precision": _autocast_to_reduced_precision,
    "_clear_non_serializable_cached_data": overridable_in_python(_clear_non_serializable_cached_data),
    "record_stream": not_built("record_stream", "streams"),
    "volatile": overridable_property(_volatile),
    "name": overridable_property(lambda self: None),
    **{
        f"is_{kind}": overridable_property(no)
        for kind in (
            "sparse_csr", "nested", "xla", "mkldnn", "mps", "ipu", "maia", "mtia", "vulkan", "xpu",
        )
    },
}  # fmt: skip
for _name, _method in METHODS.items():
    setattr(Tensor, _name, _method)
