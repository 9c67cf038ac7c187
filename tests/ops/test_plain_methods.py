"""Methods in plain Python, limits of dtypes, the default device, settings, and `trace` of a matrix."""

import pytest

import redispatch as rd
from redispatch.utils import settings


def test_python_functions_are_written_over_elements():
    x = rd.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.apply_(lambda v: v * 2) is x and x.tolist() == [[2, 4], [6, 8]]
    assert x.t().map_(rd.tensor([1.0, 10.0]), lambda a, b: a + b).tolist() == [[3, 16], [5, 18]]
    assert x.map2_(x.clone(), x.clone(), lambda a, b, c: a + b - c).tolist() == [[3, 5], [16, 18]]


def test_new_makes_a_tensor_of_the_same_dtype():
    x = rd.ones(1, dtype=rd.int32)
    assert x.new([1, 2]).dtype is rd.int32 and x.new(2, 3).shape == (2, 3) and x.new().numel() == 0


def test_dim_order_goes_from_the_outermost_dimension_in():
    assert rd.ones(2, 3).t().dim_order() == (1, 0)
    assert rd.ones(2, 3, 4, 5).to(memory_format=rd.channels_last).dim_order() == (0, 2, 3, 1)
    with pytest.raises(RuntimeError, match="does not have unique dim order"):
        rd.ones(1, 2).dim_order(ambiguity_check=True)
    assert rd.ones(1, 2).dim_order(ambiguity_check=[rd.contiguous_format]) == (0, 1)


def test_layouts_that_are_not_built_say_so():
    x = rd.ones(2)
    assert x.to_dense() is x and x.dense_dim() == 1 and not x.is_sparse_csr
    with pytest.raises(RuntimeError, match="indices expected sparse coordinate tensor layout but got Strided"):
        x.indices()
    with pytest.raises(NotImplementedError, match="sparse tensors are not built"):
        x.to_sparse()
    with pytest.raises(NotImplementedError, match="quantized tensors are not built"):
        x.q_scale()


def test_is_set_to_asks_for_the_same_elements():
    x = rd.ones(2, 3)
    assert x.is_set_to(x[:]) and not x.is_set_to(x[1:]) and not x.is_set_to(x.clone())


def test_limits_are_those_of_the_dtype():
    assert repr(rd.finfo(rd.float32)) == (
        "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, smallest_normal=1.17549e-38, "
        "tiny=1.17549e-38, dtype=float32)"
    )
    assert rd.finfo(rd.complex64) == rd.finfo(rd.float32) == rd.finfo()
    assert rd.finfo(rd.bfloat16).eps == 2**-7 and rd.finfo(rd.float16).bits == 16
    assert (rd.iinfo(rd.uint8).min, rd.iinfo(rd.int16).max) == (0, 32767)
    for ask, kind in ((rd.finfo, rd.int32), (rd.iinfo, rd.float32), (rd.iinfo, rd.bool)):
        with pytest.raises(TypeError):
            ask(kind)


def test_settings_are_kept_for_whoever_asks():
    rd.use_deterministic_algorithms(True, warn_only=True)
    try:
        assert rd.get_deterministic_debug_mode() == 1 and rd.is_deterministic_algorithms_warn_only_enabled()
        rd.set_deterministic_debug_mode("error")
        assert rd.are_deterministic_algorithms_enabled()
    finally:
        rd.use_deterministic_algorithms(False)
    with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
        rd.set_deterministic_debug_mode("often")
    with pytest.warns(UserWarning, match="is not one of 'highest', 'high', or 'medium'"):
        rd.set_float32_matmul_precision("low")
    assert rd.get_float32_matmul_precision() == "highest" and rd.set_flush_denormal(True) is False
    with pytest.raises(TypeError, match="only floating-point types"):
        settings.set_default_tensor_type("torch.IntTensor")


def test_trace_adds_up_a_matrix_or_follows_calls():
    assert rd.trace(rd.tensor([[1.0, 2.0], [3.0, 4.0]])).item() == 5
    with rd.trace() as hops:
        rd.ones(2)
    assert "aten.ones.default" in str(hops)


def test_trace_of_a_matrix_can_be_overridden():
    class Loud(rd.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func

    assert rd.trace(rd.ones(2, 2).as_subclass(Loud)) is rd.trace
