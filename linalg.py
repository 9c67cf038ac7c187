"""`redispatch.linalg`: linear algebra under PyTorch's module path.

Each name is that of an operator: `linalg.inv` is `linalg_inv` as dispatch modes and programs of Core ATen call it.
Read next: ops/matrices.py, and the families that these come from.
"""

from redispatch.ops.cholesky import linalg_cholesky as cholesky
from redispatch.ops.cholesky import linalg_cholesky_ex as cholesky_ex
from redispatch.ops.cholesky import linalg_ldl_factor as ldl_factor
from redispatch.ops.cholesky import linalg_ldl_factor_ex as ldl_factor_ex
from redispatch.ops.cholesky import linalg_ldl_solve as ldl_solve
from redispatch.ops.determinants import linalg_det as det
from redispatch.ops.determinants import linalg_slogdet as slogdet
from redispatch.ops.lu import linalg_lu as lu
from redispatch.ops.lu import linalg_lu_factor as lu_factor
from redispatch.ops.lu import linalg_lu_factor_ex as lu_factor_ex
from redispatch.ops.lu import linalg_lu_solve as lu_solve
from redispatch.ops.matrices import LinAlgError
from redispatch.ops.moments import linalg_vector_norm as vector_norm
from redispatch.ops.norms import linalg_matrix_norm as matrix_norm
from redispatch.ops.norms import linalg_norm as norm
from redispatch.ops.orthogonal import linalg_householder_product as householder_product
from redispatch.ops.orthogonal import linalg_qr as qr
from redispatch.ops.solving import linalg_inv as inv
from redispatch.ops.solving import linalg_inv_ex as inv_ex
from redispatch.ops.solving import linalg_solve as solve
from redispatch.ops.solving import linalg_solve_ex as solve_ex
from redispatch.ops.solving import linalg_solve_triangular as solve_triangular
from redispatch.ops.spectra import linalg_eig as eig
from redispatch.ops.spectra import linalg_eigh as eigh
from redispatch.ops.spectra import linalg_eigvals as eigvals
from redispatch.ops.spectra import linalg_eigvalsh as eigvalsh
from redispatch.ops.spectra import linalg_svd as svd
from redispatch.ops.spectra import linalg_svdvals as svdvals

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "ldl_factor",
    "ldl_factor_ex",
    "ldl_solve",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matrix_norm",
    "norm",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "vector_norm",
]
