"""Linear algebra beyond the operator table, products of matrices, and einsum."""

# ruff: noqa: E501  (error texts stay whole, so that they can be searched for)

import math
import subprocess
import sys

import numpy as np
import pytest

import redispatch as rd
from redispatch.autograd import gradcheck
from redispatch.testing import assert_close
from redispatch.utils._python_dispatch import TorchDispatchMode

from ..seeing import seen

# Factors make up the matrix again -------------------------------------------------------------------------------------

# What dispatch modes see; what is said of matrices that have no inverse.

RANDOM = np.random.RandomState(0)
KINDS = ["float32", "float64", "complex64", "complex128"]
SHAPES = [(3, 3), (4, 3), (3, 4), (2, 3, 3), (2, 4, 3), (2, 1, 3, 4), (0, 3, 3)]


def random(*shape, dtype="float64"):
    values = RANDOM.standard_normal(shape)
    return rd.tensor(
        values + 1j * RANDOM.standard_normal(shape) if "complex" in dtype else values, dtype=getattr(rd, dtype)
    )


def square(*shape, dtype="float64"):
    return random(*shape, dtype=dtype) + 4 * rd.eye(shape[-1], dtype=getattr(rd, dtype))


# --- factors ----------------------------------------------------------------------------------------------------------


def close(found, wanted):
    loose = 1e-4 if wanted.dtype in (rd.float32, rd.complex64) else 1e-10
    assert_close(found, wanted, rtol=loose, atol=loose)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_factors_make_up_the_matrix(shape, dtype):
    A = random(*shape, dtype=dtype)
    P, L, U = rd.linalg.lu(A)
    close(P @ L @ U, A)
    for mode in ("reduced", "complete"):
        Q, R = rd.linalg.qr(A, mode)
        close(Q @ R, A)
        close(Q.mH @ Q, rd.eye(Q.shape[-1], dtype=A.dtype).expand(*Q.shape[:-2], -1, -1))
    for full in (False, True):
        U, S, Vh = rd.linalg.svd(A, full)
        k = S.shape[-1]
        close((U[..., :k] * S.unsqueeze(-2)) @ Vh[..., :k, :], A)


@pytest.mark.parametrize("dtype", KINDS)
def test_eigenvectors_are_only_stretched(dtype):
    A = random(2, 4, 4, dtype=dtype)
    values, vectors = rd.linalg.eig(A)
    close(A.to(vectors.dtype) @ vectors, vectors * values.unsqueeze(-2))
    H = A + A.mH
    values, vectors = rd.linalg.eigh(H)
    close(H @ vectors, vectors * values.unsqueeze(-2))


@pytest.mark.parametrize("dtype", KINDS)
def test_factors_of_hermitian_matrices(dtype):
    A = square(2, 3, 3, dtype=dtype)
    H = A @ A.mH
    L = rd.linalg.cholesky(H)
    close(L @ L.mH, H)
    U = rd.linalg.cholesky(H, upper=True)
    close(U.mH @ U, H)
    B = random(2, 3, 2, dtype=dtype)
    close(H @ rd.cholesky_solve(B, L), B)
    close(H @ rd.linalg.ldl_solve(*rd.linalg.ldl_factor(H, hermitian=True), B, hermitian=True), B)


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_equations_are_solved_from_either_side_and_for_the_adjoint(left, adjoint):
    A, B = square(2, 3, 3, dtype="complex128"), random(2, 3, 3, dtype="complex128")
    X = rd.linalg.lu_solve(*rd.linalg.lu_factor(A), B, left=left, adjoint=adjoint)
    given = A.mH if adjoint else A
    close(given @ X if left else X @ given, B)


def test_matrices_lie_as_they_like():
    A = square(3, 3)
    lying = rd.zeros(6, 6, dtype=rd.float64)[::2, 1::2].t().copy_(A)
    for function in (rd.linalg.inv, rd.det, rd.linalg.eigvals, rd.linalg.svdvals, rd.matrix_exp):
        close(function(lying), function(A))


def test_matrices_without_elements():
    assert rd.linalg.det(rd.zeros(2, 0, 0)).tolist() == [1, 1]
    assert rd.linalg.inv(rd.zeros(0, 0)).shape == (0, 0)
    assert rd.linalg.svd(rd.zeros(3, 0))[0].tolist() == rd.eye(3).tolist()
    assert rd.linalg.lstsq(rd.zeros(0, 3), rd.zeros(0, 2)).solution.tolist() == [[0, 0]] * 3
    assert rd.linalg.matrix_rank(rd.zeros(2, 0, 3)).tolist() == [0, 0]
    assert rd.linalg.cond(rd.zeros(2, 0, 0)).tolist() == [0, 0]
    assert rd.linalg.matrix_norm(rd.zeros(0, 3), math.inf).item() == 0
    assert rd.linalg.pinv(rd.zeros(3, 0)).shape == (0, 3)


