"""Factorisations and solvers on the simulated device, against LAPACK's on the CPU."""

import pytest

import redispatch as rd
from redispatch import linalg
from redispatch.kernels.cuda.ops import factorisations
from redispatch.kernels.cuda.ops import factorisations as kernels
from redispatch.kernels.cuda.templates import Written
from redispatch.testing import assert_close

from .helpers import compare, same_gradients

WIDE = [pytest.param(dtype, marks=pytest.mark.long) for dtype in (rd.float64, rd.complex64, rd.complex128)]


def numbers(*shape, dtype=rd.float32, seed=3):
    return rd.randn(*shape, dtype=dtype, generator=rd.Generator().manual_seed(seed))


def regular(*shape, dtype=rd.float32):
    return numbers(*shape, dtype=dtype) + 3 * rd.eye(shape[-1], dtype=dtype)


def definite(*shape, dtype=rd.float32):
    x = numbers(*shape, dtype=dtype)
    return x @ x.mH + rd.eye(shape[-1], dtype=dtype)


def the_same(function, *tensors):
    compare(function(*[x.cuda() for x in tensors]), function(*tensors))


def test_a_factorisation_is_one_launch_and_a_solution_four(null):  # before the others, whose device stays
    x = rd.empty(7, 5, 5, device="cuda")
    for function, count in ((linalg.cholesky_ex, 1), (linalg.lu_factor_ex, 1), (rd.geqrf, 1), (linalg.solve_ex, 5)):
        null.launched.clear()
        function(*[x, x][: 2 if function is linalg.solve_ex else 1])
        assert len(null.launched) == count
    assert null.launched[0].grid == (7, 1, 1)


# --- factors ----------------------------------------------------------------------------------------------------------


def lying_anyhow(x):
    """The same numbers, transposed, in steps, broadcast unevenly; none; and matrices without elements."""
    yield x
    yield x.mT.contiguous().mT
    yield x.repeat(1, 2, 2)[:, ::2, ::2]
    yield x[:, None].expand(3, 2, *x.shape[1:])
    yield x[1]
    yield x[:0]
    yield x[:, :0, :0]


@pytest.mark.parametrize("dtype", [rd.float32, *WIDE], ids=str)
def test_factors(simulator, dtype):
    for x in lying_anyhow(numbers(3, 5, 5, dtype=dtype)):
        the_same(linalg.lu_factor_ex, x)
    s = definite(3, 5, 5, dtype=dtype)
    for x in (s, s.mT.contiguous().mT, s[:0], s[:, :0, :0]):
        the_same(linalg.cholesky_ex, x)
        the_same(lambda x: linalg.cholesky_ex(x, upper=True), x)
    for x in (numbers(2, 3, 7, dtype=dtype).expand(2, 2, 3, 7), numbers(7, 3, dtype=dtype), s[:, :0], s[..., :0]):
        the_same(linalg.lu, x)
        the_same(rd.geqrf, x)
        for mode in ("reduced", "complete", "r"):
            the_same(lambda x, mode=mode: linalg.qr(x, mode), x)


@pytest.mark.parametrize("room", [0, pytest.param(40 << 10, marks=pytest.mark.long)])
def test_matrices_with_more_rows_than_lanes_in_shared_memory_and_outside(simulator, monkeypatch, room):
    monkeypatch.setattr(factorisations, "SHARED_BYTES", room)
    the_same(linalg.cholesky_ex, definite(2, 34, 34))
    the_same(lambda x: linalg.cholesky_ex(x, upper=True), definite(3, 3))
    the_same(linalg.lu, numbers(35, 33))
    the_same(linalg.qr, numbers(33, 34))
    b = numbers(70, 9)
    the_same(lambda a, b: linalg.solve_triangular(a, b, upper=False), numbers(70, 70).tril() / 20 + rd.eye(70), b)


def test_what_cannot_be_factored_is_told_of(simulator):
    bad = rd.stack([definite(3, 3), -rd.eye(3), rd.eye(3)])
    bad[2, 1, 1] = 0
    assert linalg.cholesky_ex(bad.cuda())[1].tolist() == [0, 1, 2]
    singular = rd.tensor([[[1.0, 2], [2, 4]], [[0, 1], [1, 0]], [[0, 0], [0, 0]]])
    factors, pivots, info = linalg.lu_factor_ex(singular.cuda())
    compare((factors[:2], pivots, info), (*linalg.lu_factor_ex(singular[:2])[:1], *linalg.lu_factor_ex(singular)[1:]))
    assert linalg.cholesky_ex(rd.eye(2, device="cuda") * float("nan"))[1].item() == 1


