"""Tensors are printed as PyTorch prints them. The expected texts were printed by PyTorch 2.13."""

import numpy as np
import pytest
from expecttest import assert_expected_inline

import redispatch as rd
from redispatch import _tensor_str
from redispatch.dispatch.tensor.printing import format_tensor, get_printoptions, printoptions, set_printoptions

INF, NAN = float("inf"), float("nan")


def show(values, dtype="float32", **keywords):
    return format_tensor(np.array(values, dtype), dtype, **keywords)


@pytest.fixture(autouse=True)
def default_options():
    yield
    set_printoptions(profile="default")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (1.5, "tensor(1.5000)"),
        ([1.0, 2.0], "tensor([1., 2.])"),
        ([1.0, 2.5], "tensor([1.0000, 2.5000])"),
        ([1e-8, 1.0], "tensor([1.0000e-08, 1.0000e+00])"),
        ([1e10, 1.0], "tensor([1.0000e+10, 1.0000e+00])"),
        ([1e-5, 2e-5], "tensor([1.0000e-05, 2.0000e-05])"),
        ([0.0011, 1.0001], "tensor([0.0011, 1.0001])"),
        ([99999.0, 1e8], "tensor([9.9999e+04, 1.0000e+08])"),
        (123456789.0, "tensor(1.2346e+08)"),
        ([INF, 1.0, NAN], "tensor([inf, 1., nan])"),
        ([NAN], "tensor([nan])"),
        ([-INF, 1000.5], "tensor([     -inf, 1000.5000])"),
        ([-0.0, 0.0], "tensor([-0., 0.])"),
        ([], "tensor([])"),
        (np.empty((2, 0, 3)), "tensor([], size=(2, 0, 3))"),
    ],
)
def test_one_notation_serves_all_floats_of_a_tensor(values, expected):
    assert show(values) == expected


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ([True, False], "bool", "tensor([ True, False])"),
        ([-1, 100], "int64", "tensor([ -1, 100])"),
        (3, "int64", "tensor(3)"),
        ([255], "uint8", "tensor([255], dtype=torch.uint8)"),
        ([1.0], "float64", "tensor([1.], dtype=torch.float64)"),
        ([1 + 2j, 3.5 - 1j], "complex64", "tensor([1.0000+2.j, 3.5000-1.j])"),
        ([complex(0.5, INF), complex(0.25, NAN)], "complex64", "tensor([0.5000+infj, 0.2500+nanj])"),
        ([1j], "complex128", "tensor([0.+1.j], dtype=torch.complex128)"),
        (np.empty(0), "int64", "tensor([], dtype=torch.int64)"),
        (np.empty((2, 0)), "int32", "tensor([], size=(2, 0), dtype=torch.int32)"),
    ],
)
def test_a_dtype_is_shown_where_the_numbers_do_not_tell_it(values, dtype, expected):
    assert show(values, dtype) == expected


def test_the_default_dtype_goes_without_saying():
    assert show([1.0], "float64", default_dtype_name="float64") == "tensor([1.])"
    assert show([1.0], "float32", default_dtype_name="float64") == "tensor([1.], dtype=torch.float32)"
    assert show([1j], "complex128", default_dtype_name="float64") == "tensor([0.+1.j])"
    assert format_tensor(np.array([1.5], "float32"), "bfloat16") == "tensor([1.5000], dtype=torch.bfloat16)"


def test_matrices_are_set_apart_by_blank_lines():
    assert_expected_inline(
        show(np.arange(8).reshape(2, 2, 2), "int64"),
        """\
tensor([[[0, 1],
         [2, 3]],

        [[4, 5],
         [6, 7]]])""",
    )


def test_a_long_row_is_broken_into_lines_of_the_line_width():
    assert_expected_inline(
        show(np.arange(25) * 1000, "int64"),
        """\
tensor([    0,  1000,  2000,  3000,  4000,  5000,  6000,  7000,  8000,  9000,
        10000, 11000, 12000, 13000, 14000, 15000, 16000, 17000, 18000, 19000,
        20000, 21000, 22000, 23000, 24000])""",
    )


