"""Operators that the CPU computes for a device: values, strides, out=, errors, gradients, graphs; the null device."""

import pytest

import redispatch as rd
from redispatch.dispatch import MissingKernelError
from redispatch.testing import assert_close

from .helpers import compare, same_gradients


def symmetric(*shape, dtype=rd.float32):
    x = rd.randn(*shape, generator=rd.Generator().manual_seed(7)).to(dtype)
    return x + x.mT


def test_on_the_null_device_results_look_as_they_would(null):  # before the others, whose device stays for all of them
    x = rd.empty(2, 3, 4, device="cuda")
    for ours, theirs in zip(rd.linalg.svd(x), rd.linalg.svd(rd.zeros(2, 3, 4)), strict=True):
        assert ours.is_cuda and (ours.shape, ours.stride(), ours.dtype) == (theirs.shape, theirs.stride(), theirs.dtype)
    with pytest.raises(MissingKernelError):
        rd.linalg.lstsq(x, x)  # whose results' shapes depend on numbers


CALLS = [
    rd.linalg.svd,
    rd.linalg.eig,
    rd.linalg.eigvals,
    rd.linalg.eigh,
    lambda x: rd.linalg.svd(x[..., :2], full_matrices=False),
    lambda x: rd.linalg.lstsq(x, x[..., :2]),
    lambda x: rd.linalg.ldl_solve(*rd.linalg.ldl_factor(x), x[..., :2]),
]


@pytest.mark.parametrize("call", CALLS)
def test_results_are_the_cpus_and_lie_as_they_do(simulator, call):
    for x in (symmetric(2, 3, 4, 4)[:, ::2], symmetric(4, 4).t(), symmetric(0, 3, 3)):
        compare(call(x.cuda()), call(x))


def test_results_are_written_where_out_says_and_arguments_stay(simulator):
    x = symmetric(3, 3)
    here = x.cuda()
    values, vectors = rd.empty(0, device="cuda"), rd.zeros(3, 6, device="cuda")
    found = rd.linalg.eigh(here, out=(values, vectors[:, ::2]))
    wanted = rd.linalg.eigh(x)
    assert found[0] is values
    assert_close(values.cpu(), wanted[0])
    assert_close(vectors.cpu()[:, ::2], wanted[1])
    assert_close(here.cpu(), x)
    assert not vectors.cpu()[:, 1::2].any()


def test_gradients_go_through(simulator):
    x = symmetric(2, 3, 3)
    same_gradients(rd.linalg.svdvals, x)
    same_gradients(lambda x: rd.linalg.eigh(x)[1].abs(), x)


def test_errors_are_the_cpus(simulator):
    bad = rd.eye(2, device="cuda") * float("nan")
    with pytest.raises(RuntimeError, match="should not contain infs or NaNs"):
        rd.linalg.eig(bad)
    with pytest.raises(rd.linalg.LinAlgError, match=r"linalg.svd: \(Batch element 1\)"):
        rd.linalg.svd(rd.stack([rd.eye(2, device="cuda"), bad]))
    with pytest.raises(RuntimeError, match="same device"):
        rd.linalg.lstsq(rd.eye(2, device="cuda"), rd.eye(2))
    x = rd.linalg.eigh(rd.eye(2, dtype=rd.complex128, device="cuda").requires_grad_())[1]
    with pytest.raises(RuntimeError, match="linalg_eigh_backward: The eigenvectors in the complex case"):
        x.imag.sum().backward()


def test_a_graph_cannot_record_them(simulator):
    x = rd.eye(2, device="cuda")
    with (
        pytest.raises(RuntimeError, match="aten::_linalg_svd is computed by the CPU, which a graph cannot record"),
        rd.cuda.graph(rd.cuda.CUDAGraph()),
    ):
        rd.linalg.svd(x)
    compare(rd.linalg.svdvals(x), rd.linalg.svdvals(x.cpu()))
