"""Samples of products, factorisations, spectra, norms and functions of matrices."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np

from redispatch.dispatch.tensor import as_numpy, dtypes
from redispatch.kernels.ops.creation import eye
from redispatch.kernels.ops.from_data import from_numpy, tensor
from redispatch.kernels.ops.lu import linalg_lu_factor
from redispatch.kernels.ops.scans import cumsum
from redispatch.kernels.ops.spectra import geqrf

from ..op_info import FLOATS, NUMBERS, OpInfo, SampleInput
from .common import Later, but_not, by_numpy, call, calls, later, only, table, x

INF = math.inf
SMALL = {"low": -1, "high": 1}

# --- products ---------------------------------------------------------------------------------------------------------


def scaled(*cases):
    """The same, once more with beta and alpha, and once with a beta of zero, which forgets the first tensor."""
    return calls(*cases, call(*cases[0], beta=2, alpha=3), call(*cases[0], beta=0))


def added_to(product):
    return lambda self, a, b, beta=1, alpha=1: beta * self + alpha * product(a, b)


MATMUL = calls(
    *([(3,), (3,)], [(2, 3), (3,)], [(3,), (3, 2)], [(2, 3), (3, 2)], [(2, 2, 3), (3, 2)]),
    *([(2, 1, 2, 3), (2, 3, 2)], [(3,), (2, 3, 2)], [(0, 3), (3, 2)]),
)
LINEAR = calls(
    *([(2, 3), (4, 3), (4,)], [(2, 3), (4, 3)], [(3,), (4, 3), (4,)], [(2, 2, 3), (4, 3), (4,)]),
    [(0, 3), (4, 3), (4,)],
)
EINSUM = calls(
    ["ij,jk->ik", [(2, 3), (3, 2)]],
    ["ii->i", [(3, 3)]],
    ["bij,bjk->kb", [(2, 2, 3), (2, 3, 2)]],
    ["...i,...i", [(2, 3), (3,)]],
    ["i,ij,j->", [(2,), (2, 3), (3,)]],
)
SUMS_OF_PRODUCTS = calls([(2, 3), (3, 2), [1], [0]], [(2, 3, 2), (3, 2, 2), [1, -1], [0, 1]], [(2,), (3,), [], []])
ADDMM = scaled([(2, 4), (2, 3), (3, 4)], [(4,), (2, 3), (3, 4)], [(), (2, 0), (0, 2)])
BADDBMM = scaled([(2, 2, 2), (2, 2, 3), (2, 3, 2)], [(2,), (2, 2, 3), (2, 3, 2)])
ADDBMM = scaled([(2, 2), (3, 2, 3), (3, 3, 2)], [(2,), (2, 2, 3), (2, 3, 2)], [(2, 2), (0, 2, 3), (0, 3, 2)])
CHAINS = calls([[(2, 3), (3, 4)]], [[(2, 3), (3, 4), (4, 2)]], [[(4, 1), (1, 4), (4, 2), (2, 5)]])
VECTORS = calls([(3,), (3,)], [(2, 3), (3,)], call((2, 3), (2, 3), dim=0))


def cross(self, other, dim=-1):
    return np.cross(self, other, axis=list(self.shape).index(3) if dim is None else dim)


def bilinear(input1, input2, weight, bias=0):
    return np.einsum("...i,oij,...j->...o", input1, weight, input2) + bias


BILINEAR = calls([(2, 3), (2, 4), (5, 3, 4), (5,)], [(3,), (4,), (2, 3, 4)], [(2, 2, 3), (2, 2, 4), (1, 3, 4)])
TRILINEAR = calls([(2, 3), (5, 3, 4), (2, 4), [1, 3], [0], [1, 2], [2, 3]])
DOT = "inconsistent tensor size, expected tensor [3] and src [2] to have the same number of elements,"
SHAPES_DIFFER = "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x{})"
ENDS = Later(lambda make: tensor([1, 3], dtype=dtypes.int32))
GROUPED = calls(
    *([a, b, ENDS] for a, b in (((3, 2), (2, 2, 4)), ((2, 4, 2), (2, 3)), ((2, 3), (3, 2)))), [(2, 3, 2), (2, 2, 3)]
)


def grouped(a, b, ends=()):
    """One product a group, by what the dimensions say is cut."""
    slices = [slice(start, end) for start, end in pairwise([0, *ends])]
    if a.ndim == b.ndim:
        return np.stack([a[:, one] @ b[one] for one in slices]) if slices else a @ b
    parts = [
        a[one] @ m if a.ndim == 2 else m @ b[:, one] for one, m in zip(slices, b if a.ndim == 2 else a, strict=True)
    ]
    return np.concatenate(parts, axis=0 if a.ndim == 2 else 1)


PRODUCTS = table(
    *by_numpy("mm:matmul", calls([(2, 3), (3, 4)], [(0, 3), (3, 2)], [(2, 0), (0, 3)]), NUMBERS),
    *by_numpy("bmm:matmul", calls([(2, 2, 3), (2, 3, 2)], [(0, 2, 3), (0, 3, 2)]), NUMBERS),
    *by_numpy("mv:matmul", calls([(2, 3), (3,)], [(2, 0), (0,)]), NUMBERS),
    *by_numpy("dot", calls([(3,), (3,)], [(0,), (0,)]), NUMBERS),
    *by_numpy("outer ger:outer", calls([(2,), (3,)], [(0,), (3,)]), NUMBERS),
    *by_numpy("matmul", MATMUL, NUMBERS),
    *by_numpy("linalg_matmul:matmul", calls([(2, 3), (3, 2)]), NUMBERS),
    OpInfo("addmm", ADDMM, added_to(np.matmul), NUMBERS),
    OpInfo("_sparse_addmm", ADDMM, added_to(np.matmul), NUMBERS),
    OpInfo("baddbmm", BADDBMM, added_to(np.matmul), NUMBERS),
    OpInfo("addbmm", ADDBMM, added_to(lambda a, b: (a @ b).sum(0)), NUMBERS),
    OpInfo("_int_mm", calls([(2, 3), (3, 4)]), lambda a, b: (a.astype(np.int32) @ b).astype(np.int32), (dtypes.int8,)),
    OpInfo("_grouped_mm", GROUPED, grouped, (dtypes.float32,)),
    OpInfo("addmv", scaled([(2,), (2, 3), (3,)], [(1,), (2, 3), (3,)]), added_to(np.matmul), NUMBERS),
    OpInfo("addr", scaled([(2, 3), (2,), (3,)], [(3,), (2,), (3,)]), added_to(np.outer), NUMBERS),
    OpInfo("linear", LINEAR, lambda input, weight, bias=0: input @ weight.T + bias, FLOATS),
    OpInfo("bilinear", BILINEAR, bilinear, FLOATS),
    OpInfo("_trilinear", TRILINEAR, lambda i1, i2, i3, *dims: bilinear(i1, i3, i2), FLOATS),
    OpInfo("tensordot", SUMS_OF_PRODUCTS, lambda a, b, x, y: np.tensordot(a, b, (x, y)), FLOATS),
    *by_numpy("inner", calls([(2, 3), (4, 3)], [(3,), (3,)], [(2, 3), ()]), FLOATS),
    *by_numpy("kron", calls([(2, 3), (2, 2)], [(2,), (2, 2)]), NUMBERS),
    OpInfo("einsum", EINSUM, lambda equation, tensors: np.einsum(equation, *tensors), FLOATS),
    *by_numpy("linalg_multi_dot", calls(CHAINS, [[(3,), (3, 4), (4,)]], [[(3,), (3, 4)]]), FLOATS),
    *by_numpy("chain_matmul:linalg.multi_dot", CHAINS, FLOATS, function="ops.aten.chain_matmul"),
    OpInfo("linalg_vecdot", VECTORS, lambda x, y, dim=-1: (x.conj() * y).sum(dim), FLOATS),
    OpInfo("linalg_cross", calls([(2, 3), (2, 3)], [(1, 3), (4, 3)], call((3, 2), (3, 2), dim=0)), cross, NUMBERS),
    OpInfo("cross", calls([(3, 2), (3, 2)], [(3, 3), (3, 3), 1]), lambda x, y, dim=None: cross(x, y, dim), NUMBERS),
    errors={
        "_int_mm": {"int_mm_out_cpu: self.size(1) needs to match mat2.size(0) but got 3 and 2": [(2, 3), (2, 3)]},
        "mm": {SHAPES_DIFFER.format(3): [(2, 3), (2, 3)]},
        "bmm": {"batch1 must be a 3D tensor": [(2, 3), (2, 3, 2)]},
        "addmm": {SHAPES_DIFFER.format(3): [(2, 3), (2, 3), (2, 3)]},
        "mv": {"size mismatch, got input (2), mat (2x3), vec (2)": [(2, 3), (2,)]},
        "dot": {f"{DOT} but got 3 and 2 elements respectively": [(3,), (2,)]},
        "outer": {"outer: Expected 1-D argument self, but got 2-D": [(2, 3), (2,)]},
        "matmul": {"both arguments to matmul need to be at least 1D, but they are 0D and 1D": [(), (3,)]},
        "linear": {SHAPES_DIFFER.format(4): [(2, 3), (4, 2)]},
        "einsum": {
            "einsum(): output subscript k does not appear in the equation for any input operand": ["ij->ik", [(2, 3)]]
        },
        "bilinear": {
            "bilinear(): input1 size does not match weight size: got 3 but expected 2": [(2, 3), (2, 4), (5, 2, 4)]
        },
        "linalg_multi_dot": {
            "multi_dot(): expected at least 2 tensors but got 1": [[(2, 2)]],
            "multi_dot(): tensors 0 and 1 with shapes [2, 3] and [2, 3] cannot be multiplied": [[(2, 3), (2, 3)]],
        },
        "linalg_cross": {
            "linalg.cross: inputs dimension -1 must have length 3. Got 3 and 2": [(3,), (2,)],
            "linalg.cross: inputs must have the same number of dimensions.": [(2, 3), (3,)],
        },
        "addbmm": {
            "batch1 and batch2 must have same number of batches, got 2 and 3": [(2, 2), (2, 2, 3), (3, 3, 2)],
            "Incompatible matrix sizes for bmm (2x3 and 2x3)": [(2, 3), (2, 2, 3), (2, 2, 3)],
        },
        "addr": {
            "addr: Expected 1-D argument vec1, but got 2-D": [(2, 2), (2, 2), (2,)],
            "Boolean beta only supported for Boolean results.": call((2, 2), (2,), (2,), beta=True),
        },
    },
    skips={"the product of two of the tensors is rounded": "bfloat16: _trilinear"},
    in_nn="linear",
)

# --- matrices of a kind -----------------------------------------------------------------------------------------------


def is_computed(make):
    """Whether LAPACK knows the dtype."""
    return make.dtype.category >= dtypes.FLOATING and make.dtype.itemsize >= 4


def recorded(make, x):
    """The tensor as a leaf, which requires grad where tests want it."""
    return x.detach().requires_grad_(make.requires_grad)


@later
def regular(make, *shape):
    """Matrices with an inverse: their diagonals are heavy."""
    x = make(*shape).detach()
    return recorded(make, (x + eye(*shape[-2:], dtype=x.dtype) * 8).to(make.dtype))


@later
def positive(make, *shape):
    """Symmetric matrices, positive definite."""
    x = regular(*shape)._of(make)
    if not is_computed(make) or not x.numel():
        return x
    array = as_numpy(x.detach())
    return recorded(make, from_numpy(array @ array.conj().swapaxes(-1, -2) / 8))


@later
def triangular(make, *shape, upper=True):
    x = regular(*shape)._of(make).detach()
    return recorded(make, x.triu() if upper else x.tril())


@later
def apart(make, *shape):
    """Matrices whose singular values, or eigenvalues, lie far apart: a diagonal of 4, 8, 12, ..."""
    x = make(*shape, **SMALL).detach()
    ones = make(*shape).detach() * 0 + 1
    steps = cumsum(ones, -1).tril().triu() * 4 if shape[-1] and shape[-2] else ones
    return recorded(make, (x + steps).to(make.dtype))


@later
def symmetric(make, *shape):
    x = apart(*shape)._of(make).detach()
    symmetrical = is_computed(make) and x.numel() and not make.dtype.is_complex
    return recorded(make, (x + x.mT) / 2 if symmetrical else x)


@later
def reshaped(make, n, *shape):
    """A regular matrix of n rows in another shape."""
    x = regular(n, n)._of(make).detach().reshape(shape)
    return recorded(make, x)


@later
def reshaped_mT(make, n, *shape):
    x = reshaped(n, *shape)._of(make)
    return recorded(make, x.mT.contiguous())


def each(kind, *shapes, **kwargs):
    """A matrix, a batch, one without matrices, matrices without elements; or these shapes."""
    return calls(*(call(kind(*shape), **kwargs) for shape in shapes or ((3, 3), (2, 3, 3), (0, 3, 3), (2, 0, 0))))


def hermitian(call):
    """Makes the matrix symmetric."""
    return replace(call, input=(call.input + call.input.mH) / 2)


def factor(call):
    """Makes the matrix triangular: PyTorch's gradient counts the triangle that is not read."""
    return replace(call, input=call.input.triu() if call.kwargs.get("upper") else call.input.tril())


