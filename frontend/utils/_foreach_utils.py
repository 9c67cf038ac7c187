"""Lists of tensors in groups of one device and dtype, as kernels for lists want them, under PyTorch's path."""

from redispatch import _names

_, __getattr__, __dir__ = _names.late(
    globals(),
    {
        "redispatch.nn.utils.lists": "_device_has_foreach_support _foreach_supported_types "
        "_get_foreach_kernels_supported_devices _get_fused_kernels_supported_devices "
        "_group_tensors_by_device_and_dtype _has_foreach_support"
    },
)