CALLS = [
    (linalg.cholesky, rd.linalg.LinAlgError),
    (linalg.inv, rd.linalg.LinAlgError),
    (rd.cholesky, rd.linalg.LinAlgError),
    (rd.cholesky_inverse, rd.linalg.LinAlgError),
    (lambda x: linalg.solve(x, x), rd.linalg.LinAlgError),
    (lambda x: linalg.solve_ex(x, x, check_errors=True), rd.linalg.LinAlgError),
    (linalg.lu_factor, RuntimeError),
    (lambda x: linalg.lu_factor(x, pivot=False), RuntimeError),
    (lambda x: linalg.qr(x, "whole"), RuntimeError),
    (lambda x: linalg.cholesky(x[:, :1]), RuntimeError),
    (lambda x: linalg.solve(x, x.half()), RuntimeError),
    (lambda x: linalg.lu_factor(x.half()), NotImplementedError),
]


@pytest.mark.parametrize("call, kind", CALLS)
@pytest.mark.filterwarnings("ignore:torch.cholesky is deprecated")
def test_errors_are_the_cpus(simulator, call, kind):
    x = rd.stack([rd.eye(3), rd.eye(3)])
    x[1, 2, 2] = 0
    for given in (x, x[1]):
        with pytest.raises(kind) as there:
            call(given.cuda())
        with pytest.raises(kind) as here:
            call(given)
        assert str(there.value) == str(here.value)


# --- solutions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [rd.float32, *WIDE], ids=str)
@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
def test_solutions(simulator, dtype):
    a, b = regular(3, 5, 5, dtype=dtype), numbers(3, 5, 4, dtype=dtype)
    s = definite(3, 5, 5, dtype=dtype)
    for left in (True, False):
        right = b if left else b.mT
        the_same(lambda a, b, left=left: linalg.solve(a, b, left=left), a, right)
        for flag in (True, False):
            the_same(lambda a, b, x=left, f=flag: linalg.lu_solve(*linalg.lu_factor(a), b, left=x, adjoint=f), a, right)
            the_same(lambda a, b, x=left, f=flag: linalg.solve_triangular(a, b, upper=f, left=x), a, right)
            the_same(
                lambda a, b, x=left, f=flag: linalg.solve_triangular(a / 4, b, upper=f, left=x, unitriangular=True),
                a,
                right,
            )
            the_same(lambda a, b, f=flag, t=left: rd.triangular_solve(b, a, upper=f, transpose=t), a, b)
    for upper in (True, False):
        the_same(lambda s, b, u=upper: rd.cholesky_solve(b, linalg.cholesky(s, upper=u), u), s, b)
        the_same(lambda s, u=upper: rd.cholesky_inverse(linalg.cholesky(s, upper=u), u), s)
    the_same(linalg.solve, a, b[:, :, 0])
    the_same(linalg.solve, a[0], b)
    the_same(linalg.solve, a, b[0])
    the_same(linalg.solve, a[:, None], b[:2])
    the_same(linalg.inv, a)
    the_same(linalg.det, a)
    the_same(linalg.slogdet, a.mT)


@pytest.mark.parametrize("dtype", [rd.float32, *WIDE], ids=str)
def test_reflections(simulator, dtype):
    vectors, tau = rd.geqrf(numbers(3, 40, 3, dtype=dtype))
    the_same(linalg.householder_product, vectors, tau)
    the_same(linalg.householder_product, vectors, tau[:, :2])
    for left in (True, False):
        for adjoint in (True, False):
            c = numbers(3, 40, 4, dtype=dtype) if left else numbers(3, 4, 40, dtype=dtype)
            the_same(lambda v, t, c, x=left, y=adjoint: rd.ormqr(v, t, c, x, y), vectors, tau, c)


@pytest.mark.long
@pytest.mark.parametrize("dtype", [rd.float32, rd.float64, rd.complex64, rd.complex128], ids=str)
def test_the_exponential(simulator, dtype):
    x = numbers(3, 4, 4, dtype=dtype)
    x[1] *= 3
    x[2, 0, 0] = float("inf")
    found, wanted = linalg.matrix_exp(x.cuda()).cpu(), linalg.matrix_exp(x)
    tolerance = 1e-10 if dtype in (rd.float64, rd.complex128) else 1e-5  # the CPU computes in double precision
    assert_close(found, wanted, rtol=tolerance, atol=tolerance * float(wanted[1].abs().max()), equal_nan=True)


