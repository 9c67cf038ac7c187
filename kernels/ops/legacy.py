"""The names from before there were dtypes: `FloatTensor(2, 3)`, `FloatStorage(3)`.

`FloatTensor` is no class of tensors: there is one class, `Tensor`, and `isinstance(x, FloatTensor)` asks for the dtype.
So is `FloatStorage` no class of storages, but that of float32 among those of storages.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redispatch.dispatch.tensor import CPU, DTYPES, Tensor, UntypedStorage, dtype, dtypes

from .from_data import legacy
from .storages import LEGACY, TypedStorage, _LegacyStorage


class TensorType(type):
    """The class of `FloatTensor` and its kin: each stands for the tensors of one dtype on the CPU."""

    dtype: dtype
    is_cuda = is_xpu = is_sparse = False

    def __new__(meta, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        """TypeError for a class derived from one of them."""
        if bases:
            raise TypeError(f"type 'torch.{bases[0].__name__}' is not an acceptable base type")
        return super().__new__(meta, name, bases, body)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Memory of a shape, `FloatTensor(2, 3)`, or data, `FloatTensor([1, 2])`."""
        return legacy(cls.dtype, CPU, args, kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance._dtype is cls.dtype and instance._device.type == "cpu"

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"


Storage = TypedStorage  # of the default dtype

QUANTISED = (dtypes.quint8, dtypes.qint8, dtypes.qint32)  # of which there are storages only
TYPES: dict[str, Any] = {}  # "FloatTensor", "FloatStorage", "ComplexFloatStorage", ... -> the class
for _dtype in (*DTYPES.values(), *QUANTISED):
    _name = _dtype.tensor_name
    _kind = type(f"{_name}Storage", (_LegacyStorage,), {"_dtype": _dtype, "__module__": "torch"})
    TYPES[f"{_name}Storage"] = LEGACY[_dtype] = _kind
    if not (_dtype.is_complex or _dtype in QUANTISED):
        TYPES[f"{_name}Tensor"] = TensorType(f"{_name}Tensor", (), {"dtype": _dtype, "__module__": "torch"})
_tensor_classes = {kind for kind in TYPES.values() if isinstance(kind, TensorType)}
_storage_classes = {UntypedStorage, TypedStorage, *LEGACY.values()}
globals().update(TYPES)  # which frontend/__init__.py lists

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Returns one of these types: type checkers run no loop."""