def test_the_rank_counts_what_is_above_the_tolerance():
    A = rd.tensor([4.0, 1.0, 0.1]).diag()
    assert rd.linalg.matrix_rank(A).item() == 3
    assert rd.linalg.matrix_rank(A, atol=0.5).item() == 2
    assert rd.linalg.matrix_rank(A, rtol=0.5).item() == 1
    assert rd.linalg.matrix_rank(A, rd.tensor([0.5, 2.0])).tolist() == [2, 1]
    close(rd.linalg.pinv(A, atol=0.5), rd.tensor([0.25, 1.0, 0.0]).diag())


def test_the_condition_of_a_singular_matrix_is_infinite():
    assert rd.linalg.cond(rd.zeros(2, 2), 1).item() == math.inf
    assert rd.linalg.cond(rd.tensor([2.0, 1.0]).diag()).item() == 2


def test_least_squares_by_each_driver():
    A, B = random(5, 3), random(5, 2)
    wanted, sums, _, values = np.linalg.lstsq(A.numpy(), B.numpy())
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        found = rd.linalg.lstsq(A, B, driver=driver)
        close(found.solution, rd.tensor(wanted))
        assert found.rank.tolist() == ([] if driver == "gels" else 3)
        if driver != "gelsy":
            close(found.residuals, rd.tensor(sums))
        if driver in ("gelsd", "gelss"):
            close(found.singular_values, rd.tensor(values))


def test_the_residuals_have_a_gradient():
    A, B = random(2, 4, 3).requires_grad_(), random(2, 4, 2).requires_grad_()
    assert gradcheck(lambda a, b: rd.linalg.lstsq(a, b, driver="gels")[:2], (A, B))


def test_the_determinant_of_a_singular_matrix_has_a_gradient():
    """The matrix of cofactors."""
    A = rd.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=rd.float64, requires_grad=True)
    for create_graph in (False, True):  # PyTorch gives zeros without a graph
        (found,) = rd.autograd.grad(rd.det(A), A, create_graph=create_graph)
        close(found.detach(), rd.tensor([[4.0, -2.0], [-2.0, 1.0]], dtype=rd.float64))


def test_the_determinant_has_a_gradient_for_each_example():
    A = square(2, 3, 3)
    found = rd.func.vmap(rd.func.grad(rd.det))(A)
    close(found, rd.det(A)[:, None, None] * rd.linalg.inv(A).mT)


def test_products_of_chains_take_the_cheapest_order():
    a, b, c = rd.ones(2, 50), rd.ones(50, 3), rd.ones(3, 40)
    shapes = []

    class Shapes(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is rd.ops.aten.mm.default:
                shapes.append(tuple(tuple(x.shape) for x in args))
            return func(*args, **(kwargs or {}))

    with Shapes():
        rd.linalg.multi_dot([a, b, c])
    assert shapes == [((2, 50), (50, 3)), ((2, 3), (3, 40))]
    with pytest.warns(UserWarning, match="torch.chain_matmul is deprecated"):
        assert rd.chain_matmul(a, b, c).shape == (2, 40)


def test_a_few_random_vectors_find_a_matrix_of_low_rank():
    rd.manual_seed(0)
    A = random(8, 2) @ random(2, 6)
    for matrix in (A, A.mT):
        U, S, V = rd.svd_lowrank(matrix, q=3)
        close((U * S) @ V.mT, matrix)
    U, S, V = rd.pca_lowrank(A, q=2)
    close((U * S) @ V.mT, A - A.mean(0))
    with pytest.raises(ValueError, match=r"q\(=7\) must be non-negative integer and not greater than min\(m, n\)=6"):
        rd.pca_lowrank(A, q=7)


# --- what modes see ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "operators"),
    [
        (rd.linalg.inv, "linalg_inv_ex _linalg_check_errors"),
        (lambda A: rd.linalg.solve(A, A), "_linalg_solve_ex _linalg_check_errors"),
        (rd.linalg.det, "_linalg_det"),
        (rd.linalg.slogdet, "_linalg_slogdet"),
        (rd.linalg.lu_factor, "linalg_lu_factor_ex _linalg_check_errors"),
        (rd.linalg.svd, "_linalg_svd"),
        (rd.linalg.eigvalsh, "_linalg_eigh"),
        (rd.linalg.eigvals, "linalg_eig"),
        (lambda A: rd.linalg.matrix_norm(A, 2), "permute _linalg_svd amax"),
        (lambda A: rd.linalg.norm(A, 1), "linalg_vector_norm amax"),
        (lambda A: rd.linalg.pinv(A, rtol=0.1), "full full linalg_pinv.atol_rtol_tensor"),
        (lambda A: rd.linalg.cond(A), "_linalg_svd slice.Tensor slice.Tensor div.Tensor squeeze.dim"),
        (lambda A: A.matrix_power(-1), "linalg_inv_ex _linalg_check_errors"),
        (lambda A: rd.linalg.vecdot(A, A), "mul.Tensor sum.dim_IntList"),
        (lambda A: rd.linalg.inv(A, out=rd.empty(0, dtype=A.dtype)), "empty.memory_format empty.memory_format linalg_inv_ex.inverse _linalg_check_errors"),
    ],
)  # fmt: skip
def test_modes_see_the_operators_below(call, operators):
    A = square(3, 3)
    assert seen(lambda: call(A)) == operators


