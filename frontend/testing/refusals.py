"""Which dtypes an operator refuses, by its declaration: all others are computed. `make parity` compares with PyTorch.

Read next: `refuses` in kernels/declare/declare.py, OpInfo.refused, tests/op_db/properties/dtypes.py.
"""

from redispatch.dispatch import OpOverload
from redispatch.kernels.declare.declare import DECLARED


def refused_by(op: OpOverload) -> frozenset[str]:
    """Returns the names of the dtypes that an operator refuses."""
    declared = DECLARED.get(op)
    return frozenset() if declared is None else frozenset(declared.refuses)


# Their samples need numbers that these dtypes do not hold.
NOT_SAMPLED: dict[str, tuple[str, ...]] = {
    "_neg_view": ("bool",),
    "_neg_view_copy": ("bool",),
    "retain_grad": ("bool", "uint8", "int8", "int16", "int32", "int64"),
    "cov": ("bool",),
    "corrcoef": ("bool", "complex64", "complex128"),
    "binomial": ("bool", "uint8", "int8", "int16", "int32", "int64", "complex64", "complex128"),  # a ValueError
    "max_pool2d_with_indices_backward": ("bfloat16",),
    "max_pool3d_with_indices_backward": ("bfloat16",),
    "avg_pool2d_backward": ("bfloat16",),
    "avg_pool3d_backward": ("bfloat16",),
    "searchsorted.Tensor": ("complex64", "complex128"),
    "searchsorted.Scalar": ("complex64", "complex128"),
    "bucketize.Tensor": ("complex64", "complex128"),
    "bucketize.Scalar": ("complex64", "complex128"),
    "_pdist_forward": ("bool",),
    "_scaled_dot_product_flash_attention_for_cpu": ("uint8", "int8", "int16", "int32", "int64"),
    "_scaled_dot_product_efficient_attention": ("uint8", "int8", "int16", "int32", "int64"),
    "_scaled_dot_product_efficient_attention_backward": (
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "complex64",
        "complex128",
    ),
    "_scaled_dot_product_flash_attention_for_cpu_backward": (
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "complex64",
        "complex128",
    ),
    "_safe_softmax": ("uint8", "int8", "int16", "int32", "int64"),
    "_ctc_loss_backward": (
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "bfloat16",
        "complex64",
        "complex128",
    ),
    "_ctc_loss_backward.Tensor": (
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "bfloat16",
        "complex64",
        "complex128",
    ),
}
