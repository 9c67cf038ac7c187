"""Eigenvalues and singular values on a card, by NVIDIA's cuSOLVER where it is; elsewhere the CPU computes them
(cpu_fallback.py).

cuSOLVER takes a matrix at a time, and waits for it: small ones are computed faster by the CPU, whatever the way there
costs. (LEAST is an estimate: no card was there to measure it.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch import OpOverload
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.cuda import solver
from redispatch.kernels.ops import spectra
from redispatch.kernels.ops.matrices import is_low_precision, raise_for

from .factorisations import columns_of, copy_matrices, matrices
from .matrices import OnMatrices, Outs, info_for
from .operands import allocator
from .structured import Task, launched

LEAST = 64  # rows and columns


def suits(A: Tensor) -> bool:
    """Whether cuSOLVER is to compute those of a matrix like this."""
    there = allocator().driver.solver is not None and not is_low_precision(A._dtype)
    return there and A._shape.numel() > 0 and min(A._shape[-2:]) >= LEAST


def eigh(outs: Outs, A: Tensor, UPLO: str, compute_v: bool) -> None:
    values, vectors = outs
    x = matrices(A)
    work = matrices(vectors) if compute_v else columns_of(A, x.many, x.rows, x.columns)
    info = info_for(A)
    copy_matrices(work, x)
    call = solver.eigenvalues(A._dtype.name, x.many, x.rows, UPLO[:1].upper() == "U", compute_v)
    launched([Task(call, (0, 1, 2), ())], [work.x, values, info])
    raise_for(info, "linalg.eigh", len(A._shape) == 2)


def svd(outs: Outs, A: Tensor, full_matrices: bool, compute_uv: bool, driver: str | None) -> None:
    """cuSOLVER takes matrices that are not wider than high; of Aᵀ = U S Vᴴ, A is conj(V) S Uᵀ."""
    if driver not in (None, "gesvd"):
        raise RuntimeError(f"torch.linalg.svd: driver={driver!r} is not among those that are there: gesvd")
    U, S, Vh = outs
    x = matrices(A)
    wide = x.rows < x.columns
    x = x.turned if wide else x
    work, info = columns_of(A, x.many, x.rows, x.columns), info_for(A)
    copy_matrices(work, x)
    wanted = solver.NONE if not compute_uv else solver.ALL if full_matrices else solver.SOME
    u, vh = U, Vh
    if wide and compute_uv:
        u = columns_of(A, x.many, x.rows, x.rows if full_matrices else x.columns).x
        vh = columns_of(A, x.many, x.columns, x.columns).x
    call = solver.singular_values(A._dtype.name, x.many, x.rows, x.columns, wanted)
    launched([Task(call, (0, 1, 2, 3, 4), ())], [work.x, S, u if compute_uv else S, vh if compute_uv else S, info])
    if wide and compute_uv:
        copy_matrices(matrices(U), matrices(vh))
        copy_matrices(matrices(Vh), matrices(u))
    raise_for(info, "linalg.svd", len(A._shape) == 2)


OPERATORS = (
    OnMatrices(spectra.eigh_v_op, eigh, "linalg_eigh_cpu"),
    OnMatrices(spectra.svd_uv_op, svd, "linalg_svd_cpu"),
)


def or_library(op: OpOverload, host: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel of an overload that asks cuSOLVER, and the host where that is not for it."""
    for operator in OPERATORS:
        for form, kernel in operator.forms():
            if form is op:
                return lambda *args: (kernel if suits(args[0]) else host)(*args)
    return host
