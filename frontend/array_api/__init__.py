"""`redispatch.array_api`: the Python array API standard 2024.12, which programs for any array library are written in.

    xp = x.__array_namespace__()

The names of `redispatch.X` are PyTorch's, which mean something else here and there: `sort` returns two tensors, `max`
takes one dimension, and a tensor without dimensions has less say in the result's dtype. This namespace holds to the
standard, in terms of the public names. Methods and Python's operators are those of the one class Tensor, and so remain
PyTorch's.

Read next: promotion.py, elementwise.py; docs/array_api.md.
"""

from redispatch import _moved, _names

from . import elementwise, fft, linalg

_names.take(
    globals(),
    {
        "math": "e inf nan pi",
        "redispatch": "bool complex64 complex128 float32 float64 int8 int16 int32 int64 uint8",
        ".arrays": """
            arange asarray broadcast_arrays broadcast_to concat empty empty_like expand_dims eye flip from_dlpack full
            full_like linspace meshgrid moveaxis ones ones_like permute_dims repeat reshape roll squeeze stack take
            take_along_axis tile tril triu unstack zeros zeros_like
        """,
        ".linalg": "matmul matrix_transpose tensordot vecdot",
        ".promotion": "__array_namespace_info__ astype can_cast finfo iinfo isdtype result_type",
        ".reductions": """
            all any argmax argmin argsort count_nonzero cumulative_prod cumulative_sum diff max mean min nonzero prod
            searchsorted sort std sum unique_all unique_counts unique_inverse unique_values var where
        """,
        ".elementwise": " ".join([*elementwise.UNARY, *elementwise.BINARY, "clip conj remainder sign"]),
    },
)

__array_api_version__ = "2024.12"
newaxis = None

_moved.join(__name__)