def of_factor(call):
    """Makes the second matrix triangular likewise."""
    matrix, *upper = call.args
    return replace(call, args=(matrix.triu() if upper and upper[0] else matrix.tril(), *upper))


def of_triangle(call):
    """Makes the matrix of `triangular_solve` triangular, and its diagonal ones where it is taken for such, likewise."""
    matrix, *flags = call.args
    upper, ones = not flags or flags[0], len(flags) > 2 and flags[2]
    matrix = matrix.triu() if upper else matrix.tril()
    diagonal = matrix.diagonal(0, -2, -1)
    matrix = matrix - (diagonal - 1).diag_embed() if ones else matrix
    return replace(call, args=(matrix, *flags))


def either_triangle(kind):
    return calls(call(kind(3, 3)), call(kind(2, 3, 3), upper=True), call(kind(2, 0, 0)))


def int32(numbers):
    return Later(lambda make: tensor(numbers, dtype=dtypes.int32))


def not_square(name):
    return {
        f"{name}: A must be batches of square matrices, but they are 3 by 4 matrices": [(2, 3, 4)],
        f"{name}: The input tensor A must have at least 2 dimensions.": [(3,)],
    }


def unknown(count):
    """Results of which numpy has none; other tests compute with them."""
    return lambda *args, **kwargs: (None,) * count


