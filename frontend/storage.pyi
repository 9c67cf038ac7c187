"""Made by `python -m redispatch.stubs`."""

from redispatch.dispatch.tensor import UntypedStorage as UntypedStorage, StorageBase as StorageBase
from redispatch.kernels.ops.storages import TypedStorage as TypedStorage, _LegacyStorage as _LegacyStorage, _dtype_to_storage_type_map as _dtype_to_storage_type_map, _get_always_warn_typed_storage_removal as _get_always_warn_typed_storage_removal, _reset_warn_typed_storage_removal as _reset_warn_typed_storage_removal, _set_always_warn_typed_storage_removal as _set_always_warn_typed_storage_removal, _storage_type_to_dtype_map as _storage_type_to_dtype_map, _warn_typed_storage_removal as _warn_typed_storage_removal

