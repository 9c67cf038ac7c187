"""`redispatch.functional`: PyTorch's module path of the functions that are written in Python there."""

from . import _names

__all__ = _names.take(
    globals(),
    {
        "redispatch": """
            atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist
            chain_matmul einsum istft lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot unique
            unique_consecutive unravel_index
        """
    },
)