EQUAL_ROWS = "a matrix with equal rows has no inverse, and one that is not symmetric no such factor"

# --- determinants, equations ------------------------------------------------------------------------------------------


def solution(A, B, left=True, **kwargs):
    if not left:
        return np.swapaxes(solution(np.swapaxes(A, -1, -2), np.swapaxes(B, -1, -2)), -1, -2)
    if B.ndim == 1 or B.shape == A.shape[:-1]:
        return np.linalg.solve(A, B[..., None])[..., 0]
    return np.linalg.solve(A, B)


def triangle_of(A, upper, unitriangular=False):
    part = np.triu(A, int(unitriangular)) if upper else np.tril(A, -int(unitriangular))
    return part + np.eye(A.shape[-1], dtype=A.dtype) if unitriangular else part


def old_solution(b, A, upper=True, transpose=False, unitriangular=False):
    part = triangle_of(A, upper, unitriangular)
    x = np.linalg.solve(np.swapaxes(part, -1, -2) if transpose else part, b)
    return x, np.broadcast_to(A, (*x.shape[:-2], *A.shape[-2:]))


def logdet(self):
    sign, size = np.linalg.slogdet(self)
    return np.where(sign < 0, np.nan, size)


def with_info(function):
    """The reference, and numbers that say that all went well."""
    return lambda x, *args, **kwargs: (function(x, *args, **kwargs), np.zeros(x.shape[:-2]))


@later
def singular(make):
    return tensor([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]], dtype=make.dtype)


