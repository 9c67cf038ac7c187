"""The interface of tensors and operators to the dispatcher. The class Tensor itself belongs to a room further up.

The other tables here are filled by that room, too: a schema names types which only it knows (dtype, device,
layout, ...), and a device type names the backend whose kernels serve it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..specialiser.annotations import inline


class TensorBase:
    """Anything with a keyset. Base class of Tensor.

    `_keyset`    the dispatch keys that the tensor brings to a call
    `_counter`   the version: a list of one int, shared with all that alias the tensor; None for inference tensors
    `_autograd`  what autograd keeps (whether gradients are wanted, the node, the gradient), or None

    Autocast, which casts, asks a few facts more, for which Tensor has the room: `_dtype`, `_device`, and `_view`
    (what the tensor is a view of, or None).
    """

    __slots__ = ("_keyset", "_counter", "_autograd")
    _keyset: int
    _counter: list[int] | None
    _autograd: Any
    _dtype: Any
    _device: Any
    _view: Any


class Operator(Protocol):
    """The interface of an operator to the files below operator.py."""

    __name__: str
    place: str
    registrations: Any  # DispatchKey -> kernels
    packet_name: str
    namespace: str
    qualified_name: str
    _opname: str
    _overloadname: str
    tables: Any  # facts -> specialised code by keyset
    generation: int

    @property
    def schema(self) -> Any: ...
    @property
    def sorts(self) -> Any: ...

    def entry(self, keyset: int) -> Any: ...
    def entry_at(self, key: Any) -> Any: ...
    def table(self, facts: Any) -> Any: ...
    def site(self, facts: Any) -> Any: ...
    def stops(self) -> bool: ...
    def forget_entries(self, key: Any = None) -> None: ...


@inline
def wants_gradient(value: Any) -> bool:
    """Whether `value` is a tensor that requires grad."""
    return isinstance(value, TensorBase) and value._autograd is not None and value._autograd.requires_grad


# schema type name -> function of a user's value that returns the normalised one, or raises TypeError
ARGUMENT_TYPES: dict[str, Callable[[Any], Any]] = {}

# schema type name -> the class of normalised values, which that function gives back as they are
VALUE_CLASSES: dict[str, type] = {}

# device type -> the backend whose kernels run on it: "cpu" -> "CPU"
BACKEND_OF_DEVICE: dict[str, str] = {}
