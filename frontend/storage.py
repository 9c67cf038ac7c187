"""PyTorch's module of storages: names of `kernels/ops/storages.py`."""

from . import _names

__all__ = _names.take(
    globals(),
    {
        "redispatch.dispatch.tensor": "UntypedStorage StorageBase",
        "redispatch.kernels.ops.storages": """
            TypedStorage _LegacyStorage _dtype_to_storage_type_map _get_always_warn_typed_storage_removal
            _reset_warn_typed_storage_removal _set_always_warn_typed_storage_removal _storage_type_to_dtype_map
            _warn_typed_storage_removal
        """,
    },
)
