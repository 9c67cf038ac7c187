"""Autocast: in which dtype operators run, which casts are kept, and what comes back after a region."""

import pytest

import redispatch as rd
from redispatch.nn import functional as F


def matrix(dtype=rd.float32, **options):
    return rd.ones(2, 2, dtype=dtype, **options)


def test_products_run_in_the_regions_dtype_and_losses_in_float32():
    with rd.autocast("cpu", dtype=rd.bfloat16):
        product = matrix() @ matrix()
        assert product.dtype is rd.bfloat16
        assert (product + matrix()).dtype is rd.float32
        assert F.mse_loss(product, product).dtype is rd.float32
        assert (matrix(rd.float64) @ matrix(rd.float64)).dtype is rd.float64
    assert (matrix() @ matrix()).dtype is rd.float32


def test_cat_takes_the_wider_of_the_regions_dtype_and_float32():
    with rd.autocast("cpu", dtype=rd.bfloat16):
        assert rd.cat([matrix(rd.bfloat16), matrix(rd.bfloat16)]).dtype is rd.bfloat16
        assert rd.cat([matrix(), matrix(rd.bfloat16)]).dtype is rd.float32


@pytest.mark.parametrize("join", [rd.cat, rd.stack])
def test_cat_of_the_other_16_bit_type_is_an_error(join):
    with rd.autocast("cpu", dtype=rd.bfloat16), pytest.raises(RuntimeError, match="Unexpected floating ScalarType"):
        join([matrix(rd.float16), matrix()])


def test_gradients_come_back_in_the_parameters_dtype():
    weight = matrix(requires_grad=True)
    with rd.autocast("cpu"):
        (matrix() @ weight).sum().backward()
    assert weight.grad.dtype is rd.float32


def test_a_weight_written_in_the_region_is_cast_anew():
    weight = matrix(requires_grad=True)
    with rd.autocast("cpu"):
        before = matrix() @ weight
        with rd.no_grad():
            weight.mul_(3)
        after = matrix() @ weight
    assert after.float().tolist() == (3 * before).float().tolist()


def test_a_region_inside_turns_it_off_and_is_forgotten_after():
    with rd.autocast("cpu"):
        with rd.autocast("cpu", enabled=False):
            assert (matrix() @ matrix()).dtype is rd.float32
        assert (matrix() @ matrix()).dtype is rd.bfloat16
    assert not rd.is_autocast_enabled("cpu")