# --- errors -----------------------------------------------------------------------------------------------------------


def test_what_has_no_derivative_says_so():
    A = rd.ones(4, 3, requires_grad=True)
    cases = [
        (lambda: rd.linalg.qr(A, "r")[1], "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr."),
        (lambda: rd.linalg.qr(A, "complete")[0], "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."),
        (lambda: rd.geqrf(A)[0], "the derivative for 'geqrf' is not implemented."),
    ]  # fmt: skip
    for call, text in cases:
        with pytest.raises(RuntimeError) as raised:
            call().sum().backward()
        assert str(raised.value) == text


def test_the_default_dimension_of_cross_is_the_first_of_three():
    with pytest.warns(UserWarning, match="Using torch.cross without specifying the dim arg is deprecated"):
        assert rd.cross(rd.eye(3)[:, :2], rd.ones(3, 2)).shape == (3, 2)


def test_importing_the_library_imports_no_scipy():
    program = "import sys, redispatch; print(any(name.partition('.')[0] == 'scipy' for name in sys.modules))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def test_autocast_computes_in_float32_what_16_bits_are_too_few_for():
    A = square(3, 3, dtype="bfloat16")
    with rd.autocast("cpu", dtype=rd.bfloat16):
        assert rd.linalg.inv(A).dtype is rd.float32
        assert rd.linalg.svdvals(A).dtype is rd.float32
        assert rd.linalg.vecdot(A.float(), A.float()).dtype is rd.bfloat16


# `matmul` and `linear` decompose as PyTorch's do; errors --------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "operators"),
    [
        ((3,), (3,), "dot"),
        ((2, 3), (3,), "mv"),
        ((2, 0), (0, 3), "mm"),
        ((3,), (3, 4), "unsqueeze mm squeeze_.dim"),
        ((5, 2, 3), (3,), "view mv _unsafe_view"),
        ((5, 2, 3), (3, 4), "view mm _unsafe_view"),
        ((0, 2, 3), (3, 4), "view mm _unsafe_view"),
        ((2, 3), (5, 3, 4), "transpose.int expand view expand view bmm _unsafe_view"),
        ((5, 2, 3), (5, 3, 4), "expand view expand view bmm _unsafe_view"),
        ((1, 2, 3), (5, 3, 4), "squeeze.dim transpose.int expand view expand view bmm _unsafe_view"),
        ((6, 5, 2, 3), (6, 1, 3, 4), "expand view expand clone _unsafe_view bmm _unsafe_view"),
        ((5, 2, 3), (1, 3, 4), "squeeze.dim view mm _unsafe_view"),
        ((5, 2, 3), (6, 1, 3, 4), "transpose.int expand clone _unsafe_view expand clone _unsafe_view bmm _unsafe_view"),
        ((3,), (5, 3, 4), "transpose.int expand view expand view bmm _unsafe_view"),
    ],
)
def test_matmul_decomposes_as_pytorchs_and_gives_what_numpys_gives(a, b, operators):
    x, y = (np.arange(float(np.prod(shape))).reshape(shape) for shape in (a, b))
    first, second = rd.tensor(x), rd.tensor(y)
    assert seen(lambda: np.testing.assert_array_equal(rd.matmul(first, second).numpy(), np.matmul(x, y))) == operators