EQUATIONS = calls(
    *([regular(3, 3), (3, 2)], [regular(2, 3, 3), (3, 2)], [regular(3, 3), (2, 3, 2)], [regular(3, 3), (3,)]),
    [regular(2, 3, 3), (2, 3)],
    call(regular(2, 3, 3), (2, 2, 3), left=False),
    *([regular(0, 3, 3), (0, 3, 2)], [regular(0, 0), (0, 2)]),
)
TRIANGLES = calls(
    call(triangular(3, 3), (3, 2), upper=True),
    call(regular(2, 3, 3), (3, 2), upper=False),
    call(regular(3, 3), (2, 2, 3), upper=True, left=False),
    call(regular(3, 3), (3, 2), upper=False, unitriangular=True),
    call(regular(0, 0), (0, 2), upper=False),
)
OLD_TRIANGLES = calls(
    [(3, 2), regular(3, 3)],
    [(2, 3, 2), regular(3, 3), False],
    call((3, 2), regular(2, 3, 3), transpose=True),
    [(3, 2), regular(3, 3), True, False, True],
)
ZERO = "The diagonal element 1 is zero, the inversion could not be completed because the input matrix is singular."
UNLIKE = "linalg.solve: Expected A and B to have the same dtype, but found A of type Double and B of type Float instead"
INCOMPATIBLE = "linalg.solve: Incompatible shapes of A and B for the equation AX = B (3x3 and 4x2)"
SOLVING = table(
    OpInfo("_linalg_det", each(regular), lambda A: (np.linalg.det(A), None, None), FLOATS),
    OpInfo("_linalg_slogdet", each(regular), lambda A: (*np.linalg.slogdet(A), None, None), FLOATS),
    *by_numpy("linalg_det det:linalg.det linalg_slogdet slogdet:linalg.slogdet", each(regular), FLOATS),
    OpInfo("logdet", each(regular), logdet, FLOATS),
    OpInfo(
        "_linalg_check_errors",
        calls(call(int32([0, 0]), "linalg.inv", is_matrix=False)),
        None,
        FLOATS[1:],
        gradients=False,
    ),
    OpInfo(
        "_linalg_solve_ex", EQUATIONS, lambda *args, **kwargs: (solution(*args, **kwargs), None, None, None), FLOATS
    ),
    OpInfo("linalg_solve_ex", EQUATIONS, with_info(solution), FLOATS),
    OpInfo("linalg_solve", EQUATIONS, solution, FLOATS),
    *by_numpy("linalg_inv_ex:linalg.inv", each(regular), FLOATS, with_info),
    *by_numpy("linalg_inv inverse:linalg.inv", each(regular), FLOATS),
    OpInfo(
        "linalg_solve_triangular",
        TRIANGLES,
        lambda A, B, upper, left=True, unitriangular=False: solution(triangle_of(A, upper, unitriangular), B, left),
        FLOATS,
    ),
    OpInfo("triangular_solve", OLD_TRIANGLES, old_solution, FLOATS, constrained=of_triangle),
    errors={
        **{name.replace(".", "_"): not_square(name) for name in ("linalg.det", "linalg.slogdet", "logdet")},
        "_linalg_check_errors": {
            "linalg.svd: (Batch element 0): The algorithm failed to converge because the input matrix contained": call(
                int32([-4, 0]), "linalg.svd", is_matrix=False
            )
        },
        "_linalg_solve_ex linalg_solve": {
            INCOMPATIBLE: [(2, 3, 3), (2, 4, 2)],
            UNLIKE: [(3, 3), x(3, 3, dtype=dtypes.float32)],
        },
        "linalg_solve": {
            "torch.linalg.solve: The solver failed because the input matrix is singular.": [x(2, 2).mul(0), (2,)]
        },
        "linalg_inv": {
            **not_square("linalg.inv"),
            f"linalg.inv: (Batch element 1): {ZERO}": [singular()],
            f"linalg.inv: {ZERO}": [singular()[1]],
        },
    },
    skips={
        "the factors are those of the transposed matrix, where that one lies column by column": (
            "layouts: _linalg_det _linalg_slogdet"
        ),
        EQUAL_ROWS: "expanded: *solve* *inv*",
    },
)

# --- factors ----------------------------------------------------------------------------------------------------------


@later
def factors(make, *shape):
    """The LU factors in one matrix, and the pivots."""
    x = regular(*shape)._of(make).detach()
    if is_computed(make):
        lu, pivots = linalg_lu_factor(x.mT.contiguous())
    else:
        lu, pivots = x, tensor([[1, 2, 3]] * 2 if len(shape) > 2 else [1, 2, 3], dtype=dtypes.int32)
    return recorded(make, lu.contiguous()), pivots


def with_lu(make):
    for shape, other, how in (
        ((3, 3), (3, 2), {}),
        ((2, 3, 3), (2, 3), {"left": False}),
        ((2, 3, 3), (2, 3, 2), {"adjoint": True}),
        ((3, 3), (2, 3), {"left": False, "adjoint": True}),
    ):
        lu, pivots = factors(*shape)._of(make)
        yield SampleInput(lu, (pivots, make(*other)), how)


def with_lu_last(make):
    for lu, pivots, other in (given.arguments for given in with_lu(make) if not given.kwargs):
        yield SampleInput(other, (lu, pivots))


def from_cholesky(self, factor, upper=False):
    part = triangle_of(factor, upper)
    adjoint = np.swapaxes(part.conj(), -1, -2)
    return np.linalg.solve(adjoint @ part if upper else part @ adjoint, self)


def inverse_of_cholesky(self, upper=False):
    return from_cholesky(np.broadcast_to(np.eye(self.shape[-1], dtype=self.dtype), self.shape), self, upper)


def cholesky(self, upper=False):
    lower = np.linalg.cholesky(self)
    return np.swapaxes(lower.conj(), -1, -2) if upper else lower


def from_ldl(LD, pivots, B):
    lower = np.tril(LD, -1) + np.eye(3, dtype=LD.dtype)
    return np.linalg.solve(lower @ (LD * np.eye(3, dtype=LD.dtype)) @ np.swapaxes(lower, -1, -2), B)


def not_positive(name):
    text = "The factorization could not be completed because the input is not positive-definite (the leading minor of"
    return not_square(name) | {f"{name}: {text} order 1 is not positive-definite).": [positive(3, 3).detach().neg()]}


def fixed_positive(*shape):
    return positive(*shape).detach()


