"""Complex tensors and their lazy bits: what is a view, what is copied when, and what modes see of it."""

import copy
import pickle

import numpy as np
import pytest

import redispatch as rd
from redispatch.dispatch import trace
from redispatch.testing import assert_close

from ..seeing import seen


def numbers(*shape, seed=0):
    random = np.random.default_rng(seed)
    return rd.from_numpy(random.standard_normal(shape) + 1j * random.standard_normal(shape))


# --- views -----------------------------------------------------------------------------------------------------------


def test_a_conjugate_is_a_view_with_a_bit():
    x = numbers(3)
    c = x.conj()
    assert c.is_conj() and c.data_ptr() == x.data_ptr() and c._base is x
    assert not c.conj().is_conj() and c.conj().tolist() == x.tolist()
    assert np.array_equal(c.resolve_conj().numpy(), x.numpy().conj())


def test_a_real_tensor_is_its_own_conjugate():
    x = rd.ones(3)
    assert x.conj() is x and x.conj_physical() is x and x.resolve_conj() is x and not rd.is_conj(x)


def test_the_bit_goes_with_the_memory_to_views_and_not_into_copies():
    c = numbers(2, 3).conj()
    for view in (c.t(), c[0], c[:, 1:], c.unsqueeze(0), c.view(3, 2), c.detach(), c.as_strided((2,), (3,)), c.data):
        assert view.is_conj()
    assert all(part.is_conj() for part in (*c.split(1), *c.unbind(1)))
    for fresh in (c.clone(), c + 0, c.contiguous().clone(), rd.empty_like(c), rd.zeros_like(c), c.sum(), c[[0]]):
        assert not fresh.is_conj()


def test_parts_are_views():
    x = numbers(2)
    x.real.zero_()
    x.conj().imag.fill_(5)  # the imaginary part of the conjugate: -5 in x
    assert x.tolist() == [-5j, -5j]
    assert x.conj().imag.is_neg() and not x.imag.is_neg()
    x.real, x.imag = rd.tensor([1.0, 2.0], dtype=rd.float64), 3
    assert x.tolist() == [1 + 3j, 2 + 3j]


def test_bits_stay_with_a_tensor_that_is_laid_out_anew_in_place():
    c = numbers(2, 3).conj()
    values = c.tolist()
    assert c.t_().is_conj() and np.array_equal(c.tolist(), np.array(values).T)


# --- reading and writing ---------------------------------------------------------------------------------------------


def test_operators_that_do_not_know_the_bit_get_a_clone_without_it():
    c = numbers(2).conj()
    assert seen(lambda: c * c) == "clone clone mul.Tensor"
    assert seen(lambda: rd.cat([c, c])) == "clone clone cat"
    assert seen(lambda: c.imag + 1) == "_conj view_as_real _neg_view select.int clone add.Tensor"


def test_operators_that_know_the_bit_get_the_tensor_itself():
    c = numbers(2, 2).conj()
    for call, name in (
        (lambda: c.mm(c), "mm"),
        (lambda: c.t(), "t"),
        (lambda: c.clone(), "clone"),
        (lambda: rd.addmm(c, c, c), "addmm"),
    ):
        assert seen(call) == name
    assert seen(lambda: c.imag.neg_()).endswith(" neg_")


def test_writes_go_through_the_bit():
    x = numbers(2)
    before = x.numpy().copy()
    c = x.conj()
    assert c.add_(1j) is c and c.is_conj()
    assert np.allclose(x.numpy(), before - 1j)
    assert x._version == c._version
    assert seen(lambda: c.mul_(2)) == "clone mul_.Tensor copy_"


def test_out_may_be_a_conjugate_view():
    x, y = numbers(3), numbers(3, seed=1)
    memory = rd.zeros(3, dtype=rd.complex128)
    out = memory.conj()
    assert rd.add(x, y, out=out) is out
    assert np.allclose(memory.numpy(), (x.numpy() + y.numpy()).conj())
    memory = rd.zeros(0, dtype=rd.complex128)
    assert rd.add(x, y, out=memory.conj()).shape == (3,)


@pytest.mark.parametrize("source", ["plain", "conj", "neg", "number", "zero"])
@pytest.mark.parametrize("target", ["plain", "conj", "neg"])
def test_copies_show_what_the_source_shows(source, target):
    memory, x = numbers(2), numbers(2, seed=1)
    sources = {"plain": x, "conj": x.conj(), "neg": rd._neg_view(x), "number": 1 + 2j}
    sources["zero"] = rd._efficientzerotensor((2,), dtype=rd.complex128)
    shown = {"plain": memory, "conj": memory.conj(), "neg": rd._neg_view(memory)}[target]
    wanted = {"number": [1 + 2j] * 2, "zero": [0, 0]}.get(source)
    wanted = sources[source].tolist() if wanted is None else wanted
    shown.copy_(sources[source])
    assert shown.tolist() == wanted


