"""Matrix products through numpy's BLAS, on views of the flat arrays: a transposed operand is not copied.

16-bit floats are widened to float32 and the product is rounded once. Integers go through numpy's own loops, and wrap.
Read next: `copy.py`.
"""

import numpy as np

from .blas_threads import allow_threads
from .copy import copy
from .geometry import contiguous_strides, numel
from .operand import DTYPES, Operand, as_ndarray


def _compute(x: Operand) -> np.ndarray:
    """A numpy view of the operand in its compute type; copies only 16-bit floats."""
    compute = DTYPES[x.dtype].compute
    if compute == x.dtype:
        return as_ndarray(x)
    wide = empty(x.shape, compute)
    copy(wide, x)
    return as_ndarray(wide)


def empty(shape: tuple[int, ...], dtype: str) -> Operand:
    """Fresh dense memory."""
    return Operand(np.empty(numel(shape), DTYPES[dtype].storage), dtype, shape, contiguous_strides(shape))


def matmul(
    out: Operand, a: Operand, b: Operand, bias: Operand | None = None, *, alpha: float = 1, beta: float = 1
) -> None:
    """out = alpha * (a @ b) + beta * bias. Shapes [..., n, k] @ [..., k, m] -> [..., n, m]; `bias` broadcasts.

    With beta == 0 the bias is not read, so that NaN in it does not spread. `out` may be the bias, not a factor.
    An empty k gives zeros. All operands have one dtype.
    """
    compute = DTYPES[out.dtype].compute
    biased = bias is not None and beta != 0
    in_place = compute == out.dtype != "bool" and not (biased and bias.array is out.array)  # type: ignore[union-attr]  # biased
    x, y = _compute(a), _compute(b)
    allow_threads(numel(out.shape) * a.shape[-1])
    if out.dtype == "bool":
        result = np.matmul(x.astype(np.int64), y.astype(np.int64)) != 0
    elif in_place:
        result = as_ndarray(out)
        np.matmul(x, y, out=result)
    else:
        result = np.matmul(x, y)
    if alpha != 1:
        result *= result.dtype.type(alpha)
    if bias is not None and biased:
        added = _compute(bias)
        result += added if beta == 1 else added * result.dtype.type(beta)
    if in_place:
        return
    dense = np.ascontiguousarray(result)
    copy(out, Operand(dense.ravel(), compute, dense.shape, contiguous_strides(dense.shape)))


def mm(out: Operand, a: Operand, b: Operand) -> None:
    """out[n, m] = a[n, k] @ b[k, m]."""
    matmul(out, a, b)


def bmm(out: Operand, a: Operand, b: Operand) -> None:
    """out[batch, n, m] = a[batch, n, k] @ b[batch, k, m]."""
    matmul(out, a, b)


def addmm(out: Operand, bias: Operand, a: Operand, b: Operand, *, alpha: float = 1, beta: float = 1) -> None:
    """out = beta * bias + alpha * (a @ b)."""
    matmul(out, a, b, bias, alpha=alpha, beta=beta)