ANY = each(regular, (3, 3), (2, 3, 4), (2, 4, 3), (3, 0), (0, 3, 3))
PIVOTS = int32([2, 3, 3])
PACKED = calls(
    *([(3, 3), PIVOTS], [(3, 4), PIVOTS, True, False], [(4, 3), PIVOTS]),
    *([(2, 3, 3), int32([[1, 2, 3], [3, 3, 3]])], [(3, 3), PIVOTS, False]),
)
WITH_CHOLESKY = calls(
    [(3, 2), triangular(3, 3, upper=False)], [(2, 3, 2), triangular(3, 3), True], [(3, 0), regular(3, 3)]
)
EXPANDED = calls([(3, 2), triangular(3, 3, upper=False), False], [(2, 3, 2), triangular(2, 3, 3), True])
WITH_LDL = calls(
    [regular(3, 3).detach(), int32([1, 2, 3]), x(3, 2).detach()],
    [regular(2, 3, 3).detach(), int32([[1, 2, 3]] * 2), x(3, 2).detach()],
)
ZERO_U = (
    "torch.linalg.lu_factor: U[1,1] is zero and using it on lu_solve would result in a division by zero. If you "
    "still want to perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
)
FACTORS = table(
    *(OpInfo(name, ANY, unknown(3), FLOATS) for name in ("linalg_lu_factor_ex", "_lu_with_info", "linalg_lu")),
    OpInfo("linalg_lu_factor", ANY, unknown(2), FLOATS),
    OpInfo("lu_unpack", PACKED, unknown(3), FLOATS),
    OpInfo("linalg_lu_solve", with_lu, None, FLOATS),
    OpInfo("lu_solve", with_lu_last, None, FLOATS),
    OpInfo("linalg_cholesky_ex", either_triangle(positive), with_info(cholesky), FLOATS, constrained=hermitian),
    OpInfo("linalg_cholesky", either_triangle(positive), cholesky, FLOATS, constrained=hermitian),
    OpInfo("cholesky", either_triangle(positive), cholesky, FLOATS, constrained=hermitian),
    OpInfo("cholesky_inverse", either_triangle(regular), inverse_of_cholesky, FLOATS, constrained=factor),
    OpInfo("cholesky_solve", WITH_CHOLESKY, from_cholesky, FLOATS, constrained=of_factor),
    OpInfo("_cholesky_solve_helper", EXPANDED, from_cholesky, FLOATS, gradients=False),
    OpInfo("linalg_ldl_factor_ex", each(fixed_positive), unknown(3), FLOATS, gradients=False),
    OpInfo("linalg_ldl_factor", each(fixed_positive), unknown(2), FLOATS, gradients=False),
    OpInfo("linalg_ldl_solve", WITH_LDL, from_ldl, FLOATS, gradients=False),
    errors={
        "linalg_lu_factor": {
            ZERO_U: [x(3, 3).mul(0)],
            "linalg.lu_factor: LU without pivoting is not implemented on the CPU": call((3, 3), pivot=False),
        },
        "linalg_lu_solve": {
            "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix": [
                *((3, 3), int32([1, 2]), (3, 3))
            ]
        },
        "linalg_cholesky": not_positive("linalg.cholesky"),
        "cholesky": not_positive("cholesky"),
        "linalg_ldl_factor_ex": not_square("torch.linalg.ldl_factor_ex"),
    },
    skips={
        EQUAL_ROWS: "expanded: linalg_* cholesky* lu_solve _*",
        "LAPACK takes the diagonal of a factor for real": "complex_gradients: cholesky_inverse",
        "it has a gradient, which is not declared, as PyTorch's is not": (
            "recording: _cholesky_solve_helper linalg_ldl_factor_ex"
        ),
    },
)

# --- orthogonal matrices, spectra -------------------------------------------------------------------------------------


def reflections(make):
    """The results of geqrf; not of whole numbers, which it refuses."""
    for shape in ((3, 3), (2, 4, 3)):
        x = make(*shape).detach()
        a, tau = geqrf(x) if is_computed(make) else (x, x[..., 0, :])
        yield SampleInput(recorded(make, a.contiguous()), (recorded(make, tau.contiguous()),))
    yield from calls([(4, 3), (2,)], [(3, 0), (0,)])(make)


def turned(make):
    first, batch, *_ = reflections(make)
    yield from call(*first.arguments, (3, 2))(make)
    ways = ([(2, 4, 2), True, True], [(2, 2, 4), False], call((2, 2, 4), left=False, transpose=True))
    for given in calls(*ways)(make):
        yield SampleInput(batch.input, (*batch.args, *given.arguments), given.kwargs)


def product(input, tau):
    """The first columns of the product of reflections."""
    m, n = input.shape[-2:]
    found = np.broadcast_to(np.eye(m, dtype=input.dtype), (*input.shape[:-2], m, m))
    for i in range(tau.shape[-1]):
        column = input[..., i]
        v = np.concatenate([np.zeros_like(column[..., :i]), np.ones_like(column[..., :1]), column[..., i + 1 :]], -1)
        t = tau[..., i, None, None]
        found = found @ (np.eye(m, dtype=input.dtype) - t * v[..., :, None] * v[..., None, :].conj())
    return found[..., :n]


def times_product(input, tau, other, left=True, transpose=False):
    padded = np.zeros((*input.shape[:-1], input.shape[-2]), input.dtype)
    padded[..., : input.shape[-1]] = input
    q = product(padded, tau)
    q = np.swapaxes(q.conj(), -1, -2) if transpose else q
    return q @ other if left else other @ q


def qr(A, mode="reduced"):
    return (np.zeros(0), np.linalg.qr(A, "r")) if mode == "r" else tuple(np.linalg.qr(A, mode))


def svd(A, *rest, **kwargs):
    return None, np.linalg.svd(A, compute_uv=False), None


def sizes_of_vectors(results):
    """Eigenvalues, and eigenvectors without their phases."""
    values, vectors = results
    return values, vectors.abs()


