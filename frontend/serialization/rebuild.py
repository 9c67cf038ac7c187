"""How a file's tensors come to be: the functions that its pickle calls, with PyTorch's arguments.

A file may say anything. So every number goes through the checks of `as_strided`, which lets no tensor reach past its
storage.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import keyset, shared
from redispatch.dispatch.tensor import META, Size, Tensor, UntypedStorage, dtype, empty, layout, strided, tensor_over
from redispatch.kernels import check_view
from redispatch.kernels.ops.legacy import TypedStorage
from redispatch.nn.parameter import Parameter


def rebuild_tensor(
    storage: TypedStorage,
    storage_offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool = False,
    backward_hooks: Any = None,
    metadata: Any = None,
) -> Tensor:
    """A tensor over a storage that has a dtype."""
    return over(storage.untyped(), storage.dtype, storage_offset, size, stride, requires_grad, metadata)


def rebuild_tensor_of(
    storage: TypedStorage | UntypedStorage,
    storage_offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool,
    backward_hooks: Any,
    element: dtype,
    metadata: Any = None,
) -> Tensor:
    """The same where the storage does not say the dtype."""
    untyped = storage.untyped() if isinstance(storage, TypedStorage) else storage
    return over(untyped, element, storage_offset, size, stride, requires_grad, metadata)


# What a tensor's elements still need to have done to them, by the name in its metadata: the key that notes it
LAZY_BITS = {"conj": "Conjugate", "neg": "Negative"}


def lazy_bits_of(x: Any) -> dict[str, bool]:
    """The metadata of a tensor: which bits it has."""
    return {name: True for name, key in LAZY_BITS.items() if x._keyset & keyset(key)}


def over(
    storage: UntypedStorage, element: dtype, offset: int, size: Any, stride: Any, requires_grad: bool, metadata: Any
) -> Tensor:
    """A tensor over a storage. RuntimeError where it would reach past it, or has a bit that its dtype cannot have."""
    shape, steps = Size(size), tuple(stride)
    if not all(type(number) is int for number in (offset, *shape, *steps)):
        raise RuntimeError("load: sizes, strides and offsets must be integers")
    check_view(shape, steps, offset, storage.nbytes() // element.itemsize)
    made = tensor_over(storage, storage.typed(element), shape, steps, offset, element, storage.device)
    for name, is_set in (metadata or {}).items():
        if name not in LAZY_BITS or (name == "conj" and not element.is_complex):
            raise RuntimeError(f"load: a tensor of {element} cannot be {name!r}")
        if is_set:
            made._keyset = shared(made._keyset | keyset(LAZY_BITS[name]))
    return made.requires_grad_(requires_grad)


def rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any = None) -> Any:
    return Parameter(data, requires_grad)


def rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any) -> Any:
    """A parameter with the attributes that were hung on it."""
    return with_state(Parameter(data, requires_grad), state)


def rebuild_meta_tensor(element: dtype, size: Any, stride: Any, requires_grad: bool) -> Tensor:
    return empty(Size(size), element, META, tuple(stride)).requires_grad_(requires_grad)


def rebuild_wrapper(
    kind: Any,
    element: dtype,
    size: Any,
    stride: Any,
    storage_offset: int,
    form: layout,
    on: Any,
    requires_grad: bool,
) -> Any:
    """A wrapper subclass's face; what it wraps comes as its state."""
    return Tensor._make_wrapper_subclass(
        kind,
        size,
        strides=stride,
        storage_offset=storage_offset,
        layout=form,
        device=on,
        dtype=element,
        requires_grad=requires_grad,
    )


def rebuild_subclass(make: Any, kind: type, args: tuple[Any, ...], state: Any) -> Any:
    """What `make(*args)` gives, as class `kind`, with its attributes."""
    made = make(*args)
    return with_state(made if type(made) is kind else made.as_subclass(kind), state)


def with_state(made: Any, state: Any) -> Any:
    """The object with the attributes that a file has for it: a dict, or that and a dict of slots."""
    set_state = type(made).__setstate__ if hasattr(type(made), "__setstate__") else None
    if set_state is not None and set_state is not Tensor.__setstate__:
        made.__setstate__(state)
        return made
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    made.__dict__.update(attributes or {})
    for name, value in (slots or {}).items():
        setattr(made, name, value)
    return made


def layout_named(name: str) -> layout:
    if name != "torch.strided":
        raise NotImplementedError(f"load: tensors of layout {name} are not supported")
    return strided