def test_a_large_tensor_shows_its_corners():
    assert show(np.arange(1001), "int64") == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"
    assert_expected_inline(
        show(np.arange(2000.0).reshape(50, 40)[:, :28]),
        """\
tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 2.5000e+01, 2.6000e+01,
         2.7000e+01],
        [4.0000e+01, 4.1000e+01, 4.2000e+01,  ..., 6.5000e+01, 6.6000e+01,
         6.7000e+01],
        [8.0000e+01, 8.1000e+01, 8.2000e+01,  ..., 1.0500e+02, 1.0600e+02,
         1.0700e+02],
        ...,
        [1.8800e+03, 1.8810e+03, 1.8820e+03,  ..., 1.9050e+03, 1.9060e+03,
         1.9070e+03],
        [1.9200e+03, 1.9210e+03, 1.9220e+03,  ..., 1.9450e+03, 1.9460e+03,
         1.9470e+03],
        [1.9600e+03, 1.9610e+03, 1.9620e+03,  ..., 1.9850e+03, 1.9860e+03,
         1.9870e+03]])""",
    )


def test_facts_follow_the_numbers_and_wrap_with_them():
    assert show([1.0, 1.0], suffixes=["requires_grad=True"]) == "tensor([1., 1.], requires_grad=True)"
    assert show([2.0], suffixes=["grad_fn=<MulBackward0>"]) == "tensor([2.], grad_fn=<MulBackward0>)"
    assert_expected_inline(
        show(np.arange(16.0), "float64", suffixes=["grad_fn=<MulBackward0>"]),
        """\
tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,
        14., 15.], dtype=torch.float64, grad_fn=<MulBackward0>)""",
    )
    assert_expected_inline(
        show(np.zeros(14), "float64", suffixes=["grad_fn=<MulBackward0>"]),
        """\
tensor([0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0.],
       dtype=torch.float64, grad_fn=<MulBackward0>)""",
    )


def test_a_meta_tensor_shows_what_is_known_of_it():
    def meta(dtype, shape, **keywords):
        return format_tensor(None, dtype, shape=shape, device="meta", **keywords)

    assert meta("float32", (2, 3)) == "tensor(..., device='meta', size=(2, 3))"
    assert meta("int64", ()) == "tensor(..., device='meta', size=(), dtype=torch.int64)"
    assert (
        meta("float32", (2,), suffixes=["requires_grad=True"])
        == "tensor(..., device='meta', size=(2,), requires_grad=True)"
    )


def test_a_subclass_is_indented_by_its_name():
    assert_expected_inline(
        show(np.ones((2, 2)), prefix="Sub("),
        """\
Sub([[1., 1.],
     [1., 1.]])""",
    )


def test_options_change_what_is_printed():
    with printoptions(precision=2, sci_mode=True):
        assert show([1.5]) == "tensor([1.50e+00])"
        assert show([0.0]) == "tensor([0.])"  # PyTorch, too, leaves zeros alone
    with printoptions(sci_mode=False):
        assert show([1e-8, 1.0]) == "tensor([0.0000, 1.0000])"
    with printoptions(threshold=4, edgeitems=1):
        assert show(np.arange(5), "int64") == "tensor([0,  ..., 4])"
    with printoptions(threshold=0, edgeitems=0):
        assert show([1.0, 2.0]) == "tensor([...], size=(2,))"
    with printoptions(profile="full"):
        assert "..." not in show(np.zeros(2000))
    with printoptions(profile="short", linewidth=20):
        assert show([0.5, 0.25, 0.125]) == "tensor([0.50, 0.25,\n        0.12])"


def test_options_come_back_also_after_an_error():
    before = get_printoptions()
    with pytest.raises(KeyError), printoptions(precision=1):
        raise KeyError
    assert get_printoptions() == before == {
        "precision": 4,
        "threshold": 1000,
        "edgeitems": 3,
        "linewidth": 80,
        "sci_mode": None,
    }  # fmt: skip
    with pytest.raises(ValueError, match="there are 'default', 'short', 'full'"):
        set_printoptions(profile="nope")


def test_the_parts_of_which_other_packages_make_their_own_texts():
    assert _tensor_str._tensor_str(rd.arange(4.0).view(2, 2), 6) == "[[0., 1.],\n       [2., 3.]]"
    assert _tensor_str._tensor_str(rd.ones(0, 2), 0) == "[]"
    assert _tensor_str._add_suffixes("Index([1]", ["a=1", "b=2"], 6, False) == "Index([1], a=1, b=2)"
    assert _tensor_str._add_suffixes("Index([1]", ["a=1", "b=2"], 6, True) == "Index([1],\n      a=1, b=2)"
