"""`redispatch.linalg`: linear algebra under PyTorch's module path.

Each name is that of an operator: `linalg.inv` is `linalg_inv` as dispatch modes and programs of Core ATen call it.
Read next: kernels/ops/matrices.py, and the families that these come from.
"""

from redispatch.kernels.ops.cholesky import linalg_cholesky as cholesky
from redispatch.kernels.ops.cholesky import linalg_cholesky_ex as cholesky_ex
from redispatch.kernels.ops.cholesky import linalg_ldl_factor as ldl_factor
from redispatch.kernels.ops.cholesky import linalg_ldl_factor_ex as ldl_factor_ex
from redispatch.kernels.ops.cholesky import linalg_ldl_solve as ldl_solve
from redispatch.kernels.ops.determinants import linalg_det as det
from redispatch.kernels.ops.determinants import linalg_slogdet as slogdet
from redispatch.kernels.ops.lu import linalg_lu as lu
from redispatch.kernels.ops.lu import linalg_lu_factor as lu_factor
from redispatch.kernels.ops.lu import linalg_lu_factor_ex as lu_factor_ex
from redispatch.kernels.ops.lu import linalg_lu_solve as lu_solve
from redispatch.kernels.ops.matrices import LinAlgError
from redispatch.kernels.ops.matrix_functions import linalg_cross as cross
from redispatch.kernels.ops.matrix_functions import linalg_diagonal as diagonal
from redispatch.kernels.ops.matrix_functions import linalg_matmul as matmul
from redispatch.kernels.ops.matrix_functions import linalg_matrix_exp as matrix_exp
from redispatch.kernels.ops.matrix_functions import linalg_matrix_power as matrix_power
from redispatch.kernels.ops.matrix_functions import linalg_multi_dot as multi_dot
from redispatch.kernels.ops.matrix_functions import linalg_tensorinv as tensorinv
from redispatch.kernels.ops.matrix_functions import linalg_tensorsolve as tensorsolve
from redispatch.kernels.ops.matrix_functions import linalg_vander as vander
from redispatch.kernels.ops.matrix_functions import linalg_vecdot as vecdot
from redispatch.kernels.ops.moments import linalg_vector_norm as vector_norm
from redispatch.kernels.ops.norms import linalg_matrix_norm as matrix_norm
from redispatch.kernels.ops.norms import linalg_norm as norm
from redispatch.kernels.ops.orthogonal import linalg_householder_product as householder_product
from redispatch.kernels.ops.orthogonal import linalg_qr as qr
from redispatch.kernels.ops.pseudo_inverse import linalg_cond as cond
from redispatch.kernels.ops.pseudo_inverse import linalg_lstsq as lstsq
from redispatch.kernels.ops.pseudo_inverse import linalg_matrix_rank as matrix_rank
from redispatch.kernels.ops.pseudo_inverse import linalg_pinv as pinv
from redispatch.kernels.ops.solving import linalg_inv as inv
from redispatch.kernels.ops.solving import linalg_inv_ex as inv_ex
from redispatch.kernels.ops.solving import linalg_solve as solve
from redispatch.kernels.ops.solving import linalg_solve_ex as solve_ex
from redispatch.kernels.ops.solving import linalg_solve_triangular as solve_triangular
from redispatch.kernels.ops.spectra import linalg_eig as eig
from redispatch.kernels.ops.spectra import linalg_eigh as eigh
from redispatch.kernels.ops.spectra import linalg_eigvals as eigvals
from redispatch.kernels.ops.spectra import linalg_eigvalsh as eigvalsh
from redispatch.kernels.ops.spectra import linalg_svd as svd
from redispatch.kernels.ops.spectra import linalg_svdvals as svdvals

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
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
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]