def sizes_of_pairs(results):
    """Singular values, and what is the same for all pairs of vectors that belong to them."""
    U, S, V = results
    return U.abs(), S, V.abs()


def eigenvalues_alone(A, UPLO="L"):
    return np.linalg.eigvalsh(A, UPLO), None


NO_NULL_SPACE = "what completes the vectors to a square matrix is not unique"
TALL_AND_WIDE = each(apart, (3, 3), (2, 4, 3), (2, 3, 4), (3, 0), (0, 3), (0, 2, 2))
SQUARES = each(apart, (3, 3), (2, 3, 3), (0, 3, 3), (0, 0))
SYMMETRIC = calls(each(symmetric, (3, 3), (2, 3, 3), (0, 3, 3)), each(symmetric, (3, 3), UPLO="U"))
QR = calls(
    TALL_AND_WIDE,
    each(apart, (2, 3, 4), mode="complete"),
    but_not("gradients", NO_NULL_SPACE, each(apart, (2, 4, 3), mode="complete")),
    but_not("gradients", "without Q there is no derivative", each(apart, (2, 4, 3), (2, 3, 4), mode="r")),
)
SVD = calls(
    SQUARES,
    but_not("gradients", NO_NULL_SPACE, each(apart, (2, 4, 3), (2, 3, 4), (3, 0))),
    each(apart, (2, 4, 3), full_matrices=False),
)
NOT_FINITE = "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values."
SVD_DRIVER = "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
SPECTRA = table(
    OpInfo("linalg_qr", QR, qr, FLOATS),
    *by_numpy("qr:linalg.qr", TALL_AND_WIDE, FLOATS),
    OpInfo("geqrf", each(apart, (3, 3), (2, 4, 3), (2, 3, 4), (3, 0)), None, FLOATS),
    OpInfo("linalg_householder_product", reflections, product, FLOATS),
    OpInfo("orgqr", reflections, product, FLOATS),
    OpInfo("ormqr", turned, times_product, FLOATS),
    OpInfo("_linalg_svd", TALL_AND_WIDE, svd, FLOATS, definite=sizes_of_pairs),
    OpInfo("linalg_svd", SVD, svd, FLOATS, definite=sizes_of_pairs),
    OpInfo("svd", TALL_AND_WIDE, svd, FLOATS, definite=sizes_of_pairs),
    *by_numpy("linalg_svdvals", TALL_AND_WIDE, FLOATS),
    *(
        OpInfo(name, SYMMETRIC, eigenvalues_alone, FLOATS, definite=sizes_of_vectors, constrained=hermitian)
        for name in ("_linalg_eigh", "linalg_eigh")
    ),
    *by_numpy("linalg_eigvalsh", SYMMETRIC, FLOATS, constrained=hermitian),
    OpInfo("linalg_eig", SQUARES, None, FLOATS, definite=sizes_of_vectors),
    OpInfo("linalg_eigvals", SQUARES, None, FLOATS),
    OpInfo("_linalg_eigvals", SQUARES, None, FLOATS, gradients=False),
    errors={
        "linalg_qr": {
            "qr received unrecognized mode 'x' but expected one of 'reduced' (default), 'r', or 'complete'": [
                (3, 3),
                "x",
            ],
            "linalg.qr: The input tensor A must have at least 2 dimensions.": [(3,)],
        },
        "ormqr": {"torch.ormqr: other.shape[-2] must be equal to input.shape[-2]": [(4, 3), (3,), (3, 2)]},
        "_linalg_svd": {SVD_DRIVER: call((3, 3), driver="gesvd"), NOT_FINITE: [x(3, 3).detach().mul(math.nan)]},
        "_linalg_eigh": {
            **not_square("linalg.eigh"),
            "Expected UPLO argument to be 'L' or 'U', but got x": [(3, 3), "x"],
        },
        "linalg_eig": {
            **not_square("linalg.eig"),
            "torch.linalg.eig: input tensor should not contain infs or NaNs.": [x(2, 2).detach().mul(math.nan)],
        },
    },
    skips={
        EQUAL_ROWS: "expanded: *qr *householder* *svd *eig *eigh *eigvals",
        "PyTorch has none, and says so": "gradients: geqrf",
        "as for gradients": "second_gradients: geqrf",
        "the sign of numbers close to zero": "parity: geqrf",
        "as PyTorch's": "recording: _linalg_eigvals",
    },
)

# --- norms ------------------------------------------------------------------------------------------------------------


def norm(self, ord=None, dim=None, keepdim=False):
    return np.linalg.norm(self, ord, dim if dim is None else tuple(dim) if len(dim) == 2 else dim[0], keepdim)


def matrix_norm(self, ord="fro", dim=(-2, -1), keepdim=False):
    return np.linalg.norm(self, ord, tuple(dim), keepdim)


def nuclear_norm(self, dim=(-2, -1), keepdim=False):
    return np.linalg.norm(self, "nuc", tuple(dim), keepdim)


def old_norm(self, p=2, dim=None, keepdim=False, dtype=None):
    sizes = abs(self) if dtype is None else abs(self.astype(dtype))
    order, axis = 2 if p is None else p, None if dim is None else tuple(dim)
    return (sizes**order).sum(axis, keepdims=keepdim) ** (1 / order)


def frobenius_norm(self, dim, keepdim=False):
    return old_norm(self, 2, dim, keepdim)


def to_double(samples):
    kind = Later(lambda make: dtypes.complex128 if make.dtype.is_complex else dtypes.float64)
    return calls(*(call(*one, dtype=kind) for one in samples))


def renorm(self, p, dim, maxnorm):
    axes = tuple(d for d in range(self.ndim) if d != dim % self.ndim)
    size = (abs(self) ** p).sum(axis=axes, keepdims=True) ** (1 / p)
    return np.where(size > maxnorm, self * maxnorm / (size + 1e-7), self)