@pytest.mark.parametrize("dtype", [rd.complex64, rd.float32, rd.float16, rd.bfloat16, rd.int64, rd.bool])
def test_a_conversion_works_the_bits_out(dtype):
    x = rd.tensor([3 + 2j, -1 + 0j])
    for lazy in (x.conj(), rd._neg_view(x), rd._neg_view(x.conj())):
        plain = lazy.resolve_conj().resolve_neg()
        assert rd.empty(2, dtype=dtype).copy_(lazy).tolist() == rd.empty(2, dtype=dtype).copy_(plain).tolist()
    if not dtype.is_complex and dtype.is_floating_point:
        assert rd._neg_view(rd.tensor([1.0, -2.0], dtype=dtype)).clone().tolist() == [-1.0, 2.0]


def test_a_copy_onto_shared_memory_conjugates_on_the_way():
    x = numbers(3)
    wanted = x.numpy().conj()
    x.copy_(x.conj())
    assert np.array_equal(x.numpy(), wanted)


def test_numpy_is_given_no_lazy_memory():
    c = numbers(2).conj()
    with pytest.raises(RuntimeError, match="Can't call numpy.. on Tensor that has conjugate bit set. Use tensor.res"):
        c.numpy()
    with pytest.raises(
        RuntimeError, match="Can't call numpy.. on Tensor that has negative bit set. Use tensor.resolve_n"
    ):
        c.imag.numpy()
    assert np.array_equal(c.numpy(force=True), c.tolist())
    assert repr(rd.tensor([1 + 2j]).conj()) == "tensor([1.-2.j])" and rd.tensor([1 + 2j]).conj()[0].item() == 1 - 2j


def test_copies_of_lazy_tensors_show_the_same():
    for lazy in (numbers(2).conj(), numbers(2).conj().imag):
        assert copy.deepcopy(lazy).tolist() == lazy.tolist()
        again = pickle.loads(pickle.dumps(lazy))
        assert again.tolist() == lazy.tolist() and again.is_conj() == lazy.is_conj() and again.is_neg() == lazy.is_neg()


def test_a_parameter_and_data_take_the_bit_along():
    c = numbers(2).conj()
    assert rd.nn.Parameter(c).is_conj() and not rd.nn.Parameter(c).clone().is_conj()
    x = numbers(2)
    x.data = c
    assert x.is_conj() and x.tolist() == c.tolist()
    y = numbers(2)
    y.set_(c)
    assert not y.is_conj() and y.tolist() == c.conj().tolist()


def test_bits_in_inference_mode_and_on_the_meta_device():
    with rd.inference_mode():
        c = numbers(2).conj()
        assert c.is_conj() and rd.is_conj(c) and (c * 1).tolist() == c.tolist() and not c.real.is_neg()
    assert rd.ones(2, dtype=rd.complex64, device="meta").conj().is_conj()


# --- products ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("of_a", [False, True])
@pytest.mark.parametrize("of_b", [False, True])
@pytest.mark.parametrize("of_out", [False, True])
def test_products_take_conjugate_views(of_a, of_b, of_out):
    def shown(x, bit):
        return x.conj() if bit else x

    a, b, bias = shown(numbers(2, 3), of_a), shown(numbers(3, 4, seed=1), of_b), shown(numbers(2, 4, seed=2), of_a)
    out = shown(rd.zeros(2, 4, dtype=rd.complex128), of_out)
    x, y, z = (t.resolve_conj().numpy().copy() for t in (a, b, bias))
    assert np.allclose(a.mm(b).numpy(), x @ y)
    assert np.allclose(rd.mm(a, b, out=out).resolve_conj().numpy(), x @ y)
    assert np.allclose(rd.addmm(bias, a, b, alpha=2j, beta=3).numpy(), 2j * (x @ y) + 3 * z)
    assert np.allclose(rd.addmm(bias, a, b, alpha=2j, out=out).resolve_conj().numpy(), 2j * (x @ y) + z)
    assert np.allclose(bias.addmm_(a, b, alpha=2j).resolve_conj().numpy(), 2j * (x @ y) + z)
    assert np.allclose(rd.stack([a, a]).matmul(b).numpy(), np.stack([x, x]) @ y)
    v, w = a[0], b[:, 0]
    assert np.isclose(v.dot(w).item(), x[0] @ y[:, 0]) and np.isclose(rd.vdot(v, w).item(), np.vdot(x[0], y[:, 0]))
    assert np.allclose(a.mH.resolve_conj().numpy(), x.conj().T)


# --- ZeroTensor -------------------------------------------------------------------------------------------------------


def test_products_with_zero_tensors_take_no_memory():
    z, x = rd._efficientzerotensor((2, 3)), rd.ones(3)
    for product in (z * x, x * z, z * 2, z / x, z + z, z - z, z.t(), z[0]):
        assert product._is_zerotensor() and product.data_ptr() == 0
    assert (z * x.double()).dtype is rd.float64