def test_results_go_where_out_says(simulator):
    a, b = regular(3, 3), numbers(3, 2)
    out = rd.empty(3, 4, device="cuda")
    linalg.solve(a.cuda(), b.cuda(), out=out[:, ::2])
    assert_close(out[:, ::2].cpu(), linalg.solve(a, b))
    factors, pivots = rd.empty(0, device="cuda"), rd.empty(0, dtype=rd.int32, device="cuda")
    linalg.lu_factor(a.cuda(), out=(factors, pivots))
    compare((factors, pivots), tuple(linalg.lu_factor(a)))
    here = definite(3, 3).cuda()
    assert linalg.cholesky(here, out=here) is here
    assert_close(here.cpu(), linalg.cholesky(definite(3, 3)))
    with pytest.raises(RuntimeError, match="dtype"):
        linalg.lu_factor(a.cuda(), out=(factors, factors))


def test_bad_pivots_touch_nothing_and_are_told_of_later(simulator):
    factors, b = regular(2, 3, 3).cuda(), numbers(2, 3, 1).cuda()
    for pivots in ([[1, 2, 4], [1, 2, 3]], [[1, 2, 3], [0, 2, 3]]):
        linalg.lu_solve(factors, rd.tensor(pivots, dtype=rd.int32).cuda(), b)
        with pytest.raises(RuntimeError, match="linalg_lu_solve: index"):
            rd.cuda.synchronize()


def test_a_graph_can_record_a_solution_whose_info_is_left_alone(simulator):
    a, b = regular(3, 3).cuda(), numbers(3, 2).cuda()
    linalg.solve_ex(a, b)
    graph = rd.cuda.CUDAGraph()
    with rd.cuda.graph(graph):
        x, info = linalg.solve_ex(a, b)
    b.copy_(b * 2)
    graph.replay()
    assert_close(x.cpu(), linalg.solve(a.cpu(), b.cpu()))
    with pytest.raises(RuntimeError, match="stream is capturing"), rd.cuda.graph(rd.cuda.CUDAGraph()):
        linalg.solve(a, b)


# --- gradients --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [rd.float64, pytest.param(rd.complex128, marks=pytest.mark.long)], ids=str)
@pytest.mark.long
def test_gradients(simulator, dtype):
    a, b, s = regular(2, 3, 3, dtype=dtype), numbers(2, 3, 2, dtype=dtype), definite(2, 3, 3, dtype=dtype)
    for function in (linalg.inv, linalg.det, linalg.matrix_exp, lambda x: linalg.slogdet(x)[1]):
        same_gradients(function, a)
    for function in (linalg.cholesky, lambda x: rd.cholesky_inverse(linalg.cholesky(x)), lambda x: linalg.qr(x)[1]):
        same_gradients(function, s)
    same_gradients(linalg.solve, a, b)
    same_gradients(lambda a, b: linalg.solve_triangular(a, b, upper=True), a, b)
    same_gradients(lambda a: rd.lu_unpack(*linalg.lu_factor(a))[1], a)
    same_gradients(lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b, adjoint=True), a, b)


def test_a_gradient_in_single_precision(simulator):
    same_gradients(linalg.solve, regular(2, 3, 3), numbers(2, 3, 2))


# --- wrong kernels are found ------------------------------------------------------------------------------------------

# with so many rows, or columns, that several warps work on a matrix, and that rows are exchanged
FACTORS = {
    "CHOLESKY": (linalg.cholesky_ex, definite(2, 14, 14)),
    "LU": (linalg.lu_factor_ex, numbers(2, 14, 17)),
    "REFLECTIONS": (rd.geqrf, numbers(2, 40, 6)),
}


def without_line(text, k, line):
    """The text without the k-th of these lines, at whatever depth."""
    lines = text.splitlines()
    places = [at for at, one in enumerate(lines) if one.strip() == line]
    lines[places[k]] = lines[places[k]].replace(line, "pass")
    return "\n".join(lines) + "\n"


@pytest.mark.long  # a second for each, to compile
@pytest.mark.parametrize("name", FACTORS)
def test_each_barrier_is_needed(simulator, monkeypatch, name):
    right, (call, x) = getattr(kernels, name), FACTORS[name]
    wanted = call(x)
    for k in range(right.text.count("cuda.syncthreads()")):
        wrong = Written(right.function, right.arrays)
        wrong.text = without_line(right.text, k, "cuda.syncthreads()")
        monkeypatch.setattr(kernels, name, wrong)
        more = rd.cat([x, *[x[:1]] * (k + 1)]).cuda()  # so that it looks anew, and no plan is remembered
        with pytest.raises((RuntimeError, AssertionError)):
            compare(tuple(one[:2] for one in call(more)), wanted)