MATRIX_NORMS = calls(
    *([apart(3, 3), ord] for ord in (1, -1, INF, 2, -2)),
    *([(2, 3, 4), 1, [0, 2]], [(2, 3, 4), INF, [2, 0], True], [(2, 3, 4), 2, [0, 2], True]),
)
NAMED_MATRIX_NORMS = calls(
    *([(3, 3)], [apart(2, 3, 4), "nuc"], [(2, 3, 4), "fro", [0, 2], True], [apart(2, 3, 4), "nuc", [1, 2], True])
)
OF_ANY = calls([(2, 3, 4)], [(3,), 3], [apart(3, 3), 2], [(2, 3), None, [1], True], [(2, 3, 4), 1, [1, 2]])
NAMED = calls([(2, 3), "fro"], [apart(3, 3), "nuc"], [(2, 3, 4), "fro", [0, 1], True])
OLD = [[(2, 3), 2], [(2, 3), 1], [(2, 3), 3]]
OLD_ALONG = [[(2, 3), 2, [1], False], [(2, 3), None, [0], True]]
DISTANCES = calls([(2, 3), (2, 3)], [(2, 3), (3,), 3], [(2, 1), (3,), 1], [(0, 3), (3,)])
RENORMS = calls([(2, 3), 2, 0, 1.5], [(2, 3), 1, -1, 100.0], [(2, 3, 2), 3, 1, 2], [(0, 3), 2, 0, 1.0])
NORMS = table(
    OpInfo("linalg_matrix_norm", MATRIX_NORMS, matrix_norm, FLOATS),
    OpInfo("linalg_matrix_norm.str_ord", NAMED_MATRIX_NORMS, matrix_norm, FLOATS),
    OpInfo("linalg_norm", OF_ANY, norm, FLOATS),
    OpInfo("linalg_norm.ord_str", NAMED, norm, FLOATS),
    OpInfo("norm.Scalar", calls(*OLD), old_norm, FLOATS),
    OpInfo("norm.ScalarOpt_dim", calls(*OLD_ALONG), old_norm, FLOATS),
    OpInfo("norm.ScalarOpt_dtype", to_double(OLD), old_norm, FLOATS),
    OpInfo("norm.ScalarOpt_dim_dtype", to_double(OLD_ALONG), old_norm, FLOATS),
    OpInfo("frobenius_norm.dim", calls([(2, 3), [1]], [(2, 3), [0, 1], True]), frobenius_norm, FLOATS),
    OpInfo("nuclear_norm", calls([apart(3, 3)], [apart(2, 3, 4)]), nuclear_norm, FLOATS),
    OpInfo("nuclear_norm.dim", calls([apart(3, 3), [0, 1]], [apart(2, 3, 4), [1, 2], True]), nuclear_norm, FLOATS),
    OpInfo("dist", DISTANCES, lambda self, other, p=2: old_norm(self - other, p), FLOATS),
    OpInfo("renorm", RENORMS, renorm, FLOATS),
    errors={
        "linalg_matrix_norm": {
            "linalg.matrix_norm: Order 3 not supported.": [(3, 3), 3],
            "linalg.matrix_norm: dims must be different. Got (0, 0)": [(3, 3), 2, [0, 0]],
            "linalg.matrix_norm: dim must be a 2-tuple. Got 0": [(3, 3), 2, [0]],
        },
        "linalg_norm": {
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got 3D.": [(2, 3, 3), 2]
        },
        "renorm": {
            "renorm: non-positive-norm not supported": [(2, 3), 0, 0, 1],
            "renorm: input needs at least 2 dimensions, got 1 dimensions": [(3,), 2, 0, 1],
        },
    },
)

# --- pseudo-inverses and other functions ------------------------------------------------------------------------------

SHAPES = ((3, 3), (2, 4, 3), (2, 3, 4))
HERMITIAN = call(symmetric(3, 3).detach(), hermitian=True)
BY_NUMBERS = calls(each(apart, *SHAPES), *(call(apart(2, 4, 3), **{name: 0.1}) for name in ("atol", "rtol")), HERMITIAN)
TWO = Later(lambda make: tensor([0.1, 0.2], dtype=dtypes.float64))
BY_TENSORS = calls([apart(2, 4, 3)], *(call(apart(2, 4, 3), **{name: TWO}) for name in ("atol", "rtol")), HERMITIAN)
BY_ONE = calls([apart(4, 3), Later(lambda make: tensor(0.1))])


def alone(function):
    return lambda self, *args, **kwargs: function(self)


def least_squares(self, b, driver="gelsy"):
    found = np.linalg.pinv(self) @ (b[..., None] if b.ndim < self.ndim else b)
    return found[..., 0] if b.ndim < self.ndim else found, None, None, None


def exponential(self):
    """By eigenvalues: what the samples have are all different."""
    values, vectors = np.linalg.eig(self.astype(np.complex128))
    found = vectors @ (np.exp(values)[..., None] * np.linalg.inv(vectors)) if self.size else self
    return found if np.iscomplexobj(self) else found.real


def small(*shape):
    return x(*shape, **SMALL)


def tensorsolve(self, other, dims=None):
    return np.linalg.tensorsolve(self, other, dims and tuple(dims))


def embedded(self, offset=0, dim1=-2, dim2=-1):
    rows = np.array([np.diag(row, offset) for row in self.reshape(-1, self.shape[-1])])
    return np.moveaxis(rows.reshape(*self.shape[:-1], *rows.shape[1:]), (-2, -1), (dim1, dim2))


def diff(self, n=1, dim=-1, prepend=None, append=None):
    more = {name: x for name, x in (("prepend", prepend), ("append", append)) if x is not None}
    return np.diff(self, n, dim, **more)