def test_sums_with_zero_tensors_are_the_other_term():
    z, x = rd._efficientzerotensor((2, 3)), rd.arange(3.0)
    for total, wanted in ((z + x, 1), (x + z, 1), (x - z, 1), (z - x, -1), (rd.add(z, x, alpha=3), 3)):
        assert not total._is_zerotensor() and total.tolist() == [[0.0, wanted * 1.0, wanted * 2.0]] * 2
    assert (z + 1).tolist() == [[1.0] * 3] * 2
    assert (x[1:] / z[:, 1:]).tolist() == [[float("inf")] * 2] * 2


def test_others_get_zeros_in_memory():
    z = rd._efficientzerotensor((2, 2))
    assert seen(lambda: z.exp()) == "zeros expand exp"
    assert z.exp().tolist() == [[1.0] * 2] * 2 and rd.cat([z, z]).shape == (4, 2) and z.sum().item() == 0
    assert z.clone().tolist() == [[0.0] * 2] * 2 and z.double().dtype is rd.float64
    assert repr(z) == repr(rd.zeros(2, 2)) and z.numpy(force=True).tolist() == [[0.0] * 2] * 2


def test_zero_tensors_cannot_be_written():
    z = rd._efficientzerotensor((2,))
    for write in (lambda: z.add_(1), lambda: rd.add(z, 1, out=z), lambda: z.fill_(1)):
        with pytest.raises(RuntimeError, match="ZeroTensors are immutable. Please use the materialized zero tensor"):
            write()
    with pytest.raises(RuntimeError, match="Cannot convert a ZeroTensor to numpy"):
        z.numpy()
    with pytest.raises(RuntimeError, match="unallocated storage"):
        z.tolist()


# --- gradients --------------------------------------------------------------------------------------------------------


def leaf(*shape):
    return numbers(*shape).requires_grad_()


def test_the_nodes_have_pytorchs_names():
    a = leaf(2)
    nodes = [a.conj(), rd._neg_view(a), a.conj_physical(), a.real, rd.view_as_real(a), a.conj().resolve_conj()]
    names = ["Conj", "NegView", "ConjPhysical", "Select", "ViewAsReal", "Clone"]
    assert [type(x.grad_fn).__name__ for x in nodes] == [f"{name}Backward0" for name in names]


def test_gradients_come_with_their_conjugates_worked_out():
    a = leaf(2)
    (a * (2 + 1j)).abs().sum().backward()
    assert not a.grad.is_conj()
    a.grad.numpy()
    (found,) = rd.autograd.grad((a * a).real.sum(), a)
    assert_close(found, (2 * a).conj().resolve_conj().detach())


def test_a_chain_of_products_conjugates_nothing_on_its_way_back():
    a, b, c = leaf(2), numbers(2, seed=1), numbers(2, seed=2)
    y = a * b * c
    grad = rd.ones(2, dtype=rd.complex128)
    names = seen(lambda: rd.autograd.grad(y, a, grad)).split()
    assert names.count("clone") <= 2 and names.count("mul.Tensor") == 2


def test_a_real_input_takes_the_real_part():
    x = rd.tensor([1.0, 2.0], dtype=rd.float64, requires_grad=True)
    w = numbers(2)
    (x * w).sum().backward(rd.tensor(1j, dtype=rd.complex128))
    assert x.grad.dtype is rd.float64 and np.allclose(x.grad.numpy(), (w.numpy().conj() * 1j).real)


def test_writes_to_views_with_bits_are_recorded_in_the_base():
    a = leaf(2)
    b = a.clone()
    b.conj().mul_(2j)
    assert type(b.grad_fn).__name__ == "CopySlices"
    b.real.sum().backward()
    assert np.allclose(a.grad.numpy(), 2j)  # b = conj(2j conj(a)) = -2j a
    b = a.clone()
    b.imag.mul_(3)
    assert np.allclose(rd.autograd.grad(b.imag.sum(), a)[0].numpy(), 3j)


def test_a_custom_function_is_given_no_lazy_gradient():
    class Plain(rd.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            grad.numpy()
            return grad

    a = leaf(2)
    (Plain.apply(a) * numbers(2, seed=1)).real.sum().backward()
    assert np.allclose(a.grad.numpy(), numbers(2, seed=1).numpy().conj())


# --- the dispatcher ---------------------------------------------------------------------------------------------------


def test_a_trace_shows_where_the_conjugates_are_computed():
    with trace() as hops:
        numbers(2).conj() + 1
    keys = [hop.key for hop in hops if str(hop.op) == "aten.add.Tensor"]
    assert keys == ["AutogradCPU", "Conjugate", "CPU"]


def test_ordinary_tensors_never_come_by():
    with trace() as hops:
        numbers(2) + 1
    assert not {"Conjugate", "Negative", "ZeroTensor"} & {hop.key for hop in hops}