def test_linear_decomposes_as_pytorchs():
    weight, bias = rd.ones(4, 3), rd.ones(4)
    linear = rd.nn.functional.linear
    for shape, with_bias, without in [
        ((2, 3), "t addmm", "t mm"),
        ((5, 2, 3), "view t addmm view", "t view mm _unsafe_view"),
        ((3,), "view t addmm view", "t unsqueeze mm squeeze_.dim"),
    ]:
        x = rd.ones(shape)
        assert seen(lambda x=x: linear(x, weight, bias)) == with_bias
        assert seen(lambda x=x: linear(x, weight)) == without


# einsum: the operators that it calls, subscripts as lists, and paths --------------------------------------------------


@pytest.mark.parametrize(
    "equation, names",
    [
        ("ij,kj->ik", "unsqueeze permute unsqueeze permute permute view permute view bmm view permute view"),
        ("i,j->ij", "unsqueeze permute unsqueeze permute mul.Tensor"),
        ("ii->i", "diagonal permute permute"),
        ("ij->j", "permute sum.dim_IntList"),
    ],
)
def test_it_calls_the_operators_that_pytorch_calls(equation, names):
    tensors = [rd.ones((2,) * len(term)) for term in equation.split("->")[0].split(",")]
    assert seen(lambda: rd.einsum(equation, *tensors)) == names


@pytest.mark.parametrize("equation", ["ij,kj->ki", "ijb,kj->kib", "...ij,jk->k...i", "aij,jkl,lm->m...a"])
def test_results_are_in_order_where_a_product_the_other_way_round_makes_them_so(equation):
    shapes = [[2, 3], [4, 3]] if equation.startswith("ij,") else None
    shapes = shapes or {"ijb,kj->kib": [[2, 3, 5], [4, 3]], "...ij,jk->k...i": [[6, 2, 3], [3, 4]]}.get(equation)
    arrays = [np.random.default_rng(0).normal(size=s) for s in shapes or [[2, 3, 4], [4, 5, 6], [6, 7]]]
    found = rd.einsum(equation, *map(rd.tensor, arrays))
    assert np.allclose(found.tolist(), np.einsum(equation, *arrays))
    if equation in ("ij,kj->ki", "ijb,kj->kib"):
        assert found.is_contiguous()


def test_numbers_stand_for_letters():
    a, b = rd.randn(2, 3), rd.randn(3, 4)
    assert rd.equal(rd.einsum(a, [0, 1], b, [1, 30], [30, 0]), rd.einsum("ij,jk->ki", a, b))
    assert rd.equal(rd.einsum(a, [..., 1], b, [1, 2]), a @ b)
    with pytest.raises(ValueError, match=r"not within the valid range \[0, 52\)"):
        rd.einsum(a, [0, 52])
    with pytest.raises(ValueError, match="must specify the equation string and at least one operand"):
        rd.einsum("ij")
    with pytest.raises(TypeError, match="argument 'equation' .position 1. must be str, not int"):
        rd.einsum(3, a)


def test_a_path_says_who_is_joined_with_whom():
    arrays = [np.random.default_rng(i).normal(size=s) for i, s in enumerate([(2, 3), (3, 4), (4, 5)])]
    tensors, einsum = list(map(rd.tensor, arrays)), rd.ops.aten.einsum.default
    expected = np.einsum("ij,jk,kl->il", *arrays)
    for path in ([0, 1, 0, 1], [2, 1, 0, 1], [0, 2, 1, 0]):
        assert np.allclose(einsum("ij,jk,kl->il", tensors, path=path).tolist(), expected)
    with pytest.raises(RuntimeError, match="path given in path parameter to have size 4 but got 2"):
        einsum("ij,jk,kl->il", tensors, path=[0, 1])
    with pytest.raises(RuntimeError, match=r"invalid contraction \(1, 2\) operand index is out of bounds"):
        einsum("ij,jk,kl->il", tensors, path=[0, 1, 1, 2])
    with pytest.raises(RuntimeError, match=r"\(0, 0\) cannot contract an operand with itself"):
        einsum("ij,jk,kl->il", tensors, path=[0, 0, 0, 1])


# out= of another dtype, or of another shape ---------------------------------------------------------------------------

A = rd.tensor([[4.0, 1.0], [1.0, 3.0]])
SAFELY = "{}: Expected {} to be safely castable from {} dtype, but got {} with dtype Int"


