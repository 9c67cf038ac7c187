"""Tensors: storages, dtypes, devices, shapes, and the class that ties them together.

Read in this order: dtypes, promotion, devices, device_kinds, layouts, size, looks, storage, record, tensor, factory,
subclass, copies, printing.
"""

from . import copies, dtypes
from .device_kinds import KINDS, Allocator, DeviceKind, current_index, indexed, set_current_index
from .devices import (
    CPU,
    DEVICE_CONTEXT,
    META,
    TYPE_NAMED,
    add_device_type,
    as_device,
    device,
    device_keyset,
    rename_device_type,
)
from .dtypes import (
    DTYPES,
    depends_on_default,
    dtype,
    from_numpy_dtype,
    get_default_dtype,
    promote_types,
    remember,
    set_default_dtype,
)
from .factory import Mould, Window, empty, fresh, mould, storage_elements, tensor_over, view_over, view_through
from .layouts import (
    channels_last,
    channels_last_3d,
    channels_last_strides,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    strided,
)
from .limits import finfo, iinfo
from .looks import Looks, lay_out, looks_of, show_same
from .printing import get_printoptions, printoptions, set_printoptions
from .promotion import can_cast, number_dtype, result_type
from .record import CURRENT_GRAD_FN, SET_REQUIRES_GRAD, AutogradRecord, CreationMeta, ViewRecord
from .routes import ROUTES, Route
from .size import Size
from .storage import UntypedStorage
from .subclass import as_subclass, make_subclass, make_wrapper_subclass, shell
from .tensor import (
    CONSTRUCT,
    Tensor,
    as_numpy,
    converted,
    describe,
    item_of,
    no_memory,
    on_host,
    overridable,
    overridable_property,
    shown,
    wrap_dim,
)

__all__ = [
    "Allocator",
    "AutogradRecord",
    "CONSTRUCT",
    "CPU",
    "CURRENT_GRAD_FN",
    "CreationMeta",
    "DEVICE_CONTEXT",
    "DTYPES",
    "DeviceKind",
    "KINDS",
    "Looks",
    "META",
    "ROUTES",
    "Route",
    "Mould",
    "SET_REQUIRES_GRAD",
    "Size",
    "TYPE_NAMED",
    "Tensor",
    "UntypedStorage",
    "ViewRecord",
    "Window",
    "add_device_type",
    "as_device",
    "as_numpy",
    "as_subclass",
    "can_cast",
    "channels_last",
    "channels_last_3d",
    "channels_last_strides",
    "contiguous_format",
    "converted",
    "copies",
    "current_index",
    "depends_on_default",
    "describe",
    "device",
    "device_keyset",
    "dtype",
    "dtypes",
    "empty",
    "finfo",
    "fresh",
    "from_numpy_dtype",
    "get_default_dtype",
    "get_printoptions",
    "indexed",
    "lay_out",
    "layout",
    "item_of",
    "looks_of",
    "make_subclass",
    "make_wrapper_subclass",
    "memory_format",
    "mould",
    "no_memory",
    "number_dtype",
    "on_host",
    "overridable",
    "overridable_property",
    "preserve_format",
    "printoptions",
    "promote_types",
    "remember",
    "rename_device_type",
    "result_type",
    "set_current_index",
    "set_default_dtype",
    "set_printoptions",
    "shell",
    "show_same",
    "shown",
    "storage_elements",
    "strided",
    "tensor_over",
    "view_over",
    "view_through",
    "wrap_dim",
]