def with_offsets(*shapes):
    return calls(*([shape, offset] for shape in shapes for offset in (0, 1, -1)))


LEAST_SQUARES = calls(
    *([apart(4, 3), (4, 2)], [apart(2, 3, 4), (2, 3, 2)], [apart(2, 4, 3), (2, 4)]),
    *(call(apart(2, 4, 3), (2, 4, 2), driver=driver) for driver in ("gels", "gelsd", "gelss")),
    [(3, 0), (3, 2)],
)
POWERS = calls(
    *([(2, 2), n] for n in (2, 0, 1, 5)),
    [(2, 3, 3), 3],
    only(lambda make: make.dtype in FLOATS, [regular(3, 3), -2]),
)
TENSOR_EQUATIONS = calls([reshaped(6, 2, 3, 6), (2, 3)], [reshaped_mT(6, 2, 3, 6), (2, 3), [1]])
FUNCTIONS = table(
    *by_numpy("linalg_pinv.atol_rtol_tensor", BY_TENSORS, FLOATS, alone),
    *by_numpy("linalg_pinv.atol_rtol_float", BY_NUMBERS, FLOATS, alone),
    *by_numpy("linalg_pinv", each(apart, *SHAPES, rcond=1e-3), FLOATS, alone),
    *by_numpy("linalg_pinv.rcond_tensor", BY_ONE, FLOATS, alone),
    *by_numpy("pinverse:linalg.pinv", each(apart, *SHAPES), FLOATS),
    *by_numpy("linalg_matrix_rank.atol_rtol_tensor", BY_TENSORS, FLOATS, alone, gradients=False),
    *by_numpy("linalg_matrix_rank.atol_rtol_float", BY_NUMBERS, FLOATS, alone, gradients=False),
    *by_numpy("linalg_matrix_rank", each(apart, *SHAPES, tol=0.1), FLOATS, alone, gradients=False),
    *by_numpy("linalg_matrix_rank.tol_tensor", BY_ONE, FLOATS, alone, gradients=False),
    *by_numpy("linalg_cond", calls(*([apart(2, 3, 3), p] for p in (None, 2, -2, 1, INF))), FLOATS),
    *by_numpy("linalg_cond.p_str", calls(*([apart(2, 3, 3), p] for p in ("fro", "nuc"))), FLOATS),
    OpInfo("linalg_lstsq", LEAST_SQUARES, least_squares, FLOATS),
    *by_numpy("linalg_matrix_power matrix_power:linalg.matrix_power", POWERS, FLOATS),
    *(OpInfo(name, each(small), exponential, FLOATS) for name in ("linalg_matrix_exp", "matrix_exp")),
    *by_numpy("linalg_tensorinv", calls([reshaped(4, 4, 2, 2), 1], [reshaped(4, 2, 2, 4), 2]), FLOATS),
    OpInfo("linalg_tensorsolve", TENSOR_EQUATIONS, tensorsolve, FLOATS),
    OpInfo(
        "linalg_vander",
        calls([(3,)], call((2, 3), N=4)),
        lambda x, N=None: x[..., None] ** np.arange(N or x.shape[-1]),
        NUMBERS,
    ),
    *by_numpy("vander", calls([(3,)], [(3,), 2, True], [(3,), 0], [(0,)]), NUMBERS),
    OpInfo(
        "linalg_diagonal",
        calls([(2, 3, 4)], call((2, 3, 4), offset=1, dim1=0)),
        lambda A, offset=0, dim1=-2, dim2=-1: np.diagonal(A, offset, dim1, dim2),
        NUMBERS,
    ),
    *by_numpy("trace", calls([(2, 3)], [(3, 3)], [(0, 3)]), NUMBERS),
    OpInfo("diag_embed", calls([(3,)], [(2, 3), 1], [(2, 3), -1, 0, 2]), embedded, NUMBERS),
    *by_numpy("diag", with_offsets((3,), (2, 3)), NUMBERS),
    *by_numpy("diagflat", with_offsets((2, 2), ()), NUMBERS),
    OpInfo("diff", calls([(2, 4)], [(4, 2), 2, 0], [(2, 3), 0, 0, (1, 3)], [(3,), 1, -1, (1,), (2,)]), diff, NUMBERS),
    errors={
        "linalg_cond": {
            "linalg.cond got an invalid norm type: 3": [(3, 3), 3],
            "linalg.cond(ord=1): A must be batches of square matrices, but they are 3 by 4 matrices": [(3, 4), 1],
        },
        "linalg_lstsq": {
            "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)": call(
                (4, 3), (4, 2), driver="x"
            ),
            "torch.linalg.lstsq: input.size(-2) should match other.size(-2)": [(4, 3), (3, 2)],
        },
        "linalg_matrix_power": {
            "linalg.matrix_power: A must be batches of square matrices, but they are 2 by 3 matrices": [(2, 3), 2]
        },
        "linalg_matrix_exp": not_square("linalg.matrix_exp"),
        "linalg_tensorinv": {"Expected a strictly positive integer for 'ind', but got 0": [(2, 2), 0]},
        "trace": {"trace: expected a matrix, but got tensor with dim 1": [(2,)]},
        "diag": {"diag(): Supports 1D or 2D tensors. Got 3D": [(2, 2, 2)]},
    },
    skips={
        EQUAL_ROWS: "expanded: linalg_cond* linalg_lstsq linalg_tensor*",
        "the sizes of its results depend on the rank": "meta: linalg_lstsq",
        "PyTorch has none: it writes over what it has saved": "gradients second_gradients: vander",
        "it writes into a new tensor, which is a plain one": "subclass: vander",
    },
)

MATRICES = [*PRODUCTS, *SOLVING, *FACTORS, *SPECTRA, *NORMS, *FUNCTIONS]