@pytest.mark.parametrize(
    ("function", "args", "text"),
    [
        (rd.cholesky_inverse, (A,), SAFELY.format("cholesky_inverse", "result", "Float", "result")),
        (rd.linalg.cond, (A,), SAFELY.format("linalg.cond", "result", "Float", "result")),
        (rd.linalg.pinv, (A,), SAFELY.format("linalg.pinv", "result", "Float", "result")),
        (rd.linalg.eig, (A,), SAFELY.format("torch.linalg.eig", "eigenvalues", "ComplexFloat", "eigenvalues")),
        (rd.linalg.tensorsolve, (A, A[0]), SAFELY.format("tensorsolve", "result", "Float", "result")),
        (rd.linalg.multi_dot, ([A, A],), "multi_dot(): expected out tensor to have dtype float but got int"),
        (rd.linalg.norm, (A,), "linalg.norm expected out tensor dtype Float but got: Int"),
        (rd.linalg.vector_norm, (A,), "Expected out tensor to have dtype float, but got int instead"),
        (rd.mm, (A, A), "Expected out tensor to have dtype float, but got int instead"),
        (rd.tril, (A,), "Expected out tensor to have dtype float, but got int instead"),
        (rd.vdot, (A[0], A[0]), "result dtype Int does not match input dtype Float"),
        (rd.logcumsumexp, (A, 0), "expected scalar_type Float but found Int"),
        (rd.kron, (A, A), "result type Float can't be cast to the desired output type Int"),
    ],
)
def test_an_out_of_another_dtype_is_refused_in_the_functions_own_words(function, args, text):
    outs = [rd.empty(0, dtype=rd.int32) for _ in range(2 if function is rd.linalg.eig else 1)]
    with pytest.raises(RuntimeError) as caught:
        function(*args, out=tuple(outs) if len(outs) > 1 else outs[0])
    assert text in str(caught.value) and not outs[0].numel()


@pytest.mark.parametrize("function", [rd.kron, rd.outer, rd.linalg.cond, rd.linalg.matrix_rank, rd.linalg.tensorinv])
def test_an_out_of_another_shape_is_resized_with_a_warning(function):
    args = {rd.kron: (A, A), rd.outer: (A[0], A[0]), rd.linalg.tensorinv: (A, 1)}.get(function, (A,))
    expected = function(*args)
    with pytest.warns(UserWarning, match="An output with one or more elements was resized since it had shape"):
        out = function(*args, out=rd.empty(7, dtype=expected.dtype))
    assert_close(out, expected)


def test_norms_have_a_real_order_and_one_library():
    for function, x in ((rd.linalg.vector_norm, A[0]), (rd.linalg.matrix_norm, A), (rd.linalg.norm, A)):
        with pytest.raises(RuntimeError, match="Expected a non-complex scalar as the order of norm"):
            function(x, 1 + 2j)
    assert str(rd.backends.cuda.preferred_linalg_library()) == "_LinalgBackend.Default"
    with pytest.raises(RuntimeError, match="Choose from: default, cusolver, magma"):
        rd.backends.cuda.preferred_linalg_library("lapack")


def test_tensordot_keeps_the_dtype_where_it_sums_what_is_broadcast():
    found = rd.tensordot(rd.ones(1, 1, 1, dtype=rd.int16), rd.ones(2, 1, 2, dtype=rd.int16), dims=((0, 1), (2, 0)))
    assert found.dtype is rd.int16 and found.tolist() == [[4]]


def test_einsum_hands_operands_of_a_list_on_one_by_one_where_a_class_asks():
    graph = rd.fx.symbolic_trace(lambda a, b: rd.einsum("ij,jk->ik", (a, b))).graph
    (node,) = (node for node in graph.nodes if node.op == "call_function")
    assert [str(one) for one in node.args] == ["ij,jk->ik", "a", "b"]


def test_products_of_groups_and_their_gradients_are_those_of_each_group():
    x, experts = rd.randn(5, 2, requires_grad=True), rd.randn(3, 2, 4, requires_grad=True)
    ends = rd.tensor([2, 2, 5], dtype=rd.int32)
    found = rd.nn.functional.grouped_mm(x, experts, offs=ends)
    expected = rd.cat([x[:2] @ experts[0], x[2:] @ experts[2]])
    weight = rd.randn(5, 4)
    rd.testing.assert_close(found, expected)
    for ours, theirs in zip(
        rd.autograd.grad((found * weight).sum(), (x, experts)),
        rd.autograd.grad((expected * weight).sum(), (x, experts)),
        strict=True,
    ):
        rd.testing.assert_close(ours, theirs)
    with pytest.raises(RuntimeError, match="offs: a group from 2 to 7 of 5"):
        rd.nn.functional.grouped_mm(x, experts, offs=rd.tensor([2, 7, 5], dtype=rd.int32))
